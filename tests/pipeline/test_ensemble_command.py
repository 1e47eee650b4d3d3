"""`chromabuild ensemble` on four nucleosomes and few sweeps: what is made, kept, continued, chosen and refused."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from support.command_line import chromabuild, command, digests, environment, refusal, result_of

from chromabuild.base.settings import load_config
from chromabuild.genome.contact_energies import read_contact_energies
from chromabuild.genome.contacts import matrix_pixels
from chromabuild.pipeline import chain
from chromabuild.pipeline.ensemble import run as machinery
from chromabuild.pipeline.ensemble.choice import choose_folds
from chromabuild.pipeline.ensemble.design import make_design
from chromabuild.pipeline.ensemble.fold import DONE, FAILED, STAGE, make_fold, state_of
from chromabuild.pipeline.ensemble.run import Means, run_ensemble, run_fold
from chromabuild.pipeline.examples import write_settings
from chromabuild.pipeline.verify import verify_outputs

SETTINGS = (("scaffold", "sweeps", 6), ("scaffold", "choose", "last"), ("locus", "contacts", "contacts.bedpe"),
            ("ensemble", "folds", 3))
CONTACTS = ((42650, 43100, 10), (42800, 43250, 4), (42700, 43200, 1))


def settings_in(folder, **changes):
    """The demo with three contacts of 50 bp in a folder; ``changes`` replace settings, with __ for a dot."""
    folder.mkdir(exist_ok=True)
    if not (folder / "locus.yaml").exists():
        write_settings(folder, "locus.yaml", "demo", {}, {}, None, False)
        text = (folder / "locus.yaml").read_text()
        for section, key, value in SETTINGS:
            text, found = re.subn(rf"(?ms)(^{section}:.*?^  {key}:)[^#]*#", rf"\1 {value}  #", text, count=1)
            assert found
        (folder / "locus.yaml").write_text(text)
        (folder / "contacts.bedpe").write_text("".join(
            f"chrXIII\t{a}\t{a + 50}\tchrXIII\t{b}\t{b + 50}\t.\t{weight}\n" for a, b, weight in CONTACTS))
    return load_config(folder / "locus.yaml", {key.replace("__", "."): value for key, value in changes.items()})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An ensemble of three folds, one after the other in this process; read only."""
    folder = tmp_path_factory.mktemp("ensemble")
    config = settings_in(folder)
    return folder, config, run_ensemble(config, Means())


def test_every_fold_is_a_scaffold_with_a_seed_and_contacts_of_its_own(made):
    folder, config, summary = made
    assert summary["folds"] == 3 and summary["left_out"] == 0 and not summary["up_to_date"]
    design = make_design(config)
    seeds = [design.fold_settings(k).seed for k in (1, 2, 3)]
    assert seeds[0] == config.seed and len(set(seeds)) == 3
    records = [chain.provenance.read(design.fold_folder(k))["stages"]["scaffold"] for k in (1, 2, 3)]
    given = [record["summary"]["restraints"] for record in records]
    # Weights 10, 4 and 1 of three folds: in 3, 2 (1 + 2 * 3/9, rounded) and 1 of them.
    assert sum(given) == 6 and design.targets(design.contacts).tolist() == pytest.approx([1, 2 / 3, 1 / 3])


def test_maps_can_be_read_and_tables_say_what_the_folds_are(made):
    folder, _, summary = made
    results = folder / "results" / "ensemble"
    for name in ("map_beads", "map_bins", "map_base_pairs"):
        found = matrix_pixels(str(results / f"{name}.cool"), "chrXIII", 42500, 43500)
        assert len(found["count"]) and found["count"].max() > 0
    single = [np.load(results / f"fold_000{k}" / "contact_map.npz")["counts"] for k in (1, 2, 3)]
    beads = matrix_pixels(str(results / "map_beads.cool"), "chrXIII", 42600, 43500)
    total = sum(np.triu(one).sum() for one in single) / 3 / 4  # four conformations after burn-in
    assert beads["count"].sum() == pytest.approx(total, rel=1e-6)
    rows = (results / "folds.csv").read_text().splitlines()
    assert len(rows) == 4 and rows[0].startswith("fold,seed,conformations,cluster,radius_of_gyration_nm,")
    page = (folder / "results" / "ensemble.html").read_text()
    assert "No map to compare with" in page and "<svg" in page and "Groups of folds" in page
    assert summary["typical"] in (1, 2, 3)


