"""The stages, in the order of the chain: one file each, and here the register.

A stage reads its files, calls the package that knows how, writes its files and sums up. Everything heavy is imported
inside the function that needs it. Summaries are plain JSON: numbers and texts are printed and shown in the report,
lists of records become tables there.
"""

from chromabuild.pipeline.stages import build, clash, report, run, scaffold, solvate, topology
from chromabuild.pipeline.stages.stage import Job, Stage

STAGES: tuple[Stage, ...] = (
    scaffold.STAGE,
    build.STAGE,
    clash.STAGE,
    solvate.STAGE,
    topology.STAGE,
    run.STAGE,
    report.STAGE,
)

__all__ = ["STAGES", "Job", "Stage"]
