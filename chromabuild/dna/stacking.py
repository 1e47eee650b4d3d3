"""Bases that do not overlap: a sequence threaded on the path of another one stacks badly where the path is kinked.

Base pairs of a core keep the frames of the crystal, but the crystal's base pairs had their own buckle and propeller.
Here every base is a rigid body, tethered to where its base pair puts it, elastic against its partner, and pushed off
the bases of the neighbouring pairs. The minimum is found by Gauss-Newton; the normal matrix is banded, because a pair
meets only the next one.
"""

import numpy as np
from scipy.linalg import solveh_banded
from scipy.spatial.transform import Rotation

from chromabuild.dna.backbone import base_layout
from chromabuild.dna.steps import FLIP, analyse, rotation_from_vector

PAIR_DEVIATION = np.array([0.2, 0.1, 0.3, 7.4, 6.6, 3.0])
"""Shear ... opening: of the order of the spread within PDB 1KX5, tighter where hydrogen bonds would suffer."""
TETHER = (0.4, np.radians(6.0))  # angstrom, radian
CONTACT = 3.15  # angstrom, between carbon or nitrogen of stacked bases
CONTACT_OXYGEN = 2.9  # angstrom, when one of them is oxygen
CONTACT_DEVIATION = 0.1
REACH = 4.2  # angstrom: pairs of atoms farther apart at the start never come into contact
ITERATIONS = 7
CONVERGED = 5e-3  # angstrom and radian
PIECE, MARGIN = 1500, 24  # base pairs