def test_what_is_there_stays(made, monkeypatch):
    """Nothing is folded or written again."""
    folder, config, summary = made
    before = {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*.*") if path.name[0] != "."}
    monkeypatch.setattr(machinery, "make_folds", None)
    assert run_ensemble(config, Means()) == summary | {"up_to_date": True}
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_fold_alone_is_the_same(made, tmp_path):
    folder, _, _ = made
    config = settings_in(tmp_path / "one")
    told = run_fold(config, 2, None, Means())
    assert told["state"] == DONE and told["folder"].endswith("ensemble/fold_0002")
    assert digests(tmp_path / "one" / "results" / "ensemble" / "fold_0002") == digests(
        folder / "results" / "ensemble" / "fold_0002")


def test_a_killed_ensemble_continues_to_the_same_bytes(made, tmp_path):
    """Two folds side by side; the command is killed while they are made, and takes its workers along."""
    settings_in(tmp_path / "killed", scaffold__sweeps=60)
    line = command("ensemble", "--jobs", 2, "--threads", 2, "--set", "scaffold.sweeps=60")
    process = subprocess.Popen(line, cwd=tmp_path / "killed", env=environment(), stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    folds = tmp_path / "killed" / "results" / "ensemble"
    until = time.monotonic() + 120
    while not list(folds.glob("fold_*/scaffold_trajectory.h5")) and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folds / "ensemble.json").exists()
    config = settings_in(tmp_path / "killed", scaffold__sweeps=60)
    run_ensemble(config, Means())
    whole = settings_in(tmp_path / "whole", scaffold__sweeps=60)
    run_ensemble(whole, Means())
    assert digests(tmp_path / "killed" / "results") == digests(tmp_path / "whole" / "results")


def test_chosen_folds_are_built_with_their_own_seed(made, tmp_path):
    """The chain takes the fold for its own: nothing is folded again."""
    folder, config, summary = made
    told = choose_folds(config, ["typical", "2", "representatives:3"])
    assert told["folds"][:1] == [summary["typical"]] and sorted(told["folds"]) == [1, 2, 3]
    for number, path in zip(told["folds"], told["settings"], strict=True):
        built = load_config(path)
        assert built.seed == make_design(config).fold_settings(number).seed
        assert chain.is_current(STAGE, built)
    again = folder / "results" / "builds" / "fold_0002" / "scaffold.h5"
    before = again.stat().st_mtime_ns
    choose_folds(config, ["2"])
    assert again.stat().st_mtime_ns == before


def test_rounds_change_the_energies_of_contacts(tmp_path):
    """Each round has all contacts; what is closed too rarely attracts more. Going on with a third round keeps the
    first two."""
    config = settings_in(tmp_path / "rounds", ensemble__rounds=2)
    run_ensemble(config, Means())
    design = make_design(config)
    locus = design.locus
    first, last = (read_contact_energies(design.energies_file(k), locus.chromosome, locus.start, len(locus.sequence))
                   for k in (1, 2))
    assert [one.energy for one in first] == [0, 0, 0]
    assert [one.target for one in last] == pytest.approx([1, 2 / 3, 1 / 3], abs=1e-6)
    folds = [chain.provenance.read(design.fold_folder(k, r)) for k in (1, 2, 3) for r in (1, 2)]
    assert all(one["stages"]["scaffold"]["provenance"]["settings"]["scaffold"]["replicas"] == 1 for one in folds)
    assert len({one["stages"]["scaffold"]["provenance"]["seed"] for one in folds}) == 6
    before = digests(design.fold_folder(1))
    longer = make_design(settings_in(tmp_path / "rounds", ensemble__rounds=3))
    longer.energies_file(2).parent.mkdir()
    shutil.copy(design.energies_file(2), longer.energies_file(2))
    machinery._adopt(longer, 2)
    assert digests(longer.fold_folder(1, 2)) == before and not longer.fold_folder(1).exists()
    assert state_of(longer.fold_settings(1, 2)) == DONE


def test_held_out_contacts_restrain_no_fold(tmp_path):
    """Pixels are drawn by the seed; the file that the folds read holds the contacts of the others."""
    config = settings_in(tmp_path / "held", ensemble__hold_out=0.5, ensemble__bin=50, seed=4)
    design = make_design(config)
    assert 0 < design.withheld < 3 and len(design.contacts) == 3 - design.withheld
    held_out, start = design.held_out(), design.locus.start
    for one in design.locus.contacts:
        pixel = [int((sum(part) - 1) / 2 + start) // 50 - design.edges[0] // 50 for part in (one.first, one.second)]
        assert held_out[pixel[0], pixel[1]] == (one not in design.contacts)
    design.write_contacts()
    fold = make_design(config).fold_settings(1)
    assert fold.locus.contacts.endswith("ensemble/contacts.bedpe")
    assert sorted(one.weight for one in chain_contacts(fold)) == sorted(one.weight for one in design.contacts)


def chain_contacts(fold):
    """What the stage of a fold reads."""
    from chromabuild.genome.locus import load_locus

    return load_locus(fold.locus).contacts


def test_enough_folds_are_those_of_the_first_agreed_number_that_converged(tmp_path, monkeypatch):
    """Whatever else has been made by jobs that ran ahead."""
    design = make_design(settings_in(tmp_path / "enough", ensemble__folds=20, ensemble__until_converged=True))
    random = np.random.default_rng(1)
    common = 1 + 0.1 * random.normal(size=(12, 12))
    noise = {k: 0.1 * random.normal(size=(12, 12)) for k in range(1, 21)}
    monkeypatch.setattr(machinery, "_binned", lambda design, number: common + noise[number])
    assert machinery._taken(design, dict.fromkeys(range(1, 8), DONE)) is None
    found = [machinery._taken(design, dict.fromkeys(range(1, n + 1), DONE)) for n in range(8, 21)]
    assert found[-1] in (8, 12, 16) and {one for one in found if one} == {found[-1]}
    # A gap among the first ones, or one that was given up, is not passed over.
    assert machinery._taken(design, dict.fromkeys(range(2, 21), DONE)) is None
    assert machinery._taken(design, dict.fromkeys(range(1, 21), FAILED)) is None


def test_a_fold_with_overlaps_is_left_out_and_not_tried_again(tmp_path, monkeypatch):
    config = make_design(settings_in(tmp_path / "failed")).fold_settings(1)
    calls = []

    def run_stage(stage, config, threads, reporter):
        from chromabuild.base.errors import ClashesRemainError

        calls.append(config.seed)
        raise ClashesRemainError("3 pairs of DNA and cores overlap")

    monkeypatch.setattr(chain, "run_stage", run_stage)
    assert [make_fold(config, 1) for _ in range(2)] == [FAILED, FAILED] and len(calls) == 1
    assert state_of(config) == FAILED
    assert state_of(config.model_copy(update={"seed": 5})) is None


@pytest.mark.parametrize(("changes", "sentence"), [
    ({"locus__contacts": None, "ensemble__hold_out": 0.2}, "ensemble.hold_out = 0.2 needs contacts"),
    ({"locus__contacts": None, "ensemble__rounds": 2}, "ensemble.rounds = 2 needs contacts"),
    ({"ensemble__bin": 2000}, "ensemble.bin = 2000: the locus of 679 bp has 0 such bins"),
    ({"ensemble__slope_to": 3000}, "ensemble.slope_to = 3000 is not beyond slope_from = 4000"),
    ({"ensemble__hold_out": 0.999}, "holds out all 3 contacts"),
    ({"ensemble__map": "contacts.bedpe", "ensemble__bin": 60}, "does not lie in bins of 60 bp"),
    ({"ensemble__map": "missing.cool"}, "missing.cool does not exist"),
    ({"ensemble__map": "other.bedpe"}, "other.bedpe holds no pixel within chrXIII:42651-43300"),
])
def test_bad_input_is_refused_before_anything_is_folded(tmp_path, changes, sentence):
    from chromabuild.base.errors import BadInputError
    from chromabuild.pipeline.inspect import locus_summary

    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "other.bedpe").write_text("chrI\t100\t150\tchrI\t300\t350\t.\t2\n")
    config = settings_in(tmp_path / "bad", **changes)
    for check in (lambda: run_ensemble(config, Means()), lambda: locus_summary(config)):
        with pytest.raises(BadInputError, match=sentence.replace(".", r"\.")):
            check()
    assert not (tmp_path / "bad" / "results").exists()


def test_verify_finds_a_flipped_bit(tmp_path):
    """In a map and in a fold; making the ensemble again mends both."""
    config = settings_in(tmp_path / "flipped", ensemble__folds=2)
    run_ensemble(config, Means())
    before = digests(tmp_path / "flipped" / "results")
    harmed = [Path(config.output) / "ensemble" / name for name in ("map_bins.cool", "fold_0002/scaffold.h5")]
    assert all(one["result"] == "ok" for one in verify_outputs(config)["checks"])
    for path in harmed:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    wrong = {one["what"] for one in verify_outputs(config)["checks"] if one["result"] != "ok"}
    assert wrong == {"ensemble/map_bins.cool", "ensemble/fold_0002/scaffold.h5"}
    assert not run_ensemble(config, Means())["up_to_date"]
    assert digests(tmp_path / "flipped" / "results") == before


def test_the_command_says_what_it_found_and_refuses_in_a_sentence(made):
    folder, _, summary = made
    assert result_of("ensemble", "3", cwd=folder)["typical"] == summary["typical"]
    told = refusal(chromabuild("ensemble", "3", "--fold", "4", cwd=folder), 3)
    assert told == "chromabuild: fold 4 is not one of the 3 of the ensemble: count from 1"
    assert "--choose 9: choose typical, compact" in refusal(chromabuild("ensemble", "--choose", "9", cwd=folder), 3)
    assert "no fold of these settings" in refusal(
        chromabuild("ensemble", "--choose", "1", "--seed", "8", cwd=folder), 3)
    done = chromabuild("ensemble", "1", cwd=folder)
    assert done.returncode == 2 and "greater than or equal to 2" in done.stderr
