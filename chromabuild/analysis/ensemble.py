"""Many folds of one locus: their mean contact map, how much they differ, and which of them stand for the others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import ConvexHull, QhullError, cKDTree

from chromabuild.analysis.base_pair_map import base_pair_bin, base_pair_contacts
from chromabuild.analysis.contact_statistics import by_distance, rebinned
from chromabuild.analysis.convergence import Convergence, convergence
from chromabuild.analysis.fold_clusters import Clusters, cluster_folds, differences, places
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.progress import Progress, silent
from chromabuild.genome.circle import given_interval
from mesoscale.fibre import Contact
from mesoscale.model import Parameters
from mesoscale.montecarlo import BURN_IN, block_count
from mesoscale.observables import CONTACT_DISTANCE, FINEST_MAP, MOST_BINS
from mesoscale.restraints import KEPT, ContactEntry
from mesoscale.scaffold import Scaffold, box_volume

Array = NDArray[np.float64]
FEWEST_BINS = 5
"""Whole bins that a locus needs for a comparison."""
USUAL_BIN = 2000
_HULL_STEP = _SITE_STEP = 10
_NM = 0.1  # of an angstrom


@dataclass(frozen=True)
class Fold:
    """What is kept of one scaffold."""

    name: str
    seed: int | None
    conformations: int
    """Over which its contact map was taken."""
    contact_map: NDArray[np.float32]
    """(k, k) mean contacts of a conformation, of particles within 25 nm, in bins of the ensemble's ``resolution``."""
    core_pairs: NDArray[np.int64]
    """(c, 2) places of the dyads, on the chromosome, of cores within 25 nm of each other."""
    base_pairs: csr_matrix
    """(b, b) pairs of base pairs within 5 nm, upper triangle, in bins of ``base_pair_bin``."""
    path: Array
    """(p, 3) nm, places along the DNA that are the same for all folds."""
    sites: NDArray[np.float32]
    """nm, every _SITE_STEP base pairs: the base pair, or the core that it is wrapped on."""
    contacts: list[ContactEntry]
    dyads: NDArray[np.int64]
    """On the chromosome."""
    measures: dict[str, float]
    """Of the conformation that is built, by name with unit."""



@dataclass(frozen=True)
class ContactFrequency:
    """A contact and how often it is closed."""

    contact: Contact
    given: float
    """Share of folds that were given it as a restraint."""
    frequency: float
    """Share of all folds in which it is closed."""
    error: float
    """Standard error of that."""


@dataclass(frozen=True)
class BinnedMaps:
    """Contact maps of folds in whole bins of a locus."""

    maps: Array
    """(f, b, b) mean contacts of a conformation of each fold."""
    start: int
    """Where on the chromosome the first bin begins."""
    size: int
    """Base pairs a bin."""
    around: float | None = None
    """Of a circle, in bins."""

    @property
    def mean(self) -> Array:
        """(b, b) of all folds."""
        return self.maps.mean(axis=0)

    @property
    def edges(self) -> NDArray[np.int64]:
        """(b + 1,) borders of the bins on the chromosome."""
        return self.start + self.size * np.arange(self.maps.shape[1] + 1)

    def contact_probability(self) -> tuple[Array, Array]:
        """Mean contacts (b,) at each distance of 0, 1, ... bins, and the standard error over folds; NaN where there is
        no such distance on a circle."""
        curves = np.array([by_distance(one, around=self.around) for one in self.maps])
        return curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))

    def convergence(self) -> Convergence:
        """How certain the mean map is."""
        return convergence(self.maps, self.around)


