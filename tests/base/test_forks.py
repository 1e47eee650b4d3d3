"""Work shared out to forked processes: same results, none lost, none left behind."""

import multiprocessing
import os
import signal
import time

import pytest

from chromabuild.base.errors import ResourceError
from chromabuild.base.forks import map_in_forks
from chromabuild.base.stop_signals import stops_go_to


@pytest.mark.parametrize("processes", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_results_come_in_the_order_of_their_tasks(processes, count):
    """Whatever each takes; a result may be larger than a pipe holds."""
    def work(k):
        time.sleep(k % 3 * 1e-4)
        return os.getpid(), [k] * (100000 if k == 1 else 1)

    found = list(map_in_forks(work, range(count), processes))
    assert [values[0] for _, values in found] == list(range(count))
    assert os.getpid() not in {pid for pid, _ in found}


def test_processes_keep_the_state_of_the_first_result():
    state = [0]
    found = []
    for value in map_in_forks(lambda _: state[0], range(300), 2):
        state[0] += 1
        found.append(value)
    assert found == [0] * 300


@pytest.mark.parametrize("error", [EOFError("cut short"), ValueError("bad")])
def test_errors_are_those_of_the_function(error):
    def work(k):
        if k == 5:
            raise error

    with pytest.raises(type(error), match=str(error)):
        list(map_in_forks(work, range(10), 2))


def test_a_killed_process_is_noticed():
    """By the first to come to its task; the last one may have nothing left to be given."""
    def work(k):
        if k == 99:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ResourceError, match="was killed, perhaps for want of memory"):
        list(map_in_forks(work, range(100), 3))


def test_processes_that_have_not_run_yet_end_too():
    """The first may do everything while the others wait for a core; that they forget SIGTERM keeps nobody waiting."""
    before = multiprocessing.active_children()
    with stops_go_to(lambda number: None):
        for _ in range(30):
            assert list(map_in_forks(lambda k: k, range(8), 4)) == list(range(8))
    assert multiprocessing.active_children() == before


def test_no_process_stays_where_results_are_left():
    before = multiprocessing.active_children()
    results = map_in_forks(lambda k: k, range(100), 2)
    assert next(results) == 0 and len(multiprocessing.active_children()) == len(before) + 2
    results.close()
    assert multiprocessing.active_children() == before
