"""Base and base-pair frames, and the six parameters between two frames (the CEHS scheme of 3DNA).

A frame is an origin (3,) in angstrom and a 3x3 matrix whose columns are x, y, z: for a base pair x points to the major
groove, y along the pair toward strand I, z in the 5'-3' direction of strand I (Olson et al. 2001,
doi:10.1006/jmbi.2001.4987). Six parameters lead from one frame to the next, in this order everywhere:

    shift, slide, rise (angstrom), tilt, roll, twist (degree)              between two base pairs
    shear, stretch, stagger (angstrom), buckle, propeller, opening (degree)  from the base of strand J to that of I

Strand J is strand II of 3DNA; its name is that of its chain in PDB 1KX5. Both levels share one algebra (El Hassan &
Calladine 1995, doi:10.1006/jmbi.1995.0430; Lu & Olson 2003, doi:10.1093/nar/gkg680). All functions are vectorised over
leading dimensions.
"""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild.base.files import template_path

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
ODD_PARAMETERS = np.array([-1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
"""Read from the other strand, shift and tilt (shear and buckle of a pair) change sign."""
FLIP = np.diag([1.0, -1.0, -1.0])
"""Turns the frame of strand I into that of strand J and back: y and z change sign."""


def rotation_about_y(angle: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotation by ``angle`` (radian) about y."""
    c, s, zero, one = np.cos(angle), np.sin(angle), np.zeros_like(angle), np.ones_like(angle)
    return np.stack([np.stack([c, zero, s], -1), np.stack([zero, one, zero], -1), np.stack([-s, zero, c], -1)], -2)


def rotation_about_z(angle: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotation by ``angle`` (radian) about z."""
    c, s, zero, one = np.cos(angle), np.sin(angle), np.zeros_like(angle), np.ones_like(angle)
    return np.stack([np.stack([c, -s, zero], -1), np.stack([s, c, zero], -1), np.stack([zero, zero, one], -1)], -2)


def rotation_from_vector(vector: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotation by |vector| radian about vector (Rodrigues)."""
    vector = np.asarray(vector, dtype=float)
    angle = np.linalg.norm(vector, axis=-1)[..., None, None]
    x, y, z = np.moveaxis(vector, -1, 0)
    zero = np.zeros_like(x)
    cross = np.stack([np.stack([zero, -z, y], -1), np.stack([z, zero, -x], -1), np.stack([-y, x, zero], -1)], -2)
    # np.sinc(t) = sin(pi t) / (pi t) is exact at zero, where sin(angle) / angle is not.
    first = np.sinc(angle / np.pi)
    second = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
    return np.eye(3) + first * cross + second * (cross @ cross)


def orthonormalise(frame: np.ndarray) -> np.ndarray:
    """The rotations closest to nearly orthogonal matrices (..., 3, 3); removes accumulated rounding."""
    u, _, vt = np.linalg.svd(frame)
    return u @ vt


def _hinge(frame_1: np.ndarray, frame_2: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Hinge vector (radian), twist (radian) and midframe of two frames, and the untwisted first frame."""
    z_1, z_2 = frame_1[..., :, 2], frame_2[..., :, 2]
    axis = np.cross(z_1, z_2)
    sine = np.linalg.norm(axis, axis=-1)
    angle = np.arctan2(sine, np.sum(z_1 * z_2, axis=-1))
    scale = np.where(sine > 1e-14, angle / np.where(sine > 1e-14, sine, 1.0), 1.0)
    hinge = axis * scale[..., None]
    first = rotation_from_vector(0.5 * hinge) @ frame_1
    second = rotation_from_vector(-0.5 * hinge) @ frame_2
    x_1, y_1, x_2 = first[..., :, 0], first[..., :, 1], second[..., :, 0]
    twist = np.arctan2(np.sum(x_2 * y_1, axis=-1), np.sum(x_2 * x_1, axis=-1))
    return hinge, twist, first @ rotation_about_z(0.5 * twist), first


def midframe(
    origin_1: np.ndarray, frame_1: np.ndarray, origin_2: np.ndarray, frame_2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Origin (..., 3) and frame (..., 3, 3) half way between two frames."""
    return 0.5 * (origin_1 + origin_2), _hinge(frame_1, frame_2)[2]


def analyse(
    origin_1: np.ndarray, frame_1: np.ndarray, origin_2: np.ndarray, frame_2: np.ndarray
) -> np.ndarray:
    """(..., 6) parameters from frame 1 to frame 2, angstrom and degree; the twist lies in -180..180."""
    hinge, twist, middle, _ = _hinge(frame_1, frame_2)
    local = np.einsum("...ji,...j->...i", middle, hinge)
    shift = np.einsum("...ji,...j->...i", middle, origin_2 - origin_1)
    angles = np.degrees(np.stack([local[..., 0], local[..., 1], twist], axis=-1))
    return np.concatenate([shift, angles], axis=-1)


def step_derivatives(parameters: np.ndarray, relative_frame: np.ndarray) -> np.ndarray:
    """(k, 6, 6) derivatives of the parameters of a step to a small motion of its second frame.

    Args:
        parameters: (k, 6) as ``analyse`` gives them.
        relative_frame: (k, 3, 3) the second frame as seen from the first.

    Returns:
        By parameter (angstrom, degree) and by motion in the second frame itself: translation (angstrom), rotation
        (radian).

    A step turns by Rz(a) Ry(bend) Rz(c) with a = twist / 2 - phase, c = twist / 2 + phase, tilt = bend sin(phase) and
    roll = bend cos(phase). The rates of these Euler angles have poles at zero bend that cancel in what is returned.
    """
    tilt, roll, twist = np.moveaxis(np.radians(parameters[:, 3:]), -1, 0)
    bend, phase = np.hypot(tilt, roll), np.arctan2(tilt, roll)
    half, last = 0.5 * bend, 0.5 * twist + phase
    axis = np.eye(3)  # of the rotation; every quantity below is (3, k), by axis
    across = np.multiply.outer(axis[0], np.cos(last)) - np.multiply.outer(axis[1], np.sin(last))
    bending = np.multiply.outer(axis[0], np.sin(last)) + np.multiply.outer(axis[1], np.cos(last))
    turning = axis[2][:, None]
    twisting = turning - np.tan(half) * across
    small = half < 1e-8
    cotangent = np.where(small, 2.0, bend / np.tan(np.where(small, 1.0, half)))  # bend times cot(bend / 2)
    phasing = 0.5 * (bend * turning + cotangent * across)  # bend times the rate of the phase
    sine, cosine = np.sin(phase), np.cos(phase)
    swing = across / (2 * np.cos(half))
    # Angular velocity of the midframe, seen from itself.
    middle = np.stack([0.5 * bending * sine + swing * cosine, 0.5 * bending * cosine - swing * sine,
                       0.5 * twisting + swing * np.tan(0.5 * half)], axis=-1)
    result = np.zeros((len(parameters), 6, 6))
    midframe_in_first, _ = _step_rotations(parameters)
    result[:, :3, :3] = np.swapaxes(midframe_in_first, 1, 2) @ relative_frame
    result[:, :3, 3:] = -np.cross(middle, parameters[:, :3]).transpose(1, 2, 0)
    result[:, 3:, 3:] = np.degrees(
        np.stack([bending * sine + phasing * cosine, bending * cosine - phasing * sine, twisting])).transpose(2, 0, 1)
    return result


def _step_rotations(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation to the midframe and to the next frame, both (..., 3, 3)."""
    tilt, roll, twist = np.moveaxis(np.radians(parameters[..., 3:]), -1, 0)
    bend, phase = np.hypot(tilt, roll), np.arctan2(tilt, roll)
    first = rotation_about_z(0.5 * twist - phase)
    middle = first @ rotation_about_y(0.5 * bend) @ rotation_about_z(phase)
    return middle, first @ rotation_about_y(bend) @ rotation_about_z(0.5 * twist + phase)


def advance(
    origin: np.ndarray, frame: np.ndarray, parameters: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The frame that lies ``parameters`` (..., 6) beyond the given one; the inverse of ``analyse``."""
    middle, step = _step_rotations(np.asarray(parameters, dtype=float))
    return origin + np.einsum("...ij,...j->...i", frame @ middle, parameters[..., :3]), frame @ step


def rebuild(
    parameters: np.ndarray, origin: np.ndarray | None = None, frame: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Frames of n + 1 base pairs from n steps.

    Args:
        parameters: (n, 6) step parameters, angstrom and degree.
        origin: (3,) of the first base pair; default zero.
        frame: (3, 3) of the first base pair; default the unit matrix.

    Returns:
        Origins (n + 1, 3) and frames (n + 1, 3, 3).
    """
    parameters = np.asarray(parameters, dtype=float)
    middle, step = _step_rotations(parameters)
    origins = np.empty((len(parameters) + 1, 3))
    frames = np.empty((len(parameters) + 1, 3, 3))
    origins[0] = 0.0 if origin is None else origin
    frames[0] = np.eye(3) if frame is None else frame
    for k in range(len(parameters)):
        origins[k + 1] = origins[k] + frames[k] @ (middle[k] @ parameters[k, :3])
        frames[k + 1] = frames[k] @ step[k]
        if k % 1000 == 999:
            frames[k + 1] = orthonormalise(frames[k + 1])
    return origins, frames


def split_pair(
    origin: np.ndarray, frame: np.ndarray, parameters: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Frames of the two bases of base pairs.

    Args:
        origin: (..., 3) of the pairs, angstrom.
        frame: (..., 3, 3) of the pairs.
        parameters: (..., 6) shear, stretch, stagger (angstrom), buckle, propeller, opening (degree).

    Returns:
        (origin, frame) of the bases of strand I and of strand J, each in its own strand's sense (z 5'-3'): standard
        base coordinates are placed with ``origin + frame @ coordinates`` on either strand.
    """
    middle, step = _step_rotations(np.asarray(parameters, dtype=float))
    half = 0.5 * np.einsum("...ij,...j->...i", frame, parameters[..., :3])
    second = frame @ np.swapaxes(middle, -1, -2)
    return (origin + half, second @ step), (origin - half, second @ FLIP)


def fit_frames(observed: np.ndarray, standard: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares frames (Kabsch): observed ~ origin + frame @ standard.

    Args:
        observed: (..., m, 3) atoms.
        standard: (m, 3) the same atoms in the standard frame.

    Returns:
        Origins (..., 3) and frames (..., 3, 3), always right-handed.
    """
    centre, centre_standard = observed.mean(axis=-2), standard.mean(axis=-2)
    covariance = np.einsum("...mi,mj->...ij", observed - centre[..., None, :], standard - centre_standard)
    u, _, vt = np.linalg.svd(covariance)
    sign = np.sign(np.linalg.det(u @ vt))
    u = np.concatenate([u[..., :2], u[..., 2:] * sign[..., None, None]], axis=-1)
    frame = u @ vt
    return centre - frame @ centre_standard, frame


@dataclass(frozen=True)
class StandardBase:
    """Planar heavy atoms of one base in the standard frame, C1' included."""

    atoms: tuple[str, ...]
    position: np.ndarray
    """(m, 3) angstrom."""
    ring: tuple[str, ...]
    """The ring atoms that define the frame."""

    @property
    def ring_position(self) -> np.ndarray:
        """(k, 3) of ``ring``."""
        return self.position[[self.atoms.index(name) for name in self.ring]]


@dataclass(frozen=True)
class Elasticity:
    """Rest values and standard deviations of the six parameters, both (6,)."""

    mean: np.ndarray
    deviation: np.ndarray


@dataclass(frozen=True)
class DnaParameters:
    """The tables of templates/dna_parameters.json, each with its source there."""

    base: dict[str, StandardBase]
    pair: dict[str, np.ndarray]
    """Shear ... opening (6,) of the pair whose strand-I base is the key."""
    step: dict[str, Elasticity]
    """All 16 dinucleotides, read 5'-3' on strand I."""
    b_dna: np.ndarray
    """(6,) a step of straight, sequence-independent B-DNA."""


@cache
def dna_parameters() -> DnaParameters:
    """Read templates/dna_parameters.json and complete the steps and pairs that follow from strand symmetry."""
    data = json.loads(template_path("dna_parameters.json").read_text())
    base = {}
    for name, entry in data["standard_base"]["bases"].items():
        planar = np.array(list(entry["atoms"].values()), dtype=float)
        position = np.concatenate([planar, np.zeros((len(planar), 1))], axis=1)
        base[name] = StandardBase(tuple(entry["atoms"]), position, tuple(entry["ring"]))
    pair = {name: np.array(values, dtype=float) for name, values in data["base_pair"]["pairs"].items()}
    for name in tuple(pair):
        pair[COMPLEMENT[name]] = pair[name] * ODD_PARAMETERS
    step = {}
    for name, (mean, deviation) in data["base_pair_step"]["steps"].items():
        other = COMPLEMENT[name[1]] + COMPLEMENT[name[0]]
        step[name] = Elasticity(np.array(mean, dtype=float), np.array(deviation, dtype=float))
        if other != name:
            step[other] = Elasticity(step[name].mean * ODD_PARAMETERS, step[name].deviation)
    return DnaParameters(base, pair, step, np.array(data["b_dna"]["step"], dtype=float))
