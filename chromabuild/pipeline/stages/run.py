"""Shards and topology.h5 to the files in md/."""

import json
import os
import time

from chromabuild.pipeline.stages.stage import Job, Stage, files


def run(job: Job) -> dict:
    """Shards and topology.h5 to the files in md/, with chromamd or OpenMM as ``dynamics.engine`` says."""
    from chromabuild.report.summary import energy_drift
    from chromabuild.simulate.energy_log import EnergyLog

    dynamics = job.config.dynamics
    marks: dict[str, list[tuple[float, float]]] = {"minimise": [], "dynamics": []}
    total = dynamics.minimise_steps + dynamics.steps

    def advance(name: str, row: dict[str, float]) -> None:
        marks[name].append((time.monotonic(), row["STEP"]))
        job.show("minimising" if name == "minimise" else "dynamics",
                 (row["STEP"] + (dynamics.minimise_steps if name == "dynamics" else 0)) / total)

    if dynamics.engine == "openmm":
        from chromabuild.simulate.openmm_engine import run as simulate
    else:
        from chromabuild.simulate.chromamd import run as simulate

        # The ranks share the threads; OpenMP takes their number from the environment of the child processes.
        os.environ["OMP_NUM_THREADS"] = str(max(1, job.threads // dynamics.ranks))
    written = simulate(dynamics, job.config.seed, job.folder / "topology.h5", job.folder / "shards" / "bricks.txt",
                       job.folder / "md", advance)
    log = EnergyLog.read(written.dynamics_log)
    atoms = json.loads((job.folder / "shards" / "manifest.json").read_text(encoding="utf-8"))["atoms"]
    conserved = log.conserved
    drift = None if conserved is None else energy_drift(log["TIME"], conserved, atoms, dynamics.temperature)
    return {"engine": dynamics.engine, "ranks": dynamics.ranks, "threads": job.threads, "atoms": atoms,
            "steps": dynamics.steps, "timestep_fs": dynamics.timestep,
            "simulated_ps": dynamics.steps * dynamics.timestep / 1000, "ensemble": dynamics.ensemble,
            "temperature": dynamics.temperature, "drift_kT_per_ns_per_atom": drift, **_speed(marks, dynamics.timestep),
            "trajectory": str(written.trajectory.relative_to(job.folder))}


def _speed(marks: dict[str, list[tuple[float, float]]], timestep: float) -> dict[str, float]:
    """Seconds a step and ns a day from the wall-clock times at which energies appeared."""
    rates = {}
    for name, rows in marks.items():
        if len(rows) > 1 and rows[-1][1] > rows[0][1]:
            rates[name] = (rows[-1][0] - rows[0][0]) / (rows[-1][1] - rows[0][1])
    result = {f"seconds_per_step_{name}": round(value, 4) for name, value in rates.items()}
    if "dynamics" in rates and rates["dynamics"] > 0:
        result["ns_per_day"] = round(86400 * timestep * 1e-6 / rates["dynamics"], 4)
    return result


STAGE = Stage("run", "minimisation and dynamics", ("dynamics",),
              files(manifest="shards/manifest.json", topology="topology.h5"),
              ("md/dynamics.log", "md/trajectory.dcd"), run)
