"""The page that follows a run: what it reads of growing files, what it says, and when it ends."""

import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from support.web_pages import Checker

from chromabuild.base.settings import Settings
from chromabuild.report import watch
from chromabuild.report.trace import Curves
from chromabuild.simulate import live
from chromabuild.simulate.extension import Extension, Lengthening
from chromabuild.simulate.live import LiveRun, LogTail
from chromabuild.simulate.protocol import phases_in, plan_phases

START = 1_700_000_000.0
COLUMNS = ("STEP", "TIME", "POTENTIAL_ENE", "TEMPERATURE", "PRESSURE", "CONSERVED_ENE", "TEMP_SOLUTE", "TEMP_SOLVENT",
           "DENSITY", "MAX_FORCE")
HEADER = "INFO:" + "".join(f"{name:>16s}" for name in COLUMNS) + "\n"


def row(step, time=0.0, **values):
    values = {"TEMPERATURE": 310, "TEMP_SOLUTE": 300 + step % 7, "TEMP_SOLVENT": 310, "DENSITY": 1 + 1e-5 * step,
              "MAX_FORCE": 50, **values}
    return f"INFO:{step:16d}{time:16.4f}" + "".join(f"{values.get(name, step):16.4f}" for name in COLUMNS[2:]) + "\n"


@pytest.fixture
def config(tmp_path):
    return Settings.model_validate({"output": str(tmp_path), "locus": {"name": "a <locus>"}, "simulate": {
        "protocol": None, "phases": [{"name": "minimise", "kind": "minimise", "steps": 100},
                                     {"name": "heat", "steps": 1000, "output_period": 100},
                                     {"name": "produce", "steps": 2000, "ensemble": "NPT", "output_period": 100}]}})


class Files:
    """Writes what a run would write, at chosen times."""

    def __init__(self, config: Settings) -> None:
        self.phases = plan_phases(config.simulate)
        self.folder = Path(config.output) / "md"

    def write(self, name: str, text: str, when: float, append: bool = False) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a" if append else "w") as file:
            file.write(text)
        os.utime(path, (START + when, START + when))

    def begin(self, number: int, when: float) -> None:
        phase = self.phases[number]
        self.write(phase.begun, "{}", when)
        self.write(f"{phase.stem}.inp", "", when)

    def finish(self, number: int, when: float, seconds_per_step: float = 0.1) -> None:
        phase = self.phases[number]
        self.begin(number, when)
        self.write(phase.log, "chromamd, mixed precision: 3000 atoms, box 31 x 31 x 31 angstrom\n" + HEADER
                   + row(phase.first_step, phase.first_time)
                   + row(phase.first_step + phase.steps, phase.first_time + phase.simulated), when)
        self.write(phase.record, json.dumps({"description": {"phase": {"steps": phase.steps}},
                                             "seconds_per_step": seconds_per_step}), when)


def test_a_log_is_read_as_it_grows(tmp_path):
    """Whole lines once each; after a cut, from which a checkpoint goes on, all anew."""
    tail = LogTail(tmp_path / "a.log")
    tail.look()
    assert tail.rows == [] and tail.last is None
    tail.path.write_text(HEADER + row(0) + row(10)[:40])
    tail.look()
    assert [r["STEP"] for r in tail.rows] == [0]
    tail.path.write_text(HEADER + row(0) + row(10) + row(20))
    tail.look()
    assert [r["STEP"] for r in tail.rows] == [0, 10, 20] and tail.begin_step == 0
    tail.path.write_text(HEADER + row(0) + row(10) + "continued from the checkpoint at step 15\n"
                         + "".join(row(step, MAX_FORCE=70) for step in range(20, 60, 10)))
    tail.look()
    assert [r["STEP"] for r in tail.rows] == [0, 10, 20, 30, 40, 50] and tail.begin_step == 15
    assert tail.columns["MAX_FORCE"].tolist() == [50, 50, 70, 70, 70, 70] and set(tail.columns) == set(COLUMNS)


def test_long_logs_are_thinned(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "MOST_ROWS", 40)
    tail = LogTail(tmp_path / "a.log")
    tail.path.write_text(HEADER + "".join(map(row, range(1001))))
    tail.look()
    step = tail.columns["STEP"]
    assert 20 <= len(step) <= 42 and step[0] == 0 and step[-1] == 1000
    assert set(np.diff(step[:-1])) == {32}


def test_nothing_is_there_yet(config):
    run = LiveRun(Path(config.output) / "md", plan_phases(config.simulate))
    run.look()
    assert [phase.state for phase in run.phases] == ["waiting"] * 3 and run.seconds_left is None and not run.is_done
    watch.write_page(config, run, Path(config.output) / watch.FILE_NAME, 5)
    page = (Path(config.output) / watch.FILE_NAME).read_text()
    assert "No energies have been written yet" in page and '<meta http-equiv="refresh" content="5">' in page


