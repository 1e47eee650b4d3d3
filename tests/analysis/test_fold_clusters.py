"""Groups of folds that were planted, and what must not change them."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from chromabuild.analysis.fold_clusters import cluster_folds, differences, places, silhouette

SIZES = (5, 3, 2)


@pytest.fixture(scope="module")
def planted():
    """Ten folds around three paths, 0.5 nm away from them; the first of each lies on its path."""
    random = np.random.default_rng(4)
    paths = random.normal(scale=10.0, size=(3, 40, 3))
    return np.concatenate([np.concatenate([path[None], path + random.normal(scale=0.5, size=(size - 1, 40, 3))])
                           for path, size in zip(paths, SIZES, strict=True)])


def test_planted_groups_are_found(planted):
    found = cluster_folds(differences(planted))
    assert found.cluster.tolist() == [0] * 5 + [1] * 3 + [2] * 2
    assert found.medoids[:2] == (0, 5)  # what the others were made from lies in their middle
    assert found.silhouette > 0.8 and found.typical in range(5)
    assert len(found.tree) == 9


def test_motions_and_mirrors_change_nothing(planted):
    random = np.random.default_rng(5)
    moved = np.array([path @ Rotation.random(random_state=k).as_matrix() * (-1) ** k + random.normal(size=3)
                      for k, path in enumerate(planted)])
    assert differences(moved) == pytest.approx(differences(planted), abs=1e-9)


def test_differences_are_root_mean_squares_of_distances():
    one = np.array([[0.0, 0, 0], [1, 0, 0], [3, 0, 0]])
    other = np.array([[0.0, 0, 0], [2, 0, 0], [3, 0, 0]])  # distances 1, 3, 2 and 2, 3, 1
    assert differences(np.array([one, other]))[0, 1] == pytest.approx(np.sqrt(2 / 3))


def test_as_many_groups_as_are_asked_for(planted):
    difference = differences(planted)
    assert len(cluster_folds(difference, 1).medoids) == 1
    assert cluster_folds(difference, 10).medoids == tuple(range(10))
    assert cluster_folds(difference[:1, :1]).medoids == (0,)
    assert cluster_folds(difference[:2, :2]).cluster.tolist() == [0, 0]


def test_silhouette_of_four_points():
    """On a line at 0, 1, 10, 11 with two groups: (10.5 - 1)/10.5 and (9.5 - 1)/9.5, twice each."""
    place = np.array([0.0, 1, 10, 11])
    found = silhouette(np.abs(place[:, None] - place), np.array([0, 0, 1, 1]))
    assert found == pytest.approx((9.5 / 10.5 + 8.5 / 9.5) / 2)


def test_places_are_the_same_for_all_folds_of_a_locus():
    assert places(50).tolist() == list(range(50))
    assert len(places(83000)) == 200 and places(83000)[[0, -1]].tolist() == [0, 82999]
