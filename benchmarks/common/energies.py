"""Energies of a system by chromamd and by OpenMM, in the terms in which programs are compared."""

from pathlib import Path

import numpy as np
import openmm
from openmm import unit

from chromabuild.base.settings import DynamicsSection
from chromabuild.export.system import BuiltSystem
from chromabuild.simulate import chromamd
from chromabuild.simulate.openmm_engine import nonbonded_options
from common.engine import write_system

CHROMAMD_TERMS = {"bond": ["BOND", "UREY-BRADLEY"], "angle": ["ANGLE"], "dihedral": ["DIHEDRAL", "IMPROPER", "CMAP"],
                  "lennard_jones": ["VDWAALS", "PAIR14_VDW", "DISPERSION"],
                  "electrostatic": ["ELECT", "RECIPROCAL", "PAIR14_ELECT"]}
NONBONDED = ("lennard_jones", "electrostatic")
BONDS_ANGLES = "bond_and_angle"
"""Of a program that counts Urey-Bradley terms as angles."""

Parts = dict[str, list[float]]
"""Parts of every term, kcal/mol."""


def of_chromamd(system: BuiltSystem, dynamics: DynamicsSection, folder: Path) -> Parts:
    """The reference."""
    options = nonbonded_options(dynamics, system.box)
    write_system(folder, system.topology, system.position, system.box)
    control = folder / "energy.inp"
    grid = {f"pme_ngrid_{axis}": n for axis, n in zip("xyz", options.grid, strict=True)}
    chromamd.write_control(control, {
        "INPUT": {"topologyfile": folder / "topology.h5", "shardfile": folder / "bricks.txt"},
        "ENERGY": chromamd.energy_section(dynamics) | {"pme_alpha": options.alpha, **grid}})
    chromamd.launch("energy", control, 1, "double")
    energy = chromamd.read_energies(control)
    return {term: [energy.get(name, 0.0) for name in names] for term, names in CHROMAMD_TERMS.items()}


def of_openmm(system: openmm.System, position: np.ndarray, box: np.ndarray, dynamics: DynamicsSection) -> Parts:
    """Terms by the kind of force; all of OpenMM's nonbonded forces in one."""
    options = nonbonded_options(dynamics, box)
    groups = {"HarmonicBondForce": 0, "UreyBradleyForce": 0, "HarmonicAngleForce": 1, "PeriodicTorsionForce": 2,
              "CMAPTorsionForce": 2, "CustomTorsionForce": 2, "HarmonicTorsionForce": 2, "ImproperTorsionForce": 2,
              "RBTorsionForce": 2}
    for force in system.getForces():
        force.setForceGroup(groups.get(force.getName(), 3))
        if isinstance(force, openmm.NonbondedForce):
            force.setPMEParameters(options.alpha * 10, *options.grid)
            force.setUseDispersionCorrection(False)
        if isinstance(force, openmm.CustomNonbondedForce):
            force.setUseLongRangeCorrection(False)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPeriodicBoxVectors(*(np.diag(box) / 10))
    context.setPositions(position / 10)
    return {term: [context.getState(getEnergy=True, groups={k}).getPotentialEnergy()
                   .value_in_unit(unit.kilocalorie_per_mole)]
            for k, term in enumerate(("bond", "angle", "dihedral", "nonbonded"))}


def differences(ours: Parts, theirs: Parts) -> tuple[str, float, float]:
    """The term with the largest relative difference, that difference, and that of the sum of all that are compared."""
    if "nonbonded" in theirs:
        ours = ours | {"nonbonded": [part for term in NONBONDED for part in ours[term]]}
    if BONDS_ANGLES in theirs:
        ours = ours | {BONDS_ANGLES: ours["bond"] + ours["angle"]}
    ours = {term: ours[term] for term in theirs}
    found = {}
    for term, parts in ours.items():
        scale = max(map(abs, [*parts, sum(parts)]))
        # Rigid waters as built are at rest in their bonds and angles: there is nothing to compare.
        if scale > 1e-3:
            found[term] = abs(sum(theirs[term]) - sum(parts)) / scale
    worst = max(found, key=lambda term: found[term])
    totals = [sum(sum(parts) for parts in energy.values()) for energy in (ours, theirs)]
    return worst.replace("_", "-"), found[worst], abs(totals[1] / totals[0] - 1)
