"""Nucleosomes of a universe with the DNA around them: whole in any periodic box, and where each stands on its DNA."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.analysis.histones import HistoneChain, Octamer, find_octamers, reference_fold, superposition
from chromabuild.analysis.linker_histones import find_linker_histones
from chromabuild.analysis.nucleotides import (
    PLACE,
    Nucleotides,
    capped_pairs,
    find_nucleotides,
    has_box,
    helix_of,
    nearest_image,
)
from chromabuild.base.errors import BadInputError

if TYPE_CHECKING:
    import MDAnalysis

SITES = 147
"""Base pairs of 1KX5's path; the dyad is number 73 from 0."""
DYAD = 73
_NEAR = 12.0
"""Angstrom from the path's dyad within which the first frame must show a base pair."""
_AT_DYAD = 25.0
"""Angstrom from the dyad's base pair to the nearest C-alpha atom of a linker histone; 11 in PDB 4QLC."""
_BESIDE = 20.0
"""Angstrom within which histones have DNA; of those that do not, the nearest base is looked for everywhere."""
_JOINS = ((0, -1), (1, 0), (4, 0), (5, 4), (3, 1), (2, 3), (7, 5), (6, 7))
"""Places of an octamer in the order in which they are put together: chain, and the one that it is put beside."""


@dataclass(frozen=True)
class Nucleosome:
    """An octamer on its DNA."""

    octamer: Octamer
    """Turned so that strand I passes it as it does in 1KX5."""
    duplex: int
    """Of ``Nucleotides.duplexes``; -1 where no DNA is near."""
    dyad: int
    """Base pair of that duplex at the dyad in the first frame."""
    linker_histone: HistoneChain | None = None
    """That whose folded domain lies nearest to the dyad."""

    def sites(self, nucleotides: Nucleotides) -> np.ndarray:
        """(147,) base pairs of the duplex at the sites of 1KX5's path in the first frame; -1 beyond its ends."""
        if self.duplex < 0:
            return np.full(SITES, -1)
        pairs = nucleotides.duplexes[self.duplex]
        n, found = len(pairs.first), self.dyad - DYAD + np.arange(SITES)
        return found % n if pairs.closed else np.where((found >= 0) & (found < n), found, -1)


@dataclass(frozen=True)
class _Join:
    """How a chain is put beside what stands already: an atom of its own and one of the other, both in the universe."""

    chain: HistoneChain
    mine: int
    """Place in ``chain.alpha``."""
    other: tuple[str, int, int]
    """``chain``, number of the join, place in its ``alpha``; or ``dna``, row of the nucleotides, 0."""


@dataclass(frozen=True)
class Chains:
    """Positions of the histones of all nucleosomes in one frame, angstrom."""

    alpha: dict[int, np.ndarray]
    """By ``id`` of the chain: (k, 3) C-alpha atoms."""
    heavy: dict[int, np.ndarray]
    """(a, 3) atoms but hydrogens."""


class WholeNucleosomes:
    """Finds DNA and nucleosomes of a universe in its present frame, and puts them together in any other."""

    def __init__(self, universe: "MDAnalysis.Universe", whose: str = "the topology",
                 octamers: list[Octamer] | None = None) -> None:
        """``octamers``: what ``find_octamers`` gives, where it is known already."""
        self.nucleotides = find_nucleotides(universe, whose)
        octamers = find_octamers(universe) if octamers is None else octamers
        if not octamers:
            raise BadInputError(f"{whose} holds no nucleosome (two H3-H4 dimers that touch): leave out the measures of "
                                "nucleosomes and fibres, or give a structure with histones")
        position, box = universe.atoms.positions.astype(float), universe.dimensions
        self._place = self.nucleotides.positions(position, box)
        linker_histones = find_linker_histones(universe)
        # Folds only: a tail may touch what belongs to a periodic image.
        firsts = [octamer.chains[0] for octamer in octamers]
        beside = _nearest_bases([position[chain.alpha[chain.core]] for chain in firsts]
                                + [position[chain.alpha] for chain in linker_histones],
                                self._place[:, PLACE["N1"]], box)
        self._joins: list[_Join] = []
        for octamer, (mine, base) in zip(octamers, beside, strict=False):
            held = _Join(octamer.chains[0], int(octamer.chains[0].core[mine]), ("dna", base, 0))
            self._joins += self._joined(octamer, held, position, box, len(self._joins))
        for chain, (mine, base) in zip(linker_histones, beside[len(octamers):], strict=True):
            self._joins.append(_Join(chain, mine, ("dna", base, 0)))
        chains = self.chains(position, self._place, box)
        origin, frame = self.nucleotides.base_frames(self._place)
        helices = [helix_of(pairs, origin, frame) for pairs in self.nucleotides.duplexes]
        found = [self._on_dna(octamer, chains, [helix.origin for helix in helices]) for octamer in octamers]
        self.nucleosomes = with_linker_histones(sorted(found, key=lambda one: (one.duplex, one.dyad)),
                                                linker_histones, chains)
        """In the order of the DNA."""

    def chains(self, position: np.ndarray, dna: np.ndarray, box: np.ndarray | None) -> Chains:
        """Histones of a frame beside their DNA; ``dna`` (r, 27, 3) as of ``Nucleotides.positions``."""
        position = position.astype(float, copy=False)
        alphas: list[np.ndarray] = []
        heavies: list[np.ndarray] = []
        for join in self._joins:
            alpha, heavy = position[join.chain.alpha], position[join.chain.heavy]
            if has_box(box):
                inside = nearest_image(heavy - alpha[join.chain.heavy_residue], box)
                steps = nearest_image(np.diff(alpha, axis=0), box)
                alpha = alpha[0] + np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
                kind, which, row = join.other
                beside = dna[which, PLACE["N1"]] if kind == "dna" else alphas[which][row]
                alpha = alpha + beside + nearest_image(alpha[join.mine] - beside, box) - alpha[join.mine]
                heavy = alpha[join.chain.heavy_residue] + inside
            alphas.append(alpha)
            heavies.append(heavy)
        return Chains({id(join.chain): alpha for join, alpha in zip(self._joins, alphas, strict=True)},
                      {id(join.chain): heavy for join, heavy in zip(self._joins, heavies, strict=True)})

    @staticmethod
    def _joined(octamer: Octamer, held: _Join, position: np.ndarray, box: np.ndarray | None, begun: int
                ) -> list[_Join]:
        """How an octamer is put together, from what stands next to what in the first frame; ``held`` is its first
        chain."""
        joins, number = [held], {0: 0}
        for place, beside in _JOINS[1:]:
            chain = octamer.chains[place]
            if chain is None:
                continue
            core, partner = chain.core, octamer.chains[beside]
            mine, other = _nearest(position[chain.alpha[core]], position[partner.alpha[partner.core]], box)
            joins.append(_Join(chain, int(core[mine]), ("chain", begun + number[beside], int(partner.core[other]))))
            number[place] = len(joins) - 1
        return joins

    @staticmethod
    def _on_dna(octamer: Octamer, chains: Chains, helices: list[np.ndarray]) -> Nucleosome:
        """The base pair at the dyad, and the octamer turned so that base pairs count up along 1KX5's path."""
        core, path = core_of(octamer, chains), reference_fold().path
        nearest = [np.argmin(np.linalg.norm(origin - (core.origin + core.frame @ path[DYAD]), axis=1))
                   for origin in helices]
        apart = [np.linalg.norm(origin[k] - (core.origin + core.frame @ path[DYAD]))
                 for origin, k in zip(helices, nearest, strict=True)]
        duplex = int(np.argmin(apart))
        if apart[duplex] > _NEAR:
            return Nucleosome(octamer, -1, -1)
        dyad, origin = int(nearest[duplex]), helices[duplex]
        ahead = origin[(dyad + 5) % len(origin)] - origin[dyad - 5]
        if ahead @ (core.frame @ (path[DYAD + 5] - path[DYAD - 5])) >= 0:
            return Nucleosome(octamer, duplex, dyad)
        turned = replace(Nucleosome(octamer, duplex, dyad), octamer=octamer.turned())
        core = core_of(turned.octamer, chains)
        dyad = int(np.argmin(np.linalg.norm(origin - (core.origin + core.frame @ path[DYAD]), axis=1)))
        return replace(turned, dyad=dyad)


