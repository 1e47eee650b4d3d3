"""Ways to share cores among ranks: all cores are used, domains stay wide enough, the model decides the order."""

import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.scaling.layouts import layouts
from chromabuild.scaling.machine import find_machine
from chromabuild.scaling.measured import StepSettings, rank_memory
from chromabuild.scaling.prediction import Job, Run, predict

STEP = StepSettings(9.0, 10.5)
LARGE = ((450.0, 450.0, 450.0), 9_112_500)


def test_all_cores_are_used_and_the_fastest_comes_first():
    found = layouts(*LARGE, STEP, 128, 4)
    assert {one.ranks * one.threads for one in found} == {128}
    assert {one.ranks for one in found} == {4, 8, 16, 32, 64, 128}
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)


def test_the_order_is_that_of_the_prediction():
    machine = find_machine("infiniband")
    run = Run(*LARGE, STEP, 0, 1000, 2.0, 1.0, 0.1, 100)
    for one in layouts(*LARGE, STEP, 128, 4, machine=machine):
        told = predict(run, Job(machine, 4, one.ranks // 4, one.threads))
        assert 1e3 * one.seconds == pytest.approx(told.step_ms)


def test_domains_and_memory_have_limits():
    assert max(one.ranks for one in layouts((40.0,) * 3, 6400, STEP, 64)) <= 4**3
    assert [one.ranks for one in layouts((17.0,) * 3, 490, STEP, 64)] == [1, 2, 4, 8] or \
        max(one.ranks for one in layouts((17.0,) * 3, 490, STEP, 64)) <= 8
    least = 8 * rank_memory(LARGE[1] / 8)
    assert max(one.ranks for one in layouts(*LARGE, STEP, 64, memory=1.001 * least)) == 8
    assert [one.ranks for one in layouts(*LARGE, STEP, 64, memory=1.0)] == [1]


def test_nodes_without_a_core():
    with pytest.raises(BadInputError, match="4 nodes have only 2 cores"):
        layouts(*LARGE, STEP, 2, 4)
