"""The page in a real browser, from disk: drawn, linked, its atoms loaded, nothing asked of a network."""

import base64
import io
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from PIL import Image
from support.browser import CHROMIUM, browser

from chromabuild.pipeline.view import view_results
from chromabuild.report import html
from chromabuild.report.document import VIEWER, viewer_part

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the page cannot be drawn")]
STALL = "GPU stall due to ReadPixels"  # a remark of software drawing on every picture that is looked at


def complaints(page):
    return [line for line in page.said if STALL not in line]


def text(page, name):
    return page.value(f"document.getElementById('{name}').textContent")


def press(page, name):
    page.value(f"document.getElementById('{name}').click()")


def nucleosome_on_track(page, built, k):
    """Where a dyad stands, in pixels: titles take 132 of them on the left, 12 are free on the right."""
    left, top, width = page.value("""(() => { const box = document.getElementById('tracks').getBoundingClientRect();
        return [box.left, box.top, box.width]; })()""")
    return left + 132 + (int(built.scaffold.dyad[k]) + 0.5) / len(built.scaffold.base) * (width - 144), top + 40


@pytest.fixture(scope="module")
def page(built, tmp_path_factory):
    """The viewer of the small locus, opened from a folder whose name needs quoting."""
    folder = tmp_path_factory.mktemp("browser") / "a view #1"
    bed = folder.parent / "genes.bed"
    bed.write_text("chrS\t5020\t5100\tABC1\t0\t-\n")
    view_results(built.settings, folder, [bed])
    with browser(folder.parent) as found:
        found.open((folder / "index.html").as_uri(), "document.body && document.body.dataset.ready")
        found.wait("Number(document.body.dataset.drawn) > 1")
        yield found


def test_fibre_is_drawn(page, tmp_path):
    page.photograph(tmp_path / "page.png")
    stage = np.asarray(Image.open(tmp_path / "page.png").convert("RGB"))[80:600, 20:1040].astype(int)
    background = stage[2, 2]
    assert 0.03 < (np.abs(stage - background).max(axis=2) > 25).mean() < 0.9
    assert "2 nucleosomes" in text(page, "lead")
    assert complaints(page) == []


def test_tracks_map_and_fibre_mark_the_same_place(page, built):
    dyad = int(built.scaffold.dyad[1])
    spot = nucleosome_on_track(page, built, 1)
    page.mouse("Moved", *spot)
    page.wait("document.getElementById('sentence').textContent.includes('at its dyad')")
    sentence = text(page, "sentence")
    pair = {"A": "A·T", "C": "C·G", "G": "G·C", "T": "T·A"}[chr(built.scaffold.base[dyad])]
    assert f"chrS:{5000 + dyad + 1:,}, {pair}; nucleosome 2, at its dyad; H2A.Z, H3:K56Q" in sentence
    page.wait("!document.getElementById('ring').hidden")  # in the scene
    page.click(*spot)
    page.wait("document.body.dataset.picked === 'Nucleosome 2'")
    assert "+9 bp" in text(page, "facts-list")


def test_atoms_of_a_nucleosome_are_loaded_and_told(page, built):
    press(page, "atoms")
    page.wait("Number(document.body.dataset.atoms) > 0")
    owner, first = built.solute.molecule_nucleosome, built.solute.molecule_first_atom
    histones = sum(int(first[k + 1] - first[k]) for k in np.flatnonzero(owner == 1))
    dna = page.value("Number(document.body.dataset.atoms)") - histones
    assert 147 * 60 < dna < 147 * 68  # 61 to 66 atoms a pair
    # The camera has gone there: what is in the middle of the scene is an atom.
    page.value("new Promise((done) => setTimeout(done, 900))")
    box = page.value("""(() => { const box = document.getElementById('scene').getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2]; })()""")
    page.click(*box)
    page.wait("document.body.dataset.picked.startsWith('Atom ')")
    told = text(page, "facts-list")
    assert "chain" in told and "nucleosome2" in told and ("modification" in told or "pair" in told)
    press(page, "style")
    page.value("new Promise((done) => setTimeout(done, 400))")
    press(page, "clear")
    page.wait("document.body.dataset.atoms === '0'")
    assert complaints(page) == []


def test_missing_atoms_are_told(page, built):
    """The first nucleosome's file is away; nothing else is harmed."""
    folder = Path(unquote(urlsplit(page.requests[0]).path)).parent
    (folder / "atoms" / "0001.js").rename(folder / "atoms" / "away")
    page.click(*nucleosome_on_track(page, built, 0))
    page.wait("document.body.dataset.picked === 'Nucleosome 1'")
    press(page, "atoms")
    page.wait("document.body.dataset.failed")
    assert "copy the whole folder" in text(page, "sentence")
    (folder / "atoms" / "away").rename(folder / "atoms" / "0001.js")
    press(page, "atoms")
    page.wait("Number(document.body.dataset.atoms) > 0")
    press(page, "clear")
    page.said[:] = [line for line in page.said if "ERR_FILE_NOT_FOUND" not in line]


def test_appearance_and_colours_change(page):
    def corner():
        page.value("new Promise((done) => setTimeout(done, 500))")
        data = page.ask("Page.captureScreenshot", format="png")["data"]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("L"))[100, 30]

    before = corner()
    press(page, "theme")
    after = corner()
    assert min(before, after) < 60 and max(before, after) > 200
    page.value("""(() => { const choice = document.getElementById('colouring'); choice.value = 'marks';
        choice.dispatchEvent(new Event('change')); })()""")
    assert "H2A.Z, H3:K56Q" in text(page, "legend")
    assert complaints(page) == []


def test_the_report_shows_it(built, tmp_path):
    """In a frame, which loads when its part of the page is opened, from a folder whose name needs quoting."""
    folder = tmp_path / "a report #2"
    view_results(built.settings, folder / VIEWER)
    style = "iframe { height: 700px; width: 1300px }"
    (folder / "report.html").write_text(html.page("report", viewer_part(folder, ""), style, framed=True), "utf-8")
    with browser(tmp_path) as page:
        page.open((folder / "report.html").as_uri(), "document.readyState === 'complete'")
        page.value("document.querySelector('details').open = true")
        end = time.perf_counter() + 60
        coloured = 0.0
        while coloured < 0.02 and time.perf_counter() < end:
            page.photograph(tmp_path / "page.png")
            shown = np.asarray(Image.open(tmp_path / "page.png").convert("RGB"))[150:500, 100:900].astype(int)
            coloured = (np.ptp(shown, axis=2) > 40).mean()
        assert coloured > 0.02 and complaints(page) == []


def test_nothing_but_its_own_files_was_asked_for(page):
    assert len(page.requests) == 4  # the page, atoms of nucleosome 2, those of nucleosome 1 twice
    assert all(address.startswith("file://") for address in page.requests)
    assert page.requests[1].endswith("atoms/0004.js")
