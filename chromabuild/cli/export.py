"""`chromabuild export PROGRAM`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chromabuild.cli.frame import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    SeedOption,
    SetOption,
    app,
    command,
    load,
    show,
)
from chromabuild.cli.stage_command import file_lines, summary_lines

if TYPE_CHECKING:
    from chromabuild.pipeline.export import Program

export = typer.Typer(name="export", no_args_is_help=True,
                     help="Write results for other programs.\n\n\b\nExample:\n  chromabuild export gromacs")
app.add_typer(export)


PartOption = Annotated[str, typer.Option(
    metavar="solute|system|SELECTION", help="The whole system; the solute alone, without a protocol; or the molecules "
    'that a selection touches, e.g. "within 8 of protein".')]
AfterOption = Annotated[str | None, typer.Option(
    metavar="PHASE", help="Coordinates and velocities at the end of this phase, and the phases after it.",
    show_default="as built")]
OutputOption = Annotated[Path | None, typer.Option(
    "--output", "-o", metavar="FOLDER", help="Where to write.", show_default="export/PROGRAM in the output folder")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an export that is there.")]


_SOURCES = "Reads topology.h5 and the shards; needs `chromabuild topology`."
_HELP: "dict[Program, tuple[str, str]]" = {
    "gromacs": ("GROMACS input: system.top with an itp file for each kind of molecule, system.gro, index.ndx, and an "
                "mdp file for each phase of the protocol.",
                "run.sh runs the phases in turn. energy.mdp gives the energies of the coordinates, to compare."),
    "openmm": ("OpenMM input: system.xml and state.xml (serialised System and State), system.cif (PDBx) and run.py.",
               "run.py runs the phases of the protocol in turn, on any platform, where there is OpenMM and no "
               "chromabuild."),
    "amber": ("AMBER input: system.prmtop, system.rst7 (NetCDF), and an mdin file for each phase of the protocol.",
              "run.sh runs the phases in turn."),
    "namd": ("NAMD input: system.prmtop (charmm36m: system.psf and system.prm), binary coordinates and velocities, and "
             "a configuration for each phase of the protocol.", "run.sh runs the phases in turn."),
    "genesis": ("GENESIS input: system.prmtop and system.inpcrd (charmm36m: system.psf, system.prm, system.crd), and "
                "a control file for each phase of the protocol.", "run.sh runs the phases in turn."),
    "lammps": ("LAMMPS input: system.data, start.in and settings.in with styles and coefficients, and an input script "
               "for each phase of the protocol.",
               "run.sh runs the phases in turn. energy.in gives the energies of the coordinates, to compare.")}
"""What is written, and what it is for."""
_MORE_EXAMPLES: "dict[Program, str]" = {"gromacs": "\n  chromabuild export gromacs --part solute"
                                              "\n  chromabuild export gromacs --part \"solute or within 8 of dna\""}


def _add_command(program: "Program") -> None:
    """The command of a program; all have the same options."""
    @command
    def run(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [], seed: SeedOption = None,  # noqa: B006
            part: PartOption = "system", after: AfterOption = None, output: OutputOption = None,
            force: ForceOption = False, json: JsonOption = False) -> None:
        from chromabuild.pipeline.export import export_results

        summary = export_results(load(config, overrides, seed), program, output, part, after, force)
        files = [Path(summary["folder"]) / name for name in summary["files"]]
        scripts = [path for path in files if path.name in ("run.sh", "run.py")]
        show(summary, json, [*summary_lines(summary), *file_lines(files), *(f"next: {path}" for path in scripts)])

    what, use = _HELP[program]
    examples = (f"  chromabuild export {program}\n"
                f"  chromabuild export {program} --after equilibrate --output from-equilibrated")
    export.command(program, help=f"{what}\n\n{use} {_SOURCES}\n\n\b\nExamples:\n{examples}"
                                 f"{_MORE_EXAMPLES.get(program, '')}\n")(run)


for _program in _HELP:
    _add_command(_program)


RegionOption = Annotated[str | None, typer.Option(
    metavar="CHROM:FIRST-LAST", help="These base pairs, from 1 as in genome browsers, and the nucleosomes whose dyads "
    "lie there.", show_default="all")]
NucleosomesOption = Annotated[str | None, typer.Option(
    metavar="FIRST-LAST", help="These nucleosomes, from 1 along the locus, and the DNA from the first to the last.",
    show_default="all")]
AsBuiltOption = Annotated[bool, typer.Option("--as-built", help="Before the correction of clashes.")]
AfterPhaseOption = Annotated[str | None, typer.Option(
    "--after", metavar="PHASE", help="At the end of this phase of the dynamics.", show_default="without clashes")]
FrameOption = Annotated[int | None, typer.Option(
    "--frame", metavar="N", help="In this frame of the phase that --after names, from 1; -1 is its last one.",
    show_default="the end")]
WaterOption = Annotated[float | None, typer.Option(
    "--water", min=0, metavar="ANGSTROM", help="With the waters and ions within this distance, in the coordinates of "
    "the box; 1e9: all of them.", show_default="none")]
ReplaceOption = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]


@export.command()
@command
def structure(file: Annotated[Path, typer.Argument(help="What to write: .cif (mmCIF), .bcif (BinaryCIF) or .pdb.")],
              config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
              region: RegionOption = None, nucleosomes: NucleosomesOption = None, as_built: AsBuiltOption = False,
              after: AfterPhaseOption = None, frame: FrameOption = None, water: WaterOption = None,
              force: ReplaceOption = False, json: JsonOption = False) -> None:
    """The solute, or a part of it, as one structure file for ChimeraX, PyMOL, Mol* and others.

    Without water and ions unless --water is given. Chains are molecules, with the nucleosome of each in
    struct_asym. Needs `chromabuild clash`, with --as-built `chromabuild build`.

    \b
    Examples:
      chromabuild export structure locus.bcif
      chromabuild export structure promoter.cif --region chrXIII:40,000-45,000
      chromabuild export structure five.pdb --nucleosomes 3-7
      chromabuild export structure last.bcif --after dynamics --frame -1
      chromabuild export structure wet.cif --nucleosomes 2 --water 5
    """
    from chromabuild.pipeline.export import export_structure

    summary = export_structure(load(config, overrides, None), file, region, nucleosomes, as_built, after, frame,
                               water, force)
    show(summary, json, summary_lines(summary))


@export.command()
@command
def scene(file: Annotated[Path, typer.Argument(help="What to write: .cxc (ChimeraX), .tcl (VMD), .mvsx (Mol*) or .zip "
                                               "(Mesoscale Explorer).")],
          config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
          region: RegionOption = None, nucleosomes: NucleosomesOption = None, as_built: AsBuiltOption = False,
          after: AfterPhaseOption = None, frame: FrameOption = None, force: ReplaceOption = False,
          json: JsonOption = False) -> None:
    """The solute with colours and representations for a viewer: open the file there.

    ChimeraX and VMD read the structure from an mmCIF file of the same name beside it. Mesoscale Explorer repeats rigid
    base pairs and histones where the scaffold places them: a few megabytes for any locus. Needs `chromabuild clash`.

    \b
    Examples:
      chromabuild export scene locus.cxc
      chromabuild export scene promoter.mvsx --region chrXIII:40,000-45,000
      chromabuild export scene locus.zip
    """
    from chromabuild.pipeline.export import export_scene

    summary = export_scene(load(config, overrides, None), file, region, nucleosomes, as_built, after, frame,
                               force)
    show(summary, json, [*summary_lines(summary), *file_lines(map(Path, summary["files"]))])


@export.command()
@command
def tracks(config: ConfigOption = DEFAULT_CONFIG, overrides: SetOption = [],  # noqa: B006
           output: Annotated[Path | None, typer.Option(
               "--output", "-o", metavar="FOLDER", help="Where to write.",
               show_default="export/tracks in the output folder")] = None,
           force: ForceOption = False, json: JsonOption = False) -> None:
    """Tracks for UCSC, WashU and IGV: nucleosomes as built (BED), wrapped and crowded DNA (bigWig).

    Crowding counts the base pairs within 15 nm that lie 1,000 base pairs and more away along the locus. Needs
    `chromabuild scaffold`.

    \b
    Example:
      chromabuild export tracks --output tracks
    """
    from chromabuild.pipeline.export import export_tracks

    summary = export_tracks(load(config, overrides, None), output, force)
    files = [Path(summary["folder"]) / name for name in summary["files"]]
    show(summary, json, [*summary_lines(summary), *file_lines(files)])
