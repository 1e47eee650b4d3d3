"""Ubiquitin on histones: shape of the bond, the fold of 1UBI, room, the way through clash stage and files."""

import gemmi
import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import BuildSection
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.octamers import octamer_of_recipe, wrapped_dna
from chromabuild.clash.correct import correct_clashes
from chromabuild.clash.tails import find_tails
from chromabuild.export.structure import write_structure
from chromabuild.molecule.from_structure import solute_of_structure
from chromabuild.molecule.geometry import measure_torsion
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome import ubiquitin
from chromabuild.nucleosome.marks import octamer_recipes
from chromabuild.nucleosome.recipe import OctamerRecipe
from chromabuild.solvate.ions import formal_charges
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.scene import Scene


@pytest.fixture(scope="module")
def solute() -> Solute:
    """Human histones without DNA, ubiquitin on both H2A and one H2B."""
    core = octamer_of_recipe(OctamerRecipe("human").with_mark("H2AK119ub").with_mark("H2BK120ub@2"))
    return assemble_solute(np.zeros((0, 3)), np.zeros(0, np.uint16), [core], np.zeros((1, 3)), np.eye(3)[None])


def atom(solute: Solute, residue: int, name: str) -> np.ndarray:
    first = solute.residue_first_atom[residue]
    names = solute.atom_names()[first:solute.residue_first_atom[residue + 1]].tolist()
    return solute.position[first + names.index(name)].astype(float)


def test_bond_is_a_trans_amide(solute):
    """1.345 angstrom and 116 to 125 degrees about both ends, flat, the carbons trans (Engh & Huber 1991)."""
    assert len(solute.links) == 3 and solute.molecule_name.count("ubiquitin") == 3
    for lysine, glycine in solute.links:
        ce, nz, hz = (atom(solute, lysine, name) for name in ("CE", "NZ", "HZ"))
        c, ca, o = (atom(solute, glycine, name) for name in ("C", "CA", "O"))
        assert np.linalg.norm(nz - c) == pytest.approx(1.345, abs=0.005)
        for a, b, d in ((ce, nz, c), (nz, c, ca), (nz, c, o), (hz, nz, c)):
            one, other = a - b, d - b
            angle = np.degrees(np.arccos(one @ other / np.linalg.norm(one) / np.linalg.norm(other)))
            assert 115 < angle < 126
        torsions = np.degrees([measure_torsion(ce, nz, c, ca), measure_torsion(hz, nz, c, o)])
        assert np.abs(np.abs(torsions) - 180).max() < 3
        bonds = {tuple(sorted(bond)) for bond in solute.bonds().tolist()}
        assert {tuple(sorted(pair)) for pair in solute.link_atoms().tolist()} <= bonds


def test_the_fold_is_that_of_the_crystal(solute):
    """All distances of heavy atoms of residues 1 to 72, to what float32 holds."""
    crystal = np.array([x for atoms in ubiquitin.ubiquitin()[1][:-ubiquitin.FLEXIBLE] for x in atoms.values()])
    heavy = solute.elements() != "H"
    for k in np.flatnonzero([name == "ubiquitin" for name in solute.molecule_name]):
        part = slice(solute.molecule_first_atom[k], solute.molecule_first_atom[k + 1])
        ours = solute.position[part][heavy[part]][:len(crystal)]
        assert np.abs(pdist(ours.astype(float)) - pdist(crystal)).max() < 1e-3


def test_it_has_room(solute):
    """3.2 angstrom from heavy atoms of others, but about the bond, and from wrapped DNA 2.6."""
    heavy = solute.elements() != "H"
    molecule = np.repeat(np.arange(len(solute.molecule_name)), np.diff(solute.molecule_first_atom))
    linked = np.isin(solute.atom_residue, [k for pair in solute.links for k in pair])
    own = np.array(solute.molecule_name)[molecule] == "ubiquitin"
    for k in np.unique(molecule[own]):
        some = heavy & (molecule == k) & ~linked
        assert cKDTree(solute.position[heavy & (molecule != k) & ~linked]).query(solute.position[some])[0].min() > 3.15
        assert cKDTree(wrapped_dna()[0]).query(solute.position[some])[0].min() > 3.15


def test_charge_and_files(solute, tmp_path):
    """A lysine's charge goes, an amino end comes; both file formats carry the bonds."""
    plain = octamer_of_recipe(OctamerRecipe("human"))
    assert formal_charges()[solute.residue_template].sum() == formal_charges()[plain.residue_template].sum()
    assert solute.modifications() == {"KUB": 3}
    solute.write(tmp_path / "solute.h5")
    assert Solute.read(tmp_path / "solute.h5").links == solute.links
    path = write_structure(solute, tmp_path / "solute.cif", "test")
    found = gemmi.read_structure(str(path)).connections
    assert [(one.partner1.atom_name, one.partner2.atom_name) for one in found] == [("NZ", "C")] * 3
    assert solute_of_structure(path).solute.links == solute.links
    records = write_structure(solute, tmp_path / "solute.pdb", "test").read_text().splitlines()
    assert [(line[12:16], line[42:46]) for line in records if line.startswith("LINK")] == [(" NZ ", " C  ")] * 3
    atoms = Atoms.from_file(path)
    assert {tuple(sorted(pair)) for pair in solute.link_atoms().tolist()} <= set(map(tuple, atoms.graph.bonds.tolist()))


def test_the_clash_stage_keeps_the_bonds(solute):
    """Tails move beyond the linked residue only."""
    tails = find_tails(Scene(Atoms.from_solute(solute), 0.9, 1), solute.molecule_name, solute.molecule_first_residue,
                       solute.residue_number, solute.links)
    moved = {residue for tail in tails for residue in tail.residues}
    lysine = solute.links[0][0]
    assert lysine not in moved and lysine + 1 in moved and not moved & set(np.array(solute.links).ravel().tolist())
    clean, _ = correct_clashes(solute)
    ends = clean.position[clean.link_atoms()].astype(float)
    assert np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1) == pytest.approx(1.345, abs=0.005)


def test_what_cannot_carry_it_is_refused():
    dyads = np.array([200])
    with pytest.raises(BadInputError, match="scaffold grows the tails of H2A anew, and H2AK119ub holds one"):
        octamer_recipes(BuildSection(variants=["H2AK119ub"], tails="scaffold"), "chrT", dyads)
    with pytest.raises(BadInputError, match="H2B of xenopus has .* there: the nearest K is K1"):
        OctamerRecipe().with_mark("H2BK120ub")
    missing = OctamerRecipe().with_mark("H2AK119ub").lacking("entry")
    core = octamer_of_recipe(missing)
    assert core.histone.count("ubiquitin") == len(core.links) == 1
