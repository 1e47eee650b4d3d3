"""Energies and forces of chromamd beside those of OpenMM's Reference platform, for systems of any origin."""

from pathlib import Path

import numpy as np
import openmm
import pytest
from openmm import unit

from chromabuild.simulate import chromamd
from chromabuild.simulate.openmm_engine import (
    SPLINE_ORDER,
    NonbondedOptions,
    energies_by_term,
    system_from_topology,
)
from support.molecular_systems import MolecularSystem, write_bricks

ENERGY_COLUMNS = {"bond": ["BOND"], "angle": ["ANGLE"], "urey_bradley": ["UREY-BRADLEY"], "dihedral": ["DIHEDRAL"],
                  "improper": ["IMPROPER"], "cmap": ["CMAP"],
                  "lennard_jones": ["VDWAALS", "PAIR14_VDW", "DISPERSION"],
                  "electrostatic": ["ELECT", "RECIPROCAL", "PAIR14_ELECT"]}
TOLERANCE = {"double": (1e-6, 1e-6), "mixed": (1e-5, 1e-4)}
TOLERANCES = [("double", *TOLERANCE["double"]), pytest.param("mixed", *TOLERANCE["mixed"], marks=pytest.mark.release)]
"""Build of the engine, relative difference of every energy term, rms difference over rms of the forces."""

Evaluation = tuple[dict[str, float], np.ndarray]


def energy_section(options: NonbondedOptions) -> dict[str, object]:
    """The [ENERGY] section that asks for what OpenMM does under the same options."""
    return {"cutoffdist": options.cutoff, "switchdist": options.switch_distance or options.cutoff,
            "vdw_force_switch": options.force_switch, "dispersion_corr": "EPRESS" if options.tail else "NONE",
            "pairlistdist": options.cutoff + 1.5,
            "pme_alpha": options.alpha, "pme_nspline": SPLINE_ORDER,
            **{f"pme_ngrid_{axis}": n for axis, n in zip("xyz", options.grid, strict=True)}}


def write_input(system: MolecularSystem, folder: Path) -> dict[str, object]:
    """Topology and bricks; returns the [INPUT] entries."""
    system.topology.write(folder / "topology.h5")
    write_bricks(folder / "shards", system.position, system.box, system.topology)
    return {"topologyfile": folder / "topology.h5", "shardfile": folder / "shards" / "bricks.txt"}


def evaluate(entries: dict[str, object], folder: Path, precision: chromamd.Precision, options: NonbondedOptions,
             ranks: int = 1, **energy: object) -> Evaluation:
    """chromamd's energies by name and forces in global order; ``entries`` are those of [INPUT], ``energy`` further ones
    of [ENERGY]."""
    control = folder / f"energy_{precision}_{ranks}.inp"
    force = control.with_suffix(".force")
    chromamd.write_control(control, {"INPUT": entries, "OUTPUT": {"forcefile": force},
                                     "ENERGY": energy_section(options) | energy})
    chromamd.launch("energy", control, ranks, precision)
    return chromamd.read_energies(control), chromamd.read_forces(force)


def chromamd_energy(system: MolecularSystem, folder: Path, precision: chromamd.Precision, options: NonbondedOptions,
                    ranks: int = 1, **energy: object) -> Evaluation:
    """The same, of a system in memory."""
    return evaluate(write_input(system, folder), folder, precision, options, ranks, **energy)


def reference_energy(system: MolecularSystem, options: NonbondedOptions) -> Evaluation:
    """Energies by term and forces from OpenMM's Reference platform, which calculates in double precision."""
    return energies_by_term(system_from_topology(system.topology, system.box, options), system.position)


def set_pme(system: openmm.System, options: NonbondedOptions) -> None:
    """Give a system that a reader of OpenMM has made our PME, and no correction for the tail of dispersion."""
    for force in system.getForces():
        if isinstance(force, openmm.NonbondedForce):
            force.setPMEParameters(options.alpha * 10, *options.grid)
            force.setUseDispersionCorrection(False)


def energies_by_force(system: openmm.System, options: NonbondedOptions, position: object,
                      box_vectors: object | None = None) -> Evaluation:
    """Energies of bonds, angles, dihedrals and ``nonbonded``, and the forces, of such a system of AMBER's terms.

    ``position``: nm, or with units; ``box_vectors``: those of the system unless given.
    """
    names = ("HarmonicBondForce", "HarmonicAngleForce", "PeriodicTorsionForce", "NonbondedForce")
    for force in system.getForces():
        force.setForceGroup(names.index(force.getName()))
    set_pme(system, options)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    if box_vectors is not None:
        context.setPeriodicBoxVectors(*box_vectors)
    context.setPositions(position)
    terms = ("bond", "angle", "dihedral", "nonbonded")
    energy = {term: context.getState(getEnergy=True, groups={k}).getPotentialEnergy()
              .value_in_unit(unit.kilocalorie_per_mole) for k, term in enumerate(terms)}
    force = context.getState(getForces=True).getForces(asNumpy=True)
    return energy, force.value_in_unit(unit.kilocalorie_per_mole / unit.angstrom)


def assert_agree(ours: Evaluation, theirs: Evaluation, energy_tolerance: float, force_tolerance: float) -> None:
    """Every term and the total, relative; forces: rms of the difference over rms."""
    (energy, force), (their_energy, their_force) = ours, theirs
    for term, columns in ENERGY_COLUMNS.items():
        total = sum(energy[column] for column in columns)
        assert total == pytest.approx(their_energy[term], rel=energy_tolerance), term
    assert energy["POTENTIAL_ENE"] == pytest.approx(sum(their_energy.values()), rel=energy_tolerance)
    assert relative_rms(force, their_force) < force_tolerance


def relative_rms(force: np.ndarray, reference: np.ndarray) -> float:
    """Rms of the difference over rms of the reference."""
    return float(np.sqrt(np.mean((force - reference) ** 2) / np.mean(reference**2)))
