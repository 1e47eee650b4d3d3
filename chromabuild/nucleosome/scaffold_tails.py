"""Histone tails that follow the tail beads of a scaffold.

A bead of the mesoscale model stands for five residues; it is where the CA atom of the middle one should be. Each tail
grows from its root outward by a beam search: every partial chain is continued by many draws of (phi, psi) from the
allowed Ramachandran regions, and those are kept that come nearest to the beads and stay clear of the particle and of
other tails. Then single torsions are turned, within those regions, until the chain is as near to its beads as it can
be. Residues move as rigid bodies with the geometry and side chain that they have; the clash stage turns side
chains. All nucleosomes with the same octamer grow at once, from the same draws: neighbours do not matter.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import distance_transform_edt

from chromabuild.molecule.residues import ResidueTemplate, residue_library
from chromabuild.nucleosome.homology import chains_of
from chromabuild.nucleosome.octamer import FAMILIES, Octamer, octamer
from chromabuild.nucleosome.peptide import (
    C_N,
    C_N_CA,
    CA_C_N,
    carbonyl_oxygen,
    draw_phi_psi,
    place,
    rotate,
    torsion,
)

RESIDUES_PER_BEAD = 5
# In the order of mesoscale.tails.TAILS: family, copy, first tail residue in 1KX5's numbering that stays, whether the
# tail runs towards the C terminus, and the middle residue of the first bead.
TAIL_ROOTS = tuple((family, copy, root, forward, middle) for family, root, forward, middle in (
    ("H3", 39, False, 38), ("H4", 24, False, 23), ("H2A", 14, False, 18), ("H2B", 28, False, 23),
    ("H2A", 118, True, 116)) for copy in range(2))
BEADS = tuple(length for length in (8, 5, 4, 5, 3) for _ in range(2))
# A residue of each family whose CA lies in the fold, and so tells how another histone is numbered.
LANDMARK = {"H3": 60, "H4": 40, "H2A": 30, "H2B": 45}

BEAMS, DRAWS, SIBLINGS = 32, 60, 6
SWEEPS = 40
ROOT_TURN = 30.0  # degree that the torsion between fold and tail may turn at once
CHUNK = 48  # nucleosomes that grow at once
SPACING = 1.0  # angstrom, of the grid of distances to what stays
MARGIN = 25.0  # angstrom of grid beyond what stays
CLEARANCE, CA_CLEARANCE = 3.8, 5.0  # angstrom: backbone to what stays, CA to CA of tails
STERIC, BEAD = 2.0, 0.5  # per angstrom^2, of the score
FORBIDDEN = 100.0  # the score of a residue outside the allowed regions
LONGEST_STEP, EASY_STEP = 3.5, 2.5  # angstrom a residue: the longest span of a chain, and what it is likely to span
BEAD_CLEARANCE = 4.0  # angstrom: nearer to what stays, a bead lies within the particle


@dataclass(frozen=True)
class _Body:
    """A residue of the octamer as a rigid body."""

    first_atom: int
    entry: ResidueTemplate
    n: np.ndarray
    ca: np.ndarray
    c: np.ndarray
    delta: np.ndarray | None
    """CD of a proline."""

    @property
    def letter(self) -> str:
        """One-letter code where it matters for torsions: G, P, or A for all others."""
        return {"GLY": "G", "PRO": "P"}.get(self.entry.pdb_name, "A")


def follow_beads(core: Octamer, beads: np.ndarray, surroundings: np.ndarray, seed: int
                 ) -> tuple[np.ndarray, np.ndarray]:
    """Positions (m, n, 3) float32 of m octamers whose tails follow their beads, and bead deviations (m, 50).

    Args:
        core: the octamer; its tails' residues give geometry and side chains.
        beads: (m, 50, 3) in the nucleosomes' own frames, angstrom.
        surroundings: (k, 3) heavy atoms of wrapped DNA in that frame.
        seed: of the draws.

    Deviations are angstrom from bead to CA atom, nan for beads that do not count: those whose residue does not move,
    the first of each tail (held at the core's envelope, not where the chain leaves it), those too far from the root or
    from each other for a chain, and those within the particle, where the mesoscale model has no atoms.
    """
    library = list(residue_library().values())
    first_atom = core.first_atom
    tails = [tail_of(core, first_atom, library, k) for k in range(len(TAIL_ROOTS))]
    moving = np.zeros(len(core.position), dtype=bool)
    for _, grown, _ in tails:
        for body in grown:
            moving[body.first_atom:body.first_atom + len(body.entry.atoms)] = True
    heavy = np.concatenate([library[k].elements for k in core.residue_template]) != "H"
    field = _DistanceField(np.concatenate([surroundings, core.position[heavy & ~moving]]))
    position = np.repeat(core.position[None].astype(np.float32), len(beads), axis=0)
    deviation = np.full(beads.shape[:2], np.nan)
    for start in range(0, len(beads), CHUNK):
        rows = slice(start, start + CHUNK)
        others = np.empty((len(beads[rows]), 0, 3))
        for k, (root, grown, targets) in enumerate(tails):
            forward = TAIL_ROOTS[k][3]
            wanted = {i: (beads[rows, bead], counts) for (i, bead), counts in
                      zip(targets.items(), _attainable(root, targets, beads[rows], field), strict=True)}
            random = np.random.Generator(np.random.Philox(key=np.array([seed, k], dtype=np.uint64)))
            frames = _grow(root, grown, forward, wanted, field, others, random)
            _approach(root, grown, forward, frames, wanted, field)
            others = np.concatenate([others, frames[:, :, 1]], axis=1)
            _put(position[rows], root, grown, forward, frames)
            for i, bead in targets.items():
                apart = np.linalg.norm(frames[:, i, 1] - beads[rows, bead], axis=1)
                deviation[rows, bead] = np.where(wanted[i][1], apart, np.nan)
    return position, deviation


def tail_of(core: Octamer, first_atom: np.ndarray, library: list[ResidueTemplate], k: int
            ) -> tuple[_Body, list[_Body], dict[int, int]]:
    """The residue that a tail grows from, the residues that grow, outward, and which of them is which bead's middle."""
    family, copy, root, forward, middle = TAIL_ROOTS[k]
    chain = [c for c, name in enumerate(FAMILIES) if name == family][copy]
    bodies = _bodies(core, first_atom, library, chain)
    shift = _numbering(bodies, family, chain)
    root, middle, step = root + shift, middle + shift, 1 if forward else -1
    outward = sorted((n for n in bodies if (n - root) * step > 0), reverse=not forward)
    first_bead = sum(BEADS[:k])
    targets = {}
    for bead in range(1, BEADS[k]):
        number = middle + step * RESIDUES_PER_BEAD * bead
        if number in outward:
            targets[outward.index(number)] = first_bead + bead
    return bodies[root], [bodies[n] for n in outward], targets


def beads_of_residues(core: Octamer) -> np.ndarray:
    """(r,) which of the 50 tail beads stands for each residue of an octamer; -1 where it lies in the fold.

    A tail that is longer than that of 1KX5 has its further residues in the last bead. Linker histones and ubiquitin
    have none.
    """
    library, found = list(residue_library().values()), np.full(len(core.residue_template), -1)
    first_atom, first_bead = core.first_atom, 0
    for k, (family, copy, _, forward, middle) in enumerate(TAIL_ROOTS):
        chain = [c for c, name in enumerate(FAMILIES) if name == family][copy]
        rows = np.flatnonzero(core.residue_chain == chain)
        shift = _numbering(_bodies(core, first_atom, library, chain), family, chain)
        outward = core.residue_number[rows] - middle - shift
        bead = ((outward if forward else -outward) + RESIDUES_PER_BEAD // 2) // RESIDUES_PER_BEAD
        found[rows[bead >= 0]] = first_bead + np.minimum(bead[bead >= 0], BEADS[k] - 1)
        first_bead += BEADS[k]
    return found


def _bodies(core: Octamer, first_atom: np.ndarray, library: list[ResidueTemplate], chain: int) -> dict[int, _Body]:
    """The residues of a chain by number."""
    bodies = {}
    for r in np.flatnonzero(core.residue_chain == chain):
        entry, start = library[core.residue_template[r]], int(first_atom[r])
        bodies[int(core.residue_number[r])] = _Body(
            start, entry, *(core.position[start + entry.index[a]] for a in ("N", "CA", "C")),
            core.position[start + entry.index["CD"]] if entry.pdb_name == "PRO" else None)
    return bodies


def _attainable(root: _Body, targets: dict[int, int], beads: np.ndarray, field: "_DistanceField") -> list[np.ndarray]:
    """For every target which of the (m,) beads a chain can come to."""
    result = []
    last, residue = np.broadcast_to(root.ca, (len(beads), 3)), np.full(len(beads), -1)
    for i, bead in targets.items():
        place_of_bead = beads[:, bead]
        near = np.linalg.norm(place_of_bead - last, axis=1) <= LONGEST_STEP * (i - residue)
        counts = near & (field.at(place_of_bead) >= BEAD_CLEARANCE)
        last = np.where(counts[:, None], place_of_bead, last)
        residue = np.where(counts, i, residue)
        result.append(counts)
    return result


def _numbering(bodies: dict[int, _Body], family: str, chain: int) -> int:
    """How much further this histone's numbers are than those of 1KX5, which lies in the same frame."""
    crystal = next(r for r in chains_of(octamer("crystal"))[chain] if r.number == LANDMARK[family])
    nearest = min(bodies, key=lambda n: float(np.linalg.norm(bodies[n].ca - crystal.atoms["CA"])))
    return nearest - LANDMARK[family]


class _DistanceField:
    """Distance to the nearest of some points, on a grid."""

    def __init__(self, points: np.ndarray) -> None:
        self.lower = points.min(axis=0) - MARGIN
        shape = np.ceil((points.max(axis=0) + MARGIN - self.lower) / SPACING).astype(int) + 1
        free = np.ones(shape, dtype=bool)
        free[tuple(np.rint((points - self.lower) / SPACING).astype(int).T)] = False
        self.distance = (SPACING * distance_transform_edt(free)).astype(np.float32)

    def overlap(self, position: np.ndarray) -> np.ndarray:
        """(...,) squared depth, angstrom^2, of points (..., 3) below CLEARANCE."""
        return np.clip(CLEARANCE - self.at(position), 0.0, None) ** 2

    def at(self, position: np.ndarray) -> np.ndarray:
        """(...,) distance, angstrom, of points (..., 3); MARGIN outside the grid."""
        cell = np.rint((position - self.lower) / SPACING).astype(int)
        shape = np.array(self.distance.shape)
        inside = ((cell >= 0) & (cell < shape)).all(axis=-1)
        distance = self.distance[tuple(np.moveaxis(np.clip(cell, 0, shape - 1), -1, 0))]
        return np.where(inside, distance, MARGIN)


def _axes(points: np.ndarray) -> np.ndarray:
    """(..., 3, 3) right-handed axes in columns from N, CA, C (..., 3, 3)."""
    x = points[..., 0, :] - points[..., 1, :]
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    z = np.cross(x, points[..., 2, :] - points[..., 1, :])
    z = z / np.linalg.norm(z, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def _continuations(present: _Body, following: _Body, forward: bool, random: np.random.Generator
                   ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(d, 4, 3) N, CA, C and O of the next residue, in the frame of the present one (CA at its origin).

    Also the torsions (d,) that were drawn: of the present residue, and of the next one. Growing forward, these are
    psi and phi, and the O is that of the present residue; else phi and psi.
    """
    def geometry(body: _Body) -> tuple[float, float, float]:
        first, second = body.n - body.ca, body.c - body.ca
        lengths = np.linalg.norm(first), np.linalg.norm(second)
        return *lengths, float(np.degrees(np.arccos(first @ second / lengths[0] / lengths[1])))

    here = np.array([present.n, present.ca, present.c])
    n, ca, c = (np.repeat(row[None], DRAWS, axis=0) for row in (here - present.ca) @ _axes(here))
    n_ca, ca_c, angle = geometry(following)
    before, after = (present, following) if forward else (following, present)
    psi = draw_phi_psi(random, before.letter, DRAWS)[1]
    phi = draw_phi_psi(random, after.letter, DRAWS)[0]
    if after.letter == "P":
        phi = np.full(DRAWS, _proline_phi(after))
    if forward:
        new_n = place(n, ca, c, C_N, CA_C_N, psi)
        new_ca = place(ca, c, new_n, n_ca, C_N_CA, 180.0)
        new_c = place(c, new_n, new_ca, ca_c, angle, phi)
        oxygen = carbonyl_oxygen(ca, c, new_n)
    else:
        new_c = place(c, ca, n, C_N, C_N_CA, phi)
        new_ca = place(ca, n, new_c, ca_c, CA_C_N, 180.0)
        new_n = place(n, new_c, new_ca, n_ca, angle, psi)
        oxygen = carbonyl_oxygen(new_ca, new_c, n)
    return np.stack([new_n, new_ca, new_c, oxygen], axis=1), *((psi, phi) if forward else (phi, psi))


def _proline_phi(body: _Body) -> float:
    """phi of a proline: the C before lies opposite to CD, since the nitrogen is flat."""
    return float(torsion(body.c, body.ca, body.n, body.delta) % 360.0 - 180.0)


def _grow(root: _Body, grown: list[_Body], forward: bool, wanted: dict[int, tuple[np.ndarray, np.ndarray]],
          field: _DistanceField, others: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(m, residues, 4, 3) N, CA, C and the new O of the best chain for each of m nucleosomes.

    ``wanted``: target (m, 3) of the CA atom of some residues, and for which nucleosomes it counts (m,); ``others``
    (m, k, 3): CA atoms of tails that are there.
    """
    m = len(others)
    chain = np.empty((m, 1, 0, 4, 3))
    corner = np.broadcast_to(np.array([root.n, root.ca, root.c]), (m, 1, 3, 3))
    score, known = np.zeros((m, 1)), np.zeros((m, 1))  # known: the torsion of the present residue that is set
    present = root
    for i, following in enumerate(grown):
        local, of_present, of_next = _continuations(present, following, forward, random)
        axes = _axes(corner)
        new = np.einsum("mbij,dkj->mbdki", axes, local) + corner[:, :, None, None, 1]  # (m, beams, draws, 4, 3)
        cost = STERIC * field.overlap(new).sum(axis=-1)
        if i > 0:  # phi and psi come from different draws
            pair = np.broadcast_arrays(of_present, known[..., None])
            cost += FORBIDDEN * ~allowed(present.letter == "G", *(pair[::-1] if forward else pair))
        if i in wanted:
            bead, counts = wanted[i]
            cost += BEAD * counts[:, None, None] * np.sum((new[..., 1, :] - bead[:, None, None]) ** 2, axis=-1)
        lookahead = np.zeros_like(cost)
        for k in (k for k in wanted if k > i):  # a chain that falls behind cannot come to the beads ahead
            bead, counts = wanted[k]
            distance = np.linalg.norm(new[..., 1, :] - bead[:, None, None], axis=-1)
            behind = BEAD * counts[:, None, None] * np.clip(distance - EASY_STEP * (k - i), 0.0, None) ** 2
            lookahead = np.maximum(lookahead, behind)
        siblings = max(SIBLINGS, BEAMS // new.shape[1])
        best = np.argsort(cost + lookahead, axis=-1, kind="stable")[..., :siblings]
        new = np.take_along_axis(new, best[..., None, None], axis=2)
        cost, lookahead = (np.take_along_axis(x, best, axis=2) for x in (cost, lookahead))
        drawn = of_next[best]
        alpha = new[..., 1, :]
        for placed, apart in ((others[:, None], 0), (chain[:, :, :, 1], 2)):
            if placed.shape[2] > apart:
                placed = placed[:, :, :placed.shape[2] - apart]
                distance = np.linalg.norm(alpha[:, :, :, None] - placed[:, :, None], axis=-1)
                cost = cost + STERIC * np.sum(np.clip(CA_CLEARANCE - distance, 0.0, None) ** 2, axis=-1)
        total = (score[:, :, None] + cost).reshape(m, -1)
        rank = total + lookahead.reshape(m, -1)
        kept = np.argsort(rank, axis=1, kind="stable")[:, :BEAMS]
        parent = kept // new.shape[2]
        new = np.take_along_axis(new.reshape(m, -1, 4, 3), kept[..., None, None], axis=1)
        chain = np.take_along_axis(chain, parent[..., None, None, None], axis=1)
        chain = np.concatenate([chain, new[:, :, None]], axis=2)
        score = np.take_along_axis(total, kept, axis=1)
        known = np.take_along_axis(drawn.reshape(m, -1), kept, axis=1)
        corner, present = new[:, :, :3], following
    best = np.argmin(score, axis=1)
    return chain[np.arange(m), best]


def allowed(glycine: np.ndarray | bool, phi: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """Whether torsions (degree) lie in the wide basins of the Ramachandran map: beta and polyproline, right helix.

    The borders follow the allowed regions of Lovell et al., Proteins 50:437 (2003); glycine has the mirror images too.
    """
    def basin(phi: np.ndarray, psi: np.ndarray) -> np.ndarray:
        psi = (psi + 180.0) % 360.0 - 180.0
        extended = (psi > 90.0) | (psi < -170.0)
        return (phi > -160.0) & (phi < -45.0) & (extended | ((psi > -65.0) & (psi < -20.0)))

    phi = (phi + 180.0) % 360.0 - 180.0
    return basin(phi, psi) | (glycine & basin(-phi, -psi))


def _approach(root: _Body, grown: list[_Body], forward: bool, frames: np.ndarray,
              wanted: dict[int, tuple[np.ndarray, np.ndarray]], field: _DistanceField) -> None:
    """Turn one torsion after the other, in place, to what brings the CA atoms beyond it nearest to their beads.

    A turn (cyclic coordinate descent, Canutescu & Dunbrack 2003) is taken where it lowers the score of beads and
    contacts and leaves the residue in the allowed region.
    """
    if not wanted:
        return
    m, count = frames.shape[:2]
    far, near = (2, 0) if forward else (0, 2)
    glycine = np.array([body.letter == "G" for body in grown])
    proline = [body.letter == "P" for body in [root, *grown]]
    # Of each grown residue the torsion that moves the rest of it, and the one that moves the residues beyond.
    inner, outer = np.full((m, count), np.nan), np.full((m, count), np.nan)
    at_root = np.broadcast_to(np.array([root.n, root.ca, root.c]), (m, 3, 3))
    for i in range(count):
        before = at_root if i == 0 else frames[:, i - 1, :3]
        inner[:, i] = torsion(before[:, far], frames[:, i, near], frames[:, i, 1], frames[:, i, far])
        if i + 1 < count:
            outer[:, i] = torsion(frames[:, i, near], frames[:, i, 1], frames[:, i, far], frames[:, i + 1, near])
    index = sorted(wanted)
    bead = np.stack([wanted[k][0] for k in index], axis=1)
    weight = np.stack([wanted[k][1] for k in index], axis=1).astype(float)

    def cost(points: np.ndarray, place: np.ndarray, chosen: slice) -> np.ndarray:
        apart = np.sum((place - bead[:, chosen]) ** 2, axis=-1)
        return BEAD * np.sum(weight[:, chosen] * apart, axis=1) + STERIC * field.overlap(points).sum(axis=1)

    for sweep in range(SWEEPS):
        for i, turns_residue in ((i, which) for i in range(count) for which in (False, True)):
            # The bond of the residue before that carries residue i, or the first bond within residue i.
            first = i + turns_residue
            chosen = slice(int(np.searchsorted(index, first)), None)
            turns_phi = turns_residue == forward
            if not index[chosen] or (turns_phi and proline[i + turns_residue]):
                continue
            before = at_root if i == 0 else frames[:, i - 1]
            start, end = (frames[:, i, near], frames[:, i, 1]) if turns_residue else (before[:, 1], before[:, far])
            axis = (end - start) / np.linalg.norm(end - start, axis=-1, keepdims=True)
            now = frames[:, first:].reshape(m, -1, 3)
            if turns_residue:
                now = np.concatenate([frames[:, i, far][:, None], now], axis=1)
            place = frames[:, index[chosen], 1]
            arm, goal = place - end[:, None], bead[:, chosen] - end[:, None]
            w = weight[:, chosen]
            across = np.sum(w * np.einsum("mj,mkj->mk", axis, np.cross(arm, goal)), axis=1)
            along = np.sum(w * (np.sum(arm * goal, axis=-1) - np.einsum("mj,mkj->mk", axis, arm)
                                * np.einsum("mj,mkj->mk", axis, goal)), axis=1)
            angle = np.degrees(np.arctan2(across, along)) / (1 + sweep % 3)
            turned = rotate(now, end, axis, angle)
            new_place = turned[:, turns_residue:].reshape(m, -1, 4, 3)[:, [k - first for k in index[chosen]], 1]
            better = cost(turned, new_place, chosen) < cost(now, place, chosen)
            j = i if turns_residue else i - 1  # the residue whose torsion changes
            if j >= 0:
                pair = np.stack([inner[:, j], outer[:, j]])
                turn = angle * np.array([[turns_residue], [not turns_residue]])
                order = (0, 1) if forward else (1, 0)  # phi, psi
                better &= allowed(glycine[j], *(pair + turn)[[*order]]) | ~allowed(glycine[j], *pair[[*order]])
            else:  # the other torsion of the root belongs to the fold
                better &= np.abs(angle) < ROOT_TURN
            kept = np.where(better[:, None, None], turned, now)
            frames[:, first:] = kept[:, turns_residue:].reshape(m, -1, 4, 3)
            if turns_residue:
                frames[:, i, far] = kept[:, 0]
                inner[:, j] = np.where(better, inner[:, j] + angle, inner[:, j])
            elif j >= 0:
                outer[:, j] = np.where(better, outer[:, j] + angle, outer[:, j])


def _put(position: np.ndarray, root: _Body, grown: list[_Body], forward: bool, frames: np.ndarray) -> None:
    """Move the residues of a tail, in place: bodies onto (m, residues, 4, 3) N, CA, C and O."""
    def amide(body: _Body, carbon: np.ndarray, n: np.ndarray, ca: np.ndarray) -> None:
        """The hydrogen of a peptide nitrogen lies in its plane."""
        if "H" in body.entry.index:
            out = (n - carbon) / np.linalg.norm(n - carbon, axis=-1, keepdims=True)
            out = out + (n - ca) / np.linalg.norm(n - ca, axis=-1, keepdims=True)
            position[:, body.first_atom + body.entry.index["H"]] = n + 1.01 * out / np.linalg.norm(
                out, axis=-1, keepdims=True)

    for i, body in enumerate(grown):
        size = len(body.entry.atoms)
        rows = slice(body.first_atom, body.first_atom + size)
        turn = _axes(frames[:, i, :3]) @ _axes(np.array([body.n, body.ca, body.c])).T
        position[:, rows] = np.einsum("mij,mkj->mki", turn, position[:, rows] - body.ca) + frames[:, i, None, 1]
    chain = [root, *grown]
    for i, body in enumerate(grown):
        here = frames[:, i]
        if forward:
            before = chain[i]
            position[:, before.first_atom + before.entry.index["O"]] = here[:, 3]
            carbon = frames[:, i - 1, 2] if i else root.c
            amide(body, carbon, here[:, 0], here[:, 1])
        else:
            position[:, body.first_atom + body.entry.index["O"]] = here[:, 3]
            inner, n, ca = chain[i], *((frames[:, i - 1, 0], frames[:, i - 1, 1]) if i else (root.n, root.ca))
            amide(inner, here[:, 2], n, ca)
