"""Ewald summation of the dispersion (vdw = PME) in the whole engine; the forces are tested in test_forces.py."""

import numpy as np
import openmm
import pytest
from openmm import unit
from support import systems


@pytest.mark.mpi
def test_energy_of_water_is_openmms(tmp_path):
    """LJPME of the Reference platform on the same grid, in double precision; 1 and 2 ranks."""
    position, box = systems.write_water(tmp_path)
    inp = systems.control(
        tmp_path / "e.inp", INPUT={"topologyfile": tmp_path / "t.h5", "shardfile": tmp_path / "bricks.txt"},
        ENERGY={"cutoffdist": 9, "pairlistdist": 10.5, "vdw": "PME", "pme_nspline": 5, "pme_alpha": 0.34,
                "vdw_pme_alpha": 0.36, **{f"pme_ngrid_{axis}": 28 for axis in "xyz"}})
    found = []
    for ranks in (1, 2):
        done = systems.run("energy", inp, ranks=ranks)
        assert done.returncode == 0, done.stderr
        energy = systems.read_energies(done.stdout)
        found.append(energy["VDWAALS"] + energy["ELECT"] + energy["RECIPROCAL"] + energy["DISPERSION"])

    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*np.diag(box / 10))
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(openmm.NonbondedForce.LJPME)
    force.setCutoffDistance(0.9)
    force.setPMEParameters(3.4, 28, 28, 28)
    force.setLJPMEParameters(3.6, 28, 28, 28)
    for molecule in range(len(position) // 3):
        for lj_type, charge in ((0, -0.834), (1, 0.417), (1, 0.417)):
            system.addParticle(1.0)
            force.addParticle(charge, systems.LJ_SIGMA[lj_type] / 10, systems.LJ_EPSILON[lj_type] * 4.184)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            force.addException(3 * molecule + i, 3 * molecule + j, 0.0, 0.1, 0.0)
    system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(position / 10)
    expected = context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
    # The Coulomb constants differ by 5e-9.
    assert found == pytest.approx([expected, expected], rel=2e-8)
