"""The pieces of docs/explanation/network-simulation.md that can be checked without the machines it speaks of."""

import numpy as np
import pytest

from chromabuild.scaling import measured
from chromabuild.scaling.apart import step_apart
from chromabuild.scaling.cost import NetworkSpeed
from chromabuild.scaling.fft_trace import Transform
from chromabuild.scaling.machine import find_machine
from chromabuild.scaling.step import (
    DENSITY,
    LINE_SECONDS,
    WAVE_BYTES,
    Decomposition,
    Placement,
    best_scheme,
    choose_block,
    choose_grid,
    fft_time,
    fft_traffic,
    halo_reach,
    node_messages,
    step_time,
    work_time,
)
from chromabuild.scaling.trace import on_nodes

RANK_GRIDS = {1024: (8, 8, 16), 2048: (8, 16, 16), 4096: (16, 16, 16), 8192: (16, 16, 32), 16_384: (16, 32, 32),
              32_768: (32, 32, 32), 65_536: (32, 32, 64)}
NETWORKS = ("infiniband", "dragonfly", "torus")
SETTINGS = measured.StepSettings()


def cube(atoms, ranks):
    return Decomposition(((atoms / DENSITY) ** (1 / 3),) * 3, atoms, RANK_GRIDS[ranks])


def placed(ranks):
    return Placement(RANK_GRIDS[ranks], 32, (2, 4, 4))


