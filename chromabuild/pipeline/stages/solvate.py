"""solute_clean.h5 to shards."""

from chromabuild.pipeline.inspect import shard_set_summary
from chromabuild.pipeline.stages.stage import Job, Stage, files


def run(job: Job) -> dict:
    """solute_clean.h5 to shards; with ``only`` to these shards alone."""
    from chromabuild.molecule.solute import Solute
    from chromabuild.solvate import solvate as make_shards

    make_shards(Solute.open(job.folder / "solute_clean.h5"), job.config.solvate, job.config.seed, job.threads,
                job.folder / "shards", lambda done, total: job.progress(done / total),
                job.only)
    return {} if job.only is not None else shard_set_summary(job.folder / "shards")


STAGE = Stage("solvate", "water, ions and shards", ("solvate",), files(solute="solute_clean.h5"),
              ("shards/manifest.json", "shards/bricks.txt"), run)
