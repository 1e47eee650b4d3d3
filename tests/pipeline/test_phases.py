"""A small solute through phases by the command line: one after the other, one alone, and a longer protocol later."""

import json
import shutil

import pytest
from support.command_line import chromabuild, refusal, result_of
from support.solvated_example import SOLUTE

PHASES = [
    {"name": "minimise", "kind": "minimise", "steps": 10, "restraints": [{"group": "heavy", "constant": 5}]},
    {"name": "heat", "steps": 10, "temperature": [50, 100], "output_period": 5, "trajectory_period": 5,
     "restraints": [{"group": "solute", "constant": [5, 0]}]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A solute in water with its force field, and two phases."""
    folder = tmp_path_factory.mktemp("phases")
    (folder / "results").mkdir()
    shutil.copy(SOLUTE, folder / "results" / "solute_clean.h5")
    write_settings(folder, PHASES)
    result_of("solvate", cwd=folder)
    result_of("topology", cwd=folder)
    return folder


def write_settings(folder, phases):
    settings = {"solvate": {"padding": 5.0, "brick_edge": 40.0}, "simulate": {"protocol": None, "phases": phases}}
    (folder / "locus.yaml").write_text(json.dumps(settings))  # JSON is YAML


@pytest.mark.mpi
def test_phases_by_the_command_line(folder):
    md = folder / "results" / "md"
    for name, told in (("heat", "run `chromabuild run --phase minimise` first"),
                       ("tea", "tea is not a phase: choose from minimise, heat")):
        assert told in refusal(chromabuild("run", "--phase", name, cwd=folder), 3)
    result_of("run", "--phase", "minimise", cwd=folder)
    assert (md / "01-minimise.json").is_file() and not (md / "phases.json").exists()
    first = (md / "01-minimise.log").stat().st_mtime_ns
    summary = result_of("run", cwd=folder)["summary"]
    assert summary["phases"] == "minimise, heat" and summary["steps"] == 10 and summary["simulated_ps"] == 0.02
    assert summary["trajectory"] == "md/02-heat.dcd" and summary["temperature"] == 100
    assert (md / "01-minimise.log").stat().st_mtime_ns == first
    # Both logs and the trajectory are recorded, and a further phase runs alone.
    record = json.loads((folder / "results" / "provenance.json").read_text())["stages"]["run"]
    assert set(record["outputs"]) == {"md/phases.json", "md/01-minimise.log", "md/02-heat.log", "md/02-heat.dcd"}
    write_settings(folder, [*PHASES, {"name": "more", "steps": 5, "output_period": 5, "trajectory_period": 5}])
    second = (md / "02-heat.log").stat().st_mtime_ns
    assert result_of("run", cwd=folder)["summary"]["steps"] == 15
    assert (md / "02-heat.log").stat().st_mtime_ns == second
    result_of("report", cwd=folder)
    page = (folder / "results" / "report.html").read_text(encoding="utf-8")
    assert "Minimisation and dynamics" in page and "minimise, heat, more" in page
    assert result_of("verify", cwd=folder)
