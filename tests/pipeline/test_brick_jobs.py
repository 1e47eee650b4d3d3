"""Bricks made by several Snakemake jobs are those of one command."""

import re
import shutil
import subprocess
import sys

import pytest
from support.command_line import digests, environment

from chromabuild.pipeline.workflow import workflow_folder

pytest.importorskip("snakemake")
pytestmark = pytest.mark.slow


def test_batches_make_the_same_shards(nucleosome, tmp_path):
    results = tmp_path / "results"
    shutil.copytree(nucleosome.results, results, ignore=shutil.ignore_patterns("shards", "topology.*"))
    line = [sys.executable, "-m", "snakemake", "--snakefile", str(workflow_folder() / "workflow" / "Snakefile"),
            "--cores", "2", "--until", "solvate", "--config", "brick_jobs=3",
            f"settings={nucleosome.folder / 'locus.yaml'}"]
    done = subprocess.run(line, cwd=tmp_path, env=environment() | {"HOME": str(tmp_path)}, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rules = re.findall(r"^(?:local)?rule (\w+):", done.stdout + done.stderr, re.MULTILINE)
    assert rules.count("bricks") == 3 and not {"scaffold", "build", "clash"} & set(rules)
    made = {name: digest for name, digest in digests(results / "shards").items() if not name.startswith("jobs/")}
    assert made == digests(nucleosome.results / "shards")
