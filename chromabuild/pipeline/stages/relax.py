"""solute_clean.h5 to solute_relaxed.h5, where the settings ask for it."""

from chromabuild.base.errors import BadInputError, ClashesRemainError
from chromabuild.base.summary import Summary
from chromabuild.pipeline.relaxing import CLEAN, RELAXED, bound_ion_settings
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """solute_clean.h5 to solute_relaxed.h5; what an interrupted run goes on from lies in relax/.

    Raises BadInputError where the settings leave the stage out, ClashesRemainError when atoms came too close.
    """
    from chromabuild.api import add_bound_ions, relax_solute
    from chromabuild.clash import check
    from chromabuild.molecule.solute import Solute
    from chromabuild.pipeline.limits import refuse

    if not job.config.relax.enabled:
        raise BadInputError("relax.enabled is false: set it to true")
    refuse(job.config, ("relax",), job.threads)
    (job.folder / RELAXED).unlink(missing_ok=True)
    solute, run = relax_solute(Solute.read(job.folder / CLEAN), job.folder / "relax", job.config, threads=job.threads,
                               progress=job.progress)
    report = check(solute, job.config.clash.threshold, job.threads)
    found = report.data["before"]
    if report.fatal:
        raise ClashesRemainError(
            f"{found['pairs_below_threshold']['count']} pairs closer than {job.config.clash.threshold} angstrom and "
            f"{found['ring_piercings']['count']} pierced rings came up in the relaxation: raise relax.minimise_steps "
            "or set relax.enabled to false")
    solute.provenance = job.provenance
    bound: Summary = {}
    if bound_ion_settings(job.config, relaxed=True):
        solute, bound = add_bound_ions(solute, job.config)
    solute.write(job.folder / RELAXED)
    return {"atoms": solute.n_atoms, **run, **bound, "pairs_after": found["pairs_below_threshold"]["count"],
            "clashscore_after": found["clashscore"]}


STAGE = Stage("relax", "dry relaxation",
              ("relax", "clash.threshold", "solvate.salt", "solvate.potassium_chloride", "solvate.magnesium_chloride",
               "solvate.calcium_chloride", "simulate.temperature", "dynamics.force_field",
               "dynamics.force_field_files"),
              (RELAXED,), run, reads={"solute": CLEAN}, files=("dynamics.force_field_files",),
              applies=lambda config: config.relax.enabled,
              settings_of=lambda config: bound_ion_settings(config, relaxed=True))
