"""Stability of liquid water in Car-Parrinello dynamics of chromaqm, and its radial distributions.

Molecules in a cube at 1 g/cm^3, equilibrated as TIP3P by OpenMM at 300 K, then 70 Ry, BLYP, the potentials of Quantum
ESPRESSO (--pseudo), steps of 5 hbar/hartree from the minimum with a thermostat of the ions. The run takes some 10
minutes of a core; in --folder it is kept, goes on where it was stopped, and is read where it is done. The distances of
the start are those of TIP3P, and a run as short as this one does not forget them; what it shows is that bonds stretch
to those of BLYP and that nothing runs away. States begin at rest under moving ions, so the conserved quantity has a
transient of some 1e-5 Ha a molecule within the first two femtoseconds.
"""

import re
from pathlib import Path

import numpy as np
from common.command import Benchmark
from planewave import UPF, waters

from chromabuild.quantum.chromaqm import run

RUNS = Path(__file__).resolve().parents[1] / "build"
SECTIONS = """[INPUT]
atomfile = {folder}/water.xyz
{files}{restart}[OUTPUT]
xyzfile = {folder}/path.xyz
restartfile = {folder}/water.rst
restart_period = 10
[SYSTEM]
box = {edge:.6f}
[ELECTRONS]
cutoff = 70
[MINIMIZE]
tolerance = 1e-8
[DYNAMICS]
nsteps = {steps}
timestep = 5
temperature = 300
thermostat = NOSE_HOOVER
"""


def equilibrated(n: int) -> tuple[str, float]:
    """Waters at 300 K after 20 ps, lines of XYZ, and the edge of their cube (angstrom)."""
    import openmm
    from openmm import app, unit

    text, edge = waters(n)
    lines = [line.split() for line in text.splitlines()]
    topology = app.Topology()
    chain = topology.addChain()
    for _ in range(n):
        residue = topology.addResidue("HOH", chain)
        oxygen, *hydrogens = (topology.addAtom(name, app.Element.getBySymbol(name[0]), residue)
                              for name in ("O", "H1", "H2"))
        for hydrogen in hydrogens:
            topology.addBond(oxygen, hydrogen)
    topology.setPeriodicBoxVectors(np.eye(3) * edge / 10 * unit.nanometer)
    system = app.ForceField("amber14/tip3p.xml").createSystem(
        topology, nonbondedMethod=app.PME, nonbondedCutoff=0.049 * edge * unit.nanometer)
    integrator = openmm.LangevinMiddleIntegrator(300, 2, 0.001)
    integrator.setRandomNumberSeed(1)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("CPU"),
                             {"Threads": "1", "DeterministicForces": "true"})
    context.setPositions(np.array([line[1:] for line in lines], float) / 10)
    openmm.LocalEnergyMinimizer.minimize(context)
    context.setVelocitiesToTemperature(300, 1)
    integrator.step(20000)
    place = context.getState(getPositions=True).getPositions(asNumpy=True).value_in_unit(unit.angstrom)
    return "".join("{} {:.6f} {:.6f} {:.6f}\n".format(line[0], *xyz)
                   for line, xyz in zip(lines, place, strict=True)), edge


def dynamics(folder: Path, n: int, steps: int, pseudo: Path) -> None:
    """Do what is left of so many steps; logs one after another in run.log."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "water.xyz").exists():
        text, edge = equilibrated(n)
        (folder / "water.xyz").write_text(f"{3 * n}\nedge {edge:.6f}\n{text}")
    edge = float((folder / "water.xyz").read_text().split()[2])
    done = int(rows(folder)[-1, 0]) if (folder / "water.rst").exists() else 0
    if done >= steps:
        return
    files = "".join(f"upf{k} = {element} {pseudo / file}\n" for k, (element, file) in enumerate(UPF.items(), 1))
    restart = f"restartfile = {folder}/water.rst\n" if done else ""
    (folder / "run.inp").write_text(SECTIONS.format(folder=folder, files=files, restart=restart, edge=edge,
                                                    steps=steps - done))
    with open(folder / "run.log", "a", encoding="utf-8") as log:
        run(folder / "run.inp", output=log)


def rows(folder: Path) -> np.ndarray:
    """Lines of dynamics: step, time (fs), potential, kinetic of ions and states, conserved (Ha), K; the last of each
    step."""
    text = (folder / "run.log").read_text()
    found = re.findall(r"^ *(\d+(?: +-?\d+\.\d+){6})$", text, re.MULTILINE)
    last = {row[0]: row for row in (tuple(map(float, line.split())) for line in found)}
    return np.array([last[step] for step in sorted(last)])


def frames(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Elements (n,) and positions (frames, n, 3) in angstrom."""
    lines = (folder / "path.xyz").read_text().splitlines()
    n = int(lines[0])
    block = np.array([line.split() for k, line in enumerate(lines) if k % (n + 2) > 1])
    return block[:n, 0], block[:, 1:].astype(float).reshape(-1, n, 3)


def radial(first: np.ndarray, second: np.ndarray, edge: float, edges: np.ndarray) -> np.ndarray:
    """g(r) between two kinds of atoms, (frames, n, 3) each."""
    difference = first[:, :, None] - second[:, None, :]
    distance = np.sqrt(((difference - edge * np.round(difference / edge))**2).sum(axis=-1))
    count = np.histogram(distance[distance > 0], edges)[0]
    same = first.shape == second.shape
    pairs = len(first) * first.shape[1] * (second.shape[1] - same)
    return count * edge**3 / (pairs * 4 / 3 * np.pi * np.diff(edges**3))


def main() -> None:
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--pseudo", type=Path, default=Path("/usr/share/espresso/pseudo"))
    benchmark.parser.add_argument("--waters", type=int, default=32)
    benchmark.parser.add_argument("--steps", type=int, default=200)
    benchmark.parser.add_argument("--folder", type=Path, default=RUNS / "planewave_liquid")
    given = benchmark.start(quick={"waters": 2, "steps": 4, "folder": RUNS / "planewave_liquid_quick"})
    folder = given.folder.resolve()
    dynamics(folder, given.waters, given.steps, given.pseudo)
    edge = float((folder / "water.xyz").read_text().split()[2])
    log = rows(folder)
    table = benchmark.table("stability", "Car-Parrinello dynamics of liquid water with thermostat (Ha, K)", waters="d",
                            steps="d", time_fs=".1f", range_of_conserved=".1e", range_after_2_fs=".1e",
                            range_of_potential=".1e", states_at_most=".1e", mean_temperature=".0f")
    table.row(given.waters, int(log[-1, 0]), float(log[-1, 1]), float(np.ptp(log[:, 5])),
              float(np.ptp(log[log[:, 1] > min(2.0, 0.5 * log[-1, 1]), 5])), float(np.ptp(log[:, 2])),
              float(log[:, 4].max()), float(log[:, 6].mean()))
    element, position = frames(folder)
    later = position[len(position) // 2:]
    oxygen, hydrogen = later[:, element == "O"], later[:, element == "H"]
    bins = np.arange(0.8, edge / 2, 0.05)
    table = benchmark.table("radial", "Radial distributions of the second half of the run", r=".3f", OO=".3f", OH=".3f",
                            OO_at_start=".3f")
    curves = (radial(oxygen, oxygen, edge, bins), radial(oxygen, hydrogen, edge, bins),
              radial(position[:1, element == "O"], position[:1, element == "O"], edge, bins))
    for k, middle in enumerate(0.5 * (bins[1:] + bins[:-1])):
        table.row(float(middle), *(float(curve[k]) for curve in curves))
    benchmark.finish()


if __name__ == "__main__":
    main()
