"""Small solvated systems with known ingredients, shared by the engine's tests."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from openmm import app, unit

from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.residues import SITE, residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.shards.brick_file import BrickFile, packed

DATA = Path(__file__).parent / "data"
SOLVENT = {"water": "HOH", "sodium": "NA", "chloride": "CL"}
"""Residue names, in the order of the atoms."""


@dataclass
class MolecularSystem:
    """A periodic system in our order (solute, waters, sodium, chloride)."""

    topology: Topology
    position: np.ndarray
    """(n, 3) angstrom, multiples of 0.001 as bricks store them; molecules unbroken."""
    box: np.ndarray
    """(3,) edges or (3, 3) vectors, angstrom."""
    judge: app.Topology | None = None
    """The same atoms for OpenMM's ForceField, where a test asks for it."""


def make_solute(molecules: list[list[str]], position: np.ndarray | None = None) -> Solute:
    """A solute from residue names of the library, one list a molecule."""
    ids = {name: i for i, name in enumerate(residue_names())}
    lengths = [len(m) for m in molecules]
    library = residue_library()
    n_atoms = sum(len(library[name].atoms) for m in molecules for name in m)
    return Solute(
        position=np.zeros((n_atoms, 3), np.float32) if position is None else np.asarray(position, np.float32),
        residue_template=np.array([ids[name] for m in molecules for name in m], dtype=np.uint16),
        residue_number=np.concatenate([np.arange(1, n + 1) for n in lengths]).astype(np.int32),
        residue_segment=np.repeat(np.arange(len(molecules)), lengths).astype(np.uint16),
        segment_name=[f"S{i:03d}" for i in range(len(molecules))],
        segment_chain=[chr(65 + i) for i in range(len(molecules))],
        molecule_first_residue=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        molecule_name=[f"chain-{i}" for i in range(len(molecules))],
        molecule_nucleosome=np.full(len(molecules), -1, dtype=np.int32),
    )


def openmm_topology(solute: Solute | None, counts: dict[str, int], water: str = "HOH") -> app.Topology:
    """The atoms of solute, waters (a residue of the library) and ions as OpenMM sees them."""
    library = residue_library()
    topology = app.Topology()
    molecules, closed = [], ()
    if solute is not None:
        names = [residue_names()[k] for k in solute.residue_template]
        first = solute.molecule_first_residue
        molecules = [names[a:b] for a, b in zip(first[:-1], first[1:], strict=True)]
        closed = solute.circular
    for key, name in SOLVENT.items():
        molecules += [[water if key == "water" else name]] * counts.get(key, 0)
    for number, molecule in enumerate(molecules):
        chain, tail, head = topology.addChain(), None, None
        for name in molecule:
            template = library[name]
            residue = topology.addResidue(template.pdb_name if template.kind == "water" else name, chain)
            atoms = [topology.addAtom(atom, None if element == SITE else app.Element.getBySymbol(element.capitalize()),
                                      residue)
                     for atom, element in zip(template.atoms, template.elements, strict=True)]
            for i, j in template.bonds:
                topology.addBond(atoms[i], atoms[j])
            start = atoms[template.index.get("P" if template.kind == "nucleotide" else "N", 0)]
            if tail is not None:
                topology.addBond(tail, start)
            tail, head = atoms[template.index.get("C", template.index.get("O3'", 0))], head or start
        if number in closed:
            topology.addBond(tail, head)
    atoms = list(topology.atoms())
    for i, j in (solute.link_atoms() if solute is not None else []):
        topology.addBond(atoms[i], atoms[j])
    return topology


def fixture(name: str) -> tuple[Solute, np.ndarray]:
    """``peptide`` or ``duplex``, and (n, 3) angstrom around the origin."""
    content = json.loads((DATA / f"{name}.json").read_text())
    position = np.array(content["position"]).reshape(-1, 3)
    return make_solute(content["molecules"], position), position