@dataclass(frozen=True)
class Ensemble:
    """Folds of one locus, two or more."""

    folds: tuple[Fold, ...]
    chromosome: str
    start: int
    """0-based place of the first base pair on the chromosome."""
    length: int
    """Base pairs."""
    resolution: int
    """Base pairs a bin of the folds' contact maps."""
    circular: bool = False
    turn: int = 0
    """Base pairs of a circle from ``start`` to the first one of scaffolds."""

    @classmethod
    def read(cls, paths: Iterable[str | Path], progress: Progress = silent) -> "Ensemble":
        """Read scaffold.h5 of every fold, one after the other; only what is measured of them is kept.

        Raises BadInputError for fewer than two and for folds of another locus, IntegrityError for a file that is
        damaged or missing.
        """
        paths, folds, whose = [Path(path) for path in paths], [], None
        if len(paths) < 2:
            raise BadInputError(f"{len(paths)} fold makes no ensemble: make two or more")
        for k, path in enumerate(paths):
            progress(f"reading fold {k + 1}", k / len(paths))
            scaffold = read_scaffold(path)
            start = int(scaffold.position.min())
            locus = (scaffold.chromosome, start, len(scaffold.base), scaffold.contact_resolution, scaffold.circular,
                     int(scaffold.position[0]) - start)
            if whose is not None and locus != whose:
                raise BadInputError(
                    f"{path} is a fold of {locus[0]}:{locus[1] + 1}-{locus[1] + locus[2]}, not of {whose[0]}:"
                    f"{whose[1] + 1}-{whose[1] + whose[2]} as {paths[0]}: take it out, or fold it again")
            whose = locus
            folds.append(measured_fold(scaffold, path.parent.name or path.stem))
        return cls(tuple(folds), *whose)

    def __len__(self) -> int:
        return len(self.folds)

    @property
    def base_pair_bin(self) -> int:
        """Base pairs a bin of the finest maps."""
        return base_pair_bin(self.length)

    def mean_map(self) -> tuple[Array, int]:
        """Mean contacts of a conformation at the folds' own resolution, and where the first bin begins."""
        total = np.zeros(self.folds[0].contact_map.shape)
        for fold in self.folds:
            total += fold.contact_map
        return total / len(self.folds), self.start // self.resolution * self.resolution

    def binned(self, size: int | None = None) -> BinnedMaps:
        """Maps of all folds in whole bins of ``size`` bp that begin at multiples of it; None: ``comparison_bin``.

        Raises BadInputError where the locus has too few of them.
        """
        size = size or comparison_bin(self.length)
        edges = whole_bins(self.start, self.length, size)
        begin = self.start // self.resolution * self.resolution
        place = begin + self.resolution * (np.arange(len(self.folds[0].contact_map)) + 0.5)
        maps = np.array([rebinned(fold.contact_map, place, edges) for fold in self.folds])
        return BinnedMaps(maps, int(edges[0]), size, self.length / size if self.circular else None)

    def nucleosome_map(self) -> tuple[Array, NDArray[np.int64]]:
        """Share of folds in which cores are within 25 nm (m, m), and the borders (m + 1,) of its bins: half way between
        the dyads of the first fold. Cores of other folds count where their dyads lie. Empty for DNA alone."""
        dyads = np.sort(self.folds[0].dyads)
        edges = np.array([self.start, *(dyads[:-1] + dyads[1:] + 1) // 2, self.start + self.length])
        total = np.zeros((len(edges) - 1, len(edges) - 1))
        for fold in self.folds:
            one, other = np.sort(np.searchsorted(edges, fold.core_pairs, side="right") - 1, axis=1).T
            np.add.at(total, (one, other), 1.0)
        return (total + np.triu(total, 1).T) / len(self.folds), edges

    def base_pair_map(self) -> tuple[csr_matrix, int]:
        """Mean pairs of base pairs within 5 nm of each other in bins of ``base_pair_bin``, upper triangle,
        and where the first bin begins."""
        total = self.folds[0].base_pairs.copy()
        for fold in self.folds[1:]:
            total = total + fold.base_pairs
        return total / len(self.folds), self.start // self.base_pair_bin * self.base_pair_bin

    @cached_property
    def clusters(self) -> Clusters:
        """Groups of folds that resemble each other."""
        return cluster_folds(differences(np.array([fold.path for fold in self.folds])))

    def representatives(self, count: int) -> tuple[int, ...]:
        """One fold, counted from 0, of each of ``count`` clusters.

        Raises BadInputError where there are fewer folds.
        """
        if not 1 <= count <= len(self):
            raise BadInputError(f"{count} representatives of {len(self)} folds: choose 1 to {len(self)}")
        return cluster_folds(self.clusters.difference, count).medoids

    def compact(self) -> int:
        """The fold, counted from 0, with the smallest box."""
        return int(np.argmin([fold.measures["box_volume_nm3"] for fold in self.folds]))

    def given(self, stretch: tuple[int, int]) -> tuple[int, int]:
        """First and end base pair of a stretch on the chromosome, as input files have it."""
        return given_interval(stretch, self.start, self.turn, self.length)

    def contact_frequencies(self, contacts: Sequence[Contact]) -> list[ContactFrequency]:
        """How often each of some contacts is closed, whether folds were given it or not."""
        given = [{(*entry["first"], *entry["second"]) for entry in fold.contacts} for fold in self.folds]
        circle = self.length if self.circular else None
        shares = np.mean([closed_contacts(fold.sites, contacts, circle) for fold in self.folds], axis=0)
        owned = [float(np.mean([(*one.first, *one.second) in those for those in given])) for one in contacts]
        return [ContactFrequency(one, own, float(share), float(np.sqrt(share * (1 - share) / len(self))))
                for one, own, share in zip(contacts, owned, shares, strict=True)]


def read_scaffold(path: Path) -> Scaffold:
    """scaffold.h5. Raises IntegrityError for a file that is damaged or missing."""
    try:
        return Scaffold.read(path)
    except ValueError as error:
        raise IntegrityError(str(error)) from None


def measured_fold(scaffold: Scaffold, name: str) -> Fold:
    """What is kept of a scaffold."""
    origin, cores = scaffold.origin * _NM, scaffold.core_origin * _NM
    position, conformations = scaffold.position, sampled_conformations(scaffold)
    pairs = cKDTree(cores).query_pairs(CONTACT_DISTANCE, output_type="ndarray") if len(cores) else np.zeros((0, 2), int)
    dyads = position[scaffold.dyad]
    names = {"radius_of_gyration": "radius_of_gyration_nm", "end_to_end": "end_to_end_nm",
             "sedimentation_coefficient": "sedimentation_coefficient_svedberg",
             "packing_ratio": "nucleosomes_per_11_nm", "contacts": "core_contacts"}
    measures = {new: float(scaffold.observables[old]) for old, new in names.items() if old in scaffold.observables}
    try:
        measures["territory_nm3"] = float(ConvexHull(origin[::_HULL_STEP]).volume)
    except (QhullError, ValueError):  # of a few points, or of points in a plane
        measures["territory_nm3"] = 0.0
    measures["box_volume_nm3"] = box_volume(origin[::_HULL_STEP])
    return Fold(name, scaffold.provenance.get("seed"), conformations,
                (scaffold.contact_map / conformations).astype(np.float32), dyads[pairs].reshape(-1, 2),
                base_pair_contacts(origin, position),
                origin[places(len(origin))], contact_sites(scaffold), list(scaffold.contacts), dyads, measures)


def contact_sites(scaffold: Scaffold) -> NDArray[np.float32]:
    """Every _SITE_STEP base pairs of a scaffold, the centre of the core that it is wrapped on, or the base pair; nm."""
    core = scaffold.nucleosome[::_SITE_STEP]
    sites = scaffold.origin[::_SITE_STEP].copy()
    sites[core >= 0] = scaffold.core_origin[core[core >= 0]]
    return (_NM * sites).astype(np.float32)


def closed_contacts(sites: np.ndarray, contacts: Sequence[Contact], circle: int | None = None) -> NDArray[np.bool_]:
    """Of each contact (c,) whether the middles of its stretches are together, as a contact counts as kept; ``circle``:
    base pairs of one."""
    def site(first: int, end: int) -> int:
        middle = (first + end - 1) / 2
        if circle is None:
            return min(round(middle / _SITE_STEP), len(sites) - 1)
        nearest = round(middle % circle / _SITE_STEP)
        return nearest if nearest < len(sites) else 0

    ends = [[site(*one.first), site(*one.second)] for one in contacts]
    pairs = np.array(ends, int).reshape(-1, 2)
    return np.linalg.norm(sites[pairs[:, 0]] - sites[pairs[:, 1]], axis=1) <= KEPT * Parameters().contact_distance


def sampled_conformations(scaffold: Scaffold) -> int:
    """Conformations over which a scaffold's contact map was summed: those after burn-in, or the only one."""
    records = len(scaffold.energy.get("sweep", ()))
    told = scaffold.provenance.get("settings", {}).get("scaffold", {})
    flexible = told.get("tails") == "flexible" and len(scaffold.dyad) > 0
    blocks = block_count(told["sweeps"], flexible) if "sweeps" in told else records - 1
    burn_in = int(np.ceil(BURN_IN * blocks)) if blocks > 1 else 0
    return max(1, records - 1 - burn_in)


def whole_bins(start: int, length: int, size: int) -> NDArray[np.int64]:
    """Borders (b + 1,) of the bins of ``size`` bp, which begin at multiples of it, that lie wholly in a locus.

    Raises BadInputError where there are fewer than FEWEST_BINS, or bins are finer than the contact maps of folds.
    """
    finest = max(FINEST_MAP, 10 * -(-length // (10 * MOST_BINS)))
    first, last = -(-start // size), (start + length) // size
    if size < finest:
        raise BadInputError(f"ensemble.bin = {size} is finer than the contact maps of folds, whose bins are "
                            f"{finest} bp for {length} bp: choose {finest} or more")
    if last - first < FEWEST_BINS:
        raise BadInputError(f"ensemble.bin = {size}: the locus of {length} bp has {max(0, last - first)} such bins, of "
                            f"{FEWEST_BINS} that are needed: choose smaller bins ({finest} bp at least) or a longer "
                            "locus")
    return size * np.arange(first, last + 1)


def comparison_bin(length: int) -> int:
    """Base pairs a bin in which maps are compared where nothing else is said: USUAL_BIN, of a short locus less.

    >>> comparison_bin(83000), comparison_bin(12000), comparison_bin(679)
    (2000, 600, 50)
    """
    return min(USUAL_BIN, max(50, length // 20 // 50 * 50))


def summary_of(values: Sequence[float]) -> dict[str, float]:
    """Mean, standard error, standard deviation and range of a measure over folds."""
    found = np.asarray(values, float)
    deviation = float(found.std(ddof=1)) if len(found) > 1 else float("nan")
    return {"mean": float(found.mean()), "error": deviation / len(found) ** 0.5, "deviation": deviation,
            "least": float(found.min()), "most": float(found.max())}
