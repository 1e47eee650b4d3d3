"""The FFT library and a way to run cases on many ranks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.build_products import ROOT, newest


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The shared library: of the build tree, else built now."""
    built = newest("libchromafft.so")
    if built is not None:
        return built
    folder = tmp_path_factory.mktemp("build")
    subprocess.run(["cmake", "-S", ROOT / "fortran/fft", "-B", folder], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", folder, "-j2"], check=True, capture_output=True)
    return folder / "libchromafft.so"


@pytest.fixture(scope="session")
def run_cases(library, tmp_path_factory):
    """run_cases(ranks, cases): for each rank, what rank_worker.py found of each case."""

    def run(ranks, cases):
        folder = tmp_path_factory.mktemp(f"ranks{ranks}")
        (folder / "cases.json").write_text(json.dumps(cases))
        environment = dict(os.environ, CHROMAFFT_LIBRARY=str(library), OMP_NUM_THREADS="2" if ranks == 1 else "1",
                           OPENBLAS_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           PYTHONPATH=str(ROOT / "fortran/fft"))
        call = [shutil.which("mpirun"), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(ranks),
                sys.executable, str(Path(__file__).with_name("rank_worker.py")), "cases.json", "found"]
        done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return [json.loads((folder / f"found.{rank}.json").read_text()) for rank in range(ranks)]

    return run
