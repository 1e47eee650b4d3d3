"""A potential of copper in closed form, its tables as funcfl and setfl files; energies and forces in double.

The form is that of Cleri and Rosato, Phys. Rev. B 48, 22 (1993), brought to zero between 4 and 5 angstrom by a
polynomial: rho(r) = xi^2 exp(-2 q (r/r0 - 1)) s(r), phi(r) = 2 A exp(-p (r/r0 - 1)) s(r), F(rho) = -rho^(1/2); eV and
angstrom.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

A, XI, P, Q, R0 = 0.0855, 1.224, 10.960, 2.278, 3.615 / 2**0.5
BEGIN, CUTOFF = 4.0, 5.0
DISTANCES = np.linspace(0.0, 5.05, 2021)
DENSITIES = np.linspace(0.0, 80.0, 4001)
CHARGE_SQUARED = 27.2 * 0.529  # eV angstrom, as funcfl files have it


def _switch(r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    u = np.clip((r - BEGIN) / (CUTOFF - BEGIN), 0.0, 1.0)
    return 1 - u**3 * (10 - 15 * u + 6 * u**2), -30 * u**2 * (1 - u) ** 2 / (CUTOFF - BEGIN)


def _switched_exponential(r: np.ndarray, factor: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    value = factor * np.exp(-rate * (r / R0 - 1))
    switch, slope = _switch(r)
    return value * switch, value * (slope - rate / R0 * switch)


def density(r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Density of an atom at a distance, and its slope."""
    return _switched_exponential(r, XI**2, 2 * Q)


def pair_energy(r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energy of a pair (eV), and its slope."""
    return _switched_exponential(r, 2 * A, P)


def embedding(rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energy of an atom in a density (eV), and its slope."""
    return -np.sqrt(rho), -0.5 / np.sqrt(rho)


def _columns(values: np.ndarray) -> str:
    padded = [f"{v:.16e}" for v in values]
    return "".join(" ".join(padded[k:k + 5]) + "\n" for k in range(0, len(padded), 5))


def write_funcfl(path: Path) -> None:
    """Pairs by their effective charge."""
    charge = np.sqrt(DISTANCES * pair_energy(DISTANCES)[0] / CHARGE_SQUARED)
    path.write_text(
        f"copper, closed form\n29 63.55 3.615 FCC\n{len(DENSITIES)} {DENSITIES[1]:.16g} "
        f"{len(DISTANCES)} {DISTANCES[1]:.16g} {CUTOFF}\n"
        + _columns(-np.sqrt(DENSITIES)) + _columns(charge) + _columns(density(DISTANCES)[0]))


def write_setfl(path: Path, names: tuple[str, ...] = ("Cu",)) -> None:
    """All elements but Cu are made of zeros."""
    blocks = []
    for name in names:
        on = float(name == "Cu")
        tables = _columns(-on * np.sqrt(DENSITIES)) + _columns(on * density(DISTANCES)[0])
        blocks.append("29 63.55 3.615 FCC\n" + tables)
    pairs = [_columns(float(names[i] == names[j] == "Cu") * DISTANCES * pair_energy(DISTANCES)[0])
             for i in range(len(names)) for j in range(i + 1)]
    path.write_text("copper\nclosed form\n\n" + f"{len(names)} {' '.join(names)}\n{len(DENSITIES)} {DENSITIES[1]:.16g} "
                    f"{len(DISTANCES)} {DISTANCES[1]:.16g} {CUTOFF}\n" + "".join(blocks + pairs))


def pairs_within(position: np.ndarray, box: np.ndarray, cutoff: float) -> tuple[np.ndarray, ...]:
    """Indices i < j, vectors (n, 3) from j to i in the nearest image, and distances of all pairs within the cutoff."""
    i, j = np.triu_indices(len(position), 1)
    apart = position[i] - position[j]
    apart -= box * np.round(apart / box)
    r = np.linalg.norm(apart, axis=1)
    near = r < cutoff
    return i[near], j[near], apart[near], r[near]


def energy_forces_virial(position: np.ndarray, box: np.ndarray) -> tuple[float, np.ndarray, float]:
    """Energy (eV), forces (n, 3; eV/angstrom) and the trace of the virial (eV) of a periodic system."""
    i, j, apart, r = pairs_within(position, box, CUTOFF)
    rho, rho_slope = density(r)
    phi, phi_slope = pair_energy(r)
    n = len(position)
    total = np.bincount(i, rho, n) + np.bincount(j, rho, n)
    bound, bound_slope = embedding(total)
    slope = phi_slope + rho_slope * (bound_slope[i] + bound_slope[j])
    return bound.sum() + phi.sum(), scatter(i, j, -(slope / r)[:, None] * apart, n), -(slope * r).sum()


def scatter(i: np.ndarray, j: np.ndarray, force: np.ndarray, n: int) -> np.ndarray:
    """Sum the forces of pairs on their atoms (n, 3)."""
    return np.stack([np.bincount(i, force[:, k], n) - np.bincount(j, force[:, k], n) for k in range(3)], axis=1)


def lennard_jones(position: np.ndarray, box: np.ndarray, sigma: float, epsilon: float,
                  cutoff: float) -> tuple[float, np.ndarray, float]:
    """The same of 4 epsilon ((sigma/r)^12 - (sigma/r)^6) up to the cutoff, in epsilon's unit."""
    i, j, apart, r = pairs_within(position, box, cutoff)
    s6 = (sigma / r) ** 6
    over_r2 = 24 * epsilon * (2 * s6**2 - s6) / r**2
    return (4 * epsilon * (s6**2 - s6)).sum(), scatter(i, j, over_r2[:, None] * apart, len(position)), \
        (over_r2 * r**2).sum()
