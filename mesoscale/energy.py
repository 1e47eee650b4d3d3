"""The energy of a fibre in plain NumPy, as mesoscale/model.py states it; the Fortran kernels must agree."""

import numpy as np
from numpy.typing import NDArray

from mesoscale.contact_energies import closeness
from mesoscale.cores import transported
from mesoscale.model import Chain, segment_ends, wrapped

Array = NDArray[np.float64]


def _angle(a: Array, b: Array) -> Array:
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), np.sum(a * b, axis=-1))


def twist_deviations(chain: Chain, position: Array, frame: Array) -> Array:
    """Twist (s,) of every segment beyond its rest twist, radian, from -pi to pi."""
    start, end = segment_ends(chain, position, frame)
    direction = (end - start) / np.linalg.norm(end - start, axis=1)[:, None]
    is_core, here, there = chain.core > 0, slice(chain.segments), chain.end_of_segment
    leaving, arriving = frame @ chain.joint_frame[:, 0], frame @ chain.joint_frame[:, 1]
    carried = transported(leaving[here, :, 1], leaving[here, :, 0], direction)
    out_b = np.where(is_core[here, None], carried, frame[here, :, 1])
    out_c = np.where(is_core[here, None], np.cross(direction, out_b), frame[here, :, 2])
    into = np.where(is_core[there, None, None], arriving[there], frame[there])
    sine = np.sum(out_c * into[:, :, 1] - out_b * into[:, :, 2], axis=1)
    cosine = np.sum(out_b * into[:, :, 1] + out_c * into[:, :, 2], axis=1)
    return wrapped(np.arctan2(sine, cosine) - chain.rest_twist)


def mechanical_energies(chain: Chain, position: Array, frame: Array) -> dict[str, float]:
    """Stretch, bend and twist, kBT. Bead frames must have their segment's direction as first column."""
    start, end = segment_ends(chain, position, frame)
    length = np.linalg.norm(end - start, axis=1)
    direction = (end - start) / length[:, None]
    is_core = chain.core > 0
    leaving, arriving = frame @ chain.joint_frame[:, 0], frame @ chain.joint_frame[:, 1]
    stretch = 0.5 * np.sum(chain.stretch_k * (length - chain.rest_length) ** 2)

    before, has_next = chain.segment_before, np.arange(chain.n) < chain.segments
    inner = np.flatnonzero(~is_core & (before >= 0) & has_next)
    exits, entries = np.flatnonzero(is_core & has_next), np.flatnonzero(is_core & (before >= 0))
    bead_k = 0.5 * (chain.bend_k[before[inner]] + chain.bend_k[inner])
    bend = (
        np.sum(bead_k * _angle(direction[before[inner]], direction[inner]) ** 2)
        + np.sum(chain.bend_k[exits] * _angle(leaving[exits, :, 0], direction[exits]) ** 2)
        + np.sum(chain.bend_k[before[entries]] * _angle(direction[before[entries]], arriving[entries, :, 0]) ** 2)
    )

    twist = 0.5 * np.sum(chain.twist_k * twist_deviations(chain, position, frame) ** 2)
    return {"stretch": float(stretch), "bend": 0.5 * float(bend), "twist": float(twist)}


def pair_energies(chain: Chain, position: Array, frame: Array) -> dict[str, float]:
    """Electrostatics and excluded volume, kBT, shifted to zero at the cutoff, for each kind of pair.

    Keys: "bead-bead", "bead-core", "core-core", each followed by " electrostatic" or " excluded".
    """
    n = chain.n
    owner, where, charge, kind = [], [], [], []
    for p in range(n):
        if chain.core[p]:
            where.append(position[p] + chain.shape_of(p).site @ frame[p].T)
            charge.append(chain.shape_of(p).site_charge)
        else:
            where.append(position[p : p + 1])
            charge.append(chain.charge[p : p + 1])
        owner.append(np.full(len(where[-1]), p))
        kind.append(np.full(len(where[-1]), int(chain.core[p] > 0)))
    owner_, where_, charge_, kind_ = (np.concatenate(x) for x in (owner, where, charge, kind))
    result = {}
    for label in ("bead-bead", "bead-core", "core-core"):
        result[f"{label} electrostatic"] = result[f"{label} excluded"] = 0.0
    cut = chain.cutoff
    for i in range(len(owner_)):
        ahead = owner_ - owner_[i]
        others = np.flatnonzero((ahead > 1) & ~(chain.is_circle & (ahead == n - 1)))
        r = np.linalg.norm(where_[others] - where_[i], axis=1)
        others, r = others[r < cut], r[r < cut]
        both = kind_[others] + kind_[i]
        kappas = (chain.kappa if chain.dna_kappa is None else chain.dna_kappa, chain.kappa, chain.kappa)
        for k, label in enumerate(("bead-bead", "bead-core", "core-core")):
            d, q = r[both == k], charge_[others[both == k]] * charge_[i]
            screened = np.exp(-kappas[k] * d) / d - np.exp(-kappas[k] * cut) / cut
            result[f"{label} electrostatic"] += chain.bjerrum_length * float(np.sum(q * screened))
            s6, s6_cut = (chain.sigma[k] / d) ** 6, (chain.sigma[k] / cut) ** 6
            result[f"{label} excluded"] += chain.excluded_k * float(np.sum(s6 * (s6 - 1) - s6_cut * (s6_cut - 1)))
    return result


