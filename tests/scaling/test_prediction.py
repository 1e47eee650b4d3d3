"""`chromabuild plan --machine`: what it predicts, what it refuses, and what it prints."""

import json
from dataclasses import replace

import pytest
import yaml
from typer.testing import CliRunner

from chromabuild.base.errors import BadInputError
from chromabuild.cli import app
from chromabuild.scaling.machine import FOLDER, find_machine
from chromabuild.scaling.measured import StepSettings, rank_memory
from chromabuild.scaling.prediction import Job, Run, predict
from chromabuild.scaling.published.comparison import mean_deviation
from chromabuild.scaling.published.record import computed, recorded

RUN = Run(edge=(450.0, 450.0, 450.0), atoms=9_112_500, settings=StepSettings(9.0, 10.5), minimise_steps=100, steps=1000,
          timestep=2.0, disk_gb=2.0, frame_gb=0.1, frame_period=100)
INFINIBAND = find_machine("infiniband")


def test_more_nodes_are_faster_until_communication_dominates():
    """Up to where more than half of a step is communication, each doubling makes steps shorter and costs node-hours."""
    found = [predict(RUN, Job(INFINIBAND, nodes, 32)) for nodes in (1, 4, 16, 64)]
    for one, next_one in zip(found, found[1:], strict=False):
        assert next_one.communication > one.communication
        assert next_one.step_ms < one.step_ms or next_one.communication > 0.5
        assert next_one.microsecond["node_hours"] > one.microsecond["node_hours"]
    assert found[0].communication < 0.1 and found[1].step_ms < 0.35 * found[0].step_ms


def test_a_prediction_agrees_with_itself():
    found = predict(RUN, Job(INFINIBAND, 4, 32))
    assert sum(found.parts_ms.values()) == pytest.approx(found.step_ms)
    assert found.ns_per_day == pytest.approx(86400e3 / found.step_ms * 2e-6)
    assert found.run["steps"] == 1100
    assert found.run["node_hours"] == pytest.approx(4 * 1100 * found.step_ms / 3.6e6)
    assert found.microsecond["steps"] == 5e8
    assert found.microsecond["disk_gb"] == pytest.approx(2.0 - 10 * 0.1 + 5e6 * 0.1)
    assert found.memory_gb["rank"] * 1e9 == pytest.approx(rank_memory(RUN.atoms / 128))
    here = [row for row in found.scaling if row.nodes == 4]
    assert len(here) == 1 and here[0].step_ms == pytest.approx(found.step_ms)
    assert [row.nodes for row in found.scaling] == [1, 2, 4, 8, 16] and found.scaling[0].efficiency == 1.0


def test_threads_in_place_of_ranks_keep_the_cores():
    """Fewer, larger domains send less; threads divide the work less well than ranks do."""
    ranks, threads = predict(RUN, Job(INFINIBAND, 4, 32, 1)), predict(RUN, Job(INFINIBAND, 4, 8, 4))
    assert threads.parts_ms["halo"] < ranks.parts_ms["halo"]
    assert threads.parts_ms["work"] > ranks.parts_ms["work"]


@pytest.mark.parametrize(("job", "run", "told"), [
    (Job(find_machine("workstation"), 2), RUN, "--nodes 2: workstation has 1 node"),
    (Job(INFINIBAND, 1, 16, 4), RUN, "want 64 cores, a node of infiniband has 32: lower"),
    (Job(find_machine("oakforest"), 8192, 32), RUN, "more than the simulator traces"),
    (Job(find_machine("qcdoc"), 1), RUN, "of qcdoc has 0.128 GB: use --nodes 64 or more"),
    (Job(INFINIBAND, 64, 32), replace(RUN, edge=(60.0, 60.0, 60.0), atoms=21_600),
     "narrower than half of the halo's reach of 16.5: use at most 343 ranks"),
])
def test_refusals_name_the_remedy(job, run, told):
    with pytest.raises(BadInputError) as error:
        predict(run, job)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_the_remedies_work():
    predict(RUN, Job(find_machine("qcdoc"), 64))
    predict(replace(RUN, edge=(60.0, 60.0, 60.0), atoms=21_600), Job(INFINIBAND, 343, 1))


def test_the_record_of_published_tables_is_what_the_simulator_computes():
    now, kept = computed(), recorded()
    assert list(now) == list(kept)
    for name, entries in now.items():
        assert [(entry.name, entry.paper, entry.fitted) for entry in entries] == \
            [(entry.name, entry.paper, entry.fitted) for entry in kept[name]]
        assert [entry.ours for entry in entries] == pytest.approx([entry.ours for entry in kept[name]], rel=1e-9)


