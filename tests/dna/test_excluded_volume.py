"""DNA that relaxes keeps clear of DNA and histones."""

from types import SimpleNamespace

import numpy as np
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

from chromabuild.base.settings import BuildSection
from chromabuild.build.fibre import relaxed_path
from chromabuild.dna.excluded_volume import DNA_AXES, DNA_HISTONE, ExcludedVolume
from chromabuild.dna.helix import relax_path
from chromabuild.dna.sequence import base_index
from chromabuild.dna.steps import rotation_from_vector

NONE = np.zeros((0, 3))


def hairpin(apart: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bases, origins and frames of a strip of DNA whose two arms run side by side, ``apart`` angstrom."""
    rise, arm = 3.4, 60
    radius = 0.5 * apart
    around = max(int(np.pi * radius / rise), 1)
    angle = np.pi * (np.arange(around) + 0.5) / around
    bend = np.stack([-radius * np.cos(angle), np.zeros(around), rise * arm + radius * np.sin(angle)], axis=1)
    up = np.stack([np.full(arm, -radius), np.zeros(arm), rise * np.arange(arm)], axis=1)
    origin = np.concatenate([up, bend, up[::-1] * [-1, 1, 1]])
    tangent = np.gradient(origin, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    side = np.tile([0.0, 1.0, 0.0], (len(origin), 1))
    frame = np.stack([np.cross(side, tangent), side, tangent], axis=2)
    return np.arange(len(origin)) % 4, origin, frame


def arms_apart(origin: np.ndarray) -> float:
    """Nearest approach of the arms, 25 base pairs and more away from the bend."""
    return cdist(origin[:40], origin[-40:]).min()


def test_gradient_is_that_of_the_energy():
    random = np.random.Generator(np.random.Philox(key=4))
    node_of_bp = np.concatenate([np.zeros(8, int), np.arange(1, 41)])
    offset = np.where(node_of_bp[:, None] == 0, random.normal(scale=20.0, size=(48, 3)), 0.0)
    histones = random.normal(scale=8.0, size=(30, 3))
    origin = random.normal(scale=25.0, size=(41, 3))
    frame = Rotation.random(41, random).as_matrix()

    def energy(origin, frame):
        return ExcludedVolume(node_of_bp, offset, np.zeros(30, int), histones).energy(origin, frame)

    gradient, diagonal = np.zeros((41, 6)), np.zeros((41, 6, 6))
    ExcludedVolume(node_of_bp, offset, np.zeros(30, int), histones).add_to(origin, frame, diagonal, gradient)
    assert np.count_nonzero(np.abs(gradient).max(axis=1) > 1.0) > 20
    step = 1e-5
    for node in (0, 3, 17, 40):
        for k in range(6):
            change = []
            for sign in (step, -step):
                moved, turned = origin.copy(), frame.copy()
                if k < 3:
                    moved[node] += sign * frame[node][:, k]
                else:
                    turned[node] = frame[node] @ rotation_from_vector(sign * np.eye(3)[k - 3])
                change.append(energy(moved, turned))
            # Central differences of a piecewise quadratic: rounding, 1e-16 * energy / step, rules.
            rounding = 1e-15 * max(change) / step
            error = (change[0] - change[1]) / (2 * step) - gradient[node, k]
            assert abs(error) < 1e-5 * np.abs(gradient[node]).max() + rounding


def test_lists_follow_what_moves():
    """Points that come in from beyond the listed reach are seen."""
    node_of_bp, offset = np.arange(40), np.zeros((40, 3))
    origin = np.stack([np.zeros(40), np.zeros(40), 100.0 * np.arange(40)], axis=1)
    frame = np.tile(np.eye(3), (40, 1, 1))
    volume = ExcludedVolume(node_of_bp, offset, np.zeros(0, int), NONE)
    assert volume.energy(origin, frame) == 0.0
    for distance in (40.0, DNA_AXES + 0.01, DNA_AXES - 2.0):
        origin[30] = origin[2] + [distance, 0.0, 0.0]
        assert volume.energy(origin, frame) == (0.0 if distance > DNA_AXES else 0.5 * (DNA_AXES - distance) ** 2)


def test_arms_of_a_hairpin_are_pushed_apart():
    base, origin, frame = hairpin(13.0)
    assert arms_apart(origin) < 14.0
    path = relax_path(base, origin, frame, NONE, np.zeros((0, 3, 3)), np.full(len(base), -1), np.zeros(len(base), int))
    # The tether of a base pair, 8 angstrom for half kT, gives way before one angstrom of overlap does.
    assert arms_apart(path.origin) > DNA_AXES - 1.0


def test_a_linker_gives_way_to_histones(scaffold_of):
    """CA of the first core, laid beside the middle of a linker, push it out to their contact distance."""
    scaffold = scaffold_of(2, 60, 0)
    middle = int(np.flatnonzero(scaffold.nucleosome < 0).mean())
    wall = scaffold.origin[middle] + 5.0 * scaffold.frame[middle, :, 0]
    beads = (wall - scaffold.core_origin[0]) @ scaffold.core_frame[0]
    octamers = [SimpleNamespace(alpha_carbons=beads[None]), SimpleNamespace(alpha_carbons=np.zeros((0, 3)))]
    path = relaxed_path(scaffold, base_index(scaffold.base), BuildSection(), octamers)
    placed = path.core_origin[0] + path.core_frame[0] @ beads
    assert np.linalg.norm(path.origin - placed, axis=1).min() > DNA_HISTONE - 1.0
    free = relaxed_path(scaffold, base_index(scaffold.base), BuildSection())
    assert np.linalg.norm(free.origin - wall, axis=1).min() < 8.0
    again = relaxed_path(scaffold, base_index(scaffold.base), BuildSection(), octamers, threads=2)
    assert np.array_equal(again.origin, path.origin)
