"""Contact energies: the well's shape, the polymer that they are fitted on against direct averages, and planted energies
that come back."""

from dataclasses import replace

import numpy as np
import pytest

from mesoscale.binned_polymer import BinnedPolymer, contact_frequencies, drawn_guide
from mesoscale.contact_energies import FLAT, REACH, ContactEnergy, Wells, closeness, update, wells_of
from mesoscale.energy import energies
from mesoscale.fibre import Contact, Fibre
from mesoscale.folding import fold
from mesoscale.kernels import kernel_energies
from mesoscale.maximum_entropy import fit_energies, scaled_targets
from mesoscale.model import TERMS, Parameters, build_chain, straight_conformation
from mesoscale.polymer import coarse_path, nodes_of, straight_distance

pytestmark = pytest.mark.release

RESTRAINT = TERMS.index("restraint")
FIBRE = Fibre("ACGT" * 160, (95, 275, 445), contacts=(Contact((20, 30), (600, 620)),))


def numbers(seed):
    return np.random.Generator(np.random.Philox(key=seed))


def short_polymer(beads, step=40.0, radius=None, cell=None):
    """Beads a root mean square step (nm) apart."""
    return BinnedPolymer(2000.0 * np.arange(beads), np.full(beads - 1, 3 / step**2), np.zeros((beads, beads)),
                         radius=radius, cell=cell)  # fmt: skip


def of_images(place, cell, repulsion, highest=4):
    """Energy (k,) of conformations (k, n, 3) with all images of their beads, cell by cell, but themselves."""
    shift = cell * np.stack(np.meshgrid(*[np.arange(-highest, highest + 1)] * 3), axis=-1).reshape(-1, 3)
    shift = shift[shift.any(axis=1)]
    total = np.zeros(len(place))
    for i in range(place.shape[1]):
        total += 0.5 * repulsion * closeness(np.linalg.norm(shift, axis=1)).sum()  # a bead and its own images
        for j in range(i):
            for one in shift:
                total += repulsion * closeness(np.linalg.norm(place[:, i] - place[:, j] + one, axis=1))
    return total


def test_neighbours_are_all_images_of_the_chain():
    """A chain several cells long against the sum over 9^3 cells; moved as a whole it has the same neighbours."""
    polymer = short_polymer(12, 60.0, cell=100.0)
    open_ = replace(polymer, cell=None)
    chains = polymer.start(6, numbers(5))
    assert np.ptp(chains, axis=1).max() > 150 and np.ptp(chains, axis=1).max() < 350
    expected = of_images(chains, 100.0, polymer.repulsion)
    found = [polymer.kernel_energy(chain) - open_.kernel_energy(chain) for chain in chains]
    assert found == pytest.approx(expected.tolist(), abs=1e-9) and expected.max() > 1
    assert polymer.kernel_energy(chains[0] + 37.0) == pytest.approx(polymer.kernel_energy(chains[0]), rel=1e-9)


def test_neighbours_far_away_are_none():
    """In a cell much wider than the chain every conformation of the walk is that of the open chain, to the last bit."""
    walks = []
    for cell in (None, 1e5):
        random, polymer = numbers(6), short_polymer(8, cell=cell)
        walks.append(polymer.sample(polymer.start(4, random), 10, random)[0])
    assert np.array_equal(*walks)
    sphere = short_polymer(8, radius=190.0)
    assert sphere.with_neighbours().cell**3 == pytest.approx(4 / 3 * np.pi * 190.0**3)
    assert sphere.with_neighbours().radius is None
    with pytest.raises(ValueError, match="give its radius"):
        short_polymer(8).with_neighbours()
    with pytest.raises(ValueError, match="at least"):
        short_polymer(8, cell=95.0)


def test_a_contact_is_whole_within_its_flat_part_gone_at_its_reach_and_smooth():
    distance = np.linspace(0, 60, 6001)
    made = closeness(distance)
    assert (made[distance <= FLAT] == 1).all()
    assert (made[distance >= REACH] == 0).all()
    assert closeness((FLAT + REACH) / 2) == pytest.approx(0.5)
    assert abs(np.diff(made, 2)).max() < 2e-6  # 6 (0.01/36)^2, twice over where the slope begins


