"""What a machine cannot do: `plan` says it, `all` and `run` refuse with the same sentence, and nothing is written."""

import json
import re
from collections import namedtuple

import pytest
from typer.testing import CliRunner

from chromabuild.base import machine
from chromabuild.base.errors import ResourceError
from chromabuild.base.settings import load_config
from chromabuild.cli import app
from chromabuild.pipeline import ask, limits
from chromabuild.pipeline.needs import RELAX_RANK_BYTES
from chromabuild.pipeline.plan import estimate

Usage = namedtuple("Usage", "total used free")


def run(settings, *arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--config", str(settings)])


def said_by_plan(settings, *arguments):
    result = run(settings, "plan", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return next(iter(json.loads(result.stdout)["obstacles"]), None)


def refused(settings, *arguments):
    result = run(settings, *arguments)
    assert result.exit_code == 6, result.output
    return result.stderr.strip().splitlines()[-1].removeprefix("chromabuild: ")


def test_what_fits_is_not_refused(settings, monkeypatch):
    monkeypatch.setattr(limits, "memory_here", lambda: 24e9)
    assert said_by_plan(settings) is None
    assert "not here" not in run(settings, "plan").stdout


def test_memory(settings, monkeypatch):
    monkeypatch.setattr(limits, "memory_here", lambda: 0.48e9)
    sentence = said_by_plan(settings)
    assert re.match(r"the dynamics of 1\.\d+e\+06 atoms needs about 0\.\d+ GB of memory and this machine has 0\.48 GB: "
                    r"choose a smaller locus \(about 1\.\de\+06 atoms fit\), use 2 nodes of this size .*, "
                    r"or stop before it with --until topology$", sentence), sentence
    assert f"not here: {sentence}" in run(settings, "plan").stdout
    assert refused(settings, "all") == sentence
    assert not (settings.parent / "results").exists()
    # The dynamics alone, and the chain without it.
    folder = settings.parent / "results"
    (folder / "shards").mkdir(parents=True)
    for name in ("topology.h5", "scaffold.h5", "shards/manifest.json"):
        (folder / name).write_text("stands for the file")
    assert refused(settings, "run") == sentence
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    assert said_by_plan(settings) is None


def test_memory_of_the_dry_relaxation(settings, monkeypatch):
    """It may be left out; what it needs grows with the solute and, for each rank, by the program."""
    monkeypatch.setattr(limits, "memory_here", lambda: 0.23e9)
    relaxed = ("--set", "relax.enabled=true", "--until", "relax")
    sentence = refused(settings, "all", *relaxed)
    assert re.match(r"the relaxation without water of 1\.\d+e\+05 atoms of solute needs about 0\.\d+ GB of memory and "
                    r"this machine has 0\.23 GB: choose a smaller locus .*, set relax\.enabled: false, or stop before "
                    r"it with --until clash$", sentence), sentence
    needs = [float(re.search(r"needs about (\S+) GB", text)[1]) for text in
             (sentence, refused(settings, "all", *relaxed, "--set", "dynamics.ranks=11"))]
    assert needs[1] - needs[0] == pytest.approx(10 * RELAX_RANK_BYTES / 1e9, abs=2e-3)


def test_disk(settings, monkeypatch):
    monkeypatch.setattr(limits.shutil, "disk_usage", lambda path: Usage(1e12, 1e12 - 5e7, 5e7))
    sentence = said_by_plan(settings, "--set", "dynamics.trajectory_selection=all", "--set", "solvate.compress=false")
    assert sentence.startswith("writing the shards needs about 0.")
    assert "has 0.05 GB free: free space or choose another output folder" in sentence
    monkeypatch.setattr(limits.shutil, "disk_usage", lambda path: Usage(1e12, 1e12 - 4e8, 4e8))
    phases = "simulate.phases=[{{name: dynamics, steps: {}, trajectory_period: 100}}]"
    many = ("--set", phases.format(5000), "--set", "dynamics.trajectory_selection=all")
    sentence = said_by_plan(settings, *many)
    assert sentence.startswith("the dynamics needs about ") and "trajectory_selection" in sentence
    assert refused(settings, "all", *many) == sentence
    few = ("--set", phases.format(100), "--set", "dynamics.trajectory_selection=solute")
    assert said_by_plan(settings, *few) is None


def test_formats(settings, monkeypatch):
    """A trajectory of more atoms than a DCD holds."""
    monkeypatch.setattr(limits, "memory_here", lambda: 1e15)
    monkeypatch.setattr(limits.shutil, "disk_usage", lambda path: Usage(1e18, 0, 1e18))
    large = ("--set", "solvate.box=[2000,2000,2000]", "--set", "dynamics.trajectory_selection=all")
    sentence = said_by_plan(settings, *large)
    assert re.match(r"dynamics\.trajectory_selection = all is 7\d\d,\d+,\d+ atoms and a DCD file holds at most "
                    r"536,870,911: choose solute-and-ions, or solute$", sentence)
    assert refused(settings, "all", *large) == sentence
    assert said_by_plan(settings, *large[:2]) is None


def test_nothing_is_refused_on_a_guess(settings, monkeypatch):
    """Before the scaffold is there the box is that of straight linkers, several times too large."""
    monkeypatch.setattr(limits, "memory_here", lambda: 0.28e9)
    text = re.sub(r"^  box: .*  #", "  box:  #", settings.read_text(), flags=re.MULTILINE)
    settings.write_text(text)
    short = ("--threads", "1", "--set", "scaffold.sweeps=1", "--set", "scaffold.choose=last",
             "--set", "scaffold.packing=free")
    assert "if the box is that large: the dynamics of" in run(settings, "plan", "--no-fold", *short).stdout
    assert refused(settings, "all", *short).startswith("the dynamics of")
    assert (settings.parent / "results" / "scaffold.h5").exists()
    assert "not here: the dynamics of" in run(settings, "plan", "--no-fold", *short).stdout
    assert not (settings.parent / "results" / "solute.h5").exists()


def test_a_sphere_bounds_the_box(settings):
    """The fibre is no larger than the sphere that holds it, and no larger than with straight linkers."""
    free = ("plan", "--json", "--no-fold", "--set", "solvate.box=", "--set", "solvate.padding=10",
            "--set", "scaffold.packing=free", "--set", "scaffold.choose=last")
    straight = json.loads(run(settings, *free).stdout)
    tight, wide = (json.loads(run(settings, *free, "--set", f"scaffold.confinement_radius={radius}").stdout)
                   for radius in (9, 900))
    assert straight["box_from"] == wide["box_from"] == "the fibre with straight linkers"
    assert wide["box"] == straight["box"] and max(straight["box"]) > 280
    assert tight["box_from"] == "scaffold.confinement_radius"
    assert tight["box"] == [min(edge, 180 + 80 + 20) for edge in straight["box"]]


@pytest.mark.parametrize("stage", ["scaffold", "build", "clash", "solvate", "topology"])
def test_a_stage_by_itself_asks_for_its_memory(settings, monkeypatch, stage):
    """As much as `plan` says of it, and before it opens anything; with a little more it begins."""
    needed = 1e9 * json.loads(run(settings, "plan", "--json", "--threads", "1").stdout)["memory"][stage]
    config = load_config(settings)
    for module in (limits, ask):
        monkeypatch.setattr(module, "memory_here", lambda: 0.98 * needed)
    with pytest.raises(ResourceError, match=r"needs about 0\.\d+ GB of memory and this machine has 0\.\d+ GB: "):
        ask.refuse_alone(config, stage, 1)
    for module in (limits, ask):
        monkeypatch.setattr(module, "memory_here", lambda: 1.02 * needed)
    ask.refuse_alone(config, stage, 1)


def test_the_remedy_is_that_of_the_cause(settings, monkeypatch):
    """Padding, a loose box, threads or the locus, whichever has made it large."""
    monkeypatch.setattr(limits, "memory_here", lambda: 0.6e9)
    parts = {"padding": ({"solvate.box": None, "solvate.padding": 150}, "lower solvate.padding = 150 A"),
             "box": ({"solvate.box": [300, 300, 300]}, r"make solvate\.box smaller \(about 1\.\de\+06 atoms fit\)"),
             "locus": ({"solvate.box": [160, 160, 260], "dynamics.engine": "openmm"}, "choose a smaller locus")}
    for keys, told in parts.values():
        found = limits.obstacles(estimate(load_config(settings, keys), 1), load_config(settings, keys), ["run"])
        assert re.search(told, found[0]), found
    config = load_config(settings)
    found = limits.obstacles(estimate(config, 64), config, ["solvate"])
    assert not found  # few bricks: one process writes them
    config.solvate.brick_edge = 20
    assert re.search("use --threads 3", limits.obstacles(estimate(config, 64), config, ["solvate"])[0])


def test_limits_of_control_groups(tmp_path, monkeypatch):
    """Of the group of the process and of all above it: the least counts."""
    (tmp_path / "job" / "step").mkdir(parents=True)
    (tmp_path / "own").write_text("0::/job/step\n")
    (tmp_path / "job" / "memory.max").write_text("3000000\n")
    (tmp_path / "job" / "step" / "memory.max").write_text("max\n")
    monkeypatch.setattr(machine, "_GROUPS", tmp_path)
    monkeypatch.setattr(machine, "_OWN", tmp_path / "own")
    assert machine.memory_here() == 3e6
    (tmp_path / "job" / "step" / "memory.max").write_text("2000000\n")
    assert machine.memory_here() == 2e6
    (tmp_path / "memory" / "slurm").mkdir(parents=True)
    (tmp_path / "own").write_text("9:cpu:/elsewhere\n4:memory:/slurm\n")
    (tmp_path / "memory" / "slurm" / "memory.limit_in_bytes").write_text("1000000\n")
    assert machine.memory_here() == 1e6
