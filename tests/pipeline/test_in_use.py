"""A folder is one process's until that process, and what it has started, has ended."""

import signal
import subprocess
import sys
import threading
import time

import pytest
from support.command_line import environment

from chromabuild.base import in_use as module
from chromabuild.base.errors import BusyError, ResourceError
from chromabuild.base.in_use import in_use, lock_descriptors

HOLDER = """
import subprocess, sys, time
from chromabuild.base.in_use import in_use, lock_descriptors
with in_use(sys.argv[1]):
    if len(sys.argv) > 2:
        subprocess.Popen(["sleep", sys.argv[2]], pass_fds=lock_descriptors(), stdout=subprocess.DEVNULL)
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Start a process that holds the folder; an argument: one that inherits the lock and lives so many seconds."""
    started = []

    def start(*arguments):
        process = subprocess.Popen([sys.executable, "-P", "-c", HOLDER, str(tmp_path), *arguments], text=True,
                                   env=environment(), stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_second_is_refused_until_the_first_has_died(tmp_path, holder):
    process = holder()
    with pytest.raises(BusyError, match=f"at work in {tmp_path} .process {process.pid} on .*: wait for it"):
        with in_use(tmp_path):
            pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    with in_use(tmp_path), in_use(tmp_path):
        assert len(lock_descriptors()) == 1
    assert lock_descriptors() == ()
    holder()  # the lock was given back


def test_what_a_dead_process_has_started_is_waited_for(tmp_path, holder, monkeypatch):
    process = holder("1.5")
    process.kill()
    process.wait()
    started = time.monotonic()
    with in_use(tmp_path):
        assert time.monotonic() - started > 0.5
    process = holder("5")
    process.kill()
    process.wait()
    monkeypatch.setattr(module, "LINGER_SECONDS", 0.3)
    with pytest.raises(BusyError, match="an engine that another chromabuild has left is at work"), in_use(tmp_path):
        pass


def test_threads_of_one_process_exclude_each_other(tmp_path):
    told = []

    def other():
        try:
            with in_use(tmp_path):
                told.append("in")
        except BusyError:
            told.append("busy")

    with in_use(tmp_path):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert told == ["busy"]


def test_where_no_lock_can_be(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match="cannot write"), in_use(tmp_path / "file"):
        pass

    def without(lock, operation):
        raise OSError(module.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(module.fcntl, "flock", without)
    with in_use(tmp_path):
        pass
