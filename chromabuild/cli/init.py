"""`chromabuild init`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from chromabuild.cli.frame import DEFAULT_CONFIG, JsonOption, SeedOption, SetOption, ThreadsOption, app, command, show


class Example(StrEnum):
    """Bundled loci."""

    demo = "demo"
    chrXIII = "chrXIII"  # noqa: N815  (as the chromosome is written)


@app.command()
@command
def init(folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where to write; made when missing.")]
         = Path("."),
         example: Annotated[Example | None, typer.Option(
             help="Copy a bundled yeast locus: demo (4 nucleosomes, minutes) or chrXIII (83 kb, 468 nucleosomes).",
             show_default=False)] = None,
         fasta: Annotated[Path | None, typer.Option(metavar="FILE", show_default=False,
                                                    help="Your sequence, or a genome (plain or gz).")] = None,
         nucleosomes: Annotated[Path | None, typer.Option(metavar="FILE", show_default=False,
                                                          help="Your nucleosomes or dyads, BED or narrowPeak.")] = None,
         contacts: Annotated[Path | None, typer.Option(metavar="FILE", show_default=False,
                                                       help="Your contacts, BEDPE or .cool/.mcool/.hic.")] = None,
         array: Annotated[str | None, typer.Option(
             metavar="NUMBERxSEQUENCE:REPEAT", show_default=False,
             help="A regular array, e.g. 12x601:197, or one nucleosome, 1x601:147; its files are written too.")] = None,
         circular: Annotated[bool, typer.Option(
             "--circular", help="The sequence closes to a circle, such as a plasmid or a minichromosome.")] = False,
         region: Annotated[str | None, typer.Option(
             metavar="CHROM:FIRST-LAST", show_default=False,
             help="Place of the locus, cut from a genome's files; from 1.")] = None,
         config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Name of the settings file.")]
         = DEFAULT_CONFIG,
         overrides: SetOption = [], seed: SeedOption = None, threads: ThreadsOption = None,  # noqa: B006
         json: JsonOption = False,
         force: Annotated[bool, typer.Option("--force", help="Replace files that are already there.")] = False) -> None:
    """Write a settings file, or copy a bundled example.

    locus.yaml then holds every setting with its default, unit and meaning. A sequence without nucleosomes is DNA alone.

    \b
    Examples:
      chromabuild init --example demo demo
      chromabuild init my_gene --fasta my_gene.fa --nucleosomes dyads.bed --contacts loops.bedpe
      chromabuild init my_gene --fasta genome.fa.gz --nucleosomes peaks.narrowPeak --region chrIV:433,501-441,500
      chromabuild init fibre --array 12x601:197
      chromabuild init minicircle --fasta minicircle.fa --circular
      chromabuild init minichromosome --array 6x601:207 --circular
    """
    from chromabuild.base.settings import parse_override
    from chromabuild.genome.arrays import array_of
    from chromabuild.pipeline.examples import write_settings

    values = dict(parse_override(text) for text in overrides)
    if region is not None:
        values["locus.region"] = region
    if circular:
        values["locus.circular"] = True
    files = {"fasta": fasta, "nucleosomes": nucleosomes, "contacts": contacts}
    written = write_settings(folder, config.name, example.value if example else None,
                             {key: path for key, path in files.items() if path}, values, seed, force,
                             array_of(array) if array is not None else None)
    show({"written": [str(path) for path in written]}, json,
         [*(f"wrote {path}" for path in written), f"next: cd {folder} && chromabuild all"])
