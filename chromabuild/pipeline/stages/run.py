"""Shards and topology.h5 to the files in md/."""

from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError
from chromabuild.base.summary import Summary
from chromabuild.pipeline.stages.stage import Job, RunPart, Stage

if TYPE_CHECKING:
    from chromabuild.base.progress import Progress
    from chromabuild.base.settings import Settings
    from chromabuild.simulate.energy_log import EnergyLog
    from chromabuild.simulate.protocol import PlannedPhase
    from chromabuild.simulate.result import Run


def run(job: Job) -> Summary:
    """Shards and topology.h5 to the files in md/: the phases of ``simulate`` that are not done yet, in order, of one
    replica after the other.

    ``job.only``: the phase and the replica to run. Raises BadInputError for what is neither, ResourceError for what
    this machine cannot do.
    """
    from chromabuild.api import run_dynamics
    from chromabuild.pipeline.limits import refuse
    from chromabuild.shards.shard_set import ShardSet
    from chromabuild.simulate.replicas import chosen_replicas, replica_seed

    part = job.only if job.only is not None else RunPart()
    if not isinstance(part, RunPart):
        raise BadInputError("a part of the run stage is a phase or a replica")
    refuse(asked(job.config, part), ("run",), job.threads)
    simulate = job.config.simulate
    shards = ShardSet.read(job.folder / "shards")
    summaries = {}
    chosen = chosen_replicas(simulate, part.replica)
    for k, replica in enumerate(chosen):
        progress = job.progress if simulate.replicas == 1 else _progress_of(job.progress, replica, k, len(chosen))
        found = run_dynamics(job.folder / "topology.h5", shards, job.folder / "md", job.config, threads=job.threads,
                             progress=progress, phase=part.phase, again=job.again, replica=replica)
        summaries[replica] = _summary(job, found, replica, shards.atoms)
    summary = next(iter(summaries.values()))
    if simulate.replicas > 1:
        own = ("steps", "simulated_ps", "drift_kT_per_ns_per_atom", "ns_per_day", "trajectory")
        summary |= {"replicas": len(summaries), "replica_runs": [
            {"replica": replica, "seed": replica_seed(job.config.seed, replica),
             **{key: one.get(key) for key in own}} for replica, one in summaries.items()]}
    return summary


def asked(config: "Settings", part: RunPart) -> "Settings":
    """The settings with the phases and the number of replicas that are to be run."""
    simulate = config.simulate
    chosen = tuple(phase for phase in simulate.chosen() if phase.name == part.phase)
    update: dict[str, object] = {"protocol": None, "phases": chosen} if chosen else {}
    update |= {"replicas": 1} if part.replica is not None else {}
    return config.model_copy(update={"simulate": simulate.model_copy(update=update)})


def _progress_of(progress: "Progress", replica: int, k: int, n: int) -> "Progress":
    """Progress of the kth of n replicas as part of the whole."""
    return lambda phase, share=None: progress(f"replica {replica}, {phase}", None if share is None else (k + share) / n)


def _summary(job: Job, found: "Run", replica: int, atoms: int) -> Summary:
    """What a replica did."""
    from chromabuild.simulate.protocol import last_dynamics, phases_in
    from chromabuild.simulate.tuning import read_tuning, told

    dynamics, phases = job.config.dynamics, phases_in(found.folder, job.config.simulate)
    last = last_dynamics(phases)
    tuning = read_tuning(found.folder) if dynamics.tune else None
    tuned = {"tuned": told(found.folder, job.config, job.threads)} if dynamics.tune else {}
    summary: Summary = {"engine": dynamics.engine, "ranks": tuning.choice.ranks if tuning else dynamics.ranks,
                        "threads": job.threads, **tuned,
                        "atoms": atoms, "phases": ", ".join(phase.name for phase in found.phases),
                        "steps": sum(phase.steps for phase in phases if phase.kind == "dynamics"),
                        "simulated_ps": sum(phase.simulated for phase in phases)}
    if last is not None:
        summary |= {"timestep_fs": last.timestep, "ensemble": last.ensemble, "temperature": last.temperature[1],
                    "drift_kT_per_ns_per_atom": _drift(found, last, atoms), **_averages(found, last)}
        if last.exchange and _log_of(found, last) is not None:
            summary |= _exchanges(found, last)
        if last.boost and last.boost.mode != "watch" and _log_of(found, last) is not None:
            summary |= _boosts(found, last)
    summary |= _speed(found.seconds_per_step, last.timestep if last else 0.0)
    if found.trajectories:
        summary["trajectory"] = str(found.trajectory.relative_to(job.folder))
    return summary


