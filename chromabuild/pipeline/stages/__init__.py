"""The stages of the chain: one file each, and here the register.

A stage reads its files, calls the public function that does the work (``chromabuild.api``), writes its files and sums
up. Everything heavy is imported inside the function that needs it.
"""

from chromabuild.pipeline.stages import build, clash, refine, relax, report, run, scaffold, solvate, topology
from chromabuild.pipeline.stages.stage import Job, RunPart, Stage, in_order

STAGES = in_order(module.STAGE for module in (scaffold, build, refine, clash, relax, solvate, topology, run, report))
"""Each after those whose files it reads. The chain of some settings may leave one out (``Stage.applies``)."""

__all__ = ["STAGES", "Job", "RunPart", "Stage"]
