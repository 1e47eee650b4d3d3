"""Small systems for the engine's tests: topology and brick files, control files, runs, results."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

import chromabuild
from chromabuild.shards.brick_file import BrickFile, packed
from chromabuild.solvate.water import water_tile

BIN = Path(chromabuild.__file__).parent / "_bin"
COULOMB = 332.0637128  # kcal angstrom / mol / e^2


@dataclass
class Molecule:
    """A molecule template as in docs/reference/file-formats.md; terms are lists of (atoms, parameter, ...)."""

    name: str
    mass: list[float]
    charge: list[float]
    lj_type: list[int]
    bonds: list[tuple] = field(default_factory=list)  # (i, j), k, r0
    angles: list[tuple] = field(default_factory=list)  # (i, j, k), k, theta0 in degree
    urey_bradley: list[tuple] = field(default_factory=list)  # (i, j), k, r0
    dihedrals: list[tuple] = field(default_factory=list)  # (i, j, k, l), k, n, phase in degree
    impropers: list[tuple] = field(default_factory=list)  # (i, j, k, l), k, psi0 in degree
    cmap: list[tuple] = field(default_factory=list)  # (i, j, k, l, m), map
    pair14: list[tuple] = field(default_factory=list)  # (i, j), charge product, sigma, epsilon
    exclusions: list[tuple] = field(default_factory=list)  # (i, j)
    constraints: list[tuple] = field(default_factory=list)  # (i, j), distance
    rigid_water: bool = False

    @property
    def n(self) -> int:
        return len(self.mass)


def water() -> Molecule:
    """TIP3P with the harmonic terms that flexible runs use."""
    r_oh, angle = 0.9572, 104.52
    r_hh = 2 * r_oh * np.sin(np.radians(angle / 2))
    return Molecule(
        "WAT", [15.9994, 1.008, 1.008], [-0.834, 0.417, 0.417], [0, 1, 1],
        bonds=[((0, 1), 553.0, r_oh), ((0, 2), 553.0, r_oh)], angles=[((1, 0, 2), 100.0, angle)],
        exclusions=[(0, 1), (0, 2), (1, 2)],
        constraints=[((0, 1), r_oh), ((0, 2), r_oh), ((1, 2), r_hh)], rigid_water=True)


def ion() -> Molecule:
    return Molecule("ION", [22.99], [1.0], [2])


def _roomiest(here: np.ndarray, distance: float, others: list[np.ndarray], trials: np.ndarray) -> np.ndarray:
    """The unit vector among the trials that leads farthest from the other atoms."""
    trials = trials / np.linalg.norm(trials, axis=1)[:, None]
    apart = np.linalg.norm(here + distance * trials[:, None, :] - np.array(others)[None], axis=2).min(axis=1)
    return trials[np.argmax(apart)]


def chain(n_units: int, rng: np.random.Generator, charged: bool = True) -> tuple[Molecule, np.ndarray]:
    """A made-up polymer of heavy atoms, each with 0 to 3 hydrogens, with every kind of term; and positions (n, 3)."""
    heavy: list[int] = []
    mass: list[float] = []
    position: list[np.ndarray] = []
    bonds: list[tuple[int, int]] = []
    constraints = []
    direction = np.array([1.0, 0.0, 0.0])
    here = np.zeros(3)
    for unit in range(n_units):
        heavy.append(len(mass))
        mass.append(12.011)
        position.append(here.copy())
        if unit:
            bonds.append((heavy[-2], heavy[-1]))
        for _ in range(rng.integers(0, 4) if unit % 5 else 2):
            bonds.append((heavy[-1], len(mass)))
            distance = 1.0 + 0.1 * rng.random()
            constraints.append(((heavy[-1], len(mass)), distance))
            mass.append(1.008)
            position.append(here + distance * _roomiest(here, distance, position, rng.normal(size=(60, 3))))
        here = here + 1.5 * _roomiest(here, 3.0, position, direction + 0.5 * rng.normal(size=(60, 3)))
    n = len(mass)
    neighbour: list[set[int]] = [set() for _ in range(n)]
    for i, j in bonds:
        neighbour[i].add(j)
        neighbour[j].add(i)
    angles = [(i, j, k) for j in range(n) for i in neighbour[j] for k in neighbour[j] if i < k]
    torsions = [(i, j, k, m) for j, k in bonds for i in neighbour[j] - {k} for m in neighbour[k] - {j} if i != m]
    coupled = [(*t, u[3]) for t in torsions for u in torsions if t[1:] == u[:3]]
    close = {tuple(sorted(b)) for b in bonds} | {(i, k) for i, _, k in angles}
    pairs14 = sorted({tuple(sorted((t[0], t[3]))) for t in torsions} - close)
    charge = rng.normal(scale=0.3, size=n) if charged else np.zeros(n)
    charge = np.round(charge - charge.mean(), 6)
    molecule = Molecule(
        "CHN", mass, list(charge), [3 if m > 2 else 4 for m in mass],
        bonds=[(b, 300 + 100 * rng.random(), dict(constraints).get(b, 1.5)) for b in bonds],
        angles=[(a, 30 + 30 * rng.random(), 100 + 20 * rng.random()) for a in angles],
        urey_bradley=[((a[0], a[2]), 10 + 10 * rng.random(), 2.3) for a in angles[::3]],
        dihedrals=[(t, rng.normal(), int(rng.integers(1, 5)), float(rng.choice([0, 180, 35]))) for t in torsions],
        impropers=[(t, 5 + 5 * rng.random(), float(rng.uniform(-180, 180))) for t in torsions[::4]],
        cmap=[(atoms, n % 2) for n, atoms in enumerate(coupled[::3])],
        pair14=[(p, charge[p[0]] * charge[p[1]] / 1.2, 2.5 + rng.random(), 0.1 * rng.random()) for p in pairs14],
        exclusions=sorted(close | set(pairs14)), constraints=constraints)
    return molecule, np.array(position)


LJ_SIGMA = np.array([3.15061, 1.0, 2.5, 3.2, 1.5])
LJ_EPSILON = np.array([0.1521, 0.0, 0.05, 0.08, 0.015])


CMAP = np.random.default_rng(8).normal(size=(2, 12, 12))
"""Two correction maps, kcal/mol: phi = 30 i and psi = 30 j degrees."""


def write_topology(path: Path, runs: list[tuple[Molecule, int]], lj: bool = True) -> None:
    """Write molecules in global order as a Topology file; `lj=False` switches Lennard-Jones off."""
    templates: list[Molecule] = []
    for molecule, _ in runs:
        if not any(molecule is t for t in templates):
            templates.append(molecule)
    epsilon = LJ_EPSILON if lj else 0 * LJ_EPSILON
    sigma = 0.5 * (LJ_SIGMA[:, None] + LJ_SIGMA[None, :])
    depth = np.sqrt(epsilon[:, None] * epsilon[None, :])
    with h5py.File(path, "w") as f:
        f.attrs.update(format="chromabuild-topology", version=2, provenance="{}", coulomb_constant=COULOMB,
                       force_field="test", combination_rule="lorentz-berthelot")
        f["lj/name"] = np.array([b"OW", b"HW", b"NA", b"C", b"H"], "S8")
        f["lj/sigma"], f["lj/epsilon"] = LJ_SIGMA, epsilon
        f["lj/c12"], f["lj/c6"] = 4 * depth * sigma**12, 4 * depth * sigma**6
        f["cmap/energy"] = CMAP.reshape(2, -1)
        f["molecule/template"] = np.array([next(i for i, t in enumerate(templates) if t is m) for m, _ in runs], "i4")
        f["molecule/count"] = np.array([c for _, c in runs], "i8")
        for index, t in enumerate(templates):
            g = f.create_group(f"template/{index:04d}")
            g.attrs["name"], g.attrs["rigid_water"] = t.name, int(t.rigid_water)
            g["lj_type"], g["charge"], g["mass"] = np.array(t.lj_type, "i4"), np.array(t.charge), np.array(t.mass)
            g["atom_name"], g["atom_residue"] = np.full(t.n, b"X", "S4"), np.zeros(t.n, "i4")
            g["residue_name"], g["residue_number"] = np.array([t.name.encode()], "S4"), np.array([1], "i4")
            g["residue_segid"] = np.array([b"A"], "S4")
            for kind, terms, names, width in [
                    ("bond", t.bonds, ("k", "r0"), 2), ("angle", t.angles, ("k", "theta0"), 3),
                    ("urey_bradley", t.urey_bradley, ("k", "r0"), 2), ("dihedral", t.dihedrals, ("k", "n", "phase"), 4),
                    ("improper", t.impropers, ("k", "psi0"), 4),
                    ("cmap", t.cmap, ("map",), 5),
                    ("pair14", t.pair14, ("charge_product", "sigma", "epsilon"), 2),
                    ("constraint", t.constraints, ("distance",), 2)]:
                g[f"{kind}/atoms"] = np.array([x[0] for x in terms], "i4").reshape(-1, width)
                for c, name in enumerate(names):
                    g[f"{kind}/{name}"] = np.array([x[c + 1] for x in terms], "i4" if name in ("n", "map") else "f8")
            g["exclusion"] = np.array(t.exclusions, "i4").reshape(-1, 2)


def write_water(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """t.h5, bricks and bricks.txt of the bundled tile of water. Gives positions (n, 3) and box (3,), angstrom."""
    tile = water_tile()
    position, box = tile.position.reshape(-1, 3) / 1000.0, np.full(3, tile.edge / 1000.0)
    runs = [(water(), len(position) // 3)]
    write_topology(folder / "t.h5", runs)
    write_bricks(folder, runs, position, box)
    return position, box


def write_bricks(folder: Path, runs: list[tuple[Molecule, int]], position: np.ndarray, box: np.ndarray,
                 grid: tuple[int, int, int] = (2, 1, 2)) -> Path:
    """Write bricks and bricks.txt; atoms of a constraint group stay with its first atom. Positions (n, 3): anywhere."""
    home = np.arange(len(position))
    start = 0
    for molecule, count in runs:
        for _ in range(count):
            for (i, j), _ in molecule.constraints:
                first = min(i, j)
                home[start + max(i, j)] = home[start + first]
            start += molecule.n
    brick_size = box / np.array(grid)
    shift = -box * np.floor(position[home] / box)
    cell = np.minimum(((position[home] + shift) / brick_size).astype(int), np.array(grid) - 1)
    index = cell[:, 0] + grid[0] * (cell[:, 1] + grid[1] * cell[:, 2])
    text = ["chromabuild-bricks 1", "box " + " ".join(map(str, box)), "grid " + " ".join(map(str, grid)),
            f"atoms {len(position)}"]
    for b in range(int(np.prod(grid))):
        ids = np.flatnonzero(index == b).astype("<i8")
        corner = np.array([b % grid[0], b // grid[0] % grid[1], b // (grid[0] * grid[1])])
        lower, upper = corner * brick_size, (corner + 1) * brick_size
        name = f"brick_{b:05d}.cbb"
        thousandths = np.round((position + shift)[ids] * 1000).astype("<i4")
        (folder / name).write_bytes(packed(BrickFile(box, lower, upper, ids, thousandths)))
        text.append(f"{name} {len(ids)} " + " ".join(map(str, [*lower, *upper])))
    path = folder / "bricks.txt"
    path.write_text("\n".join(text) + "\n")
    return path


def control(path: Path, **sections: dict) -> Path:
    """Write a control file."""
    lines = []
    for section, keys in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {value}" for key, value in keys.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(command: str, file: Path | str, ranks: int = 1, program: str = "chromamd-double",
        threads: int = 1, folder: Path | None = None, timeout: float = 600) -> subprocess.CompletedProcess:
    """Run one command of the engine, on several ranks through mpirun."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMPI_MCA_rmaps_base_oversubscribe="1",
                       OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                       OMPI_MCA_hwloc_base_binding_policy="none")
    call = [str(BIN / program), command, str(file)]
    if ranks > 1:
        call = [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *call]
    return subprocess.run(call, env=environment, cwd=folder, capture_output=True, text=True, timeout=timeout)


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence that a failed command of the engine prints."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("chromamd: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def read_energies(text: str) -> dict[str, float]:
    """The `KEY = value` lines of the energy command."""
    return {key.strip(): float(value.split()[0]) for key, value in
            (line.split("=") for line in text.splitlines() if "=" in line)}