def _contacts(atoms: np.ndarray, size: np.ndarray, oxygen: np.ndarray) -> tuple[np.ndarray, ...]:
    """Atom pairs of bases in consecutive base pairs within reach.

    Args:
        atoms: (n, 2, 11, 3) base atoms of both strands by base pair.
        size: (n, 2) atoms of each base.
        oxygen: (n, 2, 11).

    Returns:
        Flat base index and atom of the first, the same of the second, and the contact distance, each (k,).
    """
    exists = np.arange(atoms.shape[2]) < size[..., None]
    found = []
    for s in (0, 1):
        for t in (0, 1):
            a, b = atoms[:-1, s], atoms[1:, t]
            squared = sum((a[:, :, None, c] - b[:, None, :, c]) ** 2 for c in range(3))
            k, i, j = np.nonzero((squared < REACH**2) & exists[:-1, s, :, None] & exists[1:, t, None, :])
            limit = np.where(oxygen[k, s, i] | oxygen[k + 1, t, j], CONTACT_OXYGEN, CONTACT)
            found.append((2 * k + s, i, 2 * (k + 1) + t, j, limit))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _sum_by(index: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """(n, ...) sums of the rows of ``values`` that share an index."""
    result = np.zeros((n, *values.shape[1:]))
    order = np.argsort(index, kind="stable")
    groups, starts = np.unique(index[order], return_index=True)
    if len(groups):
        result[groups] = np.add.reduceat(values[order], starts, axis=0)
    return result


def _band(diagonal: np.ndarray, partner: np.ndarray, following: np.ndarray) -> np.ndarray:
    """Lower band (24, 12n) of the normal matrix.

    Args:
        diagonal: (2n, 6, 6) of each base.
        partner: (n, 6, 6), rows of the base of strand II, columns of that of strand I.
        following: (n, 2, 2, 6, 6), rows of the bases of the next pair, columns of those of this one.
    """
    n = len(partner)
    band = np.zeros((24, n, 2, 6))
    for r in range(6):
        for c in range(6):
            if r >= c:
                band[r - c, :, :, c] = diagonal[:, r, c].reshape(n, 2)
            band[6 + r - c, :, 0, c] = partner[:, r, c]
            for s in (0, 1):
                for t in (0, 1):
                    band[12 + 6 * (t - s) + r - c, :, s, c] += following[:, t, s, r, c]
    return band.reshape(24, 12 * n)


def relax_bases(
    bases: np.ndarray, origin: np.ndarray, frame: np.ndarray, pair_rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Base frames without overlaps between neighbouring base pairs.

    Args:
        bases: (2n,) 0..3 for A, C, G, T; strand I, then strand J, each 5' to 3'.
        origin: (2n, 3) base origins as the base pairs put them, angstrom.
        frame: (2n, 3, 3) base frames, each in its own strand's sense.
        pair_rest: (n, 6) shear ... opening at rest.

    Returns:
        Origins (2n, 3) and frames (2n, 3, 3).
    """
    n = len(bases) // 2
    # Bodies in the order I0, J'0, I1, J'1, ...: J' is the partner of I.
    order = np.stack([np.arange(n), 2 * n - 1 - np.arange(n)], axis=1)
    result_origin, result_frame = np.empty_like(origin), np.empty_like(frame)
    # What one base does is not felt some base pairs away: pieces that fit into the processor's cache, with margins.
    for first in range(0, n, PIECE):
        low, last = max(first - MARGIN, 0), min(first + PIECE, n)
        bodies = order[low : last + MARGIN]
        kept = slice(first - low, last - low)
        piece_origin, piece_frame = _relax_piece(
            bases[bodies.ravel()], origin[bodies.ravel()], frame[bodies.ravel()], pair_rest[low : last + MARGIN])
        result_origin[order[first:last]] = piece_origin.reshape(-1, 2, 3)[kept]
        result_frame[order[first:last]] = piece_frame.reshape(-1, 2, 3, 3)[kept]
    return result_origin, result_frame


def _relax_piece(
    kind: np.ndarray, home_origin: np.ndarray, home_frame: np.ndarray, pair_rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Relaxed origins and frames of bodies in the order I0, J'0, I1, J'1, ... of n consecutive base pairs."""
    n, layout = len(pair_rest), base_layout()
    local = layout.position[kind]
    place, turn = home_origin.copy(), home_frame.copy()
    atoms = place[:, None] + np.einsum("bij,baj->bai", turn, local)
    oxygen = (layout.atom_class == 3)[kind]
    first, atom_1, second, atom_2, limit = _contacts(
        atoms.reshape(n, 2, *atoms.shape[1:]), layout.size[kind].reshape(n, 2), oxygen.reshape(n, 2, -1))
    point_1, point_2 = local[first, atom_1], local[second, atom_2]
    weight = 1.0 / np.repeat(TETHER, 3)
    # Bases turn by a few degrees only: the derivatives of the first iteration serve all.
    pair_jacobians = _pair_jacobians(place, turn, pair_rest)

    for _ in range(ITERATIONS):
        # Tether of each base.
        back = np.swapaxes(home_frame, 1, 2)
        moved = np.einsum("bij,bj->bi", back, place - home_origin)
        turned = Rotation.from_matrix(back @ turn).as_rotvec()
        jacobian = np.zeros((2 * n, 6, 6))
        jacobian[:, :3, :3], jacobian[:, 3:, 3:] = back @ turn, np.eye(3)
        jacobian *= weight[:, None]
        diagonal = np.swapaxes(jacobian, 1, 2) @ jacobian
        slope = np.einsum("bai,ba->bi", jacobian, np.concatenate([moved, turned], axis=1) * weight)
        # Elasticity of each pair, from the base of strand II to that of strand I.
        residual = _pair_deviations(place, turn, pair_rest)
        for strand, part in enumerate(pair_jacobians):
            diagonal[strand::2] += np.swapaxes(part, 1, 2) @ part
            slope[strand::2] += np.einsum("bai,ba->bi", part, residual)
        partner = np.swapaxes(pair_jacobians[1], 1, 2) @ pair_jacobians[0]
        # Contacts.
        apart = (place[first] + np.einsum("kij,kj->ki", turn[first], point_1)
                 - place[second] - np.einsum("kij,kj->ki", turn[second], point_2))  # fmt: skip
        distance = np.linalg.norm(apart, axis=1)
        close = np.flatnonzero(distance < limit)
        direction = apart[close] / distance[close, None] / CONTACT_DEVIATION
        residual = (limit[close] - distance[close]) / CONTACT_DEVIATION
        a, b, rows = first[close], second[close], []
        for body, point, sign in ((a, point_1, -1.0), (b, point_2, 1.0)):
            pull = sign * np.einsum("kij,ki->kj", turn[body], direction)
            rows.append(np.concatenate([pull, np.cross(point[close], pull)], axis=1))
            diagonal += _sum_by(body, rows[-1][:, :, None] * rows[-1][:, None, :], 2 * n)
            slope += _sum_by(body, rows[-1] * residual[:, None], 2 * n)
        # Of the next pair's two bases and this pair's two: four blocks a step.
        following = _sum_by(4 * (a // 2) + 2 * (b % 2) + a % 2, rows[1][:, :, None] * rows[0][:, None, :], 4 * n)
        band = _band(diagonal, partner, following.reshape(n, 2, 2, 6, 6))
        step = solveh_banded(band, -slope.ravel(), lower=True).reshape(2 * n, 6)
        step /= max(1.0, np.abs(step[:, :3]).max() / 0.5, np.abs(step[:, 3:]).max() / 0.15)
        place = place + np.einsum("bij,bj->bi", turn, step[:, :3])
        turn = turn @ rotation_from_vector(step[:, 3:])
        if np.abs(step).max() < CONVERGED:
            break
    return place, turn


def _pair_deviations(place: np.ndarray, turn: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """(n, 6) standardised pair parameters."""
    return (analyse(place[1::2], turn[1::2] @ FLIP, place[::2], turn[::2]) - rest) / PAIR_DEVIATION


def _pair_jacobians(place: np.ndarray, turn: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives (n, 6, 6) of ``_pair_deviations`` to motions of base I and of base II in their own frames."""
    size, jacobians = 1e-5, (np.empty((len(rest), 6, 6)), np.empty((len(rest), 6, 6)))
    for strand in (0, 1):
        for c in range(6):
            values = []
            for sign in (size, -size):
                moved, turned = place.copy(), turn.copy()
                if c < 3:
                    moved[strand::2] += sign * turn[strand::2, :, c]
                else:
                    turned[strand::2] = turn[strand::2] @ rotation_from_vector(sign * np.eye(3)[c - 3])
                values.append(_pair_deviations(moved, turned, rest))
            jacobians[strand][:, :, c] = (values[0] - values[1]) / (2 * size)
    return jacobians