def network(name, ranks):
    machine = find_machine(name)
    return machine.speed, machine.network.topology(ranks // 32, placed(ranks).node_grid)


def test_measured_work_is_kept_at_the_measured_sizes():
    atoms, cost = measured.step_cost(SETTINGS)
    for n, each in zip(atoms, cost, strict=True):
        ranks = 1024
        system = cube(n * ranks, ranks)
        lines = np.log2(np.prod(system.points)) - np.log2(atoms[-1] / DENSITY / measured.GRID_SPACING**3)
        longer = 2 * np.prod(system.points) / ranks * lines * LINE_SECONDS
        assert work_time(system) == pytest.approx(n * each + longer, rel=1e-6)


def test_every_node_has_32_ranks():
    for ranks, grid in RANK_GRIDS.items():
        assert np.prod(grid) == ranks
        for name in NETWORKS:
            assert network(name, ranks)[1].n_nodes == ranks // 32
        assert (np.bincount(placed(ranks).node_of) == 32).all()


@pytest.mark.parametrize("scheme", ["1d", "2d"])
@pytest.mark.parametrize("block", [(2, 4, 4), None])
def test_traffic_summed_in_pieces_is_the_whole(scheme, block):
    points, ranks = (54, 48, 60), 1024
    placement = Placement(RANK_GRIDS[ranks], 32, block)
    whole = Transform(points, RANK_GRIDS[ranks], scheme, point_bytes=WAVE_BYTES).phases()
    for exchange, phase in zip(fft_traffic(points, placement, scheme), whole, strict=True):
        between = exchange.traffic
        expected = on_nodes(phase, placement.node_of)
        assert [between.source.tolist(), between.target.tolist(), between.size.tolist()] == \
            [expected.source.tolist(), expected.target.tolist(), expected.size.tolist()]
        assert exchange.messages == max(phase.messages_sent(ranks).max(), phase.messages_received(ranks).max())
        assert exchange.kept + expected.bytes_sent(32).max() >= phase.bytes_sent(ranks).max()


def test_messages_of_nodes_are_few_and_cost_copies():
    """Rows of ranks along x fill nodes of 32: 1024 ranks of a plane lie on 32 nodes, whose ranks take one message each.
    It pays for the short messages along y in 2d, and nothing changes in 1d, where messages are longer than 1 KiB."""
    placement = Placement(RANK_GRIDS[32_768], 32)
    found = [node_messages(placement, among) for among in ((True, False, False), (True, True, False),
                                                           (False, False, True))]
    assert found == [(0, 32), (1, 32), (31, 1)]
    system, net = cube(1e9, 1024), network("infiniband", 1024)
    assert fft_time(system, placed(1024), *net, "1d", by_node=True) == fft_time(system, placed(1024), *net, "1d")
    small = cube(1e6, 1024)
    assert fft_time(small, placed(1024), *net, "2d", by_node=True) < fft_time(small, placed(1024), *net, "2d")
    assert best_scheme(small, placed(1024), *net)[2] <= fft_time(small, placed(1024), *net, "2d", by_node=True)


def test_ranks_apart_share_the_work():
    """Where messages cost nothing and domains are large, both sides together do the work of all ranks."""
    system, (_, topology) = cube(1e8, 1024), network("infiniband", 1024)
    free = NetworkSpeed(0.0, 0.0, 0.0, np.inf)
    found = step_apart(system.edge, 1e8, 32, 4, free, topology)
    assert (found.domains, found.pme_ranks) == (896, 128)
    assert 896 * found.real + 128 * found.reciprocal == pytest.approx(1e3 * 1024 * work_time(system))
    assert found.step == max(found.real, found.reciprocal)
    cable = step_apart(system.edge, 1e8, 32, 4, NetworkSpeed(0.0, 0.0, 0.0, 1e9), topology)
    assert cable.between == pytest.approx(1e3 * 1e8 / 32 * 48 / 1e9)  # 24 bytes an atom each way


def test_more_ranks_are_faster_and_halos_fit():
    times = []
    for ranks in (1024, 4096):
        system = cube(1e8, ranks)
        assert min(system.domain) > halo_reach(SETTINGS)
        parts = step_time(system, placed(ranks), *network("infiniband", ranks))
        assert all(value > 0 for value in parts.values())
        times.append(sum(parts.values()))
    assert times[0] / 4 < times[1] < times[0]


def test_weak_scaling_keeps_domains():
    each = 1e9 / 65_536
    edge = (each / DENSITY) ** (1 / 3)
    for ranks in (1024, 65_536):
        system = Decomposition(tuple(edge * p for p in RANK_GRIDS[ranks]), each * ranks, RANK_GRIDS[ranks])
        assert system.atoms_a_rank == pytest.approx(1e9 / 65_536)
        assert system.domain == pytest.approx([system.domain[0]] * 3)


def test_domains_are_chosen_as_by_the_engine():
    """The least halo volume; narrow domains only where nothing else is left (fortran/comm/domain_grid.f90)."""
    assert sorted(choose_grid((300.0,) * 3, 1024, 10.0)) == [8, 8, 16]
    assert choose_grid((400.0, 100.0, 100.0), 8, 15.0) == (8, 1, 1)
    assert choose_grid((30.0, 30.0, 30.0), 7, 16.0) in ((7, 1, 1), (1, 7, 1), (1, 1, 7))
    edge, reach = (153.0, 140.0, 151.0), 16.5
    for ranks in (12, 48, 60):
        grid = choose_grid(edge, ranks, reach)
        volume = np.prod([a / p + 2 * reach for a, p in zip(edge, grid, strict=True)])
        for x in range(1, ranks + 1):
            for y in range(1, ranks // x + 1):
                if ranks % (x * y) == 0:
                    other = np.array(edge) / (x, y, ranks // x // y)
                    assert (other < reach).any() or np.prod(other + 2 * reach) > volume * (1 - 1e-9)


def test_blocks_of_domains_fill_the_grid():
    for grid, per_node in (((8, 8, 16), 32), ((8, 6, 4), 4), ((5, 4, 3), 6)):
        block = choose_block(grid, per_node)
        placement = Placement(grid, per_node, block)
        assert np.prod(block) == per_node
        assert (np.bincount(placement.node_of) == per_node).all()
    assert choose_block((5, 5, 5), 4) is None


def test_one_rank_sends_nothing():
    system = Decomposition((60.0, 60.0, 60.0), 21_600, (1, 1, 1))
    machine = find_machine("workstation")
    parts = step_time(system, Placement((1, 1, 1), 1), machine.speed, machine.network.topology(1, (1,)))
    assert [name for name, value in parts.items() if value] == ["work"]


def test_a_smaller_cutoff_costs_pairs_only():
    """Pairs go with the cube of the cutoff; the measured settings change nothing."""
    assert set(SETTINGS.work_ratio().values()) == {1.0}
    short = measured.StepSettings(cutoff=9.0, list_distance=10.5)
    assert short.work_ratio()["real space"] == pytest.approx(0.75**3)
    assert (measured.step_cost(short)[1] < measured.step_cost(SETTINGS)[1]).all()


def test_threads_gain_what_was_measured():
    assert measured.thread_gain(1) == 1.0
    assert measured.thread_gain(2) == pytest.approx(210 / 116)
    assert 2 < measured.thread_gain(8) < 8


def test_memory_follows_the_measured_runs():
    assert measured.rank_memory(2_400_000) == pytest.approx(2_400_000 * 310)
    assert measured.rank_memory(5e7) == pytest.approx(5e7 * 243)
    sizes = np.array([measured.rank_memory(n) for n in np.geomspace(1e2, 1e8, 60)])
    assert sizes[0] > 3e7 and (np.diff(sizes) > 0).all()
