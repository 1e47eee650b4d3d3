"""The fibre's path through its container: a coarse polymer, and cores and linkers seated on it.

One node stands for each core, each partner of a contact, the chain's ends, and every LONGEST_STEP of a long linker. An
ideal chain with springs for its contacts, in a harmonic trap as wide as the container, is drawn exactly (a Gaussian
network: the covariance of a coordinate is the inverse of the matrix of springs), so that distant partners meet without
anything having to travel. Brownian dynamics then gives the nodes their volume and the chain its steps, and fills the
container evenly. Chains may pass through each other here, so nothing can be trapped.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.spatial import cKDTree

from mesoscale.cores import transported
from mesoscale.model import Chain, segment_ends

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

LONGEST_STEP = 50.0  # nm of linker DNA between nodes: the persistence length
TOGETHER = 0.6  # share of a contact's distance to which its partners are drawn
NODE_DIAMETER = 11.0  # nm; a core's
FILLED = 0.9  # of the spacing of an even filling of the container: nodes are no larger than this
FLAT = 0.25  # of its diameter: how near to a wall a node comes, as a core that lies flat on it does
STEP_K, CONTACT_K, NODE_K, CONTAINER_K = 0.3, 0.2, 0.5, 0.3  # kBT/nm^2
GUIDE_K = 0.05  # kBT/nm^2: within some 8 nm of the guide
MOBILITY = 0.4  # nm^2/kBT a step of Brownian dynamics
LARGEST_MOVE = 2.0  # nm along each axis
POLYMER_STEPS = 1200
COOLED = 0.8  # share of the steps over which temperature falls from kBT to 0
NEIGHBOURS_FOR = 10  # steps between two searches for neighbours
LEVER = 3.0  # nm along its linkers by which a core is turned toward its neighbours


@dataclass(frozen=True)
class Container:
    """Half the edges (3,) in nm of what nodes may fill, its volume, and whether it is round."""

    half: Array
    volume: float
    round: bool

    @classmethod
    def of(cls, chain: Chain) -> "Container | None":
        """The chain's box of soft walls, or else its confining sphere, or None."""
        if chain.wall_k > 0:
            return cls(np.array(chain.wall), 8.0 * float(np.prod(chain.wall)), False)
        if chain.confinement_k > 0:
            radius = chain.confinement_radius
            return cls(np.full(3, radius), 4 / 3 * np.pi * radius**3, True)
        return None

    def variance(self) -> Array:
        """Mean square of each coordinate (3,) when it is filled evenly."""
        return self.half**2 / (5 if self.round else 3)

    def outside(self, place: Array, margin: float) -> Array:
        """Vectors (k, 3) by which places lie beyond the container made smaller by a margin (nm)."""
        room = np.maximum(self.half - margin, 0.0)
        if not self.round:
            return np.sign(place) * np.maximum(np.abs(place) - room, 0.0)
        distance = np.maximum(np.linalg.norm(place, axis=1, keepdims=True), 1e-9)
        return np.maximum(1 - room / distance, 0.0) * place


def nodes_of(chain: Chain) -> Indices:
    """Particles that the coarse polymer follows, ascending."""
    along = np.concatenate([[0.0], np.cumsum(chain.rest_length)])
    fixed = sorted({0, chain.n - 1, *chain.cores.tolist(), *chain.contact.ravel().tolist(),
                    *([] if chain.wells is None else chain.wells.pair.ravel().tolist())})
    wanted = set(fixed)
    for a, b in zip(fixed, fixed[1:], strict=False):
        parts = int(np.ceil((along[b] - along[a]) / LONGEST_STEP))
        places = along[a] + (along[b] - along[a]) * np.arange(1, parts) / parts
        wanted.update(int(p) for p in np.searchsorted(along, places) if a < p < b)
    return np.array(sorted(wanted))


def straight_distance(chain: Chain, a: int, b: int) -> float:
    """Distance (nm) of particles a < b of one linker, or at its ends, when it is straight and has its rest twist; b = n
    is the first particle of a circle."""
    length, twist = float(chain.rest_length[a:b].sum()), float(chain.rest_twist[a:b].sum())
    leaving = chain.joint_point[a, 0], chain.joint_frame[a, 0]
    point, frame = leaving if chain.core[a] else (np.zeros(3), np.eye(3))
    end = point + length * frame[:, 0]
    b %= chain.n
    if chain.core[b]:
        c, s = np.cos(twist), np.sin(twist)
        turned = frame @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ chain.joint_frame[b, 1].T
        end = end - turned @ chain.joint_point[b, 1]
    return float(np.linalg.norm(end))


