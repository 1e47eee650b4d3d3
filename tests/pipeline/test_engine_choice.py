"""`plan` names the engine for the machine: OpenMM where a GPU is and one process holds the system."""

import json
import os

import pytest
from typer.testing import CliRunner

from chromabuild.base import gpus
from chromabuild.base.gpus import gpu_memory_here
from chromabuild.cli import app
from chromabuild.pipeline import engine_choice, limits
from chromabuild.simulate import openmm_platform
from chromabuild.simulate.openmm_platform import ChosenPlatform


def plan(settings, *arguments):
    result = CliRunner().invoke(app, ["plan", "--config", str(settings), *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(("platform", "memory", "gpu", "engine", "reason"), [
    ("CPU", 64e9, None, "chromamd", "OpenMM finds no GPU here"),
    ("CUDA", 64e9, 8e9, "openmm", "a GPU (CUDA, 8 GB) here"),
    ("CUDA", 64e9, 1e9, "chromamd", "GB of the memory of a GPU (CUDA, 1 GB) here, which holds about"),
    ("OpenCL", 64e9, None, "openmm", "its driver does not tell how much it has"),
    ("HIP", 2e9, None, "chromamd", "in one process, which takes about 2.9")])
def test_the_engine_for_a_machine(settings, monkeypatch, platform, memory, gpu, engine, reason):
    monkeypatch.setattr(engine_choice, "chosen_platform", lambda dynamics: ChosenPlatform(platform))
    monkeypatch.setattr(engine_choice, "gpu_memory_here", lambda devices: gpu)
    for module in (engine_choice, limits):
        monkeypatch.setattr(module, "memory_here", lambda: memory)
    found = json.loads(plan(settings, "--json"))["engine"]
    assert found["engine"] == engine and reason in found["reason"]
    other = {"chromamd": "openmm", "openmm": "chromamd"}[engine]
    for chosen in (engine, other):
        line = next(line for line in plan(settings, "--set", f"dynamics.engine={chosen}").splitlines()
                    if line.startswith("engine for this machine"))
        assert line.endswith(f": set dynamics.engine: {engine}") == (chosen == other)


def test_the_engine_for_a_gpu_elsewhere(settings):
    """What the GPU has decides: the atoms that it holds are in proportion."""
    need = json.loads(plan(settings, "--json", "--no-fold"))["engine"]["gpu_gb"]
    for share, engine in ((0.98, "chromamd"), (1.02, "openmm")):
        found = json.loads(plan(settings, "--json", "--no-fold", "--gpu-memory", str(share * need)))["engine"]
        assert found["engine"] == engine and found["gpu_has_gb"] == pytest.approx(share * need)


def test_a_small_gpu_is_no_place_for_openmm(settings, monkeypatch):
    monkeypatch.setattr(limits, "gpu_memory_here", lambda devices: 6e8)
    monkeypatch.setattr(openmm_platform, "chosen_platform", lambda dynamics: ChosenPlatform("CUDA"))
    line = "on a GPU, which has 0.6 GB: set dynamics.engine: chromamd, or choose a smaller locus"
    assert line in plan(settings, "--no-fold", "--set", "dynamics.engine=openmm")
    assert line not in plan(settings, "--no-fold")


@pytest.mark.parametrize(("visible", "devices", "expected"), [
    ("", "", 8 << 30), ("", "1", 24 << 30), ("2,1", "", 24 << 30), ("2,1", "0", 80 << 30), ("", "7", None)])
def test_memory_of_gpus(tmp_path, monkeypatch, visible, devices, expected):
    """As nvidia-smi prints it: MiB, a device a line."""
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf '8192\\n24576\\n81920\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_memory_here(devices) == expected
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'no driver' >&2\nexit 9\n")
    monkeypatch.setattr(gpus, "_AMD", tmp_path)
    assert gpu_memory_here(devices) is None


def test_openmm_is_not_spread_over_nodes(settings, monkeypatch):
    """More nodes do not help it; chromamd, which needs less, does."""
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    monkeypatch.setattr(limits, "memory_here", lambda: 2e9)
    lines = plan(settings, "--set", "dynamics.engine=openmm")
    assert "this machine has 2 GB" in lines and "set dynamics.engine: chromamd, or stop before it" in lines
    assert "not here" not in plan(settings)
