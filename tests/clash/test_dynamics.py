"""What correction is for: dynamics that blow up on the planted clashes run after it."""

from dataclasses import replace

import numpy as np
import openmm
import pytest
from openmm import app, unit
from support.molecular_systems import openmm_topology
from support.placed_nucleosomes import place_nucleosomes

from chromabuild.base.force_fields import force_field_files
from chromabuild.clash import correct_clashes, find_clashes
from chromabuild.clash.correct import Corrector
from chromabuild.sterics.atoms import Atoms

TEMPERATURE = 310.0


def simulation(solute, timestep):
    """A protein in vacuum, AMBER ff14SB, 9 A cutoff, hydrogens constrained."""
    topology = openmm_topology(solute, {})
    system = app.ForceField(*force_field_files("amber14")).createSystem(
        topology, nonbondedMethod=app.CutoffNonPeriodic, nonbondedCutoff=0.9, constraints=app.HBonds,
        residueTemplates={residue: residue.name for residue in topology.residues()})
    integrator = openmm.LangevinMiddleIntegrator(TEMPERATURE, 5.0, timestep)
    integrator.setRandomNumberSeed(1)
    names = {openmm.Platform.getPlatform(k).getName() for k in range(openmm.Platform.getNumPlatforms())}
    name = "CPU" if "CPU" in names else "Reference"
    made = app.Simulation(topology, system, integrator, openmm.Platform.getPlatformByName(name),
                          {"Threads": "1"} if name == "CPU" else {})
    made.context.setPositions(solute.position.astype(float) / 10)
    return made


def temperature(made):
    """Kelvin, from the kinetic energy."""
    system = made.system
    freedom = 3 * system.getNumParticles() - system.getNumConstraints() - 3
    kinetic = made.context.getState(getEnergy=True).getKineticEnergy()
    return float(2 * kinetic / (freedom * unit.MOLAR_GAS_CONSTANT_R) / unit.kelvin)


@pytest.fixture(scope="module")
def planted():
    """A histone whose side chains of every turnable kind are turned into their neighbours, the worst of 100 each."""
    histone = place_nucleosomes([(np.eye(3), np.zeros(3))], keep="B")
    corrector = Corrector(histone, Atoms.from_solute(histone), 0.9, 1, 1)
    random = np.random.default_rng(8)
    position = histone.position.astype(np.float64)
    wanted = ["PHE", "ILE", "THR", "TYR", "VAL", "LEU"]
    for residue, name in enumerate(corrector.scene.atoms.residue_name):
        if name in wanted and residue not in corrector.tail_of:
            chi = corrector.chi(residue)
            angle = random.uniform(-np.pi, np.pi, (100, len(chi)))
            fatal, severe, _ = corrector.scene.rotation_scores(chi, angle)
            worst = int(np.lexsort((severe, fatal))[-1])
            if fatal[worst] >= 2:
                for torsion, value in zip(chi, angle[worst], strict=True):
                    corrector.scene.turn(position, torsion, float(value))
                wanted.remove(name)
    assert len(wanted) <= 2
    return replace(histone, position=position.astype(np.float32))


@pytest.mark.slow
def test_dynamics_start_after_correction(planted):
    assert len(find_clashes(planted, 0.9)[0]) >= 8
    before = simulation(planted, 0.002)
    before.context.setVelocitiesToTemperature(TEMPERATURE, 1)
    try:
        before.step(100)
        hot = temperature(before)
    except openmm.OpenMMException as error:
        assert "NaN" in str(error)
        hot = np.inf
    assert not hot < 10 * TEMPERATURE

    corrected, report = correct_clashes(planted)
    assert report.fatal == 0 and report.data["after"]["severe_pairs"]["count"] == 0
    after = simulation(corrected, 0.002)
    after.minimizeEnergy(maxIterations=100)
    after.context.setVelocitiesToTemperature(TEMPERATURE, 1)
    seen = []
    for _ in range(10):
        after.step(150)
        seen.append(temperature(after))
    # The kinetic temperature of f degrees of freedom fluctuates by T sqrt(2/f), here 6 K; friction of 5/ps holds it.
    freedom = 3 * after.system.getNumParticles() - after.system.getNumConstraints()
    assert abs(np.mean(seen[2:]) - TEMPERATURE) < 5 * TEMPERATURE * np.sqrt(2 / freedom)
    position = after.context.getState(getPositions=True).getPositions(asNumpy=True) / unit.angstrom
    assert np.isfinite(position).all()
