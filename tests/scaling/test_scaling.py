"""The pieces of docs/scaling.md that can be checked without the machines it speaks of."""

import numpy as np
import pytest
from network import scaling

from chromabuild.scaling.fft_trace import Transform
from chromabuild.scaling.trace import on_nodes


def test_measured_work_is_kept_at_the_measured_sizes():
    atoms, cost = scaling.measured()
    for n, each in zip(atoms, cost, strict=True):
        ranks = 1024
        system = scaling.System(((n * ranks / scaling.DENSITY) ** (1 / 3),) * 3, ranks)
        lines = np.log2(np.prod(system.points)) - np.log2(atoms[-1] / scaling.DENSITY / scaling.GRID_SPACING**3)
        longer = 2 * np.prod(system.points) / ranks * lines * scaling.LINE_SECONDS
        assert scaling.work_time(system) == pytest.approx(n * each + longer, rel=1e-6)


def test_every_node_has_32_ranks():
    for ranks, grid in scaling.RANK_GRIDS.items():
        assert np.prod(grid) == ranks
        for _, topology, node_of in scaling.networks(ranks).values():
            assert topology.n_nodes == ranks // 32 and (np.bincount(node_of) == 32).all()


@pytest.mark.parametrize("scheme", ["1d", "2d"])
def test_traffic_summed_in_pieces_is_the_whole(scheme):
    points, ranks = (54, 48, 60), 1024
    node_of = scaling.networks(ranks)["3D torus"][2]
    whole = Transform(points, scaling.RANK_GRIDS[ranks], scheme, point_bytes=scaling.WAVE_BYTES).phases()
    for (between, messages, kept), phase in zip(scaling.fft_traffic(points, ranks, scheme), whole, strict=True):
        expected = on_nodes(phase, node_of)
        assert [between.source.tolist(), between.target.tolist(), between.size.tolist()] == \
            [expected.source.tolist(), expected.target.tolist(), expected.size.tolist()]
        assert messages == max(phase.messages_sent(ranks).max(), phase.messages_received(ranks).max())
        assert kept + expected.bytes_sent(32).max() >= phase.bytes_sent(ranks).max()


def test_more_ranks_are_faster_and_halos_fit():
    times = []
    for ranks in (1024, 4096):
        system = scaling.strong(1e8, ranks)
        assert min(system.domain) > scaling.HALO_REACH
        parts = scaling.step(system, "fat tree")
        assert all(value > 0 for value in parts.values())
        times.append(sum(parts.values()))
    assert times[0] / 4 < times[1] < times[0]


def test_weak_scaling_keeps_domains():
    for ranks in (1024, 65_536):
        system = scaling.weak(ranks)
        assert system.atoms_a_rank == pytest.approx(1e9 / 65_536)
        assert system.domain == pytest.approx([system.domain[0]] * 3)
