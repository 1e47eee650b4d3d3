"""The report holds what the files say, stands alone, and survives missing stages."""

import base64
import csv
import io
import json
import re
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.browser import CHROMIUM
from support.synthetic_build import small_solute, write_build
from support.web_pages import Checker

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.molecule.colours import HISTONE_COLOURS, molecule_colours
from chromabuild.pipeline import provenance
from chromabuild.report import document, html, pictures
from chromabuild.report.downloads import figure
from chromabuild.report.sections import _name_and_unit
from chromabuild.report.summary import energy_drift
from chromabuild.report.trace import MOST_ROWS, Curves
from mesoscale.scaffold import Scaffold


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
    assert page.count("data:image/webp") == 3
    for text in ("DNAI:DT:3:C2", "0.72", "&lt;made up&gt;", "80.00 × 50.00 × 50.00", "chrXIII:101", "ab" * 32,
                 "real space", "12.81"):
        assert text in page
    assert "<made up>" not in page


def test_variants_have_colours_and_the_key_names_what_is_there(build):
    solute = replace(small_solute(), molecule_name=["H2A.Z"])
    assert molecule_colours(solute) == {"H2A.Z": HISTONE_COLOURS["H2A.Z"]}
    assert (pictures.atom_style(solute)[1] == np.float32(HISTONE_COLOURS["H2A.Z"])).all()
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
    assert sections == ["Checks", "Locus", "Pipeline", "Files", "Provenance"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "the atoms, clashes, water and ions, the force field and dynamics (their stages were not run)" in page
    assert "<code>chromabuild build</code>" in page


def test_page_is_the_same_on_any_number_of_threads(tmp_path, monkeypatch):
    for name in ("scaffold_picture", "solute_picture", "box_picture"):
        monkeypatch.setattr(pictures, name, partial(getattr(pictures, name), size=(160, 120)))
    config = write_build(tmp_path / "results")
    pages, stages = [], provenance.read(config.output)["stages"]
    for threads in (1, 4):
        document.write_report(config, stages, threads)
        # The next page knows of this one, and tells nothing of it.
        stages = stages | {"report": stages["clash"] | {"seconds": 9.0, "outputs": {"report.html": "0"}}}
        pages.append((tmp_path / "results" / "report.html").read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.parametrize(("built", "drawn"), [(5.2, True), (7.3, False)])
def test_a_conformation_other_than_those_sampled_is_drawn(tmp_path, monkeypatch, built, drawn):
    """The tables tell of what is built; where that was pressed into a box after it was sampled, the plot says so."""
    for name in ("scaffold_picture", "solute_picture", "box_picture"):
        monkeypatch.setattr(pictures, name, partial(getattr(pictures, name), size=(160, 120)))
    config = write_build(tmp_path / "results")
    path = tmp_path / "results" / "scaffold.h5"
    scaffold = Scaffold.read(path)
    scaffold.energy["radius_of_gyration"] = np.linspace(9.0, 7.3, len(scaffold.energy["sweep"]))
    scaffold.observables["radius_of_gyration"] = built
    scaffold.write(path)
    document.write_report(config, provenance.read(config.output)["stages"])
    page = (tmp_path / "results" / "report.html").read_text(encoding="utf-8")
    assert ("radius of gyration, as built" in page) == drawn
    assert ("pressed into a small box" in page) == drawn


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


def test_contents_lead_to_every_section(build):
    """Each entry names a section that is there, once, in the order of the page; links in the text do too."""
    page = build[2]
    ids = re.findall(r'<section id="([^"]+)"', page)
    assert ids == ["summary", *map(html.anchor, build[1]["sections"])] and len(set(ids)) == len(ids)
    contents = page[page.index("<nav"):page.index("</nav>")]
    assert re.findall(r'href="#([^"]+)"', contents) == ids
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert html.anchor("Not solved (3)") == "not-solved"


def test_summary_judges_what_the_files_say(build):
    """The build has a pierced ring, no pair below the threshold, no charge; its dynamics are 0.2 ps long."""
    page = build[2]
    summary = re.sub("<[^>]*>", "", page[page.index('<section id="summary">'):page.index('<section id="result">')])
    assert "354 base pairs and 2 nucleosomes" in summary and "a box of 8.0 × 5.0 × 5.0 nm" in summary
    assert "It is not sound: 1 of 3 checks fails, bonds through rings (1, good is 0)" in summary
    assert "0.2 ps of dynamics are too short" in summary and "the force field (its stage was not run)" in summary
    assert "Repair first what stands in Clashes" in summary
    assert '<li><a href="#clashes">Clashes</a> <span class="bad">✗</span></li>' in page


def test_figures_come_with_their_numbers_and_as_a_file(build):
    """Temperature of the log, read back from the CSV of the page; the SVG is a document of its own."""
    found = re.findall(r'download="([^"]+)" href="data:[^,]+;base64,([^"]+)"', build[2])
    files = {name: base64.b64decode(data).decode() for name, data in found}
    assert len(files) == len(found)
    head, *rows = csv.reader(io.StringIO(files["temperature.csv"]))
    assert head == ["time, ps", "temperature, K"]
    np.testing.assert_allclose(np.array(rows, float), [[0.02 * k, 300 - 12 * k] for k in range(11)], atol=1e-6)
    drawing = ET.fromstring(files["temperature.svg"])
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg" and drawing.find("{*}polyline") is not None


def test_long_curves_are_thinned_and_the_link_says_so():
    x = np.arange(2 * MOST_ROWS + 1.0)
    drawn = figure(Curves({"a": (x, x)}, "x", "y"), "caption", "long")
    assert "CSV, one point in 3" in drawn
    assert len(Curves({"a": (x, x)}, "x", "y").csv().splitlines()) == 1 + len(x[::3])


def test_curves_that_do_not_share_their_x_are_written_one_after_the_other():
    curves = Curves({"a": (np.array([0.0, 1]), np.array([5.0, 6])), "b": (np.array([0.5]), np.array([7.0]))}, "x", "y")
    assert curves.csv() == "series,x,y\na,0,5\na,1,6\nb,0.5,7\n"
    assert figure(Curves({"a": (np.zeros(0), np.zeros(0))}, "x", "y"), "", "none") == ""


def test_judged_values_are_told_without_colour():
    shown = html.table(["found"], [[html.Judged(0, "good")], [html.Judged(3, "bad")]], note="limit: <1")
    assert "✓ 0" in shown and "✗ 3" in shown and "<caption>limit: &lt;1</caption>" in shown
    assert shown.count("<td class=number>") == 2


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the page cannot be printed")
def test_print_opens_what_is_folded(tmp_path):
    """A folded table of 200 rows takes several sheets of paper, as many as an open one."""
    style = (Path(document.__file__).parent / "page.css").read_text(encoding="utf-8")
    rows = html.table(["row"], [[k] for k in range(200)])
    sheets = []
    for is_open in (False, True):
        (tmp_path / "page.html").write_text(html.page("fold", html.fold("rows", rows, is_open), style))
        subprocess.run([CHROMIUM, "--headless", "--no-sandbox", f"--user-data-dir={tmp_path / 'profile'}",
                        f"--print-to-pdf={tmp_path / 'page.pdf'}", (tmp_path / "page.html").as_uri()],
                       check=True, capture_output=True, timeout=120)
        sheets.append(len(re.findall(rb"/Type /Page\b", (tmp_path / "page.pdf").read_bytes())))
    assert sheets[0] == sheets[1] > 2


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


def test_viewer_and_ensemble_are_linked_where_they_are(build, tmp_path, monkeypatch):
    for name in ("scaffold_picture", "solute_picture", "box_picture"):
        monkeypatch.setattr(pictures, name, partial(getattr(pictures, name), size=(160, 120)))
    config = write_build(tmp_path / "results")
    stages = provenance.read(config.output)["stages"]
    for name in ("view", "report_viewer"):
        (tmp_path / "results" / name).mkdir()
        (tmp_path / "results" / name / "index.html").touch()
    (tmp_path / "results" / "ensemble.html").touch()
    document.write_report(config, {"scaffold": stages["scaffold"]})
    page = (tmp_path / "results" / "report.html").read_text(encoding="utf-8")
    assert 'href="ensemble.html"' in page
    assert 'href="view/index.html"' in page and '<iframe src="report_viewer/index.html" loading="lazy"' in page
    assert "its viewer is the folder report_viewer beside it" in page and "loads nothing" not in page
    document.write_report(config, {"scaffold": stages["scaffold"]}, no_viewer="There is no viewer: marks < gone.")
    page = (tmp_path / "results" / "report.html").read_text(encoding="utf-8")
    assert "There is no viewer: marks &lt; gone." in page and "<iframe" not in page
    assert "<code>chromabuild view</code>" in build[2] and "view/index.html" not in build[2]
    assert "ensemble.html" not in build[2]


def test_units_are_those_of_print():
    assert _name_and_unit("severe_pairs") == ("severe pairs (< 2.2 Å, with hydrogen < 1.3)", "")
    assert _name_and_unit("o3_p") == ("O3'-P", "Å")
