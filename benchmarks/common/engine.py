"""Systems of waters and of atoms for chromamd, and its runs."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.shards.brick_file import BrickFile, packed
from chromabuild.simulate import chromamd
from chromabuild.solvate.water import water_tile
from common.timing import Usage, measured

COULOMB = 332.0637133
"""kcal angstrom/mol/e^2, CODATA."""
RMIN_TO_SIGMA = 2 / 2 ** (1 / 6)
HYDROGEN_LJ = (0.2245 * RMIN_TO_SIGMA, 0.046)
"""sigma (angstrom), epsilon (kcal/mol) of TIP3P's hydrogens in the CHARMM force field; none in AMBER."""
PARTS = ("real space", "reciprocal", "bonded", "pair list", "communication", "constraints", "integration", "total")
"""Rows of the timing table at the end of a log."""
O_H, ANGLE = 0.9572, np.radians(104.52)
CELL_WATERS, CELL_EDGE = 1250, 33.45


def water_topology(molecules: int, hydrogen_lj: bool = False) -> Topology:
    """Rigid TIP3P."""
    h_h = 2 * O_H * np.sin(ANGLE / 2)
    water = MoleculeTemplate(
        "WAT", rigid_water=True, lj_type=[0, 1, 1], charge=[-0.834, 0.417, 0.417], mass=[15.9994, 1.008, 1.008],
        atom_name=[b"O", b"H1", b"H2"], atom_residue=[0, 0, 0], residue_name=[b"HOH"], residue_number=[1],
        residue_segid=[b"W"], bond_atoms=[[0, 1], [0, 2]], bond_k=[553.0, 553.0], bond_r0=[O_H, O_H],
        angle_atoms=[[1, 0, 2]], angle_k=[100.0], angle_theta0=[104.52], exclusion=[[0, 1], [0, 2], [1, 2]],
        constraint_atoms=[[0, 1], [0, 2], [1, 2]], constraint_distance=[O_H, O_H, h_h])
    sigma, epsilon = HYDROGEN_LJ if hydrogen_lj else (1.0, 0.0)
    return _topology(water, molecules, [1.7682 * RMIN_TO_SIGMA, sigma], [0.1521, epsilon])


def atom_topology(atoms: int, mass: float, sigma: float = 1.0, epsilon: float = 0.0) -> Topology:
    """Uncharged atoms of one kind."""
    atom = MoleculeTemplate("ATM", lj_type=[0], charge=[0.0], mass=[mass], atom_name=[b"A"], atom_residue=[0],
                            residue_name=[b"ATM"], residue_number=[1], residue_segid=[b"A"])
    return _topology(atom, atoms, [sigma], [epsilon])


def _topology(template: MoleculeTemplate, count: int, sigma: list[float], epsilon: list[float]) -> Topology:
    names = np.array([f"T{k}" for k in range(len(sigma))], "S8")
    return Topology([template], np.array([0], np.int32), np.array([count]), names, np.array(sigma), np.array(epsilon),
                    COULOMB, "benchmark")


def write_system(folder: Path, topology: Topology, position: np.ndarray, box: np.ndarray) -> None:
    """``topology.h5`` and one brick with all atoms; ``position``: (n, 3) angstrom, molecules whole."""
    folder.mkdir(parents=True, exist_ok=True)
    topology.write(folder / "topology.h5")
    n, box = len(position), np.asarray(box, float)
    thousandths = np.round(1000 * position).astype(np.int32)
    (folder / "brick_00000.cbb").write_bytes(packed(BrickFile(box, np.zeros(3), box, np.arange(n), thousandths)))
    edges = " ".join(map(str, box))
    (folder / "bricks.txt").write_text(
        f"chromabuild-bricks 1\nbox {edges}\ngrid 1 1 1\natoms {n}\nbrick_00000.cbb {n} 0 0 0 {edges}\n")


def tiled_water(folder: Path, tiles: int) -> tuple[np.ndarray, np.ndarray]:
    """The bundled water tile side by side, written to ``folder``; positions (n, 3) and box (3,), angstrom."""
    tile = water_tile()
    shift = np.stack(np.meshgrid(*[np.arange(tiles)] * 3, indexing="ij"), -1).reshape(-1, 1, 1, 3) * tile.edge
    molecule = (tile.position.reshape(1, -1, 3, 3) + shift).reshape(-1, 3, 3) / 1000
    box = np.full(3, tiles * tile.edge / 1000)
    molecule -= box * np.floor(molecule[:, :1] / box)  # a brick owns a water by its oxygen
    position = molecule.reshape(-1, 3)
    write_system(folder, water_topology(len(molecule)), position, box)
    return position, box


