"""What `chromabuild plan` says before, against what the run of the demo made."""

import shutil

import pytest
from support.command_line import result_of

from chromabuild.base.settings import load_config
from chromabuild.pipeline.plan import estimate
from chromabuild.pipeline.speeds import REFERENCE, RUN_START
from chromabuild.simulate.extension import Extension, Lengthening
from chromabuild.simulate.protocol import plan_phases

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told(demo, tmp_path_factory):
    """The plan with the corrected solute at hand, and with the scaffold alone."""
    folder = tmp_path_factory.mktemp("plan")
    shutil.copytree(demo.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("shards", "topology.*"))
    with_solute = result_of("plan", cwd=folder)
    for name in ("solute.h5", "solute_clean.h5"):
        (folder / "results" / name).unlink()
    before = sorted(folder.rglob("*"))
    with_scaffold = result_of("plan", cwd=folder)
    assert sorted(folder.rglob("*")) == before  # a plan writes nothing
    return with_solute, with_scaffold


def test_solute_and_box_are_exact(demo, demo_solute, told):
    for plan in told:
        assert plan["solute_atoms"] == demo_solute.n_atoms
        assert plan["nucleosomes"] == demo.summaries["scaffold"]["nucleosomes"]
    assert told[0]["box"] == pytest.approx(demo.manifest["box"], abs=0.06)
    # A tail that clash correction grows again may stick out by some of its length, here by 11 of 153 angstrom.
    assert told[1]["box"] == pytest.approx(demo.manifest["box"], rel=0.10)


def test_counts_are_right(demo, told):
    """Within 2 % when the solute is there, 6 % from the scaffold: how much water a solute displaces depends on how
    tightly it is packed."""
    for plan, tolerance in zip(told, (0.02, 0.06), strict=True):
        assert plan["atoms"] == pytest.approx(demo.manifest["atoms"], rel=tolerance)
        assert list(plan["counts"]) == [key for key in demo.manifest["counts"] if key != "solute"]
        for key, count in plan["counts"].items():
            assert count == pytest.approx(demo.manifest["counts"][key], rel=tolerance + 0.02)
    assert told[0]["shards"] == len(demo.manifest["shards"]) and told[0]["jobs"] == 1


def test_disk_is_right(demo, told):
    """Within 8 %: text compresses differently from one solute to the next."""
    written = sum(path.stat().st_size for path in (demo.results / "shards").rglob("*")
                  if path.suffix not in (".json", ".txt"))
    assert told[0]["disk"]["shards"] * 1e9 == pytest.approx(written, rel=0.08)
    solutes = sum((demo.results / name).stat().st_size for name in ("solute.h5", "solute_clean.h5"))
    assert told[0]["disk"]["solute"] * 1e9 == pytest.approx(solutes, rel=0.3)


def test_replicas_and_extensions_count(demo, tmp_path):
    """Three replicas take three times the disk and the time of one; one that goes on takes more."""
    config = load_config(demo.folder / "locus.yaml", {"simulate.protocol": "demo"})
    config.output = str(tmp_path)
    one = estimate(config, 2)
    config.simulate.replicas = 3
    three = estimate(config, 2)
    assert (one.replicas, three.replicas) == (1, 3) and "replicas: 3" in "\n".join(three.lines())
    for name in ("trajectory", "restarts"):
        assert three.disk[name] == pytest.approx(3 * one.disk[name], abs=0.002)
    start = REFERENCE.start + RUN_START  # of the program and what it sums up, which are counted once
    assert three.seconds["run"] - start == pytest.approx(3 * (one.seconds["run"] - start), abs=0.2)
    last = plan_phases(config.simulate)[-1]
    (tmp_path / "md" / "replica-2").mkdir(parents=True)
    Extension(last.name, "", (Lengthening("0.1 ps", last.steps, 2 * last.steps),)).write(tmp_path / "md" / "replica-2")
    longer = estimate(config, 2).disk["trajectory"]
    assert longer == pytest.approx(4 * one.disk["trajectory"], abs=0.003)
