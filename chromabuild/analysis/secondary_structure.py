"""Helices and strands of proteins, by hydrogen bonds of the backbone (DSSP: Kabsch and Sander, Biopolymers 22, 2577
(1983)), of many chains at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute

LOOP, HELIX, STRAND = range(3)
_BACKBONE = ("N", "CA", "C", "O")
_LAST_OXYGEN = ("OT1", "O1", "OC1", "OXT")
"""What programs call the oxygen of a last residue that has no O."""
_SHORTEST = 3
_CHARGES, _WEAKEST = 332 * 0.42 * 0.20, -0.5
"""kcal angstrom/mol of the charges of C=O and N-H, and energy of the weakest bond, kcal/mol."""
_N_H, _FARTHEST = 1.01, 5.0
"""Angstrom: a bond, and from O to N of a hydrogen bond at most."""
_GAP = 6
"""Rows between two chains: more than a turn."""
_FEWEST = 6
"""Residues of a chain in which DSSP finds anything: it looks for partners five residues away."""


def backbone_rows(residue: np.ndarray, name: np.ndarray, residues: int) -> np.ndarray | None:
    """(residues, 4) places of N, CA, C and O among atoms of given ``residue`` (a,) and ``name`` (a,); None where a
    residue lacks one of them."""
    rows = np.full((residues, len(_BACKBONE)), -1)
    for column, wanted in enumerate(_BACKBONE):
        for one in (wanted, *_LAST_OXYGEN) if wanted == "O" else (wanted,):
            here = np.flatnonzero(name == one)
            here = here[rows[residue[here], column] < 0]
            rows[residue[here], column] = here
    return None if (rows < 0).any() else rows


def assigned(backbone: np.ndarray, is_proline: np.ndarray, chain: np.ndarray | None = None) -> np.ndarray:
    """(n,) ``LOOP``, ``HELIX`` or ``STRAND`` of each residue, by hydrogen bonds within its chain.

    ``backbone`` (n, 4, 3): N, CA, C and O, angstrom; ``is_proline`` (n,): residues without a hydrogen to give;
    ``chain`` (n,): a number that changes from one chain to the next; None: all are one.
    """
    chain = np.zeros(len(backbone), dtype=int) if chain is None else np.asarray(chain)
    follows = np.concatenate([[False], chain[1:] == chain[:-1]])
    row = np.arange(len(chain)) + _GAP * np.cumsum(~follows)  # so that no pattern reaches over to another chain
    acceptor, donor = (row[rows] for rows in _hydrogen_bonds(backbone, follows, follows & ~is_proline, chain))
    size = int(row[-1]) + _GAP + 1
    bonds = np.sort(acceptor * size + donor)

    def starts(turn: int) -> np.ndarray:
        """Where a second turn in a row begins."""
        turns = np.zeros(size, dtype=bool)
        turns[acceptor[donor - acceptor == turn]] = True
        return turns & np.roll(turns, 1)

    def helix(begins: np.ndarray, turn: int) -> np.ndarray:
        return np.logical_or.reduce([np.roll(begins, k) for k in range(turn)])

    alpha = helix(starts(4), 4)
    others = ~(alpha | np.roll(alpha, -1))  # an alpha helix comes first
    is_helix = alpha | helix(starts(3) & others, 3) | helix(starts(5) & others, 5)
    is_strand = np.zeros(size, dtype=bool)
    # A bond makes a bridge with another one: parallel; antiparallel from the pair itself, or from either side of it.
    for one, other, first, second in ((donor, acceptor + 2, acceptor + 1, donor), (donor, acceptor, acceptor, donor),
                                      (donor - 2, acceptor + 2, acceptor + 1, donor - 1)):
        found = np.isin(one * size + other, bonds)
        is_strand[first[found]] = is_strand[second[found]] = True
    return np.where(is_helix, HELIX, np.where(is_strand, STRAND, LOOP))[row]


def _hydrogen_bonds(backbone: np.ndarray, follows: np.ndarray, gives: np.ndarray, chain: np.ndarray
                    ) -> tuple[np.ndarray, np.ndarray]:
    """(b,) residues with C=O and (b,) residues with N-H of all bonds within a chain; who ``follows`` (n,) another
    residue, and who ``gives`` (n,) a hydrogen, which stands in the plane of the peptide, at equal angles."""
    donor, acceptor = np.flatnonzero(gives), np.flatnonzero(follows) - 1
    if not len(donor):
        return donor, donor
    nitrogen = backbone[donor, 0]
    outward = _unit(nitrogen - backbone[donor - 1, 2]) + _unit(nitrogen - backbone[donor, 1])
    hydrogen = nitrogen + _N_H * _unit(outward)
    near = cKDTree(backbone[acceptor, 3]).sparse_distance_matrix(cKDTree(nitrogen), _FARTHEST, output_type="ndarray")
    a, d, apart = acceptor[near["i"]], donor[near["j"]], near["v"]
    here = (chain[a] == chain[d]) & ((d < a) | (d > a + 2))
    a, d, apart, h = a[here], d[here], apart[here], hydrogen[near["j"][here]]
    carbon, oxygen = backbone[a, 2], backbone[a, 3]
    inverse = [1 / np.linalg.norm(one - other, axis=1) for one, other in (
        (carbon, h), (oxygen, h), (carbon, backbone[d, 0]))]
    bonded = _CHARGES * (1 / apart + inverse[0] - inverse[1] - inverse[2]) < _WEAKEST
    return a[bonded], d[bonded]


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector, axis=-1, keepdims=True)


@dataclass(frozen=True)
class Stretch:
    """Residues of one kind of secondary structure."""

    kind: Literal["helix", "strand"]
    first: int
    """From 0 in the molecule."""
    last: int


def stretches(solute: Solute, molecule: int) -> Iterator[Stretch]:
    """Those of a protein of at least three residues, in order of the sequence."""
    first, last = solute.molecule_first_residue[molecule:molecule + 2].tolist()
    if last - first < _FEWEST:
        return
    library = list(residue_library().values())
    places = np.array([[library[kind].index.get(name, library[kind].index.get("OXT", 0)) for name in _BACKBONE]
                       for kind in solute.residue_template[first:last].tolist()])
    atoms = solute.residue_first_atom[first:last, None] + places
    backbone = np.asarray(solute.position[int(atoms[0, 0]):int(solute.residue_first_atom[last])], dtype=float)
    is_proline = np.array([library[kind].pdb_name == "PRO" for kind in solute.residue_template[first:last].tolist()])
    code = assigned(backbone[atoms - atoms[0, 0]], is_proline)
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(code)) + 1, [len(code)]]).tolist()
    for start, end in zip(cuts[:-1], cuts[1:], strict=True):
        if code[start] and end - start >= _SHORTEST:
            yield Stretch("helix" if code[start] == HELIX else "strand", start, end - 1)
