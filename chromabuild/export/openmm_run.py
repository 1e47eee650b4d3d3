#!/usr/bin/env python3
"""Run the phases of protocol.json in OpenMM 8.2 or later, from system.xml and state.xml.

A phase that is done is left out. One that was interrupted goes on from its last checkpoint, with its table and frames
in files of their own: 03-produce.2.csv, 03-produce.2.dcd and so on.

Usage: run.py [--platform CUDA] [--precision mixed] [--devices 0,1]
"""

import argparse
import json
from pathlib import Path

import numpy as np
import openmm
from openmm import app, unit

STEPS_A_CHANGE = 10
"""Steps between changes of a temperature or of a constant that changes over a phase."""
KJ_PER_NM2 = 418.4
"""Of 1 kcal/mol/angstrom^2."""


def main() -> None:
    """Run what is left of the protocol, in the folder of this file."""
    folder = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", help="CUDA, HIP, OpenCL or CPU; by default the fastest that is here")
    parser.add_argument("--precision", choices=("single", "mixed", "double"), default="mixed", help="on GPUs")
    parser.add_argument("--devices", help="numbers of the GPUs, e.g. 0,1")
    options = parser.parse_args()
    protocol = json.loads((folder / "protocol.json").read_text())
    topology = app.PDBxFile(str(folder / "system.cif")).topology
    before = folder / "state.xml"
    for phase in protocol["phases"]:
        after = folder / f"{phase['name']}.xml"
        if not after.exists():
            print(phase["name"], flush=True)
            run_phase(folder, protocol, phase, topology, before, options)
        before = after


def run_phase(folder: Path, protocol: dict, phase: dict, topology: app.Topology, before: Path,
              options: argparse.Namespace) -> None:
    """One phase from the state ``before`` it, or from its checkpoint; leaves its state in NAME.xml."""
    groups = np.load(folder / "groups.npz")
    simulation = make_simulation(folder, protocol, phase, topology, groups, options)
    context, checkpoint = simulation.context, folder / f"{phase['name']}.checkpoint.xml"
    begun = checkpoint.exists()
    state = openmm.XmlSerializer.deserialize((checkpoint if begun else before).read_text())
    context.setPeriodicBoxVectors(*state.getPeriodicBoxVectors())
    context.setPositions(state.getPositions())
    context.setVelocities(state.getVelocities())
    done = 0
    if begun:
        done = state.getStepCount()
        context.setStepCount(done)
        context.setTime(state.getTime())
    if phase["kind"] == "minimise":
        simulation.minimizeEnergy(maxIterations=phase["steps"])
    else:
        if phase["draws_velocities"] and not begun:
            context.setVelocitiesToTemperature(phase["temperature"][0], protocol["seed"])
        add_reporters(simulation, folder, phase, groups, protocol["checkpoint_period"])
        changes = phase["temperature"][0] != phase["temperature"][1] or any(
            first != last for first, last in (one["constant"] for one in phase["restraints"]))
        while done < phase["steps"]:
            set_progress(simulation, phase, done / phase["steps"])
            block = min(STEPS_A_CHANGE - done % STEPS_A_CHANGE if changes else phase["steps"], phase["steps"] - done)
            simulation.step(block)
            done += block
    simulation.saveState(str(folder / f"{phase['name']}.part"))
    (folder / f"{phase['name']}.part").replace(folder / f"{phase['name']}.xml")
    checkpoint.unlink(missing_ok=True)


