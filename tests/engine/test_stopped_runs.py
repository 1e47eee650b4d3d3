"""Minimisation and dynamics under chromabuild that are stopped or killed, and asked for again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.chain_in_water import make_system

from chromabuild.base.duration import minutes_of
from chromabuild.base.errors import InterruptedRunError
from chromabuild.base.settings import DynamicsSection
from chromabuild.simulate import chromamd
from chromabuild.simulate.phase_record import PhaseRecord, source_of_phase
from chromabuild.simulate.result import Run

STEPS = 600


def run(folder: Path, steps: int = STEPS) -> Run:
    dynamics = DynamicsSection(cutoff=8, pairlist_buffer=1, minimise_steps=100, steps=steps, timestep=1,
                               checkpoint="0.2 s", trajectory_period=50)
    return chromamd.run(dynamics, 1, folder / "t.h5", folder / "bricks.txt", folder / "md")


@pytest.fixture
def folder(tmp_path) -> Path:
    make_system(tmp_path, 100, neutral=False)
    return tmp_path


def in_dynamics(folder: Path, step: int) -> subprocess.Popen:
    """A process of its own that runs, and has come to that step of dynamics."""
    process = subprocess.Popen([sys.executable, __file__, str(folder)], cwd=Path(__file__).parent,
                               env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    log = folder / "md/dynamics.log"
    while not (log.exists() and f"INFO:{step:16d}" in log.read_text()):
        assert process.poll() is None
        time.sleep(0.01)
    return process


def check(folder: Path, steps: int) -> None:
    """Every row and frame is there once."""
    found = Run.of_chromamd(folder / "md")
    assert found.energies["STEP"].tolist() == list(range(0, steps + 1, 20))
    atoms = int.from_bytes(found.trajectory.read_bytes()[188:192], "little")
    assert found.trajectory.stat().st_size == 196 + steps // 50 * (56 + 3 * (4 * atoms + 8))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_same_command_goes_on(folder, number):
    process = in_dynamics(folder, 100)
    minimised = (folder / "md/minimise.log").stat().st_mtime_ns
    process.send_signal(number)
    assert process.wait(60) == (InterruptedRunError.exit_code if number != signal.SIGKILL else -signal.SIGKILL)
    deadline = time.monotonic() + 60
    while "stopped by a signal" not in (folder / "md/dynamics.out").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run(folder)
    assert (folder / "md/minimise.log").stat().st_mtime_ns == minimised
    assert "continued from the checkpoint at step" in (folder / "md/dynamics.log").read_text()
    check(folder, STEPS)


def test_more_steps_go_on(folder):
    run(folder, 200)
    minimised = (folder / "md/minimise.log").stat().st_mtime_ns
    run(folder, 400)
    assert (folder / "md/minimise.log").stat().st_mtime_ns == minimised
    assert "continued from the checkpoint at step 200" in (folder / "md/dynamics.log").read_text()
    check(folder, 400)


def test_a_finished_run_that_is_asked_for_again_starts_anew(folder):
    run(folder, 100)
    (folder / "md/trajectory.dcd").write_bytes(b"harmed")
    run(folder, 100)
    check(folder, 100)


def test_other_settings_are_another_run(tmp_path):
    record = PhaseRecord(tmp_path)
    sections = {"DYNAMICS": {"nsteps": 100, "timestep": 0.002}, "INPUT": {"continue": False}}
    source = source_of_phase("setup", sections)
    record.begin("dynamics", source)
    record.finish("dynamics", 100)
    again = PhaseRecord(tmp_path)
    assert again.is_finished("dynamics", source, 100)
    assert not again.is_finished("dynamics", source, 200)
    longer = {"DYNAMICS": {"nsteps": 200, "timestep": 0.002}, "INPUT": {"continue": True}}
    assert again.is_begun("dynamics", source_of_phase("setup", longer))
    assert not again.is_begun("dynamics", source_of_phase("another setup", sections))
    assert not again.is_begun("dynamics", source_of_phase("setup", sections | {"ENSEMBLE": {"temperature": 300}}))


@pytest.mark.parametrize(("text", "minutes"), [("15 min", 15), ("1 h", 60), ("90 s", 1.5), ("0 min", 0), ("1.5h", 90)])
def test_durations(text, minutes):
    assert minutes_of(text) == pytest.approx(minutes)
    assert DynamicsSection(checkpoint=text).checkpoint == text


if __name__ == "__main__":
    try:
        run(Path(sys.argv[1]))
    except InterruptedRunError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
