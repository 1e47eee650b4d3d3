"""The report holds what the files say, stands alone, and survives missing stages."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from support.synthetic_build import small_solute, write_build
from support.web_pages import Checker

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.molecule.colours import HISTONE_COLOURS, molecule_colours
from chromabuild.pipeline import provenance
from chromabuild.report import document, html, pictures
from chromabuild.report.plots import line_plot
from chromabuild.report.summary import energy_drift


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build") / "results"
    config = write_build(folder)
    size = {"size": (320, 240)}
    with pytest.MonkeyPatch.context() as patch:  # small pictures: this is about the page
        for name in ("scaffold_picture", "solute_picture", "box_picture"):
            function = getattr(pictures, name)
            patch.setattr(pictures, name, lambda *a, function=function: function(*a, **size))
        summary = document.write_report(config, provenance.read(config.output)["stages"])
    return folder, summary, (folder / "report.html").read_text(encoding="utf-8")


def test_page_is_well_formed_and_loads_nothing(build):
    checker = Checker()
    checker.feed(build[2])
    assert checker.open == []
    assert all(link.startswith(("data:", "#")) for link in checker.links)
    assert not re.search(r"url\((?!#|&quot;#)", build[2])
    assert "<script" not in build[2]


def test_page_tells_what_the_files_say(build):
    page = build[2]
    assert build[1]["sections"][0] == "Result" and "Clashes" in build[1]["sections"]
    assert page.count("data:image/png") == 3
    for text in ("DNAI:DT:3:C2", "0.72", "&lt;made up&gt;", "80.00 × 50.00 × 50.00", "chrXIII:101", "ab" * 32,
                 "real space", "12.81"):
        assert text in page
    assert "<made up>" not in page


def test_variants_have_colours_and_the_key_names_what_is_there(build):
    solute = replace(small_solute(), molecule_name=["H2A.Z"])
    assert molecule_colours(solute) == {"H2A.Z": HISTONE_COLOURS["H2A.Z"]}
    assert (pictures.atom_style(solute)[1] == HISTONE_COLOURS["H2A.Z"]).all()
    assert "</i>DNA-I" in build[2] and "</i>H3" not in build[2]


def test_stages_that_were_not_run_are_left_out(tmp_path):
    config = write_build(tmp_path / "results")
    folder = tmp_path / "results"
    record = json.loads((folder / "provenance.json").read_text())
    record["stages"] = {"scaffold": record["stages"]["scaffold"]}
    (folder / "provenance.json").write_text(json.dumps(record))
    for name in ("solute_clean.h5", "scaffold.h5", "clash_report.json"):
        (folder / name).unlink()
    sections = document.write_report(config, provenance.read(config.output)["stages"])["sections"]
    assert sections == ["Pipeline", "Locus", "Files", "Provenance"]


def test_page_is_the_same_on_any_number_of_threads(tmp_path, monkeypatch):
    for name in ("scaffold_picture", "solute_picture", "box_picture"):
        monkeypatch.setattr(pictures, name, partial(getattr(pictures, name), size=(160, 120)))
    config = write_build(tmp_path / "results")
    pages = []
    for threads in (1, 4):
        document.write_report(config, provenance.read(config.output)["stages"], threads)
        pages.append((tmp_path / "results" / "report.html").read_bytes())
    assert pages[0] == pages[1]


def test_nothing_to_report_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="no results"):
        document.write_report(Settings(output=str(tmp_path)), {})


def test_drift_of_a_straight_line_is_its_slope():
    time = np.linspace(0, 2, 21)
    # 1000 atoms, 1 kcal/mol a ps: 1000 kcal/mol/ns / (1000 * 0.0019872 * 300) = 1.677 kT/ns/atom
    assert energy_drift(time, 5 + time, 1000, 300) == pytest.approx(1000 / (1000 * 0.0019872042586 * 300), rel=1e-9)
    assert energy_drift(time[:2], time[:2], 1000, 300) is None


def test_drift_leaves_the_first_half_out():
    time = np.linspace(0, 2, 21)
    energy = np.where(time < 1, 5 - 5 * time, 0.0)
    assert energy_drift(time, energy, 1000, 300) == pytest.approx(0, abs=1e-9)


def test_plot_is_reproducible_and_takes_the_pages_ink():
    series = {"a": (np.arange(5), np.arange(5.0))}
    first, second = (line_plot(series, "x", "y", "salt") for _ in range(2))
    assert first == second
    assert "currentColor" in first and "<text" not in first


def test_numbers_and_texts_are_shown_safely():
    assert html.text(1234567) == "1\u202f234\u202f567"
    assert html.text(True) == "yes" and html.text(None) == "–"
    assert html.text("<b>") == "&lt;b&gt;"
    assert html.text(0.00001234) == "1.23e-05"
    assert "and 3 more" in html.table(["a"], [[k] for k in range(5)], limit=2)


def test_box_is_turned_without_being_mirrored():
    rng = np.random.default_rng(5)
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        box = np.array([90.0, 70.0, 40.0])[order]
        turned = pictures._longest_across(box)
        assert turned(box).tolist() == [90.0, 40.0, 70.0]
        points = rng.uniform(0, 1, (4, 3)) * box
        moved = turned(points)
        assert (moved >= 0).all() and (moved <= turned(box)).all()
        volume, kept = (np.linalg.det(p[1:] - p[0]) for p in (points, moved))
        assert kept == pytest.approx(volume)
