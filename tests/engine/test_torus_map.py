"""Ranks on a torus: the hops of neighbouring domains, counted by chromabuild.scaling."""

import subprocess
from itertools import product

import numpy as np
import pytest
from support.build_products import newest

from chromabuild.scaling.topology import Torus, tofu

pytestmark = pytest.mark.mpi
OFFSETS = np.array([p for p in product((-1, 0, 1), repeat=3) if any(p)])


def mapped(dims, torus, edge=(30.0, 30.0, 30.0), width=13.5):
    """Mean links of a byte before and after, and the process of each rank, as the engine chooses it."""
    driver = newest("torus_driver")
    assert driver, "torus_driver is not built"
    words = [*dims, len(torus), *torus, *edge, width]
    done = subprocess.run([driver], input=" ".join(map(str, words)) + "\n", capture_output=True, text=True, check=True)
    numbers = done.stdout.split()
    return [float(x) for x in numbers[:2]], np.array(numbers[2:], dtype=int)


def hops(dims, process, network):
    """Links to the 26 neighbours of every domain, by the simulator: int (26, ranks)."""
    rank = np.arange(np.prod(dims))
    slow_first = tuple(dims)[::-1]
    place = np.array(np.unravel_index(rank, slow_first))[::-1]
    node = process // (len(rank) // network.n_nodes)
    result = []
    for offset in OFFSETS:
        beside = (place + offset[:, None]) % np.array(dims)[:, None]
        other = np.ravel_multi_index(tuple(beside[::-1]), slow_first)
        result.append(network.hops(node, node[other]))
    return np.array(result)


def weights(edge, width):
    """Share of the halo that comes from each neighbour: the width across the border, the edge along it."""
    return np.where(OFFSETS == 0, np.array(edge), np.minimum(edge, width)).prod(axis=1)


@pytest.mark.parametrize(("dims", "network"), [
    ((4, 4, 4), Torus((4, 4, 4))),
    ((8, 2, 4), Torus((4, 8, 2))),  # axes in another order
    ((6, 4, 3), Torus((3, 4, 6))),
    ((16, 4, 4), Torus((4, 4, 4, 4))),  # two axes folded into one
    ((16, 4, 4), Torus((4, 4, 4, 2, 2))),
    ((6, 6, 4), tofu((3, 2, 2))),  # 2 x 3 x 2 nodes a cell, an odd number of cells
])
def test_neighbours_are_as_far_as_on_the_grid(dims, network):
    """One link to a face, two to an edge, three to a corner (Li et al. 2023, Table 1)."""
    _, process = mapped(dims, network.shape)
    assert np.array_equal(np.sort(process), np.arange(np.prod(dims)))
    expected = np.abs(OFFSETS).sum(axis=1)
    assert np.array_equal(hops(dims, process, network), np.broadcast_to(expected[:, None], (26, np.prod(dims))))


@pytest.mark.parametrize(("dims", "network"), [((8, 4, 4), Torus((4, 4, 2))), ((6, 6, 2), Torus((3, 2, 3)))])
def test_ranks_of_a_node_stay_together(dims, network):
    """With several ranks a node no neighbour is farther than on the grid, and faces within a node cost nothing."""
    _, process = mapped(dims, network.shape)
    counted = hops(dims, process, network)
    assert np.array_equal(np.sort(process), np.arange(np.prod(dims)))
    assert (counted <= np.abs(OFFSETS).sum(axis=1)[:, None]).all()
    assert (counted[np.abs(OFFSETS).sum(axis=1) == 1] == 0).any()


@pytest.mark.parametrize(("dims", "shape", "edge"), [
    ((5, 3, 2), (10, 3), (20.0, 30.0, 40.0)), ((4, 4, 4), (16, 4), (30.0,) * 3),
    ((7, 2, 1), (2, 7), (15.0, 60.0, 60.0)), ((9, 4, 5), (6, 30), (25.0,) * 3)])
def test_mean_hops_are_those_of_the_simulator_and_never_more_than_unmapped(dims, shape, edge):
    width = 13.5
    (before, after), process = mapped(dims, shape, edge, width)
    network = Torus(shape)
    weight = weights(edge, width)
    assert np.array_equal(np.sort(process), np.arange(np.prod(dims)))
    for mean, order in ((before, np.arange(np.prod(dims))), (after, process)):
        counted = weight @ hops(dims, order, network).mean(axis=1) / weight.sum()
        assert mean == pytest.approx(counted, rel=1e-12)
    assert after <= before
