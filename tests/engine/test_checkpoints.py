"""Runs that are stopped or killed go on as if nothing had happened: in the deterministic mode every byte of the trajectory
and of the last restart files, and every row of the energy table, is that of an undisturbed run."""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from support import systems
from support.chain_in_water import make_system

pytestmark = pytest.mark.mpi

ENERGY = {"cutoffdist": 8, "switchdist": 7, "pairlistdist": 9, "deterministic": "YES"}
STEPS = 200
EVERY_STEP = 1e-6
"""Minutes between checkpoints, fewer than a step takes."""
ENSEMBLES = {
    "NVE": {"ensemble": "NVE"},
    "NVT": {"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 5},
    "NPT": {"ensemble": "NPT", "tpcontrol": "NHC", "tau_t": 0.1, "barostat": "MTK", "tau_p": 1},
    "MC": {"ensemble": "NPT", "tpcontrol": "BUSSI", "tau_t": 0.1, "barostat": "MC"},
}


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> Path:
    """A charged chain among 100 waters, relaxed a little, as restart files of one and of two ranks."""
    folder = tmp_path_factory.mktemp("checkpoints")
    make_system(folder, 100, neutral=False)
    set_up(folder, {"shardfile": folder / "bricks.txt"}, 1, "raw")
    inp = systems.control(
        folder / "relax.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / "raw_().rst"},
        OUTPUT={"rstfile": folder / "start1_().rst"}, ENERGY=ENERGY | {"deterministic": "NO"},
        MINIMIZE={"nsteps": 150, "force_scale_max": 5e-4})
    done = systems.run("run", inp, program="chromamd")
    assert done.returncode == 0, done.stderr
    set_up(folder, {"rstfile": folder / "start1_().rst"}, 2, "start2")
    return folder


def set_up(folder: Path, source: dict, ranks: int, name: str) -> None:
    inp = systems.control(folder / "setup.inp", INPUT={"topologyfile": folder / "t.h5", **source},
                          OUTPUT={"rstfile": folder / f"{name}_().rst"}, ENERGY=ENERGY)
    done = systems.run("setup", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr


def control(system: Path, folder: Path, ranks: int, ensemble: str = "NVT", frames: str = "run.dcd", steps: int = STEPS,
            interval: float = EVERY_STEP, output: dict | None = None, energy: dict | None = None,
            **dynamics: object) -> Path:
    """A control file of dynamics that goes on from its checkpoints."""
    folder.mkdir(exist_ok=True)
    return systems.control(
        folder / "run.inp",
        INPUT={"topologyfile": system / "t.h5", "rstfile": system / f"start{ranks}_().rst", "continue": "YES"},
        OUTPUT={"logfile": folder / "run.log", "dcdfile": folder / frames, "rstfile": folder / "end_().rst",
                "checkpoint": folder / "check_().rst", "checkpoint_interval": interval, **(output or {})},
        ENERGY=ENERGY | (energy or {}), CONSTRAINTS={"rigid_bond": "YES"},
        ENSEMBLE={"temperature": 300, **ENSEMBLES[ensemble]},
        DYNAMICS={"nsteps": steps, "eneout_period": 10, "crdout_period": 4, "timestep": 0.002, "iseed": 5,
                  "thermostat_period": 3, "barostat_period": 4, **dynamics})


def start(inp: Path, ranks: int, threads: int = 1) -> subprocess.Popen:
    """The engine in a process group of its own, so that all of it can be killed."""
    call = [str(systems.BIN / "chromamd"), "run", str(inp)]
    if ranks > 1:
        call = [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *call]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMPI_MCA_mpi_yield_when_idle="1",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_hwloc_base_binding_policy="none")
    return subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def kill(process: subprocess.Popen) -> None:
    """All ranks and mpirun, at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def wait_for_step(process: subprocess.Popen, log: Path, step: int) -> None:
    """Until the log has a row of that step or a later one, or the run is over."""
    while process.poll() is None:
        if log.exists() and any(int(row.split()[1]) >= step for row in rows(log)[1:] if len(row.split()) > 1):
            return
        time.sleep(0.002)


def rows(log: Path) -> list[str]:
    """The energy table as it stands in a log."""
    return [line for line in log.read_text().splitlines() if line.startswith("INFO:")]


def finish(inp: Path, ranks: int) -> None:
    done = systems.run("run", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr


def result(folder: Path, frames: str = "run.dcd") -> dict[str, object]:
    """Energy table, and bytes of the trajectory and of the last restart files."""
    files = sorted(folder.glob("end_*.rst")) + sorted(folder.glob(frames.replace("()", "*")))
    return {"rows": rows(folder / "run.log"), **{path.name: path.read_bytes() for path in files}}


def assert_same(folder: Path, whole: dict[str, object], frames: str = "run.dcd") -> None:
    found = result(folder, frames)
    assert found.keys() == whole.keys()
    for name, content in whole.items():
        assert found[name] == content, name


@pytest.fixture(scope="module")
def undisturbed(system):
    """The result of a run without checkpoints, made once for each kind of run."""
    known: dict[tuple, dict[str, object]] = {}

    def get(ranks: int, ensemble: str, frames: str = "run.dcd", **keys: object) -> dict[str, object]:
        key = (ranks, ensemble, frames, *sorted(keys.items()))
        if key not in known:
            folder = system / f"whole{len(known)}"
            inp = control(system, folder, ranks, ensemble, frames, interval=0, **keys)
            text = inp.read_text()
            inp.write_text(re.sub(r"(?m)^(checkpoint|continue).*\n", "", text))
            finish(inp, ranks)
            known[key] = result(folder, frames)
        return known[key]

    return get


@pytest.mark.parametrize(("ranks", "ensemble", "frames", "keys"), [
    (1, "NVE", "run.dcd", {}), (1, "NVT", "run.xtc", {}), (1, "NPT", "run.dcd", {}), (2, "NVE", "run.xtc", {}),
    (2, "NVT", "run.dcd", {}), (2, "NPT", "run.dcd", {}), (1, "MC", "run.dcd", {}),
    (2, "NVE", "run.dcd", {"integrator": "LEAP", "stoptr_period": 7}),
    (1, "NVE", "run.dcd", {"integrator": "VRES", "elec_long_period": 2}),
])
def test_a_stopped_run_goes_on_with_the_same_bytes(system, undisturbed, tmp_path, ranks, ensemble, frames, keys):
    """Stopped twice by a signal; between the stops every step writes a checkpoint."""
    inp = control(system, tmp_path, ranks, ensemble, frames, **keys)
    for step, number in ((40, signal.SIGUSR1), (110, signal.SIGTERM if ranks == 1 else signal.SIGUSR1)):
        process = start(inp, ranks)
        wait_for_step(process, tmp_path / "run.log", step)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 7, told
        assert "chromamd: stopped by a signal after step " in told
    finish(inp, ranks)
    assert_same(tmp_path, undisturbed(ranks, ensemble, frames, **keys), frames)
    finish(inp, ranks)  # nothing is left to do
    assert_same(tmp_path, undisturbed(ranks, ensemble, frames, **keys), frames)
