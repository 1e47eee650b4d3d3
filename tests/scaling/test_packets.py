"""The packet simulation against bounds that hold whatever the routers do."""

import numpy as np
import pytest

from chromabuild.scaling.packets import Router, simulate
from chromabuild.scaling.topology import Torus


def everyone(n, times=1):
    source, target = np.divmod(np.arange(n * n), n)
    other = source != target
    return np.repeat(source[other], times), np.repeat(target[other], times)


@pytest.mark.parametrize("times", [1, 8])
def test_all_to_all_on_a_ring_comes_near_its_bound(times):
    """n^2/8 packets cross each link each way; pipeline and uneven lots cost a third at most."""
    n = 16
    source, target = everyone(n, times)
    slots = simulate(Torus((n,)), source, target).slots
    bound = times * n * n / 8
    assert bound <= slots <= 1.34 * bound


@pytest.mark.parametrize("router", [Router(), Router(room=2, channels=1, queues=1), Router(adaptive=False)])
@pytest.mark.parametrize("torus", [Torus((6, 4)), Torus((4, 3, 2), (True, False, True))])
def test_all_packets_arrive_by_shortest_ways(torus, router):
    """Every packet makes as many hops as there are, takes at least a slot for each, and nothing is lost or stuck."""
    rng = np.random.default_rng(3)
    source, target = rng.integers(0, torus.n_nodes, (2, 40 * torus.n_nodes))
    outcome = simulate(torus, source, target, router)
    hops = torus.hops(source, target)
    assert outcome.carried.sum() == hops.sum()
    assert (outcome.arrived >= hops).all() and outcome.arrived.max() == outcome.slots
    assert outcome.carried.max() <= outcome.slots
    for axis in range(torus.n_axes):
        assert outcome.carried[axis].sum() == np.abs(torus.steps(source, target)[axis]).sum()


def test_one_way_traffic_is_as_fast_as_its_links():
    """Everyone to the next but one: two packets a link and packet, and two hops of pipeline."""
    n, times = 12, 20
    source = np.repeat(np.arange(n), times)
    outcome = simulate(Torus((n,)), source, (source + 2) % n, Router(queues=2))
    assert 2 * times <= outcome.slots <= 2 * times + 4
    assert not outcome.carried[0, 1].any()


def test_same_seed_same_packets():
    source, target = everyone(9)
    first, again = (simulate(Torus((3, 3)), source, target, seed=4) for _ in range(2))
    assert np.array_equal(first.arrived, again.arrived)
