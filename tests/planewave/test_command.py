"""`chromabuild qm run`: results and errors of chromaqm through our command line."""

import json

from support.command_line import chromabuild
from support.plane_waves import HYDROGEN, Case, write_case

CASE = Case(HYDROGEN, 6.0, 30.0, "PZ")


def test_results_come_through(tmp_path):
    control = write_case(tmp_path, CASE)
    shown = chromabuild("qm", "run", control.name, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "to gain" in shown.stdout
    assert "# forces on the ions" in shown.stdout
    done = chromabuild("qm", "run", control.name, "--ranks", 2, "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert result == json.loads((tmp_path / "case.json").read_text())
    assert result["converged"] is True
    assert len(result["forces"]) == 2


def test_errors_come_through(tmp_path):
    control = write_case(tmp_path, CASE, MINIMIZE={"nsteps": 2})
    done = chromabuild("qm", "run", control.name, cwd=tmp_path)
    assert done.returncode == 10
    assert done.stderr.startswith("chromabuild: the minimum was not reached in 2 steps")
    done = chromabuild("qm", "run", "none.inp", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr == "chromabuild: none.inp: this control file cannot be opened; check the name\n"


def test_ranks_without_work_are_refused_before_they_start(tmp_path):
    """A grid of 24 planes: 2*int(sqrt(4*30)*6/(2 pi)) + 1 = 21, and 24 has no prime factor above 5."""
    control = write_case(tmp_path, CASE)
    never = "sh -c 'touch started; false {ranks} {program}'"
    done = chromabuild("qm", "run", control.name, "--ranks", 25, "--launcher", never, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr == ("chromabuild: case.inp: 25 ranks are more than the 24 that have work with 24 planes of the "
                           "grid and 1 pairs of states; use at most so many\n")
    assert not (tmp_path / "started").exists()
    done = chromabuild("qm", "run", control.name, "--ranks", 24, "--launcher", never, cwd=tmp_path)
    assert (tmp_path / "started").exists(), done.stderr
