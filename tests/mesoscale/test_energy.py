"""The energy against analytic limits, and the Fortran kernel against the NumPy statement of the model."""

from dataclasses import replace

import numpy as np
import pytest
from support.mixed_fibre import mixed_fibre

from mesoscale.cores import crystal_core, crystal_path, transported
from mesoscale.energy import energies, mechanical_energies, overlaps, pair_energies, segment_distance
from mesoscale.fibre import Contact, Fibre
from mesoscale.kernels import kernel_energies
from mesoscale.model import TERMS, Parameters, build_chain, segment_ends, straight_conformation

FIBRE = Fibre("ACGT" * 160, (95, 275, 445), contacts=(Contact((20, 30), (600, 620), 2.0),))


def disturbed(chain, seed, size):
    """A random conformation near the straight one, bead frames along their segments."""
    random = np.random.Generator(np.random.Philox(key=seed))
    position, frame = straight_conformation(chain)
    position = position + size * random.standard_normal(position.shape)
    for p in chain.cores:
        q, r = np.linalg.qr(np.eye(3) + size * random.standard_normal((3, 3)))
        q = q * np.sign(np.diag(r))
        frame[p] = (q if np.linalg.det(q) > 0 else np.eye(3)) @ frame[p]
    return position, along_segments(chain, position, frame)


def along_segments(chain, position, frame):
    start, end = segment_ends(chain, position, frame)
    direction = (end - start) / np.linalg.norm(end - start, axis=1)[:, None]
    frame = frame.copy()
    for p in range(chain.n - 1):
        if chain.core[p] == 0:
            b = transported(frame[p, :, 1], frame[p, :, 0], direction[p])
            frame[p] = np.stack([direction[p], b, np.cross(direction[p], b)], axis=1)
    return frame


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("fibre", "size"), [(FIBRE, 0.02), (FIBRE, 0.5), (mixed_fibre(), 0.5)])
def test_kernel_and_numpy_agree_on_every_term(seed, fibre, size):
    parameters = Parameters(confinement_radius=4.0, container=(12.0, 10.0, 8.0), contact_distance=2.0)
    chain = build_chain(fibre, parameters)
    conformation = disturbed(chain, seed, size)
    expected = energies(chain, *conformation)
    assert tuple(expected) == tuple(k for k in TERMS)
    found = dict(zip(TERMS, kernel_energies(chain, *conformation), strict=True))
    for term in TERMS:  # sums of up to 1e5 rounded terms
        assert found[term] == pytest.approx(expected[term], rel=1e-10, abs=1e-10), term
        exercised = term != "excluded" and (term, size) != ("floor", 0.02)
        assert abs(expected[term]) > 1e-3 or not exercised, f"{term} is not exercised"


def test_straight_relaxed_linkers_carry_no_strain():
    # Two cores behind 30 bp do not touch, so no extra twist is laid in.
    chain = build_chain(Fibre("A" * 400, (100, 277)), Parameters())
    strain = mechanical_energies(chain, *straight_conformation(chain))
    assert max(strain.values()) < 1e-20


def test_linkers_are_exact_to_the_base_pair():
    parameters = Parameters()
    for linker in range(5, 60):
        fibre = Fibre("A" * (2 * 147 + linker), (73, 73 + 147 + linker))
        chain = build_chain(fibre, parameters)
        assert chain.rest_length.sum() == pytest.approx((linker + 1) * parameters.rise, rel=1e-12)
        turned = np.degrees(chain.rest_twist.sum()) - (linker + 1) * parameters.twist_per_bp
        assert turned / 360 == pytest.approx(round(turned / 360), abs=1e-9)
        charge = parameters.linker_charge * (linker + 1) * parameters.rise
        assert chain.charge.sum() == pytest.approx(charge, rel=1e-12)


