"""Closed chains: energies, forces, moves and starts of circles with and without cores."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mesoscale.circle import (
    LinkingNumberError,
    check_linking_number,
    closed_start,
    excess_turns,
    linking_number,
    linking_number_of,
    rewound,
    ring,
)
from mesoscale.contact_energies import ContactEnergy
from mesoscale.energy import energies, overlaps
from mesoscale.fibre import Contact, Fibre
from mesoscale.folding import fold
from mesoscale.kernels import FibreKernel, Moves, kernel_energies, kernel_of, set_threads
from mesoscale.model import TERMS, Chain, Parameters, build_chain
from mesoscale.montecarlo import Walk, sample
from mesoscale.relaxation import Conformation, advance
from mesoscale.scaffold import build_scaffold

REPEAT = 207
FIBRE = Fibre("ACGT" * (3 * REPEAT // 4 + 1), tuple(100 + REPEAT * k for k in range(3)), circular=True)
PARAMETERS = Parameters(confinement_radius=12.0)
PER_PARTICLE = ("core", "bp", "charge")
PER_SEGMENT = ("linker", "rest_length", "stretch_k", "bend_k", "twist_k", "rest_twist")


@pytest.fixture(scope="module")
def chain() -> Chain:
    return build_chain(FIBRE, PARAMETERS)


def shaken(chain: Chain, seed: int, size: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """The ring with particles moved by some `size` nm and cores turned, placed so that beads follow their segments."""
    random = np.random.default_rng(seed)
    position, frame = ring(chain)
    position = 0.5 * position + size * random.standard_normal(position.shape)  # near enough for charges and floors
    frame = Rotation.from_rotvec(0.3 * random.standard_normal((chain.n, 3))).as_matrix() @ frame
    return FibreKernel(chain).place(position, frame).conformation()


def begun_at(chain: Chain, k: int) -> Chain:
    """The same circle, its particles counted from number k on."""
    rolled = {name: np.roll(getattr(chain, name), -k) for name in (*PER_PARTICLE, *PER_SEGMENT)}
    cores = np.flatnonzero(rolled["core"])
    form = chain.forms[rolled["core"][cores] - 1]
    rolled["core"][cores] = np.arange(1, len(cores) + 1)
    return replace(chain, **rolled, form=form)


def test_a_circle_has_a_segment_for_every_particle(chain):
    """Base pairs of all linkers, the one across the seam with them, and the steps onto the cores."""
    assert chain.is_circle and chain.segments == chain.n
    assert chain.rest_length.sum() == pytest.approx(PARAMETERS.rise * (len(FIBRE.sequence) - 3 * 146))
    assert FIBRE.linkers[-1] == len(FIBRE.sequence) - 1 - FIBRE.last_bp[-1] + FIBRE.first_bp[0]
    assert (chain.bp >= 0).all() and (chain.bp < len(FIBRE.sequence)).all()


@pytest.mark.parametrize("cores", [0, 1, 3])
def test_the_kernel_has_the_stated_energy(cores):
    """Of a bare circle, one whose linker leaves and meets the same core, and one of several; to rounding."""
    chain = build_chain(replace(FIBRE, dyads=FIBRE.dyads[:cores]), PARAMETERS)
    position, frame = shaken(chain, cores)
    found, stated = kernel_energies(chain, position, frame), energies(chain, position, frame)
    assert found == pytest.approx(np.array([stated[term] for term in TERMS]), rel=1e-9, abs=1e-9)
    if cores:
        assert stated["floor"] > 0


def test_the_closing_segment_is_like_any_other(chain):
    """Wherever the particles are counted from, at a core or within a linker, every term is the same."""
    position, frame = shaken(chain, 2)
    whole = kernel_energies(chain, position, frame)
    forces = kernel_of(chain).place(position, frame).forces(charges=True)[0]
    for k in (1, 3, 7, 11):
        other = begun_at(chain, k)
        where = np.roll(position, -k, axis=0), np.roll(frame, -k, axis=0)
        assert kernel_energies(other, *where) == pytest.approx(whole, rel=1e-9)
        turned = kernel_of(other).place(*where).forces(charges=True)[0]
        assert turned[:, :-1] == pytest.approx(np.roll(forces[:, :-1], -k, axis=1), rel=1e-6, abs=1e-6)


def test_energy_does_not_change_when_the_circle_is_moved_and_turned(chain):
    free = replace(chain, confinement_k=0.0)
    position, frame = shaken(free, 3)
    turn = Rotation.random(random_state=1).as_matrix()
    moved = position @ turn.T + [3.0, -2.0, 5.0], turn @ frame
    assert kernel_energies(free, *moved) == pytest.approx(kernel_energies(free, position, frame), rel=1e-9)


def test_forces_are_slopes_of_the_energy(chain):
    """Every freedom beside the seam against finite differences of the NumPy energy; the error is of second order."""
    step = 1e-5
    position, frame = shaken(chain, 4, size=0.15)
    forces, _ = kernel_of(chain).place(position, frame).forces(charges=True)

    def energy(position, frame):
        placed = FibreKernel(chain).place(position, frame)
        return placed.energies().sum()

    scale = np.abs(forces).max()
    for p in (0, 1, chain.n - 2, chain.n - 1):
        for axis in range(3):
            either = []
            for sign in (1, -1):
                there = position.copy()
                there[p, axis] += sign * step
                either.append(energy(there, frame))
            assert -(either[0] - either[1]) / (2 * step) == pytest.approx(forces[axis, p], abs=1e-5 * scale)
            if chain.core[p]:
                either = []
                for sign in (1, -1):
                    turned = frame.copy()
                    turned[p] = Rotation.from_rotvec(sign * step * np.eye(3)[axis]).as_matrix() @ frame[p]
                    either.append(energy(position, turned))
                assert -(either[0] - either[1]) / (2 * step) == pytest.approx(forces[3 + axis, p], abs=1e-5 * scale)
        if not chain.core[p]:
            either = []
            for sign in (1, -1):
                spun = frame.copy()
                c, s = np.cos(sign * step), np.sin(sign * step)
                spun[p] = frame[p] @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
                either.append(energy(position, spun))
            assert -(either[0] - either[1]) / (2 * step) == pytest.approx(forces[6, p], abs=1e-5 * scale)


@pytest.fixture(scope="module")
def started(chain) -> Conformation:
    return closed_start(FIBRE, chain, PARAMETERS, np.random.default_rng(1))


def test_the_start_holds_floors_and_is_relaxed(chain, started):
    """Linkers at their lengths (thermal for one segment: 0.1 nm), turns within half a one of rest."""
    assert len(overlaps(chain, started.position, started.frame)) == 0
    assert abs(excess_turns(chain, started.position, started.frame)) <= 0.5


def test_every_nucleosome_takes_up_about_a_turn(chain, started):
    """The linking number paradox: minus one turn a nucleosome, not minus 1.7 (Simpson, Thoma & Brubaker, Cell 42:799,
    1985); measured since as -1.0 to -1.3 (Segura et al., Nat. Commun. 9:3989, 2018). The chain's own base pairs and
    one conformation give it within half a turn for the circle."""
    linked = linking_number_of(FIBRE, chain, started, PARAMETERS)
    relaxed = len(FIBRE.sequence) * PARAMETERS.twist_per_bp / 360
    assert (linked - relaxed) / 3 == pytest.approx(-1.0, abs=0.4)


def test_sampling_keeps_the_circle_closed_and_linked(chain, started):
    """The running energy stays that of the conformation (Walk.advance checks it), every kind of move but the pivots of
    ends is accepted at times, and the linking number is that of the start."""
    sampled = sample(chain, started.position, started.frame, 60, seed=3)
    walk = sampled.walk
    assert sampled.acceptance["end pivot"] == 0
    assert all(rate > 0.05 for name, rate in sampled.acceptance.items() if name != "end pivot")
    now = Conformation(walk.position, walk.frame, started.wall)
    assert len(overlaps(chain, now.position, now.frame)) == 0
    linked = [linking_number_of(FIBRE, chain, one, PARAMETERS) for one in (started, now)]
    assert linked[0] == linked[1]
    scaffold = build_scaffold(FIBRE, chain, walk.position, walk.frame, PARAMETERS)
    steps = np.linalg.norm(np.roll(scaffold.origin, -1, axis=0) - scaffold.origin, axis=1)
    assert scaffold.circular and steps.min() > 2.0 and steps.max() < 5.0  # the seam's step too


def test_threads_make_no_difference():
    """A circle long enough for windows of trials that several threads weigh at once."""
    n = 40
    fibre = Fibre("ACGT" * (n * REPEAT // 4), tuple(100 + REPEAT * k for k in range(n)), circular=True)
    chain = build_chain(fibre, Parameters(core_charges="formal"))
    assert chain.n >= 200
    start = ring(chain)
    found = []
    for threads in (1, 2):
        set_threads(threads)
        walk = Walk.begin(replace(chain), *start)
        walk.advance(np.random.default_rng(5).random((1500, 11)), strict=False)
        found.append(walk.position)
    assert np.array_equal(*found)


def test_a_linking_number_is_met_or_refused(chain, started):
    linked = linking_number_of(FIBRE, chain, started, PARAMETERS)
    wanted = replace(FIBRE, linking_number=linked - 1)
    now = closed_start(wanted, chain, PARAMETERS, np.random.default_rng(1))
    assert linking_number_of(wanted, chain, now, PARAMETERS) == linked - 1
    with pytest.raises(LinkingNumberError, match="cannot hold"):
        rewound(chain, started.position, started.frame, 30)
    with pytest.raises(LinkingNumberError, match=r"linking number \d+ is beyond .* take one from \d+ to \d+"):
        check_linking_number(replace(FIBRE, linking_number=linked + 30), chain, PARAMETERS)
    check_linking_number(wanted, chain, PARAMETERS)


def beads(n: int, **changes: object) -> Chain:
    """A circle of n beads whose segments have no energy but what is asked for."""
    plain = build_chain(Fibre("ACGT" * 100, (), circular=True), Parameters())
    zero = np.zeros(n)
    values = {"core": np.zeros(n, np.int32), "bp": np.arange(n) * 400 / n, "linker": np.zeros(n, np.int32),
              "rest_length": zero, "stretch_k": zero, "bend_k": zero, "twist_k": zero, "rest_twist": zero,
              "charge": zero, "floor_k": 0.0, "excluded_k": 0.0, "confinement_k": 0.0}
    return replace(plain, **values | changes)


def walked(chain: Chain, start: np.ndarray, weight: np.ndarray, step: np.ndarray, rounds: int, seed: int) -> np.ndarray:
    """Positions (rounds, n, 3) after every 20 trials."""
    frame = np.tile(np.eye(3), (chain.n, 1, 1))
    kernel = FibreKernel(chain).place(start, frame)
    random = np.random.default_rng(seed)
    energy = kernel.energies()
    found = []
    for _ in range(rounds):
        moves = Moves(np.cumsum(weight), step, chain.n)
        energy, _, _ = kernel.run_trials(moves, random.random((20, 11)), False, energy)
        found.append(kernel.conformation()[0])
    return np.array(found)


def test_a_ring_of_springs_is_gaussian():
    """Springs of no length: each term k/2 l^2 has the mean 3/2 (1 - 1/n) kBT, and the mean square radius of gyration is
    (n^2 - 1)/(4 k n) (Zimm & Stockmayer, J. Chem. Phys. 17:1301, 1949, for rings: N b^2/12). Translations and cranks;
    tolerances are four standard errors of blocks."""
    n, k = 5, 2.0
    chain = beads(n, stretch_k=np.full(n, k))
    found = walked(chain, np.random.default_rng(1).standard_normal((n, 3)), np.array([0.5, 0, 0, 0.5, 0, 0]),
                   np.array([1.2, 0, 0, np.pi, 0, 0]), 4200, 2)[200:]
    bonds = np.sum((np.roll(found, -1, axis=1) - found) ** 2, axis=2)
    radius = np.sum((found - found.mean(axis=1, keepdims=True)) ** 2, axis=(1, 2)) / n
    for values, exact in ((0.5 * k * bonds.mean(axis=1), 1.5 * (1 - 1 / n)), (radius, (n**2 - 1) / (4 * k * n))):
        blocks = values[: len(values) // 40 * 40].reshape(40, -1).mean(axis=1)
        assert blocks.mean() == pytest.approx(exact, abs=4 * blocks.std() / 40**0.5)
        assert blocks.std() / 40**0.5 < 0.03 * exact
    # Every bond alike, the closing one too.
    assert bonds.mean(axis=0) == pytest.approx(np.full(n, 3 * (1 - 1 / n) / k), rel=0.1)


@pytest.mark.parametrize("n", [5, 6])
def test_cranks_alone_sample_closed_polygons_evenly(n):
    """Cranks keep all lengths: what they sample are closed polygons of n unit bonds, in which any two bonds have the
    mean cosine -1/(n-1), so that the mean square distance of beads m apart is m (n - m)/(n - 1) (Cantarella &
    Shonkwiler, Ann. Appl. Probab. 26:549, 2016)."""
    chain = beads(n, rest_length=np.ones(n), stretch_k=np.ones(n))
    angle = 2 * np.pi * np.arange(n) / n
    start = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1) / (2 * np.sin(np.pi / n))
    found = walked(chain, start, np.array([0, 0, 0, 1.0, 0, 0]), np.full(6, np.pi), 2000, 3)
    assert np.linalg.norm(np.roll(found, -1, axis=1) - found, axis=2) == pytest.approx(1.0, abs=1e-9)
    for m in range(2, n // 2 + 1):
        square = np.sum((np.roll(found, -m, axis=1) - found) ** 2, axis=2)
        blocks = square.mean(axis=1).reshape(40, -1).mean(axis=1)
        error = blocks.std() / 40**0.5
        assert blocks.mean() == pytest.approx(m * (n - m) / (n - 1), abs=4 * error) and error < 0.03
        assert square.mean(axis=0) == pytest.approx(np.full(n, m * (n - m) / (n - 1)), rel=0.08)


@pytest.mark.parametrize("over", [0.0, 0.6, -1.0])
def test_a_twisted_circle_is_flat_below_its_threshold(over):
    """At rest a circle of DNA that is overwound by `over` turns is a flat ring, unless over > sqrt(3) A/C (Zajac, J.
    Appl. Mech. 29:136, 1962; here 1.17): bend 2 pi^2 P/L, and twist (2 pi over)^2 C/(2 L kT).
    Exact of regular polygons, so that tolerance is how far minimisation goes."""
    n, length = 30, 90.0
    parameters = Parameters()
    stiff = parameters.twist_rigidity / parameters.thermal_energy
    part = length / n
    chain = beads(n, rest_length=np.full(n, part), stretch_k=np.full(n, 80.0), bend_k=np.full(n, 50.0 / part),
                  twist_k=np.full(n, stiff / part), rest_twist=np.full(n, -2 * np.pi * over / n))
    angle = 2 * np.pi * np.arange(n) / n
    radius = part / (2 * np.sin(np.pi / n))
    position = radius * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    tangent = np.roll(position, -1, axis=0) - position
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    up = np.tile([0.0, 0.0, 1.0], (n, 1))
    frame = np.stack([tangent, up, np.cross(tangent, up)], axis=2)  # a ribbon without twist
    random = np.random.default_rng(1)
    start = Conformation(position + 0.1 * random.standard_normal((n, 3)), frame, np.zeros(3))
    now, force = advance(chain, start, 3000, np.zeros((7, n + 1)), minimise=True, time_step=0.03)
    found = dict(zip(TERMS, kernel_energies(chain, now.position, now.frame), strict=True))
    assert force < 1e-3
    assert found["bend"] == pytest.approx(2 * np.pi**2 * 50.0 / length, rel=2e-3)
    assert found["twist"] == pytest.approx((2 * np.pi * over) ** 2 * stiff / (2 * length), rel=2e-3, abs=1e-4)


def test_the_linking_number_is_gauss_and_whole():
    """Of rings with a given number of turns; a helix and its mirror image have opposite signs."""
    n = 60
    angle = 2 * np.pi * np.arange(n) / n
    origin = 100 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    tangent = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    up = np.tile([0.0, 0.0, 1.0], (n, 1))
    for turns in (-3, 0, 5):
        y = np.cos(turns * angle)[:, None] * up + np.sin(turns * angle)[:, None] * np.cross(tangent, up)
        assert linking_number(origin, np.stack([np.cross(y, tangent), y, tangent], axis=2)) == turns


FOUR = Fibre("ACGT" * 210, tuple(105 + 210 * k for k in range(4)), circular=True)
ACROSS = Contact((-10 % 840, 850), (410, 430))  # linker before the first nucleosome with the one opposite


def moved(contact: Contact, by: int) -> Contact:
    """The contact, ``by`` base pairs further on in a circle of 840."""
    begun = [(first + by) % 840 for first, _ in (contact.first, contact.second)]
    return Contact(*((begin, begin + end - first) for begin, (first, end) in zip(
        begun, (contact.first, contact.second), strict=True)))


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_a_contact_across_the_seam_is_as_one_inside(repeats):
    """Of four equal repeats: the same particles of other repeats, and the same energy and forces where they lie."""
    one, other = (build_chain(replace(FOUR, contacts=(contact,)), PARAMETERS)
                  for contact in (ACROSS, moved(ACROSS, 210 * repeats)))
    shift = repeats * one.n // 4
    assert sorted((one.contact[0] + shift) % one.n) == sorted(other.contact[0])
    position, frame = shaken(one, 5)
    there = np.roll(position, shift, axis=0), np.roll(frame, shift, axis=0)
    restraint = TERMS.index("restraint")
    assert kernel_energies(one, position, frame)[restraint] > 0
    assert kernel_energies(other, *there) == pytest.approx(kernel_energies(one, position, frame), rel=1e-9)


def test_neighbours_across_the_seam_are_no_contact():
    """Linker beads on either side of the seam are near each other anyway, as those within a linker are."""
    assert len(build_chain(replace(FOUR, contacts=(Contact((832, 834), (4, 6)),)), PARAMETERS).contact) == 0
    wells = build_chain(replace(FOUR, contact_energies=(ContactEnergy((820, 860), (410, 430), 0.5, -1.0),)), PARAMETERS)
    held = build_chain(replace(FOUR, contacts=(ACROSS,)), PARAMETERS)
    assert sorted(wells.wells.pair[0]) == sorted(held.contact[0])


@pytest.mark.parametrize("by", [0, 420])
def test_a_contact_brings_two_places_of_a_circle_together(by):
    """Across the seam and inside: within one and a half times the 12 nm of a restraint, where the same fold without it
    has the places 23 nm apart."""
    eight = Fibre("ACGT" * 420, tuple(105 + 210 * k for k in range(8)), circular=True)
    begun = (-10 + by) % 1680, 830 + by
    contact = Contact(*((first, first + 20) for first in begun))
    scaffold = fold(replace(eight, contacts=(contact,)), Parameters(), 20, 1, threads=1)
    (entry,) = scaffold.contacts
    one, other = (scaffold.origin[(first + 10) % 1680] for first in begun)
    assert entry["kept"] and np.linalg.norm(one - other) < 180 and scaffold.floor_violations == 0
    assert np.linalg.norm(np.roll(scaffold.origin, -1, axis=0) - scaffold.origin, axis=1).max() < 5.0  # it is closed
    if not by:
        free = fold(eight, Parameters(), 20, 1, threads=1).origin
        assert np.linalg.norm(free[0] - free[840]) > 200
