"""The bundled Snakemake workflow makes what the commands make, and continues after kill -9 with the same command.

The commands had two threads, the workflow has one core: nothing may depend on it.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command_line import digests, environment

from chromabuild.pipeline.workflow import workflow_folder

pytest.importorskip("snakemake")
pytestmark = pytest.mark.slow


def test_killed_workflow_continues_to_the_same_files(nucleosome, tmp_path):
    """Snakemake and its job are killed during the clash correction."""
    results = tmp_path / "results"
    line = [sys.executable, "-m", "snakemake", "--snakefile", str(workflow_folder() / "workflow" / "Snakefile"),
            "--cores", "1", "--until", "topology", "--config",
            f"settings={nucleosome.folder / 'locus.yaml'}", "output=results"]
    options = {"cwd": tmp_path, "env": environment() | {"HOME": str(tmp_path)}, "text": True}
    killed = subprocess.Popen(line, **options, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              start_new_session=True)
    for text in killed.stderr:
        if text.startswith("clash correction ..."):
            break
    os.killpg(killed.pid, signal.SIGSTOP)  # hold it in this stage while another tries
    second = subprocess.run(line, **options, capture_output=True, timeout=300)
    assert second.returncode != 0 and "another workflow is at work" in second.stdout + second.stderr
    os.killpg(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    killed.stderr.close()
    before = (results / "solute.h5").stat().st_mtime_ns
    time.sleep(1.1)  # Snakemake compares times of modification
    done = subprocess.run(line, **options, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (results / "solute.h5").stat().st_mtime_ns == before
    assert digests(results) == digests(nucleosome.results)
    again = subprocess.run([*line, "--dry-run"], **options, capture_output=True, timeout=300)
    assert again.returncode == 0 and not re.search(r"^rule \w+:", again.stdout + again.stderr, re.MULTILINE)


def test_the_default_is_the_demo(tmp_path):
    """Without any configuration the settings, the FASTA file and the nucleosomes are those of the bundled demo."""
    line = [sys.executable, "-m", "snakemake", "--snakefile", str(workflow_folder() / "workflow" / "Snakefile"),
            "--cores", "1", "--dry-run"]
    done = subprocess.run(line, cwd=tmp_path, env=environment() | {"HOME": str(tmp_path)}, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    named = re.findall(r"[\w./-]*demo[\w./-]*", done.stdout + done.stderr)
    assert {"demo.yaml", "demo.fa", "demo.dyads.bed"} <= {Path(name).name for name in named}
