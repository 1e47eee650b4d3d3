"""OpenMM as judge of chromamd's energies and as second engine, driven by our Topology file, not by OpenMM's own files.

The tests compare three things: chromamd on a Topology, OpenMM on the same Topology (here), and OpenMM's ForceField on
the same atoms. Energies in kcal/mol, forces in kcal/mol/angstrom, lengths in angstrom.
"""

from dataclasses import dataclass

import numpy as np
import openmm
from openmm import unit

from chromabuild.topology.topology_file import Topology

KJ_PER_KCAL = 4.184
ANGSTROM_PER_NM = 10.0
SPLINE_ORDER = 5
"""Order of the charge-spreading B-splines, fixed in OpenMM."""

TERMS = ("bond", "angle", "urey_bradley", "dihedral", "improper", "lennard_jones", "electrostatic")
"""Energy terms; the 1-4 pairs are part of the last two. Force group k of a system holds term k."""


@dataclass(frozen=True)
class NonbondedOptions:
    """How non-bonded interactions are cut; every engine must be given the same."""

    cutoff: float
    """Angstrom, for Lennard-Jones (plain truncation unless switched) and real-space electrostatics."""
    alpha: float
    """Ewald splitting parameter, 1/angstrom."""
    grid: tuple[int, int, int]
    """Points of the PME grid along each box edge."""
    switch_distance: float | None = None
    """Angstrom; the Lennard-Jones energy goes smoothly to zero from here to the cutoff. None: plain truncation."""
    dispersion_correction: bool = False
    """Add the mean-field energy of the Lennard-Jones tail."""


def system_from_topology(topology: Topology, box: np.ndarray, options: NonbondedOptions,
                         rigid: bool = False) -> openmm.System:
    """An OpenMM System with one force group per entry of ``TERMS``.

    ``box``: (3,) edges, angstrom. ``rigid``: constrain X-H bonds and waters as the topology lists them, and leave out
    the terms that constraints replace, as chromamd does.
    """
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*(np.diag(box) / ANGSTROM_PER_NM))
    for mass in topology.masses().tolist():
        system.addParticle(mass)
    bond, angle = topology.term("bond"), topology.term("angle")
    if rigid:
        constraint = topology.term("constraint")
        for (i, j), distance in _rows(constraint["atoms"], constraint["distance"] / ANGSTROM_PER_NM):
            system.addConstraint(i, j, distance)
        key = topology.n_atoms
        constrained = constraint["atoms"].min(axis=1) * key + constraint["atoms"].max(axis=1)
        bond = _select(bond, ~np.isin(bond["atoms"].min(axis=1) * key + bond["atoms"].max(axis=1), constrained))
        in_rigid_water = np.concatenate([np.full(topology.templates[t].n_atoms * count, topology.templates[t].rigid_water)
                                         for t, count in zip(topology.run_template, topology.run_count, strict=True)])
        angle = _select(angle, ~in_rigid_water[angle["atoms"][:, 0]])
    _add_harmonic_bonds(system, bond, TERMS.index("bond"))
    _add_harmonic_bonds(system, topology.term("urey_bradley"), TERMS.index("urey_bradley"))

    force = openmm.HarmonicAngleForce()
    for (i, j, k), stiffness, theta0 in _rows(angle["atoms"], 2 * KJ_PER_KCAL * angle["k"], np.radians(angle["theta0"])):
        force.addAngle(i, j, k, theta0, stiffness)
    _add(system, force, "angle")
    dihedral = topology.term("dihedral")
    force = openmm.PeriodicTorsionForce()
    for atoms, k, n, phase in _rows(dihedral["atoms"], KJ_PER_KCAL * dihedral["k"], dihedral["n"],
                                    np.radians(dihedral["phase"])):
        force.addTorsion(*atoms, n, phase, k)
    _add(system, force, "dihedral")
    improper = topology.term("improper")
    if len(improper["atoms"]):
        force = openmm.CustomTorsionForce("k*d^2; d = min(delta, 2*pi - delta); delta = abs(theta - psi0); pi = 3.14159265358979324")
        force.addPerTorsionParameter("k")
        force.addPerTorsionParameter("psi0")
        for atoms, k, psi0 in _rows(improper["atoms"], KJ_PER_KCAL * improper["k"], np.radians(improper["psi0"])):
            force.addTorsion(*atoms, [k, psi0])
        _add(system, force, "improper")

    lj_type = topology.per_atom("lj_type")
    sigma = topology.lj_sigma[lj_type] / ANGSTROM_PER_NM
    epsilon = topology.lj_epsilon[lj_type] * KJ_PER_KCAL
    charge = topology.charges()
    pair14, exclusions = topology.term("pair14"), topology.exclusions()
    pair_epsilon, pair_charge = pair14["epsilon"] * KJ_PER_KCAL, pair14["charge_product"]
    pair_sigma = pair14["sigma"] / ANGSTROM_PER_NM
    lennard_jones = _nonbonded(np.zeros_like(charge), sigma, epsilon, exclusions, pair14["atoms"],
                               np.zeros_like(pair_charge), pair_sigma, pair_epsilon, options)
    lennard_jones.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    lennard_jones.setUseDispersionCorrection(options.dispersion_correction)
    if options.switch_distance is not None and options.switch_distance < options.cutoff:
        lennard_jones.setUseSwitchingFunction(True)
        lennard_jones.setSwitchingDistance(options.switch_distance / ANGSTROM_PER_NM)
    _add(system, lennard_jones, "lennard_jones")
    electrostatic = _nonbonded(charge, np.ones_like(sigma), np.zeros_like(epsilon), exclusions, pair14["atoms"],
                               pair_charge, np.ones_like(pair_sigma), np.zeros_like(pair_epsilon), options)
    electrostatic.setNonbondedMethod(openmm.NonbondedForce.PME)
    electrostatic.setPMEParameters(options.alpha * ANGSTROM_PER_NM, *options.grid)
    electrostatic.setUseDispersionCorrection(False)
    _add(system, electrostatic, "electrostatic")
    return system


