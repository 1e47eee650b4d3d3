"""Sampling against statistical mechanics that can be worked out by quadrature, and the book-keeping of energies."""

from dataclasses import replace

import numpy as np
import pytest

from mesoscale.contact_energies import Wells, closeness
from mesoscale.cores import crystal_core
from mesoscale.fibre import Contact, Fibre
from mesoscale.model import TERMS, Chain, Parameters, build_chain, straight_conformation
from mesoscale.montecarlo import RANDOM_PER_TRIAL, Walk, exchange

pytestmark = pytest.mark.release

DEMO_LIKE = Fibre("ACGTTGCA" * 68, (95, 262, 440), contacts=(Contact((0, 20), (5, 40)), Contact((30, 60), (500, 540))))


def free_chain(beads, stretch_k, bend_k, twist_k):
    """Beads of unit spacing with nothing but elastic energy."""
    segments = beads - 1
    return Chain(
        shape=crystal_core(), core=np.zeros(beads, np.int32), bp=np.arange(beads, dtype=float),
        linker=np.zeros(segments, np.int32), rest_length=np.ones(segments), stretch_k=np.full(segments, stretch_k),
        bend_k=np.full(segments, bend_k), twist_k=np.where(np.arange(segments) < segments - 1, twist_k, 0.0),
        rest_twist=np.full(segments, 0.4), charge=np.zeros(beads), contact=np.zeros((0, 2), np.int32),
        contact_k=np.zeros(0), contact_distance=np.zeros(0), bjerrum_length=0.0, kappa=1.0, cutoff=1.0, excluded_k=0.0,
        sigma=(1.0, 1.0, 1.0), dna_radius=0.1, floor_k=0.0, confinement_k=0.0, confinement_radius=0.0, wall_k=0.0,
        wall=(0.0, 0.0, 0.0),
    )  # fmt: skip


def run(chain, sweeps, measure, seed=3, burn_in=300):
    """Sample a chain of beads from a straight start; one measurement a sweep."""
    position = np.zeros((chain.n, 3))
    position[:, 0] = np.arange(chain.n)
    walk = Walk.begin(chain, position, np.tile(np.eye(3), (chain.n, 1, 1)))
    random = np.random.Generator(np.random.Philox(key=seed))
    measured = []
    for sweep in range(sweeps + burn_in):
        counts = walk.advance(random.random((4 * chain.n, RANDOM_PER_TRIAL)), strict=False)
        if sweep < burn_in:
            walk.adapt(*counts)
        else:
            measured.append(measure(walk))
    return np.array(measured)


