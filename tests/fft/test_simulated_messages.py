"""The network simulator's traces against what the library counts when it runs: chromabuild/scaling/fft_trace.py."""

import numpy as np
import pytest

from chromabuild.scaling.fft_trace import Transform
from chromabuild.scaling.step import Placement, node_messages

pytestmark = pytest.mark.release

SUBSETS = {"full": 1, "compressed": 2}
CASES = {
    8: [dict(n=n, scheme=scheme, grid=grid, real=real, subset=subset)
        for n, real in (((8, 8, 8), False), ((11, 9, 7), True), ((12, 5, 10), True))
        for scheme, grid in (("slab", (1, 1, 8)), ("pencil", (1, 2, 4)), ("1d", (2, 2, 2)), ("2d", (2, 4, 1)),
                             ("qcdoc", (4, 1, 2)), ("columns", (2, 2, 2)))
        for subset in (SUBSETS if scheme not in ("slab", "pencil") else ("full",))],
    12: [dict(n=(16, 15, 14), scheme=scheme, grid=(2, 3, 2), real=True, single=True) for scheme in
         ("1d", "2d", "qcdoc", "columns")],
}


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", CASES)
def test_messages_and_bytes_equal_the_library_s(run_cases, ranks):
    """Every rank, every exchange of a forward transform."""
    found = run_cases(ranks, CASES[ranks])
    for k, case in enumerate(CASES[ranks]):
        trace = Transform(case["n"], case["grid"], case["scheme"], case["real"], SUBSETS[case.get("subset", "full")],
                          point_bytes=8 if case.get("single") else 16).phases()
        counted = np.array([[count[1:] for count in rank[k]["counts"]] for rank in found])  # rank, exchange, (n, bytes)
        simulated = np.array([[phase.messages_sent(ranks), phase.bytes_sent(ranks)] for phase in trace])
        assert np.array_equal(counted, simulated.transpose(2, 0, 1)), case


@pytest.mark.mpi
def test_messages_by_node_equal_the_library_s(run_cases):
    """The most that a rank sends in each exchange."""
    cases = [dict(n=(12, 8, 10), scheme=scheme, grid=(2, 2, 2), transport="by_node", ranks_a_node=size)
             for scheme in ("1d", "2d") for size in (2, 4, 8)]
    found = run_cases(8, cases)
    for k, case in enumerate(cases):
        counted = np.max([[count[1] for count in rank[k]["counts"]] for rank in found], axis=0)
        stages = Transform(case["n"], case["grid"], case["scheme"]).stages()[1:]
        placement = Placement(case["grid"], case["ranks_a_node"])
        assert counted.tolist() == [node_messages(placement, stage.among)[0] for stage in stages], case
