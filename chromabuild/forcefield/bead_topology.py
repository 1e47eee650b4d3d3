"""The topology of a solute as beads: 3SPN.2 for DNA, a structure-based model for proteins, and contacts between them.

DNA (templates/dna_beads.json) has the terms of Hinckley, Freeman, Whitmer and de Pablo, J. Chem. Phys. 139, 144903
(2013), between bases that pair in the build: strands do not part from their partners for others. Proteins
(templates/protein_beads.json) are elastic networks (Tirion, Phys. Rev. Lett. 77, 1905 (1996)) so stiff that each body
keeps its shape, and hold on to the DNA that they touch in the build by Lennard-Jones contacts, at rest as built.
Charges are those of phosphates, -0.6 e, and of amino acids.
"""

import json
from collections import defaultdict
from functools import cache

import numpy as np
from scipy.spatial import cKDTree

import chromabuild
from chromabuild.base.constants import COULOMB_CONSTANT, KJ_PER_KCAL
from chromabuild.base.files import template_path
from chromabuild.build.beads import AMINO_ACID, BASE, PHOSPHATE, SUGAR, Beads
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.molecule.residues import residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.solvate.ions import formal_charges

FORCE_FIELD = "3spn2-beads"
_NAMES = {PHOSPHATE: "P", SUGAR: "S", AMINO_ACID: "CA"}
_OF_MINIMUM = 2.0 ** (-1.0 / 6.0)
"""Sigma of Lennard-Jones over the distance of its minimum."""


@cache
def dna_parameters() -> dict:
    """Content of templates/dna_beads.json: kJ/mol, angstrom, degree."""
    return json.loads(template_path("dna_beads.json").read_text())


@cache
def protein_parameters() -> dict:
    """Content of templates/protein_beads.json: kJ/mol, angstrom."""
    return json.loads(template_path("protein_beads.json").read_text())


class _Terms:
    """Rows of the terms of one kind."""

    def __init__(self) -> None:
        self._rows: dict[str, list] = defaultdict(list)
        self._blocks: list[dict[str, np.ndarray]] = []

    def add(self, atoms: tuple[int, ...], **values: float) -> None:
        """Add one."""
        for name, value in {"atoms": atoms, **values}.items():
            self._rows[name].append(value)

    def extend(self, atoms: np.ndarray, **values: np.ndarray) -> None:
        """Add many."""
        self._blocks.append({"atoms": atoms, **values})

    def columns(self, kind: str) -> dict[str, np.ndarray]:
        """Fields of a ``MoleculeTemplate``; empty without rows."""
        rows = [{name: np.array(values) for name, values in self._rows.items()}] if self._rows else []
        blocks = rows + self._blocks
        names = blocks[0] if blocks else ()
        return {f"{kind}_{name}": np.concatenate([one[name] for one in blocks]) for name in names}


