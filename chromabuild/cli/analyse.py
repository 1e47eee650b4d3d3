"""`chromabuild analyse` and `chromabuild analyse duplex`."""

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from chromabuild.cli.frame import JsonOption, ThreadsOption, app, command, show

_DEFAULT = "trajectory"


class _TrajectoryUnlessNamed(TyperGroup):
    """`chromabuild analyse results` means `chromabuild analyse trajectory results`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """Put the name of the default command before arguments that begin with no other's."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


analyse = typer.Typer(
    name="analyse", cls=_TrajectoryUnlessNamed,
    help="Measure simulations and structures.\n\nWithout the name of a command: that of a trajectory.\n\n\b\n"
         "Examples:\n  chromabuild analyse results\n  chromabuild analyse duplex 1kx5.cif --json")
app.add_typer(analyse)


@analyse.command()
@command
def trajectory(
    folder: Annotated[Path, typer.Argument(help="Output folder of a build that has been simulated.")] = Path("results"),
    phase: Annotated[str | None, typer.Option(
        metavar="NAME", show_default="the last one of dynamics with frames", help="Phase of simulate.")] = None,
    topology: Annotated[Path | None, typer.Option(
        metavar="FILE", show_default=False,
        help="Instead of a folder: any topology of MDAnalysis (PSF, PDB, ...), mmCIF, BinaryCIF or a solute (.h5).",
    )] = None,
    frames: Annotated[Path | None, typer.Option(
        "--trajectory", metavar="FILE", show_default=False, help="With --topology: its frames (DCD, XTC, ...).",
    )] = None,
    measure: Annotated[str | None, typer.Option(
        metavar="LIST", show_default="dna, and nucleosome where there is one",
        help="Of dna, nucleosome, fibre, solvent, structure and map; commas between.")] = None,
    every: Annotated[int, typer.Option(min=1, metavar="N", help="Read one frame in N.")] = 1,
    nucleosome: Annotated[int | None, typer.Option(
        min=1, metavar="K", show_default="the first one; DNA where there is none",
        help="Nucleosome that the measure map is made about.")] = None,
    output: Annotated[Path | None, typer.Option(
        "--output", "-o", metavar="FOLDER", show_default="FOLDER/analysis, or analysis with --topology",
        help="Where the tables go.")] = None,
    threads: ThreadsOption = None, json: JsonOption = False,
) -> None:
    """Tables of DNA, nucleosomes, the fibre and ions along a trajectory, and maps of the solvent.

    Base-pair and step parameters, grooves, backbone; unwrapping, sliding, gaping, tails; distances, stacking, linkers;
    ions at DNA: averages over the equilibrated part with block errors, and series of every frame; maps of ions, water
    and the electrostatic potential; pierced rings, mirrored centres and cis peptides. What is there already for the
    same input is kept.

    \b
    Examples:
      chromabuild analyse results --measure dna,nucleosome,fibre
      chromabuild analyse --topology top.psf --trajectory run.dcd --every 10 -o tables
    """
    from chromabuild.analysis.record import FOLDER
    from chromabuild.analysis.trajectory_file import quiet
    from chromabuild.base.errors import BadInputError
    from chromabuild.base.threads import thread_count
    from chromabuild.cli.progress import make_reporter
    from chromabuild.cli.stage_command import file_lines, summary_lines
    from chromabuild.pipeline import analysis

    if frames is not None and topology is None:
        raise BadInputError("--trajectory needs the --topology that it was written with: give both")
    if topology is not None and phase is not None:
        raise BadInputError("--phase is of a folder, not of --topology: leave one of them out")
    with make_reporter().stage("Analysis") as progress, quiet():
        source = analysis.file_source(topology, frames) if topology else analysis.phase_source(folder, phase)
        target = output or (Path(FOLDER) if topology else folder / FOLDER)
        chosen = None if measure is None else [name for word in measure.split(",") if (name := word.strip())]
        summary = analysis.analyse(source, target, chosen, every, thread_count(threads), nucleosome, progress)
    show(summary, json, [*summary_lines(summary), *file_lines(map(Path, summary["files"]))])


@analyse.command()
@command
def duplex(file: Annotated[Path, typer.Argument(
               show_default=False,
               help="PDB, mmCIF or BinaryCIF file, a solute (.h5), a shard or a folder of shards.")],
           json: JsonOption = False) -> None:
    """Base-pair and step parameters of every DNA duplex.

    Six parameters a base pair (shear, stretch, stagger, buckle, propeller, opening) and six a step (shift, slide, rise,
    tilt, roll, twist) after Olson et al. 2001, angstrom and degree.

    \b
    Example:
      chromabuild analyse duplex 1kx5.pdb
    """
    from chromabuild.analysis.duplex import summary, table
    from chromabuild.pipeline.inspect import duplexes_of_file

    duplexes = duplexes_of_file(file)
    show({"file": str(file)} | summary(duplexes) if json else {}, json, [] if json else table(duplexes))
