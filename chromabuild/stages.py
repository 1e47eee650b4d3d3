"""What each stage of the chain does: read its files, call the package that knows how, write its files, sum up.

Everything heavy is imported inside the stage that needs it. Summaries are plain JSON: numbers and texts are printed
and shown in the report, lists of records become tables there.
"""

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.config import Config
from chromabuild.errors import BadInputError, ClashesRemainError

# Observables of the scaffold as summaries call them.
OBSERVABLE_NAMES = {
    "radius_of_gyration": "radius_of_gyration_nm", "end_to_end": "end_to_end_nm", "contacts": "core_contacts",
    "sedimentation_coefficient": "sedimentation_coefficient_svedberg", "triplet_angle": "triplet_angle_degree",
    "packing_ratio": "nucleosomes_per_11_nm", "energy_drift": "energy_drift_kbt", "energy_noise": "energy_noise_kbt",
    "energy_at_rest": "energy_at_rest",
    "contact_pattern": "core_pairs_within_12_nm", "joint_gap": "joint_gap_nm", "joint_turn": "joint_turn_degree",
    "truncation_bound": "truncation_bound_kbt_per_e",
}  # fmt: skip
if TYPE_CHECKING:
    from chromabuild.solvate import Part


@dataclass
class Job:
    """What a stage is given."""

    config: Config
    threads: int
    progress: Callable[[float | str], None]
    provenance: dict
    """Goes into every file that the stage writes."""
    only: "Iterable[int] | Part | None" = None
    """The shards to make, of the solvate stage; None: all."""

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
    from dataclasses import replace

    import numpy as np

    from chromabuild.contact_files import write_contact_map
    from chromabuild.locus import load_locus
    from chromabuild.nucleosome.marks import octamer_recipes, within_stretches
    from mesoscale.folding import fold
    from mesoscale.model import Parameters
    from mesoscale.restraints import shared_out

    settings = job.config.scaffold
    if settings.tails == "flexible" and settings.core_charges == "formal":
        raise BadInputError("scaffold.core_charges: formal has rigid tails in its charges: "
                            "set it to fitted, or scaffold.tails to rigid")
    if settings.hotter and (settings.tails == "flexible" or sorted(set(settings.hotter)) != list(settings.hotter)):
        raise BadInputError("scaffold.hotter: temperatures must ascend and be different, and scaffold.tails be rigid")
    if settings.replica > settings.replicas:
        raise BadInputError(f"scaffold.replica: {settings.replica} is beyond scaffold.replicas: {settings.replicas}: "
                            "count from 1")
    fibre = load_locus(job.config.locus).fibre()
    place = fibre.start + np.array(fibre.dyads)
    recipes = octamer_recipes(job.config.build, fibre.chromosome, place, job.config.seed)
    acetylated = within_stretches(settings.acetylated, fibre.chromosome, place) if settings.acetylated else ()
    fibre = replace(fibre, contacts=shared_out(fibre.contacts, settings.replica, settings.replicas),
                    linker_histone=tuple(bool(recipe.linker_histone) for recipe in recipes),
                    acetylated=tuple(bool(one) for one in acetylated))
    parameters = Parameters(temperature=settings.temperature, salt=settings.salt, core_charges=settings.core_charges,
                            tails=settings.tails, magnesium=settings.magnesium,
                            confinement_radius=settings.confinement_radius, container=settings.container)
    result = fold(fibre, parameters, settings.sweeps, job.config.seed, settings.choose,
                  lambda share, state: _show(job, state, share), job.folder / "scaffold_trajectory.h5",
                  settings.hotter, job.threads)
    result.provenance = job.provenance
    result.write(job.folder / "scaffold.h5")
    write_contact_map(result.contact_map, result.contact_resolution, result.chromosome, fibre.start, job.folder)
    if result.floor_violations:
        raise ClashesRemainError(f"{result.floor_violations} pairs of DNA and cores overlap in the folded fibre, by up "
                                 f"to {result.deepest_violation:.3f} nm: try another --seed, more room "
                                 "(scaffold.container, confinement_radius) or longer linkers (locus.minimum_linker)")
    return locus_summary(job.config) | {
        "sweeps": settings.sweeps,
        "linker_histones": sum(fibre.linker_histone), "acetylated_nucleosomes": sum(fibre.acetylated),
        "restraints": sum(contact["kept"] is not None for contact in result.contacts),
        "restraints_kept": sum(bool(contact["kept"]) for contact in result.contacts),
        **{OBSERVABLE_NAMES[name]: _SHOWN.get(name, lambda value: value)(value)
           for name, value in result.observables.items()},
        "contact_distances": result.contacts}


def _at_rest(rest: bool) -> str:
    """Whether sampling may end here."""
    return "yes" if rest else "no: sample longer (scaffold.sweeps)"


