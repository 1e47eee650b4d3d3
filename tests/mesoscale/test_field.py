"""The table of a core's field against the sum over its sites."""

from dataclasses import replace

import numpy as np
import pytest

from mesoscale.fibre import Fibre
from mesoscale.field import JOINT, WORTH, core_field
from mesoscale.kernels import kernel_energies
from mesoscale.model import TERMS, Parameters, build_chain, straight_conformation, with_field
from mesoscale.montecarlo import RANDOM_PER_TRIAL, Walk

FIBRE = Fibre("ACGT" * 125, (95, 270, 420))


def with_table(chain):
    shape = chain.shape
    return replace(chain, field=core_field(shape.site, shape.site_charge, chain.kappa, chain.cutoff))


@pytest.mark.parametrize(("charges", "salt"), [("fitted", 0.15), ("formal", 0.15), ("fitted", 0.03)])
@pytest.mark.release
def test_table_and_sum_agree(charges, salt):
    """Cores brought together step by step, from out of reach to floors that touch. The spline is off by some 1e-4 kBT
    for each e (mesoscale/field.py), with random signs over the 350 sites of a few e: 0.01 kBT a pair of cores."""
    chain = build_chain(FIBRE, Parameters(core_charges=charges, salt=salt))
    table = with_table(chain)
    position, frame = straight_conformation(chain)
    largest = 0.0
    for share in np.linspace(1.0, 0.3, 8):
        closer = position * [share, 1.0, 1.0] if share < 1 else position
        exact, found = kernel_energies(chain, closer, frame), kernel_energies(table, closer, frame)
        if exact[TERMS.index("excluded")] > 1e3:
            break  # cores lie in each other
        assert found[3] == pytest.approx(exact[3], abs=0.03)
        assert found[4] == pytest.approx(exact[4], abs=0.01 + 1e-4 * abs(exact[4]))
        others = [k for k in range(len(TERMS)) if k not in (3, 4)]
        assert np.array_equal(found[others], exact[others])
        largest = max(largest, abs(exact[3]))
    assert largest > 5


def test_a_charge_near_one_site_by_hand():
    """Within the joint, beyond it, and beyond the cutoff, where the table ends."""
    chain = build_chain(FIBRE, Parameters())
    one = replace(chain.shape, site=np.zeros((1, 3)), site_charge=np.array([3.0]))
    chain = replace(chain, shape=one, excluded_k=0.0, charge=np.where(chain.core == 0, -2.0, 0.0))
    table = with_table(chain)
    position, frame = straight_conformation(chain)
    core, bead = chain.cores[0], chain.beads[-1]
    for r in (0.5 * JOINT, JOINT - 1e-3, JOINT + 1e-3, 2.5 * JOINT, chain.cutoff - 0.1, chain.cutoff + 5.0):
        there = position.copy()
        there[bead] = position[core] + r * np.array([0.6, 0.48, 0.64])
        found, exact = (kernel_energies(which, there, frame)[3] for which in (table, chain))
        assert found == pytest.approx(exact, abs=2e-3)
    assert abs(exact) < 1e3


def test_running_energy_with_a_table():
    """`advance` compares it with the full sum and raises when they differ by more than 1e-8."""
    chain = with_table(build_chain(FIBRE, Parameters()))
    walk = Walk.begin(chain, *straight_conformation(chain))
    random = np.random.Generator(np.random.Philox(key=1))
    for _ in range(3):
        walk.advance(random.random((20 * chain.n, RANDOM_PER_TRIAL)), strict=False)
    assert walk.accepted.sum() > 0


def test_small_fibres_are_summed():
    chain = build_chain(FIBRE, Parameters(core_charges="formal"))
    assert len(chain.cores) < WORTH and with_field(chain).field is None
    dyads = tuple(95 + 165 * k for k in range(WORTH))
    many = build_chain(Fibre("ACGT" * 360, dyads), Parameters(core_charges="formal"))
    assert with_field(many).field is not None
