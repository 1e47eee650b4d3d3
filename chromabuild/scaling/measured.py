"""What was measured of chromamd: time of a step on one core, the gain of threads, memory of a process.

The numbers lie in data/ with processor and date; benchmarks/measure_step.py makes them.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
CUTOFF, LIST_DISTANCE, SPLINE_ORDER, GRID_SPACING = 12.0, 13.5, 4, 1.2
"""Settings of the measured steps: angstrom, angstrom, points, angstrom."""


@dataclass(frozen=True)
class StepSettings:
    """What the cost of a step depends on. Lengths in angstrom; `spline_order` in points."""

    cutoff: float = CUTOFF
    list_distance: float = LIST_DISTANCE
    spline_order: int = SPLINE_ORDER
    grid_spacing: float = GRID_SPACING

    def work_ratio(self) -> dict[str, float]:
        """Work an atom over that with the measured settings, of the parts that differ.

        Pairs go with the volume within the cutoff or list; spreading with the cube of the order (Essmann et al. 1995),
        and the points of the grid with the inverse cube of its spacing. Their product is the upper bound of the two.
        """
        return {"real space": (self.cutoff / CUTOFF) ** 3, "pair list": (self.list_distance / LIST_DISTANCE) ** 3,
                "reciprocal": (self.spline_order / SPLINE_ORDER) ** 3 * (GRID_SPACING / self.grid_spacing) ** 3}


@dataclass(frozen=True)
class MeasuredCore:
    """The core on which the steps were measured."""

    name: str
    date: str
    instruction_set: str
    clock_ghz: float
    single_flops_per_cycle: float

    @property
    def gigaflops(self) -> float:
        """Peak in single precision, in which forces are computed."""
        return self.clock_ghz * self.single_flops_per_cycle


def _read(name: str) -> dict:
    return json.loads((DATA / name).read_text())


@cache
def core() -> MeasuredCore:
    record = _read("measured_step.json")
    return MeasuredCore(record["processor"], record["measured"], record["instruction_set"], record["clock_ghz"],
                        record["single_flops_per_cycle"])


@cache
def step_cost(settings: StepSettings, reciprocal: bool | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Atoms of the measured boxes (k,), ascending, and seconds an atom and step (k,) with these settings; `reciprocal`:
    of reciprocal space alone, or of all but it. A smaller box, which has more surface, is taken to cost an atom at
    least as much as a larger one: processor times of a shared machine scatter by more than some of the differences."""
    boxes = _read("measured_step.json")["boxes"]
    ratio = settings.work_ratio()
    cost = [sum(value * ratio.get(part, 1.0) for part, value in box["microseconds_per_atom"].items()
                if reciprocal is None or (part == "reciprocal") == reciprocal) for box in boxes]
    return (np.array([box["atoms"] for box in boxes], dtype=float),
            1e-6 * np.maximum.accumulate(np.array(cost)[::-1])[::-1])


@cache
def serial_share() -> float:
    """Share of a step that threads do not divide, from the largest number of threads measured (Amdahl's law)."""
    times = {int(n): t for n, t in _read("measured_threads.json")["milliseconds"].items()}
    most = max(times)
    return max(0.0, (most * times[most] / times[1] - 1) / (most - 1))


def thread_gain(threads: int) -> float:
    """How many times faster a rank of so many threads is than one of a single thread."""
    return 1 / (serial_share() + (1 - serial_share()) / threads)


def rank_memory(atoms: float) -> float:
    """Bytes of a process with so many atoms: a line between the measured sizes, from the program's own to the smallest,
    and as many bytes an atom as the largest beyond it."""
    record = _read("measured_memory.json")
    size = np.array([0.0, *(entry["atoms"] for entry in record["runs"])])
    total = np.array([record["program_bytes"],
                      *(entry["atoms"] * entry["bytes_per_atom"] for entry in record["runs"])])
    if atoms > size[-1]:
        return float(atoms * total[-1] / size[-1])
    return float(np.interp(atoms, size, total))
