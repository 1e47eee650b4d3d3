"""Discrete surface charges: each step against a case with a known answer, and the bundled sets."""

import importlib.util
import sys

import numpy as np
import pytest

from mesoscale import disco
from mesoscale.core_charges import at_salt, bundled_cores, core_charges, template
from mesoscale.cores import crystal_core
from mesoscale.disco import (
    ChargedAtoms,
    Envelope,
    Potential,
    debye_hueckel_field,
    farthest_points,
    field_points,
    fit_charges,
    read_dx,
    read_pqr,
    relative_errors,
    solve_poisson_boltzmann,
    write_pqr,
)
from mesoscale.model import Parameters

BJERRUM, KAPPA = 0.7, 1.3


def random_numbers(seed):
    return np.random.Generator(np.random.Philox(key=seed))


def shell(count, inner, outer, seed):
    """Points in a spherical shell."""
    random = random_numbers(seed)
    direction = random.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    return direction * random.uniform(inner, outer, count)[:, None]


def test_envelope_of_one_atom_is_a_sphere():
    envelope = Envelope.around(np.array([[1.0, -2.0, 0.5]]), 1.0)
    points = np.array([1.0, -2.0, 0.5]) + shell(500, 0.1, 1.2, 1)
    expected = np.linalg.norm(points - [1.0, -2.0, 0.5], axis=1) - disco.ATOM_RADIUS
    # Distances beyond the first layer are measured from grid nodes: half a cell's diagonal, seen at a slant.
    assert np.abs(envelope.distance(points) - expected).max() < 0.05
    surface = np.linalg.norm(envelope.surface() - [1.0, -2.0, 0.5], axis=1)
    assert np.abs(surface - disco.ATOM_RADIUS).max() < 0.05


def test_envelope_fills_what_the_probe_cannot_enter():
    """Two plates of atoms, 1.6 nm and 3.4 nm apart: the first gap is narrower than the probe of 2 nm."""
    grid = np.stack(np.meshgrid(np.arange(-2, 2.1, 0.25), np.arange(-2, 2.1, 0.25)), axis=-1).reshape(-1, 2)
    for gap, closed in ((1.6, True), (3.4, False)):
        atoms = np.concatenate([np.column_stack([grid, np.full(len(grid), z)]) for z in (0.0, gap)])
        middle = Envelope.around(atoms, 0.5).distance(np.array([[0.0, 0.0, gap / 2]]))[0]
        assert (middle < 0) == closed


def test_farthest_points_are_evenly_spread():
    sphere = shell(4000, 1.0, 1.0, 3)
    chosen = farthest_points(sphere, 100)
    apart = np.linalg.norm(chosen[:, None] - chosen[None], axis=2) + 9 * np.eye(100)
    # A hundred caps that do not overlap: radius at most sqrt(4/100); greedy choice is within a factor of two.
    assert 0.5 * 2 * np.sqrt(4 / 100) < apart.min() < 2 * np.sqrt(4 / 100)
    assert apart.min(axis=1).max() < 2 * apart.min()


def test_unit_field_is_the_gradient_of_the_debye_hueckel_potential():
    site, point, step = np.array([[0.1, 0.2, -0.3]]), np.array([[1.0, 0.4, 0.9]]), 1e-5

    def potential(x):
        r = np.linalg.norm(x - site[0])
        return BJERRUM * np.exp(-KAPPA * r) / r

    field = debye_hueckel_field(site, point, BJERRUM, KAPPA)[0, :, 0]
    for axis in range(3):
        shift = np.eye(3)[axis] * step
        assert field[axis] == pytest.approx(-(potential(point[0] + shift) - potential(point[0] - shift)) / 2 / step)


def test_charges_that_made_a_field_are_found_again():
    random = random_numbers(4)
    sites = farthest_points(shell(2000, 2.0, 2.0, 5), 25)
    charges = random.uniform(-3, 3, 25)
    points = shell(4000, 2.5, 4.5, 6)
    field = debye_hueckel_field(sites, points, BJERRUM, KAPPA) @ charges
    found = fit_charges(sites, points, field, BJERRUM, KAPPA)
    assert np.abs(found.charge - charges).max() < 1e-3 and found.mean_error < 1e-4
    assert found.ridge == disco.RIDGES[0]  # exact data need no ridge


