"""The solute and the shard manifest to topology.h5 and topology.psf."""

from chromabuild.base.summary import Summary
from chromabuild.pipeline.relaxing import RELAXED, solute_file
from chromabuild.pipeline.stages.stage import Job, Stage

PSF = "topology.psf"


def run(job: Job) -> Summary:
    """The solute and the shard manifest to topology.h5, and to topology.psf of the atoms of the trajectory."""
    from chromabuild.api import assign_force_field
    from chromabuild.export.psf import MAX_ATOMS, write_psf
    from chromabuild.forcefield.modified_residues import counts_by_analogy
    from chromabuild.forcefield.molecule_runs import part_of
    from chromabuild.molecule.solute import Solute
    from chromabuild.shards.shard_set import ShardSet

    solute = Solute.read(job.folder / solute_file(job.config)["solute"])
    topology = assign_force_field(solute, ShardSet.read(job.folder / "shards"), job.config, progress=job.progress)
    topology.provenance = job.provenance | topology.provenance
    dynamics = job.config.dynamics
    alike = counts_by_analogy(solute, dynamics.force_field, dynamics.force_field_files)
    if alike:
        topology.provenance |= {"parameters_by_analogy": alike}
    topology.write(job.folder / "topology.h5")
    part = part_of(topology, dynamics.trajectory_selection)
    if part.n_atoms <= MAX_ATOMS:
        psf = f"{part.n_atoms} of {topology.n_atoms} atoms, those of the trajectory"
        job.progress(f"writing {PSF} of {psf}")
        write_psf(part, job.folder / PSF, solute)
    else:
        psf = (f"none: {part.n_atoms} atoms are more than the {MAX_ATOMS} of a PSF, topology.h5 stands alone "
               "(dynamics.trajectory_selection chooses fewer)")
        job.progress(f"{PSF}: {psf}")
        (job.folder / PSF).unlink(missing_ok=True)
    return {"force_field": topology.force_field, "atoms": topology.n_atoms, "net_charge": round(topology.net_charge, 6),
            "atom_types": len(topology.lj_name), "molecule_templates": len(topology.templates), "psf": psf,
            **({"parameters_by_analogy": alike} if alike else {})}


STAGE = Stage("topology", "force field",
              ("dynamics.force_field", "dynamics.force_field_files", "dynamics.trajectory_selection"), ("topology.h5",),
              run, reads={"solute": RELAXED, "manifest": "shards/manifest.json"}, reads_of=solute_file,
              files=("dynamics.force_field_files",), optional_outputs=(PSF,))
