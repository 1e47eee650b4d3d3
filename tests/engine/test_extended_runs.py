"""The last phase of a run goes on by so much: every row and frame is there once, and nothing before it runs again."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from MDAnalysis.lib.formats.libdcd import DCDFile
from support.chain_in_water import make_system

from chromabuild.base.errors import BadInputError, IntegrityError, InterruptedRunError
from chromabuild.base.settings import Settings
from chromabuild.simulate import chromamd, openmm_engine
from chromabuild.simulate.extension import read_extension
from chromabuild.simulate.integrity import file_states
from chromabuild.simulate.protocol import Task, extended, phases_in, run_phases
from chromabuild.simulate.restart_file import read_restart
from chromabuild.simulate.result import Run

pytestmark = pytest.mark.release

PERIOD = 20
STEPS = 40


def settings(steps: int = STEPS, ranks: int = 1, **phase: object) -> Settings:
    return Settings.model_validate({
        "dynamics": {"cutoff": 8, "pairlist_buffer": 1, "checkpoint": "0 min", "ranks": ranks},
        "simulate": {"protocol": None, "output_period": PERIOD, "trajectory_period": PERIOD, "phases": [
            {"name": "minimise", "kind": "minimise", "steps": 100},
            {"name": "produce", "steps": steps, "timestep": 1} | phase]}})


def task(folder: Path, config: Settings) -> Task:
    return Task(config.dynamics, 1, folder / "t.h5", folder / "bricks.txt", folder / "md")


def run(folder: Path, engine: object = chromamd, extend: str | None = None, **keys: object) -> Run:
    config = settings(**keys)
    if extend is not None:
        extended(config, task(folder, config), extend)[0].write(folder / "md")
    return run_phases(config, task(folder, config), engine)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("extended")
    make_system(folder, 100, neutral=False)
    run(folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy of a finished run."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    (tmp_path / "md/01-minimise.log").touch()
    return tmp_path


def check(folder: Path, steps: int) -> None:
    found = Run.read(folder / "md")
    assert found.energies["STEP"].tolist() == list(range(0, steps + 1, PERIOD))
    with DCDFile(str(found.trajectory)) as frames:
        header = frames.header
        position = frames.readframes().xyz
    assert (header["istart"], header["nsavc"]) == (PERIOD, PERIOD)
    assert len(position) == steps // PERIOD
    assert all(np.abs(after - before).max() > 0 for before, after in zip(position, position[1:], strict=False))


@pytest.mark.mpi
def test_many_domains_have_their_files_in_folders(tmp_path, monkeypatch):
    """Of 256 domains each in earnest; here those of more than one."""
    monkeypatch.setattr(chromamd, "FOLDER_DOMAINS", 1)
    atoms = sum(len(molecule.charge) * number for molecule, number in make_system(tmp_path, 100, neutral=False))
    run(tmp_path, ranks=2)
    found = run(tmp_path, ranks=2, extend="20 fs")
    check(tmp_path, STEPS + 20)
    restart = tmp_path / "md" / "restart"
    assert not list(restart.glob("*.rst"))
    assert {path.name for path in (restart / "0").glob("*_[01].rst")} == {
        f"{name}_{rank}.rst" for name in ("start", "01-minimise", "02-produce") for rank in (0, 1)}
    assert read_restart(found.restart, atoms, 2).position.shape == (atoms, 3)
    states = dict(file_states(tmp_path / "md"))
    assert {state for state in states.values()} == {"ok"} and sum(path.parent.name == "0" for path in states) == 10
    config = settings(ranks=2, timestep=2)
    assert _begin_anew(tmp_path, config) == []


def _begin_anew(folder: Path, config: Settings) -> list[Path]:
    """Checkpoints of the last phase that are left when another one of that name has begun."""
    with pytest.raises(KeyboardInterrupt):
        run_phases(config, task(folder, config), Interrupted())
    return list(folder.glob("md/restart/**/02-produce_checkpoint_*"))


class Interrupted:
    """An engine that is interrupted at once."""

    restart_name = staticmethod(chromamd.restart_name)

    def run_phase(self, *arguments):
        raise KeyboardInterrupt


class Stopped:
    """The engine, but stopped after so many steps of dynamics."""

    restart_name = staticmethod(chromamd.restart_name)

    def __init__(self, steps):
        self.steps = steps

    def run_phase(self, task, phase, previous, progress, begun):
        from dataclasses import replace

        chromamd.run_phase(task, replace(phase, steps=self.steps), previous, progress, begun)
        raise InterruptedRunError("stopped")


def test_twice_in_a_row_and_after_an_interruption(folder):
    before = (folder / "md/01-minimise.log").stat().st_mtime_ns
    first = (folder / "md/02-produce.dcd").read_bytes()[276:]
    run(folder, extend="0.04 ps")
    check(folder, 80)
    with pytest.raises(InterruptedRunError):
        run(folder, Stopped(100), extend="0.04 ps")
    assert phases_in(folder / "md", settings().simulate)[-1].steps == 120
    run(folder, extend="0.04 ps")  # the same command ends it
    check(folder, 120)
    assert [(one.start, one.end) for one in read_extension(folder / "md").lengthenings] == [(40, 80), (80, 120)]
    assert (folder / "md/01-minimise.log").stat().st_mtime_ns == before
    assert (folder / "md/02-produce.dcd").read_bytes()[276:][:len(first)] == first
    rows = []
    config = settings()
    run_phases(config, task(folder, config), chromamd, progress=lambda phase, row: rows.append(row))
    assert rows == [None, None]  # nothing is left to do


def test_a_stopped_extension_ends_with_the_run_or_gets_another_length(folder):
    for length in ("0.05 ps", "0.08 ps"):
        with pytest.raises(InterruptedRunError):
            run(folder, Stopped(60), extend=length)
    with pytest.raises(BadInputError, match="ends before what is done of the extension of produce, 0.02 ps"):
        run(folder, extend="0.01 ps")
    run(folder)
    check(folder, 120)
    assert [(one.start, one.end) for one in read_extension(folder / "md").lengthenings] == [(40, 120)]


def test_with_a_length_that_was_raised(folder):
    run(folder, extend="0.02 ps")
    with pytest.raises(BadInputError, match="phase produce is not done with these settings"):
        run(folder, steps=100, extend="0.02 ps")
    run(folder, steps=100)
    check(folder, 100)
    run(folder, steps=100, extend="0.02 ps")
    check(folder, 120)
    run(folder, steps=80)  # the extension holds on
    check(folder, 120)


def test_another_run_forgets_it(folder):
    run(folder, extend="0.02 ps")
    run(folder, timestep=0.5)
    check(folder, STEPS)
    assert read_extension(folder / "md") is None


def test_refusals(folder):
    def refused(told: str, length: str = "0.02 ps", **keys: object) -> None:
        with pytest.raises(BadInputError, match=told) as error:
            run(folder, extend=length, **keys)
        assert "\n" not in str(error.value)
        assert read_extension(folder / "md") is None

    refused("--extend '10 weeks' is not a positive number with the unit fs, ps, ns or us", "10 weeks")
    refused("--extend '0.1 fs' is shorter than a step of produce, 1 fs", "0.1 fs")
    refused("phase produce is not done with these settings: end it with `chromabuild run`", steps=60)
    refused("phase produce goes on with as many ranks as it was run on: set dynamics.ranks to 1", ranks=2)
    refused("produce changes temperature or restraints over its length", temperature=[300, 310])
    (folder / "md/restart/02-produce_checkpoint_whole.txt").unlink()
    refused("02-produce_checkpoint_whole.txt is missing or of another run")
    (folder / "md/01-minimise.json").unlink()
    refused("phase minimise is not done")
    (folder / "md/extended.json").write_text("{}")
    with pytest.raises(IntegrityError, match="extended.json is damaged"):
        run(folder)


def test_an_extension_never_runs_the_phase_again(folder):
    with pytest.raises(InterruptedRunError):
        run(folder, Stopped(60), extend="0.04 ps")
    frames = (folder / "md/02-produce.dcd").read_bytes()
    with pytest.raises(BadInputError, match="as many ranks as it was run on"):
        run(folder, ranks=2)
    (folder / "md/restart/02-produce_checkpoint_whole.txt").unlink()
    with pytest.raises(BadInputError, match="cannot go on"):
        run(folder)
    assert (folder / "md/02-produce.dcd").read_bytes() == frames


def test_a_phase_shorter_than_its_first_frame(tmp_path):
    make_system(tmp_path, 100, neutral=False)
    run(tmp_path, steps=10)
    with pytest.raises(BadInputError, match="produce has no trajectory to go on with"):
        run(tmp_path, steps=10, extend="0.02 ps")


@pytest.mark.filterwarnings("ignore")
def test_a_run_in_openmm_goes_on_too(tmp_path):
    """What stands in its log is left alone, and without its checkpoint it is refused."""
    make_system(tmp_path, 100, neutral=False)

    def go(extend: str | None = None) -> None:
        config = settings()
        config = config.model_copy(update={"dynamics": config.dynamics.model_copy(update={
            "engine": "openmm", "platform": "CPU"})})
        if extend is not None:
            extended(config, task(tmp_path, config), extend)[0].write(tmp_path / "md")
        run_phases(config, task(tmp_path, config), openmm_engine)

    go()
    before = (tmp_path / "md" / "02-produce.log").read_bytes()
    go("40 fs")
    assert (tmp_path / "md" / "02-produce.log").read_bytes().startswith(before)
    check(tmp_path, STEPS + 40)
    for path in (tmp_path / "md" / "restart").glob("02-produce_checkpoint_*"):
        path.unlink()
    with pytest.raises(BadInputError, match="its checkpoint .* is missing"):
        go("40 fs")
