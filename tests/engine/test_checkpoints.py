"""Runs that are stopped or killed go on as if nothing had happened: in the deterministic mode every byte of the
trajectory and of the last restart files, and every row of the energy table, is that of an undisturbed run."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import pytest
from support import systems
from support.chain_in_water import PME, relaxed_charged
from support.processes import hold, signal_engines

pytestmark = pytest.mark.mpi

STEPS = 120
EVERY_STEP = 1e-6
"""Minutes between checkpoints, fewer than a step takes."""
ENSEMBLES = {
    "NVE": {"ensemble": "NVE"},
    "NVT": {"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 5},
    "NPT": {"ensemble": "NPT", "tpcontrol": "NHC", "tau_t": 0.1, "barostat": "MTK", "tau_p": 1},
    "MC": {"ensemble": "NPT", "tpcontrol": "BUSSI", "tau_t": 0.1, "barostat": "MC"},
    "heated NVT": {"ensemble": "NVT", "tpcontrol": "NHC", "tau_t": 0.1, "temperature": 100, "temperature_end": 300},
    "heated NPT": {"ensemble": "NPT", "tpcontrol": "NHC", "tau_t": 0.1, "barostat": "MTK", "tau_p": 1,
                   "temperature": 100, "temperature_end": 300},
    "boosted NVT": {"ensemble": "NVT", "tpcontrol": "BUSSI", "tau_t": 0.1},
}
RELEASED = {"SELECTION": {"group1": "ai:1-12"},
            "RESTRAINTS": {"nfunctions": 1, "function1": "POSI", "select_index1": 1,
                           "constant1": 5, "constant_end1": 1}}
"""While the system is heated, its chain is held less and less."""
LEARNING = {"GAMD": {"gamd": "YES", "update_period": 25, "sigma0_pot": 1, "sigma0_dih": 0.5}}
"""What the boost is made of changes within the run."""


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> Path:
    """A charged chain among 100 waters, relaxed a little, as restart files of one and of two ranks."""
    return relaxed_charged(tmp_path_factory.mktemp("checkpoints"), 100)


def control(system: Path, folder: Path, ranks: int, ensemble: str = "NVT", frames: str = "run.dcd", steps: int = STEPS,
            interval: float = EVERY_STEP, output: dict | None = None, energy: dict | None = None,
            **dynamics: object) -> Path:
    """A control file of dynamics that goes on from its checkpoints."""
    folder.mkdir(exist_ok=True)
    held, boosted = ensemble.startswith("heated"), ensemble.startswith("boosted")
    return systems.control(
        folder / "run.inp",
        INPUT={"topologyfile": system / "t.h5", "rstfile": system / f"start{ranks}_().rst", "continue": "YES",
               **({"reffile": system / "bricks.txt"} if held else {})},
        OUTPUT={"logfile": folder / "run.log", "dcdfile": folder / frames, "rstfile": folder / "end_().rst",
                "checkpoint": folder / "check_().rst", "checkpoint_interval": interval,
                **({"gamdfile": folder / "run.gamd"} if boosted else {}), **(output or {})},
        ENERGY=PME | (energy or {}), CONSTRAINTS={"rigid_bond": "YES"},
        ENSEMBLE={"temperature": 300, **ENSEMBLES[ensemble]},
        DYNAMICS={"nsteps": steps, "eneout_period": 10, "crdout_period": 4, "timestep": 0.002, "iseed": 5,
                  "thermostat_period": 3, "barostat_period": 4, **dynamics},
        **(RELEASED if held else LEARNING if boosted else {}))


def start(inp: Path, ranks: int, threads: int = 1) -> subprocess.Popen:
    """The engine in a process group of its own, so that all of it can be killed."""
    call = [str(systems.BIN / "chromamd"), "run", str(inp)]
    if ranks > 1:
        call = [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *call]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMPI_MCA_mpi_yield_when_idle="1",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_hwloc_base_binding_policy="none")
    with open(inp.with_suffix(".out"), "w") as out:
        return subprocess.Popen(call, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)


def told_at_end(process: subprocess.Popen, inp: Path) -> str:
    """What the engine has printed when it has ended."""
    process.wait(60)
    return inp.with_suffix(".out").read_text()


def kill(process: subprocess.Popen) -> None:
    """All ranks and mpirun, at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for_step(process: subprocess.Popen, log: Path, step: int) -> None:
    """Until the log has a row of that step or a later one, or the run is over."""
    while process.poll() is None and not has_step(log, step):
        time.sleep(0.002)