def make_simulation(folder: Path, protocol: dict, phase: dict, topology: app.Topology, groups: dict,
                    options: argparse.Namespace) -> app.Simulation:
    """The system with the masses, the restraints and the ensemble of a phase."""
    system = openmm.XmlSerializer.deserialize((folder / "system.xml").read_text())
    added = phase["hydrogen_mass_factor"] - 1
    for hydrogen, heavy in groups["hydrogens"].tolist() if added else ():
        more = added * system.getParticleMass(hydrogen)
        system.setParticleMass(hydrogen, system.getParticleMass(hydrogen) + more)
        system.setParticleMass(heavy, system.getParticleMass(heavy) - more)
    for k, restraint in enumerate(phase["restraints"]):
        force = openmm.CustomExternalForce(f"hold_{k}*periodicdistance(x, y, z, x0, y0, z0)^2")
        force.addGlobalParameter(f"hold_{k}", restraint["constant"][0] * KJ_PER_NM2)
        for name in ("x0", "y0", "z0"):
            force.addPerParticleParameter(name)
        atoms = groups[restraint["group"]]
        for atom, place in zip(atoms.tolist(), groups["places"][np.searchsorted(groups["held"], atoms)].tolist(),
                               strict=True):
            force.addParticle(atom, place)
        system.addForce(force)
    if phase["end_pairs"]:
        force = openmm.CustomBondForce("k*(r - r0)^2")
        force.setUsesPeriodicBoundaryConditions(True)
        force.addGlobalParameter("k", phase["end_pairs"] * KJ_PER_NM2)
        force.addPerBondParameter("r0")
        for (i, j), length in zip(groups["end_pairs"].tolist(), groups["end_pair_lengths"].tolist(), strict=True):
            force.addBond(i, j, [length])
        system.addForce(force)
    timestep, start = phase["timestep"] * unit.femtosecond, phase["temperature"][0] * unit.kelvin
    if phase["ensemble"] == "NVE":
        integrator = openmm.VerletIntegrator(timestep)
    else:
        integrator = openmm.LangevinMiddleIntegrator(start, protocol["friction"] / unit.picosecond, timestep)
        integrator.setRandomNumberSeed(protocol["seed"])
    if phase["ensemble"] == "NPT":
        system.addForce(openmm.MonteCarloBarostat(phase["pressure"] * unit.atmosphere, start))
    if options.platform is None:
        return app.Simulation(topology, system, integrator)
    properties = {}
    if options.platform in ("CUDA", "HIP", "OpenCL"):
        properties = {"Precision": options.precision} | ({"DeviceIndex": options.devices} if options.devices else {})
    return app.Simulation(topology, system, integrator, openmm.Platform.getPlatformByName(options.platform), properties)


def add_reporters(simulation: app.Simulation, folder: Path, phase: dict, groups: dict, checkpoint_period: int) -> None:
    """Energies, frames and checkpoints."""
    part = 1
    while True:
        stem = phase["name"] if part == 1 else f"{phase['name']}.{part}"
        if not (folder / f"{stem}.csv").exists():
            break
        part += 1
    simulation.reporters.append(app.StateDataReporter(
        str(folder / f"{stem}.csv"), phase["output_period"], step=True, time=True, potentialEnergy=True,
        kineticEnergy=True, temperature=True, volume=True, density=True, speed=True))
    if phase["trajectory_period"]:
        simulation.reporters.append(app.DCDReporter(
            str(folder / f"{stem}.dcd"), phase["trajectory_period"], enforcePeriodicBox=True,
            atomSubset=[atom for first, end in groups["trajectory"].tolist() for atom in range(first, end)]))
    simulation.reporters.append(app.CheckpointReporter(
        str(folder / f"{phase['name']}.checkpoint.xml"), checkpoint_period, writeState=True))


def set_progress(simulation: app.Simulation, phase: dict, share: float) -> None:
    """Temperature and constants of restraints when a share of the phase is done."""
    start, end = phase["temperature"]
    if start != end:
        temperature = start + share * (end - start)
        simulation.integrator.setTemperature(temperature)
        if phase["ensemble"] == "NPT":
            simulation.context.setParameter(openmm.MonteCarloBarostat.Temperature(), temperature)
    for k, restraint in enumerate(phase["restraints"]):
        first, last = restraint["constant"]
        if first != last:
            simulation.context.setParameter(f"hold_{k}", (first + share * (last - first)) * KJ_PER_NM2)


if __name__ == "__main__":
    main()
