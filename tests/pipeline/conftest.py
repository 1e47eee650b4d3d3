"""The demo locus built once for all tests here, and a small solvated piece of it."""

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.command_line import DEMO_SWEEPS, STAGES, result_of
from support.pieces import molecules_of

from chromabuild.base.files import locked
from chromabuild.molecule.solute import Solute
from chromabuild.pipeline.examples import write_settings


@dataclass(frozen=True)
class Build:
    """A folder with settings and results."""

    folder: Path
    summaries: dict[str, dict]
    """What each stage printed."""

    @property
    def results(self) -> Path:
        """The output folder."""
        return self.folder / "results"

    @property
    def manifest(self) -> dict:
        """The manifest of the shards, read without our own reader."""
        return json.loads((self.results / "shards" / "manifest.json").read_text())


def built_once(name: str, tmp_path_factory: pytest.TempPathFactory, build: Callable[[Path], dict[str, dict]]) -> Build:
    """What ``build(folder)`` makes in a folder that all test processes share: the first makes it, others wait."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, summaries = shared / name, shared / f"{name}.json"
    with locked(shared / f"{name}.lock"):
        if not summaries.exists():
            folder.mkdir()
            summaries.write_text(json.dumps(build(folder)))
    return Build(folder, json.loads(summaries.read_text()))


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The bundled example from `chromabuild init` to the force field, one command a stage, two threads; read only.

    Its Monte Carlo is shorter than in the example.
    """
    def build(folder):
        result_of("init", "--example", "demo", ".", cwd=folder)
        settings = folder / "locus.yaml"
        text = settings.read_text()
        settings.write_text(re.sub(r"(?m)^  sweeps: \d+", f"  sweeps: {DEMO_SWEEPS}", text))
        assert settings.read_text() != text
        return {stage: result_of(stage, "--threads", 2, cwd=folder)["summary"] for stage in STAGES}

    return built_once("demo", tmp_path_factory, build)


@pytest.fixture(scope="session")
def nucleosome(tmp_path_factory):
    """The first nucleosome of the demo and its linkers, 171 bp, from `chromabuild init` to the force field, two
    threads: 129,507 atoms in 12 bricks, for tests that go through the chain again. Read only.
    """
    def build(folder):
        result_of("init", "--example", "demo", "demo", cwd=folder)
        sequence = "".join((folder / "demo" / "demo.fa").read_text().splitlines()[1:])
        (folder / "one.fa").write_text(f">chrXIII:42653-42823\n{sequence[18:189]}\n")
        (folder / "one.bed").write_text("chrXIII\t42737\t42738\n")
        shutil.rmtree(folder / "demo")
        settings = {"locus": {"fasta": "one.fa", "nucleosomes": "one.bed"}, "seed": 1,
                    "build": {"histones": "yeast"}, "scaffold": {"sweeps": 100},
                    "solvate": {"padding": 3.0, "brick_edge": 50.0}}
        (folder / "locus.yaml").write_text(json.dumps(settings))  # JSON is YAML
        return {stage: result_of(stage, "--threads", 2, cwd=folder)["summary"] for stage in STAGES}

    return built_once("nucleosome", tmp_path_factory, build)


@pytest.fixture(scope="session")
def demo_solute(demo):
    """The solute of the demo after clash correction."""
    return Solute.read(demo.results / "solute_clean.h5")


@pytest.fixture(scope="session")
def piece(demo_solute, tmp_path_factory):
    """The second histones H3 and H4 of the first nucleosome in water with salt, and their force field: 50,000 atoms."""
    def build(folder):
        wanted = [k for k, name in enumerate(demo_solute.molecule_name)
                  if name in ("H3", "H4") and demo_solute.molecule_nucleosome[k] == 0][2:]
        molecules_of(demo_solute, wanted).write(folder / "results" / "solute_clean.h5")
        settings = {"seed": 7, "solvate": {"padding": 2.0, "brick_edge": 50.0},
                    "simulate": {"phases": [
                        {"name": "minimise", "kind": "minimise", "steps": 60},
                        {"name": "dynamics", "steps": 100, "output_period": 10, "trajectory_period": 20}]}}
        (folder / "locus.yaml").write_text(json.dumps(settings))  # JSON is YAML
        return {stage: result_of(stage, "--threads", 2, cwd=folder)["summary"] for stage in ("solvate", "topology")}

    return built_once("piece", tmp_path_factory, build)


@pytest.fixture
def settings(tmp_path):
    """The demo in a box of known size, 1.6e6 atoms."""
    write_settings(tmp_path, "locus.yaml", "demo", {}, {"solvate.box": [250.0, 250.0, 250.0]}, None, False)
    return tmp_path / "locus.yaml"
