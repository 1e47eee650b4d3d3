"""Dynamics in OpenMM that are stopped, killed or made longer go on from their checkpoint: each row and frame once."""

import json
import shutil
import signal
import subprocess
import sys
import time

import MDAnalysis
import numpy as np
import pytest
from support.command_line import environment
from support.engine_energies import write_input
from support.molecular_systems import solvated

from chromabuild.base.errors import UnstableRunError
from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.simulate import openmm_engine
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.openmm_checkpoint import Checkpoint, checkpoint_path, read_checkpoint
from chromabuild.simulate.protocol import Task, plan_phases, run_phases

STEPS = 600
PHASES = [{"name": "minimise", "kind": "minimise", "steps": 20},
          {"name": "warm", "steps": STEPS, "output_period": 20, "trajectory_period": 40, "ensemble": "NPT"}]
SCRIPT = """
import json, sys
from pathlib import Path
from chromabuild.base.errors import ChromabuildError
from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.simulate import openmm_engine
from chromabuild.simulate.protocol import Task, run_phases
folder, phases = Path(sys.argv[1]), json.loads(sys.argv[2])
config = Settings(dynamics=DynamicsSection(engine="openmm", platform="CPU", checkpoint="0.05 s", cutoff=8.0),
                  simulate=SimulateSection(protocol=None, phases=phases))
task = Task(config.dynamics, 7, folder / "topology.h5", folder / "shards" / "bricks.txt", folder / "md", 1)
try:
    run_phases(config, task, openmm_engine)
except ChromabuildError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A peptide in water with its force field."""
    folder = tmp_path_factory.mktemp("built")
    write_input(solvated("peptide", 26.0), folder)
    return folder


@pytest.fixture
def folder(built, tmp_path):
    """A copy to run in."""
    return shutil.copytree(built, tmp_path / "copy")


def start(folder, steps: int = STEPS) -> subprocess.Popen:
    phases = [PHASES[0], PHASES[1] | {"steps": steps}]
    return subprocess.Popen([sys.executable, "-P", "-c", SCRIPT, str(folder), json.dumps(phases)], env=environment(),
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(folder, steps: int = STEPS) -> None:
    process = start(folder, steps)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told


def wait_for(folder, process: subprocess.Popen, step: int) -> None:
    """Until the log has a row of that step."""
    log = folder / "md" / "02-warm.log"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and f"{step:16d}" in log.read_text():
            return
        time.sleep(0.01)


def assert_whole(folder, steps: int) -> None:
    """Rows and frames of so many steps, each once, and time as if nothing had happened."""
    md = folder / "md"
    log = EnergyLog.read(md / "02-warm.log")
    assert log["STEP"].tolist() == list(range(0, steps + 1, 20))
    assert log["TIME"] == pytest.approx(log["STEP"] * 0.002)
    frames = MDAnalysis.coordinates.DCD.DCDReader(str(md / "02-warm.dcd"))
    assert len(frames) == steps // 40
    positions = np.array([frame.positions.copy() for frame in frames])
    assert np.isfinite(positions).all()
    assert (np.abs(np.diff(positions, axis=0)).max(axis=(1, 2)) > 0.01).all()  # no frame stands there twice


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL])
def test_a_stopped_run_goes_on(folder, number):
    """What stands in the files before the checkpoint is not done again."""
    process = start(folder)
    wait_for(folder, process, 100)
    mark = folder / "md" / "restart" / "02-warm_checkpoint_whole.txt"
    while not mark.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, told = process.communicate(timeout=120)
    assert process.returncode == (-9 if number == signal.SIGKILL else 7), told
    assert number == signal.SIGKILL or "phase warm was stopped by a signal after step " in told
    done = int(mark.read_text().split()[1])
    assert 0 < done < STEPS
    first = EnergyLog.read(folder / "md" / "02-warm.log")["TOTAL_ENE"][:done // 20 + 1]
    finish(folder)
    assert_whole(folder, STEPS)
    again = EnergyLog.read(folder / "md" / "02-warm.log")["TOTAL_ENE"]
    assert again[:len(first)].tolist() == first.tolist()


@pytest.mark.parametrize("platform", ["CPU", "Reference"])
def test_an_unstable_run_is_told_in_a_sentence(folder, platform):
    """It ends before OpenMM uses a position that is far away as an index, which ends the process."""
    phases = [{"name": "fast", "steps": 20, "timestep": 40, "output_period": 5}]
    config = Settings(dynamics=DynamicsSection(engine="openmm", platform=platform, cutoff=8.0),
                      simulate=SimulateSection(protocol=None, phases=phases))
    task = Task(config.dynamics, 7, folder / "topology.h5", folder / "shards" / "bricks.txt", folder / "md", 1)
    with pytest.raises(UnstableRunError,
                       match=r"unstable at .* ps of phase fast: an atom moves by more than 10 angstrom .*; .*longer"):
        run_phases(config, task, openmm_engine)
    assert "nan" not in (folder / "md" / "01-fast.log").read_text()
    assert not (folder / "md" / "restart" / "01-fast.xml").exists()


@pytest.mark.slow
def test_a_longer_phase_goes_on_from_its_end(folder):
    finish(folder)
    before = (folder / "md" / "02-warm.log").read_bytes()
    finish(folder, STEPS + 80)
    assert (folder / "md" / "02-warm.log").read_bytes().startswith(before)
    assert_whole(folder, STEPS + 80)


def test_a_checkpoint_that_does_not_hold_is_none(tmp_path):
    """It is damaged, or the files have less than it says."""
    _, phase = plan_phases(SimulateSection(protocol=None, phases=PHASES))
    task = Task(DynamicsSection(), 1, tmp_path / "t.h5", tmp_path / "bricks.txt", tmp_path)
    (tmp_path / "restart").mkdir()
    (tmp_path / phase.log).write_bytes(bytes(10))
    (tmp_path / phase.trajectory).write_bytes(bytes(20))
    assert read_checkpoint(task, phase) is None
    path = checkpoint_path(task, phase)
    Checkpoint(5, np.ones((4, 3)), np.zeros((4, 3)), np.eye(3), 10, 20, 1).write(path)
    assert read_checkpoint(task, phase).step == 5
    content = path.read_bytes()
    for damaged in (content[:-40], content[:300] + bytes([content[300] ^ 1]) + content[301:]):
        path.write_bytes(damaged)
        assert read_checkpoint(task, phase) is None
    path.write_bytes(content)
    (tmp_path / phase.trajectory).write_bytes(bytes(19))
    assert read_checkpoint(task, phase) is None
