"""Hexahydrated magnesium and polyamines at phosphates: geometry, distances, seed, charge, topology and refusals."""

from dataclasses import replace

import gemmi
import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.charmm_files_judge import assert_files_agree
from support.molecular_systems import make_solute

from chromabuild.api import add_bound_ions, add_solvent, assign_force_field
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings, SolvateSection
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.clash import check
from chromabuild.dna.helix import crystal_path
from chromabuild.export.structure import write_structure
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.modified_residues import counts_by_analogy
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.pipeline.plan import Parts
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.solvate.bound_ions import _phosphates, sizes_and_charge, wanted_ions, with_bound_ions
from chromabuild.solvate.ions import formal_charges

N = 24
POLYAMINES = {"spermine": ("SPM", 4), "spermidine": ("SPD", 3)}


@pytest.fixture(scope="module")
def duplex() -> Solute:
    """24 base pairs on the path of the nucleosome, with 46 phosphates."""
    position, template, _ = build_dna(np.arange(N) * 7 % 4, *(x[50:50 + N] for x in crystal_path()))
    return assemble_solute(position, template, [], np.zeros((0, 3)), np.zeros((0, 3, 3)))


def of_residue(solute: Solute, name: str) -> np.ndarray:
    """(k, n, 3) atoms of the residues of a name."""
    kind = residue_names().index(name)
    first = solute.residue_first_atom[:-1][solute.residue_template == kind]
    return solute.position.astype(float)[first[:, None] + np.arange(len(residue_library()[name].atoms))]


@pytest.mark.parametrize("water", ["tip3p", "opc"])
def test_hexahydrates_are_octahedra_beside_phosphates(duplex, water):
    """Six Mg-O of 2.08, O-Mg-O of 90 and 180 degrees, waters of the model; Mg 4.5 from both oxygens of a phosphate.

    Each of these has a hydrogen bond of a water (O-O 2.85, straight within 10 degrees). Nothing overlaps.
    """
    solute, counts = with_bound_ions(duplex, SolvateSection(magnesium_hexahydrates=0.25, water=water), 1)
    assert counts == {"magnesium_hexahydrates": 12}  # of 46 / 4 = 11.5
    model = WATER_MODELS[water]
    magnesium, waters = of_residue(solute, "MG")[:, 0], of_residue(solute, model.residue).reshape(12, 6, -1, 3)
    assert np.array_equal(solute.position[:duplex.n_atoms], duplex.position)
    arms = waters[:, :, 0] - magnesium[:, None]
    assert np.linalg.norm(arms, axis=-1) == pytest.approx(2.08, abs=1e-4)
    cosine = np.sort(np.einsum("kia,kja->kij", arms, arms) / 2.08**2, axis=-1)
    assert cosine == pytest.approx(np.tile([-1, 0, 0, 0, 0, 1], (12, 6, 1)), abs=1e-3)
    bonds = waters[:, :, 1:3] - waters[:, :, :1]
    assert np.linalg.norm(bonds, axis=-1) == pytest.approx(model.bond, abs=1e-4)
    assert np.degrees(np.arccos(np.einsum("kia,kia->ki", bonds[:, :, 0], bonds[:, :, 1]) / model.bond**2)
                      ) == pytest.approx(model.angle, abs=0.05)
    if model.site_distance:
        site = waters[:, :, 3] - waters[:, :, 0]
        assert np.linalg.norm(site, axis=-1) == pytest.approx(model.site_distance, abs=1e-4)
        assert np.linalg.norm(np.cross(site, bonds.sum(axis=2)), axis=-1) == pytest.approx(0, abs=1e-4)
    atoms = _phosphates(duplex)
    for centre, own in zip(magnesium, waters, strict=True):
        apart = np.linalg.norm(duplex.position.astype(float)[atoms[:, 1:]] - centre, axis=-1)
        k = np.flatnonzero((np.abs(apart - 4.5) < 1e-3).all(axis=1))
        assert len(k) == 1 and apart.min() > 4.0
        for oxygen in duplex.position.astype(float)[atoms[k[0], 1:]]:
            donor = own[np.argmin(np.linalg.norm(own[:, 0] - oxygen, axis=-1))]
            assert np.linalg.norm(donor[0] - oxygen) == pytest.approx(2.85, abs=0.03)
            hydrogen = donor[1:3][np.argmin(np.linalg.norm(donor[1:3] - oxygen, axis=-1))]
            one, other = hydrogen - donor[0], oxygen - donor[0]
            assert np.degrees(np.arccos(one @ other / np.linalg.norm(one) / np.linalg.norm(other))) < 10
    assert check(replace(solute, position=solute.position)).data["before"]["heavy_pairs_below_2"] == 0