IN_WATER = [(None, 25.0, 0), ("peptide", 30.0, 0), ("duplex", 36.0, 0), ("peptide", 26.0, 0), (None, 26.0, 2000),
            ("peptide", 27.0, 2000)]
"""What ``solvated`` knows: data/solvated.npz, made by data/make_solvated.py."""


def name_of_solvated(name: str | None, edge: float, equilibration_steps: int) -> str:
    """Key of a system in data/solvated.npz."""
    return f"{name or 'water'} {edge:g} {equilibration_steps}"


def solvated(name: str | None, edge: float, equilibration_steps: int = 0) -> MolecularSystem:
    """A cube of TIP3P water, with the fixture ``peptide`` or ``duplex`` in its middle and salt when there is a solute.

    OpenMM's pre-equilibrated water, minimised; then ``equilibration_steps`` of 2 fs at 300 K: one of ``IN_WATER``.
    """
    key = name_of_solvated(name, edge, equilibration_steps)
    with np.load(DATA / "solvated.npz") as file:
        position = (file[key] + round(500 * edge)) / 1000
        counts = dict(zip(SOLVENT, file[key + " counts"].tolist(), strict=True))
    solute = fixture(name)[0] if name else None
    return MolecularSystem(make_topology(solute, counts), position, np.full(3, edge), judge_of(solute, counts, edge))


def judge_of(solute: Solute | None, counts: dict[str, int], edge: float, water: str = "HOH") -> app.Topology:
    """The atoms of a cube as OpenMM sees them."""
    judge = openmm_topology(solute, counts, water)
    judge.setPeriodicBoxVectors(np.diag(np.full(3, edge)) / 10 * unit.nanometer)
    return judge


def write_bricks(folder: Path, position: np.ndarray, box: np.ndarray, topology: Topology,
                 grid: tuple[int, int, int] = (2, 1, 1)) -> Path:
    """Bricks of docs/reference/file-formats.md, written here on our own so that reader and writer check each other."""
    folder.mkdir(parents=True, exist_ok=True)
    residue = np.concatenate([
        (base + np.arange(count)[:, None] * len(template.residue_name) + template.atom_residue).ravel()
        for template, count, base in _runs(topology)
    ])
    reference = np.concatenate([[0], np.flatnonzero(np.diff(residue)) + 1])  # the first atom of a residue is heavy
    vectors = np.diag(box) if box.ndim == 1 else box
    share = position[reference] @ np.linalg.inv(vectors)
    shift = -np.floor(share) @ vectors
    box = np.diag(vectors)
    size = box / np.array(grid)
    cell = np.minimum(((share - np.floor(share)) * grid).astype(int), np.array(grid) - 1)
    brick = (cell[:, 0] + grid[0] * (cell[:, 1] + grid[1] * cell[:, 2]))[residue]
    wrapped = np.round((position + shift[residue]) * 1000).astype("<i4")
    tilt = vectors[[1, 2, 2], [0, 0, 1]]
    edges = [*box, *tilt] if tilt.any() else box
    lines = [f"chromabuild-bricks {2 if tilt.any() else 1}", "box " + " ".join(f"{x:.6f}" for x in edges),
             "grid " + " ".join(map(str, grid)), f"atoms {len(position)}"]
    for b in range(int(np.prod(grid))):
        index = np.flatnonzero(brick == b)
        lower = np.array([b % grid[0], b // grid[0] % grid[1], b // (grid[0] * grid[1])]) * size
        name = f"brick_{b:05d}.cbb"
        content = BrickFile(box, lower, lower + size, index, wrapped[index])
        (folder / name).write_bytes(packed(content))
        bounds = " ".join(f"{x:.6f}" for x in (*lower, *(lower + size)))
        lines.append(f"{name} {len(index)} {bounds}")
    path = folder / "bricks.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def _runs(topology: Topology):
    base = 0
    for t, count in zip(topology.run_template, topology.run_count, strict=True):
        yield topology.templates[t], int(count), base
        base += int(count) * len(topology.templates[t].residue_name)
