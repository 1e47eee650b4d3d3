"""`chromabuild qm`: electronic structure."""

from pathlib import Path
from typing import Annotated

import typer

from chromabuild.cli.frame import JsonOption, app, command, show

quantum = typer.Typer(name="qm", no_args_is_help=True,
                      help="Compute electrons of small pieces with plane waves.\n\n\b\nExample:\n  "
                           "chromabuild qm run water.inp")
app.add_typer(quantum)


@quantum.command()
@command
def run(file: Annotated[Path, typer.Argument(show_default=False,
                                             help="Control file of chromaqm; `chromaqm help` prints one.")],
        ranks: Annotated[int, typer.Option("--ranks", "-n", min=1, help="MPI ranks; energies are the same.")] = 1,
        threads: Annotated[int, typer.Option("--threads", "-t", min=1, help="Threads of each rank.")] = 1,
        launcher: Annotated[str, typer.Option(
            help="What starts the ranks: mpirun, srun, flux or a command of your own.")] = "auto",
        json: JsonOption = False) -> None:
    """Minimise electronic states, and run Car-Parrinello dynamics where the file asks for it.

    Prints energies by term at every step. Exit code 10 where the minimum is not reached.

    \b
    Examples:
      chromabuild qm run water.inp
      chromabuild qm run water.inp --ranks 2
    """
    import sys

    from chromabuild.quantum import chromaqm

    result = chromaqm.run(file, ranks, threads, launcher, sys.stderr if json else None)
    if json:
        show(result, True, [])


@quantum.command()
@command
def check(
    system: Annotated[Path, typer.Argument(
        show_default=False, help="Output folder of a build with a topology, or a PDB or mmCIF file.")],
    contact: Annotated[tuple[str, str] | None, typer.Option(
        metavar="A B", show_default=False,
        help="Two selections of MDAnalysis; the nearest atoms of both, pulled apart and pushed together.")] = None,
    torsion: Annotated[tuple[str, str, str, str] | None, typer.Option(
        metavar="A B C D", show_default=False, help="Four selections of one atom each; D turns about B - C.")] = None,
    scan: Annotated[str | None, typer.Option(
        metavar="VALUES", show_default="9 distances around the one as built; every 30 degrees",
        help="1.8,2.0,2.4 or first:last:step; angstrom or degree.")] = None,
    radius: Annotated[float, typer.Option(min=0.0, max=8.0, help="Angstrom around the contact that are taken.")] = 3.0,
    functional: Annotated[str, typer.Option(help="PZ, PW92, PADE, BLYP or PBE.")] = "BLYP",
    cutoff: Annotated[float, typer.Option(min=1.0, help="Of plane waves, Ry.")] = 90.0,
    potential: Annotated[list[str] | None, typer.Option(
        "--upf", metavar="ELEMENT=FILE", show_default=False, help="UPF file in place of a built-in potential.")] = None,
    dispersion: Annotated[bool, typer.Option("--dispersion", help="Add D3(BJ); needs chromabuild[qm].")] = False,
    force_field: Annotated[str, typer.Option(help="Of a structure file; a build has its own.")] = "amber14",
    after: Annotated[str | None, typer.Option(
        metavar="PHASE", show_default="as built", help="Phase of simulate at whose end atoms are.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where page and points go.")] =
        Path("qm_check"),
    ranks: Annotated[int, typer.Option("--ranks", "-n", min=1, help="MPI ranks of chromaqm.")] = 1,
    threads: Annotated[int, typer.Option("--threads", "-t", min=1, help="Threads of each rank.")] = 1,
    json: JsonOption = False,
) -> None:
    """Compare the force field with plane waves at a contact or a torsion.

    Cuts a cluster around it, closes the cuts with hydrogens, computes electrons along a scan of rigid pieces, and
    writes check.html and check.json. Points that are done are kept: the same command goes on where it was stopped.

    \b
    Examples:
      chromabuild qm check results --contact "resname MG" "name OP1 OP2"
      chromabuild qm check dna.pdb --contact "name MG" "name OP1" --scan 1.8:3.0:0.2 --threads 4
    """
    from chromabuild.cli.progress import make_reporter
    from chromabuild.pipeline.quantum_check import check_contact, system_of
    from chromabuild.quantum.points import Method, upf_line

    lines = tuple(upf_line(k, text) for k, text in enumerate(potential or [], 1))
    method = Method(functional, cutoff, lines, ranks, threads, dispersion)
    with make_reporter().stage("Plane waves") as progress:
        matter = system_of(system, after, force_field)
        summary = check_contact(matter, output, method, contact or (), torsion or (), scan, radius, progress)
    unit = "angstrom" if summary["coordinate"] == "distance" else "degree"
    show(summary, json, [
        f"{summary['subject']}: {summary['atoms']} atoms, charge {summary['charge']:+d}",
        f"lowest energy at {summary['minimum_plane_waves']:.2f} {unit} by plane waves, "
        f"{summary['minimum_force_field']:.2f} by {summary['force_field_name']}; the curves deviate by "
        f"{summary['deviation']:.2f} kcal/mol", str(output / "check.html")])


