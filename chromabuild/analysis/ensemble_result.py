"""What was found of an ensemble, as numbers and as tidy tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chromabuild.analysis.agreement import MapComparison, compare
from chromabuild.analysis.contact_statistics import by_distance, seen_bins
from chromabuild.analysis.convergence import Convergence
from chromabuild.analysis.ensemble import BinnedMaps, ContactFrequency, Ensemble, summary_of
from chromabuild.analysis.tables import Table
from chromabuild.base.summary import Summary

LEAST_CORRELATION = 0.5
"""Correlations of distance-normalised maps from which on an ensemble agrees with its map."""
SLOPE_TOLERANCE = 0.25
"""Largest difference of the exponents of contacts against distance for which it does."""


@dataclass(frozen=True)
class EnsembleResult:
    """Folds, their maps in the bins of the comparison, and the measured map in the same bins."""

    ensemble: Ensemble
    numbers: tuple[int, ...]
    """Of the folds, from 1."""
    binned: BinnedMaps
    measured: NDArray[np.float64] | None
    """(b, b) counts."""
    held_out: NDArray[np.bool_] | None
    """(b, b) pixels that restrained no fold."""
    slope_range: tuple[float, float]
    """bp."""
    reliability: float
    """That the map is to have."""
    contacts: Sequence[ContactFrequency]
    targets: NDArray[np.float64]
    """(c,) frequencies that the contacts shall have."""
    left_out: Mapping[int, str]
    """Folds that were given up, and why."""

    @cached_property
    def convergence(self) -> Convergence:
        """How certain the mean map is."""
        return self.binned.convergence()

    @property
    def is_reliable(self) -> bool:
        """Whether the mean map is as reliable as it is to be."""
        found = self.convergence.reliability
        return found is not None and found >= self.reliability

    @cached_property
    def comparison(self) -> MapComparison | None:
        """Agreement with the measured map; None where there is none."""
        if self.measured is None:
            return None
        return compare(self.binned.mean, self.measured, self.binned.size, self.slope_range, self.held_out,
                       self.binned.around)

    def judged(self) -> list[tuple[str, float | None, str, bool | None]]:
        """Measures of agreement: what, its value, what is good, and whether it is; None where it cannot be told."""
        rows = [("reliability of the mean map", self.convergence.reliability, f"{self.reliability:g} or more",
                 self.is_reliable)]
        found = self.comparison
        if found is None:
            return rows
        groups = [("all pixels", found.everywhere)]
        if found.held_out is not None:
            groups.append(("held-out pixels", found.held_out))
        for where, one in groups:
            for what, value in (("Pearson", one.pearson), ("Spearman", one.spearman),
                                ("stratum-adjusted", one.stratum_adjusted)):
                rows.append((f"{what} correlation, {where} ({one.pixels})", value, f"{LEAST_CORRELATION:g} or more",
                             None if value is None else value >= LEAST_CORRELATION))
        rows.append(("stratum-adjusted correlation of smoothed maps, all pixels", found.smoothed,
                     f"{LEAST_CORRELATION:g} or more",
                     None if found.smoothed is None else found.smoothed >= LEAST_CORRELATION))
        if found.measured_slope is not None:
            low, high = found.measured_slope - SLOPE_TOLERANCE, found.measured_slope + SLOPE_TOLERANCE
            rows.append((f"slope of contacts, {self.slope_range[0] / 1000:g} to {self.slope_range[1] / 1000:g} kb",
                         found.slope, f"{low:.2f} to {high:.2f}",
                         None if found.slope is None else low <= found.slope <= high))
        return rows

    def measures(self) -> dict[str, dict[str, float]]:
        """Mean, error and spread of what was measured of every fold."""
        folds = self.ensemble.folds
        names = [name for name in folds[0].measures if all(name in fold.measures for fold in folds)]
        return {name: summary_of([fold.measures[name] for fold in folds]) for name in names}

    def summary(self) -> Summary:
        """The numbers that matter."""
        clusters, found = self.ensemble.clusters, self.convergence
        result: Summary = {
            "folds": len(self.ensemble), "left_out": len(self.left_out), "bin": self.binned.size,
            "split_half": found.split_half, "reliability": found.reliability,
            "relative_error": found.relative_error, "reliable": self.is_reliable,
            "clusters": len(clusters.medoids), "representatives": [self.numbers[k] for k in clusters.medoids],
            "typical": self.numbers[clusters.typical], "compact": self.numbers[self.ensemble.compact()]}
        measures = self.measures()
        result |= {name: values["mean"] for name, values in measures.items()}
        result["standard_errors"] = {name: float(f"{values['error']:.3g}") for name, values in measures.items()}
        if self.comparison is not None:
            for where, one in (("", self.comparison.everywhere), ("held_out_", self.comparison.held_out)):
                if one is not None:
                    result |= {f"{where}{name}": value for name, value in one.as_dict().items()}
            result |= {"smoothed_stratum_adjusted": self.comparison.smoothed, "slope": self.comparison.slope,
                       "measured_slope": self.comparison.measured_slope}
        return result

    def curves(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
        """Contacts (b,) at each distance in bins as shares of those one bin apart or more: of the folds, the standard
        error of that, and of the measured map."""
        mean, error = self.binned.contact_probability()
        whole = np.nansum(mean[1:])
        if self.measured is None:
            return mean / whole, error / whole, None
        around = self.binned.around
        data = by_distance(self.measured, seen_bins(self.measured, around), around)
        return mean / whole, error / whole, data / np.nansum(data[1:])

    def tables(self) -> dict[str, Table]:
        """By the name of the file."""
        folds, clusters = self.ensemble.folds, self.ensemble.clusters
        names = list(self.measures())
        of_folds = Table(("fold", "seed", "conformations", "cluster", *names), [
            (number, "" if fold.seed is None else fold.seed, fold.conformations, int(cluster) + 1,
             *(fold.measures[name] for name in names))
            for number, fold, cluster in zip(self.numbers, folds, clusters.cluster, strict=True)])
        measures = Table(("quantity", "mean", "error", "deviation", "least", "most"), [
            (name, *values.values()) for name, values in self.measures().items()])
        mean, error, data = self.curves()
        probability = Table(("distance_bp", "share", "error", "measured_share"), [
            (k * self.binned.size, mean[k], error[k], "" if data is None else data[k]) for k in range(1, len(mean))
            if np.isfinite(mean[k])])
        contacts = Table(("first_start", "first_end", "second_start", "second_end", "weight", "given_share", "target",
                          "frequency", "error"), [
            (*self.ensemble.given(one.contact.first), *self.ensemble.given(one.contact.second), one.contact.weight,
             one.given,
             target, one.frequency, one.error) for one, target in zip(self.contacts, self.targets, strict=True)])
        agreement = Table(("measure", "value", "good", "verdict"), [
            (what, float("nan") if value is None else value, good, {True: "good", False: "bad", None: ""}[is_good])
            for what, value, good, is_good in self.judged()])
        groups = Table(("cluster", "folds", "representative", "members"), [
            (k + 1, int((clusters.cluster == k).sum()), self.numbers[medoid],
             " ".join(str(self.numbers[i]) for i in np.flatnonzero(clusters.cluster == k)))
            for k, medoid in enumerate(clusters.medoids)])
        return {"folds": of_folds, "measures": measures, "contact_probability": probability, "contacts": contacts,
                "agreement": agreement, "clusters": groups}
