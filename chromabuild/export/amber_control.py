"""Control files (mdin) of AMBER's pmemd and sander for the phases of a protocol.

Keys: Amber reference manual, "sander" and "pmemd"; ``fswitch`` is CHARMM's force switch. Restraints are groups of atom
ranges after the namelists, each with a constant of its own (its appendix "GROUP specification"); their energy is k x^2,
as ours.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from chromabuild.base.constants import BAR_PER_ATM
from chromabuild.base.settings import DynamicsSection
from chromabuild.base.smooth_numbers import smooth_number
from chromabuild.export.parts import stretches_of
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.simulate.protocol import PlannedPhase

END_PAIRS_NAME = "end_pairs.rst"
_RANGES_A_LINE = 7
LARGEST_PRIME = 5
"""Of the factors of a mesh: AMBER stops at 7."""
_EVERY_BOND = 1
_THERMOSTATS = {"langevin": 3, "nose-hoover": 3, "bussi": 11, "berendsen": 1}
_FARTHEST = 999.0


def phase_control(phase: PlannedPhase, dynamics: DynamicsSection, options: NonbondedOptions, seed: int,
                  groups: Mapping[str, np.ndarray], last_written: int) -> str:
    """The mdin file of a phase whose restraints are constant.

    ``groups``: atoms, from 0, of the groups that are held. ``last_written``: atoms 1 to this one are in the trajectory.
    """
    keys = _minimisation(phase) if phase.kind == "minimise" else _dynamics(phase, dynamics, seed)
    ramp = phase.kind == "dynamics" and phase.temperature[0] != phase.temperature[1]
    keys |= {"cut": options.cutoff, "ntpr": phase.output_period, "ioutfm": 1,
             "ntwx": phase.trajectory_period if phase.frames else 0, "ntwprt": last_written, "iwrap": 0,
             "ntr": int(bool(phase.restraints)), "nmropt": int(ramp or bool(phase.end_pairs))}
    mesh = {f"nfft{axis}": smooth_number(points, LARGEST_PRIME)
            for axis, points in zip((1, 2, 3), options.grid, strict=True)}
    mesh |= {"order": dynamics.pme_spline_order, "ew_coeff": round(options.alpha, 8), "vdwmeth": int(options.tail)}
    title = f"chromabuild, phase {phase.name}"
    if options.is_switched and options.force_switch:
        keys["fswitch"] = options.switch_distance
    elif options.is_switched:
        title += "; Lennard-Jones is truncated here and switched off in chromamd"
    lines = [title, *_namelist("cntrl", keys), *_namelist("ewald", mesh)]
    if ramp:
        start, end = phase.temperature
        lines += _namelist("wt", {"type": "'TEMP0'", "istep1": 0, "istep2": phase.steps, "value1": start,
                                  "value2": end})
    if keys["nmropt"]:
        lines += _namelist("wt", {"type": "'END'"})
    if phase.end_pairs:
        lines.append(f"DISANG={phase.stem}_{END_PAIRS_NAME}")
    for restraint in phase.restraints:
        lines += [restraint.group, f"{restraint.ends()[0]:g}", *_ranges(groups[restraint.group]), "END"]
    if phase.restraints:
        lines.append("END")
    return "\n".join(lines) + "\n"


def end_pair_restraints(bonds: Sequence[EndBond], constant: float) -> str:
    """The file of distance restraints that hold hydrogen bonds, with the energy k (r - r0)^2."""
    return "".join(
        f" &rst iat={bond.atoms[0] + 1},{bond.atoms[1] + 1}, r1=0.0, r2={bond.length}, r3={bond.length}, "
        f"r4={_FARTHEST}, rk2={constant:g}, rk3={constant:g}, /\n" for bond in bonds)


def _minimisation(phase: PlannedPhase) -> dict[str, object]:
    return {"imin": 1, "maxcyc": phase.steps, "ncyc": phase.steps, "ntb": 1, "ntc": _EVERY_BOND, "ntf": _EVERY_BOND}


def _dynamics(phase: PlannedPhase, dynamics: DynamicsSection, seed: int) -> dict[str, object]:
    start, end = phase.temperature
    keys: dict[str, object] = {
        "imin": 0, "irest": int(not phase.draws_velocities), "ntx": 1 if phase.draws_velocities else 5,
        "nstlim": phase.steps, "dt": phase.timestep / 1000, "t": phase.first_time, "ig": seed, "ntc": 2, "ntf": 2,
        "tol": 1e-6, "ntt": 0, "ntb": 1, "ntp": 0}
    if phase.draws_velocities:
        keys["tempi"] = start
    if phase.ensemble != "NVE":
        keys |= {"ntt": _THERMOSTATS[dynamics.thermostat], "temp0": end}
        if keys["ntt"] == _THERMOSTATS["langevin"]:
            keys["gamma_ln"] = dynamics.friction
        else:
            keys["tautp"] = dynamics.temperature_time
    if phase.ensemble == "NPT":
        keys |= {"ntb": 2, "ntp": 1, "barostat": 2, "pres0": round(phase.pressure * BAR_PER_ATM, 6)}
    return keys


def _namelist(name: str, keys: Mapping[str, object]) -> list[str]:
    return [f" &{name}", *(f"  {key}={value}," for key, value in keys.items()), " /"]


def _ranges(atoms: np.ndarray) -> list[str]:
    """Lines of first and last atoms, from 1, of runs of (n,) ascending atoms."""
    pairs = [f"{first} {last}" for first, last in stretches_of(atoms + 1)]
    return ["ATOM " + " ".join(pairs[k:k + _RANGES_A_LINE]) for k in range(0, len(pairs), _RANGES_A_LINE)]
