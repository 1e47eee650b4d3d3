"""What force fields know of modified residues: charges and terms of each in CHARMM, and the sentences that refuse."""

import numpy as np
import pytest
from support import charmm_xml
from support.charmm_files_judge import assert_files_agree
from support.molecular_systems import make_solute

from chromabuild.base.errors import BadInputError
from chromabuild.base.force_fields import FORCE_FIELDS
from chromabuild.base.settings import Settings
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.clash import check
from chromabuild.dna.helix import crystal_path
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.charmm import charmm_recipe
from chromabuild.forcefield.modified_residues import analogy_note, check_parameters, force_fields_with
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.pipeline.plan import Parts
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.solvate.ions import formal_charges

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(72, 72, 72))
KNOWN = [name for name in modifications() if force_fields_with(name) and not residue_library()[name].link]
"""Those that stand in a chain of their own; of others see test_assign.py and test_ubiquitin_parameters.py."""
PUBLISHED = [name for name in KNOWN if not all(FORCE_FIELDS[one].by_analogy for one in force_fields_with(name))]
TOPPAR_ALY = {"CE": -0.02, "HE2": 0.09, "HE3": 0.09, "NZ": -0.47, "HZ": 0.31, "CH": 0.51, "OH": -0.51, "CH3": -0.27,
              "HH31": 0.09, "HH32": 0.09, "HH33": 0.09}
"""Charges of acetyl-lysine in toppar_all36_prot_modify_res.str, which OpenMM's file lacks, under our names."""


def chain_with(name: str) -> list[str]:
    """Three residues with a modified one inside, or at the start where it can stand there only."""
    change = modifications()[name]
    if change.parent.startswith("D"):
        return ["DA5", name, "DA3"]
    return [name, "ALA", "CALA"] if change.begins_chain else ["NALA", name, "CALA"]


@pytest.fixture(scope="module")
def molecules():
    """Template of a short chain by the name of its modified residue, in CHARMM36m with what is by analogy."""
    topology = make_topology(make_solute([chain_with(name) for name in KNOWN]), {}, "charmm36m-analogy")
    return dict(zip(KNOWN, (topology.templates[k] for k in topology.run_template), strict=True))


@pytest.mark.parametrize("name", KNOWN)
def test_every_bond_angle_and_torsion_has_parameters(molecules, name):
    """OpenMM leaves out without a word what it has no parameters for. The charge is the formal one."""
    template = molecules[name]
    bonds = {tuple(sorted(pair)) for pair in template.bond_atoms.tolist()}
    neighbours: dict[int, set[int]] = {}
    for i, j in bonds:
        neighbours.setdefault(i, set()).add(j)
        neighbours.setdefault(j, set()).add(i)
    names = chain_with(name)
    sizes = [len(residue_library()[one].atoms) for one in names]
    assert len(bonds) == sum(len(residue_library()[one].bonds) for one in names) + len(names) - 1
    angles = {(min(i, k), j, max(i, k)) for j in neighbours for i in neighbours[j] for k in neighbours[j] if i != k}
    assert {(min(i, k), j, max(i, k)) for i, j, k in template.angle_atoms.tolist()} == angles
    turned = {tuple(sorted(row[1:3])) for row in template.dihedral_atoms.tolist()}
    # The methyl of an acetyl, and carbons on the nitrogens of arginine, turn freely in CHARMM.
    label = [atom for one in names for atom in residue_library()[one].atoms]
    turns = {("CH", "CH3"), ("C1A", "C2A"), ("CT", "CM"), ("CD", "NE"), ("NH2", "CAA"), ("NH1", "CQ1"), ("CQ2", "NH2")}
    free = {(i, j) for i, j in bonds if (label[i], label[j]) in turns and name != "KCR"}
    assert {(i, j) for i, j in bonds if len(neighbours[i]) > 1 and len(neighbours[j]) > 1} - turned == free
    first = sum(sizes[:names.index(name)])
    inside = template.charge[first:first + len(residue_library()[name].atoms)].sum()
    assert inside == pytest.approx(modifications()[name].charge, abs=1e-6)