def limb_energies(chain: Chain, position: Array, frame: Array) -> dict[str, float]:
    """Electrostatics and excluded volume (kBT) of the limbs of each core with all that is not part of this nucleosome:
    linker beads, neighbours in the chain too, and sites and limbs of other cores. Shifted to zero at the cutoff.
    """
    result = {"limb electrostatic": 0.0, "limb excluded": 0.0}
    limbs = chain.limbs
    if limbs is None:
        return result
    cut = chain.cutoff
    beads = chain.beads
    where, charge = [position[beads]], [chain.charge[beads]]
    kind, owner = [np.ones(len(beads), int)], [np.full(len(beads), -1)]
    for c, p in enumerate(chain.cores):
        there, shape = limbs.kind[c] > 0, chain.shape_of(p)
        where += [position[p] + shape.site @ frame[p].T, position[p] + limbs.place[c, there] @ frame[p].T]
        charge += [shape.site_charge, limbs.charge[c, there]]
        kind += [np.full(len(shape.site), 2), limbs.kind[c, there]]
        owner += [np.full(len(shape.site) + np.count_nonzero(there), c)]
    at, q, k, o = (np.concatenate(x) for x in (where, charge, kind, owner))
    for i in np.flatnonzero(k > 2):
        # Everything of other owners; of other limbs those that come later.
        others = np.flatnonzero((o != o[i]) & ((k <= 2) | (np.arange(len(k)) > i)))
        r = np.linalg.norm(at[others] - at[i], axis=1)
        others, r = others[r < cut], r[r < cut]
        screened = np.exp(-chain.kappa * r) / r - np.exp(-chain.kappa * cut) / cut
        result["limb electrostatic"] += chain.bjerrum_length * q[i] * float(q[others] @ screened)
        sigma, strength = limbs.sigma[k[i] - 1, k[others] - 1], limbs.strength[k[i] - 1, k[others] - 1]
        s6, s6_cut = (sigma / r) ** 6, (sigma / cut) ** 6
        result["limb excluded"] += float(strength @ (s6 * (s6 - 1) - s6_cut * (s6_cut - 1)))
    return result


