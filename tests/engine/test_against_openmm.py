"""Our Topology and chromamd against OpenMM.

Two independent judges: OpenMM's own ForceField on the same atoms judges our Topology file; OpenMM on our Topology
judges chromamd. OpenMM's Reference platform calculates in double precision.
"""

import numpy as np
import pytest
from openmm import app
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
