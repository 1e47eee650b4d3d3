"""Our Topology and chromamd against OpenMM.

Two independent judges: OpenMM's own ForceField on the same atoms judges our Topology file; OpenMM on our Topology
judges chromamd. OpenMM's Reference platform calculates in double precision.
"""

from dataclasses import replace

import numpy as np
import openmm
import pytest
from openmm import app, unit
from support.engine_energies import energies_by_force
from support.molecular_systems import MolecularSystem

from chromabuild.base.force_fields import force_field_files
from chromabuild.simulate.openmm_engine import TERMS, NonbondedOptions, energies_by_term, system_from_topology

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(30, 30, 30))


def force_field_energies(system: MolecularSystem, options: NonbondedOptions) -> tuple[dict[str, float], np.ndarray]:
    """OpenMM's ForceField, its own system untouched except for force groups and PME parameters."""
    rules = app.ForceField(*force_field_files("amber14"))
    judge = rules.createSystem(system.judge, nonbondedMethod=app.PME, nonbondedCutoff=options.cutoff / 10,
                               constraints=None, rigidWater=False, removeCMMotion=False)
    return energies_by_force(judge, options, system.position / 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["water", "peptide", "duplex"])
def test_topology_gives_the_energies_of_the_force_field(systems, name):
    """Same atoms, same parameters, double precision: only the rounding of unit conversions (1e-15 a term) differs."""
    system = systems[name]
    ours, force = energies_by_term(system_from_topology(system.topology, system.box, OPTIONS), system.position)
    theirs, their_force = force_field_energies(system, OPTIONS)
    for term in ("bond", "angle", "dihedral"):
        assert ours[term] == pytest.approx(theirs[term], rel=1e-9), term
    assert ours["lennard_jones"] + ours["electrostatic"] == pytest.approx(theirs["nonbonded"], rel=1e-9)
    rms = np.sqrt(np.mean(np.sum(their_force**2, axis=1)))
    assert np.max(np.abs(force - their_force)) < 1e-9 * rms
    assert set(ours) == set(TERMS)


def test_tail_is_openmms_own(systems):
    """The dispersion correction of OpenMM's ForceField. It counts the n (n + 1) / 2 pairs of atoms, an atom with itself
    included, where we count all ordered pairs: of n atoms a third of which attract each other 2/n more."""
    system = systems["water"]
    ours = [energies_by_term(system_from_topology(system.topology, system.box, replace(OPTIONS, tail=tail)),
                             system.position)[0]["lennard_jones"] for tail in (False, True)]
    rules = app.ForceField(*force_field_files("amber14"))
    judge = rules.createSystem(system.judge, nonbondedMethod=app.PME, nonbondedCutoff=OPTIONS.cutoff / 10,
                               constraints=None, rigidWater=False, removeCMMotion=False)
    force = next(force for force in judge.getForces() if isinstance(force, openmm.NonbondedForce))
    theirs = []
    for tail in (False, True):
        force.setUseDispersionCorrection(tail)
        context = openmm.Context(judge, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
        context.setPositions(system.position / 10)
        theirs.append(context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole))
    n = system.topology.n_atoms
    assert ours[1] < ours[0] - 20
    assert theirs[1] - theirs[0] == pytest.approx((1 + 2 / n) * (ours[1] - ours[0]), rel=1e-6)
