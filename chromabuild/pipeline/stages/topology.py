"""solute_clean.h5 and the shard manifest to topology.h5 and topology.psf."""

import json

from chromabuild.pipeline.stages.stage import Job, Stage, files


def run(job: Job) -> dict:
    """solute_clean.h5 and the shard manifest to topology.h5 and topology.psf."""
    from chromabuild.export.psf import write_psf
    from chromabuild.forcefield import make_topology
    from chromabuild.molecule.solute import Solute

    solute = Solute.read(job.folder / "solute_clean.h5")
    manifest = json.loads((job.folder / "shards" / "manifest.json").read_text(encoding="utf-8"))
    result = make_topology(solute, manifest["counts"], job.config.dynamics.force_field, manifest["net_charge"],
                           job.progress)
    result.provenance = job.provenance | result.provenance
    result.write(job.folder / "topology.h5")
    job.progress("writing topology.psf")
    write_psf(result, job.folder / "topology.psf", solute)
    return {"force_field": result.force_field, "atoms": result.n_atoms, "net_charge": round(result.net_charge, 6),
            "atom_types": len(result.lj_name), "molecule_templates": len(result.templates)}


STAGE = Stage("topology", "force field", ("dynamics.force_field",),
              files(solute="solute_clean.h5", manifest="shards/manifest.json"), ("topology.h5", "topology.psf"), run)