def has_step(log: Path, step: int) -> bool:
    """Whether the log has a row of that step or a later one."""
    return log.exists() and any(int(row.split()[1]) >= step for row in rows(log)[1:] if len(row.split()) > 1)


def interrupt(process: subprocess.Popen, log: Path, step: int, number: int) -> None:
    """Send a signal once the log has a row of that step, of this run or of the one before. An engine without mpirun
    stands still while somebody looks: on a busy machine it would be over before."""
    while process.poll() is None:
        hold(process)
        if has_step(log, step):
            break
        process.send_signal(signal.SIGCONT)
        time.sleep(0.002)
    signal_engines(process, number)


def rows(log: Path) -> list[str]:
    """The energy table as it stands in a log."""
    return [line for line in log.read_text().splitlines() if line.startswith("INFO:")]


def finish(inp: Path, ranks: int) -> None:
    done = systems.run("run", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr


def result(folder: Path, frames: str = "run.dcd") -> dict[str, object]:
    """Energy table, and bytes of the trajectory, of the last restart files and of what a boost has learnt."""
    files = sorted(path for name in ("end_*.rst", frames.replace("()", "*"), "run.gamd") for path in folder.glob(name))
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
    (1, "NVE", "run.dcd", {}), (2, "heated NPT", "run.dcd", {}),
    *(pytest.param(*case, marks=pytest.mark.release) for case in [
        (1, "NVT", "run.xtc", {}), (2, "NPT", "run.dcd", {}), (2, "boosted NVT", "run.dcd", {}),
        (1, "heated NVT", "run.dcd", {"integrator": "LEAP"})]),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in [
        (1, "NPT", "run.dcd", {}), (2, "NVE", "run.xtc", {}), (2, "NVT", "run.dcd", {}), (1, "MC", "run.dcd", {}),
        (2, "NVE", "run.dcd", {"integrator": "LEAP", "stoptr_period": 7}),
        (1, "NVE", "run.dcd", {"integrator": "VRES", "elec_long_period": 2})]),
])
def test_a_stopped_run_goes_on_with_the_same_bytes(system, undisturbed, tmp_path, ranks, ensemble, frames, keys):
    """Stopped twice by a signal; between the stops every step writes a checkpoint."""
    inp = control(system, tmp_path, ranks, ensemble, frames, **keys)
    for step, number in ((30, signal.SIGUSR1), (70, signal.SIGTERM if ranks == 1 else signal.SIGUSR1)):
        process = start(inp, ranks)
        interrupt(process, tmp_path / "run.log", step, number)
        told = told_at_end(process, inp)
        assert process.returncode == 7, told
        assert "chromamd: stopped by a signal after step " in told
    finish(inp, ranks)
    assert_same(tmp_path, undisturbed(ranks, ensemble, frames, **keys), frames)
    finish(inp, ranks)  # nothing is left to do
    assert_same(tmp_path, undisturbed(ranks, ensemble, frames, **keys), frames)


@pytest.mark.release
def test_a_killed_run_goes_on_with_the_same_bytes(system, undisturbed, tmp_path):
    """kill -9 of all ranks at random moments, within the writing of checkpoints too."""
    chance = random.Random(3)
    inp = control(system, tmp_path, 2, "NVT")
    for _ in range(4):
        process = start(inp, 2)
        wait_for_step(process, tmp_path / "run.log", 0)
        time.sleep(chance.uniform(0, 0.5))
        if process.poll() is not None:
            break
        kill(process)
    finish(inp, 2)
    assert_same(tmp_path, undisturbed(2, "NVT"))
    assert not list(tmp_path.glob("*.part"))
    assert len(list(tmp_path.glob("check_*.rst"))) == 2


@pytest.mark.release
def test_two_runs_do_not_share_their_files(system, tmp_path):
    """The second waits for the processes of the first, and is refused when these go on."""
    inp = control(system, tmp_path, 2, "NVT", steps=100_000_000)
    process = start(inp, 2)
    try:
        wait_for_step(process, tmp_path / "run.log", 0)
        done = systems.run("run", inp, 2, "chromamd")
        assert done.returncode == 9
        assert "another run is at work with these files; wait for its end, or stop it" in done.stderr
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGUSR1)
        process.wait(60)
    assert process.returncode == 7
    assert not list(tmp_path.glob("*.lock"))


