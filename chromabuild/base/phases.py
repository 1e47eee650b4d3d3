"""Phases of a simulation as settings: what a phase is, what contradicts itself, and the protocols that are shipped."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from chromabuild.base.errors import BadInputError
from chromabuild.base.section import Positive, Section

NO_LENGTH = "is not a positive number with the unit fs, ps, ns or us: write e.g. '50 ps'"
Group = Literal["solute", "heavy", "backbone", "dna", "protein", "histone-core", "tails"]
Solute = Literal["solute", "dna", "protein", "histone-core", "tails"]
Scaled = Literal["bond", "angle", "urey", "dihedral", "improper", "cmap", "charge", "lj"]
NUCLEOSOME_GROUPS = ("protein", "histone-core", "tails")
"""Groups that a locus without nucleosomes has no atom of."""
DEFAULT_TIMESTEP = 2.0
LONGEST_TIMESTEP = 4.0
"""fs, however heavy hydrogens are: the next fastest motions are those of heavy atoms."""


def picoseconds(length: str) -> float:
    """A length of time in ps. Raises ValueError when it is not a positive number with the unit fs, ps, ns or us.

    >>> picoseconds("10 ns")
    10000.0
    """
    match = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(fs|ps|ns|us)\s*", length)
    value = float(match[1]) * {"fs": 1e-3, "ps": 1.0, "ns": 1e3, "us": 1e6}[match[2]] if match else 0.0
    if not value > 0:
        raise ValueError(length)
    return value


def _checked_length(length: object) -> object:
    """What is given, as it is. Raises ValueError with a sentence for words that are no length of time."""
    try:
        if isinstance(length, str):
            picoseconds(length)
    except ValueError:
        raise ValueError(NO_LENGTH) from None
    return length


Length = Annotated[str, Field(pattern=r"^\s*[0-9.]+(?:[eE][+-]?[0-9]+)?\s*(?:fs|ps|ns|us)\s*$"),
                   BeforeValidator(_checked_length)]
"""A length of simulated time, not nothing."""


class Restraint(Section):
    """Atoms of a group held where the shards have them, with the energy k x^2 each."""

    group: Group = Field(description="atoms that are held; `solute`: all of DNA and proteins; the others are heavy atoms only")
    constant: float | tuple[float, float] = Field(
        description="k, kcal/mol/angstrom^2, not negative; [from, to]: changes linearly over the phase")

    def ends(self) -> tuple[float, float]:
        """The constant at the start and at the end of the phase."""
        return self.constant if isinstance(self.constant, tuple) else (self.constant, self.constant)


class Exchange(Section):
    """Replicas at several temperatures, of all or of a solute, that exchange them: the colder ones inherit what the hotter
    ones find."""

    temperatures: tuple[Positive, ...] = Field(description="kelvin, ascending; a replica each, on an equal share of `dynamics.ranks`")
    period: int = Field(1000, ge=1, description="steps between attempts to exchange the temperatures of neighbours")
    solute: Solute | None = Field(None, description="group that alone has the temperatures, by scaling what acts on it (REST2); everything else has the lowest one; empty: all atoms have them")
    terms: tuple[Scaled, ...] = Field((), description="with `solute`: what is scaled (gREST); empty: everything")


class Boost(Section):
    """A Gaussian boost (GaMD): energies are raised where they are low, so that barriers become lower."""

    mode: Literal["watch", "learn", "hold"] = Field(description="watch: no boost yet, its energies are watched; learn: the boost acts and follows what it sees; hold: it stays as the phases before have learnt")
    energies: Literal["both", "torsions", "potential"] = Field("both", description="what is boosted: torsions and all the rest by a boost of each, torsions alone, or everything by one boost")
    threshold: Literal["lower", "upper"] = Field("lower", description="the highest energy seen, or a higher one for a stronger boost")
    potential_deviation: Positive = Field(6.0, description="kcal/mol, largest standard deviation of the boost of the potential, or of all but torsions")
    torsion_deviation: Positive = Field(6.0, description="kcal/mol, the same of torsions")
    period: int = Field(50000, ge=2, description="steps between new values when it watches or learns, and those that a mean is over")


class Phase(Section):
    """One phase of a simulation. What is empty is inherited or has no meaning for the kind of phase."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", description="names the files of the phase and its job; letters, digits, - and _")
    kind: Literal["minimise", "dynamics"] = Field("dynamics", description="steepest descent, or dynamics")
    length: str | None = Field(None, description="of dynamics, with its unit: `50 ps`, `10 ns`; or give `steps`")
    steps: int | None = Field(None, ge=1, description="steps of the phase, instead of `length`")
    ensemble: Literal["NVE", "NVT", "NPT"] | None = Field(None, description="NVT (default): constant temperature; NPT: and pressure; NVE: constant energy")
    temperature: Positive | tuple[Positive, Positive] | None = Field(None, description="kelvin, of the thermostat and of velocities that are drawn; [from, to]: linear ramp; empty: `simulate.temperature`")
    pressure: float | None = Field(None, description="atm, of NPT; empty: `simulate.pressure`")
    timestep: Positive | None = Field(None, description="fs; empty: 2")
    hydrogen_mass_factor: float = Field(1.0, ge=1, le=4, description="hydrogens of the solute are so many times as heavy, at the cost of their heavy atoms: 3 for 4 fs")
    restraints: tuple[Restraint, ...] = Field((), description="what is held: list of `group` and `constant`")
    end_pairs: float = Field(0.0, ge=0, description="k, kcal/mol/angstrom^2, of the hydrogen bonds of the base pairs at the ends of DNA, against fraying; 0: free")
    exchange: Exchange | None = Field(None, description="replica exchange instead of `temperature`: `temperatures` and `period`; of the last phase, with engine chromamd")
    boost: Boost | None = Field(None, description="Gaussian accelerated dynamics: `mode` and what is boosted; with engine chromamd")
    output_period: int | None = Field(None, ge=1, description="steps between energies; empty: `simulate.output_period`, in a minimisation 10")
    trajectory_period: int | None = Field(None, ge=1, description="steps between frames; empty: `simulate.trajectory_period`, in a minimisation none")

    def n_steps(self) -> int:
        """Steps, of a phase that has passed ``check_phases``."""
        if self.steps is not None:
            return self.steps
        return max(1, round(1000 * picoseconds(self.length or "") / (self.timestep or DEFAULT_TIMESTEP)))