def read_forces(path: Path) -> np.ndarray:
    """The forcefile: (n, 3) kcal/mol/angstrom."""
    data = path.read_bytes()
    assert data[:8] == b"CMDFORC1"
    n = int(np.frombuffer(data, "<i8", 1, 8)[0])
    return np.frombuffer(data, "<f8", 3 * n, 16).reshape(n, 3)


@dataclass
class Restart:
    """All ranks' restart files in global order."""

    step: int
    time: float
    box: np.ndarray
    position: np.ndarray
    velocity: np.ndarray


RESTART_HEADER = 8 + 16 * 8 + 48 * 8
"""Bytes before the ids of a restart file: magic, header, state of the ensemble."""


def read_restarts(pattern: str, ranks: int) -> Restart:
    """Read `pattern` with () replaced by each rank."""
    ids, positions, velocities = [], [], []
    for rank in range(ranks):
        data = Path(pattern.replace("()", str(rank))).read_bytes()
        header = np.frombuffer(data, "<i8", 16, 8)
        n = int(header[6])
        ids.append(np.frombuffer(data, "<i8", n, RESTART_HEADER))
        positions.append(np.frombuffer(data, "<f8", 3 * n, RESTART_HEADER + 8 * n).reshape(n, 3))
        velocities.append(np.frombuffer(data, "<f8", 3 * n, RESTART_HEADER + 32 * n).reshape(n, 3))
    order = np.argsort(np.concatenate(ids))
    reals = header[10:14].view("<f8")
    return Restart(int(header[8]), reals[0], reals[1:], np.concatenate(positions)[order],
                   np.concatenate(velocities)[order])


def read_table(text: str) -> dict[str, np.ndarray]:
    """The INFO: table of a log."""
    rows = [line[5:].split() for line in text.splitlines() if line.startswith("INFO:")]
    return {name: np.array([float(r[i]) for r in rows[1:]]) for i, name in enumerate(rows[0])}
