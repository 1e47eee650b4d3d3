"""Networks against graphs searched breadth first, and against textbook hop counts, bisections and loads."""

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import shortest_path

from chromabuild.scaling.topology import Dragonfly, FatTree, Torus, tofu, tofu_nodes


def everyone(n):
    source, target = np.divmod(np.arange(n * n), n)
    other = source != target
    return source[other], target[other]


def grid_graph(shape, wrap):
    """Cables between neighbours on the grid, made without the class under test."""
    place = {tuple(p): k for k, p in enumerate(np.ndindex(*shape[::-1]))}
    ends = []
    for p, k in place.items():
        for axis in range(len(shape)):
            q = list(p)
            slow_first = len(shape) - 1 - axis
            q[slow_first] += 1
            if q[slow_first] == shape[axis]:
                if not wrap[axis]:
                    continue
                q[slow_first] = 0
            ends.append((k, place[tuple(q)]))
    i, j = np.array(ends).T
    return coo_matrix((np.ones(len(i)), (i, j)), shape=(len(place),) * 2)


@pytest.mark.parametrize("torus", [Torus((8,)), Torus((5, 4)), Torus((4, 2, 3)), Torus((2, 4, 2, 2, 4, 2)),
                                   Torus((4, 3, 2), (True, False, False)), tofu((2, 3, 2))])
def test_torus_hops_are_shortest_paths(torus):
    graph = grid_graph(torus.shape, torus.is_ring)
    source, target = everyone(torus.n_nodes)
    distance = shortest_path(graph, directed=False, unweighted=True)
    assert np.array_equal(torus.hops(source, target), distance[source, target])


def test_mean_distance_of_rings():
    """k/4 an axis of even length, averaged over all nodes and the node itself."""
    torus = Torus((16, 16, 16))
    assert torus.hops(np.zeros(4096, dtype=int), np.arange(4096)).mean() == 3 * 16 / 4


def test_tofu_keeps_grid_neighbours_one_hop_apart():
    cells = (2, 2, 4)
    nodes, shape = tofu_nodes(cells), (4, 6, 8)
    assert np.array_equal(np.sort(nodes), np.arange(len(nodes)))
    grid = Torus(shape)
    place = grid.coordinates(np.arange(grid.n_nodes))
    for axis in range(3):
        beside = place.copy()
        beside[axis] = (beside[axis] + 1) % shape[axis]
        assert (tofu(cells).hops(nodes, nodes[grid.node(beside)]) == 1).all()


def test_fat_tree_hops():
    """A tree of 3 levels: 2, 4 or 6 cables."""
    tree = FatTree((4, 3, 2))
    hops = tree.hops(np.zeros(24, dtype=int), np.arange(24))
    assert hops.tolist() == [0] + [2] * 3 + [4] * 8 + [6] * 12


def test_dragonfly_hops():
    """Groups joined by one cable each: distances counted by hand (Kim et al. 2008)."""
    a, p, h = 4, 2, 2
    fly = Dragonfly(a * h + 1, a, p, h)
    expected = {2: p - 1, 3: (a - 1) * p + h * p, 4: h * (a - 1) * p + (a - 1) * h * p, 5: (a - 1) * h * (a - 1) * p}
    for node in (0, 7, fly.n_nodes - 1):
        hops = fly.hops(np.full(fly.n_nodes, node), np.arange(fly.n_nodes))
        found = dict(zip(*np.unique(hops[hops > 0], return_counts=True), strict=True))
        assert found == expected
    with pytest.raises(ValueError, match="do not reach"):
        Dragonfly(10, 4, 2, 2)


def test_bisections():
    assert Torus((4, 4, 8)).bisection == 2 * 16
    assert Torus((4, 4, 8), (True, True, False)).bisection == 16
    assert Torus((2, 2, 2)).bisection == 8  # two cables between two nodes
    assert FatTree((8, 4)).bisection == 16 and FatTree((8, 4), (1.0, 2.0)).bisection == 8
    assert Dragonfly(9, 4, 2, 2).bisection == 4 * 5


@pytest.mark.parametrize("network", [Torus((4, 4, 8)), Torus((8, 8), orders="one"), Torus((2, 4, 2)), FatTree((8, 4)),
                                     FatTree((4, 4), (1, 4)), Dragonfly(9, 4, 2, 2), Dragonfly(4, 4, 2, 2)])
def test_uniform_traffic_obeys_the_bisection(network):
    """(N/2)^2 messages cross each way; on tori of even length nothing is worse than that."""
    source, target = everyone(network.n_nodes)
    load = network.worst_load(source, target, np.ones(len(source)))
    bound = (network.n_nodes / 2) ** 2 / network.bisection
    assert load >= 0.999 * bound
    if isinstance(network, Torus):
        assert load == pytest.approx(bound)


@pytest.mark.parametrize("torus", [Torus((5, 4, 3)), Torus((4, 2, 6), orders="one"), tofu((2, 1, 2)),
                                   Torus((7,), (False,))])
def test_torus_conserves_bytes(torus):
    """What flows into a node less what flows out is what it receives less what it sends; bytes times hops in all."""
    rng = np.random.default_rng(5)
    source, target = rng.integers(0, torus.n_nodes, (2, 300))
    size = rng.integers(1, 1000, 300).astype(float)
    loads = torus.link_loads(source, target, size)
    place = torus.coordinates(np.arange(torus.n_nodes))
    net = np.zeros(torus.n_nodes)
    for axis, length in enumerate(torus.shape):
        for direction, sign in enumerate((1, -1)):
            there = place.copy()
            there[axis] = (there[axis] + sign) % length
            net[torus.node(there)] += loads[axis, direction]
            net -= loads[axis, direction]
            if not torus.is_ring[axis]:  # nothing leaves the end of a row
                assert not loads[axis, direction][place[axis] == (length - 1 if sign > 0 else 0)].any()
    asked = np.bincount(target, size, torus.n_nodes) - np.bincount(source, size, torus.n_nodes)
    assert net == pytest.approx(asked, abs=1e-8)
    assert loads.sum() == pytest.approx((size * torus.hops(source, target)).sum())


@pytest.mark.parametrize("network", [FatTree((4, 3, 2)), Dragonfly(5, 4, 3, 2)])
def test_switched_networks_conserve_bytes(network):
    """Every byte passes its sender's and its receiver's cable once, and as many cables in all as it makes hops."""
    rng = np.random.default_rng(6)
    source, target = rng.integers(0, network.n_nodes, (2, 300))
    size = np.where(source == target, 0.0, rng.integers(1, 1000, 300))
    loads = network.link_loads(source, target, size)
    if isinstance(network, FatTree):
        node = loads[0]
        total = sum(load.sum() * network.cables(level) for level, load in enumerate(loads))
    else:
        node = loads["node"]
        total = sum(load.sum() for load in loads.values())
    assert node[0] == pytest.approx(np.bincount(source, size, network.n_nodes))
    assert node[1] == pytest.approx(np.bincount(target, size, network.n_nodes))
    assert total == pytest.approx((size * network.hops(source, target)).sum())


@pytest.mark.parametrize("n", [8, 16])
def test_all_to_all_on_a_ring(n):
    """n^2/8 messages on every cable each way."""
    source, target = everyone(n)
    assert Torus((n,)).link_loads(source, target, np.ones(len(source))) == pytest.approx(n * n / 8)