def test_stretch_bend_and_twist_of_one_joint():
    parameters = Parameters()
    chain = build_chain(Fibre("A" * 207, (73,)), parameters)  # core, then 60 bp of free DNA
    position, frame = straight_conformation(chain)
    p, (length, stretched, bent, twisted) = chain.n - 1, (chain.rest_length[-1], 0.1, 0.3, 0.2)
    tangent, b = frame[p - 1][:, 0], frame[p - 1][:, 1]

    moved = position.copy()
    moved[p] += stretched * tangent
    stiffness = parameters.stretch_modulus / length / (0.0138064852 * parameters.temperature)
    expected = 0.5 * stiffness * stretched**2
    assert mechanical_energies(chain, moved, frame)["stretch"] == pytest.approx(expected, rel=1e-9)

    moved = position.copy()
    moved[p] = position[p - 1] + length * (np.cos(bent) * tangent + np.sin(bent) * b)
    expected = 0.5 * 50.0 / length * bent**2
    assert mechanical_energies(chain, moved, along_segments(chain, moved, frame))["bend"] == pytest.approx(expected)

    spun = frame.copy()
    c, s = np.cos(twisted), np.sin(twisted)
    spun[p - 1] = frame[p - 1] @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    expected = 0.5 * chain.twist_k[p - 2] * twisted**2
    assert mechanical_energies(chain, position, spun)["twist"] == pytest.approx(expected, rel=1e-9)


def test_screened_charges_by_hand():
    parameters = Parameters(excluded_k=0.0)
    chain = build_chain(Fibre("A" * 190, (73,)), parameters)
    shape = replace(chain.shape, site=np.zeros((1, 3)), site_charge=np.zeros(1))
    chain = replace(chain, shape=shape, cutoff=50.0)
    position, frame = np.zeros((chain.n, 3)), np.tile(np.eye(3), (chain.n, 1, 1))
    position[1:, 2] = 100.0 + np.cumsum(1.0 + np.arange(chain.n - 1))
    found = pair_energies(chain, position, frame)["bead-bead electrostatic"]
    q, kappa, bjerrum = chain.charge, parameters.kappa, parameters.bjerrum_length
    pairs = [(i, j) for i in range(1, chain.n) for j in range(i + 2, chain.n)]
    expected = 0.0
    for i, j in pairs:
        r = abs(position[i, 2] - position[j, 2])
        expected += bjerrum * q[i] * q[j] * np.exp(-kappa * r) / r
    assert pairs and found == pytest.approx(expected, rel=1e-9)  # the shift at 50 nm is below 1e-29


def test_constants_of_the_published_model():
    parameters = Parameters()
    assert parameters.kappa == pytest.approx(1.2853, abs=1e-4)  # 0.15 M, 293.15 K
    assert 3.0 * parameters.linker_charge == pytest.approx(-24.088, abs=2e-3)  # a bead of 3 nm at 150 mM
    assert parameters.bjerrum_length == pytest.approx(0.7125, rel=2e-3)  # there with a dielectric constant of 80 sharp
    chain = build_chain(FIBRE, parameters)
    per_bead = chain.rest_length / 3.0
    assert chain.twist_k[4] * per_bead[4] == pytest.approx(24.7, rel=2e-3)
    assert chain.bend_k[4] * per_bead[4] == pytest.approx(50 / 3)


@pytest.mark.parametrize("salt", [0.01, 0.15])
def test_truncation_bound_is_the_integral_beyond_the_cutoff(salt):
    parameters = Parameters(salt=salt)
    r = parameters.cutoff + np.linspace(0, 30 / parameters.kappa, 200001)
    potential = parameters.bjerrum_length * np.exp(-parameters.kappa * r) / r
    outside = 4 * np.pi * np.trapezoid(potential * r**2, r)
    assert parameters.truncation_bound == pytest.approx(outside, rel=1e-6)


