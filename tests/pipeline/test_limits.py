"""What a machine cannot do: `plan` says it, `all` and `run` refuse with the same sentence, and nothing is written."""

import json
import re
import resource
from collections import namedtuple
from contextlib import nullcontext

import numpy as np
import pytest
from support.molecular_systems import make_solute
from typer.testing import CliRunner

from chromabuild.base import machine
from chromabuild.base.box_vectors import SHAPES
from chromabuild.base.errors import ResourceError
from chromabuild.base.settings import DynamicsSection, load_config
from chromabuild.cli import app
from chromabuild.pipeline import ask, limits, needs, speeds
from chromabuild.pipeline.needs import RELAX_RANK_BYTES, preparation_memory, shard_process_memory
from chromabuild.pipeline.plan import estimate
from chromabuild.pipeline.stages import RunPart
from chromabuild.pipeline.stages.run import asked
from chromabuild.report import figures
from chromabuild.simulate import executable, launcher
from chromabuild.simulate.protocol import plan_phases

Usage = namedtuple("Usage", "total used free")


def run(settings, *arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--config", str(settings)])


def said_by_plan(settings, *arguments):
    result = run(settings, "plan", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return next(iter(json.loads(result.stdout)["obstacles"]), None)


def refused(settings, *arguments, code=6):
    result = run(settings, *arguments)
    assert result.exit_code == code, result.output
    return result.stderr.strip().splitlines()[-1].removeprefix("chromabuild: ")


def test_what_fits_is_not_refused(settings, monkeypatch):
    monkeypatch.setattr(limits, "memory_here", lambda: 24e9)
    assert said_by_plan(settings) is None
    assert "not here" not in run(settings, "plan").stdout


def test_memory(settings, monkeypatch):
    monkeypatch.setattr(limits, "memory_here", lambda: 0.62e9)  # enough for the report
    sentence = said_by_plan(settings)
    assert re.match(r"the dynamics of 1\.\d+e\+06 atoms needs about 0\.\d+ GB of memory and this machine has 0\.62 GB: "
                    r"set solvate\.box: \(empty\) \(about .*\), use 2 nodes of this size .*, "
                    r"or stop before it with --until topology$", sentence), sentence
    assert f"not here: {sentence}" in run(settings, "plan").stdout
    assert refused(settings, "all") == sentence
    assert not (settings.parent / "results").exists()
    # The dynamics alone, and the chain without it.
    folder = settings.parent / "results"
    (folder / "shards").mkdir(parents=True)
    for name in ("topology.h5", "shards/manifest.json"):
        (folder / name).write_text("stands for the file")
    assert refused(settings, "run") == sentence
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    assert said_by_plan(settings) is None


def test_memory_of_the_dry_relaxation(settings, monkeypatch):
    """It may be left out; what it needs grows with the solute and, for each rank, by the program."""
    monkeypatch.setattr(limits, "memory_here", lambda: 0.3e9)
    relaxed = ("--set", "relax.enabled=true", "--until", "relax")
    sentence = refused(settings, "all", *relaxed)
    assert re.match(r"the relaxation without water of 1\.\d+e\+05 atoms of solute needs about 0\.\d+ GB of memory and "
                    r"this machine has 0\.3 GB: choose a smaller locus .*, set relax\.enabled: false, or stop before "
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
    large = ("--set", "solvate.box=[2000,2000,2000]", "--set", "simulate.protocol=demo",
             "--set", "dynamics.trajectory_selection=all")
    sentence = refused(settings, "plan", *large, code=3)
    assert re.match(r"dynamics\.trajectory_selection = all is 7\d\d,\d+,\d+ atoms and a DCD file holds at most "
                    r"536,870,911: choose solute-and-ions, or solute$", sentence)
    assert refused(settings, "all", *large, code=3) == refused(settings, "validate", *large, code=3) == sentence
    assert said_by_plan(settings, *large[:4]) is None


def test_nothing_is_refused_on_a_guess(settings, monkeypatch):
    """Before the scaffold is there the box is that of straight linkers, several times too large. What even the solute
    alone would not fit into is refused at once."""
    text = re.sub(r"^  box: .*  #", "  box:  #", settings.read_text(), flags=re.MULTILINE)
    settings.write_text(text)
    short = ("--threads", "1", "--set", "scaffold.sweeps=1", "--set", "scaffold.choose=last",
             "--set", "scaffold.packing=free")
    monkeypatch.setattr(limits, "memory_here", lambda: 0.3e9)
    assert refused(settings, "all", *short).startswith("the dynamics of")
    assert not (settings.parent / "results" / "scaffold.h5").exists()
    monkeypatch.setattr(limits, "memory_here", lambda: 0.36e9)
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


@pytest.mark.parametrize("stage", ["scaffold", "build", "clash", "solvate", "topology", "report"])
def test_a_stage_by_itself_asks_for_its_memory(settings, monkeypatch, stage):
    """As much as `plan` says of it, and before it opens anything; with a little more it begins."""
    needed = 1e9 * json.loads(run(settings, "plan", "--json", "--threads", "1").stdout)["memory"][stage]
    config = load_config(settings)
    monkeypatch.setattr(limits, "memory_here", lambda: 0.98 * needed)
    monkeypatch.setattr(ask, "memory_free", lambda: 0.98 * needed)
    with pytest.raises(ResourceError, match=r"needs about 0\.\d+ GB of memory and this machine has 0\.\d+ GB: "):
        ask.refuse_alone(config, stage, 1)
    monkeypatch.setattr(limits, "memory_here", lambda: 1.02 * needed)
    for module in (limits, ask):
        monkeypatch.setattr(module, "memory_free", lambda: 1.02 * needed)
    ask.refuse_alone(config, stage, 1)


def test_pictures_of_the_report_one_after_the_other(settings, monkeypatch):
    """Side by side they take more memory: fewer threads are the remedy, as long as they help."""
    need = {count: json.loads(run(settings, "plan", "--json", "--threads", count).stdout)["memory"]["report"]
            for count in (1, 2, 3, 8)}
    assert need[1] < need[2] < need[3] == need[8] and figures.WATER_LIMIT == needs.DRAWN_WATERS
    for here, remedy in ((need[2] + 0.01, "use --threads 2"), (need[1] + 0.01, "use --threads 1"),
                         (need[1] - 0.01, "choose a smaller locus")):
        monkeypatch.setattr(limits, "memory_here", lambda here=here: 1e9 * here)
        told = json.loads(run(settings, "plan", "--json", "--threads", "8").stdout)["obstacles"]
        sentence = next(one for one in told if one.startswith("the report"))
        assert re.search(rf"GB: {remedy}.*, or stop before it with --until run$", sentence), sentence
        assert refused(settings, "validate", "--threads", "8") == told[0]


@pytest.mark.parametrize(("here", "free", "told"), [
    (3e9, 3e9, None), (1e9, 1e9, "needs about 2 GB of memory and this machine has 1 GB: use less"),
    (3e9, 1e9, "needs about 2 GB of memory, and of the 3 GB of this machine 1 GB are free: end other programs, or ")])
def test_a_command_asks_for_its_memory(monkeypatch, here, free, told):
    monkeypatch.setattr(ask, "memory_here", lambda: here)
    monkeypatch.setattr(ask, "memory_free", lambda: free)
    with nullcontext() if told is None else pytest.raises(ResourceError, match=f"^the export {told}"):
        ask.refuse_without_memory(2e9, "the export", "use less")


def test_a_solute_that_is_there_tells_its_box(settings, monkeypatch):
    """An estimate of the build would take more memory than its shards; a damaged file is left to the stage."""
    config = load_config(settings, {"solvate.box": None, "solvate.padding": 10})
    solute = make_solute([["DA5", "DT3"]])
    solute.position = np.linspace((0, 0, 0), (30, 40, 500), solute.n_atoms, dtype=np.float32)
    folder = settings.parent / "results"
    folder.mkdir()
    solute.write(folder / "solute_clean.h5")
    atoms = ask.ATOMS_PER_VOLUME * 50 * 60 * 520
    needed = preparation_memory(4, 0, int(atoms), 2, shard_process_memory(config, atoms))["solvate"]
    asked = []
    monkeypatch.setattr(limits, "refuse", lambda *given: asked.append(given))
    for free in (0.98 * needed, 1.02 * needed):
        monkeypatch.setattr(ask, "memory_free", lambda free=free: free)
        ask.refuse_alone(config, "solvate", 1)
    assert len(asked) == 1
    (folder / "solute_clean.h5").write_bytes(b"damaged")
    ask.refuse_alone(config, "solvate", 1)
    assert len(asked) == 2


@pytest.mark.parametrize(("keys", "told"), [
    ({"solvate.box": None, "solvate.padding": 150},
     r"set solvate\.padding: 10\.0 \(about \d\.\de\+05 atoms, 0\.\d+ GB"),
    ({"solvate.box": [300, 300, 300]}, r"set solvate\.box: \(empty\) \(about \d\.\de\+05 atoms"),
    ({"solvate.box": None, "scaffold.choose": "last", "scaffold.confinement_radius": 20},
     r"set scaffold\.packing: compact, scaffold\.confinement_radius: \(empty\) \(about"),
    ({"solvate.box": [160, 160, 260], "dynamics.engine": "openmm"}, r"choose a smaller locus \(about .* fit\), "
     r"set dynamics\.engine: chromamd"),
])
def test_the_remedy_is_that_of_the_cause(settings, monkeypatch, keys, told):
    """Padding, a loose box, a wide sphere or the locus, whichever has made it large; and it does what it says."""
    monkeypatch.setattr(limits, "memory_here", lambda: 0.6e9)
    config = load_config(settings, keys)
    found = [str(one) for one in limits.obstacles(estimate(config, 1), config, ["run"], 1)]
    assert re.search(told, found[0]), found
    if " set " in found[0].partition("(")[0]:
        after = {key: None if value == "(empty)" else value for key, value in
                 re.findall(r"([a-z]+\.[a-z_]+): ([^,\s]+)", re.search(r"GB: set (.*?) \(about", found[0])[1])}
        assert estimate(load_config(settings, keys | after), 1).memory["run"] <= 0.6


def test_what_the_program_itself_takes_is_told(settings, monkeypatch):
    """Where no locus is small enough, and as a part of the memory that does not shrink with the locus."""
    config = load_config(settings)
    build = estimate(config, 1)
    monkeypatch.setattr(limits, "memory_here", lambda: 0.2e9)
    sentence, = limits.obstacles(build, config, ["build"], 1)
    assert "GB: give it more (of which the program itself takes 0.21 GB), or stop before it" in str(sentence)
    monkeypatch.setattr(limits, "memory_here", lambda: 0.22e9)
    sentence, = limits.obstacles(build, config, ["build"], 1)
    fit = float(re.search(r"about (\S+) atoms fit", str(sentence))[1])
    assert preparation_memory(4, int(fit), 0, 1, 0.0)["build"] == pytest.approx(0.22e9, rel=0.01)


def test_fewer_threads_are_a_remedy(settings, monkeypatch):
    """Of shards, which many processes write."""
    monkeypatch.setattr(limits, "memory_here", lambda: 0.6e9)
    config = load_config(settings)
    found = limits.obstacles(estimate(config, 64), config, ["solvate"], 64)
    assert not found  # few bricks: one process writes them
    config.solvate.brick_edge = 20
    assert re.search("use --threads 3", str(limits.obstacles(estimate(config, 64), config, ["solvate"], 64)[0]))


def test_large_bricks_are_a_cause(settings, monkeypatch):
    """One process writes a brick after the other: that of all 1.6e6 atoms takes the memory."""
    monkeypatch.setattr(limits, "memory_here", lambda: 0.17e9)
    found = [limits.obstacles(estimate(config, 1), config, ["solvate"], 1) for config in
             (load_config(settings, {"solvate.brick_edge": edge}) for edge in (100, 200))]
    assert not found[0]
    assert re.search(r"GB: lower solvate\.brick_edge = 200 A \(100 is common\), or stop", str(found[1][0]))


def test_dynamics_that_would_not_end(settings, monkeypatch):
    """`plan` says how long it would take and what takes less, `all` refuses with that; the shipped protocol that only
    shows that it runs is a way out."""
    monkeypatch.setattr(limits, "LONGEST_RUN", 60.0)
    monkeypatch.setattr(limits, "LONG_RUN", 60.0)
    monkeypatch.setattr(speeds, "speed_here", lambda: speeds.REFERENCE)
    standard = ("--set", "simulate.protocol=standard", "--threads", "1")
    sentence = said_by_plan(settings, *standard)
    assert re.match(r"the dynamics of 1\.\d+e\+06 atoms takes about \d+ days on the reference machine of "
                    "estimates: use more nodes .*, simulate fewer steps, choose a smaller locus, or stop before it "
                    "with --until topology$",
                    sentence)
    assert refused(settings, "all", *standard) == sentence
    monkeypatch.setattr(limits, "LONGEST_RUN", 86400.0)
    sentence = said_by_plan(settings, *standard)
    look = re.search(r"set simulate\.protocol: demo \(about ([\d.]+) (s|min)\), which shows that it runs", sentence)
    told = json.loads(run(settings, "plan", "--json", "--threads", "1", "--set", "simulate.protocol=demo").stdout)
    assert told["obstacles"] == []
    assert float(look[1]) * {"s": 1, "min": 60}[look[2]] == pytest.approx(told["seconds"]["run"], rel=0.05)
    assert "to see first that it runs: simulate.protocol: demo takes" in run(settings, "plan", *standard).stdout


def test_a_phase_by_itself_is_weighed_alone(settings):
    """So that a minimisation can be made where the dynamics after it cannot."""
    config = load_config(settings, {"simulate.protocol": "standard", "simulate.replicas": 3})
    part = asked(config, RunPart("minimise", 2)).simulate
    assert [phase.name for phase in plan_phases(part)] == ["minimise"] and part.replicas == 1
    for whole in (RunPart(), RunPart("nothing")):
        assert asked(config, whole).simulate == config.simulate


def test_memory_that_other_programs_have(settings, monkeypatch):
    """A stage that is about to begin asks for what is free; one that comes later is not refused for it."""
    monkeypatch.setattr(limits, "memory_free", lambda: 0.1e9)
    monkeypatch.setattr(ask, "memory_free", lambda: 0.1e9)
    config = load_config(settings)
    with pytest.raises(ResourceError, match=r"building the solute needs about 0\.\d+ GB of memory, and of the .* GB of "
                       r"this machine 0\.1 GB are free: end other programs, or wait"):
        ask.refuse_alone(config, "build", 1)
    assert limits.refuse(config, ("build", "clash"), 1)


def test_what_runs_elsewhere_is_measured_there(settings, monkeypatch, tmp_path):
    """Ranks, memory and launcher of a cluster, on a machine that has none of them; what is built here is not."""
    meant = ("--set", "dynamics.ranks=512", "--set", "dynamics.launcher=no-such-launcher -n {ranks} {program}")
    assert "no-such-launcher, which dynamics.launcher names" in refused(settings, "validate", *meant)
    monkeypatch.setattr(limits, "memory_here", lambda: 1e9)
    many = ("--set", "dynamics.ranks=512")
    assert "lower dynamics.ranks = 512 to" in refused(settings, "validate", *many)
    assert "`chromabuild validate --machine NAME --nodes N`" in refused(settings, "all", *many)
    for elsewhere in (("--machine", "infiniband", "--nodes", "16"), ("--until", "topology")):
        result = run(settings, "validate", *meant, *elsewhere)
        assert result.exit_code == 0, result.output
    too_many = ("--set", "dynamics.ranks=99999", "--machine", "infiniband", "--nodes", "1")
    sentence = refused(settings, "validate", *too_many)
    assert re.search(r"and a node of .* has \d+ GB: lower dynamics.ranks = 99,999 to the \d+ cores that are there",
                     sentence), sentence
    assert f"not there: {sentence}" in run(settings, "plan", *too_many).stdout
    monkeypatch.setattr(limits, "memory_here", lambda: 0.2e9)
    assert "building the solute of" in refused(settings, "validate", "--machine", "infiniband")


def test_what_is_not_installed_is_missed_before_the_work(settings, monkeypatch):
    """The engine and mpirun, of a build that needs them."""
    monkeypatch.setattr(executable, "_NAMES", {"mixed": "no-engine"})
    sentence = refused(settings, "validate")
    assert "no-engine is missing: install" in sentence
    assert refused(settings, "all") == sentence
    assert run(settings, "validate", "--until", "topology").exit_code == 0
    monkeypatch.undo()
    monkeypatch.setattr(launcher.shutil, "which", lambda name: None)
    launcher._installed_mpirun.cache_clear()
    assert "mpirun was not found" in refused(settings, "validate", "--set", "dynamics.ranks=2")
    assert run(settings, "validate").exit_code == 0


@pytest.mark.parametrize(("keys", "told"), [
    ({"dynamics.cutoff": 30}, "needs box edges of 63 A"),
    ({"solvate.padding": 0.01}, "there is room for"),
    ({"solvate.ion_placement": "debye-hueckel"}, "is too short for ions by the potential of the solute"),
    ({"solvate.box": [60, 60, 60]}, "is smaller than the solute"),
    ({"solvate.salt": 6}, "there is room for"),
])
def test_a_box_in_doubt_is_known_from_a_fold(tmp_path, keys, told):
    """Of DNA that is folded in a moment: `validate`, `plan` and `all` refuse alike, and nothing is written."""
    (tmp_path / "locus.fa").write_text(">chr1\nACGTTGCATGGATCCAACGTTGCATGGATCCA\n")
    path = tmp_path / "locus.yaml"
    path.write_text(json.dumps({"locus": {"nucleosomes": None}, "scaffold": {"sweeps": 1}}))
    words = [word for key, value in keys.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    sentence = refused(path, "validate", *words, code=3)
    assert told in sentence
    assert refused(path, "all", "--threads", "1", *words, code=3) == sentence
    assert told in refused(path, "plan", *words, code=3)
    assert not (tmp_path / "results").exists()


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


@pytest.mark.parametrize(("kind", "limit", "left"), [
    (resource.RLIMIT_DATA, 3 * 10**9, 3e9), (resource.RLIMIT_AS, 3 * 10**9, 3e9 - machine.UNUSED_ADDRESSES)])
def test_limits_of_the_shell(monkeypatch, kind, limit, left):
    """``ulimit -v`` counts what is mapped and not used too."""
    others = resource.RLIM_INFINITY, resource.RLIM_INFINITY
    monkeypatch.setattr(machine.resource, "getrlimit", lambda asked: (limit, limit) if asked == kind else others)
    assert machine.memory_here() == left


def test_memory_that_is_free(tmp_path, monkeypatch):
    """What the system can give up counts, and swap; no more than a process may use."""
    monkeypatch.setattr(machine, "_FREE", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "memory_here", lambda: 4e9)
    assert machine.memory_free() == 4e9  # not told
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 1000000 kB\nSwapFree: 500000 kB\n")
    assert machine.memory_free() == 1024 * 1.5e6
    (tmp_path / "meminfo").write_text("MemAvailable: 9000000 kB\n")
    assert machine.memory_free() == 4e9


@pytest.mark.parametrize(("engine", "distance"), [("chromamd", 21.0), ("openmm", 18 * np.sqrt(2))])
def test_leaning_boxes_and_the_cutoff(engine, distance):
    """chromamd asks for the distance of images, twice 9 and 1.5 angstrom; OpenMM for the height of the cell."""
    dynamics = DynamicsSection(engine=engine)
    for length, refused in ((1.01 * distance, False), (0.99 * distance, True)):
        told = limits.box_below_cutoff(length * SHAPES["dodecahedron"], dynamics)
        assert bool(told) == refused and (not refused or "a larger solvate.padding" in told)