@pytest.fixture(scope="module")
def phosphorylated():
    """Twelve base pairs on the crystal's path whose ends carry phosphates, a 5-methylcytosine among them."""
    modified = np.zeros(24, dtype=int)
    modified[12] = 1
    part = [x[60:72] for x in crystal_path()]
    position, template, _ = build_dna(np.array([0, 2, 0, 1, 2, 3, 1, 1, 2, 0, 1, 2]), *part, modified=modified,
                                      phosphate=True, phosphate_3=True)
    return assemble_solute(position, template, [], np.zeros((0, 3)), np.zeros((0, 3, 3)))


@pytest.fixture(scope="module")
def with_phosphates(phosphorylated) -> Topology:
    return make_topology(phosphorylated, {}, "charmm36m")


def test_phosphates_of_ends_are_charmm_s(phosphorylated, with_phosphates):
    """Charges of 5PHO and 3PHO after DEOX, -1 more than a hydroxyl has at each end, every term across P."""
    topology = with_phosphates
    assert topology.net_charge == pytest.approx(-26, abs=1e-6)
    assert formal_charges()[phosphorylated.residue_template].sum() == -26
    template = topology.templates[0]
    names = [name.decode() for name in template.atom_name[:len(residue_library()["DA5P"].atoms)]]
    theirs = charmm_xml.atoms_of("ADE", ("DEOX", "5PHO"))
    renamed = {"O1P": "OP1", "O2P": "OP2", "O5T": "OP3", "H5T": "HOP3"}
    assert dict(zip(names, template.charge, strict=False)) == pytest.approx(
        {renamed.get(name, name): charge for name, charge in theirs.items()})
    p, op3, hop3, o5 = (names.index(name) for name in ("P", "OP3", "HOP3", "O5'"))
    assert {(i, j) for i, j in map(sorted, template.bond_atoms.tolist())} >= {(p, op3), (op3, hop3), (p, o5)}
    assert sum(row[1] == p for row in template.angle_atoms.tolist()) == 6
    assert {tuple(sorted(row[1:3])) for row in template.dihedral_atoms.tolist()} >= {(p, op3), (p, o5)}
    last = len(residue_library()["DG3P"].atoms)
    names = [name.decode() for name in template.atom_name[-last:]]
    theirs = charmm_xml.atoms_of("GUA", ("DEOX", "3PHO"))
    renamed = {"O1P": "OP1", "O2P": "OP2"}
    assert dict(zip(names, template.charge[-last:], strict=True)) == pytest.approx(
        {renamed.get(name, name): charge for name, charge in theirs.items()})
    p3, o3, o3t = (template.n_atoms - last + names.index(name) for name in ("P3", "O3'", "O3T"))
    assert sum(row[1] == p3 for row in template.angle_atoms.tolist()) == 6
    assert {tuple(sorted(row[1:3])) for row in template.dihedral_atoms.tolist()} >= {(o3, p3), (p3, o3t)}


def test_phosphates_of_ends_through_charmm_s_own_files(phosphorylated, with_phosphates, tmp_path):
    """The psf and parameters that are written, read by OpenMM, beside chromamd: each term to 1e-6."""
    assert_files_agree(phosphorylated, with_phosphates, tmp_path, OPTIONS)