def mean_and_error(values):
    """Mean and its standard error from 20 blocks."""
    blocks = values[: len(values) // 20 * 20].reshape(20, -1).mean(axis=1)
    return blocks.mean(), blocks.std(ddof=1) / np.sqrt(20)


def test_two_beads_have_the_bond_length_distribution_of_space():
    """p(l) ~ l^2 exp(-h/2 (l - l0)^2): mean and mean square by quadrature, within four standard errors."""
    h = 12.0
    length = run(free_chain(2, h, 0.0, 0.0), 4000, lambda w: np.linalg.norm(w.position[1] - w.position[0]))
    x = np.linspace(1e-6, 4, 20001)
    p = x**2 * np.exp(-0.5 * h * (x - 1) ** 2)
    for power in (1, 2):
        mean, error = mean_and_error(length**power)
        assert abs(mean - (p * x**power).sum() / p.sum()) < 4 * error
        assert error < 0.05


def test_two_beads_with_a_well_are_together_as_often_as_the_integral_says():
    """P(r) ~ r^2 exp(-k (r - 1)^2/2 - e f(r)), with the contact f gone at 1.4; sampled with and without the well."""
    r = np.linspace(1e-4, 5, 100001)
    for energy in (-2.0, 2.0):
        wells = Wells(np.array([[0, 1]], np.int32), np.array([energy]), 0.6, 1.4)
        chain = replace(free_chain(2, 6.0, 0.0, 0.0), wells=wells)
        made = closeness(r, 0.6, 1.4)
        weight = r**2 * np.exp(-3.0 * (r - 1) ** 2 - energy * made)
        found, error = mean_and_error(run(chain, 4000, lambda walk: closeness(
            np.linalg.norm(walk.position[1] - walk.position[0]), 0.6, 1.4)))
        assert error < 0.02
        assert found == pytest.approx((weight * made).sum() / weight.sum(), abs=4 * error)


def test_discrete_wormlike_chain():
    """<cos beta> by quadrature and <R^2> of the freely rotating chain with it, within four standard errors."""
    g, beads = 4.0, 9
    chain = free_chain(beads, 2000.0, g, 10.0)

    def measure(walk):
        bond = np.diff(walk.position, axis=0)
        length = np.linalg.norm(bond, axis=1)
        cosine = (bond[1:] * bond[:-1]).sum(axis=1) / length[1:] / length[:-1]
        end = walk.position[-1] - walk.position[0]
        return cosine.mean(), end @ end

    values = run(chain, 5000, measure)
    beta = np.linspace(0, np.pi, 20001)
    p = np.sin(beta) * np.exp(-0.5 * g * beta**2)
    expected_cosine = (p * np.cos(beta)).sum() / p.sum()
    n, c = beads - 1, expected_cosine
    squared = 1 + 3 / 2000.0  # <l^2>, <l> = 1 + 1/h of the radial distribution to first order
    expected_r2 = n * squared + 2 * (1 + 2 / 2000.0) * sum((n - k) * c**k for k in range(1, n))
    for column, expected in ((0, expected_cosine), (1, expected_r2)):
        mean, error = mean_and_error(values[:, column])
        assert abs(mean - expected) < 4 * error
        assert error < 0.02 * expected


def test_twist_variance_is_one_over_its_stiffness():
    s = 25.0
    chain = free_chain(6, 2000.0, 20.0, s)
    energy = run(chain, 4000, lambda w: w.energy[TERMS.index("twist")])
    mean, error = mean_and_error(energy)
    assert abs(mean - 0.5 * 4) < 4 * error  # four joints between the five frames, kBT/2 each
    assert error < 0.1


def test_tempered_walks_keep_the_distributions_of_their_temperatures():
    """Two beads at three temperatures that exchange conformations: p(l) ~ l^2 exp(-h/(2 T) (l - l0)^2), mean and mean
    square by quadrature, within four standard errors."""
    h, temperatures = 12.0, (1.0, 1.7, 3.0)
    chain = free_chain(2, h, 0.0, 0.0)
    start = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    walks = [Walk.begin(chain, start, np.tile(np.eye(3), (2, 1, 1)), t) for t in temperatures]
    random = np.random.Generator(np.random.Philox(key=6))
    length, exchanged = [], np.zeros(2)
    for sweep in range(3300):
        for walk in walks:
            counts = walk.advance(random.random((6, RANDOM_PER_TRIAL)), strict=False)
            if sweep < 300:
                walk.adapt(*counts)
        exchanged += exchange(walks, sweep % 2, random)
        if sweep >= 300:
            length.append([np.linalg.norm(walk.position[1] - walk.position[0]) for walk in walks])
    assert 0.5 < exchanged[1] / exchanged[0] < 0.99
    x = np.linspace(1e-6, 6, 30001)
    for t, values in zip(temperatures, np.array(length).T, strict=True):
        p = x**2 * np.exp(-0.5 * h / t * (x - 1) ** 2)
        for power in (1, 2):
            mean, error = mean_and_error(values**power)
            assert abs(mean - (p * x**power).sum() / p.sum()) < 4 * error
            assert error < 0.05


def test_running_energy_is_the_full_energy():
    """`advance` recomputes the energy after each call and raises when they differ by more than 1e-8."""
    chain = build_chain(DEMO_LIKE, Parameters(container=(30.0, 20.0, 20.0), confinement_radius=9.0))
    walk = Walk.begin(chain, *straight_conformation(chain))
    random = np.random.Generator(np.random.Philox(key=1))
    for _ in range(5):
        walk.advance(random.random((20 * chain.n, RANDOM_PER_TRIAL)), strict=False)
    walk.energy = walk.energy + np.eye(len(TERMS))[0] * 1e-3
    with pytest.raises(ArithmeticError, match="differs from the full sum"):
        walk.advance(random.random((chain.n, RANDOM_PER_TRIAL)), strict=False)
