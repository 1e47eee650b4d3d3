"""Histones in a universe of MDAnalysis: which chain is which, and which eight of them make a nucleosome.

Chains are known by their sequence, so that any topology will do; residues get the numbers of PDB 1KX5 where they are
alike. A nucleosome is put together from the chains whose folds touch.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import h5py
import numpy as np

from chromabuild.analysis.nucleotides import close_pairs, nearest_image
from chromabuild.base.files import template_path
from chromabuild.molecule.residues import modifications, residue_library

if TYPE_CHECKING:
    import MDAnalysis

FAMILIES = ("H3", "H4", "H2A", "H2B", "H3", "H4", "H2A", "H2B")
"""Places of a nucleosome: chains A to H of PDB 1KX5."""
FOLDED = {"H3": (48, 134), "H4": (24, 101), "H2A": (22, 117), "H2B": (34, 121)}
"""Residues of 1KX5 (in its file's count, from 1) that are folded."""
_TOUCH = 8.0
"""Angstrom between C-alpha atoms of folds that touch."""
_WORD = 4
_ALIKE = 0.45
"""Least share of the words of a chain, or of a histone, that they have in common."""
_BLOCK = 3
"""Fewer residues in a row that are the same are no match."""
_LETTERS = {"ALA": "A", "ARG": "R", "ASN": "N", "ASP": "D", "CYS": "C", "GLN": "Q", "GLU": "E", "GLY": "G", "HIS": "H",
            "ILE": "I", "LEU": "L", "LYS": "K", "MET": "M", "PHE": "F", "PRO": "P", "SER": "S", "THR": "T", "TRP": "W",
            "TYR": "Y", "VAL": "V", "HID": "H", "HIE": "H", "HIP": "H", "HSD": "H", "HSE": "H", "HSP": "H", "CYX": "C",
            "CYM": "C", "ASH": "D", "GLH": "E", "LYN": "K"}
_LETTERS |= {name: _LETTERS[change.parent] for name, change in modifications().items() if change.parent in _LETTERS}


def amino_acid(name: str) -> str:
    """One-letter code of a residue name of any force field (ends of chains as ``NALA``), "" for what is none."""
    return _LETTERS.get(name, _LETTERS.get(name[1:], "") if len(name) == 4 and name[0] in "NC" else "")


@dataclass(frozen=True)
class Fold:
    """The octamer of PDB 1KX5 in the nucleosome's own frame: dyad along x, superhelix axis along z."""

    sequence: tuple[str, ...]
    """Of the eight chains."""
    alpha: tuple[np.ndarray, ...]
    """(k, 3) C-alpha atoms of each, angstrom."""
    path: np.ndarray
    """(147, 3) origins of the base pairs."""
    frame: np.ndarray
    """(147, 3, 3) their frames."""


@cache
def reference_fold() -> Fold:
    """Read templates/nucleosome_1kx5.h5 and nucleosome_path_1kx5.json."""
    library = residue_library()
    with h5py.File(template_path("nucleosome_1kx5.h5")) as file:
        names = [name.decode() for name in file["residue_name"][...]]
        chain = file["residue_chain"][...]
        letters = file["chain"][...]
        position = 0.001 * file["heavy_atom_position"][...]
    heavy = [[atom for atom, place in library[name].index.items() if library[name].elements[place] != "H"]
             for name in names]
    first = np.concatenate([[0], np.cumsum([len(atoms) for atoms in heavy])])
    alpha = position[[first[k] + atoms.index("CA") for k, atoms in enumerate(heavy)]]
    data = json.loads(template_path("nucleosome_path_1kx5.json").read_text())
    rows = [np.flatnonzero(chain == letter) for letter in letters]
    return Fold(tuple("".join(amino_acid(names[k]) for k in row) for row in rows), tuple(alpha[row] for row in rows),
                np.array(data["origin"]), np.array(data["frame"]).reshape(-1, 3, 3))


@dataclass(frozen=True)
class HistoneChain:
    """One histone."""

    name: str
    """H3, H2A.Z, ..."""
    family: str
    label: str
    """Segment in the universe."""
    residues: np.ndarray
    """(k,) residues of the universe."""
    alpha: np.ndarray
    """(k,) their C-alpha atoms."""
    number: np.ndarray
    """(k,) in the usual numbering of this histone; 0 and less before its first residue."""
    crystal: np.ndarray
    """(k,) the residue of 1KX5, from 1 in its file's count, that is the same one; 0 where none is."""
    heavy: np.ndarray
    """(a,) atoms but hydrogens."""
    heavy_residue: np.ndarray
    """(a,) place in ``residues`` of each."""

    @property
    def core(self) -> np.ndarray:
        """Places in ``residues`` that are folded and known in 1KX5."""
        low, high = FOLDED[self.family]
        return np.flatnonzero((self.crystal >= low) & (self.crystal <= high))


@dataclass(frozen=True)
class Octamer:
    """A nucleosome's histones by place (``FAMILIES``); None where a dimer is missing."""

    chains: tuple[HistoneChain | None, ...]

    @property
    def present(self) -> list[tuple[int, HistoneChain]]:
        """Places that are taken, and the chains there."""
        return [(k, chain) for k, chain in enumerate(self.chains) if chain is not None]

    @property
    def name(self) -> str:
        """By the segment of its first chain."""
        return self.chains[0].label

    def turned(self) -> "Octamer":
        """The same histones counted from the other copy: turned by half a turn about the dyad axis."""
        return Octamer(self.chains[4:] + self.chains[:4])

    def core(self) -> tuple[np.ndarray, np.ndarray]:
        """C-alpha atoms of the folds (k,), in the universe, and where they stand in 1KX5 (k, 3)."""
        fold, atoms, places = reference_fold(), [], []
        for k, chain in self.present:
            atoms.append(chain.alpha[chain.core])
            places.append(fold.alpha[k][chain.crystal[chain.core] - 1])
        return np.concatenate(atoms), np.concatenate(places)


def find_octamers(universe: "MDAnalysis.Universe") -> list[Octamer]:
    """Nucleosomes of a universe in its present frame, in the order of their first chains; empty where there are none.

    Histones that make no tetramer are left out.
    """
    chains = list(_histones(universe))
    position, box = universe.atoms.positions.astype(float), universe.dimensions
    folds = [position[chain.alpha[chain.core]] for chain in chains]
    touching = _contacts(folds, box)

    def matches(one: str, other: str) -> dict[int, int]:
        """Chains of two families that touch most, each taken once."""
        order = sorted(((count, -a, -b) for (a, b), count in touching.items()
                        if chains[a].family == one and chains[b].family == other and a != b), reverse=True)
        found: dict[int, int] = {}
        for _, a, b in order:
            taken = set(found) | set(found.values()) if one == other else set(found)
            if -a not in taken and (-b not in taken if one == other else -b not in found.values()):
                found[-a] = -b
        return found

    h4_of, h2b_of_h4 = matches("H3", "H4"), matches("H4", "H2B")
    h2a_of, h3_of = matches("H2B", "H2A"), matches("H3", "H3")
    octamers = []
    for one, other in h3_of.items():
        one, other = sorted((one, other))
        if one not in h4_of or other not in h4_of:
            continue
        dimers = [h2b_of_h4.get(h4_of[h3]) for h3 in (one, other)]
        octamers.append(_arranged(chains, (one, h4_of[one]), (other, h4_of[other]), dimers, h2a_of, position, box))
    return sorted(octamers, key=lambda octamer: int(octamer.chains[0].residues[0]))


def _arranged(chains: list[HistoneChain], first: tuple[int, int], second: tuple[int, int], dimers: list[int | None],
              h2a_of: dict[int, int], position: np.ndarray, box: np.ndarray | None) -> Octamer:
    """The order of the two dimers in which the octamer is most like 1KX5."""
    def chain(k: int | None) -> HistoneChain | None:
        return None if k is None else chains[k]

    options = []
    for mine, other in (dimers, dimers[::-1]):
        octamer = Octamer((*map(chain, first), chain(h2a_of.get(mine)), chain(mine), *map(chain, second),
                           chain(h2a_of.get(other)), chain(other)))
        atoms, places = octamer.core()
        moved = position[atoms[0]] + nearest_image(position[atoms] - position[atoms[0]], box)
        options.append((superposition(places, moved)[2], len(options), octamer))
    return min(options)[2]


def superposition(fixed: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Origin (3,) and frame (3, 3) with moved ~ origin + frame @ fixed, both (n, 3), and the deviation (rms).

    Kabsch, Acta Cryst. A 34, 827 (1978).
    """
    from chromabuild.dna.steps import fit_frames

    origin, frame = fit_frames(moved, fixed)
    rest = moved - (origin + fixed @ frame.T)
    return origin, frame, float(np.sqrt((rest**2).sum(axis=1).mean()))


class ProteinChain(NamedTuple):
    """Amino acids in a row, in one segment; (k,) residues and (a,) atoms of the universe."""

    sequence: str
    label: str
    residues: np.ndarray
    alpha: np.ndarray
    heavy: np.ndarray
    heavy_residue: np.ndarray
    """(a,) place in ``residues`` of each atom but hydrogens."""


def protein_chains(universe: "MDAnalysis.Universe") -> Iterator[ProteinChain]:
    """Chains of amino acids; a new one begins where residue numbers fall or the segment changes."""
    residues, atoms = universe.residues, universe.atoms
    letters = np.array([amino_acid(name) for name in residues.resnames])
    protein = np.flatnonzero(letters != "")
    if not len(protein):
        return
    alpha_of = np.full(len(residues), -1)
    alphas = np.flatnonzero(atoms.names == "CA")[::-1]
    alpha_of[atoms.resindices[alphas]] = alphas
    protein = protein[alpha_of[protein] >= 0]
    segment, number = residues.segindices[protein], residues.resids[protein]
    new = (np.diff(segment) != 0) | (np.diff(number) <= 0)
    elements_hydrogen = np.char.startswith(np.char.lstrip(atoms.names.astype(str), "0123456789"), "H")
    in_protein = np.flatnonzero(np.isin(atoms.resindices, protein) & ~elements_hydrogen)
    starts = np.concatenate([[0], np.flatnonzero(new) + 1, [len(protein)]])
    place = np.full(len(residues), -1)
    place[protein] = np.arange(len(protein))
    row = place[atoms.resindices[in_protein]]
    chain = np.searchsorted(starts, row, side="right") - 1
    order = np.argsort(chain, kind="stable")  # one pass over all atoms, however many chains there are
    ends = np.searchsorted(chain[order], np.arange(len(starts)))
    for k, (first, last) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        rows, own = protein[first:last], order[ends[k]:ends[k + 1]]
        yield ProteinChain("".join(letters[rows]), str(residues.segids[rows[0]]), rows, alpha_of[rows],
                           in_protein[own], row[own] - first)


def _histones(universe: "MDAnalysis.Universe") -> Iterator[HistoneChain]:
    """Chains whose sequence is that of a histone of the octamer."""
    for chain in protein_chains(universe):
        kind = _kind(chain.sequence)
        if kind is None:
            continue
        name, family = kind
        yield HistoneChain(
            name, family, chain.label, chain.residues, chain.alpha, _numbers(chain.sequence, name),
            matched(chain.sequence, reference_fold().sequence[FAMILIES.index(family)]), chain.heavy,
            chain.heavy_residue)


def word_share(sequence: str, other: str) -> float:
    """Share of the words of four letters of a sequence that stand in another one, too."""
    words = _words(sequence)
    return len(words & _words(other)) / max(1, len(words))


@cache
def _table() -> list[tuple[str, str, int, str, frozenset[str]]]:
    data = json.loads(template_path("histones.json").read_text())
    known: dict[str, tuple[str, dict]] = {}
    for species in ("human", "mouse", "fly", "yeast"):
        for name, entry in data[species].items():
            known.setdefault(entry["sequence"], (name, entry))  # species and variants share some: the plain name counts
    return [(name, entry["family"], entry["first"], sequence, _words(sequence))
            for sequence, (name, entry) in known.items()]


def _words(sequence: str) -> frozenset[str]:
    return frozenset(sequence[k:k + _WORD] for k in range(len(sequence) - _WORD + 1))


@cache
def _kind(sequence: str) -> tuple[str, str] | None:
    """Name and family of the histone that a sequence is most like."""
    words = _words(sequence)
    if not words:
        return None
    share, name, family = max((len(words & known) / min(len(words), len(known)), name, family)
                              for name, family, _, _, known in _table())
    return (name, family) if share >= _ALIKE else None


@cache
def matched(sequence: str, other: str) -> np.ndarray:
    """(k,) for every letter the place, from 1, of the one in ``other`` that is the same in a row of at least three."""
    found = np.zeros(len(sequence), dtype=int)
    for block in SequenceMatcher(None, sequence, other, autojunk=False).get_matching_blocks():
        if block.size >= _BLOCK:
            found[block.a:block.a + block.size] = np.arange(block.b + 1, block.b + block.size + 1)
    return found


@cache
def _numbers(sequence: str, name: str) -> np.ndarray:
    """(k,) residue numbers in the usual numbering, by the table's sequence of that name that fits best."""
    best = max(((matched(sequence, known) > 0).sum(), known, first) for entry, _, first, known, _ in _table()
               if entry == name)
    places = matched(sequence, best[1])
    offset = np.bincount((places - np.arange(len(sequence)) + len(sequence))[places > 0]).argmax() - len(sequence)
    return np.arange(len(sequence)) + offset + best[2] - 1


def _contacts(folds: list[np.ndarray], box: np.ndarray | None) -> dict[tuple[int, int], int]:
    """How many C-alpha atoms of two chains stand within ``_TOUCH`` of each other, by ordered pairs of chains."""
    if not folds:
        return {}
    owner = np.repeat(np.arange(len(folds)), [len(fold) for fold in folds])
    places = np.concatenate(folds)
    close = close_pairs(places, places, _TOUCH, box)
    close = close[close[:, 0] < close[:, 1]]
    pairs = owner[close]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    kinds, counts = np.unique(both, axis=0, return_counts=True) if len(both) else (both, [])
    return {(int(a), int(b)): int(count) for (a, b), count in zip(kinds, counts, strict=True)}
