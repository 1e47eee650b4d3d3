"""Run our MPI engine chromamd: write its control files, launch it, follow it, and read what it writes."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from chromabuild.base.duration import minutes_of
from chromabuild.base.errors import (
    BadInputError,
    BusyError,
    ChromabuildError,
    IntegrityError,
    InterruptedRunError,
    ResourceError,
    UnstableRunError,
)
from chromabuild.base.files import atomic_path
from chromabuild.base.in_use import lock_descriptors
from chromabuild.base.phases import Exchange
from chromabuild.base.settings import HEALTH_KEYS, DynamicsSection
from chromabuild.base.stop_signals import get_when_parent_dies, stops_go_to
from chromabuild.forcefield.molecule_runs import trajectory_ranges
from chromabuild.forcefield.topology_file import molecule_kinds
from chromabuild.simulate.boost import boost_section
from chromabuild.simulate.end_pairs import EndBond, end_bonds
from chromabuild.simulate.energy_log import TableReader
from chromabuild.simulate.exchange import replica_log, sort_energies
from chromabuild.simulate.executable import Precision, executable
from chromabuild.simulate.launcher import RANKS_VARIABLE, launched
from chromabuild.simulate.protocol import PlannedPhase, Row, Task
from chromabuild.simulate.restart_file import path_of_rank

RowProgress = Callable[[Row], None]
Sections = dict[str, dict[str, object]]
"""Of a control file: section to key to value, in the units of the engine (ps where the settings have fs)."""

_ERRORS = {error.exit_code: error for error in (BadInputError, IntegrityError, ResourceError, InterruptedRunError,
                                                 BusyError, UnstableRunError)}
_POLL_SECONDS = 0.2
_TRIAL_POLL_SECONDS = 0.01
TRIAL_LOG = "trial.log"
"""Of ``try_out``."""
_CONTINUED = "continued from the checkpoint"
_STOP = signal.SIGUSR1
"""Asks the engine to write a checkpoint and to end. mpirun hands this one on to its ranks, in Open MPI and in MPICH;
at SIGTERM and SIGINT Open MPI kills them a second later."""
_THERMOSTATS = {"bussi": "BUSSI", "nose-hoover": "NHC", "langevin": "LANGEVIN", "berendsen": "BERENDSEN"}
FOLDER_DOMAINS = 256
"""More have their files in folders of 256."""
THERMOSTAT_PERIOD = 5
"""Steps between two uses of the thermostat: often enough for relaxation times from 0.05 ps."""
BAROSTAT_TIME = 20.0
"""Femtoseconds between two uses of the barostat, which needs energies, at most. Kicks of pistons 40 fs apart meet the
vibrations of water, which take up 0.05 kT/ns per atom."""
FORCE_SCALE_MAX = 5e-2
"""Largest displacement per force, angstrom^2 mol/kcal. The minimiser finds its step lengths from the curvature: from
4e-4 for the stiffest mode, an X-H stretch, to this one for soft modes, which are what is left after a few steps."""


def launch_command(ranks: int, precision: Precision = "mixed", arguments: Sequence[str] = (), threads: int = 1,
                   launcher: str = "auto", variables: Sequence[str] = ()) -> list[str]:
    """The command line that starts the engine with ``arguments``; the rest as of ``simulate.launcher.launched``.

    Raises ResourceError when the engine or the launcher is missing, BadInputError for a launcher that is none.
    """
    return launched([str(executable(precision)), *arguments], ranks, threads, launcher, variables)


def control_text(sections: Sections) -> str:
    """A control file; True and False become YES and NO, entries that are None are left out."""
    lines = []
    for section, entries in sections.items():
        lines.append(f"[{section}]")
        for key, value in entries.items():
            if value is not None:
                text = ("NO", "YES")[value] if isinstance(value, bool) else str(value)
                lines.append(f"{key:<16s} = {text}")
        lines.append("")
    return "\n".join(lines)


def write_control(path: str | Path, sections: Sections) -> None:
    """Write a control file."""
    with atomic_path(path) as part:
        part.write_text(control_text(sections), encoding="utf-8")


def launch(command: Literal["setup", "run", "energy", "merge"], control: str | Path, ranks: int = 1,
           precision: Precision = "mixed", log: str | Path | None = None, progress: RowProgress | None = None,
           threads: int | None = None, launcher: str = "auto", poll: float = _POLL_SECONDS) -> None:
    """Run the engine on a control file and wait for it.

    ``log``: the file its control file names; every new row of its energy table goes to ``progress``, which takes place
    every ``poll`` seconds. ``threads``: of each rank; None: ``OMP_NUM_THREADS``, else 1. ``launcher``: what starts the
    ranks. Standard output and error are kept beside the control file (``.out``). A signal that asks this process to
    stop (``base.stop_signals``), or its death, asks the engine to stop: where its control file names a checkpoint, it
    writes one first. A second signal does not wait for that. Raises the error class that fits the engine's exit code,
    with the engine's own sentence; InterruptedRunError when it was stopped; ResourceError when the engine or the
    launcher is missing.
    """
    control = Path(control)
    output = control.with_suffix(".out")
    openmp = str(threads or os.environ.get("OMP_NUM_THREADS", "1"))
    environment = os.environ | {"OMP_NUM_THREADS": openmp, RANKS_VARIABLE: str(ranks)}
    if ranks > (os.cpu_count() or 1):
        environment["OMPI_MCA_mpi_yield_when_idle"] = "1"  # waiting ranks must not keep the working ones from a core
    # OpenCL of processors (pocl), which hwloc looks for, keeps Open MPI's mpirun from handing signals on.
    environment.setdefault("HWLOC_COMPONENTS", "-opencl")
    follower = _Follower(Path(log) if log else None, progress)
    line = launch_command(ranks, precision, [command, str(control)], int(openmp.split(",")[0]), launcher,
                          ("OMP_NUM_THREADS", RANKS_VARIABLE))
    stops: list[int] = []
    with open(output, "w", encoding="utf-8") as out, stops_go_to(stops.append):
        # A session of its own: Ctrl-C in a terminal goes to all processes of the foreground, mpirun included.
        process = subprocess.Popen(line, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=environment, start_new_session=True,
                                   preexec_fn=lambda: get_when_parent_dies(_STOP),
                                   pass_fds=lock_descriptors())  # the folder is in use until the engine has ended
        try:
            handed_on = 0
            while process.poll() is None:
                if len(stops) > handed_on:
                    handed_on = len(stops)
                    process.send_signal(_STOP if handed_on == 1 else signal.SIGTERM)
                follower.look()
                try:
                    process.wait(poll)
                except subprocess.TimeoutExpired:
                    continue
            follower.look()
        finally:
            if process.poll() is None:  # an exception, e.g. of ``progress``
                process.send_signal(_STOP)
                process.wait()
    if stops and process.returncode != InterruptedRunError.exit_code:
        raise InterruptedRunError("interrupted: the same command continues")
    if process.returncode != 0:
        error = _ERRORS.get(process.returncode, ChromabuildError)
        raise error(_sentence(output, process.returncode))


class _Follower:
    """Reads what was appended to a log since the last look; made before the engine starts."""

    def __init__(self, log: Path | None, progress: RowProgress | None) -> None:
        self._log, self._progress = log, progress
        self._old = self._changed()
        self._offset, self._rest, self._reader = 0, "", TableReader()

    def _changed(self) -> int:
        """When the log was changed, ns; 0 where there is none."""
        return self._log.stat().st_mtime_ns if self._log is not None and self._log.exists() else 0

    def look(self) -> None:
        if self._log is None or self._progress is None or self._changed() == self._old:
            return
        with open(self._log, encoding="utf-8", errors="replace") as file:
            file.seek(self._offset)
            text = self._rest + file.read()
            self._offset = file.tell()
        *lines, self._rest = text.split("\n")
        # Rows of the part of the run that a checkpoint goes on from are no news.
        new = max((k for k, line in enumerate(lines) if line.startswith(_CONTINUED)), default=0)
        for k, line in enumerate(lines):
            row = self._reader.row(line)
            if row is not None and k >= new:
                self._progress(row)


def _sentence(output: Path, code: int) -> str:
    """The engine's own sentence from what it printed, without mpirun's frame around it."""
    prefix = "chromamd: "
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines:
        if line.startswith(prefix):
            return line.removeprefix(prefix)
    last = next((line.strip() for line in reversed(lines) if any(map(str.isalnum, line))), "")
    if not last and code == ResourceError.exit_code:  # not even its sentence could be written
        return (f"chromamd cannot write to {output.parent}: the disk is full or fails; free some disk space or choose "
                "another output folder, and run again")
    last = last or "no message"
    return f"chromamd stopped with code {code} ({last}): see {output}"


def read_energies(control: str | Path) -> dict[str, float]:
    """What ``chromamd energy`` printed for a control file: ``POTENTIAL_ENE`` and its parts by name, kcal/mol.

    Raises BadInputError when there is no such output.
    """
    output = Path(control).with_suffix(".out")
    try:
        lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise BadInputError(f"cannot read {output} ({error.strerror}): run chromamd energy first") from error
    pairs = [line.split(" = ") for line in lines if " = " in line]
    values = {name: float(value) for name, value in pairs if len(value.split()) == 1}
    if "POTENTIAL_ENE" not in values:
        raise BadInputError(f"{output} holds no energies: it is not the output of chromamd energy")
    return values


def read_forces(path: str | Path) -> np.ndarray:
    """The force file of ``chromamd energy``: (n, 3) float64 in global atom order, kcal/mol/angstrom.

    Raises BadInputError when it is missing, IntegrityError when it is damaged.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadInputError(f"cannot read {path} ({error.strerror}): run chromamd energy first") from error
    n_atoms = int(np.frombuffer(data[8:16], "<i8")[0]) if data[:8] == b"CMDFORC1" and len(data) >= 16 else -1
    if n_atoms < 0 or len(data) != 16 + 24 * n_atoms:
        raise IntegrityError(f"{path} is not a whole force file: run chromamd energy again")
    return np.frombuffer(data[16:], "<f8").reshape(-1, 3)