@pytest.mark.parametrize("key", POLYAMINES)
def test_polyamines_are_whole_chains_beside_phosphates(duplex, key):
    """C-C 1.53, C-N 1.49, C and N of angles 111 degrees, tetrahedral hydrogens; clear of DNA and of each other."""
    name, charge = POLYAMINES[key]
    solute, counts = with_bound_ions(duplex, SolvateSection(**{key: 0.15}), 1)
    assert counts == {key: 7} and sizes_and_charge(counts, SolvateSection()) == (
        solute.n_atoms - duplex.n_atoms, 7 * charge)
    template, atoms = residue_library()[name], of_residue(solute, name)
    for i, j in template.bonds.tolist():
        kind = {template.elements[i], template.elements[j]}
        rest = {"C": 1.53, "CN": 1.49, "CH": 1.09, "HN": 1.01}["".join(sorted(kind))]
        assert np.linalg.norm(atoms[:, i] - atoms[:, j], axis=-1) == pytest.approx(rest, abs=1e-3)
    heavy = np.array(template.elements) != "H"
    dna = cKDTree(duplex.position[duplex.elements() != "H"])
    assert dna.query(atoms[:, heavy].reshape(-1, 3))[0].min() >= 2.6 - 1e-3
    phosphorus = cKDTree(duplex.position[_phosphates(duplex)[:, 0]])
    assert (phosphorus.query(atoms[:, heavy].reshape(-1, 3))[0].reshape(7, -1).min(axis=1) < 12).all()
    before, after = (formal_charges()[one.residue_template].sum() for one in (duplex, solute))
    assert after - before == 7 * charge


def test_the_seed_alone_decides(duplex):
    """The same bytes again, other places with another seed, and positions in a file as those in memory."""
    section = SolvateSection(magnesium_hexahydrates=0.2, spermine=0.05)
    one, same, other = (with_bound_ions(duplex, section, seed)[0] for seed in (1, 1, 2))
    assert one.position.tobytes() == same.position.tobytes() != other.position.tobytes()
    assert len(one.molecule_name) == len(one.molecule_first_residue) - 1
    assert len(set(zip(one.residue_segment.tolist(), one.residue_number.tolist(), strict=True))) == one.n_residues


def test_what_has_no_room_is_refused_with_what_fits(duplex):
    with pytest.raises(BadInputError, match=r"solvate.spermine = 1 asks for 46 at 46 phosphates, and \d+ find room: "
                                            r"lower it to 0\.\d+"):
        with_bound_ions(duplex, SolvateSection(spermine=1), 1)
    solute, _ = with_bound_ions(duplex, SolvateSection(spermine=0.05), 1)
    with pytest.raises(BadInputError, match="has ions at its phosphates already"):
        with_bound_ions(solute, SolvateSection(spermine=0.05), 1)


def test_they_count_in_the_box_and_its_topology(duplex, tmp_path):
    """The box is neutral with fewer counterions; topology and shards agree; water of hexahydrates is that of the
    solvent; a structure file has them as what they are."""
    settings = Settings.model_validate({"solvate": {
        "magnesium_hexahydrates": 0.2, "spermidine": 0.1, "padding": 9.0, "salt": 0.0},
        "dynamics": {"force_field": "amber14-analogy"}})
    with pytest.raises(BadInputError, match="are placed before water, and the solute has none of them"):
        add_solvent(duplex, tmp_path / "none", settings)
    solute, counts = add_bound_ions(duplex, settings)
    shards = add_solvent(solute, tmp_path / "shards", settings)
    assert shards.manifest.net_charge == 0
    assert shards.manifest.counts["sodium"] == 46 - 2 * counts["magnesium_hexahydrates"] - 3 * counts["spermidine"]
    topology = assign_force_field(solute, shards, settings)
    assert topology.net_charge == pytest.approx(0, abs=1e-6)
    names = [template.name for template in topology.templates]
    assert names.count("HOH") == 1 and topology.n_atoms == sum(
        shards.manifest.counts[key] for key in ("solute", "sodium", "chloride")) + 3 * shards.manifest.counts["water"]
    assert counts_by_analogy(solute, "amber14-analogy") == {"SPD": counts["spermidine"]}
    assert wanted_ions(settings.solvate, 46) == counts
    write_structure(solute, tmp_path / "s.cif", "ions")
    text = (tmp_path / "s.cif").read_text()
    assert "non-polymer" in text and text.count(" MG . MG ") == counts["magnesium_hexahydrates"]


