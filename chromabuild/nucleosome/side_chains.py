"""New side chains: rotamers on a given backbone, chosen together so that they fit their surroundings and each other."""

import json
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.files import template_path
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.nucleosome.peptide import Atoms, chi_torsions, set_torsions, side_chain_on, torsion

# Smallest comfortable distances between heavy atoms, angstrom: carbon or sulphur to anything, polar to polar.
CONTACT, POLAR_CONTACT = 3.3, 2.75
STIFFNESS = 12.0  # kT per angstrom^2 of overlap
SAME_TORSION = 1.5  # kT gained by a torsion kept from the side chain that is replaced
REACH = 9.0  # angstrom from CB: the longest side chain and a contact
LAST_ROUND = 50


@cache
def rotamers(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Torsions (s, chi) in degree and frequencies (s,) of the common rotamers of a residue (PDB name)."""
    table = json.loads(template_path("rotamers.json").read_text())
    if name in table["listed"]:
        rows = np.array(table["listed"][name], dtype=float)
        return rows[:, :-1], rows[:, -1] / rows[:, -1].sum()
    if name not in table["products"]:
        return np.zeros((1, 0)), np.ones(1)
    choices = [table[c] if isinstance(c, str) else c for c in table["products"][name]]
    combinations = list(product(*choices))
    values = np.array([[torsion for torsion, _ in c] for c in combinations], dtype=float)
    frequency = np.array([np.prod([weight for _, weight in c]) for c in combinations])
    return values, frequency / frequency.sum()


def is_polar(atom: str) -> bool:
    """Nitrogen and oxygen, by the first letter of the atom's name."""
    return atom[0] in "NO"


@cache
def _products() -> frozenset[str]:
    """Residues whose rotamers are combinations of torsions."""
    return frozenset(json.loads(template_path("rotamers.json").read_text())["products"])


@dataclass(frozen=True)
class Site:
    """One residue with the conformations that its side chain may take."""

    owner: int
    """Index of the residue."""
    names: tuple[str, ...]
    """Atoms beyond CB."""
    position: np.ndarray
    """(s, k, 3) angstrom."""
    energy: np.ndarray
    """(s,) kT: prior and kept torsions."""
    side_chain: dict[str, np.ndarray]
    """(s, 3) of every side-chain atom."""


def site(owner: int, name: str, backbone: Atoms, replaced: Atoms | None, replaced_name: str | None) -> Site:
    """The choices of residue ``name`` on a backbone; torsions of the side chain that it replaces are tried too."""
    ideal = {**backbone, **side_chain_on(name, backbone)}
    values, frequency = rotamers(name)
    energy = -np.log(frequency / frequency.max())
    if replaced and replaced_name and values.shape[1]:
        kept = []
        for _, (old_quad, _) in zip(chi_torsions(name), chi_torsions(replaced_name), strict=False):
            if not all(a in replaced for a in old_quad):
                break
            kept.append(float(torsion(*(replaced[a] for a in old_quad))))
        if kept:
            kept_values = values.copy()
            kept_values[:, :len(kept)] = kept
            _, first = np.unique(kept_values, axis=0, return_index=True)
            values = np.concatenate([values, kept_values[first]])
            energy = np.concatenate([energy, energy[first] - SAME_TORSION * len(kept)])
    placed = set_torsions(ideal, name, values)
    energy = energy + _own_overlap(name, placed)
    side = {a: x for a, x in placed.items() if a not in ("N", "CA", "C", "O", "OXT")}
    beyond = tuple(a for a in side if a != "CB")
    shape = (len(values), 0, 3)
    position = np.stack([side[a] for a in beyond], axis=1) if beyond else np.zeros(shape)
    return Site(owner, beyond, position, energy, side)


def _own_overlap(name: str, placed: Atoms) -> np.ndarray | float:
    """(s,) kT: overlaps with its own residue of what a modification adds, or of a side chain whose rotamers are all
    combinations of its torsions, folded back on itself among them; 0 for others, whose rotamers avoid them."""
    if name in modifications():
        new_atoms = tuple(modifications()[name].place)
    elif name in _products():
        new_atoms = tuple(a for a in placed if a not in ("N", "CA", "C", "O", "OXT", "CB"))
    else:
        return 0.0
    template = residue_library()[name]
    joined = np.eye(len(template.atoms), dtype=bool)
    joined[template.bonds[:, 0], template.bonds[:, 1]] = joined[template.bonds[:, 1], template.bonds[:, 0]] = True
    near = np.linalg.matrix_power(joined.astype(int), 3) > 0  # three bonds and fewer
    energy = 0.0
    for new in new_atoms:
        others = [a for a in placed if a in template.index and not near[template.index[new], template.index[a]]]
        for other in others:
            reach = POLAR_CONTACT if is_polar(new) and is_polar(other) else CONTACT
            apart = np.linalg.norm(placed[new] - placed[other], axis=-1)
            energy = energy + STIFFNESS * np.clip(reach - apart, 0.0, None) ** 2
    return energy


def overlap_energy(first: np.ndarray, first_polar: np.ndarray, second: np.ndarray, second_polar: np.ndarray
                   ) -> np.ndarray:
    """(s, t) kT between conformations (s, k, 3) and (t, m, 3)."""
    reach = np.where(first_polar[:, None] & second_polar[None], POLAR_CONTACT, CONTACT)
    distance = np.linalg.norm(first[:, None, :, None] - second[None, :, None], axis=-1)
    return STIFFNESS * np.sum(np.clip(reach - distance, 0.0, None) ** 2, axis=(2, 3))


def choose(sites: list[Site], fixed: np.ndarray, fixed_polar: np.ndarray, fixed_owner: np.ndarray) -> list[int]:
    """The conformation of every site.

    Args:
        sites: the residues to decide.
        fixed: (m, 3) everything that stays.
        fixed_polar: (m,) bool.
        fixed_owner: (m,) residue index, -1 for what belongs to no protein; a site does not see its own residue.

    Starts from the best of each alone and improves one after the other until nothing changes: energies fall at every
    step, so the end does not depend on chance.
    """
    tree = cKDTree(fixed)
    alone, polar = [], []
    for s in sites:
        polar.append(np.array([is_polar(a) for a in s.names], dtype=bool))
        if not s.names:
            alone.append(s.energy)
            continue
        centre = s.position.reshape(-1, 3).mean(axis=0)
        near = np.array(sorted(tree.query_ball_point(centre, REACH + 3.0)), dtype=int)
        near = near[fixed_owner[near] != s.owner]
        alone.append(s.energy + overlap_energy(s.position, polar[-1], fixed[near][None], fixed_polar[near])[:, 0])
    pairs: list[dict[int, np.ndarray]] = [{} for _ in sites]
    centres = np.array([s.side_chain["CB"][0] if "CB" in s.side_chain else np.full(3, np.inf) for s in sites])
    usable = np.flatnonzero([bool(s.names) for s in sites])
    if len(usable):
        for a, b in cKDTree(centres[usable]).query_pairs(2 * REACH):
            i, j = int(usable[a]), int(usable[b])
            table = overlap_energy(sites[i].position, polar[i], sites[j].position, polar[j])
            if table.any():
                pairs[i][j], pairs[j][i] = table, table.T
    choice = [int(np.argmin(energy)) for energy in alone]
    for _ in range(LAST_ROUND):
        before = list(choice)
        for i, energy in enumerate(alone):
            total = energy + sum((table[:, choice[j]] for j, table in pairs[i].items()), np.zeros(len(energy)))
            if total[choice[i]] > total.min() + 1e-9:
                choice[i] = int(np.argmin(total))
        if choice == before:
            break
    return choice