@pytest.mark.parametrize("force_field", ["amber14", "amber-bsc1", "amber19"])
def test_five_prime_phosphates_are_those_of_ambertools(force_field):
    """P 1.1661, OH -0.6210 and its hydrogen 0.3129 in terminal_monophosphate.lib; all else is the inner nucleotide's.

    The strand has a charge for each nucleotide, and no bond, angle or torsion lacks parameters.
    """
    strands = [["DA5P", "DC", "DG3"], ["DC5P", "DA3"], ["DG5P", "DT3"], ["DT5P", "DA", "DA3"], ["DA5", "DA", "DA3"]]
    topology = make_topology(make_solute(strands), {}, force_field)
    *ours, plain = (topology.templates[k] for k in topology.run_template)
    for strand, template in zip(strands, ours, strict=False):
        assert template.charge.sum() == pytest.approx(-len(strand), abs=1e-6)
        first = residue_library()[strand[0]]
        n, index = len(first.atoms), first.index
        charge = dict(zip(first.atoms, template.charge, strict=False))
        assert (charge["P"], charge["OP3"], charge["HOP3"]) == (1.1661, -0.621, 0.3129)
        p = index["P"]
        assert sum(row[1] == p for row in template.angle_atoms.tolist()) == 6
        assert sum(row[1] == index["OP3"] for row in template.angle_atoms.tolist()) == 1
        assert {tuple(sorted(row[1:3])) for row in template.dihedral_atoms[
            (template.dihedral_atoms < n).all(axis=1)].tolist()} >= {(p, index["OP3"]), (p, index["O5'"])}
    inner = residue_library()["DA"]
    begin = len(residue_library()["DA5"].atoms)
    of_inner = dict(zip(inner.atoms, plain.charge[begin:], strict=False))
    of_first = dict(zip(residue_library()["DA5P"].atoms, ours[0].charge, strict=False))
    assert {name: of_first[name] for name in of_inner if name != "P"} == {
        name: charge for name, charge in of_inner.items() if name != "P"}


def test_phosphates_of_ends_stand_as_charmm_has_them_at_rest(phosphorylated, with_phosphates):
    """Bonds within 0.03 angstrom, angles about P within 8 degrees; nothing overlaps."""
    template = with_phosphates.templates[0]
    x = phosphorylated.position.astype(float)
    own = {*range(5), *range(template.n_atoms - 6, template.n_atoms)}
    for i, j, r0 in zip(*template.bond_atoms.T, template.bond_r0, strict=True):
        if i in own and j in own:
            assert np.linalg.norm(x[i] - x[j]) == pytest.approx(r0, abs=0.03)
    for (i, j, k), rest in zip(template.angle_atoms, template.angle_theta0, strict=True):
        if j in (0, template.n_atoms - 5):
            a, b = x[i] - x[j], x[k] - x[j]
            assert np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))) == pytest.approx(rest, abs=8)
    assert check(phosphorylated).data["before"]["heavy_pairs_below_2"] == 0


def test_phosphates_of_ends_are_refused_elsewhere(tmp_path):
    (tmp_path / "g.fa").write_text(">chrT\n" + "ACGTTGCATC" * 5 + "\n")
    settings = {"locus": {"fasta": str(tmp_path / "g.fa"), "nucleosomes": None}, "build": {"three_prime": "phosphate"}}
    with pytest.raises(BadInputError, match="amber14 has no parameters for build.three_prime = phosphate: set dynamics."
                                            "force_field to charmm36m or charmm36m-analogy, or build.three_prime"):
        Parts.of(Settings.model_validate(settings))
    Parts.of(Settings.model_validate(settings | {"build": {"five_prime": "phosphate"}}))


def test_acetyl_lysine_is_that_of_toppar(molecules):
    """Charges, and the two improper torsions of its amide."""
    template = molecules["ALY"]
    first = len(residue_library()["NALA"].atoms)
    atoms = residue_library()["ALY"].atoms
    charge = dict(zip(atoms, template.charge[first:first + len(atoms)].tolist(), strict=True))
    assert {atom: charge[atom] for atom in TOPPAR_ALY} == pytest.approx(TOPPAR_ALY)
    inner = [{atoms[k - first] for k in row if first <= k < first + len(atoms)}
             for row in template.improper_atoms.tolist()]
    assert {"NZ", "CH", "CE", "HZ"} in inner and {"CH", "CH3", "NZ", "OH"} in inner


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "ALY"])
def test_openmm_has_what_the_table_names(name):
    residue, *patches = charmm_recipe(name)
    charges = charmm_xml.atoms_of(residue, tuple(patches))
    assert sum(charges.values()) == pytest.approx(modifications()[name].charge, abs=1e-6)
    assert len(charges) == len(residue_library()[name].atoms)