def test_a_charged_sphere_by_its_analytic_field():
    """Linear Poisson-Boltzmann outside a sphere of radius a: as of Q exp(kappa a)/(1 + kappa a) at its centre."""
    radius, total = 2.0, 20.0
    points = shell(6000, 2.5, 4.5, 7)
    effective = total * np.exp(KAPPA * radius) / (1 + KAPPA * radius)
    field = debye_hueckel_field(np.zeros((1, 3)), points, BJERRUM, KAPPA)[:, :, 0] * effective
    found = fit_charges(farthest_points(shell(6000, radius, radius, 8), 150), points, field, BJERRUM, KAPPA)
    assert found.mean_error < 0.02
    # Many like charges on the sphere: each acts as if at the centre times sinh(kappa a)/(kappa a).
    assert found.charge.sum() == pytest.approx(effective * KAPPA * radius / np.sinh(KAPPA * radius), rel=0.01)


def test_held_out_error_notices_a_field_that_charges_cannot_make():
    points = shell(4000, 2.5, 4.5, 9)
    noise = random_numbers(10).standard_normal((4000, 3))
    found = fit_charges(farthest_points(shell(2000, 2.0, 2.0, 5), 25), points, noise, BJERRUM, KAPPA)
    assert found.mean_error > 0.9