def segment_distance(p1: Array, p2: Array, q1: Array, q2: Array) -> float:
    """Shortest distance between the line segments p1-p2 and q1-q2, by trying the inside and all four ends."""

    def to_point(a: Array, b: Array, x: Array) -> float:
        t = np.clip((x - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        return float(np.linalg.norm(a + t * (b - a) - x))

    u, v, w = p2 - p1, q2 - q1, p1 - q1
    candidates = [to_point(p1, p2, q1), to_point(p1, p2, q2), to_point(q1, q2, p1), to_point(q1, q2, p2)]
    matrix = np.array([[u @ u, -u @ v], [-u @ v, v @ v]])
    if np.linalg.det(matrix) > 1e-12 * (u @ u) * (v @ v):
        s, t = np.linalg.solve(matrix, [-u @ w, v @ w])
        if 0 <= s <= 1 and 0 <= t <= 1:
            candidates.append(float(np.linalg.norm(w + s * u - t * v)))
    return min(candidates)


def close_in_chain(chain: Chain, s: int, t: int) -> bool:
    """Whether s > t are neighbouring segments of a linker, which bending holds apart."""
    if chain.linker[s] != chain.linker[t]:
        return False
    low, high = (s, t + chain.n) if chain.is_circle and 2 * (s - t) > chain.n else (t, s)
    # The linker of the lone core of a circle has it on either side.
    return high - low <= 2 and not chain.core[np.arange(low + 1, high + 1) % chain.n].any()


def continued_end(chain: Chain, s: int, p: int) -> int | None:
    """The end of core p that the linker of segment s continues: 0 exit, 1 entry; of a lone core in a circle, whose
    linker continues both, the nearer one."""
    before = chain.segment_before[p]
    leaves = p < chain.segments and chain.linker[p] == chain.linker[s]
    arrives = before >= 0 and chain.linker[before] == chain.linker[s]
    if leaves and arrives:
        return int(2 * ((s - p) % chain.n) >= chain.n)
    return 0 if leaves else 1 if arrives else None


def overlaps(chain: Chain, position: Array, frame: Array) -> Array:
    """Depth (nm) by which each pair of floor bodies that overlap does so; empty when the floors hold."""
    start, end = segment_ends(chain, position, frame)
    depth: list[float] = []
    segments = len(start)
    middle, half = (start + end) / 2, np.linalg.norm(end - start, axis=1) / 2
    reach = max(float((np.linalg.norm(shape.sphere, axis=1) + shape.sphere_radius).max()) for shape in chain.shapes)
    for s in range(segments):
        apart = np.linalg.norm(middle[:s] - middle[s], axis=1) - half[:s] - half[s]
        for t in np.flatnonzero(apart < 2 * chain.dna_radius):
            if close_in_chain(chain, s, t):
                continue
            depth.append(2 * chain.dna_radius - segment_distance(start[s], end[s], start[t], end[t]))
    world = {p: position[p] + chain.shape_of(p).sphere @ frame[p].T for p in chain.cores}
    for p, spheres in world.items():
        shape = chain.shape_of(p)
        radius = shape.sphere_radius
        apart = np.linalg.norm(middle - position[p], axis=1) - half
        for s in np.flatnonzero(apart < reach + chain.dna_radius):
            along = end[s] - start[s]
            t = np.clip((spheres - start[s]) @ along / (along @ along), 0.0, 1.0)
            d = np.linalg.norm(start[s] + t[:, None] * along - spheres, axis=1)
            skip = np.zeros(len(spheres), bool)
            end_ = continued_end(chain, s, p)
            if end_ is not None:
                skip = shape.sphere_near[:, end_] > 0
            deep = (chain.dna_radius + radius - d)[~skip]
            depth.extend(deep[deep > 0])
        for q, others in world.items():
            if q < p and np.linalg.norm(position[p] - position[q]) < 2 * reach:
                d = np.linalg.norm(spheres[:, None] - others[None], axis=2)
                deep = radius[:, None] + chain.shape_of(q).sphere_radius[None] - d
                depth.extend(deep[deep > 0])
    all_depths = np.array(depth)
    return all_depths[all_depths > 0]


def energies(chain: Chain, position: Array, frame: Array) -> dict[str, float]:
    """Every term of the energy in kBT, in the order of TERMS, computed from scratch."""
    result = mechanical_energies(chain, position, frame)
    pairs = pair_energies(chain, position, frame) | limb_energies(chain, position, frame)
    result["electrostatic"] = sum(v for k, v in pairs.items() if k.endswith("electrostatic"))
    result["excluded"] = sum(v for k, v in pairs.items() if k.endswith("excluded"))
    result["floor"] = 0.5 * chain.floor_k * float(np.sum(overlaps(chain, position, frame) ** 2))
    d = np.linalg.norm(position[chain.contact[:, 0]] - position[chain.contact[:, 1]], axis=1)
    d0 = chain.contact_distance
    excess = np.maximum(d - d0, 0.0)
    springs = np.where(excess <= d0, 0.5 * excess**2, d0 * (excess - 0.5 * d0))
    result["restraint"] = float(np.sum(chain.contact_k * springs))
    if chain.wells is not None:
        apart = np.linalg.norm(position[chain.wells.pair[:, 0]] - position[chain.wells.pair[:, 1]], axis=1)
        made = closeness(apart, chain.wells.flat, chain.wells.reach)
        result["restraint"] += float(np.sum(chain.wells.energy * made))
    outside = np.maximum(np.linalg.norm(position, axis=1) - chain.confinement_radius, 0.0)
    spheres = [position[p] + chain.shape_of(p).sphere @ frame[p].T for p in chain.cores]
    bodies = np.concatenate([position[chain.beads], *spheres])
    beyond = np.maximum(np.abs(bodies) - chain.wall, 0.0)
    result["confinement"] = 0.5 * float(chain.confinement_k * np.sum(outside**2) + chain.wall_k * np.sum(beyond**2))
    return result
