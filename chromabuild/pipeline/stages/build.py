"""scaffold.h5 to solute.h5."""

from pathlib import Path

from chromabuild.base.settings import Config
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> dict:
    """scaffold.h5 to solute.h5."""
    from chromabuild.build import build_solute
    from mesoscale.scaffold import Scaffold

    solute = build_solute(Scaffold.read(job.folder / "scaffold.h5"), job.config, job.threads,
                          lambda phase, share: job.show( phase, share))
    found = solute.provenance.get("build_report", {})
    solute.provenance = job.provenance
    solute.write(job.folder / "solute.h5")
    return {"atoms": solute.n_atoms, "residues": solute.n_residues, "molecules": len(solute.molecule_name), **found}


def _inputs(config: Config) -> dict[str, str | Path]:
    files = {"marks": config.build.marks, "template": config.build.template}
    return {"scaffold": "scaffold.h5"} | {role: Path(file) for role, file in files.items() if file}


STAGE = Stage("build", "all-atom solute", ("build",), _inputs, ("solute.h5",), run)
