"""Which waters become ions, and the formal charges that decide how many."""

from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.errors import BadInputError
from chromabuild.residues import residue_library

WATER_MOLARITY = 55.5
"""mol/L of pure water: salt of c mol/L is one ion pair for every 55.5 / c waters of the box before ions are placed."""

MINIMUM_DISTANCE = 5000
"""Between an ion and the solute, and between ions (0.001 angstrom)."""

_STREAM = 0x696F6E73
"""Second half of the Philox key: separates the choice of ions from every other use of the seed."""

_SIDE_CHAIN = {"ASP": -1, "GLU": -1, "LYS": 1, "ARG": 1, "HIP": 1}
_ION = {"NA": 1, "K": 1, "CL": -1, "MG": 2}


@cache
def formal_charges() -> np.ndarray:
    """(t,) int64 charge of every residue of the library, elementary charges.

    Nucleotides carry their 5' phosphate, so a strand of n with a 5'-OH end has n - 1 charges. Summed over a molecule
    these are the AMBER charges (a single terminal nucleotide of AMBER has a fraction, its strand has not).
    """
    return np.array([_formal_charge(name) for name in residue_library()], dtype=np.int64)


def _formal_charge(name: str) -> int:
    template = residue_library()[name]
    if template.kind == "ion":
        return _ION[name]
    if template.kind == "water":
        return 0
    if template.kind == "nucleotide":
        return 0 if name.endswith("5") else -1
    terminal = {"N": 1, "C": -1}[name[0]] if len(name) == 4 else 0
    return _SIDE_CHAIN.get(name[-3:], 0) + terminal


def ion_counts(solute_charge: int, n_waters: int, salt: float) -> tuple[int, int]:
    """Na+ and Cl- that make the box neutral with ``salt`` mol/L of NaCl beyond that."""
    pairs = round(salt * n_waters / WATER_MOLARITY)
    return pairs + max(0, -solute_charge), pairs + max(0, solute_charge)


def slot_priorities(seed: int, first: int, count: int) -> np.ndarray:
    """(count,) uint64: random numbers of slots first .. first+count-1, each a function of seed and slot alone."""
    skipped = first % 4  # Philox makes four numbers a counter value
    generator = np.random.Philox(key=[seed % 2**64, _STREAM], counter=first // 4)
    return generator.random_raw(count + skipped)[skipped:]


def choose_slots(priority: np.ndarray, position: np.ndarray, box: np.ndarray, wanted: int) -> np.ndarray:
    """Indices of at most ``wanted`` candidates, lowest priority number first, none within 5 A of an earlier one.

    ``position`` (c, 3) and ``box`` are whole numbers of 0.001 angstrom, so distances compare exactly.
    Adding candidates of higher numbers never changes earlier choices.
    """
    order = np.argsort(priority, kind="stable")
    if MINIMUM_DISTANCE >= box.min() / 2:
        raise BadInputError(f"a box edge of {box.min() / 1000:.1f} A is too short for ions: "
                            "use a larger padding or box")
    tree = cKDTree(position[order].astype(np.float64), boxsize=box)
    pairs = tree.query_pairs(MINIMUM_DISTANCE, output_type="ndarray")
    earlier, later = pairs.min(axis=1), pairs.max(axis=1)
    blocked = np.zeros(len(order), dtype=bool)
    for i in np.lexsort((earlier, later)):  # a candidate is decided before its later neighbours ask for it
        if not blocked[earlier[i]]:
            blocked[later[i]] = True
    return order[~blocked][:wanted]