def check_phases(phases: Sequence[Phase], where: str) -> None:
    """Raises BadInputError with one sentence, which names ``where`` and the phase, for the first contradiction."""
    names = [phase.name for phase in phases]
    for k, phase in enumerate(phases):
        problem = f"the name is that of phase {names.index(phase.name) + 1} too: choose another" \
            if phase.name in names[:k] else _problem_of(phase)
        if not problem and phase.exchange and phase is not phases[-1]:
            problem = "a phase with exchange leaves one state for each temperature: make it the last"
        if not problem and phase.boost:
            problem = _problem_of_boost(phase, phase.boost, [one.boost for one in phases[:k] if one.boost])
        if problem:
            raise BadInputError(f"{where}: simulate.phases, phase {k + 1} ({phase.name}): {problem}")


def _problem_of(phase: Phase) -> str | None:
    """What contradicts itself in a phase."""
    negative = next((value for restraint in phase.restraints for value in restraint.ends() if value < 0), None)
    if negative is not None:
        return f"a restraint has the constant {negative:g}, which would push atoms away: give 0 or more"
    if phase.length is not None and phase.steps is not None:
        return "length and steps are both given: remove one"
    if phase.kind == "minimise":
        given = next((key for key in ("length", "ensemble", "temperature", "pressure", "timestep", "exchange",
                                        "boost")
                      if getattr(phase, key) is not None), None)
        if given:
            return f"a minimisation has no {given}: remove it, or make the phase dynamics"
        if phase.steps is None:
            return "a minimisation needs steps"
        if any(first != last for first, last in (restraint.ends() for restraint in phase.restraints)):
            return "a minimisation cannot release a restraint: give it one constant, or make the phase dynamics"
        return None
    return _problem_of_dynamics(phase)


