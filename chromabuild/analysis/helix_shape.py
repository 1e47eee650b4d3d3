"""Shape of a double helix from its base pairs and phosphates: groove widths, bends, hydrogen bonds, frayed ends."""

import numpy as np

from chromabuild.analysis.nucleotides import PLACE, Nucleotides, Pairs

GROOVES = ("minor", "minor_refined", "major", "major_refined")
WINDOW = 10
"""Steps whose helix axes are averaged to a direction: about a turn, in which wobbles cancel."""
BOND = 3.5
"""Longest hydrogen bond between heavy atoms, angstrom."""
BROKEN = 4.0
"""A pair whose N1 and N3 are farther apart is open, angstrom."""
_BONDS = {"A": (("N6", "O4"), ("N1", "N3")), "G": (("O6", "N4"), ("N1", "N3"), ("N2", "O2")),
          "T": (("O4", "N6"), ("N3", "N1")), "C": (("N4", "O6"), ("N3", "N1"), ("O2", "N2"))}


def _moved(values: np.ndarray, by: int, closed: bool) -> np.ndarray:
    """Row k + ``by`` at row k; NaN beyond the ends of what is not closed."""
    moved = np.roll(values, -by, axis=0)
    if not closed:
        moved[len(values) - by if by >= 0 else 0:len(values) if by >= 0 else -by] = np.nan
    return moved


def _apart(one: np.ndarray, other: np.ndarray, along: np.ndarray | None = None) -> np.ndarray:
    """Distances (m,); where directions (m, 3) are given, only what stands across them counts."""
    vector = other - one
    square = np.sum(vector**2, axis=1)
    if along is not None:
        square = square - np.sum(vector * along, axis=1) ** 2 / np.sum(along**2, axis=1)
    return np.sqrt(np.maximum(square, 0.0))


def groove_widths(pairs: Pairs, place: np.ndarray) -> np.ndarray:
    """(m, 4) widths ``GROOVES`` at every step, angstrom: distances between P atoms, van der Waals radii not subtracted.

    After El Hassan & Calladine, J. Mol. Biol. 282, 331 (1998), as 3DNA reports them. Minor groove: mean of the two
    P-P distances three steps apart around the step; major groove: P of strand I two steps before, of strand II two
    steps behind. Refined: the part of the distance across the mean direction of both backbones, each from the P before
    to the P behind. NaN where a P is missing, near the ends. ``place`` (r, 27, 3) as of ``Nucleotides.positions``.
    """
    after = np.roll(pairs.first, -1)[:pairs.steps]
    one, two = place[after, PLACE["P"]], place[pairs.second[:pairs.steps], PLACE["P"]]  # within each step

    def at(strand: np.ndarray, by: int) -> np.ndarray:
        return _moved(strand, by, pairs.closed)

    def direction(strand: np.ndarray, by: int) -> np.ndarray:
        along = at(strand, by + 1) - at(strand, by - 1)
        return along / np.linalg.norm(along, axis=1)[:, None]

    def width(first: int, second: int, refined: bool) -> np.ndarray:
        along = direction(one, first) + direction(two, second) if refined else None
        return _apart(at(one, first), at(two, second), along)

    columns = []
    for refined in (False, True):
        columns += [0.5 * (width(2, -1, refined) + width(1, -2, refined)), width(-2, 2, refined)]
    return np.stack([columns[0], columns[2], columns[1], columns[3]], axis=1)


def helix_axes(frame: np.ndarray, closed: bool = False) -> np.ndarray:
    """(m, 3) unit vectors along the axis about which each base pair of (n, 3, 3) turns into the next."""
    after = np.roll(frame, -1, axis=0)
    x, y = after[..., 0] - frame[..., 0], after[..., 1] - frame[..., 1]
    axis = np.cross(x, y)
    axis = np.where(np.sum(axis * (after[..., 2] + frame[..., 2]), axis=1)[:, None] < 0, -axis, axis)
    length = np.linalg.norm(axis, axis=1)[:, None]
    middle = after[..., 2] + frame[..., 2]
    # Frames that do not turn have no axis of turning: their own z stands for it.
    axis = np.where(length > 1e-9, axis / np.where(length > 1e-9, length, 1.0),
                    middle / np.linalg.norm(middle, axis=1)[:, None])
    return axis if closed else axis[:-1]


def _angle(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Degree between vectors (..., 3) of any length."""
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(one, other), axis=-1), np.sum(one * other, axis=-1)))


def local_bends(axis: np.ndarray, closed: bool = False, window: int = WINDOW) -> np.ndarray:
    """(m,) degree between the mean axes of ``window`` steps before and behind each step, itself left out.

    ``axis`` (m, 3) of ``helix_axes``. NaN nearer to an end than the window.
    """
    m = len(axis)
    bend = np.full(m, np.nan)
    if m < 2 * window + 1:
        return bend
    padded = np.concatenate([axis[-window:], axis, axis[:window]]) if closed else axis
    total = np.cumsum(np.concatenate([np.zeros((1, 3)), padded]), axis=0)
    mean = total[window:] - total[:-window]  # of the window that begins at each row
    angle = _angle(mean[:-window - 1], mean[window + 1:])
    if closed:
        return angle
    bend[window:m - window] = angle
    return bend


def end_to_end_bend(axis: np.ndarray, window: int = WINDOW) -> float:
    """Degree between the mean axes of the first and of the last ``window`` steps of a stretch (m, 3), of fewer if it
    is short."""
    window = min(window, len(axis) // 2)
    return float(_angle(axis[:window].sum(axis=0), axis[-window:].sum(axis=0))) if window else float("nan")


def hydrogen_bonds(nucleotides: Nucleotides, pairs: Pairs, place: np.ndarray) -> np.ndarray:
    """(n, 3) distances of the heavy atoms of Watson-Crick bonds, angstrom: N6-O4 or O6-N4, N1-N3, N2-O2 (NaN in AT).

    ``place`` (r, 27, 3) as ``Nucleotides.positions`` gives it.
    """
    distance = np.full((len(pairs.first), 3), np.nan)
    letter = nucleotides.letter[pairs.first]
    for kind, bonds in _BONDS.items():
        rows = np.flatnonzero(letter == kind)
        for column, (mine, other) in enumerate(bonds):
            vector = place[pairs.first[rows], PLACE[mine]] - place[pairs.second[rows], PLACE[other]]
            distance[rows, column] = np.linalg.norm(vector, axis=1)
    return distance


def bonds_kept(distance: np.ndarray) -> np.ndarray:
    """(..., n) how many hydrogen bonds of each pair are at most ``BOND`` long, of ``hydrogen_bonds``."""
    return np.sum(distance <= BOND, axis=-1)


def is_open(distance: np.ndarray) -> np.ndarray:
    """(..., n) whether each pair is open, of ``hydrogen_bonds``."""
    return distance[..., 1] > BROKEN


def frayed(opened: np.ndarray) -> np.ndarray:
    """(..., 2) open pairs in a row at both ends of a duplex, from ``is_open`` (..., n)."""
    return np.stack([np.cumprod(opened, axis=-1).sum(axis=-1), np.cumprod(opened[..., ::-1], axis=-1).sum(axis=-1)], -1)
