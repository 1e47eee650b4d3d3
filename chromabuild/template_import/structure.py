"""The nucleosome in a structure file: its histones, told by alignment with the known ones, and where it lies.

The fold is superposed on 1KX5, so that the own frame, the dyad and both halves are where scaffolds expect them.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import gemmi
import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices

from chromabuild.analysis.duplex import first_model
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.histone_tails import TAILS
from chromabuild.nucleosome.homology import Residue, chains_of, histone_table
from chromabuild.nucleosome.octamer import FAMILIES, octamer
from chromabuild.nucleosome.peptide import superposition
from chromabuild.nucleosome.recipe import stored_histone
from chromabuild.proteins.residues import complete_residues

SHORTEST_CHAIN = 40  # residues with a complete backbone
LEAST_IDENTITY = 0.4  # of the aligned residues; unrelated histones share a quarter
LARGEST_DEVIATION = 3.0  # angstrom rms of CA atoms of the fold
SAME_ORDER = 0.3  # angstrom by which the chains in the order of the file may fit worse than the other way round


@dataclass(frozen=True)
class KnownHistone:
    """A histone whose model lies in the own frame, tails compact."""

    species: str
    name: str
    family: str
    sequence: str
    copies: tuple[list[Residue], list[Residue]]


@dataclass
class ObservedChain:
    """A histone of the structure."""

    label: str
    residues: list[Residue]
    """Those with a complete backbone; their numbers are those of the file."""
    known: KnownHistone
    pairs: list[tuple[int | None, int | None]]
    """(observed index, index in ``known``) along the alignment, None for a gap."""


@cache
def known_histones() -> tuple[KnownHistone, ...]:
    """The histones of 1KX5 and of the tables, in that order."""
    chains, found = chains_of(octamer("compact")), []

    def add(species: str, name: str, family: str, copies: tuple[list[Residue], list[Residue]]) -> None:
        found.append(KnownHistone(species, name, family, "".join(r.letter for r in copies[0]), copies))

    for k, family in enumerate(FAMILIES[:4]):
        add("xenopus", family, family, (chains[k], chains[k + 4]))
    for species, table in histone_table().items():
        for name, entry in table.items():
            add(species, name, entry["family"], tuple(stored_histone(species, name).copies))
    return tuple(found)


def read_model(path: str | Path, chains: list[str] | None = None) -> gemmi.Model:
    """The first model of a PDB or mmCIF file, or some of its chains. Raises BadInputError when it cannot be read."""
    model = first_model(path, "of a nucleosome")
    if chains is None:
        return model
    missing = [name for name in chains if name not in [chain.name for chain in model]]
    if missing:
        raise BadInputError(f"{path} has no chain {missing[0]}; it has {', '.join(chain.name for chain in model)}")
    chosen = gemmi.Model(1)
    for chain in model:
        if chain.name in chains:
            chosen.add_chain(chain)
    return chosen


@cache
def nearest_histone(sequence: str) -> tuple[KnownHistone, dict[int, int]] | None:
    """The known histone most like a sequence of one-letter codes, and place in it by place in ``sequence``.

    None when none is like it.
    """
    aligner = _aligner()
    known = max(known_histones(), key=lambda k: aligner.score(sequence, k.sequence))
    blocks = aligner.align(sequence, known.sequence)[0].aligned
    partner = {i: c + i - a for (a, b), (c, _) in zip(*blocks, strict=True) for i in range(a, b)}
    same = sum(sequence[i] == known.sequence[j] for i, j in partner.items())
    if len(partner) < SHORTEST_CHAIN or same < LEAST_IDENTITY * len(partner):
        return None
    return known, partner


def _aligner() -> PairwiseAligner:
    aligner = PairwiseAligner(mode="global", open_gap_score=-12.0, extend_gap_score=-0.5, end_gap_score=0.0)
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    return aligner


def octamer_chains(path: str | Path, model: gemmi.Model) -> list[ObservedChain]:
    """The eight histones of the file: H3, H4, H2A, H2B, H3, H4, H2A, H2B, each pair in the order of the file."""
    found = []
    for chain in model:
        residues = complete_residues(chain)
        if len(residues) < SHORTEST_CHAIN:
            continue
        nearest = nearest_histone("".join(r.letter for r in residues))
        if nearest is not None:
            known, partner = nearest
            found.append(ObservedChain(chain.name, residues, known, _columns(partner, known)))
    families = {family: [c for c in found if c.known.family == family] for family in FAMILIES[:4]}
    if any(len(copies) != 2 for copies in families.values()):
        counts = ", ".join(f"{len(copies)} {family}" for family, copies in families.items())
        more = any(len(copies) > 2 for copies in families.values())
        raise BadInputError(f"{path} holds {counts}, a nucleosome has two of each: " + (
            "name the chains of one nucleosome with --chains" if more else "give a structure with a whole octamer"))
    return [families[family][copy] for copy in range(2) for family in FAMILIES[:4]]


def _columns(partner: dict[int, int], known: KnownHistone) -> list[tuple[int | None, int | None]]:
    """Alignment columns from the first residue of ``known`` to its last; what is observed beyond is left out."""
    columns: list[tuple[int | None, int | None]] = []
    i, j, last = min(partner), 0, max(partner)
    while j < len(known.sequence):
        if partner.get(i) == j:
            columns.append((i, j))
            i, j = i + 1, j + 1
        elif i < last and i not in partner:
            columns.append((i, None))
            i += 1
        else:
            columns.append((None, j))
            j += 1
    return columns


def own_frame(path: str | Path, observed: list[ObservedChain]) -> tuple[np.ndarray, np.ndarray, float, list[int]]:
    """Rotation, shift and rms deviation (angstrom) of the superposition on 1KX5, and which chain is which of A..H."""
    best = None
    for swap in product((0, 1), repeat=4):
        order = [family + 4 * (half ^ swap[family]) for half in range(2) for family in range(4)]
        here, there = [], []
        for place, k in enumerate(order):
            chain = observed[k]
            model = chain.known.copies[place // 4]
            tail = TAILS[chain.known.name]
            for i, j in chain.pairs:
                if i is not None and j is not None and not any(a <= model[j].number <= b for a, b in tail):
                    here.append(chain.residues[i].atoms["CA"])
                    there.append(model[j].atoms["CA"])
        here, there = np.array(here), np.array(there)
        kept = np.ones(len(here), dtype=bool)
        for _ in range(3):  # loops that differ do not count
            matrix, shift = superposition(here[kept], there[kept])
            apart = np.linalg.norm(here @ matrix.T + shift - there, axis=1)
            deviation = float(np.sqrt(np.mean(apart[kept] ** 2)))
            kept = apart < max(3.0, 2.0 * deviation)
        if best is None or deviation < best[2] - SAME_ORDER:
            best = matrix, shift, deviation, order
    if best[2] > LARGEST_DEVIATION:
        raise BadInputError(f"the histones of {path} do not lie as in a nucleosome (CA atoms {best[2]:.1f} angstrom "
                            "rms from 1KX5): name the chains of one nucleosome with --chains")
    return best
