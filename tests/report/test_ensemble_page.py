"""The page on an ensemble, and its numbers, for planted folds whose mean map is the measured one, or is not."""

import re

import numpy as np
import pytest
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.analysis.ensemble import Ensemble
from chromabuild.analysis.ensemble_result import EnsembleResult
from chromabuild.report.ensemble_drawings import map_pair, tree
from chromabuild.report.ensemble_page import write_ensemble_page
from mesoscale.fibre import Contact

FOLDS, BIN = 6, 100


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    """Folds whose contacts decay with distance, with a noise of their own around a map that they share."""
    folder, random = tmp_path_factory.mktemp("folds"), np.random.default_rng(1)
    paths = []
    for k in range(FOLDS):
        scaffold = synthetic_scaffold(6, 30, 20, seed=1)
        bins = -(-len(scaffold.base) // BIN)
        if k == 0:
            decay = 200.0 / (1 + np.abs(np.subtract.outer(np.arange(bins), np.arange(bins))))
            shared = decay * random.gamma(2.0, 0.5, (bins, bins))
        counts = random.poisson(shared)
        scaffold.contact_map = np.triu(counts) + np.triu(counts, 1).T
        scaffold.contact_resolution = BIN
        scaffold.origin = scaffold.origin + random.normal(scale=10.0, size=scaffold.origin.shape).cumsum(axis=0)
        scaffold.observables = {"radius_of_gyration": 10.0 + k}
        paths.append(folder / f"fold_{k}" / "scaffold.h5")
        scaffold.write(paths[-1])
    return Ensemble.read(paths)


def result_of(ensemble, measured, held_out=None, left_out=None):
    contacts = ensemble.contact_frequencies([Contact((10, 20), (900, 910), 2.0)])
    return EnsembleResult(ensemble, tuple(range(1, FOLDS + 1)), ensemble.binned(BIN), measured, held_out, (200, 800),
                          0.9, contacts, np.array([0.5]), left_out or {})


def test_an_ensemble_agrees_with_its_own_mean(ensemble, tmp_path):
    result = result_of(ensemble, 1000 * ensemble.binned(BIN).mean)
    found = result.comparison
    assert found.everywhere.pearson == pytest.approx(1.0) and found.everywhere.stratum_adjusted == pytest.approx(1.0)
    assert found.slope == pytest.approx(found.measured_slope) and -1.5 < found.slope < -0.5
    assert result.is_reliable and all(good for *_, good in result.judged())
    write_ensemble_page(result, "planted <locus>", tmp_path / "one.html")
    write_ensemble_page(result, "planted <locus>", tmp_path / "two.html")
    page = (tmp_path / "one.html").read_text()
    assert page == (tmp_path / "two.html").read_text() and "planted &lt;locus&gt;" in page and "<locus>" not in page
    assert "It agrees with its map" in page and "measured (below)" in page and page.count("<svg") >= 4
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_disagreement_and_folds_that_were_left_out_are_told(ensemble, tmp_path):
    measured = np.random.default_rng(2).gamma(2.0, 1.0, ensemble.binned(BIN).mean.shape)
    measured = np.triu(measured) + np.triu(measured, 1).T
    held_out = np.ones(measured.shape, bool)
    result = result_of(ensemble, measured, held_out, {7: "3 pairs of DNA and cores overlap"})
    assert result.comparison.held_out == result.comparison.everywhere
    bad = [what for what, _, _, good in result.judged() if good is False]
    assert len(bad) == 8 and any("held-out" in what for what in bad) and any("slope" in what for what in bad)
    write_ensemble_page(result, "planted", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "It disagrees with its map" in page and "3 pairs of DNA and cores overlap" in page


def test_tables_hold_every_fold_and_pixel(ensemble):
    tables = result_of(ensemble, None).tables()
    assert [row[0] for row in tables["folds"].rows] == list(range(1, FOLDS + 1))
    gyration = next(row for row in tables["measures"].rows if row[0] == "radius_of_gyration_nm")
    assert gyration[1:3] == pytest.approx((12.5, np.std(np.arange(6), ddof=1) / np.sqrt(6)))
    assert sum(row[1] for row in tables["contact_probability"].rows) == pytest.approx(1.0)
    assert sum(len(row[3].split()) for row in tables["clusters"].rows) == FOLDS


def test_drawings_have_each_pixel_and_fold():
    above, below = np.zeros((6, 6)), np.zeros((6, 6))
    above[0, 3] = above[3, 0] = above[1, 5] = above[5, 1] = 2.0
    below[2, 4] = below[4, 2] = 1.0
    svg = map_pair(above, below, np.arange(7) * 10, "title & more")
    squares = re.findall(r"M(\d+) (\d+)h1v1h-1z", svg)
    assert sorted(squares) == [("2", "4"), ("3", "0"), ("5", "1")] and "title &amp; more" in svg
    assert map_pair(np.zeros((6, 6)), below, np.arange(7), "") == ""
    drawn = tree(np.array([[0, 1, 1.0, 2], [2, 3, 4.0, 3]]), ["a", "b", "c"], ["red", "red", "blue"], "tree")
    assert drawn.count("<polyline") == 2 and drawn.count("<circle") == 3 and ">4<" in drawn
    assert tree(np.zeros((0, 4)), ["a"], ["red"], "tree") == ""
