"""solute.h5 to solute_refined.h5, where the settings ask for it."""

from chromabuild.base.errors import BadInputError
from chromabuild.base.summary import Summary
from chromabuild.pipeline.relaxing import BUILT, REFINED
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """solute.h5 to solute_refined.h5; what an interrupted run goes on from lies in refine/.

    Raises BadInputError where the settings leave the stage out.
    """
    from chromabuild.api import refine_solute
    from chromabuild.molecule.solute import Solute
    from chromabuild.pipeline.limits import refuse

    if not job.config.refine.enabled:
        raise BadInputError("refine.enabled is false: set it to true")
    refuse(job.config, ("refine",), job.threads)
    (job.folder / REFINED).unlink(missing_ok=True)
    solute, run = refine_solute(Solute.read(job.folder / BUILT), job.folder / "refine", job.config,
                                threads=job.threads, progress=job.progress)
    solute.provenance = job.provenance
    solute.write(job.folder / REFINED)
    return {"atoms": solute.n_atoms, **run}


STAGE = Stage("refine", "dynamics of beads",
              ("refine", "simulate.temperature", "solvate.salt", "solvate.potassium_chloride",
               "solvate.magnesium_chloride", "solvate.calcium_chloride"),
              (REFINED,), run, reads={"solute": BUILT}, applies=lambda config: config.refine.enabled)