def energies_by_term(system: openmm.System, position: np.ndarray,
                     platform: str = "Reference") -> tuple[dict[str, float], np.ndarray]:
    """Energy of every force group named by ``TERMS`` and the total force.

    ``position``: (n, 3) angstrom. Returns energies (kcal/mol) and (n, 3) forces (kcal/mol/angstrom). The Reference
    platform calculates in double precision.
    """
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName(platform))
    context.setPositions(np.asarray(position, dtype=float) / ANGSTROM_PER_NM)
    energies = {
        term: context.getState(getEnergy=True, groups={k}).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
        for k, term in enumerate(TERMS)
    }
    force = context.getState(getForces=True).getForces(asNumpy=True)
    return energies, force.value_in_unit(unit.kilocalorie_per_mole / unit.angstrom)


def _nonbonded(charge: np.ndarray, sigma: np.ndarray, epsilon: np.ndarray, exclusions: np.ndarray, pairs: np.ndarray,
               pair_charge: np.ndarray, pair_sigma: np.ndarray, pair_epsilon: np.ndarray,
               options: NonbondedOptions) -> openmm.NonbondedForce:
    force = openmm.NonbondedForce()
    for q, s, e in zip(charge.tolist(), sigma.tolist(), epsilon.tolist(), strict=True):
        force.addParticle(q, s, e)
    for i, j in exclusions.tolist():
        force.addException(i, j, 0.0, 1.0, 0.0)
    for (i, j), q, s, e in _rows(pairs, pair_charge, pair_sigma, pair_epsilon):
        force.addException(i, j, q, s, e, True)
    force.setCutoffDistance(options.cutoff / ANGSTROM_PER_NM)
    return force


def _add_harmonic_bonds(system: openmm.System, term: dict[str, np.ndarray], group: int) -> None:
    force = openmm.HarmonicBondForce()
    for (i, j), k, r0 in _rows(term["atoms"], 2 * KJ_PER_KCAL * ANGSTROM_PER_NM**2 * term["k"], term["r0"] / ANGSTROM_PER_NM):
        force.addBond(i, j, r0, k)
    _add(system, force, TERMS[group])


def _add(system: openmm.System, force: openmm.Force, term: str) -> None:
    force.setForceGroup(TERMS.index(term))
    system.addForce(force)


def _rows(*columns: np.ndarray) -> zip:
    """Rows of several columns as Python numbers, which OpenMM's wrappers take without conversion."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _select(term: dict[str, np.ndarray], keep: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values[keep] for name, values in term.items()}
