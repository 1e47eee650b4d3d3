"""The coarse polymer against the theory of ideal chains; even filling of a container; cores seated on a path."""

import numpy as np
import pytest

from mesoscale.fibre import Contact, Fibre
from mesoscale.model import Parameters, build_chain, segment_ends, straight_conformation
from mesoscale.polymer import (
    LONGEST_STEP,
    Container,
    _gaussian_network,
    coarse_path,
    nodes_of,
    seat,
    straight_distance,
)

pytestmark = pytest.mark.release


def random_numbers(seed):
    return np.random.Generator(np.random.Philox(key=seed))


def array_of(m, repeat, contacts=()):
    """m nucleosomes at an even distance, and 20 bp at both ends."""
    dyads = tuple(20 + 73 + repeat * k for k in range(m))
    return Fibre("ACGT" * ((dyads[-1] + 94) // 4 + 1), dyads, contacts=contacts)


def test_an_ideal_chain_closed_by_a_spring_has_the_size_that_theory_gives():
    """The mean square distance over k steps, S, in parallel with a spring of mean square t^2: S t^2/(S + t^2).

    Standard error of a mean square over 1500 samples of three coordinates: sqrt(2/4500) = 2.1 %; four of them.
    """
    step, together = np.linspace(8.0, 16.0, 19), np.array([7.0])
    random = random_numbers(1)
    partner = np.array([[3, 15]])
    places = np.array([_gaussian_network(step, partner, together, None, random) for _ in range(1500)])
    loop, free = (step[3:15] ** 2).sum(), (step[:3] ** 2).sum()
    closed = loop * together[0] ** 2 / (loop + together[0] ** 2)
    assert ((places[:, 15] - places[:, 3]) ** 2).sum(axis=1).mean() == pytest.approx(closed, rel=0.084)
    assert ((places[:, 3] - places[:, 0]) ** 2).sum(axis=1).mean() == pytest.approx(free, rel=0.084)
    assert abs(places.mean(axis=1)).max() < 1e-9


def test_the_trap_gives_a_long_chain_the_width_of_its_container():
    box = Container(np.array([30.0, 20.0, 10.0]), 8 * 30 * 20 * 10, False)
    random = random_numbers(2)
    places = np.array([_gaussian_network(np.full(299, 15.0), np.zeros((0, 2), int), np.zeros(0), box, random)
                       for _ in range(8)])  # fmt: skip
    # A step has a mean square of 75 nm^2 along an axis, so that along the widest, of 300 nm^2, places forget each other
    # in 2 x 300/75 = 8 steps: 300 of 2400 are independent, and the standard error of a mean square is 8 %.
    assert np.allclose((places**2).mean(axis=(0, 1)), box.half**2 / 3, rtol=0.25)


def test_nodes_are_cores_partners_ends_and_points_of_long_linkers():
    fibre = Fibre("ACGT" * 400, (100, 1100), contacts=(Contact((0, 10), (1500, 1510)),))
    chain = build_chain(fibre, Parameters())
    nodes = nodes_of(chain)
    assert {0, chain.n - 1, *chain.cores, *chain.contact.ravel()} <= set(nodes.tolist())
    along = np.concatenate([[0.0], np.cumsum(chain.rest_length)])
    assert np.diff(along[nodes]).max() < LONGEST_STEP + 2 * chain.rest_length.max()


def test_straight_distances_are_those_of_the_straight_conformation():
    chain = build_chain(array_of(3, 190), Parameters())
    position, _ = straight_conformation(chain)  # nothing is in the way of so few cores: no extra twist
    nodes = nodes_of(chain)
    for a, b in zip(nodes, nodes[1:], strict=False):
        apart = float(np.linalg.norm(position[b] - position[a]))
        assert straight_distance(chain, a, b) == pytest.approx(apart, rel=1e-9)


@pytest.mark.parametrize("walls", [{"confinement_radius": 30.0}, {"container": (60.0, 50.0, 40.0)}])
def test_the_path_fills_its_container_evenly_and_keeps_its_contacts(walls):
    fibre = array_of(60, 170, contacts=(Contact((500, 700), (9000, 9200)), Contact((2000, 2200), (7000, 7200))))
    chain = build_chain(fibre, Parameters(**walls))
    nodes = nodes_of(chain)
    inner = total = 0
    for seed in (1, 2, 3):
        place = coarse_path(chain, nodes, random_numbers(seed))
        ends = place[np.searchsorted(nodes, chain.contact)]
        assert (np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1) < 12.0).all()
        container = Container.of(chain)
        assert np.linalg.norm(container.outside(place, 0.0), axis=1).max() < 2.0
        reach = place / container.half
        scaled = np.linalg.norm(reach, axis=1) if container.round else np.abs(reach).max(axis=1)
        inner, total = inner + np.count_nonzero(scaled < 0.5 ** (1 / 3)), total + len(place)
    # Half of the nodes in the inner half of the volume; but a layer lies on the wall, and centres keep 2.7 nm off it:
    # in the box of 60 x 50 x 40 nm they have 69 % of the volume, and 0.5/0.69 = 0.72 of them are in the inner half.
    assert 0.35 < inner / total < 0.8


def test_cores_sit_on_their_nodes_and_beads_between():
    chain = build_chain(array_of(12, 180), Parameters(confinement_radius=25.0))
    nodes = nodes_of(chain)
    place = coarse_path(chain, nodes, random_numbers(3))
    position, frame = seat(chain, nodes, place)
    assert np.array_equal(position[nodes], place)
    assert np.allclose(frame.transpose(0, 2, 1) @ frame, np.eye(3), atol=1e-9)
    assert np.allclose(np.linalg.det(frame), 1.0)
    start, end = segment_ends(chain, position, frame)
    direction = (end - start) / np.linalg.norm(end - start, axis=1)[:, None]
    beads = chain.beads[chain.beads < chain.n - 1]
    assert np.allclose(frame[beads, :, 0], direction[beads], atol=1e-9)
    # A core is turned toward its neighbours: closing the linkers takes less length than with the cores turned away.
    turned = frame.copy()
    turned[chain.cores] = frame[chain.cores] @ np.diag([-1.0, -1.0, 1.0])
    away = segment_ends(chain, position, turned)
    assert np.linalg.norm(end - start, axis=1).sum() < np.linalg.norm(away[1] - away[0], axis=1).sum()
