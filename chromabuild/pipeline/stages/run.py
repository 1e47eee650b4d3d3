"""Shards and topology.h5 to the files in md/."""

from chromabuild.base.summary import Summary
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """Shards and topology.h5 to the files in md/, with chromamd or OpenMM as ``dynamics.engine`` says."""
    from chromabuild.api import run_dynamics
    from chromabuild.pipeline.limits import refuse
    from chromabuild.report.summary import energy_drift
    from chromabuild.shards.shard_set import ShardSet

    refuse(job.config, ("run",), job.threads)
    dynamics = job.config.dynamics
    shards = ShardSet.read(job.folder / "shards")
    found = run_dynamics(job.folder / "topology.h5", shards, job.folder / "md", job.config, threads=job.threads,
                         progress=job.progress)
    log = found.energies
    conserved = log.conserved
    drift = None if conserved is None else energy_drift(log["TIME"], conserved, shards.atoms, dynamics.temperature)
    return {"engine": dynamics.engine, "ranks": dynamics.ranks, "threads": job.threads, "atoms": shards.atoms,
            "steps": dynamics.steps, "timestep_fs": dynamics.timestep,
            "simulated_ps": dynamics.steps * dynamics.timestep / 1000, "ensemble": dynamics.ensemble,
            "temperature": dynamics.temperature, "drift_kT_per_ns_per_atom": drift,
            **_speed(found.seconds_per_step, dynamics.timestep),
            "trajectory": str(found.trajectory.relative_to(job.folder))}


def _speed(seconds_per_step: dict[str, float], timestep: float) -> dict[str, float]:
    """Seconds a step of minimisation and dynamics, and ns a day; ``timestep`` in fs."""
    speed = {f"seconds_per_step_{name}": round(value, 4) for name, value in seconds_per_step.items()}
    if seconds_per_step.get("dynamics"):
        speed["ns_per_day"] = round(86400 * timestep * 1e-6 / seconds_per_step["dynamics"], 4)
    return speed


STAGE = Stage("run", "minimisation and dynamics", ("dynamics",), ("md/dynamics.log", "md/trajectory.dcd"), run,
              reads={"manifest": "shards/manifest.json", "topology": "topology.h5"})
