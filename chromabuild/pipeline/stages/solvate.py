"""The solute, clean or relaxed, to shards."""

from chromabuild.base.summary import Summary
from chromabuild.pipeline.relaxing import RELAXED, solute_file
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """The solute to shards; with ``only`` to these shards alone."""
    from chromabuild.api import add_solvent
    from chromabuild.molecule.solute import Solute

    shards = add_solvent(Solute.open(job.folder / solute_file(job.config)["solute"]), job.folder / "shards",
                         job.config, threads=job.threads, progress=job.progress, only=job.only)
    return {} if job.only is not None else shards.summary()


STAGE = Stage("solvate", "water, ions and shards", ("solvate",), ("shards/manifest.json", "shards/bricks.txt"), run,
              reads={"solute": RELAXED}, reads_of=solute_file)
