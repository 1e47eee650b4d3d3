"""Energies by term of a system that OpenMM's own ForceField or reader has made, CHARMM's terms among them."""

import numpy as np
import openmm
import pytest
from openmm import unit

from chromabuild.simulate.openmm_engine import NonbondedOptions
from support.engine_energies import Evaluation, relative_rms, set_pme

COLUMNS = {"bond": ["BOND", "UREY-BRADLEY"], "angle": ["ANGLE"], "dihedral": ["DIHEDRAL"], "improper": ["IMPROPER"],
           "cmap": ["CMAP"], "lennard_jones": ["VDWAALS", "PAIR14_VDW"],
           "electrostatic": ["ELECT", "RECIPROCAL", "PAIR14_ELECT"]}
TERM_OF_FORCE = {"HarmonicBondForce": "bond", "UreyBradleyForce": "bond", "HarmonicAngleForce": "angle",
                 "PeriodicTorsionForce": "dihedral", "RBTorsionForce": "dihedral", "CustomTorsionForce": "improper",
                 "HarmonicTorsionForce": "improper", "ImproperTorsionForce": "improper", "CMAPTorsionForce": "cmap",
                 "LennardJones": "lennard_jones", "LennardJones14": "lennard_jones",
                 "LennardJonesForce": "lennard_jones", "CustomNonbondedForce": "lennard_jones",
                 "LennardJonesExceptions": "lennard_jones", "NonbondedForce": "electrostatic"}


def judged(system: openmm.System, position: np.ndarray, options: NonbondedOptions) -> Evaluation:
    """Energies by term and forces of a system that OpenMM's own reader has made, with our PME and without tails."""
    terms = list(COLUMNS)
    for force in system.getForces():
        force.setForceGroup(terms.index(TERM_OF_FORCE[force.getName()]))
        if isinstance(force, openmm.CustomNonbondedForce):
            force.setUseLongRangeCorrection(False)
    set_pme(system, options)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(position / 10)
    energies = {term: context.getState(getEnergy=True, groups={k}).getPotentialEnergy()
                .value_in_unit(unit.kilocalorie_per_mole) for k, term in enumerate(terms)}
    force = context.getState(getForces=True).getForces(asNumpy=True)
    return energies, np.asarray(force.value_in_unit(unit.kilocalorie_per_mole / unit.angstrom))


def assert_terms_agree(ours: Evaluation, theirs: Evaluation, energy_tolerance: float, force_tolerance: float) -> None:
    """Every term, relative; forces: rms of the difference over rms."""
    for term, columns in COLUMNS.items():
        total = sum(ours[0][column] for column in columns)
        assert total == pytest.approx(theirs[0][term], rel=energy_tolerance), term
    assert ours[0]["POTENTIAL_ENE"] == pytest.approx(sum(theirs[0].values()), rel=energy_tolerance)
    assert relative_rms(ours[1], theirs[1]) < force_tolerance
