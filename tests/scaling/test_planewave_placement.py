"""Maps of the objects of a plane-wave step, and the load of their messages."""

import numpy as np
import pytest

from chromabuild.scaling.fans import Fan, combined, link_loads, mirrored, tree
from chromabuild.scaling.placement import (
    Decomposition,
    hybrid_map,
    naive_map,
    plane_map,
    prism_map,
    prisms,
    random_map,
    state_map,
    turns,
)
from chromabuild.scaling.planewave_trace import System, grid_size, stages
from chromabuild.scaling.published import bluegene_planewave as paper
from chromabuild.scaling.topology import Torus

SMALL = Decomposition(states=16, planes=20, g_sets=8, s_grain=4, chunks=2, subplanes=2, rho_sets=10, hartree_planes=28,
                      nonlocal_planes=14, atom_types=2)


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("orders", ["all", "one"])
def test_groups_load_cables_as_single_messages_do(wrap, orders):
    """Ties around a ring, absent members, two ranks a node."""
    random = np.random.default_rng(0)
    torus = Torus((4, 3, 6), (wrap,) * 3, orders)
    fan = Fan("any", random.integers(0, 144, (5, 7)), random.integers(-1, 144, (5, 9)), 10.0, 3)
    one = fan.messages()
    expected = torus.link_loads(one.source // 2, one.target // 2, one.size)
    np.testing.assert_allclose(link_loads(torus, fan, 2), expected, atol=1e-3 * expected.max())
    if orders == "all":
        back = link_loads(torus, fan.reverse("back"), 2)
        np.testing.assert_allclose(mirrored(torus, expected), back, atol=1e-3 * expected.max())
    sent, received = fan.sent_and_received(144)
    assert sent.tolist() == one.messages_sent(144).tolist()
    assert received.tolist() == one.messages_received(144).tolist()


def test_a_deposited_packet_crosses_a_link_once():
    """To all nodes of a 4 x 4 x 1 torus: one row, then columns, each link of the tree once."""
    torus = Torus((4, 4, 1))
    loads = link_loads(torus, Fan("all", np.array([[0]]), np.arange(16)[None], 8.0, deposit=True))
    assert loads.max() <= 8.0
    assert loads.sum() == pytest.approx(8.0 * 15, rel=0.35)  # ties of even rings go both ways


def test_trees_reach_every_rank_once():
    phase = tree("sum", [np.array([3, 5, 5, 9, 1])], np.array([5]), 4.0, upward=True)
    assert sorted(phase.source.tolist()) == [1, 3, 9]
    assert combined([phase, phase], 10, 5)[0].sum() == 3


@pytest.mark.parametrize("shape, n", [((8, 8, 16), 64), ((8, 16, 16), 128), ((4, 4, 2), 64), ((32, 40, 16), 128)])
def test_prisms_tile_the_torus(shape, n):
    """Every node in as many prisms as any other, and each prism spans an axis."""
    torus = Torus(shape)
    axis, nodes = prisms(torus, n)
    assert nodes.shape[:2] == (n, shape[axis])
    assert len(set(np.bincount(nodes.ravel(), minlength=torus.n_nodes))) == 1
    for prism in nodes:
        place = torus.coordinates(prism.ravel()).reshape(3, *prism.shape)
        assert (place[axis] == np.arange(shape[axis])[:, None]).all()
        assert all(np.ptp(place[a], axis=0).max() == 0 for a in range(3) if a != axis)


def test_the_prism_map_is_the_source_s():
    """States ascend along prisms; planes of a state stay in the slab of its lines; lines of the density are beside its
    planes; pair calculators and ortho are inside of prisms."""
    torus = Torus((4, 4, 4))
    placed = prism_map(SMALL, torus)
    axis, nodes = prisms(torus, SMALL.g_sets)
    along = torus.coordinates(placed.g)[axis]
    assert (np.diff(along, axis=0) >= 0).all()
    for s in range(SMALL.states):
        assert set(torus.coordinates(placed.r[s])[axis]) == set(along[s])
        assert set(torus.coordinates(placed.nonlocal_r[s])[axis]) == set(along[s])
    assert not set(placed.rho_g) & set(placed.rho_r.ravel())
    for p in range(SMALL.g_sets):
        assert set(placed.g[:, p]) | set(placed.pair[:, p].ravel()) <= set(nodes[p].ravel())
    assert all(set(tiles) <= set(owners.ravel()) for tiles, owners in zip(placed.ortho, placed.pair, strict=True))
    # No kind of object piles up: at most twice an even share.
    for kind in ("g", "r", "rho_r", "pair"):
        found = np.bincount(getattr(placed, kind).ravel(), minlength=64)
        assert found.max() <= 2 * -(-getattr(placed, kind).size // 64), kind


def test_state_plane_and_hybrid_maps():
    """No transpose leaves a rank in the state map; a rank has its planes of all states in the plane map."""
    assert (np.ptp(state_map(SMALL, 8).r, axis=1) == 0).all()
    assert np.array_equal(state_map(SMALL, 8).g[:, 0], state_map(SMALL, 8).r[:, 0])
    assert (np.ptp(plane_map(SMALL, 8).r, axis=0) == 0).all()
    hybrid = hybrid_map(SMALL, 8, 4).r
    assert [len(np.unique(row)) for row in hybrid] == [2] * 16
    assert [len(np.unique(column)) for column in hybrid.T] == [4] * 20
    with pytest.raises(ValueError, match="3 groups do not divide 8 ranks"):
        hybrid_map(SMALL, 8, 3)
    order, together = turns(hybrid, 8)
    assert len(np.unique(hybrid[order[:4], 0])) == 4 and sorted(order) == list(range(16)) and together == 16


@pytest.mark.parametrize("make", [naive_map, random_map])
def test_objects_are_dealt_evenly(make):
    for kind in ("g", "r", "nonlocal_r", "pair"):
        found = np.bincount(getattr(make(SMALL, 30), kind).ravel(), minlength=30)
        assert np.ptp(found) <= 1, kind


def test_work_does_not_depend_on_the_map():
    """Operations of all ranks together, to the last one."""
    system = System(12.0, 30.0, 16, 12, 2)
    totals = [[(stage.transforms.sum(), stage.products.sum())
               for stage in stages(system, SMALL, placed, rectangular=True)]
              for placed in (prism_map(SMALL, Torus((4, 4, 4))), plane_map(SMALL, 64), random_map(SMALL, 64))]
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-12)
    np.testing.assert_allclose(totals[0], totals[2], rtol=1e-12)


def test_system_of_the_source():
    """32 waters: 128 states, N = 100, about 64,000 waves of the whole sphere; 500 objects of the density."""
    system, d = paper.system(32), paper.decomposition(32, 1024)
    assert (d.states, d.planes, grid_size(70**0.5, system.edge)) == (128, 100, 100)
    assert 2 * system.waves() == pytest.approx(64000, rel=0.01)
    assert d.planes * d.subplanes + d.rho_sets == 500


def test_recorded_loads_are_what_the_simulator_gives():
    """One small run anew; the others take minutes."""
    key = (8, paper.CO, 64)
    for name, load in paper.simulate(*key).items():
        assert vars(paper.recorded()[key][name]) == pytest.approx(vars(load), rel=1e-5), name


def test_table_1_of_the_source():
    """Coprocessor mode from 512 nodes on is predicted to 25 %, on the mean to 12 %, but for 128 waters on the whole
    machine and 8 and 16 waters on 512 nodes. The gain by the topology map is missed: see the page."""
    found = {key: entry for key, entry in paper.entry_of().items()
             if key[1] == paper.CO and key[2] >= 512 and entry and not entry.fitted
             and key not in ((128, paper.CO, 20480), (8, paper.CO, 512), (16, paper.CO, 512))}
    assert max(abs(entry.deviation) for entry in found.values()) < 0.25
    assert np.mean([abs(entry.deviation) for entry in found.values()]) < 0.12
    for waters, _, published, by_lot, _ in paper.topology_ratios():
        assert published > 1.3 and by_lot < published, waters
