"""`chromabuild import`."""

from pathlib import Path
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
        metavar="COORDINATES", help="pdb, crd, gro, inpcrd or rst7 of the same atoms in the same order.")],
    parameters: Annotated[list[Path], typer.Argument(
        metavar="[PARAMETERS]...", show_default=False,
        help="CHARMM: the rtf, prm and str files of the psf.")] = [],  # noqa: B006
    output: Annotated[Path, typer.Option(
        "--output", "-o", metavar="FOLDER", help="Where to write topology.h5 and shards/.")] = Path("imported"),
    box: Annotated[tuple[float, float, float] | None, typer.Option(
        "--box", metavar="X Y Z", show_default=False,
        help="Edges of the periodic box in angstrom, where the coordinate file has none.")] = None,
    no_box: Annotated[bool, typer.Option(
        "--no-box", help="The model is not periodic, for [BOUNDARY] type = NOBC; it is shifted as a whole.")] = False,
    include: Annotated[Path | None, typer.Option(
        "--include", metavar="FOLDER", show_default=False,
        help="GROMACS: where the files that the top includes lie.")] = None,
    json: JsonOption = False,
) -> None:
    """Prepare CHARMM, AMBER or GROMACS files for the engine.

    Writes topology.h5 and shards/bricks.txt, which the control files of `chromamd` name as topologyfile and shardfile.

    \b
    Examples:
      chromabuild import step5.psf step5.pdb par_all36m_prot.prm toppar_water_ions.str -o md
      chromabuild import system.prmtop system.inpcrd -o md
      chromabuild import topol.top conf.gro --include /usr/share/gromacs/top -o md
    """
    from chromabuild.forcefield.import_files import import_system

    result = import_system(structure, coordinates, parameters, output, box, include, not no_box)
    outputs = result["outputs"]
    show(result, json, [*summary_lines({key: value for key, value in result.items() if key != "outputs"}), *outputs,
                        f"next: chromamd setup, with topologyfile = {outputs[0]} and shardfile = {outputs[1]}"])