def test_files_of_domains_go_on(system, undisturbed, tmp_path):
    """Owners of atoms differ after a stop, so what counts is the merged trajectory."""
    def merged(folder: Path) -> bytes:
        inp = systems.control(folder / "merge.inp",
                              INPUT={"topologyfile": system / "t.h5", "dcdfile": folder / "run_().traj"},
                              OUTPUT={"dcdfile": folder / "merged.dcd"})
        done = systems.run("merge", inp, program="chromamd")
        assert done.returncode == 0, done.stderr
        return (folder / "merged.dcd").read_bytes()

    undisturbed(2, "NVE", "run_().traj")
    inp = control(system, tmp_path, 2, "NVE", "run_().traj")
    process = start(inp, 2)
    interrupt(process, tmp_path / "run.log", 50, signal.SIGUSR1)
    process.wait(60)
    assert process.returncode == 7
    finish(inp, 2)
    whole = next(folder for folder in system.glob("whole*") if (folder / "run_0.traj").exists())
    assert merged(tmp_path) == merged(whole)


def test_more_steps_go_on_from_the_end(system, undisturbed, tmp_path):
    finish(control(system, tmp_path, 1, "NVE", steps=60, interval=0), 1)
    finish(control(system, tmp_path, 1, "NVE", interval=0), 1)
    assert_same(tmp_path, undisturbed(1, "NVE"))
    done = systems.run("run", control(system, tmp_path, 1, "NVE", steps=60), program="chromamd")
    assert done.returncode == 3
    assert "nsteps = 60 ends the run before its checkpoint, which has done 120 steps" in systems.sentence(done)


def test_the_length_of_a_ramp_cannot_change(system, tmp_path):
    """Its temperatures and constants are those of the share of the steps that is done."""
    finish(control(system, tmp_path, 1, "heated NVT", steps=10, interval=0), 1)
    done = systems.run("run", control(system, tmp_path, 1, "heated NVT", steps=20), program="chromamd")
    assert done.returncode == 3
    assert "it has 'DYNAMICS nsteps = 10' and the control file 'DYNAMICS nsteps = 20'" in systems.sentence(done)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_stopped_minimisation_goes_the_same_way(system, tmp_path, ranks):
    def inp(folder: Path, output: dict) -> Path:
        folder.mkdir()
        return systems.control(
            folder / "low.inp", INPUT={"topologyfile": system / "t.h5", "rstfile": system / f"start{ranks}_().rst",
                                       **({"continue": "YES"} if output else {})},
            OUTPUT={"logfile": folder / "run.log", "dcdfile": folder / "run.dcd", "rstfile": folder / "end_().rst",
                    **output}, ENERGY=PME, MINIMIZE={"nsteps": 100, "eneout_period": 5, "crdout_period": 10})
    finish(inp(tmp_path / "whole", {}), ranks)
    stopped = inp(tmp_path / "stopped", {"checkpoint": tmp_path / "check_().rst", "checkpoint_interval": EVERY_STEP})
    process = start(stopped, ranks)
    interrupt(process, tmp_path / "stopped/run.log", 30, signal.SIGUSR1)
    told = told_at_end(process, stopped)
    assert process.returncode == 7, told
    finish(stopped, ranks)
    assert_same(tmp_path / "stopped", result(tmp_path / "whole"))


def some_checkpoint(system: Path, folder: Path, ranks: int = 1) -> None:
    finish(control(system, folder, ranks, "NVE", steps=10, interval=0), ranks)


@pytest.mark.parametrize(("change", "code", "told"), [
    ({"ensemble": "NVT"}, 3, "it has 'no such setting' and the control file 'ENSEMBLE ensemble = NVT'"),
    ({"iseed": 6}, 3, "it has 'DYNAMICS iseed = 5' and the control file 'DYNAMICS iseed = 6'"),
    ({"output": {"dcd_atoms": "1-30"}}, 3, "'OUTPUT dcd_atoms = 1-30'"),
    ({"ranks": 2}, 3, "was written by 1 ranks and this run has 2; use the same number"),
])
def test_a_checkpoint_of_another_run_is_refused(system, tmp_path, change, code, told):
    some_checkpoint(system, tmp_path)
    keys = {"ranks": 1, "ensemble": "NVE", **change}
    done = systems.run("run", control(system, tmp_path, keys.pop("ranks"), keys.pop("ensemble"), **keys),
                       change.get("ranks", 1), "chromamd")
    assert done.returncode == code
    assert told in systems.sentence(done)


