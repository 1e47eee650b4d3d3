"""Relaxation of a solute without water: chromamd with charges in implicit solvent, in open boundaries."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from blake3 import blake3

from chromabuild.base.phases import Phase, Restraint
from chromabuild.base.settings import DynamicsSection, RelaxSection, Settings, SimulateSection
from chromabuild.base.summary import Summary
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.solute import Solute
from chromabuild.shards.lone_bricks import write_lone_bricks
from chromabuild.simulate import chromamd
from chromabuild.simulate.protocol import PlannedPhase, Row, Solvent, Task, plan_phases, run_phases
from chromabuild.simulate.restart_file import read_restart
from chromabuild.solvate.ions import debye_length

SWITCH_WIDTH = 2.0
"""Angstrom before the cutoff over which Lennard-Jones is switched off."""
THERMOSTAT_TIME = 0.2
"""Ps: heat of the relaxation leaves quickly."""
FIRST_TEMPERATURE = 50.0
"""Kelvin: contacts that minimisation left narrow open before atoms move fast."""
OUTPUT_PERIOD = 50


def relax_phases(section: RelaxSection, temperature: float) -> SimulateSection:
    """The phases of a relaxation, as the section ``simulate`` would have them."""
    phases = [Phase(name="minimise", kind="minimise", steps=section.minimise_steps)]
    if section.length:
        held = (Restraint(group="heavy", constant=(section.restraint, 0.0)),) if section.restraint else ()
        phases.append(Phase(name="relax", length=section.length, temperature=(FIRST_TEMPERATURE, temperature),
                            restraints=held, output_period=OUTPUT_PERIOD))
    return SimulateSection(protocol=None, phases=tuple(phases), temperature=temperature, trajectory_period=2**31)


def dry_dynamics(section: RelaxSection, dynamics: DynamicsSection) -> DynamicsSection:
    """How forces are computed and atoms moved in a relaxation; what it does not decide is that of ``dynamics``."""
    return dynamics.model_copy(update={
        "cutoff": section.cutoff, "switch_distance": section.cutoff - SWITCH_WIDTH, "switch": "energy",
        "thermostat": "langevin", "thermostat_time": THERMOSTAT_TIME})


def relax(solute: Solute, settings: Settings, folder: Path, threads: int,
          progress: Callable[[str, float], None]) -> tuple[Solute, Summary]:
    """Minimise a solute and let it move; gives the same solute with other positions, and energies before and after.

    Work files lie in ``folder``: an interrupted call goes on from them, and of one that ended the logs are left.
    Raises what the engine raises.
    """
    section = settings.relax
    simulate = relax_phases(section, settings.simulate.temperature)
    dynamics = dry_dynamics(section, settings.dynamics)
    topology = make_topology(solute, {}, dynamics.force_field, files=dynamics.force_field_files,
                             progress=lambda text: progress(text, 0.0))
    # Phases that are done are known by the hash of this file.
    topology.provenance = topology.provenance | {"solute": blake3(np.asarray(solute.position).tobytes()).hexdigest()}
    topology.write(folder / "topology.h5")
    n_atoms = topology.n_atoms
    del topology
    bricks, corner = write_lone_bricks(solute, folder / "bricks")
    solvent = Solvent(section.dielectric, section.dielectric_form, debye_length(settings.solvate) / 1000)
    task = Task(dynamics, settings.seed, folder / "topology.h5", bricks, folder, max(1, threads // dynamics.ranks),
                solvent)
    phases = plan_phases(simulate)
    total = sum(phase.steps for phase in phases)

    def advance(phase: PlannedPhase, row: Row | None) -> None:
        before = sum(other.steps for other in phases[:phase.number - 1])
        progress(phase.name, min(1.0, (before + (phase.steps if row is None else row["STEP"])) / total))

    run = run_phases(settings.model_copy(update={"dynamics": dynamics, "simulate": simulate}), task, chromamd,
                     progress=advance)
    end = read_restart(run.restart, n_atoms, dynamics.ranks)
    # The engine keeps a model without a periodic box in the middle third of a larger one.
    position = end.position + (corner - end.box / 3)
    energy = run.minimisation["POTENTIAL_ENE"]
    moved = np.linalg.norm(position - solute.position, axis=1)
    summary: Summary = {
        "steps": total, "simulated_ps": sum(phase.simulated for phase in phases), "engine": "chromamd",
        "energy_before_kcal_per_mol": float(energy[0]), "energy_after_kcal_per_mol": float(energy[-1]),
        "moved_rms_angstrom": round(float(np.sqrt(np.mean(moved**2))), 3),
        "moved_most_angstrom": round(float(moved.max()), 3),
        **{f"seconds_per_step_{name}": round(value, 4) for name, value in run.seconds_per_step.items()}}
    relaxed = replace(solute, position=position.astype(np.float32))
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix != ".log":
            path.unlink()
    return relaxed, summary
