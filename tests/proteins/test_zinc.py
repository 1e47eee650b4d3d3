"""Zinc sites of proteins on DNA: which form ligands take, bonds as CHARMM has them, and the ion without bonds in AMBER.

There is no structure of a zinc finger: a site is built beside the lac repressor (support.zinc_structure).
"""

from pathlib import Path

import gemmi
import numpy as np
import pytest
from support.charmm_files_judge import assert_files_agree
from support.zinc_structure import write_zinc_structure

from chromabuild import Locus, build_solute, fold, remove_clashes
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings, changed
from chromabuild.export.structure import write_structure
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.proteins.complex import read_complex
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.simulate.relaxation import relax
from chromabuild.solvate.ions import formal_charges

BONDS = {"SG": (20.0, 2.32), "NE2": (20.0, 2.07), "ND1": (20.0, 2.07)}
ANGLES = {("SG", "ZN", "SG"): (100.0, 111.77), ("CB", "SG", "ZN"): (20.0, 95.0), ("N", "ZN", "SG"): (100.0, 108.11),
          ("N", "ZN", "N"): (100.0, 107.85), ("CE1", "N", "ZN"): (20.0, 120.65), ("CD2", "N", "ZN"): (20.0, 125.98),
          ("CG", "N", "ZN"): (20.0, 125.98)}
"""Of toppar_all36_prot_modify_res.str: kcal/mol/angstrom^2 and angstrom, kcal/mol/rad^2 and degree."""


@pytest.fixture(scope="module")
def structure(tmp_path_factory) -> Path:
    return write_zinc_structure(tmp_path_factory.mktemp("zinc") / "finger.pdb")


@pytest.fixture(scope="module")
def solute(structure, tmp_path_factory) -> Solute:
    """Eleven base pairs with ten on either side, and the protein with its site, free of clashes."""
    folder, found = tmp_path_factory.mktemp("locus"), read_complex(str(structure))
    (folder / "g.fa").write_text(f">chrT:1-31\n{'ACGTTGCATC' + found.sequence + 'GCATCGGATC'}\n")
    (folder / "p.bed").write_text(f"chrT\t10\t{10 + len(found.sequence)}\tfinger\n")
    settings = changed(None, "build", {"structures": str(structure)}, None, "test")
    locus = Locus.from_files(folder / "g.fa", None, proteins=folder / "p.bed")
    built = build_solute(fold(locus, settings, sweeps=5, threads=1), settings, threads=1)
    assert built.build_report["proteins"][0]["zinc_sites"] == 1
    clean, report = remove_clashes(built, settings, threads=1)
    assert report.fatal == 0
    return clean


def lengths(solute: Solute) -> dict[str, list[float]]:
    """Distances from zinc to its ligands, by atom."""
    found: dict[str, list[float]] = {}
    names = solute.atom_names()
    for i, j in solute.link_atoms():
        one = i if names[j] == "ZN" else j
        found.setdefault(str(names[one]), []).append(float(np.linalg.norm(solute.position[i] - solute.position[j])))
    return found


def test_ligands_become_what_binds(structure, solute, tmp_path):
    """Thiolates, and histidines with their hydrogen on the other nitrogen; the site keeps its shape through build and
    clash correction, its charge counts, and a structure file says what it is."""
    found = read_complex(str(structure))
    names = [residue_names()[k] for k in found.protein.residue_template]
    assert [names[k] for k, _ in found.protein.links] == ["CYM", "CYM", "HID", "HIE"] and names[-1] == "ZN"
    assert found.report["left_out"] == "nothing"
    body = found.body()
    assert body.charge.sum() == formal_charges()[found.protein.residue_template].sum()
    assert lengths(solute)["SG"] == pytest.approx([2.31, 2.31], abs=0.002)
    assert [*lengths(solute)["NE2"], *lengths(solute)["ND1"]] == pytest.approx([2.0, 2.0], abs=0.002)
    written = gemmi.read_structure(str(write_structure(solute, tmp_path / "s.cif", "zinc")))
    assert [one.type for one in written.connections] == [gemmi.ConnectionType.MetalC] * 4
    assert written.get_entity(written[0][-1][0].entity_id).entity_type == gemmi.EntityType.NonPolymer


def test_charmm_bonds_zinc_as_its_patches_do(solute, tmp_path):
    """Each bond and angle about the ion has the published numbers, its charge and those of ligands stay, nothing else
    changes; psf and parameters that are written, read by OpenMM, have chromamd's energies term by term."""
    topology = make_topology(solute, {}, "charmm36m")
    assert topology.net_charge == pytest.approx(formal_charges()[solute.residue_template].sum(), abs=1e-6)
    template = next(t for t in topology.templates if b"ZN" in t.atom_name)
    names = [name.decode() for name in template.atom_name]
    zinc = names.index("ZN")
    assert template.charge[zinc] == 2.0
    bonds = {(j if i == zinc else i): (k, r0) for (i, j), k, r0 in zip(
        template.bond_atoms.tolist(), template.bond_k, template.bond_r0, strict=True) if zinc in (i, j)}
    assert len(bonds) == 4
    for atom, values in bonds.items():
        assert values == pytest.approx(BONDS[names[atom]])
    found = []
    for row, k, rest in zip(template.angle_atoms.tolist(), template.angle_k, template.angle_theta0, strict=True):
        if zinc in row:
            kind = tuple("N" if names[i] in ("NE2", "ND1") else names[i] for i in row)
            expected = ANGLES[kind] if kind in ANGLES else ANGLES[kind[::-1]]
            assert (k, rest) == pytest.approx(expected), kind
            found.append(tuple(sorted(row)))
    assert len(found) == len(set(found)) == 6 + 2 + 4  # pairs of ligands, CB-S-Zn, two of each ring
    excluded = {tuple(row) for row in template.exclusion.tolist()}
    assert {tuple(sorted((zinc, atom))) for atom in bonds} <= excluded
    assert {tuple(sorted((i, j))) for i in bonds for j in bonds if i < j} <= excluded
    assert_files_agree(solute, topology, tmp_path, NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(128, 128, 128)))


