"""Parameters by analogy: what they are taken from, and every energy of them through CHARMM's own files."""

import math
import re
from pathlib import Path

import pytest
from support import charmm_xml
from support.charmm_files_judge import assert_files_agree
from support.marked_solute import WHOLE, marked_solute
from support.molecular_systems import make_solute

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield import analogies
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.modified_residues import counts_by_analogy
from chromabuild.forcefield.topology_file import MoleculeTemplate
from chromabuild.molecule.residues import residue_library
from chromabuild.simulate.openmm_engine import NonbondedOptions

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(72, 72, 72))
MARKS = ("H3K4me3", "H3R8me2a", "H3K9me2", "H3R17me2s", "H3K18cr", "H3R26me1", "H3K27me1")
ALIKE = list(analogies.analogies()["residues"])
CHOLINE = {"NG3P0": "NTL", "CG334": "CTL5", "CG324": "CTL2", "HGP5": "HL"}
"""Types of trimethyl-lysine, and those of choline in CHARMM36's lipids."""
BONDS = {("NC2", "CT3"): (390.0, 1.49), ("CC1A", "C"): (440.0, 1.489)}
ANGLES = {("CT3", "NC2", "C"): (62.3, 120.0), ("HC", "NC2", "CT3"): (40.4, 120.0), ("NC2", "CT3", "HA3"): (56.5, 107.5)}
"""Of par_all36m_prot.prm (methylguanidinium), and the file of retinal, kcal/mol, angstrom, degree."""


@pytest.fixture(scope="module")
def chain() -> list[str]:
    """A chain with each of the residues."""
    return ["NALA", *[word for name in ALIKE for word in (name, "GLY")], "CALA"]


@pytest.fixture(scope="module")
def template(chain) -> MoleculeTemplate:
    """That chain; another has such residues at its ends."""
    topology = make_topology(make_solute([chain, ["NM3L", "ALA", "CMLY"]]), {}, "charmm36m-analogy")
    assert topology.templates[1].charge.sum() == pytest.approx(2, abs=1e-9)
    return topology.templates[0]


def residue(template: MoleculeTemplate, name: str, chain: list[str]) -> dict[str, tuple[str, float]]:
    """Type and charge by atom of a residue of a chain."""
    first = sum(len(residue_library()[one].atoms) for one in chain[:chain.index(name)])
    return {atom: (template.atom_class[first + k].decode(), template.charge[first + k])
            for k, atom in enumerate(residue_library()[name].atoms)}


def test_charges_are_those_of_the_groups_they_are_taken_from(template, chain):
    """Choline (CHARMM36 lipids), 5-methylaminomethyl (toppar_all36_na_rna_modified.str, U8U), arginine's own side."""
    me3, me2, me1 = (residue(template, name, chain) for name in ("M3L", "MLY", "MLZ"))
    lipid = charmm_xml.atoms_of("POPC")
    assert [me3[atom][1] for atom in ("NZ", "CM1", "HM11", "CE", "HE2")] == pytest.approx(
        [lipid[atom] for atom in ("N", "C13", "H13A", "C12", "H12A")])
    assert [me1[atom][1] for atom in ("NZ", "HZ2", "CM", "HCM1", "CE", "HE2")] == [-0.52, 0.38, 0.11, 0.09, 0.20, 0.09]
    assert me2["NZ"][1] + me2["HZ"][1] + sum(me2[atom][1] for atom in me2 if atom[:2] in ("CH", "HH")) == pytest.approx(
        1 - me2["CE"][1] - 2 * me2["HE2"][1])
    arginine = charmm_xml.atoms_of("ARG")
    symmetric = residue(template, "2MR", chain)
    assert symmetric["NH1"][1] == symmetric["NH2"][1] == arginine["NE"] and symmetric["HH1"][1] == arginine["HE"]
    assert symmetric["CQ1"][1] + 3 * 0.09 == pytest.approx(arginine["CD"] + 2 * arginine["HD1"])
    assert {kind for kind, _ in symmetric.values()} <= {"NH1", "H", "CT1", "HB1", "CT2", "HA2", "NC2", "HC", "C", "CT3",
                                                        "HA3", "O"}
    for name in ALIKE:
        total = sum(charge for _, charge in residue(template, name, chain).values())
        assert total == pytest.approx(0 if name == "KCR" else 1, abs=1e-9)


