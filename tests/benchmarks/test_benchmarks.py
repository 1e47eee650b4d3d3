"""The benchmarks run, their results have one form, and the tables of the documentation are made from them."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = sorted(path.name for path in BENCHMARKS.glob("*.py") if path.name != "tables.py")
TABLES = sorted((ROOT / "docs" / "tables").glob("*.md"))
RESULTS = sorted(BENCHMARKS.glob("results/*/*.json"))
QUICK = ("clash_detection.py", "dna_builder.py", "shard_writing.py")
"""Cheap ones, which need no peer that the tests do not have."""


def run(script: str, *options: str, folder: Path | None = None,
        timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """A benchmark in a process of its own, with the packages of this test run."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, str(BENCHMARKS / script), *options], env=environment, cwd=folder,
                          capture_output=True, text=True, timeout=timeout)


def imported_names(path: Path) -> set[str]:
    """First parts of the names of the modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_tests_import_from_no_benchmark_and_from_no_other_folder():
    """What several folders share stands in tests/support."""
    modules = {path.stem: path.parent for path in (ROOT / "tests").rglob("*.py") if path.stem != "conftest"}
    forbidden = {path.stem for path in BENCHMARKS.glob("*.py")} | {"common", "benchmarks"}
    for path in (ROOT / "tests").rglob("*.py"):
        names = imported_names(path)
        assert not names & forbidden, f"{path.relative_to(ROOT)} imports {', '.join(names & forbidden)} of a benchmark"
        away = {name for name in names & modules.keys() if modules[name] != path.parent}
        assert not away, f"{path.relative_to(ROOT)} imports {', '.join(away)}: move what is shared to tests/support"


def test_benchmarks_import_from_no_test():
    """Nor from pytest, in any folder of theirs."""
    forbidden = {path.stem for path in (ROOT / "tests").rglob("*.py")} | {"tests", "support", "pytest"}
    for path in BENCHMARKS.rglob("*.py"):
        names = imported_names(path) & forbidden
        assert not names, f"{path.relative_to(ROOT)} imports {', '.join(names)} of the tests"


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_say_what_they_are_for(script):
    """The first line of the documentation is a sentence, and the command line is the common one."""
    text = (BENCHMARKS / script).read_text()
    purpose = ast.get_docstring(ast.parse(text)).splitlines()[0]
    assert purpose.endswith(".") and len(purpose.split()) > 4
    assert "Benchmark(__doc__" in text and ".start(quick=" in text and "benchmark.finish()" in text
    assert f"`{script}`" in (BENCHMARKS / "README.md").read_text(), f"benchmarks/README.md has no line for {script}"


@pytest.mark.parametrize("script", QUICK)
def test_quick_runs(script):
    """--quick ends with a table and writes nothing."""
    before = sorted(BENCHMARKS.glob("results/*/*"))
    done = run(script, "--quick")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^processor ", done.stdout) and re.search(r"^\| --- ", done.stdout, re.MULTILINE)
    assert sorted(BENCHMARKS.glob("results/*/*")) == before


ALL_HELP = """
import os, runpy, sys
import MDAnalysis, matplotlib.pyplot, openmm.app, chromabuild.analysis.fibre, chromabuild.build, chromabuild.clash
import chromabuild.scaling.prediction, chromabuild.simulate.openmm_engine, chromabuild.solvate, mesoscale.folding
# Imported once, for all that fork from here.
told, *scripts = sys.argv[1:]
for script in scripts:
    if os.fork() == 0:
        sys.argv[:] = [script, "--help"]
        sys.path.insert(0, os.path.dirname(script))
        os.dup2(os.open(os.path.join(told, os.path.basename(script)), os.O_WRONLY | os.O_CREAT), 1)
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code or 0)  # without the second that it takes to tidy up
        os._exit(1)
    if os.wait()[1] != 0:
        sys.exit(f"{script} --help fails")
"""


def test_help(tmp_path):
    """Of every script, from any folder."""
    told, folder = tmp_path / "told", tmp_path / "folder"
    told.mkdir()
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", ALL_HELP, told,
                           *(BENCHMARKS / script for script in SCRIPTS)], env=environment, cwd=folder,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for script in SCRIPTS:
        text = (told / script).read_text()
        assert f"usage: {script}" in text and "--quick" in text and "--save" in text, script
    assert not list(folder.iterdir())


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_results_have_one_form(path):
    """Date and benchmark are those of the file's name, cells fit the columns."""
    result = json.loads(path.read_text())
    assert result["schema"] == 1 and result["benchmark"] == path.parent.name
    assert path.name.startswith(result["date"]) and re.fullmatch(r"\d{4}-\d\d-\d\d", result["date"])
    assert result["machine"].get("processor") or result["machine"]["note"]
    assert "chromabuild" in result["versions"] and result["source"]
    for table in result["tables"].values():
        assert table["title"] and table["rows"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
        cells = [cell for row in table["rows"] for cell in row]
        assert all(cell is None or isinstance(cell, int | float | str)
                   or cell.keys() in ({"median", "least"}, {"median", "least", "most"}, {"value", "error"})
                   for cell in cells)


def test_tables_of_the_documentation_are_those_of_the_results():
    done = run("tables.py", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [path.stem for path in TABLES])
def test_each_table_has_its_script(name):
    """The script named like the benchmark makes the table, so that --save renews what the page includes."""
    benchmark, table = name.split("-")
    assert f'"{table}"' in (BENCHMARKS / f"{benchmark}.py").read_text(), f"{benchmark}.py makes no table {table}"


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_result_has_its_script(path):
    assert (BENCHMARKS / f"{path.parent.name}.py").exists()