def ensemble_section(dynamics: DynamicsSection, phase: PlannedPhase) -> dict[str, object]:
    """The [ENSEMBLE] section of a phase of dynamics."""
    start, end = phase.temperature
    section: dict[str, object] = {"ensemble": phase.ensemble, "temperature": start}
    if phase.ensemble != "NVE":
        # Atoms rather than groups: in a run of picoseconds rotations too must be heated after minimisation.
        section |= {"temperature_end": end if end != start else None, "tpcontrol": _THERMOSTATS[dynamics.thermostat],
                    "group_tp": False}
        if dynamics.thermostat == "langevin":
            section["gamma_t"] = dynamics.friction
        else:
            section["tau_t"] = dynamics.temperature_time
    if phase.ensemble == "NPT":
        section |= {"pressure": phase.pressure, "tau_p": dynamics.barostat_time}
    return section


def hydrogen_keys(phase: PlannedPhase) -> dict[str, object]:
    """The keys of [DYNAMICS] for heavy hydrogens, none where they have their own mass."""
    if phase.hydrogen_mass_factor == 1:
        return {}
    return {"hydrogen_mr": True, "hmr_target": "SOLUTE", "hmr_ratio": phase.hydrogen_mass_factor}


def restraint_sections(phase: PlannedPhase, molecules: Mapping[str, str],
                       bonds: Sequence[EndBond] = ()) -> Sections:
    """[SELECTION] and [RESTRAINTS] of a phase, none without restraints; ``molecules``: name to first residue.

    ``bonds``: hydrogen bonds that ``phase.end_pairs`` holds.

    Raises BadInputError for a group that the system has no atom of.
    """
    from chromabuild.simulate.groups import expression, nothing_held

    expressions = {one.group: expression(one.group, molecules) for one in phase.restraints}
    for group, text in expressions.items():
        if not text:
            raise BadInputError(nothing_held(phase.name, group))
    return sections_of_restraints(phase, expressions, bonds)


