"""Refinement of a built solute by dynamics of its beads: chromamd in open boundaries, then back to atoms.

Langevin dynamics of 3SPN.2 beads and elastic proteins in salt water without its atoms. The permittivity of salt
water and with it the Debye length are those of Hinckley, Freeman, Whitmer and de Pablo, J. Chem. Phys. 139, 144903
(2013), equations 8 to 11.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from chromabuild.base.constants import BOLTZMANN, COULOMB_CONSTANT
from chromabuild.base.errors import BadInputError
from chromabuild.base.phases import Phase
from chromabuild.base.settings import DynamicsSection, RefineSection, Settings, SimulateSection
from chromabuild.base.summary import Summary
from chromabuild.build.beads import AMINO_ACID, beads_of
from chromabuild.build.from_beads import atoms_on_beads
from chromabuild.forcefield.bead_topology import bead_topology
from chromabuild.molecule.solute import Solute
from chromabuild.simulate.dry_run import DryModel, run_dry, write_topology
from chromabuild.simulate.protocol import Solvent
from chromabuild.solvate.ions import ionic_strength

OUTPUT_PERIOD = 100
WARM_STEPS = 1000
FIRST_TEMPERATURE = 50.0
"""Kelvin: strain that minimisation left goes before beads move fast."""


def water_with_salt(temperature: float, salt: float) -> Solvent:
    """Water of so many kelvin with salt of an ionic strength of so many mol/L, around beads.

    >>> round(water_with_salt(300.0, 0.15).debye_length, 2)
    7.7
    """
    permittivity = 249.4 - 0.788 * temperature + 7.20e-4 * temperature**2
    permittivity *= 1 - 0.2551 * salt + 5.151e-2 * salt**2 - 6.889e-3 * salt**3
    density = 6.02214076e-4 * salt  # of ions of each sign, 1/angstrom^3
    length = np.sqrt(permittivity * BOLTZMANN * temperature / (8 * np.pi * COULOMB_CONSTANT * density))
    return Solvent(permittivity, "constant", float(length), of_beads=True)


def refinement_phases(section: RefineSection, temperature: float) -> SimulateSection:
    """Minimisation, dynamics, and minimisation again, so that atoms are laid on beads without thermal noise."""
    minimise = {"kind": "minimise", "steps": section.minimise_steps}
    phases = [Phase(name="minimise", **minimise)]
    if section.length:
        phases += [Phase(name="warm", steps=WARM_STEPS, timestep=section.timestep / 2,
                         temperature=(FIRST_TEMPERATURE, temperature), output_period=OUTPUT_PERIOD),
                   Phase(name="move", length=section.length, timestep=section.timestep, temperature=temperature,
                         output_period=OUTPUT_PERIOD),
                   Phase(name="quench", **minimise)]
    return SimulateSection(protocol=None, phases=tuple(phases), temperature=temperature, trajectory_period=2**31)


def bead_dynamics(section: RefineSection, dynamics: DynamicsSection) -> DynamicsSection:
    """How forces are computed and beads moved, on one rank; what is not set here is that of ``dynamics``."""
    return dynamics.model_copy(update={
        "cutoff": section.cutoff, "switch_distance": section.cutoff, "switch": "energy", "thermostat": "langevin",
        "thermostat_time": 1.0 / section.friction, "ranks": 1, "tune": False})


def refine(solute: Solute, settings: Settings, folder: Path, threads: int,
           progress: Callable[[str, float], None]) -> tuple[Solute, Summary]:
    """Let a solute move as beads and lay its atoms back on them.

    The summary has energies before and after, and how far the beads of the new atoms are from those that moved. Work
    files lie in ``folder``: an interrupted call goes on from them, and of one that ended the logs are left.
    Raises BadInputError for a solute that has no beads (``beads_of``) or a closed circle, and what the engine raises.
    """
    section, temperature = settings.refine, settings.simulate.temperature
    if solute.circular:
        raise BadInputError("the solute has a closed circle of DNA, whose backbone is not laid back on beads: leave "
                            "refine.enabled at false")
    beads = beads_of(solute)
    place = beads.place(solute.position)
    write_topology(bead_topology(solute, beads), place, folder)
    first = np.append(np.flatnonzero(np.diff(beads.residue, prepend=-1)), beads.n)
    model = DryModel(place, first, water_with_salt(temperature, ionic_strength(settings.solvate)))
    moved, summary = run_dry(model, refinement_phases(section, temperature),
                             bead_dynamics(section, settings.dynamics), settings, folder, threads, progress)
    refined = atoms_on_beads(solute, beads, moved, threads)
    off = np.sum((beads.place(refined.position) - moved) ** 2, axis=1)
    is_protein = beads.kind == AMINO_ACID
    return refined, {"beads": beads.n, **summary, **{
        f"{name}_off_rms_angstrom": round(float(np.sqrt(off[of].mean())), 3)
        for name, of in (("dna", ~is_protein), ("proteins", is_protein)) if of.any()}}