@dataclass(frozen=True)
class Guide:
    """Particles (g,), and the places (g, 3) in nm that the path shall have there."""

    particle: Indices
    place: Array


def coarse_path(chain: Chain, nodes: Indices, random: np.random.Generator, guide: Guide | None = None) -> Array:
    """Places (k, 3) of the nodes: drawn from the Gaussian network, then spread out by Brownian dynamics.

    With a guide the network is tied to its places, and is neither in a trap nor drawn together by contacts.
    """
    step = np.array([straight_distance(chain, a, b) for a, b in zip(nodes, nodes[1:], strict=False)])
    held = chain.contact_k > 0
    partner = np.searchsorted(nodes, chain.contact[held])
    together = TOGETHER * chain.contact_distance[held]
    container = Container.of(chain)
    if guide is None:
        place = _gaussian_network(step, partner, together, container, random)
    else:
        tied = np.searchsorted(nodes, guide.particle)
        place = _tied_network(step, tied, guide.place, random)
    diameter = NODE_DIAMETER
    if container is not None:
        diameter = min(diameter, FILLED * (container.volume / len(nodes)) ** (1 / 3))
    before = np.arange(len(nodes) - 1)
    for k in range(POLYMER_STEPS):
        if k % NEIGHBOURS_FOR == 0:
            near = cKDTree(place).query_pairs(diameter + 2 * LARGEST_MOVE, output_type="ndarray")
            near = near[np.abs(near[:, 0] - near[:, 1]) > 1]
        force = np.zeros_like(place)
        _add_springs(force, place, before, before + 1, STEP_K, step)
        _add_springs(force, place, *partner.T, CONTACT_K, together)
        _add_springs(force, place, *near.T, NODE_K, diameter, only_push=True)
        if guide is not None:
            force[tied] -= GUIDE_K * (place[tied] - guide.place)
        if container is not None:
            force -= CONTAINER_K * container.outside(place, FLAT * diameter)
        temperature = max(0.0, 1.0 - k / (COOLED * POLYMER_STEPS))
        move = MOBILITY * force + np.sqrt(2 * MOBILITY * temperature) * random.standard_normal(place.shape)
        place = place + np.clip(move, -LARGEST_MOVE, LARGEST_MOVE)
    return place


def _gaussian_network(
    step: Array, partner: Indices, together: Array, container: Container | None, random: np.random.Generator
) -> Array:
    """Places (k, 3) of an ideal chain with root mean square steps (k - 1,), whose partners (c, 2) are `together` (c,).

    The trap is as strong as gives the mean square of an evenly filled container, and absent when the chain is smaller.
    """
    k = len(step) + 1
    springs = np.zeros((k, k))
    pairs = np.concatenate([np.stack([np.arange(k - 1), np.arange(1, k)], axis=1), partner])
    for (a, b), rms in zip(pairs, np.concatenate([step, together]), strict=True):
        springs[[a, b], [a, b]] += 3 / rms**2
        springs[[a, b], [b, a]] -= 3 / rms**2
    stiffness, mode = np.linalg.eigh(springs)
    # Eigenvectors have no sign of their own: this one does not depend on the linear algebra library.
    mode *= np.sign(mode[np.argmax(np.abs(mode), axis=0), np.arange(k)])
    stiffness, mode = np.maximum(stiffness[1:], 0.0), mode[:, 1:]  # the first is the shift of the whole
    place = np.empty((k, 3))
    for axis in range(3):
        trap = 0.0
        if container is not None:
            wanted = k * container.variance()[axis]

            def excess(trap: float, wanted: float = wanted) -> float:
                return float((1 / (stiffness + trap)).sum()) - wanted

            if excess(0.0) > 0:
                trap = brentq(excess, 0.0, k / wanted)
        place[:, axis] = mode @ (random.standard_normal(k - 1) / np.sqrt(stiffness + trap))
    return place