def turned_waters(oxygen: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Positions (3 n, 3), angstrom, of waters with these oxygens (n, 3), turned at random."""
    shape = O_H * np.array([[0, 0, 0], [1, 0, 0], [np.cos(ANGLE), np.sin(ANGLE), 0]])
    turns = np.linalg.qr(random.normal(size=(len(oxygen), 3, 3)))[0]
    return (oxygen[:, None] + shape @ turns).reshape(-1, 3)


def equilibrated_cell(folder: Path) -> np.ndarray:
    """1,250 waters (CHARMM's TIP3P) in a cube of 33.45 angstrom after 5 ps at 300 K: positions (3750, 3), angstrom.

    They begin on a lattice, turned at random; kept in ``folder`` for the next call.
    """
    kept = folder / "water_cell.npy"
    if kept.exists():
        return np.load(kept)
    random = np.random.default_rng(7)
    side = 11
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    oxygen = (lattice[random.permutation(len(lattice))[:CELL_WATERS]] + 0.5) * (CELL_EDGE / side)
    position = turned_waters(oxygen, random)
    work = folder / "water_cell"
    write_system(work, water_topology(CELL_WATERS, True), position, np.full(3, CELL_EDGE))
    set_up(work, work / "built().rst")
    short = {"cutoffdist": 9, "switchdist": 9, "pairlistdist": 10.5}
    run(work, work / "built().rst", {"ENERGY": short, "MINIMIZE": {"method": "SD", "nsteps": 300}}, work / "min().rst")
    run(work, work / "min().rst", {
        "ENERGY": short, "DYNAMICS": {"nsteps": 5000, "timestep": 0.001}, "CONSTRAINTS": {"rigid_bond": True},
        "ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature": 300, "tau_t": 0.1}}, work / "end().rst")
    # Molecules whole, with their oxygens in the cell.
    molecule = restart_positions(work / "end().rst").reshape(-1, 3, 3)
    molecule -= CELL_EDGE * np.round((molecule - molecule[:, :1]) / CELL_EDGE)
    position = (molecule - CELL_EDGE * np.floor(molecule[:, :1] / CELL_EDGE)).reshape(-1, 3)
    np.save(kept, position)
    return position


def replicated(cell: np.ndarray, counts: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The cell side by side: positions (n, 3) and box (3,), angstrom."""
    shift = CELL_EDGE * np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, 1, 3)
    return (cell[None] + shift).reshape(-1, 3), CELL_EDGE * np.array(counts, float)


def smooth_size(length: float, spacing: float = 1.2) -> int:
    """Least even number of grid points at most ``spacing`` apart that has no prime factors but 2, 3 and 5."""
    n = int(np.ceil(length / spacing - 1e-9))
    while True:
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1 and n % 2 == 0:
            return n
        n += 1


def set_up(folder: Path, target: Path, domains: tuple[int, int, int] = (1, 1, 1), shards: Path | None = None,
           energy: dict[str, object] | None = None) -> Usage:
    """``chromamd setup`` of ``topology.h5`` and the bricks beside it (or of ``shards``) to restart files."""
    control = folder / "setup.inp"
    chromamd.write_control(control, {
        "INPUT": {"topologyfile": folder / "topology.h5", "shardfile": shards or folder / "bricks.txt"},
        "OUTPUT": {"rstfile": target}, "ENERGY": energy or {},
        "BOUNDARY": dict(zip(("domain_x", "domain_y", "domain_z"), domains, strict=True))})
    command = [*chromamd.launch_command(int(np.prod(domains))), "setup", control]
    return measured(command, folder / "setup.out")


def run(folder: Path, start: Path, sections: dict[str, dict[str, object]], end: Path | None = None, ranks: int = 1,
        threads: int = 1, precision: chromamd.Precision = "mixed", name: str = "run") -> Usage:
    """``chromamd run`` from restart files; its log is ``folder/NAME.out``."""
    control = folder / f"{name}.inp"
    given = dict(sections)
    inputs, outputs = given.pop("INPUT", {}), given.pop("OUTPUT", {})
    chromamd.write_control(control, {
        "INPUT": {"topologyfile": folder / "topology.h5", "rstfile": start, **inputs},
        "OUTPUT": {"rstfile": end, **outputs}, **given})
    environment = {"OMPI_MCA_mpi_yield_when_idle": "1"} if ranks > 2 else {}
    return measured([*chromamd.launch_command(ranks, precision), "run", control], folder / f"{name}.out", threads,
                    environment)


def parts_of(log: str, parts: Iterable[str] = PARTS) -> dict[str, float]:
    """Seconds of each part of a run."""
    return {part: float(re.search(rf"^ *{part} +([0-9.]+)", log, re.MULTILINE)[1]) for part in parts}


HEADER = 8 + 16 * 8 + 48 * 8
"""Bytes before the ids of a restart file (layout: fortran, restart.f90)."""


def restart_positions(pattern: Path) -> np.ndarray:
    """Positions (n, 3), angstrom, in global order, of the restart file of the only domain."""
    data = Path(str(pattern).replace("()", "0")).read_bytes()
    n = int(np.frombuffer(data, "<i8", 16, 8)[6])
    order = np.argsort(np.frombuffer(data, "<i8", n, HEADER))
    return np.frombuffer(data, "<f8", 3 * n, HEADER + 8 * n).reshape(n, 3)[order]


def restart_velocities(pattern: Path) -> np.ndarray:
    """Velocities (n, 3), angstrom/ps, likewise."""
    data = Path(str(pattern).replace("()", "0")).read_bytes()
    n = int(np.frombuffer(data, "<i8", 16, 8)[6])
    order = np.argsort(np.frombuffer(data, "<i8", n, HEADER))
    return np.frombuffer(data, "<f8", 3 * n, HEADER + 32 * n).reshape(n, 3)[order]
