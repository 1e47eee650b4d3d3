"""What the analyses here share: measures of one frame after another, by any backend of MDAnalysis."""

import functools
import operator
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from MDAnalysis.analysis.backends import BackendBase
from MDAnalysis.analysis.base import AnalysisBase
from MDAnalysis.analysis.results import ResultsGroup

from chromabuild.base.errors import BadInputError
from chromabuild.base.forks import map_in_forks

if TYPE_CHECKING:
    import MDAnalysis


class FrameAnalysis(AnalysisBase):
    """An analysis whose results are those of ``measures`` for every frame, along their first axis.

    ``run`` raises BadInputError at a frame with positions that are not numbers.
    """

    _analysis_algorithm_is_parallelizable = True
    MEASURES: ClassVar[dict[str, type]] = {}
    """Name to type of each result."""
    TOTALS: ClassVar[tuple[str, ...]] = ()
    """Further results, arrays or sparse matrices, which are summed over the frames."""

    def __init__(self, universe: "MDAnalysis.Universe", verbose: bool = False) -> None:
        super().__init__(universe.trajectory, verbose=verbose)

    @classmethod
    def get_supported_backends(cls) -> tuple[str, ...]:
        """Those of MDAnalysis."""
        return ("serial", "multiprocessing", "dask")

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What is kept of one frame, from all atoms (n, 3) and the box of the universe."""
        raise NotImplementedError

    def _prepare(self) -> None:
        for name in self.MEASURES:
            self.results[name] = []

    def _single_frame(self) -> None:
        if not np.isfinite(self._ts.positions).all():
            raise BadInputError(f"frame {self._ts.frame + 1} of {self._trajectory.filename or 'the frames in memory'} "
                                "holds positions that are not numbers: copy the file again, or leave out what follows")
        for name, values in self.measures(self._ts.positions, self._ts.dimensions).items():
            if name in self.TOTALS:
                self.results[name] = self.results[name] + values if name in self.results else values
            else:
                self.results[name].append(np.asarray(values, dtype=self.MEASURES[name]))

    def _get_aggregator(self) -> ResultsGroup:
        return ResultsGroup(dict.fromkeys(self.MEASURES, ResultsGroup.flatten_sequence)
                            | dict.fromkeys(self.TOTALS, _summed))

    def _conclude(self) -> None:
        for name, kind in self.MEASURES.items():
            self.results[name] = np.array(self.results[name], dtype=kind)


def _summed(parts: list) -> object:
    """Of processes; ``numpy.sum`` would take no sparse matrices."""
    return functools.reduce(operator.add, parts)


class ForkBackend(BackendBase):
    """Processes as those of MDAnalysis' ``multiprocessing``, which end for certain and whose death is noticed."""

    def apply(self, func: Callable, computations: list) -> list:
        """``func`` of every computation; each process opens the trajectory for itself."""
        packed = pickle.dumps(func)
        return list(map_in_forks(lambda computation: pickle.loads(packed)(computation), computations, self.n_workers))
