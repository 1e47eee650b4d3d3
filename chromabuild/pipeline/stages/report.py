"""Everything that is there to report.html and its viewer."""

from chromabuild.base.errors import ChromabuildError
from chromabuild.base.summary import Summary
from chromabuild.pipeline.relaxing import RELAXED, solute_file
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """Everything to report.html."""
    from chromabuild.pipeline import provenance
    from chromabuild.report.document import write_report

    return write_report(job.config, provenance.read(job.folder)["stages"], job.threads, job.progress,
                        _write_viewer(job))


def _write_viewer(job: Job) -> str:
    """Write the viewer that the page shows; gives the sentence that says why there is none."""
    from chromabuild.pipeline.view import view_results
    from chromabuild.report.document import VIEWER

    try:
        view_results(job.config, job.folder / VIEWER, force=True, progress=job.progress)
    except ChromabuildError as error:
        # A report of what went wrong must not fail for it.
        return f"There is no viewer: {error}."
    return ""


STAGE = Stage("report", "report", (), ("report.html",), run, needs_all_inputs=False,
              companions=("report_viewer/index.html", "report_viewer/atoms/*.js"),
              reads_of=solute_file,
              reads={"scaffold": "scaffold.h5", "solute": RELAXED, "clashes": "clash_report.json",
                     "manifest": "shards/manifest.json", "topology": "topology.h5", "dynamics": "md/phases.json"})
