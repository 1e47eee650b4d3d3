"""An ensemble of planted folds: what is averaged, compared and chosen is what was put in."""

import h5py
import numpy as np
import pytest
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.analysis.base_pair_map import base_pair_bin
from chromabuild.analysis.ensemble import Ensemble, comparison_bin, summary_of, whole_bins
from chromabuild.base.errors import BadInputError, IntegrityError
from mesoscale.fibre import Contact, Fibre
from mesoscale.observables import map_of
from mesoscale.scaffold import Scaffold

START = 1000


def planted(seed, chromosome="chrS", start=START):
    """Six nucleosomes of a fibre; where odd, it is bent: the last two cores lie beside the first two."""
    scaffold = synthetic_scaffold(6, 30, 20, seed=1)
    scaffold.chromosome, scaffold.position = chromosome, start + np.arange(len(scaffold.base))
    scaffold.provenance = {"seed": seed, "settings": {"scaffold": {"sweeps": 10, "tails": "rigid"}}}
    scaffold.energy = {"sweep": np.arange(11.0)}  # a start and ten blocks, of which three are burn-in
    bins = -(-(start % 50 + len(scaffold.base)) // 50)
    scaffold.contact_map, scaffold.contact_resolution = np.zeros((bins, bins), np.int64), 50
    if seed % 2:
        offset = scaffold.core_origin[0] - scaffold.core_origin[4] + [0, 0, 80.0]
        late = slice(int(scaffold.first_bp[4]), None)
        scaffold.core_origin[4:] += offset
        scaffold.origin[late] += offset
        scaffold.contact_map[3, 17] = scaffold.contact_map[17, 3] = 14  # twice a conformation
    scaffold.contacts = [{"first": [90, 91], "second": [800, 801], "weight": 1.0, "distance": 5.0, "kept": True,
                          "stiffness": 1.0}] if seed % 2 else []
    scaffold.observables = {"radius_of_gyration": 10.0 + seed}
    return scaffold


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds")
    for seed in range(4):
        planted(seed).write(folder / f"fold_{seed}" / "scaffold.h5")
    return [folder / f"fold_{seed}" / "scaffold.h5" for seed in range(4)]


@pytest.fixture(scope="module")
def ensemble(paths):
    return Ensemble.read(paths)


def test_the_mean_map_counts_contacts_of_a_conformation(ensemble):
    """Seven conformations after burn-in; two of four folds have the contact."""
    assert [fold.conformations for fold in ensemble.folds] == [7] * 4
    mean, start = ensemble.mean_map()
    assert start == START and mean[3, 17] == mean[17, 3] == 1.0 and mean.sum() == 2.0
    binned = ensemble.binned(100)
    assert binned.start == 1000 and binned.size == 100 and binned.mean[1, 8] == 1.0
    probability, error = binned.contact_probability()
    pairs = len(binned.mean) - 7
    assert probability[7] == pytest.approx(1 / pairs) and probability[6] == 0
    assert error[7] == pytest.approx(np.std([0, 2, 0, 2], ddof=1) / 2 / pairs)


def test_nucleosomes_are_together_as_often_as_a_count_by_hand_says(ensemble, paths):
    counts, edges = ensemble.nucleosome_map()
    core = np.array([Scaffold.read(path).core_origin for path in paths])
    near = np.linalg.norm(core[:, :, None] - core[:, None], axis=3) < 250.0
    assert np.array_equal(counts, near.mean(axis=0) * ~np.eye(6, dtype=bool)) and 0.5 in counts and edges[0] == START
    dyads = ensemble.folds[0].dyads
    assert ((edges[:-1] < dyads) & (dyads < edges[1:])).all()


def test_pairs_of_base_pairs_are_those_of_a_count_by_hand(ensemble, paths):
    pairs, start = ensemble.base_pair_map()
    assert ensemble.base_pair_bin == 1 and start == START
    expected = np.zeros(pairs.shape)
    for path in paths:
        origin = Scaffold.read(path).origin
        distance = np.linalg.norm(origin[:, None] - origin[None], axis=2)
        expected += np.triu(distance <= 50.0, 1)
    assert np.array_equal(pairs.toarray(), expected / 4)


def test_a_contact_is_closed_where_it_was_planted(ensemble):
    """Given to half of the folds, closed in half; another that nobody was given is closed in all."""
    first, near = Contact((90, 91), (800, 801)), Contact((20, 21), (150, 151))
    found = ensemble.contact_frequencies([first, near])
    assert [(one.given, one.frequency, one.error) for one in found] == [(0.5, 0.5, 0.25), (0.0, 1.0, 0.0)]


def test_folds_are_grouped_and_chosen(ensemble):
    clusters = ensemble.clusters
    assert sorted(np.flatnonzero(clusters.cluster == clusters.cluster[0])) == [0, 2]
    assert ensemble.compact() in (1, 3)
    assert set(ensemble.representatives(2)) in ({0, 1}, {0, 3}, {2, 1}, {2, 3})
    with pytest.raises(BadInputError, match="5 representatives of 4 folds: choose 1 to 4"):
        ensemble.representatives(5)


def test_folds_of_another_locus_are_refused(paths, tmp_path):
    planted(1, start=2000).write(tmp_path / "other" / "scaffold.h5")
    with pytest.raises(BadInputError, match=r"other/scaffold.h5 is a fold of chrS:2001-\d+, not of chrS:1001-"):
        Ensemble.read([*paths, tmp_path / "other" / "scaffold.h5"])


def test_too_few_and_damaged_folds_are_refused(paths, tmp_path):
    with pytest.raises(BadInputError, match="1 fold makes no ensemble: make two or more"):
        Ensemble.read(paths[:1])
    damaged = tmp_path / "scaffold.h5"
    damaged.write_bytes(paths[0].read_bytes()[:20000])
    with pytest.raises(IntegrityError, match="scaffold.h5 cannot be read as a scaffold"):
        Ensemble.read([paths[0], damaged])
    with h5py.File(damaged, "w"):
        pass
    with pytest.raises(IntegrityError, match="not a chromabuild-scaffold"):
        Ensemble.read([paths[0], damaged])


def test_bins_lie_wholly_in_the_locus_and_are_no_finer_than_the_maps(ensemble):
    assert whole_bins(36500, 83000, 2000)[[0, -1]].tolist() == [38000, 118000]
    with pytest.raises(BadInputError, match="such bins, of 5 that are needed"):
        whole_bins(0, 9000, 2000)
    with pytest.raises(BadInputError, match="ensemble.bin = 50 is finer than .* 90 bp"):
        whole_bins(0, 83000, 50)
    assert comparison_bin(679) == 50 and base_pair_bin(20_000) == 2
    # The rule for the finest bins is that of the maps themselves.
    for length in (679, 51_000, 83_000):
        size = map_of(Fibre("A" * length, ()), np.arange(2), [np.zeros((2, 3))])[1]
        whole_bins(0, length, size)
        with pytest.raises(BadInputError, match="finer"):
            whole_bins(0, length, size - 1)


def test_errors_of_measures():
    found = summary_of([1.0, 2.0, 3.0])
    assert found == pytest.approx({"mean": 2.0, "error": 1 / np.sqrt(3), "deviation": 1.0, "least": 1.0, "most": 3.0})
