"""Runs of a scan that begin from each other: their order, and the same results however often they were stopped."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chromabuild.base.errors import InterruptedRunError
from chromabuild.quantum import chromaqm
from chromabuild.quantum.points import Method, PointRun, compute_all, nearest_first


def along(values: list[float]) -> np.ndarray:
    """(p, 2, 3) a pair of atoms at each of these distances."""
    return np.array([[[0.0, 0.0, 0.0], [value, 0.0, 0.0]] for value in values])


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True).map(sorted), st.data())
def test_points_follow_their_neighbours(values, data):
    """Along a line that is the next one towards the first."""
    first = data.draw(st.integers(0, len(values) - 1))
    order = nearest_first(along(values), first)
    assert order[0] == (first, first)
    assert sorted(k for k, _ in order) == list(range(len(values)))
    for k, neighbour in order[1:]:
        assert neighbour == k + np.sign(first - k)


def test_a_circle_is_gone_around_both_ways():
    """Angles of 330 and 300 degree follow those of 0 and 330, not those of 180 and 210."""
    angle = np.radians(np.arange(0, 360, 30))
    order = nearest_first(np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)[:, None], 0)
    assert {k: neighbour for k, neighbour in order if k in (1, 2, 10, 11)} == {1: 0, 2: 1, 11: 0, 10: 11}


class Program:
    """In place of chromaqm: a result that depends on all that a run reads. ``stops`` after so many runs, or never."""

    def __init__(self, stops: int | None = None) -> None:
        self.stops, self.done = stops, []

    def run(self, control: Path, ranks: int, *_, **__) -> dict:
        if self.stops is not None and len(self.done) == self.stops:
            raise InterruptedRunError("stopped")
        key = dict(line.split(" = ", 1) for line in control.read_text().splitlines() if " = " in line)
        read = Path(key["atomfile"]).read_bytes()
        if "statesfile" in key:
            read += b"".join(Path(key["statesfile"].replace("()", str(rank))).read_bytes() for rank in range(ranks))
        digest = sha256(read).digest()
        if "restartfile" in key:
            for rank in range(ranks):
                Path(key["restartfile"].replace("()", str(rank))).write_bytes(digest + bytes([rank]))
        Path(key["resultfile"]).write_text(json.dumps({
            "converged": True, "total": -1 - digest[0] / 256, "forces": [[0.0] * 3] * 2, "digest": digest.hex()}))
        self.done.append(control.stem)
        return {}


def scan(folder: Path, ranks: int = 1) -> list[PointRun]:
    """Five points from the second one on: 1, 0 and 2, 3, 4."""
    folder.mkdir(exist_ok=True)
    position = along([1.0, 1.1, 1.3, 1.6, 2.0])
    runs: dict[int, PointRun] = {}
    order = nearest_first(position, 1)
    for k, neighbour in order:
        runs[k] = PointRun(folder, f"point_{k}", ["H", "H"], position[k], np.full(3, 8.0), 0, Method(ranks=ranks),
                           runs.get(neighbour), any(beside == k != one for one, beside in order))
    return list(runs.values())


def results(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.json")}


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """Results of a scan that was not stopped."""
    program = Program()
    monkeypatch.setattr(chromaqm, "run", program.run)
    compute_all(scan(tmp_path / "scan"), lambda _: None)
    assert program.done == ["point_1", "point_0", "point_2", "point_3", "point_4"]
    return results(tmp_path / "scan")


def test_a_stopped_scan_ends_with_the_same_bytes(tmp_path, monkeypatch, whole):
    """Stopped after each run, in the same place: nothing is computed twice, and no states are left at the end."""
    other = tmp_path / "scan"
    for path in other.iterdir():
        path.unlink()
    for left in range(5, 0, -1):
        program = Program(stops=1)
        monkeypatch.setattr(chromaqm, "run", program.run)
        if left > 1:
            with pytest.raises(InterruptedRunError):
                compute_all(scan(other), lambda _: None)
        else:
            compute_all(scan(other), lambda _: None)
        assert len(program.done) == 1 and len(results(other)) == 6 - left
        assert len(list(other.glob("*.states"))) <= 2
    assert results(other) == whole
    assert not list(other.glob("*.states*"))


@pytest.mark.parametrize("lost", ["states", "ranks"])
def test_states_that_are_not_there_are_made_again(tmp_path, monkeypatch, whole, lost):
    """Removed by the user, or of other ranks: the runs on the way to the one that needs them are done once more."""
    other = tmp_path / "scan"
    for path in other.iterdir():
        path.unlink()
    monkeypatch.setattr(chromaqm, "run", Program(stops=3).run)
    with pytest.raises(InterruptedRunError):
        compute_all(scan(other), lambda _: None)
    if lost == "states":
        for path in other.glob("*.states"):
            path.unlink()
    program = Program()
    monkeypatch.setattr(chromaqm, "run", program.run)
    compute_all(scan(other, ranks=2 if lost == "ranks" else 1), lambda _: None)
    assert program.done == ["point_1", "point_2", "point_3", "point_4"]
    if lost == "states":
        assert results(other) == whole
    assert not list(other.glob("*.states*"))


def test_runs_of_other_input_are_done_again(tmp_path, monkeypatch, whole):
    """Also those that follow from one of other input, though their own is the same."""
    program = Program()
    monkeypatch.setattr(chromaqm, "run", program.run)
    changed: list[PointRun] = []
    for run in scan(tmp_path / "scan"):
        begin = next((one for one in changed if run.begin and one.name == run.begin.name), None)
        further = 1.01 if run.name == "point_2" else 1.0
        changed.append(replace(run, begin=begin, position=run.position * further))
    compute_all(changed, lambda _: None)
    assert program.done == ["point_1", "point_2", "point_3", "point_4"]
    assert {name for name, text in results(tmp_path / "scan").items() if text != whole[name]} == {
        "point_2.json", "point_3.json", "point_4.json"}
