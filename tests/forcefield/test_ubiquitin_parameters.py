"""Ubiquitin on H2AK119: charges of the bond in CHARMM and by analogy in AMBER, every energy through CHARMM's files."""

import numpy as np
import pytest
from support import charmm_xml
from support.charmm_files_judge import assert_files_agree

from chromabuild.build.assembly import assemble_solute
from chromabuild.build.octamers import octamer_of_recipe
from chromabuild.export.region import residues_of
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.modified_residues import check_parameters, counts_by_analogy
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.recipe import OctamerRecipe
from chromabuild.simulate.openmm_engine import NonbondedOptions

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(96, 96, 96))


@pytest.fixture(scope="module")
def solute() -> Solute:
    """H2A with K119ub, and its ubiquitin."""
    core = octamer_of_recipe(OctamerRecipe().with_mark("H2AK119ub@1"))
    whole = assemble_solute(np.zeros((0, 3)), np.zeros(0, np.uint16), [core], np.zeros((1, 3)), np.eye(3)[None])
    first = whole.molecule_first_residue
    return residues_of(whole, [(k, np.arange(first[k], first[k + 1])) for k, name in enumerate(whole.molecule_name)
                               if name == "ubiquitin" or k == whole.molecule_name.index("H2A")])


@pytest.fixture(scope="module")
def topology(solute) -> Topology:
    return make_topology(solute, {}, "charmm36m")


def bonded_residues(solute: Solute, topology: Topology) -> tuple[dict[str, float], dict[str, float]]:
    """Charges by atom of the lysine and of the last glycine."""
    (template,) = topology.templates
    assert template.charge.sum() == pytest.approx(17, abs=1e-3)  # H2A 17, less the lysine's, and the other's amino end
    found = []
    for residue in solute.links[0]:
        part = slice(*solute.residue_first_atom[residue:residue + 2])
        found.append(dict(zip(solute.atom_names()[part].tolist(), template.charge[part].tolist(), strict=True)))
    return found[0], found[1]


def test_charmm_s_bond_has_charges_of_its_published_patches(solute, topology):
    """Lysine's side as in DKAM of toppar_all36_prot_modify_res.str, glycine's as with CT3 (N-methylamide)."""
    lysine, glycine = bonded_residues(solute, topology)
    assert {name: lysine[name] for name in ("NZ", "HZ", "CE", "HE2", "HE3")} == pytest.approx(
        {"NZ": -0.47, "HZ": 0.31, "CE": -0.02, "HE2": 0.09, "HE3": 0.09})
    ct3 = charmm_xml.atoms_of("GLY", ("CT3",))
    assert [glycine[name] for name in ("N", "CA", "C", "O")] == pytest.approx(
        [ct3[name] for name in ("N", "CA", "C", "O")])


def test_amber_s_bond_is_by_analogy(solute):
    """Charges of NME's amide and methyl, less a hydrogen; told by name."""
    lysine, glycine = bonded_residues(solute, make_topology(solute, {}, "amber14-analogy"))
    assert (lysine["NZ"], lysine["HZ"], lysine["HE2"]) == pytest.approx((-0.4157, 0.2719, 0.0976))
    assert lysine["CE"] == pytest.approx(-0.149 + 0.0976, abs=0.005)
    assert sum(lysine.values()) == pytest.approx(0, abs=1e-9) and sum(glycine.values()) == pytest.approx(0, abs=1e-9)
    assert counts_by_analogy(solute, "amber14-analogy") == {"KUB": 1}
    assert check_parameters(["H2AK119ub@1"], [], "amber19-analogy") == ["H2AK119ub@1"]
    assert check_parameters(["H2AK119ub"], [], "charmm36m") == []


@pytest.mark.mpi
def test_every_energy_through_the_files_of_charmm(solute, topology, tmp_path):
    """OpenMM reads psf and parameters that are written of the system: each term as chromamd has it, to 1e-6."""
    psf, _ = assert_files_agree(solute, topology, tmp_path, OPTIONS)
    atoms = list(psf.topology.atoms())
    nitrogen, carbon = solute.link_atoms()[0].tolist()
    assert (atoms[nitrogen].name, atoms[carbon].name) == ("NZ", "C")
    impropers = [{atoms[k.idx].name for k in (one.atom1, one.atom2, one.atom3, one.atom4)} for one in psf.improper_list
                 if nitrogen in (one.atom1.idx, one.atom2.idx, one.atom3.idx, one.atom4.idx)]
    assert {"NZ", "C", "CE", "HZ"} in impropers and {"NZ", "C", "CA", "O"} in impropers and len(impropers) == 2
