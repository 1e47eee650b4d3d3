"""Locus files to scaffold.h5."""

from dataclasses import replace
from pathlib import Path

from chromabuild.base.errors import BadInputError, ClashesRemainError
from chromabuild.base.settings import Config
from chromabuild.pipeline.inspect import locus_summary
from chromabuild.pipeline.stages.stage import Job, Stage

# Observables of the scaffold as summaries call them.
OBSERVABLE_NAMES = {
    "radius_of_gyration": "radius_of_gyration_nm", "end_to_end": "end_to_end_nm", "contacts": "core_contacts",
    "sedimentation_coefficient": "sedimentation_coefficient_svedberg", "triplet_angle": "triplet_angle_degree",
    "packing_ratio": "nucleosomes_per_11_nm", "energy_drift": "energy_drift_kbt", "energy_noise": "energy_noise_kbt",
    "energy_at_rest": "energy_at_rest",
    "contact_pattern": "core_pairs_within_12_nm", "joint_gap": "joint_gap_nm", "joint_turn": "joint_turn_degree",
    "truncation_bound": "truncation_bound_kbt_per_e",
}  # fmt: skip


def run(job: Job) -> dict:
    """Locus files to scaffold.h5."""
    import numpy as np

    from chromabuild.genome.contact_map import write_contact_map
    from chromabuild.genome.locus import load_locus
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
                  lambda share, state: job.show( state, share), job.folder / "scaffold_trajectory.h5",
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


def _inputs(config: Config) -> dict[str, str | Path]:
    files = {"fasta": config.locus.fasta, "nucleosomes": config.locus.nucleosomes, "contacts": config.locus.contacts,
             "acetylated": config.scaffold.acetylated, "marks": config.build.marks}
    return {role: Path(file) for role, file in files.items() if file}


STAGE = Stage("scaffold", "mesoscale scaffold",
              ("locus", "scaffold", "build.linker_histone", "build.linker_histone_share", "build.marks"),
              _inputs, ("scaffold.h5", "contact_map.npz", "contact_map.cool"), run)