def _problem_of_dynamics(phase: Phase) -> str | None:
    if phase.length is None and phase.steps is None:
        return "dynamics needs a length such as '50 ps', or steps"
    try:
        picoseconds(phase.length or "1 ps")
    except ValueError:
        return f"length {phase.length!r} {NO_LENGTH}"
    if isinstance(phase.temperature, tuple) and phase.ensemble == "NVE":
        return "a ramp of the temperature needs a thermostat: set ensemble to NVT or NPT"
    if phase.pressure is not None and phase.ensemble != "NPT":
        return "only the ensemble NPT has a pressure: set ensemble to NPT, or remove pressure"
    problem = _problem_of_exchange(phase, phase.exchange) if phase.exchange else None
    if problem:
        return problem
    timestep, factor = phase.timestep or DEFAULT_TIMESTEP, phase.hydrogen_mass_factor
    # 2 fs with rigid bonds to hydrogen; angles of hydrogens are slower by the root of their mass.
    longest = min(LONGEST_TIMESTEP, DEFAULT_TIMESTEP + (factor - 1))
    if timestep > LONGEST_TIMESTEP:
        return f"a timestep of {timestep:g} fs is too long for any masses: {LONGEST_TIMESTEP:g} fs is the longest"
    if timestep > longest:
        return (f"a timestep of {timestep:g} fs is too long for hydrogen_mass_factor {factor:g}: "
                f"set that to {timestep - DEFAULT_TIMESTEP + 1:g}, or the timestep to {longest:g}")
    return None


def _problem_of_exchange(phase: Phase, exchange: Exchange) -> str | None:
    temperatures = exchange.temperatures
    if len(temperatures) < 2:
        return "exchange.temperatures has fewer than two: add some, or remove exchange"
    if any(second <= first for first, second in zip(temperatures, temperatures[1:], strict=False)):
        return "exchange.temperatures must ascend, since neighbours in the list exchange"
    if exchange.terms and exchange.solute is None:
        return "exchange.terms are those of a solute: give exchange.solute, or remove them"
    if phase.temperature is not None:
        return "temperature and exchange.temperatures are both given: remove temperature"
    if phase.ensemble == "NVE":
        return "an exchange of temperatures needs a thermostat: set ensemble to NVT or NPT"
    if any(first != last for first, last in (restraint.ends() for restraint in phase.restraints)):
        return "restraints that change over the phase do not go with exchange: give each one constant"
    return None


def _problem_of_boost(phase: Phase, boost: Boost, before: Sequence[Boost]) -> str | None:
    """``before``: the boosts of earlier phases."""
    if boost.mode != "hold" and phase.exchange:
        return f"boost.mode {boost.mode} does not go with exchange, whose replicas share one boost: set it to hold"
    if boost.mode != "hold" and phase.n_steps() < boost.period:
        return (f"boost.period is {boost.period} steps and the phase has {phase.n_steps()}: nothing would be learnt; "
                "make the phase longer")
    if boost.mode == "watch":
        return None
    if not before:
        return (f"boost.mode {boost.mode} begins with what an earlier phase has learnt: let one before it have "
                "boost.mode watch")
    if before[-1].energies != boost.energies:
        return (f"boost.energies is {boost.energies} and that of the boost before it {before[-1].energies}: what was "
                "learnt is of other energies; give both the same")
    return None


def shipped_phases(protocol: str, temperature: float) -> tuple[Phase, ...]:
    """The phases of a shipped protocol, which ends at ``temperature`` (K)."""
    return tuple(Phase.model_validate(_warmed(phase, temperature)) for phase in PROTOCOLS[protocol])


