"""`plan` names the engine for the machine: OpenMM where a GPU is and one process holds the system."""

import json

import pytest
from typer.testing import CliRunner

from chromabuild.cli import app
from chromabuild.pipeline import engine_choice, limits
from chromabuild.simulate.openmm_platform import ChosenPlatform


def plan(settings, *arguments):
    result = CliRunner().invoke(app, ["plan", "--config", str(settings), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(("platform", "memory", "engine", "reason"), [
    ("CPU", 64e9, "chromamd", "OpenMM finds no GPU here"), ("CUDA", 64e9, "openmm", "a GPU (CUDA) here"),
    ("OpenCL", 64e9, "openmm", "a GPU (OpenCL) here"),
    ("HIP", 2e9, "chromamd", "in one process, which takes about 2.9")])
def test_the_engine_for_a_machine(settings, monkeypatch, platform, memory, engine, reason):
    monkeypatch.setattr(engine_choice, "chosen_platform", lambda dynamics: ChosenPlatform(platform))
    for module in (engine_choice, limits):
        monkeypatch.setattr(module, "memory_here", lambda: memory)
    found = json.loads(plan(settings, "--json"))["engine"]
    assert found["engine"] == engine and reason in found["reason"]
    other = {"chromamd": "openmm", "openmm": "chromamd"}[engine]
    for chosen in (engine, other):
        line = next(line for line in plan(settings, "--set", f"dynamics.engine={chosen}").splitlines()
                    if line.startswith("engine for this machine"))
        assert line.endswith(f": set dynamics.engine: {engine}") == (chosen == other)


def test_openmm_is_not_spread_over_nodes(settings, monkeypatch):
    """More nodes do not help it; chromamd, which needs less, does."""
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    monkeypatch.setattr(limits, "memory_here", lambda: 2e9)
    lines = plan(settings, "--set", "dynamics.engine=openmm")
    assert "this machine has 2 GB" in lines and "set dynamics.engine: chromamd, or stop before it" in lines
    assert "not here" not in plan(settings)