def test_terms_are_those_of_like_molecules(template):
    """Trimethyl-lysine has the bonds and angles of choline; methylated arginine and crotonyl those of CHARMM."""
    types = [name.decode() for name in template.atom_class.tolist()]
    found = {"bond": 0, "angle": 0}
    for atoms, k, r0 in zip(template.bond_atoms.tolist(), template.bond_k, template.bond_r0, strict=True):
        key = tuple(types[atom] for atom in atoms)
        if set(key) <= set(CHOLINE) and "NG3P0" in key:
            assert r0 == pytest.approx(charmm_xml.bond(*(CHOLINE[one] for one in key)), abs=1e-6)
            found["bond"] += 1
        for one in (key, key[::-1]):
            if one in BONDS:
                assert (k, r0) == pytest.approx(BONDS[one])
                found["bond"] += 1
    for atoms, k, theta in zip(template.angle_atoms.tolist(), template.angle_k, template.angle_theta0, strict=True):
        key = tuple(types[atom] for atom in atoms)
        if set(key) <= set(CHOLINE) and "NG3P0" in key:
            angle, stiffness = charmm_xml.angle(*(CHOLINE[one] for one in key))
            assert (math.radians(theta) if theta < 4 else theta) == pytest.approx(angle, abs=1e-3)
            assert k == pytest.approx(stiffness / 8.368, rel=1e-6)
            found["angle"] += 1
        for one in (key, key[::-1]):
            if one in ANGLES:
                assert (k, theta) == pytest.approx(ANGLES[one])
                found["angle"] += 1
    assert found["bond"] == 4 + 5 + 1 and found["angle"] == 17 + 23, found


def test_no_term_by_analogy_takes_the_place_of_one_that_charmm_has():
    for types, like in analogies.analogies()["terms"]:
        target, count = types.split(), len(types.split())
        forces = {2: "HarmonicBondForce", 3: "HarmonicAngleForce", 4: "PeriodicTorsionForce"}
        entries = [[entry.get(f"class{k + 1}") for k in range(count)]
                   for force in charmm_xml.charmm36().findall(forces[count]) for entry in force]
        assert target not in entries and target[::-1] not in entries, types
        assert like.split() in entries or like.split()[::-1] in entries, like


def test_every_number_is_documented():
    """templates/SOURCES.md: charges of each patch, and the values of terms as OpenMM's file has them."""
    text = (Path(__file__).parents[2] / "templates" / "SOURCES.md").read_text()
    for name, (_, patch) in analogies.analogies()["residues"].items():
        entry = analogies.analogies()["patches"][patch]
        charges = ", ".join(f"{atom} {charge:g}" for atom, (_, charge) in (entry["change"] | entry["add"]).items())
        assert f"| `{name}` | `{patch}` | {charges} |" in text
    rows = dict(re.findall(r"^\| (\S+) \| \S+ \| ([-0-9., ;UB]+) \|$", text, re.MULTILINE))
    for types, like in analogies.analogies()["terms"]:
        first = [float(word) for word in rows[types.replace(" ", "-")].split(";")[0].split(",")]
        names = tuple(like.split())
        if len(names) == 2:
            assert first[1] == pytest.approx(charmm_xml.bond(*names), abs=1e-6)
        elif len(names) == 3:
            angle, stiffness = charmm_xml.angle(*names)
            assert first == pytest.approx([stiffness / 8.368, angle], rel=1e-6)
    assert set(rows) >= {types.replace(" ", "-") for types, _ in analogies.analogies()["terms"]}


@pytest.mark.mpi
def test_every_energy_through_the_files_of_charmm(tmp_path):
    """An H3 with each of them, and DNA. OpenMM reads psf and parameters that are written of the system: each term as
    chromamd has it, to 1e-6."""
    solute = marked_solute(MARKS, WHOLE)
    assert counts_by_analogy(solute, "charmm36m-analogy") == {name: 1 for name in ALIKE}
    assert counts_by_analogy(solute, "charmm36m") == {}
    _, energy = assert_files_agree(solute, make_topology(solute, {}, "charmm36m-analogy"), tmp_path, OPTIONS)
    assert all(abs(value) > 0.1 for value in energy.values())


def test_a_table_that_takes_from_nothing_is_refused(monkeypatch):
    wrong = analogies.analogies() | {"terms": [["CT2 CG324", "CT2 NONE"]]}
    monkeypatch.setattr(analogies, "analogies", lambda: wrong)
    with pytest.raises(BadInputError, match="takes CT2 CG324 from CT2 NONE, which the force field does not have"):
        analogies.add_like_terms(charmm_xml.charmm36())