@pytest.mark.parametrize("force_field", ["amber14", "amber19"])
def test_amber_has_an_ion_of_the_water_and_thiolates(solute, force_field):
    """Li and Merz's Zn2+ by itself, of charge 2, beside CYM: no bond of the ion, whole charge."""
    topology = make_topology(solute, {"water": 1}, force_field)
    lone = [template for template in topology.templates if template.residue_name[0] == b"ZN"]
    assert len(lone) == 1 and lone[0].n_atoms == 1 and lone[0].charge[0] == 2.0
    assert topology.net_charge == pytest.approx(formal_charges()[solute.residue_template].sum(), abs=1e-3)


def test_amber_by_analogy_takes_charmm_s_bonds(solute):
    """The same twelve angles and four bonds, between AMBER's types; all else as in amber14, charges too.

    AMBER's torsions about any bond CT-SH, CR-NB, CV-NB and CC-NB have the ion as an end: three of each cysteine, four
    of each histidine.
    """
    plain, bonded = (make_topology(solute, {}, name) for name in ("amber14", "amber14-analogy"))
    assert np.array_equal(np.sort(plain.charges()), np.sort(bonded.charges()))
    template = next(t for t in bonded.templates if b"ZN" in t.atom_name)
    names = [name.decode() for name in template.atom_name]
    zinc = names.index("ZN")
    bonds = {(j if i == zinc else i): (k, r0) for (i, j), k, r0 in zip(
        template.bond_atoms.tolist(), template.bond_k, template.bond_r0, strict=True) if zinc in (i, j)}
    assert len(bonds) == 4 and all(values == pytest.approx(BONDS[names[atom]]) for atom, values in bonds.items())
    kinds = {tuple("N" if names[i] in ("NE2", "ND1") else names[i] for i in row): (k, rest) for row, k, rest in zip(
        template.angle_atoms.tolist(), template.angle_k, template.angle_theta0, strict=True) if zinc in row}
    assert sum(zinc in row for row in template.angle_atoms.tolist()) == 12
    for kind, values in kinds.items():
        assert values == pytest.approx(ANGLES[kind] if kind in ANGLES else ANGLES[kind[::-1]]), kind
    for name in ("bond", "angle", "dihedral"):
        before, after = (sum(count * len(getattr(t, f"{name}_atoms")) for t, count in zip(
            (one.templates[k] for k in one.run_template), one.run_count.tolist(), strict=True))
            for one in (plain, bonded))
        assert after - before == {"bond": 4, "angle": 12, "dihedral": 2 * 3 + 2 * 4}[name]


def test_the_site_holds_in_dynamics(solute, tmp_path):
    """A tenth of a picosecond without water from 50 to 310 K in CHARMM: S-Zn and N-Zn within 0.4 of their lengths.

    These are three deviations of a bond of 20 kcal/mol/angstrom^2 at that temperature.
    """
    settings = Settings.model_validate({"relax": {"enabled": True, "minimise_steps": 50, "length": "100 fs"},
                                        "dynamics": {"force_field": "charmm36m"}})
    moved, _ = relax(solute, settings, tmp_path, 1, lambda *_: None)
    after = lengths(moved)
    assert after["SG"] == pytest.approx([2.32, 2.32], abs=0.4)
    assert [*after["NE2"], *after["ND1"]] == pytest.approx([2.07, 2.07], abs=0.4)


def test_ligands_that_cannot_be_built_are_refused(structure, tmp_path):
    """Three ligands are a site, two are not: the ion stays behind. A ligand that ends its chain is refused."""
    other = gemmi.read_structure(str(structure))
    other[0].remove_chain("Z")
    other.write_pdb(str(tmp_path / "three.pdb"))
    assert read_complex(str(tmp_path / "three.pdb")).report["zinc_sites"] == 1
    other[0].remove_chain("Y")
    other.write_pdb(str(tmp_path / "two.pdb"))
    found = read_complex(str(tmp_path / "two.pdb"))
    assert "zinc_sites" not in found.report and found.report["left_out"] == "1 ZN"
    assert all(residue_library()[residue_names()[k]].kind == "amino acid" for k in found.protein.residue_template)
    end = gemmi.read_structure(str(structure))
    del end[0]["W"][2]
    end.write_pdb(str(tmp_path / "end.pdb"))
    with pytest.raises(BadInputError, match="CYS 2 ends its chain and binds zinc, which cannot be built: complete"):
        read_complex(str(tmp_path / "end.pdb"))