def test_a_checkpoint_of_another_system_is_refused(system, tmp_path):
    some_checkpoint(system, tmp_path)
    other = tmp_path / "other.h5"
    shutil.copy(system / "t.h5", other)
    with h5py.File(other, "r+") as file:
        file["template/0000/charge"][0] += 0.001
    inp = control(system, tmp_path, 1, "NVE")
    inp.write_text(inp.read_text().replace(str(system / "t.h5"), str(other)))
    done = systems.run("run", inp, program="chromamd")
    assert done.returncode == 3
    assert f"this checkpoint is of another system than {other}; give the topology of that run" in systems.sentence(done)


@pytest.mark.parametrize(("harm", "told"), [
    ("mark", "check_whole.txt: this mark of a checkpoint is damaged; remove it to start the run anew"),
    ("set", "check_0.1.rst: its checksum does not match"),
    ("frames", "run.dcd: has 100 bytes and had"),
    ("log", "run.log: is missing, and the checkpoint goes on with it"),
    ("start", "of a run that started from other files than"),
])
def test_a_harmed_checkpoint_is_refused(system, tmp_path, harm, told):
    some_checkpoint(system, tmp_path)
    inp = control(system, tmp_path, 1, "NVE")
    if harm == "mark":
        mark = tmp_path / "check_whole.txt"
        mark.write_text(mark.read_text().replace("step 10", "step 11"))
    elif harm == "set":
        path = tmp_path / "check_0.1.rst"
        content = bytearray(path.read_bytes())
        content[2000] ^= 1
        path.write_bytes(content)
    elif harm == "frames":
        os.truncate(tmp_path / "run.dcd", 100)
    elif harm == "log":
        (tmp_path / "run.log").unlink()
    else:
        shutil.copy(tmp_path / "end_0.rst", tmp_path / "begin_0.rst")
        inp.write_text(inp.read_text().replace(str(system / "start1_().rst"), str(tmp_path / "begin_().rst")))
    done = systems.run("run", inp, program="chromamd")
    assert done.returncode == (3 if harm == "start" else 5)
    assert told in systems.sentence(done)


def test_without_a_checkpoint_the_run_starts_anew(system, undisturbed, tmp_path):
    """A checkpoint is not looked at without continue = YES, and then it is removed, for its trajectory goes too."""
    some_checkpoint(system, tmp_path)
    inp = control(system, tmp_path, 1, "NVE", interval=0)
    inp.write_text(inp.read_text().replace("continue = YES", "continue = NO"))
    finish(inp, 1)
    assert_same(tmp_path, undisturbed(1, "NVE"))
    assert [path.name for path in tmp_path.glob("check_*.rst")] == ["check_0.1.rst"]


@pytest.mark.release
@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount a small file system")
def test_a_full_disk_leaves_the_last_checkpoint(system, undisturbed, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        inp = control(system, tmp_path, 1, "NVE", output={"checkpoint": disk / "check_().rst"})
        process = start(inp, 1)
        wait_for_step(process, tmp_path / "run.log", 30)
        with open(disk / "filler", "wb", buffering=0) as filler:
            while process.poll() is None:
                with contextlib.suppress(OSError):  # what an old set gives free is taken too
                    filler.write(bytes(4096))
        told = told_at_end(process, inp)
        assert process.returncode == 6, told
        assert re.search(r"chromamd: .* cannot be written.*free space", told)
        assert not list(disk.glob("*.part"))
        (disk / "filler").unlink()
        finish(inp, 1)
        assert_same(tmp_path, undisturbed(1, "NVE"))
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
def test_trials():
    """Four of the benchmark's 100 trials."""
    script = Path(__file__).parents[2] / "benchmarks" / "checkpoint_trials.py"
    environment = os.environ | {"PYTHONPATH": str(systems.BIN.parents[1])}
    done = subprocess.run([sys.executable, str(script), "--quick"], env=environment, capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