def test_the_error_printed_is_the_one_computed():
    for machine, table in (("infiniband", "GENESIS"), ("fugaku", "Fugaku"), ("bluegene", "Blue Gene/L")):
        found = predict(RUN, Job(find_machine(machine), 64))
        predicted = [entry for entry in computed()[table] if not entry.fitted]
        mean = 100 * mean_deviation(predicted)
        worst = 100 * max((entry.deviation for entry in predicted), key=abs)
        text = "\n".join(found.lines())
        assert f"predicts {len(predicted)} published figures of {table}" in text
        assert f"with a mean error of {mean:.1f} %, at worst {worst:+.1f} %" in text
        everything = [entry for entries in computed().values() for entry in entries if not entry.fitted]
        assert f"with a mean error of {100 * mean_deviation(everything):.1f} %" in text


@pytest.fixture(scope="module")
def demo_settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan") / "demo"
    assert CliRunner().invoke(app, ["init", "--example", "demo", str(folder)]).exit_code == 0
    return folder / "locus.yaml"


def plan(*arguments):
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


def test_the_command_prints_one_json_object(demo_settings):
    with_machine = plan("--config", demo_settings, "--machine", "infiniband", "--nodes", 2, "--json")
    assert with_machine.exit_code == 0, with_machine.output
    found, alone = json.loads(with_machine.stdout), json.loads(plan("--config", demo_settings, "--json").stdout)
    cost = found.pop("machine")
    of_this_machine = ("obstacles", "engine", "machine_here", "savings", "seconds", "first_look_seconds")
    for key in of_this_machine:
        del alone[key]
    assert found.pop("obstacles") == []
    del found["seconds"]
    assert found == alone
    assert set(cost) == {
        "machine", "title", "source", "core", "core_speed", "nodes", "ranks_per_node", "threads", "grid", "torus",
        "fft", "fft_by_node", "atoms_per_rank", "step_ms", "parts_ms", "timestep_fs", "ns_per_day", "memory_gb", "run",
        "microsecond", "scaling", "errors", "communication"}
    assert (cost["machine"], cost["nodes"], cost["ranks_per_node"], cost["threads"]) == ("infiniband", 2, 32, 1)
    assert list(cost["parts_ms"]) == ["work", "halo", "bricks", "FFT", "agreement"]
    assert set(cost["memory_gb"]) == {"rank", "node", "available"}
    assert set(cost["run"]) == {"steps", "seconds", "node_hours", "disk_gb"}
    assert set(cost["microsecond"]) == {"steps", "days", "node_hours", "disk_gb"}
    assert set(cost["scaling"][0]) == {"nodes", "ranks", "step_ms", "ns_per_day", "node_hours_per_ns", "efficiency"}
    assert set(cost["errors"][0]) == {"table", "source", "entries", "mean", "worst", "worst_entry"}
    assert cost["run"]["disk_gb"] == pytest.approx(sum(alone["disk"].values()))


def test_the_command_prints_lines_for_people(demo_settings):
    done = plan("--config", demo_settings, "--machine", "workstation", "--ranks-per-node", 4, "--threads", 2)
    assert done.exit_code == 0
    starts = [line.split(":")[0] for line in done.stdout.splitlines() if line]
    assert starts[:13] == ["locus", "solute", "box", "solvated", "trajectory", "shards", "machine", "job", "step",
                           "speed", "memory", "this run", "1 microsecond"]
    assert "job: 1 node, 4 ranks of 2 threads" in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines())


def test_machines_are_listed_without_a_locus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = plan("--machine", "list")
    assert done.exit_code == 0
    assert all(path.stem in done.stdout for path in FOLDER.glob("*.yaml"))
    machines = json.loads(plan("--machine", "list", "--json").stdout)["machines"]
    assert {machine["name"] for machine in machines} == {path.stem for path in FOLDER.glob("*.yaml")}


def test_a_machine_file_of_the_user(demo_settings, tmp_path):
    path = tmp_path / "mine.yaml"
    data = yaml.safe_load((FOLDER / "infiniband.yaml").read_text()) | {"name": "mine"}
    path.write_text(yaml.safe_dump(data))
    done = plan("--config", demo_settings, "--machine", path, "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["machine"]["machine"] == "mine"
    path.write_text(yaml.safe_dump(data | {"nodes": "many"}))
    done = plan("--config", demo_settings, "--machine", path)
    assert done.exit_code == 3 and done.stdout == ""
    assert done.stderr.startswith(f"chromabuild: {path}: nodes = 'many' should be") and done.stderr.count("\n") == 1
