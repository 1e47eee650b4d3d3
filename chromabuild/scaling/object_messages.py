"""Messages of the fine objects of chromaqm, kind by kind, as the geometry of a map has them.

Objects of states are those of pairs of states here: `states` of a Decomposition are pairs, `s_grain` and `ortho_grain`
too. Names are those of `sent_by_ranks` in the result file of chromaqm.
"""

from math import ceil

import numpy as np

from chromabuild.scaling.fans import Fan, combined, tree
from chromabuild.scaling.placement import Decomposition, ObjectMap
from chromabuild.scaling.planewave_trace import COMPLEX, REAL, deal_sticks, pair_fan, smooth_size, stick_lengths
from chromabuild.scaling.trace import Phase

BUCKET = 5
"""Messages of transposes of states that travel as one."""


def messages_of_objects(d: Decomposition, m: ObjectMap, box: tuple[float, float, float], cutoff: float,
                        gradient: bool) -> dict[str, np.ndarray]:
    """Messages that each rank sends, (ranks,): in one evaluation of the functional for all kinds but the last seven;
    for states to pair calculators and back, sums of overlaps and matrices in one product of states; for tiles of one
    factor of matrices; for atoms to waves and back in one sum of structure factors, and in forces. Bytes of some kinds
    under their name with ``_bytes``. `box` in bohr, `cutoff` in Ry; `gradient`: whether the functional needs the
    gradient of the density. Sums are by splines where `d` has more than one of `nonlocal_planes` or
    `hartree_planes`."""
    ways = 2 if gradient else 1
    lines = lines_of_sets(box, cutoff, d.g_sets)
    part = -(-d.planes // d.subplanes) * d.planes * REAL
    there = Fan("states_to_planes", m.g, m.r, 1.0)
    potentials = Fan("potentials", m.rho_r, m.r.T, part)
    density = Fan("density_to_waves", m.rho_r.reshape(1, -1), m.rho_g.reshape(1, -1), 1.0, ways)
    rows = Fan("rows_to_columns", m.rho_r, m.rho_r, 1.0, ways)
    to_pairs = pair_fan(d, m, 1.0, 1)
    mesh = mesh_ranks(m.r, d.nonlocal_planes)
    projected = m.g if d.nonlocal_planes == 1 else mesh
    atoms = Fan("atoms_to_waves", mesh_ranks(m.rho_r[:, 0], d.hartree_planes)[None, :], m.rho_g[None, :], 1.0)
    to_mesh = Fan("states_to_mesh", m.g, mesh, 1.0)
    owners = list(m.pair.reshape(len(m.pair), -1))
    sums = tree("density_sums", list(m.r.T), m.rho_r, part, upward=True)
    one_way = {fan.name: fan for fan in (potentials, density, rows)}
    one_way |= {"density_to_planes": density.reverse("density_to_planes"),
                "columns_to_rows": rows, "states_to_pairs": to_pairs, "pairs_to_states": to_pairs.reverse("back")}
    found = {name: fan.messages() for name, fan in one_way.items()}
    found |= {"density_sums": sums,
              "projection_sums": tree("projection_sums", list(projected), projected[:, 0], 1.0, upward=True),
              "projections": tree("projections", list(projected), projected[:, 0], 1.0, upward=False),
              "overlap_sums": tree("overlap_sums", owners, m.ortho, 1.0, upward=True),
              "matrices": rectangular("matrices", owners, m.ortho, m.n_ranks),
              "tiles_of_products": factor_tiles(d, m)}
    if d.hartree_planes > 1:
        found |= {"atoms_to_waves": atoms.messages(), "waves_to_atoms": atoms.reverse("back").messages()}
    sent = {name: phase.messages_sent(m.n_ranks) for name, phase in found.items()}
    for fan, back in ((there, "planes_to_states"), (to_mesh, "mesh_to_states")):
        sent[fan.name] = combined([fan.messages()], m.n_ranks, BUCKET)[0]
        sent[back] = combined([fan.reverse(back).messages()], m.n_ranks, BUCKET)[0]
    if d.nonlocal_planes == 1:
        sent["states_to_mesh"] = sent["mesh_to_states"] = np.zeros(m.n_ranks)
    away = (m.g[:, :, None] != m.r[:, None, :]) * lines[:, None] * COMPLEX  # pairs, sets, planes
    sent["states_to_planes_bytes"] = np.bincount(m.g.ravel(), away.sum(axis=2).ravel(), m.n_ranks)
    sent["planes_to_states_bytes"] = np.bincount(m.r.ravel(), away.sum(axis=1).ravel(), m.n_ranks)
    if d.planes % d.subplanes == 0:
        sent["potentials_bytes"] = sent["potentials"] * part
        sent["density_sums_bytes"] = sent["density_sums"] * part
    return {name: np.asarray(values, dtype=np.int64) for name, values in sent.items()}


def mesh_planes(points: int, order: int, scale: float = 1.4) -> int:
    """Planes of the mesh of splines for waves that need so many points, as euler_spline.f90 has them."""
    return smooth_size(max(points, ceil(scale * points), order))


def mesh_ranks(ranks: np.ndarray, planes: int) -> np.ndarray:
    """Ranks of the planes of a mesh: each where the plane of the grid at its height is, along the last axis."""
    return ranks[..., np.arange(planes) * ranks.shape[-1] // planes]


def lines_of_sets(box: tuple[float, float, float], cutoff: float, sets: int) -> np.ndarray:
    """Lines along z of each set of waves, mirror images included; the stick kx = ky = 0, the first, is its own."""
    part = deal_sticks(stick_lengths(box, cutoff), sets)
    return 2 * np.bincount(part, minlength=sets) - (np.arange(sets) == part[0])


def width_of_rectangle(n_ranks: int) -> int:
    """Columns of a rectangle of all ranks that is as near to a square as their number allows."""
    rows = int(n_ranks**0.5 + 0.5)
    while n_ranks % rows:
        rows -= 1
    return n_ranks // rows


def rectangular(name: str, targets: list[np.ndarray], roots: np.ndarray, n_ranks: int) -> Phase:
    """Multicasts from each root of a group to the distinct ranks of the group: along the row of the root to the columns
    that hold targets, then down these columns."""
    width = width_of_rectangle(n_ranks)
    source, target = [], []
    for ranks, tops in zip(targets, roots, strict=True):
        for root in np.atleast_1d(tops):
            others = np.setdiff1d(np.unique(ranks), root)
            heads = root // width * width + others % width
            first = np.setdiff1d(heads, root)
            down = others != heads
            source += [np.full(len(first), root), heads[down]]
            target += [first, others[down]]
    source, target = np.concatenate(source), np.concatenate(target)
    return Phase(name, source, target, np.ones(len(source)))


def factor_tiles(d: Decomposition, m: ObjectMap) -> Phase:
    """Tiles of one symmetric factor to the ranks whose tiles of the product need them: those in the row of the tile
    and, where the tile stands for its transpose too, in its column."""
    tile = np.arange(d.tiles**2)
    row = d.block_pairs[:, [0]] * d.tiles + tile // d.tiles
    column = d.block_pairs[:, [1]] * d.tiles + tile % d.tiles
    both = np.broadcast_to((d.block_pairs[:, 0] != d.block_pairs[:, 1])[:, None], row.shape)
    row, column, both, rank = (table.ravel() for table in (row, column, both, m.ortho))
    source, target = [], []
    for k, owner in enumerate(rank):
        near = (row == row[k]) | (column == row[k])
        if both[k]:
            near |= (row == column[k]) | (column == column[k])
        needed = np.setdiff1d(rank[near], owner)
        source.append(np.full(len(needed), owner))
        target.append(needed)
    source, target = np.concatenate(source), np.concatenate(target)
    return Phase("tiles_of_products", source, target, np.ones(len(source)))
