"""Small systems in four-point waters, made from those in TIP3P: same oxygens, hydrogens and charges of the model."""

import numpy as np

from chromabuild.base.settings import WaterName
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.water_models import WATER_MODELS
from support.molecular_systems import DATA, SOLVENT, MolecularSystem, fixture, judge_of, name_of_solvated


def solvated_in(water: WaterName, name: str | None, edge: float, equilibration_steps: int = 0,
                ions: int = 0) -> MolecularSystem:
    """As ``molecular_systems.solvated``; ``ions`` of the waters become sodium, and as many chloride."""
    key = name_of_solvated(name, edge, equilibration_steps)
    with np.load(DATA / "solvated.npz") as file:
        position = file[key] + round(500 * edge)
        counts = dict(zip(SOLVENT, file[key + " counts"].tolist(), strict=True))
    solute = fixture(name)[0] if name else None
    first = len(position) - 3 * counts["water"] - counts["sodium"] - counts["chloride"]
    molecules = position[first:first + 3 * counts["water"]].reshape(-1, 3, 3).astype(np.int32)
    spread = np.linspace(0, len(molecules) - 1, 2 * ions).astype(int)
    kept = np.delete(molecules, spread, axis=0)
    model = WATER_MODELS[water]
    parts = [position[:first], model.shaped(kept).reshape(-1, 3)]
    old = position[first + 3 * counts["water"]:]
    new = molecules[spread, 0]
    parts += [old[:counts["sodium"]], new[:ions], old[counts["sodium"]:], new[ions:]]
    counts = {"water": len(kept), "sodium": counts["sodium"] + ions, "chloride": counts["chloride"] + ions}
    return MolecularSystem(make_topology(solute, counts, water=water), np.concatenate(parts) / 1000, np.full(3, edge),
                           judge_of(solute, counts, edge, model.residue))


def placed(topology: Topology, position: np.ndarray) -> np.ndarray:
    """(n, 3) with the virtual sites where their parents put them."""
    position = position.copy()
    site = topology.term("virtual_site")
    atom, first, second, third = site["atoms"].T
    position[atom] = position[first] + site["w2"][:, None] * (position[second] - position[first]) + \
        site["w3"][:, None] * (position[third] - position[first])
    return position