def test_the_others_are_in_none_of_openmms_files():
    names = {residue.get("name") for residue in charmm_xml.charmm36().iter("Residue")}
    assert not names & {"ALY", "MLZ", "MLY", "M3L", "2MR", "DA2"}
    assert force_fields_with("M3L") == ["charmm36m-analogy"]
    assert force_fields_with("KUB") == ["charmm36m", "charmm36m-analogy", "amber14-analogy", "amber-bsc1-analogy",
                                        "amber19-analogy"]
    assert force_fields_with("5CM") == ["charmm36m", "charmm36m-analogy"]
    assert {*KNOWN, "KUB"} == set(modifications()) and set(PUBLISHED) == set(KNOWN) - {
        "MLZ", "MLY", "M3L", "NMM", "DA2", "2MR", "KCR"}


@pytest.mark.parametrize(("marks", "bases", "force_field", "sentence"), [
    (["H3K27ac"], [], "amber14", "force field amber14 has no parameters for H3K27ac \\(N6-acetyl-lysine, ALY\\): set "
     "dynamics.force_field to charmm36m, or write H3:K27Q, the nearest stand-in, or leave it out$"),
    (["H3S10ph"], [], "amber19", "field amber19 .* or write H3:S10E, the nearest stand-in, or leave it out$"),
    (["H3K4me3"], [], "charmm36m", "charmm36m has no parameters for H3K4me3 .*: no force field here has published "
     "ones: set dynamics.force_field to charmm36m-analogy, which describes it by analogy, or name a file that has them "
     "in dynamics.force_field_files, or leave it out$"),
    (["H3K9cr"], [], "amber14", "no force field here has published ones: set .* or write H3:K9Q, the nearest stand-in"),
    (["H2AK119ub"], [], "amber14", "H2AK119ub \\(lysine with ubiquitin on its side chain, KUB\\): set "
     "dynamics.force_field to charmm36m, or leave it out$"),
    ([], ["5mC"], "amber14", "no parameters for 5mC \\(5-methylcytosine, 5CM\\): set dynamics.force_field to "
     "charmm36m, or leave it out$"),
])
def test_what_has_no_parameters_is_refused_with_a_way_out(marks, bases, force_field, sentence):
    with pytest.raises(BadInputError, match=sentence):
        check_parameters(marks, bases, force_field)


def test_what_has_parameters_passes():
    for force_field in ("charmm36m", "charmm36m-analogy"):
        assert check_parameters(["H3K27ac", "H4K16ac@1", "H3T3ph"], ["5mC", "5hmC", "5fC"], force_field) == []
    assert check_parameters([], [], "amber14") == [] and analogy_note([]) == ""


def test_parameters_by_analogy_are_told(tmp_path):
    """By name, and not where a file of the user's has the residue."""
    alike = check_parameters(["H3K4me3", "H3K27ac", "H4R3me2a"], ["5mC"], "charmm36m-analogy")
    assert alike == ["H3K4me3", "H4R3me2a"] and "H3K4me3, H4R3me2a are by analogy" in analogy_note(alike)
    own = tmp_path / "own.xml"
    own.write_text('<ForceField><Residues><Residue name="M3L"/></Residues></ForceField>')
    assert check_parameters(["H3K4me3", "H4R3me2a"], [], "charmm36m-analogy", [str(own)]) == ["H4R3me2a"]


def test_a_topology_of_a_modified_residue_is_refused():
    with pytest.raises(BadInputError, match="amber14 does not know ALY: set dynamics.force_field to charmm36m"):
        make_topology(make_solute([["NALA", "ALY", "CALA"]]), {}, "amber14")
