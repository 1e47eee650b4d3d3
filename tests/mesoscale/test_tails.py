"""Histone tails: their energy by two implementations, and regrowth against integrals that can be worked out."""

from dataclasses import replace

import numpy as np
import pytest

from mesoscale.chain_kernel import Screening
from mesoscale.core_charges import core_charges, rigid_tail_sites, template
from mesoscale.cores import crystal_core
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain, straight_conformation
from mesoscale.relaxation import Conformation, settle
from mesoscale.tails import (
    DNA,
    TAIL,
    TAILS,
    TERMS,
    FixedPoints,
    FlexibleChains,
    TailWalk,
    build_tails,
    chain_energies,
)

pytestmark = pytest.mark.release

PARAMETERS = Parameters()
BJERRUM, KAPPA = 0.7, 0.8


def random_numbers(seed):
    return np.random.Generator(np.random.Philox(key=seed))


@pytest.fixture(scope="module")
def walk():
    """Three nucleosomes, the first and last with a linker histone, the second with acetylated H3 tails."""
    chain = build_chain(Fibre("ACGT" * 160, (95, 275, 445)), PARAMETERS)
    chain = replace(chain, shape=crystal_core(rigid_tails=False))
    acetylated = np.zeros((3, 10), bool)
    acetylated[1, :2] = True
    tails = build_tails(PARAMETERS, acetylated, np.array([True, False, True]))
    start = settle(chain, Conformation.boxed(chain, *straight_conformation(chain)))
    return TailWalk.begin(tails, chain, start.position, start.frame)


def test_fifty_beads_with_the_charges_of_the_sequences(walk):
    tails = walk.tails
    assert len(tails.core) == 3 * 10 + 2 and tails.first[-1] == 3 * 50 + 2 * 22
    charge = {name: 0.0 for name in TAILS}
    for k, name in enumerate(TAILS):
        charge[name] += tails.charge[tails.first[k] : tails.first[k + 1]].sum() / 1.12
    # Formal charges of residues 1-40, 1-25, 1-20, 1-25 and 114-128 of Xenopus histones, two copies each.
    assert charge == pytest.approx({"H3": 28, "H4": 18, "H2A": 18, "H2B": 20, "H2A C": 6})
    site, rigid = rigid_tail_sites(0.15)
    assert site.shape == (50, 3) and rigid.sum() == pytest.approx(1.12 * 90)


def test_a_nucleosome_stays_negative_at_every_salt():
    """Core and tails are -144 e of atoms. Counterions gather on both, so that neither may keep its formal charge where
    the other loses it: with 1.12 at 10 mmol/L the particle would be +9 e. A Debye-Hueckel charge grows with salt."""
    net = [core_charges(salt)[1].sum() + rigid_tail_sites(salt)[1].sum() for salt in (0.01, 0.05, 0.15, 0.2)]
    assert all(-144 < charge < -20 for charge in net)
    assert np.all(np.diff(net) < 0)


def test_kernel_and_numpy_agree_on_every_term(walk):
    moved = replace(walk, beads=walk.beads + 0.2 * random_numbers(1).standard_normal(walk.beads.shape))
    expected = chain_energies(walk.tails, walk.points, walk.anchor, moved.beads, *walk.screening)
    found = dict(zip(TERMS, moved.kernel_energy(), strict=True))
    for term in TERMS:  # the kernel's exponential is good to 1e-12; sums of up to 1e5 terms of both signs
        assert found[term] == pytest.approx(expected[term], rel=1e-9), term
        assert abs(expected[term]) > 1.0, f"{term} is not exercised"


def test_regrowth_leads_tails_out_of_their_core(walk):
    """The running energy is checked against a full recomputation in each sweep."""
    grown = replace(walk, tried=walk.tried.copy(), accepted=walk.accepted.copy())
    random = random_numbers(2)
    for _ in range(40):
        grown.sweep(random)
    assert grown.energy[TERMS.index("excluded")] < 150  # kBT; 2e7 at the start
    rate = grown.accepted / grown.tried
    wild = np.ones(len(rate), bool)
    wild[10:12] = False  # acetylated H3
    assert rate[wild].mean() > 0.2
    # No bead but the first of a chain comes near the surface of its core, whose sites are 0.9 nm apart.
    free = np.setdiff1d(np.arange(len(grown.beads)), grown.tails.first[:-1])
    apart = np.linalg.norm(grown.beads[free, None] - grown.points.position[None], axis=2).min()
    assert apart > 0.55
    again = replace(walk, tried=walk.tried.copy(), accepted=walk.accepted.copy())
    random = random_numbers(2)
    for _ in range(40):
        again.sweep(random)
    assert np.array_equal(grown.beads, again.beads)


