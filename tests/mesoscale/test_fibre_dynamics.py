"""Dynamics of cores, linkers and flexible chains: forces against energies, and their temperature."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.bead_frames import carried
from support.mixed_fibre import mixed_fibre

from mesoscale import dynamics
from mesoscale.chain_kernel import ChainKernel
from mesoscale.cores import crystal_core
from mesoscale.dynamics import STAGES, equilibrate_with_tails, first_tails, shortened
from mesoscale.energy import overlaps
from mesoscale.fibre import Contact, Fibre
from mesoscale.folding import grow_tails
from mesoscale.kernels import kernel_energies, kernel_of
from mesoscale.model import TERMS, Parameters, build_chain, shapes_of, straight_conformation
from mesoscale.relaxation import Conformation, settle
from mesoscale.tails import Places, TailWalk, heads_alone, limbs_of, tails_of_fibre

FIBRE = Fibre("ACGT" * 135, (95, 270, 440), linker_histone=(False, True, False), acetylated=(True, False, False),
              contacts=(Contact((0, 20), (5, 40)), Contact((30, 60), (500, 540))))  # fmt: skip
PARAMETERS = Parameters(tails="flexible", confinement_radius=4.0, contact_distance=2.0, magnesium=True)


def shaken(fibre):
    """Cores, their chains and a conformation of both that is a little shaken."""
    shapes, form = shapes_of(fibre, PARAMETERS, rigid_tails=False)
    chain = shortened(replace(build_chain(fibre, PARAMETERS), shape=shapes[0], others=shapes[1:], form=form))
    tails = tails_of_fibre(fibre, PARAMETERS)
    random = np.random.Generator(np.random.Philox(key=1))
    position, frame = straight_conformation(chain)
    position = position + 0.2 * random.standard_normal(position.shape)
    turn = Rotation.from_rotvec(0.1 * random.standard_normal((chain.n, 3))).as_matrix()
    left, _, right = np.linalg.svd(frame)  # crystal frames are rounded: rotations to 1e-6 only
    frame = carried(chain, position, np.where((chain.core > 0)[:, None, None], turn @ left @ right, left @ right))
    beads = grow_tails(tails, chain, position, frame, seed=1, sweeps=20).beads
    return chain, tails, position, frame, beads


@pytest.fixture(scope="module")
def three():
    """Three nucleosomes."""
    return shaken(FIBRE)


def whole_energy(chain, tails, position, frame, beads):
    """What Monte Carlo samples: the fibre with heads, and the chains."""
    limbs = limbs_of(tails, Places.of(tails, len(chain.cores)), chain, position, frame, beads)
    own = TailWalk.begin(tails, chain, position, frame, beads).energy
    return kernel_energies(replace(chain, limbs=heads_alone(limbs)), position, frame), own


@pytest.mark.parametrize("fibre", [FIBRE, mixed_fibre()], ids=["alike", "mixed"])
def test_forces_are_the_gradient_of_what_monte_carlo_samples(fibre):
    """Central differences; single-precision coefficients of the table have steps of 1e-7 of some 10 kBT a charge, and
    tails meet a core's sites one by one in their own kernel, which the table follows to 1e-3 kBT/nm for each."""
    chain, tails, position, frame, beads = shaken(fibre)
    force, bead_force, energy = ChainKernel(tails).place(beads).forces(kernel_of(chain).place(position, frame))
    fibre, own = whole_energy(chain, tails, position, frame, beads)
    assert energy[:6].sum() == pytest.approx(fibre.sum() + own[3:].sum(), abs=0.1)
    assert energy[6] == pytest.approx(own[:3].sum(), rel=1e-9)
    assert abs(fibre[[TERMS.index(name) for name in TERMS if name != "floor"]]).min() > 0.1
    step = 5e-4

    def total(position, frame, beads):
        fibre, own = whole_energy(chain, tails, position, frame, beads)
        return fibre.sum() + own.sum()

    for p in [*chain.cores, *chain.beads[::2]]:
        for k in [0, 1, 2, *([3, 4, 5] if chain.core[p] else [6] if p < chain.n - 1 else [])]:
            ends = []
            for by in (step, -step):
                moved, turned = position.copy(), frame.copy()
                if k < 3:
                    moved[p, k] += by
                else:
                    vector = by * (np.eye(3)[k - 3] if k < 6 else frame[p, :, 0])
                    turned[p] = Rotation.from_rotvec(vector).as_matrix() @ frame[p]
                ends.append(total(moved, carried(chain, moved, turned), beads))
            assert force[k, p] == pytest.approx((ends[1] - ends[0]) / 2 / step, rel=2e-3, abs=0.3), (k, p)
    for b in range(0, len(beads), 7):
        for k in range(3):
            ends = []
            for by in (step, -step):
                moved = beads.copy()
                moved[b, k] += by
                ends.append(total(position, frame, moved))
            assert bead_force[k, b] == pytest.approx((ends[1] - ends[0]) / 2 / step, rel=2e-3, abs=0.1), (k, b)


def test_equilibration_keeps_floors_and_lets_charges_fall(three, monkeypatch):
    """The same seed gives the same bytes; floors hold; charges of tails that were just grown lie higher than after."""
    short = tuple(stage._replace(chunks=chunks) for stage, chunks in zip(STAGES, (9, 3), strict=True))
    monkeypatch.setattr(dynamics, "STAGES", short)
    wide = replace(PARAMETERS, confinement_radius=12.0)
    whole = replace(build_chain(FIBRE, wide), shape=crystal_core(rigid_tails=False))
    tails = three[1]
    start = settle(whole, Conformation.boxed(whole, *straight_conformation(whole)))

    def run(seed):
        random = np.random.Generator(np.random.Philox(key=seed))
        beads = first_tails(tails, whole, start, random)
        return beads, *equilibrate_with_tails(whole, start, tails, beads, random)

    first, now, beads, contact_k = run(1)
    again = run(1)
    assert np.array_equal(beads, again[2]) and np.array_equal(now.position, again[1].position)
    assert len(overlaps(whole, now.position, now.frame)) == 0
    assert (contact_k >= whole.contact_k).all()
    before, after = (TailWalk.begin(tails, whole, at.position, at.frame, found).energy
                     for at, found in ((start, first), (now, beads)))  # fmt: skip
    assert after.sum() < before.sum()
