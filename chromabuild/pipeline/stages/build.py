"""scaffold.h5 to solute.h5."""

from chromabuild.base.summary import Summary
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """scaffold.h5 to solute.h5."""
    from chromabuild.api import build_solute
    from chromabuild.pipeline.parameters import check_scaffold
    from mesoscale.scaffold import Scaffold

    scaffold = Scaffold.read(job.folder / "scaffold.h5")
    check_scaffold(job.config, scaffold)
    solute = build_solute(scaffold, job.config, threads=job.threads, progress=job.progress)
    solute.provenance = job.provenance
    solute.write(job.folder / "solute.h5")
    return {"atoms": solute.n_atoms, "residues": solute.n_residues, "molecules": len(solute.molecule_name),
            **solute.build_report}


STAGE = Stage("build", "all-atom solute", ("build", "locus.chromosome_names"), ("solute.h5",), run,
              reads={"scaffold": "scaffold.h5"},
              files=("build.marks", "locus.chromosome_names", "build.methylation", "build.template",
                     "build.structures"))
