"""A model without its water through chromamd: some phases in open boundaries, and where the atoms are then."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from blake3 import blake3

from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.base.summary import Summary
from chromabuild.forcefield.topology_file import Topology
from chromabuild.shards.lone_bricks import write_lone_bricks
from chromabuild.simulate import chromamd
from chromabuild.simulate.protocol import PlannedPhase, Row, Solvent, Task, plan_phases, run_phases
from chromabuild.simulate.restart_file import read_restart


@dataclass(frozen=True)
class DryModel:
    """What is simulated, beside its topology."""

    position: np.ndarray
    """(n, 3) angstrom."""
    first: np.ndarray
    """(r + 1,) first atoms of what stays in one brick."""
    solvent: Solvent


def write_topology(topology: Topology, position: np.ndarray, folder: Path) -> None:
    """Write the topology of a model for ``run_dry``; phases that are done are known by the hash of this file."""
    digest = blake3(np.asarray(position).tobytes()).hexdigest()
    topology.provenance = topology.provenance | {"solute": digest}
    topology.write(folder / "topology.h5")


def run_dry(model: DryModel, simulate: SimulateSection, dynamics: DynamicsSection, settings: Settings, folder: Path,
            threads: int, progress: Callable[[str, float], None]) -> tuple[np.ndarray, Summary]:
    """Run the phases of ``simulate``; gives (n, 3) positions at the end, angstrom, and energies before and after.

    Its topology lies in ``folder`` (``write_topology``), and so do the work files: an interrupted call goes on from
    them, and of one that ended the logs are left. Raises what the engine raises.
    """
    start = np.asarray(model.position)
    bricks, corner = write_lone_bricks(start, model.first, folder / "bricks")
    task = Task(dynamics, settings.seed, folder / "topology.h5", bricks, folder, max(1, threads // dynamics.ranks),
                model.solvent)
    phases = plan_phases(simulate)
    total = sum(phase.steps for phase in phases)

    def advance(phase: PlannedPhase, row: Row | None) -> None:
        before = sum(other.steps for other in phases[:phase.number - 1])
        progress(phase.name, min(1.0, (before + (phase.steps if row is None else row["STEP"])) / total))

    run = run_phases(settings.model_copy(update={"dynamics": dynamics, "simulate": simulate}), task, chromamd,
                     progress=advance)
    end = read_restart(run.restart, len(start), dynamics.ranks)
    # The engine keeps a model without a periodic box in the middle third of a larger one.
    position = end.position + (corner - end.box / 3)
    energy = run.minimisation["POTENTIAL_ENE"]
    moved = np.linalg.norm(position - start, axis=1)
    summary: Summary = {
        "steps": total, "simulated_ps": sum(phase.simulated for phase in phases), "engine": "chromamd",
        "energy_before_kcal_per_mol": float(energy[0]), "energy_after_kcal_per_mol": float(energy[-1]),
        "moved_rms_angstrom": round(float(np.sqrt(np.mean(moved**2))), 3),
        "moved_most_angstrom": round(float(moved.max()), 3),
        **{f"seconds_per_step_{name}": round(value, 4) for name, value in run.seconds_per_step.items()}}
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix != ".log":
            path.unlink()
    return position, summary