def bead_topology(solute: Solute, beads: Beads) -> Topology:
    """The topology of the beads of a solute, one molecule, whose native contacts are those of the solute's atoms."""
    dna, protein = dna_parameters(), protein_parameters()
    terms: dict[str, _Terms] = defaultdict(_Terms)
    place = beads.place(solute.position)
    excluded = [_add_dna(beads, dna, terms), _add_springs(beads, place, protein, terms)]
    name = [letter.decode() if kind == BASE else _NAMES[kind]
            for kind, letter in zip(beads.kind.tolist(), beads.letter.tolist(), strict=True)]
    kinds = [*(key for key in dna["particle"] if key != "columns"), "CA"]
    diameter = [dna["particle"][key][0] for key in kinds[:-1]] + [protein["diameter"]]
    charge = np.array([dna["particle"][key][2] if key != "CA" else 0.0 for key in name])
    is_protein = beads.kind == AMINO_ACID
    charge[is_protein] = formal_charges()[solute.residue_template[beads.residue[is_protein]]]
    excluded.append(_add_contacts(solute, beads, place, protein, charge, terms))
    first = np.flatnonzero(np.diff(beads.residue, prepend=-1))
    residue = beads.residue[first]
    molecule = MoleculeTemplate(
        name="beads", lj_type=[kinds.index(key) for key in name], charge=charge,
        mass=[protein["mass"] if key == "CA" else dna["particle"][key][1] for key in name],
        atom_name=np.array(name, dtype="S4"), atom_residue=np.cumsum(np.diff(beads.residue, prepend=-1) != 0) - 1,
        residue_name=np.array(residue_names(), dtype="S4")[solute.residue_template[residue]],
        residue_number=solute.residue_number[residue],
        residue_segid=np.array(solute.segment_name, dtype="S4")[solute.residue_segment[residue]],
        exclusion=np.unique(np.concatenate(excluded), axis=0).astype(np.int32),
        **{key: values for kind, rows in terms.items() for key, values in rows.columns(kind).items()})
    return Topology([molecule], np.array([0], dtype=np.int32), np.array([1]), np.array(kinds, dtype="S8"),
                    _OF_MINIMUM * np.array(diameter), np.full(len(kinds), dna["excluded_volume"] / KJ_PER_KCAL),
                    COULOMB_CONSTANT, FORCE_FIELD, {"chromabuild": chromabuild.__version__})


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _add_dna(beads: Beads, dna: dict, terms: dict[str, _Terms]) -> np.ndarray:
    """Terms of 3SPN.2, by nucleotide; gives (e, 2) beads that have no other energy."""
    excluded: set[tuple[int, int]] = set()
    table, kcal = beads.of_residue.tolist(), 1.0 / KJ_PER_KCAL
    following, partner = beads.following.tolist(), beads.partner.tolist()
    before = {after: k for k, after in enumerate(following) if after >= 0}
    letter = {k: beads.letter[row[BASE]].decode() for k, row in enumerate(table) if row[BASE] >= 0}

    def bond(name: str, *atoms: int) -> None:
        terms["bond"].add(atoms, k=dna["bond"]["k"] * kcal, r0=dna["bond"][name], k4=dna["bond"]["k4"] * kcal)

    def angle(name: str, *atoms: int) -> None:
        terms["angle"].add(atoms, k=dna["angle"]["k"] * kcal, theta0=dna["angle"][name])

    def torsion(name: str, *atoms: int) -> None:
        terms["gaussian"].add(atoms, k=dna["gaussian"]["k"] * kcal, width=dna["gaussian"]["width_radian"],
                              phi0=dna["gaussian"][name])

    for k in letter:
        p, s, b, _ = table[k]
        x, after = letter[k], following[k]
        excluded.update(_pair(i, j) for i, j in ((p, s), (p, b), (s, b)) if i >= 0)
        bond(f"S-{x}", s, b)
        if p >= 0:
            bond("P-S", p, s)
            angle(f"P-S-{x}", p, s, b)
        if after >= 0:
            p2, s2, b2, _ = table[after]
            excluded.update(_pair(i, j) for i in (p, s, b) if i >= 0 for j in (p2, s2, b2))
            bond("S-P", s, p2)
            angle(f"{x}-S-P", b, s, p2)
            angle("S-P-S", s, p2, s2)
            if p >= 0:
                angle("P-S-P", p, s, p2)
                torsion("P-S-P-S", p, s, p2, s2)
            if following[after] >= 0:
                torsion("S-P-S-P", s, p2, s2, table[following[after]][PHOSPHATE])
            epsilon, r0, theta0 = dna["stacking"][x + letter[after]]
            terms["stacking"].add((s, b, b2), epsilon=epsilon * kcal, r0=r0, theta0=theta0,
                                  alpha=dna["stacking"]["alpha"], sharpness=dna["stacking"]["sharpness"])
        _add_pair(k, partner[k], table, letter, dna["base_pair"], terms["base_pair"], excluded)
        if after >= 0 and partner[k] in before:
            _add_cross_stacking((k, after), (partner[k], before[partner[k]]), table, letter, dna["cross_stacking"],
                                terms["cross_stacking"])
    return np.array(sorted(excluded), dtype=int).reshape(-1, 2)


def _add_pair(k: int, other: int, table: list[list[int]], letter: dict[int, str], parameters: dict, rows: _Terms,
              excluded: set[tuple[int, int]]) -> None:
    """The pair of two nucleotides, once: with the purine first."""
    if letter[k] + letter[other] not in parameters:
        return
    epsilon, r0, theta1, theta2, phi0 = parameters[letter[k] + letter[other]]
    (_, s, b, _), (_, s2, b2, _) = table[k], table[other]
    excluded.add(_pair(b, b2))
    rows.add((s, b, b2, s2), epsilon=epsilon / KJ_PER_KCAL, r0=r0, theta1=theta1, theta2=theta2, phi0=phi0,
             alpha=parameters["alpha"], sharpness=parameters["sharpness"])


