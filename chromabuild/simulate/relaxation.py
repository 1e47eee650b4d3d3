"""Relaxation of a solute without water: chromamd with charges in implicit solvent, in open boundaries."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from chromabuild.base.phases import Phase, Restraint
from chromabuild.base.settings import DynamicsSection, RelaxSection, Settings, SimulateSection
from chromabuild.base.summary import Summary
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.solute import Solute
from chromabuild.simulate.dry_run import DryModel, run_dry, write_topology
from chromabuild.simulate.protocol import Solvent
from chromabuild.solvate.ions import debye_length

SWITCH_WIDTH = 2.0
"""Angstrom before the cutoff over which Lennard-Jones is switched off."""
THERMOSTAT_TIME = 0.2
"""Ps: heat of the relaxation leaves quickly."""
FIRST_TEMPERATURE = 50.0
"""Kelvin: contacts that minimisation left narrow open before atoms move fast."""
TIMESTEP, HYDROGEN_MASS_FACTOR = 4.0, 3.0
"""Fs, and how many times as heavy hydrogens are: masses decide how fast a solute relaxes, not where to."""
OUTPUT_PERIOD = 25


def relax_phases(section: RelaxSection, temperature: float) -> SimulateSection:
    """The phases of a relaxation, as the section ``simulate`` would have them."""
    phases = [Phase(name="minimise", kind="minimise", steps=section.minimise_steps)]
    if section.length:
        held = (Restraint(group="heavy", constant=(section.restraint, 0.0)),) if section.restraint else ()
        phases.append(Phase(name="relax", length=section.length, temperature=(FIRST_TEMPERATURE, temperature),
                            restraints=held, output_period=OUTPUT_PERIOD, timestep=TIMESTEP,
                            hydrogen_mass_factor=HYDROGEN_MASS_FACTOR))
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
    dynamics = dry_dynamics(section, settings.dynamics)
    topology = make_topology(solute, {}, dynamics.force_field, files=dynamics.force_field_files,
                             progress=lambda text: progress(text, 0.0))
    write_topology(topology, solute.position, folder)
    del topology
    solvent = Solvent(section.dielectric, section.dielectric_form, debye_length(settings.solvate) / 1000)
    position, summary = run_dry(
        DryModel(np.asarray(solute.position), solute.residue_first_atom, solvent),
        relax_phases(section, settings.simulate.temperature), dynamics, settings, folder, threads, progress)
    return replace(solute, position=position.astype(np.float32)), summary
