"""Everything that is there to report.html."""

from chromabuild.base.summary import Summary
from chromabuild.pipeline.relaxing import RELAXED, solute_file
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """Everything to report.html."""
    from chromabuild.pipeline import provenance
    from chromabuild.report.document import write_report

    return write_report(job.config, provenance.read(job.folder)["stages"], job.threads, job.progress)


STAGE = Stage("report", "report", (), ("report.html",), run, needs_all_inputs=False,
              reads_of=solute_file,
              reads={"scaffold": "scaffold.h5", "solute": RELAXED, "clashes": "clash_report.json",
                     "manifest": "shards/manifest.json", "topology": "topology.h5", "dynamics": "md/phases.json"})