def _add_cross_stacking(own: tuple[int, int], other: tuple[int, int], table: list[list[int]], letter: dict[int, str],
                        parameters: dict, rows: _Terms) -> None:
    """What a nucleotide and the one that follows it (``own``) feel of its partner and the one before that (``other``).

    Both diagonals of a step are seen from either of its base pairs and count half each time.
    """
    (k, after), (pair, beside) = own, other
    (_, s, b, _), (_, s2, b2, _) = table[k], table[pair]

    def values(row: list[float], epsilon: int) -> dict[str, float]:
        return {"epsilon": 0.5 * row[epsilon] / KJ_PER_KCAL, "r0": row[epsilon + 1], "theta3": row[0],
                "theta": row[epsilon + 2], "alpha": parameters["alpha"], "sharpness3": parameters["sharpness3"],
                "sharpness": parameters["sharpness"]}

    rows.add((s, b, b2, s2, table[beside][BASE]),
             **values(parameters[letter[k] + letter[pair] + letter[beside]], 1))
    rows.add((s2, b2, b, s, table[after][BASE]),
             **values(parameters[letter[pair] + letter[k] + letter[after]], 4))


def _springs(place: np.ndarray, protein: dict) -> np.ndarray:
    """(s, 2) pairs of CA, (n, 3) angstrom, that hold a body together: near ones, and of each the farthest in reach.

    The long ones make long thin parts, such as tails, as stiff as the fold.
    """
    tree = cKDTree(place)
    pairs = [tree.query_pairs(protein["near"], output_type="ndarray")]
    for k, found in enumerate(tree.query_ball_point(place, protein["far"], return_sorted=True)):
        others = np.array(found)
        distance = np.linalg.norm(place[others] - place[k], axis=1)
        farthest = others[np.argsort(-distance, kind="stable")[:protein["far_springs"]]]
        pairs.append(np.sort(np.column_stack([np.full_like(farthest, k), farthest]), axis=1))
    found = np.unique(np.concatenate(pairs), axis=0)
    return found[found[:, 0] != found[:, 1]]


def _add_springs(beads: Beads, place: np.ndarray, protein: dict, terms: dict[str, _Terms]) -> np.ndarray:
    """Springs within each body, at rest as it is; gives (s, 2) their beads."""
    pairs = [np.zeros((0, 2), dtype=int)]
    for residues in beads.bodies():
        own = beads.of_residue[residues, AMINO_ACID]
        pairs.append(own[_springs(place[own], protein)])
    found = np.concatenate(pairs)
    length = np.linalg.norm(place[found[:, 1]] - place[found[:, 0]], axis=1)
    terms["bond"].extend(found, k=np.full(len(found), protein["spring"] / KJ_PER_KCAL), r0=length,
                         k4=np.zeros(len(found)))
    return found


def _add_contacts(solute: Solute, beads: Beads, place: np.ndarray, protein: dict, charge: np.ndarray,
                  terms: dict[str, _Terms]) -> np.ndarray:
    """Lennard-Jones of amino acids and nucleotides whose heavy atoms touch in the solute; gives (c, 2) their beads."""
    position = np.asarray(solute.position, dtype=float)[beads.atom]
    is_protein = (beads.kind == AMINO_ACID)[beads.atom_bead]
    of_protein, of_dna = np.flatnonzero(is_protein), np.flatnonzero(~is_protein)
    near = cKDTree(position[of_protein]).query_ball_tree(cKDTree(position[of_dna]), protein["contact_distance"])
    touched = of_dna[np.array([k for found in near for k in found], dtype=int)]
    touching = np.repeat(of_protein, [len(found) for found in near])
    pairs = np.unique(beads.atom_bead[np.column_stack([touched, touching])], axis=0)
    terms["pair14"].extend(pairs, charge_product=charge[pairs[:, 0]] * charge[pairs[:, 1]],
                           epsilon=np.full(len(pairs), protein["contact"] / KJ_PER_KCAL),
                           sigma=_OF_MINIMUM * np.linalg.norm(place[pairs[:, 0]] - place[pairs[:, 1]], axis=1))
    return pairs
