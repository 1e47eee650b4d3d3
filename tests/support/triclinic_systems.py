"""Solvated systems in boxes whose edges lean, cut out of the cubes of ``molecular_systems``."""

from dataclasses import replace

import numpy as np
import openmm

from chromabuild.base.box_vectors import vectors_of
from chromabuild.forcefield.assign import make_topology
from chromabuild.simulate.openmm_engine import NonbondedOptions, energies_by_term, system_from_topology
from support.engine_energies import Evaluation
from support.molecular_systems import DATA, SOLVENT, MolecularSystem, fixture, name_of_solvated, solvated

CLOSEST = 2.3
"""Angstrom between a water's oxygen and any heavy atom of another molecule, where images meet."""


def rhombic_dodecahedron(distance: float) -> np.ndarray:
    """(3, 3) vectors, the square in the xy plane, of images at this distance; multiples of 0.001 angstrom."""
    return np.round(distance * np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.5, np.sqrt(0.5)]]), 3)


def truncated_octahedron(distance: float) -> np.ndarray:
    """The same for the truncated octahedron, as GROMACS orients it."""
    vectors = [[1, 0, 0], [1 / 3, np.sqrt(8) / 3, 0], [-1 / 3, np.sqrt(2) / 3, np.sqrt(6) / 3]]
    return np.round(distance * np.array(vectors), 3)


def all_images(vectors: np.ndarray) -> np.ndarray:
    """(343, 3) translations around the origin; the first is none."""
    steps = np.stack(np.meshgrid(*[np.arange(-3, 4)] * 3, indexing="ij"), -1).reshape(-1, 3)
    return steps[np.argsort(np.abs(steps).sum(axis=1), kind="stable")] @ vectors


def nearest(apart: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Nearest images of differences (n, 3), by trying all."""
    images = all_images(vectors)
    tried = apart[:, None] - images
    return tried[np.arange(len(apart)), np.argmin(np.einsum("nik,nik->ni", tried, tried), axis=1)]


def cut_out(name: str | None, edge: float, box: np.ndarray) -> MolecularSystem:
    """The solute and ions of the cube ``solvated(name, edge)``, and the waters nearer to its middle than to its images.

    Waters that come too near to others across the faces are left out.
    """
    whole = solvated(name, edge)
    vectors = vectors_of(box)
    with np.load(DATA / "solvated.npz") as file:
        counts = dict(zip(SOLVENT, file[f"{name_of_solvated(name, edge, 0)} counts"].tolist(), strict=True))
    n_solute = len(fixture(name)[1]) if name else 0
    position = whole.position - edge / 2
    water = position[n_solute:n_solute + 3 * counts["water"]].reshape(-1, 3, 3)
    rest = np.concatenate([position[:n_solute], position[n_solute + 3 * counts["water"]:]])
    oxygen = water[:, 0]
    kept = np.flatnonzero(np.linalg.norm(nearest(oxygen, vectors) - oxygen, axis=1) < 1e-6)
    obstacles, chosen = list(rest), []
    for k in kept:
        if np.linalg.norm(nearest(np.array(obstacles) - oxygen[k], vectors), axis=1).min() > CLOSEST or not obstacles:
            chosen.append(k)
            obstacles.append(oxygen[k])
    counts["water"] = len(chosen)
    position = np.concatenate([position[:n_solute], water[chosen].reshape(-1, 3), rest[n_solute:]])
    solute = fixture(name)[0] if name else None
    return MolecularSystem(make_topology(solute, counts), np.round(position + vectors.sum(axis=0) / 2, 3), vectors)


def reference_of_doubled(system: MolecularSystem, options: NonbondedOptions, tolerance: float) -> Evaluation:
    """Energies by term and forces of a rhombic dodecahedron, from the rectangular box (a, b, 2c - a - b) of two copies.

    OpenMM's Reference platform in double precision, by Ewald summation to this tolerance, which decides alpha. In boxes
    whose edges lean the neighbour lists of that platform (8.6) miss one to three pairs in a hundred, those of its CPU
    platform none.
    """
    a, b, c = vectors_of(system.box)
    whole = 2 * c - a - b
    assert np.count_nonzero([a[1:], b[::2], whole[:2]]) == 0
    once = system.topology
    twice = replace(once, run_template=np.tile(once.run_template, 2), run_count=np.tile(once.run_count, 2))
    made = system_from_topology(twice, np.array([a[0], b[1], whole[2]]), options)
    for force in made.getForces():
        if isinstance(force, openmm.NonbondedForce) and force.getNonbondedMethod() == openmm.NonbondedForce.PME:
            force.setNonbondedMethod(openmm.NonbondedForce.Ewald)
            force.setEwaldErrorTolerance(tolerance)
    energy, force = energies_by_term(made, np.concatenate([system.position, system.position + c]))
    n = len(system.position)
    np.testing.assert_allclose(force[:n], force[n:], atol=1e-6 * np.abs(force).max())
    return {term: value / 2 for term, value in energy.items()}, force[:n]


def alpha_of(tolerance: float, cutoff: float) -> float:
    """Screening (1/angstrom) that OpenMM takes for a tolerance: where exp(-(alpha cutoff)^2) is twice it."""
    return float(np.sqrt(-np.log(2 * tolerance)) / cutoff)
