"""What each stage of the chain does: read its files, call the package that knows how, write its files, sum up.

Everything heavy is imported inside the stage that needs it. Summaries are plain JSON: numbers and texts are printed
and shown in the report, lists of records become tables there.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chromabuild.config import Config
from chromabuild.errors import ClashesRemainError


@dataclass
class Job:
    """What a stage is given."""

    config: Config
    threads: int
    progress: Callable[[float | str], None]
    provenance: dict
    """Goes into every file that the stage writes."""
    only: int | None = None
    """The one shard to make, of the solvate stage."""

    @property
    def folder(self) -> Path:
        """The output folder."""
        return Path(self.config.output)


def locus_summary(config: Config) -> dict:
    """Read the locus and say what it is. Raises BadInputError for the first thing that is wrong."""
    from chromabuild.locus import load_locus

    locus = load_locus(config.locus)
    fibre = locus.fibre()
    return {"name": fibre.name, "chromosome": fibre.chromosome, "start": fibre.start,
            "end": fibre.start + len(fibre.sequence), "base_pairs": len(fibre.sequence),
            "nucleosomes": len(fibre.dyads), "contacts": len(fibre.contacts),
            "adjusted_dyads": len(fibre.adjustments), "shifts": list(fibre.adjustments),
            "unused_contacts": len(locus.ignored_contacts), "ignored_contacts": list(locus.ignored_contacts)}


def scaffold(job: Job) -> dict:
    """Locus files to scaffold.h5."""
    from chromabuild.locus import load_locus
    from mesoscale.model import Parameters
    from mesoscale.montecarlo import sample

    settings = job.config.scaffold
    fibre = load_locus(job.config.locus).fibre()
    parameters = Parameters(temperature=settings.temperature, salt=settings.salt,
                            confinement_radius=settings.confinement_radius, container=settings.container)
    result = sample(fibre, parameters, settings.sweeps, job.config.seed, settings.choose,
                    lambda share, state: _show(job, state, share))
    result.provenance = job.provenance
    result.write(job.folder / "scaffold.h5")
    return locus_summary(job.config) | {
        "sweeps": settings.sweeps, "overlaps_left": result.floor_violations,
        **{f"{name}_nm" if name != "contacts" else "core_contacts": value
           for name, value in result.observables.items()},
        "contact_distances": result.contacts}


def build(job: Job) -> dict:
    """scaffold.h5 to solute.h5."""
    from chromabuild.build import build_solute
    from mesoscale.scaffold import Scaffold

    solute = build_solute(Scaffold.read(job.folder / "scaffold.h5"), job.config, job.threads,
                          lambda phase, share: _show(job, phase, share))
    found = solute.provenance.get("build_report", {})
    solute.provenance = job.provenance
    solute.write(job.folder / "solute.h5")
    return {"atoms": solute.n_atoms, "residues": solute.n_residues, "molecules": len(solute.molecule_name), **found}


def clash(job: Job) -> dict:
    """solute.h5 to solute_clean.h5 and the clash report. Raises ClashesRemainError when some remain."""
    from chromabuild.clash import correct_clashes
    from chromabuild.solute import Solute

    settings = job.config.clash
    solute, found = correct_clashes(Solute.read(job.folder / "solute.h5"), settings.mode, settings.threshold,
                                    job.config.seed, job.threads, lambda phase, share: _show(job, phase, share))
    solute.provenance = job.provenance
    found.write(job.folder / "clash_report")
    solute.write(job.folder / "solute_clean.h5")
    before, after = found.data["before"], found.data["after"]
    if found.fatal:
        raise ClashesRemainError(f"{after['pairs_below_threshold']['count']} pairs closer than {settings.threshold} "
                                 f"angstrom and {after['ring_piercings']['count']} pierced rings remain: see "
                                 f"{job.folder / 'clash_report.txt'}, or try another --seed")
    return {"mode": settings.mode, "threshold": settings.threshold,
            "pairs_before": before["pairs_below_threshold"]["count"],
            "pairs_after": after["pairs_below_threshold"]["count"], "moves": len(found.data["moves"]),
            "clashscore_before": before["clashscore"], "clashscore_after": after["clashscore"]}


def check_clashes(path: Path, threshold: float, threads: int) -> dict:
    """The findings of a solute, PDB or mmCIF file; ``fatal`` counts close pairs and pierced rings."""
    from chromabuild.clash import check

    found = check(path, threshold, threads)
    return {"file": str(path), "fatal": found.fatal, "text": found.to_text(), **found.data}


def _show(job: Job, phase: str, share: float) -> None:
    job.progress(phase)
    job.progress(share)


def solvate(job: Job) -> dict:
    """solute_clean.h5 to shards; with ``only`` to that shard alone."""
    from chromabuild.solute import Solute
    from chromabuild.solvate import solvate as make_shards

    make_shards(Solute.read(job.folder / "solute_clean.h5"), job.config.solvate, job.config.seed, job.threads,
                job.folder / "shards", lambda done, total: job.progress(done / total),
                None if job.only is None else [job.only])
    return {} if job.only is not None else shard_set_summary(job.folder / "shards")


def shard_set_summary(folder: Path) -> dict:
    """Box, grid, counts and size of a shard set. Raises IntegrityError when its manifest is damaged or missing."""
    from chromabuild.shards import Manifest

    manifest = Manifest.read(folder)
    size = sum(entry["bytes"] for shard in manifest.shards for entry in shard.files.values())
    return {"atoms": manifest.atoms, "box": [round(float(edge), 3) for edge in manifest.box],
            "grid": [int(n) for n in manifest.grid], "counts": manifest.counts, "net_charge": manifest.net_charge,
            "shards": len(manifest.shards), "megabytes": round(size / 1e6, 1)}


def verify_shard_set(folder: Path) -> dict:
    """Read every shard and compare it with the manifest. Raises IntegrityError naming the first that is wrong."""
    from chromabuild.shards import verify_shards

    manifest = verify_shards(folder)
    return {"folder": str(folder), "shards": len(manifest.shards), "atoms": manifest.atoms}


def topology(job: Job) -> dict:
    """solute_clean.h5 and the shard manifest to topology.h5 and topology.psf."""
    from chromabuild.solute import Solute
    from chromabuild.topology import make_topology, write_psf

    solute = Solute.read(job.folder / "solute_clean.h5")
    manifest = json.loads((job.folder / "shards" / "manifest.json").read_text(encoding="utf-8"))
    result = make_topology(solute, manifest["counts"], job.config.dynamics.force_field, manifest["net_charge"],
                           job.progress)
    result.provenance = job.provenance | result.provenance
    result.write(job.folder / "topology.h5")
    job.progress("writing topology.psf")
    write_psf(result, job.folder / "topology.psf", solute)
    return {"force_field": result.force_field, "atoms": result.n_atoms, "net_charge": round(result.net_charge, 6),
            "atom_types": len(result.lj_name), "molecule_templates": len(result.templates)}


def run(job: Job) -> dict:
    """Shards and topology.h5 to the files in md/, with chromamd or OpenMM as ``dynamics.engine`` says."""
    from chromabuild.backends.energy_log import EnergyLog
    from chromabuild.report.summary import energy_drift

    dynamics = job.config.dynamics
    marks: dict[str, list[tuple[float, float]]] = {"minimise": [], "dynamics": []}
    total = dynamics.minimise_steps + dynamics.steps

    def advance(name: str, row: dict[str, float]) -> None:
        marks[name].append((time.monotonic(), row["STEP"]))
        _show(job, "minimising" if name == "minimise" else "dynamics",
              (row["STEP"] + (dynamics.minimise_steps if name == "dynamics" else 0)) / total)

    if dynamics.engine == "openmm":
        from chromabuild.backends.openmm_reference import run as simulate
    else:
        from chromabuild.backends.chromamd import run as simulate

        # The ranks share the threads; OpenMP takes their number from the environment of the child processes.
        os.environ["OMP_NUM_THREADS"] = str(max(1, job.threads // dynamics.ranks))
    files = simulate(dynamics, job.config.seed, job.folder / "topology.h5", job.folder / "shards" / "bricks.txt",
                     job.folder / "md", advance)
    log = EnergyLog.read(files.dynamics_log)
    atoms = json.loads((job.folder / "shards" / "manifest.json").read_text(encoding="utf-8"))["atoms"]
    conserved = log["CONSERVED_ENE" if "CONSERVED_ENE" in log.columns else "TOTAL_ENE"]
    drift = energy_drift(log["TIME"], conserved, atoms, dynamics.temperature)
    return {"engine": dynamics.engine, "ranks": dynamics.ranks, "threads": job.threads, "atoms": atoms,
            "steps": dynamics.steps, "timestep_fs": dynamics.timestep,
            "simulated_ps": dynamics.steps * dynamics.timestep / 1000, "temperature": dynamics.temperature,
            "drift_kT_per_ns_per_atom": drift, **_speed(marks, dynamics.timestep),
            "trajectory": str(files.trajectory.relative_to(job.folder))}


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


def report(job: Job) -> dict:
    """Everything to report.html."""
    from chromabuild.report.document import write_report

    return write_report(job.config, job.progress)