def test_acetylated_tails_are_stiffer(walk):
    tails = walk.tails
    # Two tails of H3 and eight others before each nucleosome's linker histone: chains 0-9 and 11-20.
    wild, folded = (slice(tails.first[k] + 1, tails.first[k + 1]) for k in (0, 11))
    assert np.allclose(tails.bond_k[folded], 100 * tails.bond_k[wild])
    assert np.allclose(tails.angle_k[folded], 10 * tails.angle_k[wild])


def test_linker_histone_heads_lie_outside_the_core_near_the_dyad():
    data = template("tail_beads_1kx5.json")
    head = np.array(data["head"]) / 10
    centre = head.mean(axis=0)
    assert 5.0 < np.linalg.norm(centre[:2]) < 7.0 and centre[0] > 4.5  # the published head: 6.5 nm along the dyad
    assert np.linalg.norm(head[:, None] - crystal_core(rigid_tails=False).site[None], axis=2).min() > 0.3


def single_chain(beads, tether_k, bond_k, angle_k, charge, point_charge, point=(0.0, 0.0, 2.2)):
    """One chain at the origin and one fixed charge; a cutoff beyond the trials' one and within the chain's reach."""
    tails = FlexibleChains(
        first=np.array([0, beads], np.int32), core=np.zeros(1, np.int32), anchor=np.zeros((1, 3)),
        tether_k=np.array([tether_k]), charge=np.full(beads, charge), kind=np.full(beads, TAIL, np.int32),
        bond_length=np.full(beads, 1.3), bond_k=np.full(beads, bond_k), angle=np.full(beads, 2.0),
        angle_k=np.full(beads, angle_k), strength=np.full((5, 5), 0.001), head_core=np.zeros(0, np.int32),
        head_site=np.zeros((0, 3)), head_charge=np.zeros(0),
    )  # fmt: skip
    points = FixedPoints(
        np.array([point]), np.array([point_charge]), np.array([DNA], np.int32), np.array([-1], np.int32)
    )
    bead = np.zeros((beads, 3))
    for i in range(1, beads):
        bead[i] = bead[i - 1] + 1.3 * np.array([np.cos(i % 2 * 1.1), np.sin(i % 2 * 1.1), 0.0])
    screening = Screening(BJERRUM, KAPPA, 4.2)
    walk = TailWalk(tails, points, np.zeros((1, 3)), bead, screening, np.zeros(5), np.zeros(1, int), np.zeros(1, int))
    walk.energy = walk.kernel_energy()
    return walk


