"""The tile and its seams, judged by distances computed with a periodic k-d tree and by the density of liquid water."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from chromabuild.solvate.water import Tiling, seam_changes, water_tile

WATER_MASS = 18.01528
AVOGADRO = 0.602214076  # g/mol to g/cm^3 for a volume in cubic angstrom


def filled(box):
    """(w, 3, 3) molecules of a box of water alone, angstrom, and the waters dropped and added at its faces."""
    tiling = Tiling(tuple(box), water_tile())
    slots = np.flatnonzero((tiling.unwrapped_oxygens(np.arange(tiling.n_tiles)).reshape(-1, 3) < box).all(1))
    dropped, added = seam_changes(tiling)
    assert np.isin(dropped, slots).all() and not np.isin(added, slots).any()
    return tiling.molecules(np.union1d(np.setdiff1d(slots, dropped), added)) / 1000, dropped, added


def close_pairs(molecules, box, reach):
    """Index pairs of molecules with oxygens within ``reach``, and the smallest O-O, O-H and H-H distance of each."""
    box = np.array(box) / 1000
    pairs = cKDTree(molecules[:, 0] % box, boxsize=box).query_pairs(reach, output_type="ndarray")
    d = molecules[pairs[:, 0]][:, :, None] - molecules[pairs[:, 1]][:, None]
    d = np.linalg.norm(d - box * np.rint(d / box), axis=-1)
    return pairs, d[:, 0, 0], np.minimum(d[:, 0, 1:].min(1), d[:, 1:, 0].min(1)), d[:, 1:, 1:].min((1, 2))


def test_tile_is_liquid_tip3p():
    """TIP3P at 300 K and 1 atm: 0.98 g/cm^3 (0.982 at 298 K with PME, Horn et al. 2004 quote 0.980-0.986)."""
    tile = water_tile()
    density = tile.n_molecules * WATER_MASS / (AVOGADRO * (tile.edge / 1000) ** 3)
    assert 0.975 < density < 0.990
    assert tile.edge > 2 * 9000
    # Each coordinate is rounded to 0.001: a distance is off by at most sqrt(3) x 0.001, an angle by about 0.2 degree.
    bonds = (tile.position[:, 1:] - tile.position[:, :1]) / 1000
    length = np.linalg.norm(bonds, axis=2)
    assert np.abs(length - 0.9572).max() < 0.00174
    cosine = (bonds[:, 0] * bonds[:, 1]).sum(1) / length.prod(1)
    assert np.abs(np.degrees(np.arccos(cosine)) - 104.52).max() < 0.25
    assert ((tile.position[:, 0] >= 0) & (tile.position[:, 0] < tile.edge)).all()


def test_tile_has_the_structure_of_a_liquid():
    """First peak of g(r) of oxygens at 2.75-2.8 angstrom (TIP3P 2.77, height about 2.7), no pair below 2.4."""
    tile = water_tile()
    box = np.full(3, tile.edge / 1000)
    distance = cKDTree(tile.position[:, 0] / 1000 % box, boxsize=box).sparse_distance_matrix(
        cKDTree(tile.position[:, 0] / 1000 % box, boxsize=box), 6.0, output_type="ndarray")["v"]
    distance = distance[distance > 0]
    edges = np.arange(2.0, 6.05, 0.1)
    count = np.histogram(distance, edges)[0]
    shell = 4 / 3 * np.pi * np.diff(edges**3)
    g = count / (tile.n_molecules * shell * tile.n_molecules / box.prod())
    assert distance.min() > 2.35
    assert 2.65 <= edges[g.argmax()] <= 2.85
    assert 2.3 < g.max() < 3.3


@pytest.mark.parametrize("box", [(49_620, 49_620, 49_620), (60_123, 43_210, 51_999), (24_811, 30_000, 74_429),
                                 (20_000, 20_001, 21_500)])
def test_no_overlap_across_faces(box):
    molecules, _, _ = filled(box)
    pairs, oo, oh, hh = close_pairs(molecules, box, 3.4)
    direct = np.abs(molecules[pairs[:, 0], 0] - molecules[pairs[:, 1], 0])
    across = (direct > np.array(box) / 2000).any(1)
    # The limits of the seams; inside the liquid closer pairs would be equilibrated ones.
    assert oo[across].min() >= 2.3 and oh[across].min() >= 1.5 - 1e-9 and hh[across].min() >= 1.3 - 1e-9
    assert oo.min() >= 2.3


def test_whole_number_of_tiles_has_no_seam():
    edge = 2 * water_tile().edge
    molecules, dropped, added = filled((edge, edge, edge))
    assert len(dropped) == len(added) == 0
    assert len(molecules) == 8 * water_tile().n_molecules


def test_density():
    """In the bulk any cube of whole tiles holds its molecules exactly; faces lack water of a layer of 0.3 angstrom."""
    box = np.array([90_000, 80_500, 85_300])
    molecules, _, _ = filled(box)
    tile = water_tile()
    expected = tile.n_molecules / (tile.edge / 1000) ** 3
    lower = np.array([11.0, 9.0, 13.0])
    inside = ((molecules[:, 0] >= lower) & (molecules[:, 0] < lower + 2 * tile.edge / 1000)).all(1).sum()
    assert inside == 8 * tile.n_molecules
    size = box / 1000
    missing = expected * size.prod() - len(molecules)
    layer = missing / expected / (size[0] * size[1] + size[1] * size[2] + size[0] * size[2])
    assert 0 < layer < 0.45


def test_slots_are_found_from_any_region():
    """Every wrapped oxygen of a region is in one of the tiles said to touch it, continuation slots included."""
    tiling = Tiling((52_000, 47_300, 60_100), water_tile())
    dropped, added = seam_changes(tiling)
    everything = np.arange(tiling.n_tiles)
    assert len(added)
    wrapped = tiling.molecules(added)[:, 0]
    for lower, upper in (((0, 0, 0), (26_000, 23_650, 30_050)), ((26_000, 0, 30_050), (52_000, 2_000, 60_100))):
        lower, upper = np.array(lower), np.array(upper)
        tiles = tiling.tiles_touching(lower, upper)
        assert (np.diff(tiles) > 0).all() and np.isin(tiles, everything).all()
        here = ((wrapped >= lower) & (wrapped < upper)).all(1)
        assert np.isin(added[here] // tiling.tile.n_molecules, tiles).all()
