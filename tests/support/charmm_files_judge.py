"""A solute through psf and parameters that are written of it, which OpenMM reads, beside chromamd."""

from pathlib import Path

from openmm import app, unit

from chromabuild.export.charmm import write_charmm
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute
from chromabuild.simulate.openmm_engine import NonbondedOptions
from support.engine_energies import evaluate, write_input
from support.force_field_judge import assert_terms_agree, judged
from support.molecular_systems import MolecularSystem


def assert_files_agree(solute: Solute, topology: Topology, folder: Path, options: NonbondedOptions
                       ) -> tuple[app.CharmmPsfFile, dict[str, float]]:
    """Each term of both, to 1e-6, in a box 5 angstrom about the solute; gives the psf as OpenMM reads it, and its
    energies."""
    position = (solute.position - solute.position.min(axis=0) + 5).astype(float).round(3)
    system = BuiltSystem(topology, position, position.max(axis=0).round() + 5, solute)
    write_charmm(system, folder)
    psf = app.CharmmPsfFile(str(folder / "system.psf"))
    psf.setBox(*(system.box / 10 * unit.nanometer))
    made = psf.createSystem(app.CharmmParameterSet(str(folder / "system.prm")), nonbondedMethod=app.PME,
                            nonbondedCutoff=options.cutoff / 10, constraints=None, rigidWater=False,
                            removeCMMotion=False)
    theirs = judged(made, system.position, options)
    ours = evaluate(write_input(MolecularSystem(system.topology, system.position, system.box), folder), folder,
                    "double", options)
    # Where atom types have parameters of their own for 1-4 pairs, OpenMM has those pairs among the charges.
    lennard_jones = sum(ours[0][column] for column in ("VDWAALS", "PAIR14_VDW"))
    theirs[0]["electrostatic"] += theirs[0]["lennard_jones"] - lennard_jones
    theirs[0]["lennard_jones"] = lennard_jones
    assert_terms_agree(ours, theirs, 1e-6, 1e-6)
    return psf, theirs[0]
