"""Transforms of a sphere, the functionals at a point, and inverse square roots."""

import os
import shutil
import subprocess

import numpy as np
import pytest


def run_driver(driver, *words: str, ranks: int = 1, text: str = "") -> str:
    call = [str(driver), *words]
    if ranks > 1:
        call = [shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *call]
    done = subprocess.run(call, input=text, capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, OMP_NUM_THREADS="1", OMPI_MCA_mpi_yield_when_idle="1"))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [1, 3, 22])
def test_transforms_of_a_sphere(qm_driver, ranks):
    """22 ranks: more than the 20 planes, so that some hold none. Values are of order one, and a transform adds a few
    roundings a pass."""
    found = {name: float(value) for name, value in (
        line.split() for line in run_driver(qm_driver, "transforms", ranks=ranks).splitlines())}
    assert set(found) == {"round_trip", "direct_sum", "electrons", "squares", "potential", "density", "orthonormal",
                          "symmetric"}
    assert max(found.values()) < 1e-12
    assert found["round_trip"] < 1e-13


def test_inverse_square_root(qm_driver):
    found = [float(line.split()[1]) for line in run_driver(qm_driver, "root").splitlines()]
    assert len(found) == 2
    assert max(found) < 1e-12


def functional(driver, name: str, rho: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """f, df/drho and df/dgamma, each (n,)."""
    text = "".join(f"{r:.17e} {g:.17e}\n" for r, g in zip(rho, gamma, strict=True))
    return np.array([line.split() for line in run_driver(driver, "xc", name, text=text).splitlines()], float).T


@pytest.mark.parametrize("name", ["PZ", "PW92", "PADE", "BLYP", "PBE"])
def test_potentials_are_derivatives(qm_driver, name):
    """Central differences over ten decades of the density, the fading of gradient terms at 1e-8 to 1e-6 included."""
    rho = np.repeat(np.logspace(-8.5, 1.5, 41), 3)
    gamma = np.tile([1e-4, 0.3, 3.0], 41) * rho ** (8 / 3) * 9
    _, d_rho, d_gamma = functional(qm_driver, name, rho, gamma)
    step = 1e-5
    up, down = (functional(qm_driver, name, rho * (1 + s), gamma)[0] for s in (step, -step))
    kinks = np.abs(np.log(rho / (3 / (4 * np.pi)))) < 1e-3  # PZ joins two forms at r_s = 1
    np.testing.assert_allclose(d_rho[~kinks], ((up - down) / (2 * step * rho))[~kinks], rtol=1e-6)
    up, down = (functional(qm_driver, name, rho, gamma * (1 + s))[0] for s in (1e-3, -1e-3))
    scale = np.abs(up) / gamma
    np.testing.assert_allclose(d_gamma / scale, (up - down) / (2e-3 * gamma) / scale, atol=1e-7)


def test_limits_of_exchange_and_correlation(qm_driver):
    """r_s = 5: PW92's correlation is -0.02822 Ha an electron (their table, Ceperley and Alder's value). PBE's exchange
    grows with the gradient by at most 1.804; without one, PBE is PW92."""
    rho = np.array([3 / (4 * np.pi * 5.0 ** 3)])
    exchange = -0.75 * (3 / np.pi) ** (1 / 3) * rho ** (4 / 3)
    pw92 = functional(qm_driver, "PW92", rho, np.zeros(1))[0]
    assert (pw92 - exchange) / rho == pytest.approx([-0.0282], abs=1e-4)
    assert functional(qm_driver, "PBE", rho, np.zeros(1))[0] == pytest.approx(pw92, rel=1e-14)
    # In a steep gradient correlation vanishes and exchange reaches its bound.
    steep = functional(qm_driver, "PBE", rho, 1e12 * rho ** (8 / 3))[0]
    assert steep == pytest.approx(1.804 * exchange, rel=1e-4)
