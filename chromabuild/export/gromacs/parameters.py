"""GROMACS run parameters (mdp) of the phases of a protocol.

Keys: GROMACS user guide, "Molecular dynamics parameters". Cutoffs, screening, grid, thermostat, restraints and periods
are those that chromamd is given; where GROMACS has no counterpart, a comment in the file says what it has.
"""

from collections.abc import Iterator

from scipy.special import erfc

from chromabuild.base.constants import BAR_PER_ATM
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.gromacs.molecules import (
    END_PAIRS,
    HEAVY_HYDROGENS,
    RIGID_FAST_BONDS,
    STIFFNESS,
    restraint_macro,
)
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.simulate.protocol import PlannedPhase

_NM = 10.0
_COMPRESSIBILITY = 4.5e-5
"""Of water, 1/bar."""


def phase_parameters(phase: PlannedPhase, dynamics: DynamicsSection, options: NonbondedOptions, seed: int,
                     frames_of: str, rigid_fast_bonds: bool = False) -> str:
    """The mdp file of a phase. ``frames_of``: the index group in its trajectory. ``rigid_fast_bonds``: those of the
    topology are constraints."""
    ramped = any(first != last for first, last in (restraint.ends() for restraint in phase.restraints))
    keys = {"define": _defines(phase, rigid_fast_bonds),
            **(_minimisation(phase) if phase.kind == "minimise" else _dynamics(phase, seed)),
            "nstenergy": phase.output_period, "nstlog": phase.output_period,
            "nstxout-compressed": phase.trajectory_period if phase.frames else 0, "compressed-x-grps": frames_of,
            **interactions(options, dynamics.pme_spline_order), "constraints": "none"}
    if phase.kind == "dynamics":
        keys |= {"constraints": "h-bonds", "constraint-algorithm": "lincs"} | _bath(phase, dynamics)
    if ramped:
        keys |= {"free-energy": "yes", "init-lambda": 0, "delta-lambda": f"{1 / phase.steps:.10g}", "nstdhdl": 0}
    return _text(f"phase {phase.name}", [*_differences(phase, dynamics, options, rigid_fast_bonds)], keys)


def energy_parameters(dynamics: DynamicsSection, options: NonbondedOptions) -> str:
    """An mdp file for the energy of the coordinates as they are, term by term: of a run of no steps."""
    return _text("energies of the coordinates, without constraints", [], {
        "define": "-DFLEXIBLE", "integrator": "md", "nsteps": 0, "continuation": "yes", "nstenergy": 1,
        "nstcalcenergy": 1, **interactions(options, dynamics.pme_spline_order), "constraints": "none"})


def interactions(options: NonbondedOptions, spline_order: int) -> dict[str, object]:
    """Cutoffs and PME."""
    keys: dict[str, object] = {
        "cutoff-scheme": "Verlet", "nstlist": 20, "rlist": options.cutoff / _NM, "coulombtype": "PME",
        "coulomb-modifier": "None", "rcoulomb": options.cutoff / _NM,
        "ewald-rtol": f"{erfc(options.alpha * options.cutoff):.10g}", "pme-order": spline_order,
        **{f"fourier-n{axis}": points for axis, points in zip("xyz", options.grid, strict=True)},
        "vdwtype": "Cut-off", "vdw-modifier": "None", "rvdw": options.cutoff / _NM,
        "DispCorr": "EnerPres" if options.tail else "no"}
    if options.is_switched:
        keys |= {"vdw-modifier": "Force-switch" if options.force_switch else "Potential-switch",
                 "rvdw-switch": options.switch_distance / _NM}
    return keys


def _defines(phase: PlannedPhase, rigid_fast_bonds: bool) -> str:
    """Macros of the topology."""
    macros = ["FLEXIBLE"] if phase.kind == "minimise" else []
    if rigid_fast_bonds:
        macros.append(RIGID_FAST_BONDS)
    if phase.hydrogen_mass_factor != 1:
        macros.append(HEAVY_HYDROGENS)
    for restraint in phase.restraints:
        name = restraint_macro(restraint.group)
        macros += [f"{end}={STIFFNESS * constant:g}"
                   for end, constant in zip((name, f"{name}_END"), restraint.ends(), strict=True)]
    if phase.end_pairs:
        macros.append(f"{END_PAIRS}={STIFFNESS * phase.end_pairs:g}")
    return " ".join(f"-D{macro}" for macro in macros)


def _minimisation(phase: PlannedPhase) -> dict[str, object]:
    return {"integrator": "steep", "nsteps": phase.steps, "emtol": 0, "emstep": 0.005}


def _dynamics(phase: PlannedPhase, seed: int) -> dict[str, object]:
    keys: dict[str, object] = {"integrator": "md", "nsteps": phase.steps, "dt": phase.timestep / 1000,
                               "tinit": phase.first_time, "continuation": "no" if phase.draws_velocities else "yes",
                               "gen-vel": "yes" if phase.draws_velocities else "no"}
    if phase.draws_velocities:
        keys |= {"gen-temp": phase.temperature[0], "gen-seed": seed}
    return keys


def _bath(phase: PlannedPhase, dynamics: DynamicsSection) -> dict[str, object]:
    """Temperature and pressure."""
    start, end = phase.temperature
    if phase.ensemble == "NVE":
        return {"tcoupl": "no", "pcoupl": "no"}
    couplings = {"bussi": "V-rescale", "berendsen": "V-rescale", "nose-hoover": "Nose-Hoover", "langevin": "no"}
    keys: dict[str, object] = {"tcoupl": couplings[dynamics.thermostat], "tc-grps": "System",
                               "tau-t": dynamics.temperature_time, "ref-t": start}
    if dynamics.thermostat == "langevin":
        keys |= {"integrator": "sd", "tau-t": 1 / dynamics.friction}
    elif dynamics.thermostat == "nose-hoover":
        keys["nsttcouple"] = 1  # GROMACS wants 20 couplings within tau-t
    if start != end:
        keys |= {"annealing": "single", "annealing-npoints": 2, "annealing-temp": f"{start:g} {end:g}",
                 "annealing-time": f"{phase.first_time:g} {phase.first_time + phase.simulated:g}"}
    if phase.ensemble == "NPT":
        keys |= {"pcoupl": "C-rescale", "pcoupltype": "isotropic", "tau-p": dynamics.barostat_time,
                 "ref-p": f"{phase.pressure * BAR_PER_ATM:.6g}", "compressibility": _COMPRESSIBILITY}
        if phase.restraints:
            keys["refcoord-scaling"] = "com"
    return keys


def _differences(phase: PlannedPhase, dynamics: DynamicsSection, options: NonbondedOptions,
                 rigid_fast_bonds: bool) -> Iterator[str]:
    """What differs from chromamd."""
    if rigid_fast_bonds:
        yield "Bonds with a period below five time steps are rigid: GROMACS warns of them otherwise"
    if options.is_switched:
        yield "Lennard-Jones is switched off by GROMACS' function, by CHARMM's in chromamd"
    if phase.kind == "dynamics" and phase.ensemble != "NVE" and dynamics.thermostat == "berendsen":
        yield "V-rescale takes the place of the Berendsen thermostat, which gives no canonical ensemble"
    if phase.kind == "dynamics" and phase.ensemble == "NPT":
        yield "C-rescale takes the place of chromamd's barostat"


def _text(title: str, remarks: list[str], keys: dict[str, object]) -> str:
    lines = [f"; chromabuild, {title}", *(f"; {remark}" for remark in remarks)]
    return "\n".join([*lines, *(f"{key:<20s} = {value}" for key, value in keys.items() if value != "")]) + "\n"