def _warmed(phase: Mapping[str, object], temperature: float) -> dict[str, object]:
    """The phase with the end of its ramp filled in."""
    if "heat_from" not in phase:
        return dict(phase)
    return {key: value for key, value in phase.items() if key != "heat_from"} | {
        "temperature": (phase["heat_from"], temperature)}


def _held(group: Group, *constant: float) -> dict[str, object]:
    return {"group": group, "constant": constant[0] if len(constant) == 1 else constant}


_PAIRED = {"end_pairs": 5.0}  # the bonds fluctuate by 0.25 angstrom then
_HEAVY = {"hydrogen_mass_factor": 3.0, **_PAIRED}  # from the first step on: masses that change heat or cool
_OFTEN = {"output_period": 500, "trajectory_period": 5000}
_RARELY = {"output_period": 1000, "trajectory_period": 25000}

PROTOCOLS: dict[str, list[dict[str, object]]] = {
    "demo": [
        {"name": "minimise", "kind": "minimise", "steps": 20},
        {"name": "dynamics", "steps": 50, "output_period": 10, "trajectory_period": 10},
    ],
    "standard": [
        {"name": "minimise", "kind": "minimise", "steps": 1000, "restraints": [_held("heavy", 5.0)]},
        {"name": "relax", "kind": "minimise", "steps": 1000, "restraints": [_held("backbone", 1.0)]},
        {"name": "heat", "length": "50 ps", "heat_from": 10.0, "restraints": [_held("heavy", 5.0)], **_HEAVY, **_OFTEN},
        {"name": "settle", "length": "50 ps", "ensemble": "NPT", "restraints": [_held("heavy", 5.0, 1.0)], **_HEAVY, **_OFTEN},
        {"name": "release", "length": "100 ps", "ensemble": "NPT", "restraints": [_held("heavy", 1.0, 0.1)], **_HEAVY, **_OFTEN},
        {"name": "loosen", "length": "100 ps", "ensemble": "NPT", "restraints": [_held("backbone", 0.1, 0.0)], **_HEAVY, **_OFTEN},
        {"name": "equilibrate", "length": "200 ps", "ensemble": "NPT", **_HEAVY, **_OFTEN},
        {"name": "produce", "length": "10 ns", "ensemble": "NPT", "timestep": 4.0, **_HEAVY, **_RARELY},
    ],
    "careful": [
        {"name": "minimise", "kind": "minimise", "steps": 5000, "restraints": [_held("heavy", 10.0)]},
        {"name": "relax", "kind": "minimise", "steps": 5000, "restraints": [_held("backbone", 1.0)]},
        {"name": "warm", "length": "50 ps", "timestep": 1.0, "heat_from": 10.0, "restraints": [_held("heavy", 10.0)], **_PAIRED, **_OFTEN},
        {"name": "soak", "length": "200 ps", "restraints": [_held("heavy", 10.0)], **_PAIRED, **_OFTEN},
        {"name": "settle", "length": "200 ps", "ensemble": "NPT", "restraints": [_held("heavy", 10.0, 2.0)], **_PAIRED, **_OFTEN},
        {"name": "release", "length": "500 ps", "ensemble": "NPT", "restraints": [_held("heavy", 2.0, 0.2)], **_PAIRED, **_OFTEN},
        {"name": "loosen", "length": "500 ps", "ensemble": "NPT", "restraints": [_held("backbone", 0.2, 0.0)], **_PAIRED, **_OFTEN},
        {"name": "equilibrate", "length": "1 ns", "ensemble": "NPT", **_PAIRED, **_OFTEN},
        {"name": "produce", "length": "10 ns", "ensemble": "NPT", **_PAIRED, "output_period": 1000, "trajectory_period": 50000},
    ],
}
"""Shipped protocols by name; the temperature of ``heat_from`` rises to that of the simulation."""
