"""Phases under chromabuild that are stopped or killed, and asked for again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.chain_in_water import make_system
from support.processes import signal_engines

from chromabuild.base.duration import minutes_of
from chromabuild.base.errors import InterruptedRunError
from chromabuild.base.settings import DynamicsSection, Settings
from chromabuild.simulate import chromamd
from chromabuild.simulate.protocol import Task, run_phases
from chromabuild.simulate.result import Run

pytestmark = pytest.mark.release

STEPS = 1200


def run(folder: Path, steps: int = STEPS, seed: int = 1, engine: object = chromamd, ranks: int = 1,
        **phase: object) -> Run:
    config = Settings.model_validate({
        "dynamics": {"cutoff": 8, "pairlist_buffer": 1, "checkpoint": "0.2 s", "ranks": ranks},
        "simulate": {"protocol": None, "output_period": 20, "trajectory_period": 50, "phases": [
            {"name": "minimise", "kind": "minimise", "steps": 100},
            {"name": "dynamics", "steps": steps, "timestep": 1} | phase]}})
    task = Task(config.dynamics, seed, folder / "t.h5", folder / "bricks.txt", folder / "md")
    return run_phases(config, task, engine)


@pytest.fixture
def folder(tmp_path) -> Path:
    make_system(tmp_path, 100, neutral=False)
    return tmp_path


def in_dynamics(folder: Path, step: int) -> subprocess.Popen:
    """A process of its own that runs, and has come to that step of dynamics."""
    process = subprocess.Popen([sys.executable, __file__, str(folder)], cwd=Path(__file__).parent,
                               env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    log = folder / "md/02-dynamics.log"
    while not (log.exists() and f"INFO:{step:16d}" in log.read_text()):
        assert process.poll() is None
        time.sleep(0.002)
    return process


def check(folder: Path, steps: int) -> None:
    """Every row and frame is there once."""
    found = Run.read(folder / "md")
    assert found.energies["STEP"].tolist() == list(range(0, steps + 1, 20))
    atoms = int.from_bytes(found.trajectory.read_bytes()[188:192], "little")
    assert found.trajectory.stat().st_size == 196 + steps // 50 * (56 + 3 * (4 * atoms + 8))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_same_command_goes_on(folder, number):
    process = in_dynamics(folder, 100)
    minimised = (folder / "md/01-minimise.log").stat().st_mtime_ns
    signal_engines(process, number)
    assert process.wait(60) == (InterruptedRunError.exit_code if number != signal.SIGKILL else -signal.SIGKILL)
    deadline = time.monotonic() + 60
    while "stopped by a signal" not in (folder / "md/02-dynamics.out").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run(folder)
    assert (folder / "md/01-minimise.log").stat().st_mtime_ns == minimised
    assert "continued from the checkpoint at step" in (folder / "md/02-dynamics.log").read_text()
    check(folder, STEPS)


def test_more_steps_go_on(folder):
    run(folder, 200)
    minimised = (folder / "md/01-minimise.log").stat().st_mtime_ns
    run(folder, 400)
    assert (folder / "md/01-minimise.log").stat().st_mtime_ns == minimised
    assert "continued from the checkpoint at step 200" in (folder / "md/02-dynamics.log").read_text()
    check(folder, 400)


def test_a_longer_ramp_starts_anew(folder):
    run(folder, 100, temperature=[10, 300])
    run(folder, 200, temperature=[10, 300])
    assert "continued from" not in (folder / "md/02-dynamics.log").read_text()
    check(folder, 200)


def test_a_finished_run_that_is_asked_for_again_starts_anew(folder):
    run(folder, 100)
    (folder / "md/02-dynamics.dcd").write_bytes(b"harmed")
    run(folder, 100)
    check(folder, 100)


class Stopped:
    """An engine that is stopped in every phase of dynamics, and notes what was to go on."""

    def __init__(self):
        self.begun = []

    restart_name = staticmethod(chromamd.restart_name)

    def run_phase(self, task, phase, previous, progress, begun):
        self.begun.append((phase.name, begun))
        (task.folder / phase.log).write_text("")
        (task.folder / "restart" / f"{phase.stem}_checkpoint_0.1.rst").write_text("state")
        if phase.kind == "dynamics":
            raise InterruptedRunError("stopped")


def test_what_goes_on(folder):
    """The same phase, whatever its length, until something else of it or before it changes."""
    engine = Stopped()

    def begun(**keys):
        engine.begun.clear()
        with pytest.raises(InterruptedRunError):
            run(folder, engine=engine, **keys)
        return engine.begun

    assert begun() == [("minimise", False), ("dynamics", False)]
    assert begun() == [("dynamics", True)] and begun(steps=1000) == [("dynamics", True)]
    assert begun(timestep=0.5) == [("dynamics", False)]
    assert begun(timestep=0.5) == [("dynamics", True)]
    assert begun(timestep=0.5, ranks=2) == [("dynamics", False)]
    assert begun(temperature=[10, 300]) == [("dynamics", False)]
    assert begun(temperature=[10, 300], steps=1000) == [("dynamics", False)]
    assert begun(seed=2) == [("minimise", False), ("dynamics", False)]
    # A phase that is run again takes with it what was begun from its end.
    (folder / "md/01-minimise.log").write_text("harmed")
    assert begun(seed=2) == [("minimise", False), ("dynamics", False)]
    # No checkpoint of another run is left to one that starts anew.
    stale = folder / "md/restart/02-dynamics_checkpoint_whole.txt"
    stale.write_text("mark")
    begun(seed=3)
    assert not stale.exists()


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