def test_speed_end_and_checkpoint(config):
    """Two rows 100 steps and 20 s apart: 0.2 s a step, whatever the engine took to start."""
    files = Files(config)
    files.finish(0, 0)
    files.begin(1, 100)
    heat = files.phases[1]
    run = LiveRun(files.folder, files.phases)
    run.look(START + 101)
    assert run.current.plan.name == "heat" and run.current.state == "running" and run.current.steps_done == 0
    files.write(heat.log, HEADER + row(0) + row(100), 170)
    run.look(START + 171)
    files.write(heat.log, row(200), 190, append=True)
    files.write(heat.checkpoint_mark, "chromamd checkpoint 1\nset 1\nstep 150\nfirst_step 0\n", 180)
    run.look(START + 195)
    phase = run.current
    assert (phase.state, phase.steps_done, phase.checkpoint_step) == ("running", 200, 150)
    assert phase.checkpoint_age == pytest.approx(15) and phase.seconds_per_step == pytest.approx(0.2)
    assert phase.ns_per_day == pytest.approx(86400 * 2e-6 / 0.2)
    assert run.seconds_left == pytest.approx(0.2 * (800 + 2000)) and run.atoms == 3000
    run.look(START + 190 + 3600)
    assert phase.state == "quiet"
    files.write(f"{heat.stem}.out", "mpirun: noise\nchromamd: the run is unstable: <why>\n", 200)
    run.look(START + 201)
    assert phase.state == "stopped" and phase.message == "the run is unstable: <why>"


def test_a_phase_that_begins_anew_makes_the_later_ones_wait(config):
    """Records and logs of what comes after a phase that runs again are of the run before it."""
    files = Files(config)
    for number in range(3):
        files.finish(number, 100 * number)
    run = LiveRun(files.folder, files.phases)
    run.look(START + 300)
    assert run.is_done and run.seconds_left == 0
    (files.folder / files.phases[1].record).unlink()
    files.begin(1, 400)
    run.look(START + 401)
    assert [phase.state for phase in run.phases] == ["done", "running", "waiting"]
    assert run.current.steps_done == 0 and run.phases[2].steps_done == 0


def test_the_page_stands_alone(config):
    files = Files(config)
    files.finish(0, 0)
    files.finish(1, 100)
    files.begin(2, 200)
    produce = files.phases[2]
    files.write(produce.log, HEADER + "".join(row(1000 + k, 2 + k / 500) for k in range(0, 700, 100)), 300)
    files.write(f"{produce.stem}.out", "chromamd: the run is unstable: <why>\n", 300)
    run = LiveRun(files.folder, files.phases)
    run.look(START + 301)
    path = Path(config.output) / watch.FILE_NAME
    watch.write_page(config, run, path, 5)
    page = path.read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and checker.links == [] and "<script" not in page
    for text in ("a &lt;locus&gt;", "&lt;why&gt;", "temperature, K", "density, g/cm³", "largest force",
                 "kT/ns/atom in produce", "600 / 2"):
        assert text in page
    assert not list(path.parent.glob(".*part"))


def test_the_watch_ends_with_the_run_or_with_ctrl_c(config, monkeypatch):
    files = Files(config)
    files.finish(0, 0)
    files.finish(1, 1)
    monkeypatch.setattr(os, "nice", lambda more: 0)
    naps, told = [], []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 2:
            files.finish(2, 2)

    monkeypatch.setattr(time, "sleep", sleep)
    summary = watch.watch_run(config, 7, told.append)
    assert naps == [7, 7] and len(told) == 3 and summary["state"] == "done"
    assert "refresh" not in (Path(config.output) / watch.FILE_NAME).read_text()

    (files.folder / files.phases[2].record).unlink()

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    assert watch.watch_run(config, 7, told.append)["state"] != "done"


def test_a_phase_that_was_extended_is_done_at_its_new_end(config):
    folder = Path(config.output) / "md"
    folder.mkdir()
    Extension("produce", "of", (Lengthening("10 ps", 2000, 7000),)).write(folder)
    files = Files(config)
    files.phases = phases_in(folder, config.simulate)
    for number in range(3):
        files.finish(number, 10.0 * number)
    lines: list[str] = []
    watch.watch_run(config, 60, lines.append)
    assert lines == ["produce: done, step 7000 of 7000"]


def test_plots_keep_extremes_and_leave_out_what_cannot_be_drawn():
    x = np.arange(20000.0)
    y = np.sin(x / 3000)
    y[7777] = 50
    svg = Curves({"a": (x, y), "b": (x, np.full_like(x, np.nan))}, "x", "y").svg()
    points = re.findall(r'points="([^"]*)"', svg)
    assert len(points) == 1 and len(points[0].split()) <= 602
    heights = [float(point.split(",")[1]) for point in points[0].split()]
    assert min(heights) < max(heights) - 100  # the spike is drawn, to the top
    assert Curves({"a": (x, 0 * x)}, "x", "y", logarithmic=True).svg() == "" and Curves({}, "x", "y").svg() == ""
    assert ">1e2<" in Curves({"a": (x[1:], x[1:])}, "x", "y", logarithmic=True).svg()