@dataclass(frozen=True)
class Core:
    """Where the folds of an octamer stand."""

    origin: np.ndarray
    """(3,) of the nucleosome's own frame, angstrom."""
    frame: np.ndarray
    """(3, 3): dyad along x, superhelix axis along z."""
    rmsd: float
    """Of the C-alpha atoms of the folds from 1KX5, angstrom."""


def core_of(octamer: Octamer, chains: Chains) -> Core:
    """The octamer's folds superposed on those of 1KX5."""
    fold = reference_fold()
    here, there = [], []
    for place, chain in octamer.present:
        core = chain.core
        here.append(chains.alpha[id(chain)][core])
        there.append(fold.alpha[place][chain.crystal[core] - 1])
    return Core(*superposition(np.concatenate(there), np.concatenate(here)))


def with_linker_histones(nucleosomes: list[Nucleosome], linker_histones: list[HistoneChain], chains: Chains
                         ) -> list[Nucleosome]:
    """The nucleosomes with the linker histones that have a C-alpha atom nearest to their dyad, within ``_AT_DYAD``."""
    dyad = reference_fold().path[DYAD]
    cores = [core_of(one.octamer, chains) for one in nucleosomes]
    places = np.array([core.origin + core.frame @ dyad for core in cores])
    found = list(nucleosomes)
    for chain in linker_histones:
        apart = np.linalg.norm(chains.alpha[id(chain)][:, None] - places, axis=2).min(axis=0)
        k = int(np.argmin(apart))
        if apart[k] < _AT_DYAD and found[k].linker_histone is None:
            found[k] = replace(found[k], linker_histone=chain)
    return found


def _nearest_bases(folds: list[np.ndarray], bases: np.ndarray, box: np.ndarray | None) -> list[tuple[int, int]]:
    """For each of some folds (k, 3) its point that is nearest to a base (r, 3), and that base."""
    ends = np.cumsum([0, *map(len, folds)])
    pairs, apart = capped_pairs(np.concatenate(folds), bases, _BESIDE, box)
    owner = np.searchsorted(ends, pairs[:, 0], side="right") - 1
    order = np.lexsort((apart, owner))
    fold, first = np.unique(owner[order], return_index=True)
    nearest = dict(zip(fold.tolist(), pairs[order[first]].tolist(), strict=True))
    return [(nearest[k][0] - int(ends[k]), nearest[k][1]) if k in nearest else _nearest(points, bases, box)
            for k, points in enumerate(folds)]


def _nearest(one: np.ndarray, other: np.ndarray, box: np.ndarray | None) -> tuple[int, int]:
    """The nearest two points of (a, 3) and (b, 3), in a periodic box by their images."""
    other = np.where(np.isfinite(other), other, 1e6)
    if has_box(box):
        from MDAnalysis.lib.distances import distance_array

        place = np.argmin(distance_array(one.astype(np.float32), other.astype(np.float32), np.asarray(box, np.float32)))
        return int(place // len(other)), int(place % len(other))
    distance, nearest = cKDTree(other).query(one)
    return int(np.argmin(distance)), int(nearest[np.argmin(distance)])