def averages(walk, measure, steps=800, batch=50):
    """Mean and standard error of a function of the beads, from blocks."""
    random, values = random_numbers(7), []
    for _ in range(steps):
        for _ in range(batch // 10):
            walk.regrow(np.zeros(10, int), random)
            values.append(measure(walk.beads))
    blocks = np.array(values)[len(values) // 20 :]
    blocks = blocks[: len(blocks) // 20 * 20].reshape(20, -1).mean(axis=1)
    return blocks.mean(), blocks.std(ddof=1) / np.sqrt(20)


def pair(r, charges, sigma, cutoff=4.2):
    """Both pair potentials, as in the text of mesoscale/tails.py."""
    r = np.minimum(r, cutoff)
    el = BJERRUM * charges * (np.exp(-KAPPA * r) / r - np.exp(-KAPPA * cutoff) / cutoff)
    s6, s6_cut = (sigma / r) ** 6, (sigma / cutoff) ** 6
    return el + 0.001 * (s6 * (s6 - 1) - s6_cut * (s6_cut - 1))


def assert_agrees(found, expected):
    mean, error = found
    assert abs(mean - expected) < 4 * error
    assert error < 0.04 * abs(expected)


def test_a_tethered_bead_in_the_field_of_a_charge():
    """<r> to the charge by quadrature in z and the distance from the axis."""
    walk = single_chain(1, 4.0, 1.0, 1.0, 3.0, 4.0)
    z, rho = np.meshgrid(np.linspace(-3, 4, 701), np.linspace(1e-4, 3, 401), indexing="ij")
    r = np.hypot(rho, z - 2.2)
    weight = rho * np.exp(-2.0 * (rho**2 + z**2) - pair(np.maximum(r, 0.05), 12.0, 2.7))
    found = averages(walk, lambda beads: np.linalg.norm(beads[0] - [0, 0, 2.2]))
    assert_agrees(found, (weight * r).sum() / weight.sum())
    assert abs((weight * r).sum() / weight.sum() - 2.2) > 0.1  # the field matters


def test_two_beads_in_the_field_of_a_charge():
    """Bond length and direction of the second bead; the first is held."""
    walk = single_chain(2, 1e6, 15.0, 1.0, 2.0, 5.0)
    length, cosine = np.meshgrid(np.linspace(0.05, 3, 600), np.linspace(-1, 1, 801), indexing="ij")
    r = np.sqrt(length**2 + 2.2**2 - 2 * 2.2 * length * cosine)
    weight = length**2 * np.exp(-7.5 * (length - 1.3) ** 2 - pair(np.maximum(r, 0.05), 10.0, 2.7))
    found = averages(walk, lambda beads: beads[1, 2])
    assert_agrees(found, (weight * length * cosine).sum() / weight.sum())


def test_three_beads_in_the_field_of_a_charge():
    """Directions of both bonds, which are stiff, weighed by the angle between them and the field on both beads."""
    walk = single_chain(3, 1e6, 1e5, 1.5, 2.0, 5.0)
    first, second, phi = np.meshgrid(
        np.arccos((np.arange(80) + 0.5) / 40 - 1), (np.arange(100) + 0.5) * np.pi / 100,
        (np.arange(60) + 0.5) * np.pi / 30, indexing="ij",
    )  # fmt: skip
    z2 = 1.3 * np.cos(first)
    bend = np.pi - second
    z3 = z2 + 1.3 * (np.cos(bend) * np.cos(first) - np.sin(bend) * np.cos(phi) * np.sin(first))
    x3 = 1.3 * np.sin(first) + 1.3 * (np.cos(bend) * np.sin(first) + np.sin(bend) * np.cos(phi) * np.cos(first))
    y3 = 1.3 * np.sin(bend) * np.sin(phi)
    r2 = np.sqrt((1.3 * np.sin(first)) ** 2 + (z2 - 2.2) ** 2)
    r3 = np.sqrt(x3**2 + y3**2 + (z3 - 2.2) ** 2)
    energy = 0.75 * (second - 2.0) ** 2 + pair(r2, 10.0, 2.7) + pair(np.maximum(r3, 0.05), 10.0, 2.7)
    weight = np.sin(second) * np.exp(-energy)
    found = averages(walk, lambda beads: np.linalg.norm(beads[2] - [0, 0, 2.2]))
    assert_agrees(found, (weight * r3).sum() / weight.sum())


def test_four_beads_that_repel_each_other():
    """Bonds and angles are stiff, the field is off: only the torsion moves, in the field of the 1-4 pair."""
    walk = single_chain(4, 1e6, 1e5, 1e4, 2.0, 0.0, point=(90.0, 0.0, 0.0))
    phi = (np.arange(2000) + 0.5) * 2 * np.pi / 2000
    bend = np.pi - 2.0
    along = 1.3 * (1 + 2 * np.cos(bend))
    across = 1.3 * np.sin(bend) * np.sqrt(2 - 2 * np.cos(phi))
    r = np.hypot(along, across)
    weight = np.exp(-pair(r, 4.0, 1.8))
    found = averages(walk, lambda beads: np.linalg.norm(beads[3] - beads[0]) ** 2)
    # Stiff springs leave bonds and angles fluctuations of 0.003 nm and 0.01 radian: below the error asked for.
    assert_agrees(found, (weight * r**2).sum() / weight.sum())


def test_drifted_bookkeeping_is_noticed(walk):
    wrong = replace(walk, energy=walk.energy + 1e-2 * abs(walk.energy).sum())
    with pytest.raises(ArithmeticError, match="differs from the full sum"):
        wrong.sweep(random_numbers(1))