def sections_of_restraints(phase: PlannedPhase, expressions: Mapping[str, str], bonds: Sequence[EndBond]) -> Sections:
    """The same with each group's ``expressions`` in the selection syntax."""
    if not phase.restraints and not bonds:
        return {}
    selection: dict[str, object] = {}
    keys: dict[str, object] = {"nfunctions": len(phase.restraints) + len(bonds)}
    for k, restraint in enumerate(phase.restraints, 1):
        first, last = restraint.ends()
        selection[f"group{k}"] = expressions[restraint.group]
        keys |= {f"function{k}": "POSI", f"constant{k}": first, f"constant_end{k}": last if last != first else None,
                 f"select_index{k}": k}
    for k, bond in enumerate(bonds, len(phase.restraints) + 1):
        groups = len(selection) + 1, len(selection) + 2
        selection |= {f"group{group}": f"ai:{atom + 1}" for group, atom in zip(groups, bond.atoms, strict=True)}
        keys |= {f"function{k}": "DIST", f"constant{k}": phase.end_pairs, f"reference{k}": bond.length,
                 f"select_index{k}": f"{groups[0]} {groups[1]}"}
    return {"SELECTION": selection, "RESTRAINTS": keys}


def energy_section(dynamics: DynamicsSection) -> dict[str, object]:
    """The [ENERGY] section of every phase of a run."""
    cutoff, switch_distance, force_switch, tail = dynamics.cutoffs
    return {
        "electrostatic": "PME",
        "cutoffdist": cutoff,
        "switchdist": switch_distance or cutoff,
        "pairlistdist": cutoff + dynamics.pairlist_buffer,
        "vdw_force_switch": force_switch or None,
        "dispersion_corr": "EPRESS" if tail else None,
        "pme_nspline": dynamics.pme_spline_order,
        "pme_max_spacing": dynamics.pme_spacing,
        "deterministic": dynamics.deterministic or None,
    }