def test_kernel_and_numpy_agree_on_wells():
    chain = build_chain(FIBRE, Parameters())
    position, frame = straight_conformation(chain)
    pair = np.array([[1, chain.n - 1], [0, chain.n // 2], [2, 9]], np.int32)
    with_wells = replace(chain, wells=Wells(pair, np.array([-3.0, 1.5, 7.0]), 2.0, 300.0))
    expected = energies(with_wells, position, frame)["restraint"]
    found = kernel_energies(with_wells, position, frame)[RESTRAINT]
    assert found == pytest.approx(expected, rel=1e-12)
    apart = np.linalg.norm(position[pair[:, 0]] - position[pair[:, 1]], axis=1)
    assert found - kernel_energies(chain, position, frame)[RESTRAINT] == pytest.approx(
        float(np.array([-3.0, 1.5, 7.0]) @ closeness(apart, 2.0, 300.0)), rel=1e-9)


def test_wells_join_the_particles_nearest_to_the_middles():
    bp = np.array([0.0, 100.0, 200.0, 300.0])
    wells = wells_of((ContactEnergy((80, 121), (280, 300), 0.1, -1.0), ContactEnergy((250, 300), (90, 100), 0.1, -0.5),
                      ContactEnergy((190, 200), (200, 210), 0.1, 2.0)), bp)  # fmt: skip
    assert wells.pair.tolist() == [[1, 3]]  # two contacts of the same particles add up, one with itself is nothing
    assert wells.energy.tolist() == [-1.5]
    assert wells_of((), bp) is None


def test_contacts_with_energies_restrain_nothing():
    energy = (ContactEnergy((20, 30), (600, 620), 0.2, -2.0),)
    chain = build_chain(replace(FIBRE, contact_energies=energy), Parameters())
    assert chain.contact_k.tolist() == [0.0]
    assert chain.wells.pair.tolist() == [sorted(chain.contact[0].tolist())]
    scaffold = fold(replace(FIBRE, contact_energies=energy), Parameters(core_charges="formal"), sweeps=4, seed=1)
    assert scaffold.floor_violations == 0
    assert scaffold.contacts[0]["stiffness"] == 0
    assert scaffold.contacts[0]["distance"] > 0


def test_two_beads_are_together_as_often_as_the_integral_says():
    """Mean contact of two beads on a spring with an energy: quadrature over their distance, 4 pi r^2 dr.

    10,240 independent samples: a standard error of 0.5 % of full scale at most; four of them.
    """
    polymer = short_polymer(2).with_energies(np.array([[0, 1]]), np.array([-3.5]))
    r = np.linspace(1e-3, 400, 200001)
    weight = r**2 * np.exp(-0.5 * polymer.spring[0] * r**2 - (-3.5 + polymer.repulsion) * closeness(r))
    expected = (weight * closeness(r)).sum() / weight.sum()
    random = numbers(1)
    samples, _ = polymer.sample(polymer.start(64, random), 160, random)
    assert contact_frequencies(samples)[0, 1] == pytest.approx(expected, abs=0.02)
    assert 0.2 < expected < 0.8


@pytest.mark.parametrize(("radius", "cell"), [(None, None), (90.0, None), (None, 100.0)])
def test_the_polymer_has_the_averages_of_weighted_ideal_chains(radius, cell):
    """Five beads with attraction and repulsion; inside a sphere they are weighed wherever their first bead may lie, in
    a cell of neighbours with their images.

    400,000 ideal chains weighed by exp(-E) count as some 10,000 in the sphere: an error below 0.005, as of 20,480
    samples that remember those before; three of both together.
    """
    pair, energy = np.array([[0, 2], [1, 4], [0, 4]]), np.array([-3.0, -2.0, 1.0])
    polymer = short_polymer(5, 40.0, radius, cell).with_energies(pair, energy)
    random = numbers(2)
    chains = polymer.start(400000, random)
    if radius is not None:
        chains = chains - chains[:, :1] + 97.0 * (2 * random.random((len(chains), 1, 3)) - 1)
    cost = np.zeros(len(chains))
    for i in range(5):
        if radius is not None:
            cost += 0.5 * np.maximum(np.linalg.norm(chains[:, i], axis=1) - radius, 0) ** 2
        for j in range(i):
            apart = closeness(np.linalg.norm(chains[:, i] - chains[:, j], axis=1))
            cost += (polymer.repulsion + polymer.energy[i, j]) * apart
    if cell is not None:
        for i in range(5):  # the nearest image, where it is not the bead itself: others are out of reach
            for j in range(i):
                d = chains[:, i] - chains[:, j]
                nearest = d - cell * np.rint(d / cell)
                other = (nearest != d).any(axis=1)
                cost += other * polymer.repulsion * closeness(np.linalg.norm(nearest, axis=1))
    bonds = 0.5 * polymer.spring[0] * (np.diff(chains[7], axis=0) ** 2).sum()
    assert polymer.kernel_energy(chains[7]) == pytest.approx(cost[7] + bonds, rel=1e-12)
    weight = np.exp(-cost)
    place = polymer.start(64, random)
    polymer.sample(place, 10, random)  # away from a start that may lie outside
    samples, _ = polymer.sample(place, 320, random)
    found = contact_frequencies(samples)
    for i in range(5):
        for j in range(i):
            made = closeness(np.linalg.norm(chains[:, i] - chains[:, j], axis=1))
            assert found[i, j] == pytest.approx(float(weight @ made / weight.sum()), abs=0.02), (i, j)
    if radius is not None:
        assert np.linalg.norm(samples, axis=2).max() < radius + 7  # exp(-7^2/2) of the weight lies farther out


def ring_of(springs):
    """A ring without repulsion."""
    n = len(springs)
    return BinnedPolymer(500.0 * np.arange(n), np.array(springs), np.zeros((n, n)), repulsion=0.0)


def rings_of(springs, count, random):
    """Conformations (count, n, 3) of a Gaussian ring, from the pseudo-inverse of the matrix of its springs."""
    n = len(springs)
    joined = np.zeros((n, n))
    for k, spring in enumerate(springs):
        ends = np.eye(n)[k] - np.eye(n)[(k + 1) % n]
        joined += spring * np.outer(ends, ends)
    return np.einsum("ij,cjk->cik", np.linalg.cholesky(np.linalg.pinv(joined) + 1e-9 * np.eye(n)),
                     random.standard_normal((count, n, 3)))


def test_an_ideal_ring_has_distances_of_both_ways_round():
    """Of steps with mean squares b the mean square distance is s (N - s) / N, s the sum of b on one way and N on both;
    and a contact is as frequent as the integral over a Gaussian of that width. As it starts, 40,000 rings, and sampled,
    10,240 of them with half as much information: four standard errors."""
    square = np.array([900.0, 2500.0, 1600.0, 400.0, 3600.0])
    polymer = ring_of(3 / square)
    begun = polymer.start(40000, numbers(11))
    place = polymer.start(64, numbers(12))
    samples, _ = polymer.sample(place, 160, numbers(13))
    r = np.linspace(1e-3, 600, 60001)
    for i in range(5):
        for j in range(i):
            one = square[j:i].sum()
            exact = one * (square.sum() - one) / square.sum()
            for found, error in ((begun, 0.02), (samples, 0.06)):
                assert np.mean(np.sum((found[:, i] - found[:, j]) ** 2, axis=1)) == pytest.approx(exact, rel=error)
            weight = r**2 * np.exp(-1.5 * r**2 / exact)
            expected = (weight * closeness(r)).sum() / weight.sum()
            assert contact_frequencies(samples)[i, j] == pytest.approx(expected, abs=0.02)


def test_a_ring_has_the_averages_of_weighted_ideal_rings():
    """Attraction and repulsion, with the springs of the kernel's energy; as of the chain above."""
    springs = 3 / np.array([900.0, 2500.0, 1600.0, 400.0, 3600.0])
    pair, energy = np.array([[0, 2], [1, 4], [0, 3]]), np.array([-3.0, 2.0, -1.0])
    polymer = ring_of(springs).with_energies(pair, energy)
    rings = rings_of(springs, 200000, numbers(14))
    made = [closeness(np.linalg.norm(rings[:, i] - rings[:, j], axis=1)) for i, j in pair]
    cost = energy @ np.array(made)
    bonds = 0.5 * springs @ np.sum((np.roll(rings[3], -1, axis=0) - rings[3]) ** 2, axis=1)
    assert polymer.kernel_energy(rings[3]) == pytest.approx(cost[3] + bonds, rel=1e-9)
    weight = np.exp(-cost)
    place = polymer.start(64, numbers(15))
    polymer.sample(place, 10, numbers(16))
    found = contact_frequencies(polymer.sample(place, 200, numbers(17))[0])
    for (i, j), one in zip(pair, made, strict=True):
        assert found[i, j] == pytest.approx(float(weight @ one / weight.sum()), abs=0.02), (i, j)


def test_the_polymer_of_a_circle_closes_and_may_begin_anywhere():
    """Beads of a circle of three nucleosomes: their steps are those of its nodes, round to the first; numbered from
    elsewhere they are the same ones."""
    circle = Fibre("ACGT" * 160, (95, 275, 445), circular=True)
    chain = build_chain(circle, Parameters(core_charges="formal"))
    bp = 80.0 * np.arange(8) + 40.0
    polymer = BinnedPolymer.of(chain, bp, 640)
    nodes = nodes_of(chain)
    step = [straight_distance(chain, a, b) for a, b in zip(nodes, [*nodes[1:], chain.n], strict=True)]
    assert len(polymer.spring) == 8 and np.sum(3 / polymer.spring) == pytest.approx(np.square(step).sum())
    other = BinnedPolymer.of(chain, bp + 240.0, 640)
    assert other.spring == pytest.approx(np.roll(polymer.spring, -3))


def test_planted_energies_come_back():
    """Energies between -2 and 1 kBT of all pairs of eight beads but neighbours, from their frequencies alone.

    A frequency near 0.1 in 2,560 samples of a round has an error of 6 %, or 0.06 kBT; one of 0.01 has 20 %.
    Energies that differ by 0.9 kBT (standard deviation) must come back within twice that of rare ones.
    """
    pair = np.stack(np.triu_indices(8, 2), axis=1)
    planted = numbers(3).uniform(-2.0, 1.0, len(pair))
    polymer = short_polymer(8, 30.0)
    random = numbers(4)
    planted_polymer = polymer.with_energies(pair, planted)
    samples, _ = planted_polymer.sample(planted_polymer.start(64, random), 320, random)
    target = contact_frequencies(samples)[pair[:, 0], pair[:, 1]]
    found = fit_energies(polymer, pair, target, seed=5, rounds=16)
    assert np.sqrt(((found - planted) ** 2).mean()) < 0.4
    assert np.corrcoef(found, planted)[0, 1] > 0.93
    once, again = (fit_energies(polymer, pair, target, seed=5, rounds=1) for _ in range(2))
    assert np.array_equal(once, again)


def test_relative_targets_are_scaled_to_the_polymer_itself():
    polymer, pair = short_polymer(6), np.array([[0, 2], [1, 3], [0, 5]])
    target = scaled_targets(polymer, pair, np.array([2.0, 1.0, 1.0]), seed=1)
    assert target[0] == pytest.approx(2 * target[1])
    random = numbers(9)
    free = contact_frequencies(polymer.sample(polymer.start(64, random), 160, random)[0])
    assert target.sum() == pytest.approx(free[pair[:, 0], pair[:, 1]].sum(), rel=0.1)


def test_updates_bring_a_lone_contact_to_its_frequency():
    """p = 1/(1 + c exp(e)): from 5 % to 40 % of its own accord."""

    def frequency(energy):
        return 1 / (1 + 19 * np.exp(energy))

    energy = np.zeros(1)
    for _ in range(12):
        energy = update(energy, frequency(energy), np.array([0.4]))
    assert frequency(energy)[0] == pytest.approx(0.4, abs=1e-6)
    assert update(energy, np.array([0.4]), np.array([0.4])).tolist() == energy.tolist()
    assert abs(update(np.zeros(2), np.array([0.0, 1.0]), np.array([1.0, 0.0]))).max() <= 2.0


@pytest.mark.parametrize(("simulated", "target", "word"), [
    ([0.1, 0.2], [0.1], "cannot be corrected"), ([1.2], [0.1], "between 0 and 1"),
    ([0.2], [np.nan], "between 0 and 1")])
def test_updates_refuse_what_is_no_frequency(simulated, target, word):
    with pytest.raises(ValueError, match=word):
        update(np.zeros(len(simulated)), simulated, target)


def test_a_fibre_follows_the_polymer_that_was_drawn_for_it():
    """Springs of 0.05 kBT/nm^2 hold partners within sqrt(3/0.05) = 8 nm of the guide, root mean square; the Brownian
    dynamics ends cold."""
    dyads = tuple(100 + 190 * k for k in range(60))
    stretches = [(1900 * k, 1900 * k + 1900) for k in range(6)]
    table = tuple(ContactEnergy(stretches[a], stretches[b], 0.1, -1.0) for a in range(6) for b in range(a + 2, 6))
    fibre = Fibre("ACGT" * 2860, dyads, contact_energies=table)
    chain = build_chain(fibre, Parameters(confinement_radius=100.0, core_charges="formal"))
    guide = drawn_guide(chain, numbers(1))
    assert len(guide.particle) == 6
    again = drawn_guide(chain, numbers(1))
    assert np.array_equal(guide.place, again.place)
    nodes = nodes_of(chain)
    path = coarse_path(chain, nodes, numbers(2), guide)
    off = path[np.searchsorted(nodes, guide.particle)] - guide.place
    assert np.sqrt((off**2).sum(axis=1).mean()) < 8
    step = np.array([straight_distance(chain, a, b) for a, b in zip(nodes, nodes[1:], strict=False)])
    assert np.linalg.norm(np.diff(path, axis=0), axis=1) == pytest.approx(step, rel=0.6)
