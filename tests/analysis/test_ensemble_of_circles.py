"""Ensembles of circles: whatever is measured is the same from another numbering, in that numbering."""

import numpy as np
import pytest

from chromabuild.analysis.agreement import compare, stratum_adjusted
from chromabuild.analysis.contact_statistics import by_distance, pixels, seen_bins
from chromabuild.analysis.convergence import convergence
from chromabuild.analysis.ensemble import Ensemble
from chromabuild.api import fibre_of, fold
from chromabuild.base.settings import Settings
from chromabuild.pipeline.ensemble.design import make_design

LENGTH, BIN = 1000, 100


def drawn_map(seed, bins=12):
    counts = np.random.default_rng(seed).poisson(20, (bins, bins)).astype(float)
    return np.triu(counts) + np.triu(counts, 1).T


@pytest.mark.parametrize("by", [1, 5, 11])
def test_maps_of_a_circle_may_begin_at_any_bin(by):
    """Means at each distance, correlations and slopes are those of the rolled maps; to rounding."""
    one, other = drawn_map(1), drawn_map(2)
    rolled = [np.roll(counts, (by, by), axis=(0, 1)) for counts in (one, other)]
    assert by_distance(rolled[0], around=12.0)[:7] == pytest.approx(by_distance(one, around=12.0)[:7])
    assert compare(*rolled, BIN, (100, 600), around=12.0).everywhere.as_dict() == pytest.approx(
        compare(one, other, BIN, (100, 600), around=12.0).everywhere.as_dict())
    here, there = (compare(*maps, BIN, (100, 600), around=12.0) for maps in ((one, other), rolled))
    assert (here.smoothed, here.slope, here.measured_slope) == pytest.approx(
        (there.smoothed, there.slope, there.measured_slope))
    assert seen_bins(rolled[0], 12.0).all()
    found = [convergence(np.array(maps), 12.0).relative_error for maps in ((one, other), rolled)]
    assert found[0] == pytest.approx(found[1])


def test_the_shorter_way_round_a_circle():
    """Of a map whose pixels are their distance on a ring of 12 bins."""
    steps = np.array([[min(abs(i - j), 12 - abs(i - j)) for j in range(12)] for i in range(12)])
    mean = by_distance(steps.astype(float), around=12.0)
    assert mean[:7].tolist() == list(range(7)) and np.isnan(mean[7:]).all()
    assert not pixels(12, around=12.0)[0, 11] and pixels(12, around=12.0)[0, 10] and pixels(12)[0, 11]
    assert stratum_adjusted(steps.astype(float), drawn_map(1), pixels(12, around=12.0), 12.0) is None  # it is flat


def circle_of(folder, by):
    """Settings of a circle of four nucleosomes and two contacts, numbered from ``by`` base pairs further on."""
    text = "".join(np.random.default_rng(4).choice(list("ACGT"), LENGTH))
    folder.mkdir()

    def at(first, end):
        return f"c\t{(first - by) % LENGTH}\t{(first - by) % LENGTH + end - first}"

    (folder / "c.fa").write_text(f">c\n{text[by:]}{text[:by]}\n")
    (folder / "n.bed").write_text("".join(f"{at(dyad, dyad + 1)}\tN\n" for dyad in (110, 360, 600, 860)))
    (folder / "k.bedpe").write_text(f"{at(985, 1015)}\t{at(480, 500)}\t.\t1\n{at(230, 250)}\t{at(730, 750)}\t.\t1\n")
    return Settings.model_validate({
        "locus": {"fasta": str(folder / "c.fa"), "nucleosomes": str(folder / "n.bed"), "circular": True,
                  "contacts": str(folder / "k.bedpe")},
        "scaffold": {"sweeps": 4, "core_charges": "formal"}, "output": str(folder / "results"),
        "ensemble": {"folds": 2, "rounds": 2, "bin": BIN}})


def ensemble_of(settings):
    design, paths = make_design(settings), []
    for seed in (1, 2):
        paths.append(design.folder / str(seed) / "scaffold.h5")
        fold(design.locus, settings, seed=seed, threads=1).write(paths[-1])
    return design, Ensemble.read(paths)


def test_an_ensemble_of_a_circle_is_told_in_its_own_numbering(tmp_path):
    """Numbered from 300 bp further on, folds are the same: maps are rolled by three bins, contacts closed as often, and
    tables of contacts and energies hold the intervals of their own input."""
    (one, here), (other, there) = (ensemble_of(circle_of(tmp_path / str(by), by)) for by in (0, 300))
    assert here.binned(BIN).mean.any() and here.start == there.start == 0
    assert np.array_equal(there.binned(BIN).maps, np.roll(here.binned(BIN).maps, (-3, -3), axis=(1, 2)))
    assert np.allclose(here.binned(BIN).contact_probability()[0], there.binned(BIN).contact_probability()[0],
                       equal_nan=True)
    closed = [[(found.given, found.frequency) for found in ensemble.contact_frequencies(design.contacts)]
              for design, ensemble in ((one, here), (other, there))]
    assert closed[0] == closed[1] and {share for share, _ in closed[0]} == {1.0}
    assert [here.given(contact.first) for contact in one.contacts] == [(985, 1015), (230, 250)]
    assert [there.given(contact.first) for contact in other.contacts] == [(685, 715), (930, 950)]
    counts = [ensemble.nucleosome_map()[0] for ensemble in (here, there)]
    assert counts[0].shape == (4, 4) and sorted(counts[0].ravel()) == pytest.approx(sorted(counts[1].ravel()))
    for design in (one, other):
        design.write_energies(1, np.array([-1.5, 0.25]))
        assert design.read_energies(1).tolist() == [-1.5, 0.25]
    table = other.energies_file(1).read_text().splitlines()[1].split("\t")
    assert table[1:6] == ["685", "715", "c", "180", "200"]
    fibres = [fibre_of(design.locus, design.fold_settings(1, 1)) for design in (one, other)]
    assert fibres[0].contact_energies == fibres[1].contact_energies and len(fibres[0].contact_energies) == 2
