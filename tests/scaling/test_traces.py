"""Messages against the published formulas, and nothing lost on the way."""

import numpy as np
import pytest

from chromabuild.scaling.fft_trace import Transform
from chromabuild.scaling.halo_trace import p2p, three_stage
from chromabuild.scaling.trace import Phase, on_nodes

SCHEMES = ("slab", "pencil", "1d", "2d", "qcdoc", "columns")


def grid_of(scheme, full):
    return {"slab": (1, 1, full[0] * full[1] * full[2]), "pencil": (1, full[0], full[1] * full[2])}.get(scheme, full)


@pytest.mark.parametrize("scheme, messages", [("slab", 63), ("pencil", 3 + 15), ("1d", 5 * 3), ("2d", 3 + 15 + 3),
                                              ("qcdoc", 6 * 3)])
def test_fft_messages_follow_the_formulas(scheme, messages):
    """docs/explanation/fft.md, and each exchange among p ranks sends 1 - 1/p of what a rank holds; 64^3
    complex on 64 ranks."""
    transform = Transform((64, 64, 64), grid_of(scheme, (4, 4, 4)), scheme, real=False, point_bytes=16)
    sent = sum(phase.messages_sent(64) for phase in transform.phases())
    assert sent.tolist() == [messages] * 64
    groups = {"slab": [64], "pencil": [4, 16], "1d": [4] * 5, "2d": [4, 16, 4], "qcdoc": [4] * 6}[scheme]
    for phase, p in zip(transform.phases(), groups, strict=True):
        assert phase.bytes_sent(64).tolist() == [64**3 // 64 * 16 * (p - 1) // p] * 64


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("checker", [1, 2])
@pytest.mark.parametrize("y_fastest", [0, 2])
def test_fft_loses_no_point(scheme, checker, y_fastest):
    """Uneven shares: each stage holds every point or wave once; what a rank had, less what it sent, plus what it got,
    is what it has. Points become waves between the stages, so both are counted in the ranks' own terms."""
    n, grid = (14, 9, 7), grid_of(scheme, (3, 2, 2))
    transform = Transform(n, grid, scheme, real=False, checker=checker, point_bytes=1, y_fastest=y_fastest)
    held = []
    for stage in transform.stages():
        held.append(np.prod(np.maximum(stage.upper - stage.lower + 1, 0), axis=-1).sum(axis=1))
        count = np.zeros(n, dtype=int)
        for lower, upper in zip(stage.lower.reshape(-1, 3), stage.upper.reshape(-1, 3), strict=True):
            count[tuple(slice(a, b + 1) for a, b in zip(lower, upper, strict=True))] += 1
        assert (count == 1).all(), stage.name
    for phase, before, after in zip(transform.phases(), held[:-1], held[1:], strict=True):
        assert np.array_equal(before - phase.bytes_sent(12) + phase.bytes_received(12), after)
        assert (phase.source != phase.target).all() and (phase.size > 0).all()


def test_pieces_are_the_phases():
    transform = Transform((12, 10, 14), (3, 2, 4), "2d")
    whole = transform.phases()
    count = np.zeros((len(whole), 24, 24))
    for number, piece in transform.pieces(chunk=40):
        count[number, piece.source, piece.target] += piece.size
    for phase, matrix in zip(whole, count, strict=True):
        assert matrix[phase.source, phase.target].tolist() == phase.size.tolist()
        assert matrix.sum() == phase.total_bytes
    first = [phase for _, phase in transform.pieces(groups=1)]
    assert [len(np.unique(phase.source)) for phase in first] == [3, 6, 4]


def test_idle_ranks_send_nothing():
    """More ranks than lines: on 8 x 8 x 8 ranks, 8^3 points, lines go to every second rank of a row."""
    phases = Transform((8, 8, 8), (4, 4, 4), "columns", real=False, checker=2, point_bytes=16).phases()
    idle = np.array(np.unravel_index(np.arange(64), (4, 4, 4))).sum(axis=0) % 2 == 1
    for phase in phases[1:]:
        assert not phase.messages_sent(64)[idle].any() and not phase.messages_received(64)[idle].any()


@pytest.mark.parametrize("ratio", [0.4, 1.0])
def test_halo_volumes_follow_table_1(ratio):
    """Li et al. 2023: 8r^3 + 12ar^2 + 6a^2r in 6 messages, half of it in 13."""
    a, r, grid = 100.0, 100.0 * ratio, (4, 5, 6)
    staged = three_stage(grid, (a,) * 3, r, 1.0)
    half, full = (p2p(grid, (a,) * 3, r, 1.0, half=half) for half in (True, False))
    ghosts = 8 * r**3 + 12 * a * r**2 + 6 * a**2 * r
    for phases, messages, volume in ((staged, 6, ghosts), (half, 13, ghosts / 2), (full, 26, ghosts)):
        assert (sum(phase.messages_sent(120) for phase in phases) == messages).all()
        for count in ("bytes_sent", "bytes_received"):
            assert sum(getattr(phase, count)(120) for phase in phases) == pytest.approx([volume] * 120)


def test_halo_over_two_layers():
    """Domains smaller than the cutoff: 62 and 124 neighbours, 12 messages in stages, the same ghosts."""
    a, r, grid = 100.0, 150.0, (6, 6, 6)
    ghosts = (a + 2 * r) ** 3 - a**3
    for phases, messages, volume in ((p2p(grid, (a,) * 3, r, 1.0), 62, ghosts / 2),
                                     (p2p(grid, (a,) * 3, r, 1.0, half=False), 124, ghosts),
                                     (three_stage(grid, (a,) * 3, r, 1.0), 12, ghosts)):
        assert (sum(phase.messages_sent(216) for phase in phases) == messages).all()
        assert sum(phase.bytes_received(216) for phase in phases) == pytest.approx([volume] * 216)


def test_traffic_between_nodes():
    """Four ranks on two nodes: messages inside of a node vanish, others add up."""
    phase = Phase("x", np.array([0, 0, 1, 2, 3]), np.array([1, 2, 3, 0, 3]), np.array([5, 7, 11, 13, 17]))
    between = on_nodes(phase, np.array([0, 0, 1, 1]))
    assert list(zip(between.source, between.target, between.size, between.count, strict=True)) == \
        [(0, 1, 18, 2), (1, 0, 13, 1)]