def test_the_core_is_the_crystal_particle():
    core = crystal_core()
    # Effective charges: fewer than the -228 e of the atoms without tails, and the tails' +90 e in the model's scale.
    assert -228 < core.site_charge.sum() - 1.12 * 90 < -150
    origin, frame = crystal_path()
    assert origin.shape == (147, 3) and np.allclose(np.einsum("nij,nik->njk", frame, frame), np.eye(3), atol=1e-6)
    assert abs(origin[73, 1]) < 0.1 and origin[73, 0] > 3.5  # the dyad lies on x
    assert origin[-1, 2] - origin[0, 2] > 3.5  # and the path climbs
    # Linkers continue the axis of the crystal's last turn, which is straight; its arms cross at 43 degrees.
    leaving, arriving = core.joint_frame
    for axis, turn in ((leaving[:, 0], origin[-11:]), (arriving[:, 0], origin[:11])):
        chord = turn[-1] - turn[0]
        assert axis @ chord / np.linalg.norm(chord) > np.cos(np.radians(5))
    assert np.degrees(np.arccos(-leaving[:, 0] @ arriving[:, 0])) == pytest.approx(43, abs=2)
    assert np.allclose(np.linalg.det(core.joint_frame), 1) and np.allclose(leaving.T @ leaving, np.eye(3))
    shorter = crystal_core(127)
    assert np.allclose(shorter.joint_point, origin[[136, 10]])
    assert shorter.site_charge.sum() > core.site_charge.sum() + 10  # less DNA


def test_energy_does_not_depend_on_where_the_fibre_lies():
    chain = build_chain(FIBRE, Parameters())
    position, frame = disturbed(chain, 5, 0.1)
    q = np.linalg.qr(np.random.Generator(np.random.Philox(key=9)).standard_normal((3, 3)))[0]
    q *= np.sign(np.linalg.det(q))
    before = kernel_energies(chain, position, frame)
    after = kernel_energies(chain, position @ q.T + [5.0, -3.0, 2.0], q @ frame)
    assert np.allclose(before, after, rtol=1e-9, atol=1e-9)


def test_floor_keeps_axes_apart_and_lets_distant_bodies_alone():
    parameters = Parameters()
    # Far apart: DNA that leaves one of two near cores straight runs into the other.
    chain = build_chain(Fibre(FIBRE.sequence, (95, 400)), parameters)
    position, frame = straight_conformation(chain)
    far = position.copy()
    assert overlaps(chain, position, frame).max(initial=0.0) < 0.6  # a straight linker grazes its own core's tails
    far[chain.cores[1]] = far[chain.cores[0]] + [1.0, 0.0, 0.0]
    assert overlaps(chain, far, frame).max() > 1.0
    # Wrapped DNA of two cores face to face: no sphere contact once the axes are 2.26 nm apart.
    dna = crystal_core().sphere_radius[0]
    assert (2 * dna) ** 2 - (1.5 * 0.334) ** 2 >= (2 * parameters.dna_radius) ** 2


@pytest.mark.parametrize("seed", range(20))
def test_segment_distance_against_sampling(seed):
    p1, p2, q1, q2 = np.random.Generator(np.random.Philox(key=seed)).uniform(-2, 2, (4, 3))
    s = np.linspace(0, 1, 401)
    grid = np.linalg.norm((p1 + s[:, None] * (p2 - p1))[:, None] - (q1 + s[:, None] * (q2 - q1))[None], axis=2)
    # The grid cannot be below the minimum, nor above by more than half a grid step of both segments.
    step = (np.linalg.norm(p2 - p1) + np.linalg.norm(q2 - q1)) / 800
    assert grid.min() - step <= segment_distance(p1, p2, q1, q2) <= grid.min() + 1e-12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dyads": (50,)}, "beyond the 400 bp"),
        ({"dyads": (100, 200)}, "nucleosomes 0 and 1 share 47 bp"),
        ({"dyads": (100,), "wrapped_length": 146}, "146 is even"),
    ],
)
def test_impossible_fibres(arguments, words):
    with pytest.raises(ValueError, match=words):
        Fibre("ACGT" * 100, **arguments)
