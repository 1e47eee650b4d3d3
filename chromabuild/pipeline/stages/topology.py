"""solute_clean.h5 and the shard manifest to topology.h5 and topology.psf."""

from chromabuild.base.summary import Summary
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """solute_clean.h5 and the shard manifest to topology.h5 and topology.psf."""
    from chromabuild.api import assign_force_field
    from chromabuild.export.psf import write_psf
    from chromabuild.molecule.solute import Solute
    from chromabuild.shards.shard_set import ShardSet

    solute = Solute.read(job.folder / "solute_clean.h5")
    topology = assign_force_field(solute, ShardSet.read(job.folder / "shards"), job.config, progress=job.progress)
    topology.provenance = job.provenance | topology.provenance
    topology.write(job.folder / "topology.h5")
    job.progress("writing topology.psf")
    write_psf(topology, job.folder / "topology.psf", solute)
    return {"force_field": topology.force_field, "atoms": topology.n_atoms, "net_charge": round(topology.net_charge, 6),
            "atom_types": len(topology.lj_name), "molecule_templates": len(topology.templates)}


STAGE = Stage("topology", "force field", ("dynamics.force_field",), ("topology.h5", "topology.psf"), run,
              reads={"solute": "solute_clean.h5", "manifest": "shards/manifest.json"})
