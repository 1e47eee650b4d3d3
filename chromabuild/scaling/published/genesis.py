"""The FFT of GENESIS on Oakforest-PACS (Jung et al. 2019): 1d against 2d all-to-all, and the shares of table 3.

32 ranks a node, consecutive along x, on a fat tree of full bisection, so that a node's own cable decides. An all-to-all
costs alpha a partner and rank, and the bytes that leave the node over an effective bandwidth (single precision waves;
in double precision it would be twice as large). Both constants follow from two figures for 2048^3: the two schemes
cost the same on 32,768 ranks ("more than 32,768: 1d is better"), and 1d takes 27.70 ms there and back on 65,536.
Figures 4 and 5 themselves are not in the text.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild.scaling.published.comparison import Claim, Entry

RANKS_A_NODE = 32
WAVE_BYTES = 8
ALL_TO_ALLS = {"1d": ("x", "x", "y", "y", "z"), "2d": ("x", "xy", "z"), "pencil": ("y", "z")}
"""Axes of the process grid of each all-to-all of a forward transform; pencils lie on a grid of 1 x P1 x P2."""
TABLE_3 = {"real": 2272.25 / 50_000, "reciprocal": 5493.88 / 50_000}
"""Seconds a step of 1e9 atoms on 65,536 ranks (Trinity)."""
ATOMS, ATOMS_SMALL, RANKS_SMALL = 1e9, 230e6, 2048


@dataclass(frozen=True)
class Load:
    """Of a forward transform: partners of a rank in all exchanges together, bytes that leave a node."""

    partners: int
    node_bytes: float


def rank_grid(ranks: int, scheme: str) -> tuple[int, int, int]:
    """Powers of two, as even as can be, the larger ones last."""
    k = int(np.log2(ranks))
    if scheme == "pencil":
        return 1, 2 ** (k // 2), 2 ** (k - k // 2)
    return 2 ** (k // 3), 2 ** ((k - k // 3) // 2), 2 ** (k - k // 3 - (k - k // 3) // 2)


def load(n: int, ranks: int, scheme: str) -> Load:
    """n^3 points, half of the waves."""
    grid = dict(zip("xyz", rank_grid(ranks, scheme), strict=True))
    # The block of ranks that a node holds: x first.
    block, left = {}, RANKS_A_NODE
    for axis in "xyz":
        block[axis] = min(grid[axis], left)
        left //= block[axis]
    volume = n**3 / 2 / ranks * WAVE_BYTES * RANKS_A_NODE
    partners, away = 0, 0.0
    for axes in ALL_TO_ALLS[scheme]:
        members = int(np.prod([grid[axis] for axis in axes]))
        near = int(np.prod([block[axis] for axis in axes]))
        partners += members - 1
        away += volume * (members - near) / members
    return Load(partners, away)


@cache
def constants() -> tuple[float, float]:
    """Seconds a partner; bytes a second of a node."""
    one, two, late = load(2048, 32_768, "1d"), load(2048, 32_768, "2d"), load(2048, 65_536, "1d")
    equations = [[one.partners - two.partners, one.node_bytes - two.node_bytes],
                 [2 * late.partners, 2 * late.node_bytes]]
    alpha, inverse = np.linalg.solve(equations, [0.0, 27.70e-3])
    return float(alpha), float(1 / inverse)


def transform_time(n: int, ranks: int, scheme: str) -> float:
    """Seconds of communication, there and back."""
    alpha, bandwidth = constants()
    forward = load(n, ranks, scheme)
    return 2 * (forward.partners * alpha + forward.node_bytes / bandwidth)


def crossover(n: int) -> int:
    """The least power of two of ranks, from 2,048, from which on 1d is not slower than 2d."""
    slower = [ranks for ranks in 2 ** np.arange(11, 18)
              if transform_time(n, int(ranks), "1d") > 1.0001 * transform_time(n, int(ranks), "2d")]
    return int(2 * max(slower)) if slower else 2048


def reciprocal_share() -> float:
    """Reciprocal over reciprocal and real time of table 3. Real time an atom from table 3; the computing part of
    the reciprocal time a grid point from "real is twice reciprocal" for 230 million atoms on 2,048 ranks."""
    real_small = TABLE_3["real"] * (ATOMS_SMALL / RANKS_SMALL) / (ATOMS / 65_536)
    computing = (real_small / 2 - transform_time(1024, RANKS_SMALL, "1d")) / (1024**3 / RANKS_SMALL)
    reciprocal = computing * 2048**3 / 65_536 + transform_time(2048, 65_536, "1d")
    return reciprocal / (reciprocal + TABLE_3["real"])


def entries() -> list[Entry]:
    measured = TABLE_3["reciprocal"] / (TABLE_3["reciprocal"] + TABLE_3["real"])
    return [
        Entry("2048^3: ranks from which 1d is not slower", 32_768, crossover(2048), "", fitted=True),
        Entry("2048^3, 1d, 65,536 ranks", 27.70, 1e3 * transform_time(2048, 65_536, "1d"), "ms", fitted=True),
        Entry("2048^3, pencils (MKL), 65,536 ranks", 34.22, 1e3 * transform_time(2048, 65_536, "pencil"), "ms",
              bar=0.15),
        Entry("table 3: reciprocal / (reciprocal + real)", 100 * measured, 100 * reciprocal_share(), "%", bar=0.15),
    ]


def claims() -> list[Claim]:
    times = {ranks: [1e3 * transform_time(1024, ranks, scheme) for scheme in ("1d", "2d")]
             for ranks in (2048, 8192, 16_384, 32_768)}
    detail = "; ".join(f"{ranks}: {a:.1f} and {b:.1f} ms" for ranks, (a, b) in times.items())
    big = [1e3 * transform_time(2048, 65_536, scheme) for scheme in ("1d", "2d", "pencil")]
    return [Claim("1024^3: 2d is better on few ranks, 1d on many",
                  times[2048][1] < times[2048][0] and times[32_768][0] < times[32_768][1],
                  f"1d and 2d on {detail}: from {crossover(1024):,} ranks"),
            Claim("2048^3: 1d is faster than pencils", big[0] < big[2], f"1d {big[0]:.1f}, pencils {big[2]:.1f} ms")]
