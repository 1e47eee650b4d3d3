"""The page of the clash stage: whole, loading nothing, and drawn by a real browser."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.browser import CHROMIUM

from chromabuild.clash import check, correct_clashes
from chromabuild.clash.report import contact_frame, neighbourhoods_of
from chromabuild.report.clash_page import write_clash_page


@pytest.fixture(scope="module")
def histones():
    """Two histone pairs that run into each other."""
    import sys

    sys.path.append(str(Path(__file__).parents[1] / "clash"))
    from support.placed_nucleosomes import place_nucleosomes

    return place_nucleosomes([(np.eye(3), np.zeros(3)), (np.eye(3), np.array([2.0, 0.0, 42.0]))], keep="AB")


@pytest.fixture(scope="module")
def page(histones, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "clash_report.html"
    write_clash_page(correct_clashes(histones)[1], path, "Two <pairs> & more")
    return path


def test_page_is_whole(page):
    text = page.read_text(encoding="utf-8")
    assert "Two &lt;pairs&gt; &amp; more" in text and "<pairs>" not in text
    for heading in ("The worst contacts", "Distances", "By class", "Audit", "What must not change", "Moves",
                    "Made with"):
        assert f"<h2>{heading}" in text
    body = re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)=(?!\"(?:data:|#))\S+", body)
    assert "connect-src" not in text and "default-src 'none'" in text


def test_nothing_found_gives_a_page_without_scripts(histones, tmp_path):
    from support.placed_nucleosomes import place_nucleosomes

    report = check(place_nucleosomes([(np.eye(3), np.zeros(3))], keep="A"))
    report.neighbourhoods = []
    write_clash_page(report, tmp_path / "page.html", "Sound")
    assert "<script>" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_neighbourhoods_hold_the_contact(histones):
    report = check(histones)
    from chromabuild.sterics.atoms import Atoms

    for n in neighbourhoods_of(report.data["before"], Atoms.from_solute(histones))[:5]:
        a, b = (np.array(n["atoms"][k][3:6]) for k in n["pair"])
        # Coordinates are rounded to 0.01 A: a distance changes by at most 0.01 sqrt(3).
        assert abs(np.linalg.norm(a - b) - n["distance"]) < 0.0174
        np.testing.assert_allclose(a[1:], 0, atol=0.0051)
        np.testing.assert_allclose(a + b, 0, atol=0.011)
        names = [":".join((n["atoms"][k][2], n["atoms"][k][1])) for k in n["pair"]]
        assert names == [n["atom_a"], n["atom_b"]]


def test_contact_frame_is_a_rotation():
    random = np.random.default_rng(1)
    for along in (random.normal(size=3), np.zeros(3), np.array([0.0, 0.0, 1e-9])):
        frame = contact_frame(along, random.normal(size=(20, 3)))
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
        assert np.isclose(np.linalg.det(frame), 1.0)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the page cannot be drawn")
def test_browser_draws_the_contact(page, tmp_path):
    """A photograph shows the contact's red spheres and green carbons where the viewer is."""
    shot = tmp_path / "page.png"
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader",
         "--enable-unsafe-swiftshader", "--hide-scrollbars", "--window-size=1100,1200", "--virtual-time-budget=6000",
         f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={shot}", page.as_uri()],
        capture_output=True, text=True, timeout=120)
    assert shot.exists(), done.stderr[-2000:]
    pixel = np.asarray(Image.open(shot).convert("RGB")).astype(int)
    red, green, blue = pixel[..., 0], pixel[..., 1], pixel[..., 2]
    viewer = (slice(588, 1088), slice(480, 1060))
    assert ((green - red > 25) & (green - blue > 10))[viewer].sum() > 300
    assert ((red - green > 60) & (red - blue > 60))[viewer].sum() > 100
    # Nothing hides the contact: its two spheres, 40 pixels wide, stand in the middle of the canvas.
    middle = (slice(768, 844), slice(716, 806))
    assert ((red - green > 30) & (red - blue > 30))[middle].sum() > 1000