@quantum.command("map")
@command
def write_map(
    file: Annotated[Path, typer.Argument(show_default=False, help="Map file to write, `mapfile` of chromaqm.")],
    states: Annotated[int, typer.Option(min=1, show_default=False, help="States, two electrons each.")],
    planes: Annotated[int, typer.Option(min=1, show_default=False,
                                        help="Grid points along z; chromaqm prints them.")],
    ranks: Annotated[int, typer.Option("--ranks", "-n", min=1, show_default=False, help="MPI ranks of the run.")],
    groups: Annotated[int, typer.Option(
        "--groups", "-g", min=1, help="Groups of ranks that states are dealt to, planes within each: 1 is the plane "
                                      "map, as many as ranks the state map, others hybrid maps.")] = 1,
    torus: Annotated[tuple[int, int, int] | None, typer.Option(
        metavar="X Y Z", show_default=False, help="Nodes of a torus: prisms and slabs on it, not groups.")] = None,
    objects: Annotated[bool, typer.Option(
        "--objects", help="All objects of `layer = OBJECTS`; by default in the order of indices.")] = False,
    g_sets: Annotated[int, typer.Option(min=0, help="Sets of waves of a state; 0 = planes/4, or prisms.")] = 0,
    rho_sets: Annotated[int, typer.Option(min=0, help="Sets of waves of the density; 0 = planes/2.")] = 0,
    s_grain: Annotated[int, typer.Option(min=0, help="States in a block; 0 = the largest divisor up to 32.")] = 0,
    ortho_grain: Annotated[int, typer.Option(min=0, help="States in a tile of matrices; 0 = those of a block.")] = 0,
    chunks: Annotated[int, typer.Option(min=1, help="Parts of a set for pair calculators.")] = 1,
    subplanes: Annotated[int, typer.Option(min=1, help="Parts of a plane of the density.")] = 1,
) -> None:
    """Write which rank has which plane of which pair of states, or which object.

    Runs on more ranks than planes need several groups. Energies are the same with any map.

    \b
    Examples:
      chromabuild qm map planes.map --states 128 --planes 100 --ranks 400 --groups 4
      chromabuild qm map planes.map --states 128 --planes 100 --ranks 64 --torus 4 4 4
      chromabuild qm map fine.map --objects --states 128 --planes 100 --ranks 64 --torus 4 4 4
    """
    from chromabuild.quantum import state_map

    if objects:
        grain = {"g_sets": g_sets, "rho_sets": rho_sets, "s_grain": s_grain, "ortho_grain": ortho_grain,
                 "chunks": chunks, "subplanes": subplanes}
        state_map.write_objects(file, states, planes, ranks, grain, groups if groups > 1 else 0, torus)
        return
    state_map.write_map(file, states, planes, ranks, groups, torus)