def test_ions_and_their_waters_share_chains_of_a_pdb(duplex, tmp_path):
    """A PDB file has 62 chains, and these are 84 molecules: those of one kind are a chain, numbered from 1."""
    solute, counts = with_bound_ions(duplex, SolvateSection(magnesium_hexahydrates=0.25), 1)
    n = counts["magnesium_hexahydrates"]
    chains = gemmi.read_structure(str(write_structure(solute, tmp_path / "s.pdb", "ions")))[0]
    assert [(chain.name, len(chain)) for chain in chains] == [("A", 24), ("B", 24), ("C", n), ("D", 6 * n)]
    assert [residue.seqid.num for residue in chains["D"]] == list(range(1, 6 * n + 1))
    for name, residue in (("C", "MG"), ("D", "HOH")):
        found = [[atom.pos.tolist() for atom in one] for one in chains[name]]
        assert np.array(found) == pytest.approx(of_residue(solute, residue), abs=6e-4)


@pytest.mark.parametrize("force_field", ["amber14-analogy", "amber19-analogy", "charmm36m-analogy"])
def test_every_term_of_polyamines_has_parameters(force_field):
    """OpenMM leaves out without a word what it has no parameters for. Charges are exact."""
    solute = make_solute([["SPM"], ["SPD"]])
    topology = make_topology(solute, {}, force_field)
    assert [topology.templates[k].charge.sum() for k in topology.run_template] == pytest.approx([4, 3], abs=1e-9)
    for k, name in zip(topology.run_template, ("SPM", "SPD"), strict=True):
        template, bonds = topology.templates[k], residue_library()[name].bonds.tolist()
        near: dict[int, set[int]] = {}
        for i, j in bonds:
            near.setdefault(i, set()).add(j)
            near.setdefault(j, set()).add(i)
        angles = {(min(i, m), j, max(i, m)) for j in near for i in near[j] for m in near[j] if i != m}
        assert {tuple(sorted(row)) for row in template.bond_atoms.tolist()} == {tuple(sorted(row)) for row in bonds}
        assert {(min(i, m), j, max(i, m)) for i, j, m in template.angle_atoms.tolist()} == angles
        turned = {tuple(sorted(row[1:3])) for row in template.dihedral_atoms.tolist()}
        assert turned == {tuple(sorted((i, j))) for i, j in bonds if len(near[i]) > 1 and len(near[j]) > 1}
        torsions = {(min(row, row[::-1])) for row in map(tuple, template.dihedral_atoms.tolist())}
        assert torsions == {min(path, path[::-1]) for j, k2 in turned for i in near[j] - {k2} for m in near[k2] - {j}
                            for path in [(i, j, k2, m)]}


def test_energies_of_all_of_them_through_charmm_s_own_files(duplex, tmp_path):
    """Psf and parameters that are written, read by OpenMM, beside chromamd: each term to 1e-6."""
    solute, _ = with_bound_ions(duplex, SolvateSection(spermine=0.05, spermidine=0.05, magnesium_hexahydrates=0.1), 1)
    assert_files_agree(solute, make_topology(solute, {}, "charmm36m-analogy"), tmp_path,
                       NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(96, 96, 96)))


def test_polyamines_are_refused_where_no_force_field_has_them(tmp_path):
    (tmp_path / "g.fa").write_text(">chrT\n" + "ACGTTGCATC" * 5 + "\n")
    settings = {"locus": {"fasta": str(tmp_path / "g.fa"), "nucleosomes": None}, "solvate": {"spermine": 0.1}}
    with pytest.raises(BadInputError, match="amber14 has no parameters for solvate.spermine, and none here has "
                                            "published ones: set dynamics.force_field to charmm36m-analogy or "):
        Parts.of(Settings.model_validate(settings))
    settings["dynamics"] = {"force_field": "charmm36m-analogy"}
    assert "solvate.spermine are by analogy" in Parts.of(Settings.model_validate(settings)).note