def _tied_network(step: Array, tied: Indices, place: Array, random: np.random.Generator) -> Array:
    """Places (k, 3) of an ideal chain with root mean square steps (k - 1,), of which nodes (g,) are tied to places
    (g, 3) by springs."""
    k = len(step) + 1
    springs = np.zeros((k, k))
    a = np.arange(k - 1)
    for one, other, sign in ((a, a, 1), (a + 1, a + 1, 1), (a, a + 1, -1), (a + 1, a, -1)):
        springs[one, other] += sign * 3 / step**2
    springs[tied, tied] += GUIDE_K
    pull = np.zeros((k, 3))
    pull[tied] = GUIDE_K * place
    # A Gaussian distribution: its mean, and noise whose covariance is the inverse of the springs.
    factor = np.linalg.cholesky(springs)
    return np.linalg.solve(springs, pull) + np.linalg.solve(factor.T, random.standard_normal((k, 3)))


def _add_springs(
    force: Array, place: Array, a: Indices, b: Indices, k: float, rest: Array | float, only_push: bool = False
) -> None:
    """Forces (n, 3) of harmonic springs between places a and b."""
    d = place[a] - place[b]
    r = np.maximum(np.linalg.norm(d, axis=1), 1e-9)
    longer = np.minimum(r - rest, 0.0) if only_push else r - rest
    pull = (k * longer / r)[:, None] * d
    for axis in range(3):
        force[:, axis] += np.bincount(b, pull[:, axis], len(force)) - np.bincount(a, pull[:, axis], len(force))


def seat(chain: Chain, nodes: Indices, place: Array) -> tuple[Array, Array]:
    """Positions (n, 3) and frames (n, 3, 3) of all particles on a coarse path, places (k, 3) of its nodes.

    Cores are turned so that their linkers leave toward the neighbouring nodes; beads lie on straight lines between.
    """
    position, frame = np.zeros((chain.n, 3)), np.tile(np.eye(3), (chain.n, 1, 1))
    position[nodes] = place
    at = np.searchsorted(nodes, chain.cores)
    # Where DNA goes from a core, in its own frame: entry, exit. Toward the node before, the node behind.
    points, frames = chain.joint_point[chain.cores], chain.joint_frame[chain.cores]
    ways = points[:, [1, 0]] + LEVER * np.array([[-1], [1]]) * frames[:, [1, 0]][..., 0]
    ways /= np.linalg.norm(ways, axis=2)[:, :, None]
    overlap = np.zeros((len(at), 3, 3))
    for way, by in zip(np.swapaxes(ways, 0, 1), (-1, 1), strict=True):
        toward = place[np.clip(at + by, 0, len(nodes) - 1)] - place[at]
        toward /= np.maximum(np.linalg.norm(toward, axis=1), 1e-9)[:, None]
        overlap += toward[:, :, None] * way[:, None, :]
    # Kabsch: the rotation that brings both ways nearest to where they shall go.
    left, _, right = np.linalg.svd(overlap)
    left[:, :, 2] *= np.linalg.det(left @ right)[:, None]
    frame[chain.cores] = left @ right

    is_core = (chain.core > 0)[:, None]
    leaves, arrives = (np.where(is_core, position + (frame @ chain.joint_point[:, end, :, None])[:, :, 0], position)
                       for end in (0, 1))
    for a, b in zip(nodes, nodes[1:], strict=False):
        share = np.cumsum(chain.rest_length[a:b])[:-1] / chain.rest_length[a:b].sum()
        position[a + 1 : b] = leaves[a] + share[:, None] * (arrives[b] - leaves[a])
    return position, twisted_frames(chain, position, frame)


def twisted_frames(chain: Chain, position: Array, frame: Array) -> Array:
    """Frames (n, 3, 3) with those of beads along their segments and turned by the rest twist from one to the next."""
    start, end = segment_ends(chain, position, frame)
    tangent = (end - start) / np.maximum(np.linalg.norm(end - start, axis=1), 1e-9)[:, None]
    frame = frame.copy()
    normal = np.cross(tangent[0], np.eye(3)[np.argmin(np.abs(tangent[0]))])
    normal, before = normal / np.linalg.norm(normal), tangent[0]
    for p in range(chain.segments):
        if chain.core[p]:
            leaving = frame[p] @ chain.joint_frame[p, 0]
            normal, before = leaving[:, 1], leaving[:, 0]
        normal = transported(normal, before, tangent[p]) if before @ tangent[p] > -0.99 else normal
        normal = normal - (normal @ tangent[p]) * tangent[p]
        normal /= np.linalg.norm(normal)
        if not chain.core[p]:
            frame[p] = np.stack([tangent[p], normal, np.cross(tangent[p], normal)], axis=1)
        c, s = np.cos(chain.rest_twist[p]), np.sin(chain.rest_twist[p])
        normal, before = c * normal + s * np.cross(tangent[p], normal), tangent[p]
    return frame