def test_gradient_of_a_grid_is_of_fourth_order():
    errors = []
    for spacing in (0.2, 0.1):
        axes = [np.arange(-1, 1 + spacing / 2, spacing)] * 3
        x, y, z = np.meshgrid(*axes, indexing="ij")
        potential = Potential(np.full(3, -1.0), np.full(3, spacing), np.sin(2 * x) * np.exp(y) * np.cos(z))
        middle = np.full((1, 3), len(axes[0]) // 2)
        errors.append(np.abs(potential.field(middle)[0] - [-2.0, 0.0, 0.0]).max())
    assert errors[1] < errors[0] / 12


def test_reading_the_files_of_the_other_programs(tmp_path):
    (tmp_path / "a.pqr").write_text(
        "REMARK x\nATOM 1 N ALA 1 10.0 -20.0 5.0 0.5 1.8\nATOM 2 C ALA 1 1 2 3 -0.25 1.9\nEND\n"
    )
    atoms = read_pqr(tmp_path / "a.pqr")
    assert np.allclose(atoms.position, [[1, -2, 0.5], [0.1, 0.2, 0.3]]) and np.allclose(atoms.charge, [0.5, -0.25])
    assert np.allclose(atoms.radius, [0.18, 0.19])
    write_pqr(tmp_path / "again.pqr", atoms)
    again = read_pqr(tmp_path / "again.pqr")
    assert all(np.allclose(getattr(again, key), getattr(atoms, key)) for key in ("position", "charge", "radius"))
    (tmp_path / "b.pqr").write_text("REMARK nothing\n")
    with pytest.raises(ValueError, match="no atoms"):
        read_pqr(tmp_path / "b.pqr")
    (tmp_path / "c.dx").write_text(
        "# x\nobject 1 class gridpositions counts 1 2 3\norigin 10 20 -30\ndelta 1.5 0 0\ndelta 0 2 0\ndelta 0 0 2.5\n"
        "object 2 class gridconnections counts 1 2 3\nobject 3 class array type double rank 0 items 6 data follows\n"
        "1 2 3\n4 5 6\nattribute \"dep\" string \"positions\"\n"
    )
    potential = read_dx(tmp_path / "c.dx")
    assert np.allclose(potential.origin, [1, 2, -3]) and np.allclose(potential.spacing, [0.15, 0.2, 0.25])
    assert potential.value[0, 1, 2] == 6


def test_bundled_sets_meet_their_promise():
    data = template("core_charges.json")
    assert data["cores"]["xenopus"]["salt"] == [0.01, 0.02, 0.05, 0.1, 0.15, 0.2] and len(data["sites"]) == 300
    assert set(bundled_cores()) >= {"xenopus", "human", "mouse", "fly", "yeast", "human H2A.Z", "human CENP-A"}
    for core in data["cores"].values():
        charges = np.array(core["charge"])
        assert charges.shape == (len(core["salt"]), 300) and max(core["mean_field_error"]) <= 0.09
        assert np.allclose(charges.sum(axis=1), core["net_charge"], atol=0.2)  # 300 charges, rounded to 0.001 e
        assert np.abs(charges).max() < 3.5  # no large opposite charges side by side


def test_charges_between_the_salts_are_interpolated():
    low, high = core_charges(0.05)[1], core_charges(0.1)[1]
    between = core_charges(0.07)[1]
    share = (np.sqrt(0.07) - np.sqrt(0.05)) / (np.sqrt(0.1) - np.sqrt(0.05))
    assert np.allclose(between, (1 - share) * low + share * high)
    assert np.allclose(at_salt([0.1, 0.2], np.array([[1.0], [2.0]]), 0.2), 2.0)
    for salt in (0.005, 0.3):
        with pytest.raises(ValueError, match="from 10 to 200 mmol/L"):
            core_charges(salt)


def test_a_shorter_wrap_leaves_out_the_sites_of_free_dna():
    whole, shorter = core_charges(0.15), core_charges(0.15, 63, 63)
    assert 30 < len(whole[0]) - len(shorter[0]) < 60
    path = np.array(template("nucleosome_path_1kx5.json")["origin"]) / 10
    lost = whole[0][~(whole[0][:, None] == shorter[0][None]).all(axis=2).any(axis=1)]
    ends = np.concatenate([path[:12], path[-12:]])
    assert np.linalg.norm(lost[:, None] - ends[None], axis=2).min(axis=1).max() < 2.0
    assert len(crystal_core(127).site) == len(shorter[0]) + 50


def test_far_field_is_that_of_a_particle_with_its_net_sign():
    """Along the axis of the core the potential is negative and decays with the screening length."""
    core = crystal_core(rigid_tails=False)
    parameters = Parameters()
    heights = np.array([8.0, 9.0])
    r = np.linalg.norm(np.column_stack([[0, 0], [0, 0], heights])[:, None] - core.site[None], axis=2)
    potential = (core.site_charge * np.exp(-parameters.kappa * r) / r).sum(axis=1)
    assert potential[0] < 0
    assert 0.8 < np.log(potential[0] / potential[1]) / parameters.kappa < 1.4


@pytest.mark.skipif(disco.apbs_program() is None, reason="needs apbs: pip install 'chromabuild[apbs]'")
def test_the_field_around_an_ion_is_that_of_debye_and_hueckel(tmp_path):
    """A sphere of radius a that no salt enters nearer than its own radius b: outside, phi = l_B q exp(-kappa (r-a-b))
    / (1 + kappa (a+b)) / r (Debye & Hueckel 1923). At 1 e and 1 nm the nonlinear equation differs from the linear one
    by phi^2/6 < 1 %, and finite differences on the grid of 0.12 nm by kappa^2 h^2/12 = 0.2 %."""
    parameters = Parameters(salt=0.15)
    ion = ChargedAtoms(np.zeros((1, 3)), np.ones(1), np.ones(1))
    potential = solve_poisson_boltzmann(ion, parameters, tmp_path)
    points, field = field_points(Envelope.around(ion.position, disco.SHELL[1]), potential)
    r, outer = np.linalg.norm(points, axis=1), 1.0 + 0.1 * disco.ION_RADIUS
    points, field, r = points[r > outer + 0.1], field[r > outer + 0.1], r[r > outer + 0.1]
    expected = (parameters.bjerrum_length * np.exp(-parameters.kappa * (r - outer)) * (1 + parameters.kappa * r)
                / (1 + parameters.kappa * outer) / r**3)[:, None] * points
    errors = np.linalg.norm(field - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(errors) < 0.01 and np.percentile(errors, 95) < 0.02


def test_a_missing_program_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "m.pqr").write_text("ATOM 1 N ALA 1 0.0 0.0 0.0 0.5 1.8\n")
    monkeypatch.setattr(sys, "argv", ["disco", str(tmp_path / "m.pqr"), str(tmp_path / "out.json")])
    assert disco.main() == 6
    assert "apbs is not on the PATH" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["disco", str(tmp_path / "none.pqr"), str(tmp_path / "out.json")])
    assert disco.main() == 3
    assert not (tmp_path / "out.json").exists()


def test_relative_errors_by_hand():
    points = np.array([[2.0, 0.0, 0.0]])
    field = debye_hueckel_field(np.zeros((1, 3)), points, BJERRUM, KAPPA)[:, :, 0]
    assert relative_errors(np.zeros((1, 3)), np.array([1.1]), points, field, BJERRUM, KAPPA)[0] == pytest.approx(0.1)