def interaction_sections(task: Task) -> Sections:
    """What atoms feel, [ENERGY], and without water [BOUNDARY]; and how ranks share the work."""
    dynamics, solvent = task.dynamics, task.solvent
    if solvent is None:
        sections: Sections = {"ENERGY": energy_section(dynamics)}
        if task.choice and task.choice.load_balance:
            sections["BOUNDARY"] = {"load_balance": True}
        if task.choice and task.choice.comm():
            sections["COMM"] = task.choice.comm()
        return sections
    cutoff, switch_distance, force_switch, _ = dynamics.cutoffs
    return {
        "ENERGY": {"electrostatic": "DEBYE", "dielectric": solvent.dielectric, "dielectric_form": solvent.form.upper(),
                   "debye_length": solvent.debye_length, "cutoffdist": cutoff,
                   "switchdist": switch_distance or cutoff, "pairlistdist": cutoff + dynamics.pairlist_buffer,
                   "vdw_force_switch": force_switch or None,
                   "vdw_repulsion": solvent.of_beads or None,
                   "deterministic": dynamics.deterministic or None},
        "BOUNDARY": {"type": "NOBC", "load_balance": True if dynamics.ranks > 1 else None}}


def restart_name(phase: PlannedPhase, domains: int = 1) -> str:
    """Restart files that a phase leaves, relative to the folder; ``()`` stands for the rank, ``{}`` for the replica
    where there are some, ``(by256)`` for a folder of 256 of many ``domains``."""
    return in_folders(f"restart/{phase.stem}_{'rep{}_' if phase.exchange else ''}().rst",
                      domains // phase.replicas)


def in_folders(name: str, domains: int) -> str:
    """The name of files in ``restart/`` with folders for those of many domains: file systems are slow at, or refuse, a
    folder with a file of each of 65,536."""
    folder, slash, file = name.rpartition("/")
    return f"{folder}/(by256)/{file}" if slash and domains > FOLDER_DOMAINS else name


def run_phase(task: Task, phase: PlannedPhase, previous: PlannedPhase | None, progress: RowProgress,
              begun: bool) -> None:
    """Run one phase from the restart of the one before it; before the first, set up the domains from the shards.

    Everything lands in ``task.folder``: control file, log, trajectory, and restarts and checkpoints in ``restart``.
    ``progress`` receives every new row of the energy table. ``begun``: the phase goes on from its checkpoint, where
    there is one. Raises what ``launch`` and ``restraint_sections`` raise.
    """
    dynamics, folder = task.dynamics, task.folder
    (folder / "restart").mkdir(parents=True, exist_ok=True)
    sections = phase_sections(task, phase)
    if previous is None:
        start = folder / in_folders("restart/start_().rst", task.domains)
        if not (begun and _are_there(start, task.domains)):
            _set_up(task, start)
    else:
        start = folder / restart_name(previous, task.domains)
    if phase.exchange:
        start = _share_out(task, phase, start, begun)
    sections["INPUT"] |= {"rstfile": start, "continue": begun}
    control = folder / f"{phase.stem}.inp"
    write_control(control, sections)
    log = replica_log(folder, phase.stem, 1) if phase.exchange else folder / phase.log
    launch("run", control, dynamics.ranks, log=log, threads=task.threads, progress=progress,
           launcher=dynamics.launcher)
    if phase.exchange:
        _sort_replicas(task, phase, phase.replicas)


def _sort_replicas(task: Task, phase: PlannedPhase, replicas: int) -> None:
    """Energies and frames of a phase by temperature."""
    folder, stem = task.folder, phase.stem
    sort_energies(folder, stem, replicas)
    if phase.trajectory:
        control = folder / f"{stem}_sort.inp"
        write_control(control, {
            "INPUT": {"topologyfile": task.topology, "dcdfile": folder / f"{stem}_rep{{}}.dcd",
                      "remfile": folder / f"{stem}_rep{{}}.rem"},
            "OUTPUT": {"dcdfile": folder / f"{stem}_par{{}}.dcd"}})
        launch("merge", control)
        (folder / f"{stem}_par1.dcd").replace(folder / phase.trajectory)


def _set_up(task: Task, start: Path) -> None:
    """Restart files ``start`` of all ranks from the shards. Old ones go first: all are there only when all are new."""
    for path in task.folder.glob(f"restart/**/{start.name.replace('()', '*')}"):
        path.unlink()
    control = task.folder / "setup.inp"
    write_control(control, {
        "INPUT": {"topologyfile": task.topology, "shardfile": task.bricks}, "OUTPUT": {"rstfile": start},
        **interaction_sections(task)})  # a domain must be wider than the reach of the pair list
    launch("setup", control, task.domains, threads=task.threads, launcher=task.dynamics.launcher)


def try_out(task: Task, steps: int, progress: RowProgress) -> None:
    """Minimise what the shards hold by some steps, each with a row for ``progress``; leaves the log in ``task.folder``.

    Raises what ``launch`` raises.
    """
    (task.folder / "restart").mkdir(parents=True, exist_ok=True)
    start = task.folder / in_folders("restart/start_().rst", task.domains)
    control, log = task.folder / "trial.inp", task.folder / TRIAL_LOG
    _set_up(task, start)
    write_control(control, {
        "INPUT": {"topologyfile": task.topology, "rstfile": start}, "OUTPUT": {"logfile": log},
        **interaction_sections(task),
        "MINIMIZE": {"method": "SD", "nsteps": steps, "eneout_period": 1, "force_scale_max": FORCE_SCALE_MAX}})
    launch("run", control, task.dynamics.ranks, log=log, threads=task.threads, progress=progress,
           launcher=task.dynamics.launcher, poll=_TRIAL_POLL_SECONDS)


def _share_out(task: Task, phase: PlannedPhase, start: Path, begun: bool) -> Path:
    """Restart files for the ranks of a replica, from those ``start`` of all ranks."""
    ranks = task.dynamics.ranks // phase.replicas
    shared = task.folder / in_folders(f"restart/{phase.stem}_start_().rst", ranks)
    if begun and _are_there(shared, ranks):
        return shared
    control = task.folder / f"{phase.stem}_share.inp"
    write_control(control, {"INPUT": {"topologyfile": task.topology, "rstfile": start}, "OUTPUT": {"rstfile": shared},
                            **interaction_sections(task)})
    launch("setup", control, ranks, threads=task.threads, launcher=task.dynamics.launcher)
    return shared


def _are_there(pattern: Path, ranks: int) -> bool:
    """Whether the restart files of all ranks are there."""
    return all(path_of_rank(pattern, rank).is_file() for rank in range(ranks))


def phase_sections(task: Task, phase: PlannedPhase) -> Sections:
    """The control file of a phase but for where it starts.

    Raises BadInputError when the trajectory cannot hold what it shall, and what ``restraint_sections`` raises.
    """
    sections = settings_sections(task, phase)
    if phase.boost_source and not (task.folder / phase.boost_source).exists():
        raise BadInputError(f"{task.folder / phase.boost_source}, from which the boost of phase {phase.name} begins, "
                            "is missing: run the phase that writes it again")
    if phase.trajectory:
        chosen = trajectory_ranges(task.topology, task.dynamics.trajectory_selection)
        sections["OUTPUT"] |= {"dcdfile": task.folder / f"{_replica_stem(phase)}.dcd",
                               "dcd_atoms": ",".join(f"{first}-{last}" for first, last in chosen)}
    solute = phase.exchange.solute if phase.exchange else None
    molecules = molecule_kinds(task.topology) if phase.restraints or solute else {}
    held = restraint_sections(phase, molecules, end_bonds(task.topology) if phase.end_pairs else ())
    sections |= held
    if phase.exchange and solute:
        from chromabuild.simulate.groups import hotter_expression

        groups = held.get("SELECTION", {})
        number = len(groups) + 1
        sections["SELECTION"] = groups | {f"group{number}": hotter_expression(phase.name, solute, molecules)}
        sections["REMD"] = exchange_section(phase.exchange, task.seed, number)
    return sections


def exchange_section(exchange: Exchange, seed: int, group: int = 1) -> dict[str, object]:
    """[REMD] of an exchange; ``group``: number of the group in [SELECTION] that is its solute, if it has one."""
    keys: dict[str, object] = {
        "exchange_period": exchange.period, "iseed": seed, "nreplica1": len(exchange.temperatures),
        "parameters1": " ".join(f"{kelvin:g}" for kelvin in exchange.temperatures)}
    if exchange.solute is None:
        return keys
    return keys | {"type1": "REST", "select_index1": group,
                   "param_type1": " ".join(exchange.terms).upper() if exchange.terms else None}


def _replica_stem(phase: PlannedPhase) -> str:
    """What the files of a phase begin with; the engine puts the number of a replica into braces."""
    return f"{phase.stem}_rep{{}}" if phase.exchange else phase.stem


def barostat_period(phase: PlannedPhase) -> int:
    """Steps of a phase between two uses of the barostat."""
    return max(1, int(BAROSTAT_TIME / phase.timestep))


def settings_sections(task: Task, phase: PlannedPhase) -> Sections:
    """What of the control file follows from the settings alone, without the topology."""
    replica = _replica_stem(phase)
    files: dict[str, object] = {"logfile": task.folder / f"{replica}.log",
                                "rstfile": task.folder / restart_name(phase, task.domains),
                                "checkpoint": task.folder / in_folders(phase.checkpoint,
                                                                       task.domains // phase.replicas),
                                "checkpoint_interval": minutes_of(task.dynamics.checkpoint)}
    sections: Sections = {
        "INPUT": {"topologyfile": task.topology, "reffile": task.bricks if phase.restraints else None},
        "OUTPUT": files, **interaction_sections(task)}
    if phase.exchange:
        files["remfile"] = task.folder / f"{replica}.rem"
        sections["REMD"] = exchange_section(phase.exchange, task.seed)
        if phase.exchange.solute:
            sections["SELECTION"] = {"group1": "all"}  # until the topology says what the solute is
    if phase.boost:
        files["gamdfile"] = task.folder / phase.learnt if phase.learnt else None
        source = task.folder / phase.boost_source if phase.boost_source else None
        sections["GAMD"] = boost_section(phase.boost, source)
    periods = {"eneout_period": phase.output_period, "crdout_period": phase.trajectory_period if phase.frames else 0}
    if phase.kind == "minimise":
        sections["MINIMIZE"] = {"method": "SD", "nsteps": phase.steps, "force_scale_max": FORCE_SCALE_MAX, **periods}
    else:
        sections |= {
            "DYNAMICS": {"integrator": "VVER", "nsteps": phase.steps, "timestep": phase.timestep / 1000,
                         "iseed": task.seed, "thermostat_period": THERMOSTAT_PERIOD,
                         "barostat_period": barostat_period(phase), **periods, **hydrogen_keys(phase),
                         "initial_time": phase.first_time if phase.draws_velocities else None},
            "CONSTRAINTS": {"rigid_bond": True},
            "ENSEMBLE": ensemble_section(task.dynamics, phase),
            "HEALTH": {key: getattr(task.dynamics, key) for key in HEALTH_KEYS}}
    return sections