def _by_distance(shares: list[float]) -> dict[str, float]:
    """Shares of pairs, named by how far apart along the fibre they are."""
    return {f"i+{k}": round(share, 3) for k, share in enumerate(shares, start=1)}


_SHOWN = {"contact_pattern": _by_distance, "energy_at_rest": _at_rest}


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
    from chromabuild.report.clash_page import write_clash_page
    from chromabuild.solute import Solute

    settings = job.config.clash
    solute, found = correct_clashes(Solute.read(job.folder / "solute.h5"), settings.mode, settings.threshold,
                                    job.config.seed, job.threads, lambda phase, share: _show(job, phase, share))
    solute.provenance = job.provenance
    found.write(job.folder / "clash_report")
    write_clash_page(found, job.folder / "clash_report.html", job.config.locus.name)
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


def check_clashes(path: Path, threshold: float, threads: int, page: Path | None = None) -> dict:
    """The findings of a structure; ``fatal`` counts close pairs, pierced rings and threaded strands.

    ``page`` is where to write the HTML form, when wanted.
    """
    from chromabuild.clash import check

    found = check(_structure(path), threshold, threads)
    if page is not None:
        from chromabuild.report.clash_page import write_clash_page

        write_clash_page(found, page, path.name)
    return {"file": str(path), "fatal": found.fatal, "text": found.to_text(), **found.data}


def _structure(path: Path) -> object:
    """What ``chromabuild.clash.check`` takes: the path itself, or the atoms of a folder of shards."""
    if not path.is_dir():
        return path
    from chromabuild.solvate.structure import atoms_of_shards

    return atoms_of_shards(path)


def audit_structure(path: Path, subjects: list[str], threads: int) -> dict:
    """What the audits of the given subjects (all when empty) find: subject -> {count, items}."""
    from chromabuild.clash import check

    found = check(_structure(path), threads=threads).data["before"]
    return {"file": str(path)} | {name: {key: found[key] for key in keys} for name, keys in AUDITS.items()
                                  if name in subjects or not subjects}


AUDITS = {
    "rings": ("ring_piercings",),
    "chirality": ("chirality_errors",),
    "peptides": ("cis_peptides", "twisted_peptides"),
    "geometry": ("bond_outliers", "angle_outliers"),
    "molecules": ("merged_molecules",),
    "strands": ("threaded_strands", "duplexes"),
}
"""Subject of an audit -> the findings that belong to it (docs/formats.md, section 3)."""


def _show(job: Job, phase: str, share: float) -> None:
    job.progress(phase)
    job.progress(share)


def solvate(job: Job) -> dict:
    """solute_clean.h5 to shards; with ``only`` to these shards alone."""
    from chromabuild.solute import Solute
    from chromabuild.solvate import solvate as make_shards

    make_shards(Solute.open(job.folder / "solute_clean.h5"), job.config.solvate, job.config.seed, job.threads,
                job.folder / "shards", lambda done, total: job.progress(done / total),
                job.only)
    return {} if job.only is not None else shard_set_summary(job.folder / "shards")


def shard_set_summary(folder: Path) -> dict:
    """Box, grid, counts and size of a shard set. Raises IntegrityError when its manifest is damaged or missing."""
    from chromabuild.shards import Manifest

    manifest = Manifest.read(folder)
    size = sum(entry["bytes"] for shard in manifest.shards for entry in shard.files.values())
    return {"atoms": manifest.atoms, "box": [round(float(edge), 3) for edge in manifest.box],
            "grid": [int(n) for n in manifest.grid], "counts": manifest.counts, "net_charge": manifest.net_charge,
            "shards": len(manifest.shards), "megabytes": round(size / 1e6, 1)}


def merge_shards(folder: Path, selection: str, target: Path) -> dict:
    """Selected atoms of a shard set as one PDB file."""
    from chromabuild.shards.merge import merge_shards as merge

    return {"file": str(target), "atoms": merge(folder, selection, target)}


def bag_shards(folder: Path, target: Path) -> dict:
    """A shard set as a BagIt bag."""
    from chromabuild.shards.bag import write_bag

    return {"bag": str(target), "files": write_bag(folder, target)}


def verify_shard_set(folder: Path, threads: int = 1) -> dict:
    """Read every shard and compare it with the manifest. Raises IntegrityError naming the first that is wrong."""
    from chromabuild.shards import verify_shards

    manifest = verify_shards(folder, threads=threads)
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
    conserved = log.conserved
    drift = None if conserved is None else energy_drift(log["TIME"], conserved, atoms, dynamics.temperature)
    return {"engine": dynamics.engine, "ranks": dynamics.ranks, "threads": job.threads, "atoms": atoms,
            "steps": dynamics.steps, "timestep_fs": dynamics.timestep,
            "simulated_ps": dynamics.steps * dynamics.timestep / 1000, "ensemble": dynamics.ensemble,
            "temperature": dynamics.temperature, "drift_kT_per_ns_per_atom": drift, **_speed(marks, dynamics.timestep),
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
