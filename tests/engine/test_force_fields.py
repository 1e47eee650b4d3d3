"""Every term of the force fields that are assigned: OpenMM's ForceField, which finds residues and patches of the whole
system by itself, judges chromamd in double precision."""

import pytest
from openmm import app
from support.charmm36m import charmm36m
from support.engine_energies import evaluate, write_input
from support.force_field_judge import assert_terms_agree, judged
from support.molecular_systems import SOLVENT, MolecularSystem, fixture

from chromabuild.base.force_fields import force_field_files
from chromabuild.forcefield.assign import make_topology
from chromabuild.simulate.openmm_engine import NonbondedOptions

pytestmark = [pytest.mark.mpi]

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(36, 36, 36))


@pytest.mark.parametrize(("force_field", "name"), [
    ("amber19", "peptide"), ("charmm36m", "peptide"), ("charmm36m", "duplex")])
@pytest.mark.release
def test_every_term_against_the_force_field_of_openmm(systems, tmp_path, force_field, name):
    """A peptide or a duplex in water and salt: bonds, angles and Urey-Bradley terms, dihedrals, impropers, correction
    maps, Lennard-Jones with NBFIX and 1-4 parameters, charges: each to 1e-6."""
    known = systems[name]
    sizes = {t.name: int(known.topology.run_count[known.topology.run_template == k].sum())
             for k, t in enumerate(known.topology.templates)}
    counts = {key: sizes[residue] for key, residue in SOLVENT.items() if residue in sizes}
    system = MolecularSystem(make_topology(fixture(name)[0], counts, force_field), known.position, known.box)
    rules = charmm36m() if force_field == "charmm36m" else app.ForceField(*force_field_files(force_field))
    judge = rules.createSystem(known.judge, nonbondedMethod=app.PME, nonbondedCutoff=OPTIONS.cutoff / 10,
                               constraints=None, rigidWater=False, removeCMMotion=False)
    ours = evaluate(write_input(system, tmp_path), tmp_path, "double", OPTIONS)
    theirs = judged(judge, known.position, OPTIONS)
    if force_field != "charmm36m":  # one force of OpenMM's has charges and Lennard-Jones
        theirs[0]["lennard_jones"] = sum(ours[0][column] for column in ("VDWAALS", "PAIR14_VDW"))
        theirs[0]["electrostatic"] -= theirs[0]["lennard_jones"]
    assert_terms_agree(ours, theirs, 1e-6, 1e-6)
    assert (abs(theirs[0]["cmap"]) > 1) == (name == "peptide")