def _log_of(found: "Run", phase: "PlannedPhase") -> "EnergyLog | None":
    """The energies of a phase; None where it was not run."""
    files = next((files for files in found.phases if files.name == phase.name), None)
    return files.energies if files else None


def _averages(found: "Run", phase: "PlannedPhase") -> Summary:
    """From when energies and density of a phase are equilibrated, in ps of the whole run, and the mean density."""
    from chromabuild.report.summary import equilibrated

    log = _log_of(found, phase)
    parts = equilibrated(log) if log is not None else {}
    judged = [parts[name] for name in ("potential energy, kcal/mol", "density, g/cm³") if name in parts]
    if not judged or not all(part.is_reached for part in judged):
        return {"equilibrated": False} if judged else {}
    summary: Summary = {"equilibrated": True, "equilibrated_from_ps": max(part.start for part in judged)}
    density = parts.get("density, g/cm³")
    if density is not None:
        summary |= {"density_g_per_cm3": round(density.mean, 5), "density_error": density.error}
    return summary


def _exchanges(found: "Run", phase: "PlannedPhase") -> Summary:
    """How often replicas exchanged their temperatures."""
    from chromabuild.simulate.exchange import ExchangeReport, replica_log

    report = ExchangeReport.read(replica_log(found.folder, phase.stem, 1))
    kelvin = phase.exchange.temperatures if phase.exchange else ()
    return {"round_trips": sum(report.round_trips.values()), "exchanges": [
        {"temperatures": f"{kelvin[a - 1]:g} and {kelvin[b - 1]:g} K", "accepted": accepted, "attempts": tried,
         "share": round(accepted / tried, 4) if tried else None}
        for (a, b), (accepted, tried) in report.pairs.items()]}


def _boosts(found: "Run", phase: "PlannedPhase") -> Summary:
    """What the boost of a phase adds, and how much is left of it as a sample of the ensemble without."""
    from chromabuild.simulate.boost import BoostReport

    log = _log_of(found, phase)
    if log is None or phase.boost is None:
        return {}
    report = BoostReport.of(log, phase.boost, phase.temperature[1])
    return {"boost_mean": round(report.mean, 4), "boost_deviation": round(report.deviation, 4),
            "boost_effective_share": round(report.effective_share, 5)}


def _drift(found: "Run", phase: "PlannedPhase", atoms: int) -> float | None:
    """Drift of the conserved quantity in a phase, None where it was not run or nothing is conserved."""
    from chromabuild.report.summary import energy_drift

    log = _log_of(found, phase)
    if log is None or log.conserved is None:
        return None
    return energy_drift(log["TIME"], log.conserved, atoms, max(phase.temperature))


def _speed(seconds_per_step: dict[str, float], timestep: float) -> dict[str, float]:
    """Seconds a step of minimisation and dynamics, and ns a day; ``timestep`` in fs."""
    speed = {f"seconds_per_step_{name}": round(value, 4) for name, value in seconds_per_step.items()}
    if seconds_per_step.get("dynamics"):
        speed["ns_per_day"] = round(86400 * timestep * 1e-6 / seconds_per_step["dynamics"], 4)
    return speed


def run_files(config: "Settings") -> tuple[str, ...]:
    """Log and trajectory of every phase, of the first replica; of the others these and the list of phases."""
    from chromabuild.simulate.protocol import plan_phases

    files = [name for phase in plan_phases(config.simulate) for name in (phase.log, phase.trajectory) if name]
    others = [f"md/replica-{replica}/{name}" for replica in range(2, config.simulate.replicas + 1)
              for name in ("phases.json", *files)]
    return (*(f"md/{name}" for name in files), *others)


STAGE = Stage("run", "minimisation and dynamics", ("dynamics", "simulate"), ("md/phases.json",), run,
              reads={"manifest": "shards/manifest.json", "topology": "topology.h5"}, outputs_of=run_files,
              optional_outputs=tuple(f"md/{place}{name}" for name in ("extended.json", "tuning.json")
                                      for place in ("", "replica-*/")))
