"""`chromabuild import`."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from chromabuild.cli.frame import JsonOption, app, command, show
from chromabuild.cli.stage_command import summary_lines


@app.command(name="import")
@command
def import_files(
    structure: Annotated[Path, typer.Argument(
        metavar="STRUCTURE", help="CHARMM psf, AMBER prmtop or GROMACS top; told apart by its first line.")],
    coordinates: Annotated[Path, typer.Argument(
        metavar="COORDINATES", help="pdb, crd, gro, inpcrd, rst7, NAMD's coor, a State of OpenMM (xml) or a restart of "
        "GENESIS: the same atoms in the same order. Velocities are kept.")],
    parameters: Annotated[list[Path], typer.Argument(
        metavar="[PARAMETERS]...", show_default=False,
        help="CHARMM: the rtf, prm and str files of the psf.")] = [],  # noqa: B006
    output: Annotated[Path, typer.Option(
        "--output", "-o", metavar="FOLDER", help="Where to write topology.h5 and shards/.")] = Path("imported"),
    box: Annotated[tuple[float, float, float] | None, typer.Option(
        "--box", metavar="X Y Z", show_default=False,
        help="Edges of the periodic box in angstrom, where the coordinate file has none.")] = None,
    velocities: Annotated[Path | None, typer.Option(
        "--velocities", metavar="FILE", show_default=False,
        help="Velocities where COORDINATES has none: NAMD's vel, or any of its kinds.")] = None,
    xsc: Annotated[Path | None, typer.Option(
        "--xsc", metavar="FILE", show_default=False, help="NAMD: the extended system file, which has the box.")] = None,
    no_box: Annotated[bool, typer.Option(
        "--no-box", help="The model is not periodic, for [BOUNDARY] type = NOBC; it is shifted as a whole.")] = False,
    include: Annotated[Path | None, typer.Option(
        "--include", metavar="FOLDER", show_default=False,
        help="GROMACS: where the files that the top includes lie.")] = None,
    json: JsonOption = False,
) -> None:
    """Prepare CHARMM, AMBER or GROMACS files for the engine.

    Writes topology.h5 and shards/bricks.txt, which control files of `chromamd` name as topologyfile and shardfile, and,
    of velocities, state.bin (statefile). setup.inp names them: `chromamd setup` makes the restart files of it.

    \b
    Examples:
      chromabuild import step5.psf step5.pdb par_all36m_prot.prm toppar_water_ions.str -o md
      chromabuild import system.prmtop system.inpcrd -o md
      chromabuild import topol.top conf.gro --include /usr/share/gromacs/top -o md
      chromabuild import run.psf run.coor par.prm --velocities run.vel --xsc run.xsc -o md
    """
    from chromabuild.forcefield.import_files import import_system

    result = import_system(structure, coordinates, parameters, output, box, include, not no_box, velocities, xsc)
    outputs = result["outputs"]
    show(result, json, [*summary_lines({key: value for key, value in result.items() if key != "outputs"}), *outputs,
                        f"next: chromamd setup {quote(outputs[-1])}"])
