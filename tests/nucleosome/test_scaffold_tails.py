"""Histone tails that follow the beads of a scaffold."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.build import build_solute
from chromabuild.build.octamers import octamer_of_recipe
from chromabuild.molecule.histone_tails import TAILS
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.nucleosome.homology import chains_of, histone_table
from chromabuild.nucleosome.octamer import FAMILIES, octamer
from chromabuild.nucleosome.peptide import torsion
from chromabuild.nucleosome.recipe import OctamerRecipe
from chromabuild.nucleosome.scaffold_tails import TAIL_ROOTS, allowed, tail_of
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from mesoscale.tails import TAIL_BEADS

pytestmark = pytest.mark.slow

# Chain of 1KX5 and middle residue of every bead, from the core to the tip (mesoscale: five residues a bead).
MIDDLES = [(chain, range(first, last, step)) for pair, first, last, step in (
    (("A", "E"), 38, 2, -5), (("B", "F"), 23, 2, -5), (("C", "G"), 18, 2, -5), (("D", "H"), 23, 2, -5),
    (("C", "G"), 116, 127, 5)) for chain in pair]


def crystal_beads():
    """(50, 3) beads that surely can be followed: the CA atoms of the tails of 1KX5."""
    chains = chains_of(octamer("crystal"))
    beads = [next(r.atoms["CA"] for r in chains["ABCDEFGH".index(chain)] if r.number == number)
             for chain, numbers in MIDDLES for number in numbers]
    assert len(beads) == TAIL_BEADS
    return np.array(beads)


@pytest.fixture(scope="module")
def followed():
    """A nucleosome whose beads are those of the crystal."""
    scaffold = synthetic_scaffold(1, 0, 5)
    scaffold.tails = np.einsum("mij,kj->mki", scaffold.core_frame, crystal_beads()) + scaffold.core_origin[:, None]
    return build_solute(scaffold, Settings.model_validate({"build": {"tails": "scaffold"}}))


def test_tails_are_within_three_angstrom_of_their_beads(followed):
    """All but one: the first copy of H2B, whose end of three residues beyond the last bead is in its way, has 3.2."""
    report = followed.build_report
    assert report["tail_bead_rms"] < 2.5 and report["tail_bead_rms_largest"] < 3.5
    assert report["tails_beyond_3_angstrom"] <= 1
    # The same from the atoms: the tips of H3 lie 40 to 100 angstrom from where compact tails have them.
    names = followed.atom_names()
    first = followed.molecule_first_residue
    alpha = {}
    for m in range(2, 10):
        rows = (names == "CA") & (followed.atom_residue >= first[m]) & (followed.atom_residue < first[m + 1])
        numbers = followed.residue_number[followed.atom_residue[rows]]
        alpha["ABCDEFGH"[m - 2]] = dict(zip(numbers.tolist(), followed.position[rows].astype(float), strict=True))
    core = octamer("compact")
    plain = {"ABCDEFGH"[k]: {r.number: r.atoms["CA"] for r in chain} for k, chain in enumerate(chains_of(core))}
    # The fold tells where the particle is.
    fold = [(c, n) for c in "AE" for n in range(60, 130)]
    here, there = (np.array([table[c][n] for c, n in fold]) for table in (alpha, plain))
    u, _, vt = np.linalg.svd((there - there.mean(0)).T @ (here - here.mean(0)))
    turn = (u @ np.diag([1, 1, np.sign(np.linalg.det(u @ vt))]) @ vt)
    beads = (crystal_beads() - there.mean(0)) @ turn + here.mean(0)
    start = 0
    for chain, numbers in MIDDLES:
        apart = [np.linalg.norm(alpha[chain][n] - bead) for n, bead in
                 zip(numbers, beads[start:start + len(numbers)], strict=True)]
        start += len(numbers)
        if chain in "AE":  # all beads of H3 can be reached
            assert np.sqrt(np.mean(np.square(apart[1:]))) < 3.0


def test_chains_are_sound(followed):
    found = audit(Atoms.from_solute(followed))
    assert not found.chirality_errors and not found.cis_peptides and not found.twisted_peptides
    names, position = followed.atom_names(), followed.position.astype(float)
    a, b = followed.bonds().T
    length = np.linalg.norm(position[a] - position[b], axis=1)
    heavy = ~np.char.startswith(names[a], "H") & ~np.char.startswith(names[b], "H")
    assert 1.15 < length[heavy].min() and length[heavy].max() < 1.95
    hydrogen = np.char.startswith(names[a], "H") ^ np.char.startswith(names[b], "H")
    assert 0.94 < length[hydrogen].min() and length[hydrogen].max() < 1.36  # O-H 0.96, S-H 1.34


def test_torsions_stay_within_ramachandran_limits(followed):
    names, first = followed.atom_names(), followed.molecule_first_residue
    inside = total = 0
    for m in range(2, 10):
        atoms = {}
        for k in np.flatnonzero(np.isin(names, ["N", "CA", "C"]) & (followed.atom_residue >= first[m])
                                & (followed.atom_residue < first[m + 1])):
            atoms.setdefault(int(followed.atom_residue[k]), {})[names[k]] = followed.position[k].astype(float)
        for low, high in TAILS[FAMILIES[m - 2]]:
            for r in range(first[m] + 1, first[m + 1] - 1):
                if low < followed.residue_number[r] <= high - 1:
                    phi = torsion(atoms[r - 1]["C"], atoms[r]["N"], atoms[r]["CA"], atoms[r]["C"])
                    psi = torsion(atoms[r]["N"], atoms[r]["CA"], atoms[r]["C"], atoms[r + 1]["N"])
                    glycine = residue_names()[followed.residue_template[r]] == "GLY"
                    inside += bool(allowed(glycine, phi, psi))
                    total += 1
    # A proline keeps its phi, whatever psi is left to it.
    assert total > 150 and inside / total > 0.97


def test_only_tails_move_and_contacts_are_few(followed):
    compact = build_solute(synthetic_scaffold(1, 0, 5), Settings())
    number, molecule = followed.residue_number[followed.atom_residue], np.searchsorted(
        followed.molecule_first_atom, np.arange(followed.n_atoms), side="right") - 1
    # The core as a whole gives way to DNA that keeps clear of the one tail or the other.
    fold = np.flatnonzero((molecule >= 2) & (followed.atom_names() == "CA") & (number > 60) & (number < 90))
    there, here = (solute.position[fold].astype(float) for solute in (followed, compact))
    turn, _ = Rotation.align_vectors(there - there.mean(axis=0), here - here.mean(axis=0))
    aligned = turn.apply(compact.position - here.mean(axis=0)) + there.mean(axis=0)
    # Side chains of the fold may have made room for the one tail and not for the other.
    moved = np.linalg.norm(followed.position - aligned, axis=1) > 1e-3
    moved &= np.isin(followed.atom_names(), ["N", "CA", "C", "O", "CB"])
    for m in range(2, len(followed.molecule_name)):
        family = FAMILIES[(m - 2) % 8]
        reach = np.zeros(followed.n_atoms, dtype=bool)
        for low, high in TAILS[family]:
            # One more residue on the fold's side: its O or H belongs to the first peptide of the tail.
            reach |= (number >= low - 1) & (number <= high + 1)
        assert not (moved & (molecule == m) & ~reach).any()
    heavy = followed.elements() != "H"
    protein = np.arange(followed.n_atoms) >= followed.molecule_first_atom[2]
    distance = cKDTree(followed.position[heavy & ~protein]).query(followed.position[heavy & protein])[0]
    # Side chains are not chosen here; the clash stage turns the 1 % of heavy atoms that are near DNA.
    assert np.mean(distance < 2.0) < 0.01


def test_histones_numbered_otherwise_have_the_same_roots():
    """The tip of yeast H2B is longer: tails begin at the same place of the fold, by other numbers."""
    library = list(residue_library().values())

    def tails(core):
        first = np.concatenate([[0], np.cumsum([len(library[k].atoms) for k in core.residue_template])])
        return [tail_of(core, first, library, k) for k in range(len(TAIL_ROOTS))]

    crystal, yeast = tails(octamer("compact")), tails(octamer_of_recipe(OctamerRecipe("yeast")))
    for (root, _, targets), (other, _, other_targets) in zip(crystal, yeast, strict=True):
        assert np.linalg.norm(root.ca - other.ca) < 1.5
        assert list(targets) == list(other_targets)[:len(targets)]
    # The first helix begins with RKESYA in 1KX5, RKETYS in yeast.
    shift = (histone_table()["yeast"]["H2B"]["sequence"].index("RKETYS")
             - "".join(r.letter for r in chains_of(octamer("crystal"))[3]).index("RKESYA"))
    assert shift > 0 and len(yeast[6][1]) - len(crystal[6][1]) == shift


def test_beads_out_of_reach_do_not_count(monkeypatch):
    monkeypatch.setattr("chromabuild.nucleosome.scaffold_tails.SWEEPS", 0)
    scaffold = synthetic_scaffold(1, 0, 5)
    scaffold.tails = np.full((1, TAIL_BEADS, 3), 5000.0)
    report = build_solute(scaffold, Settings.model_validate({"build": {"tails": "scaffold"}})).build_report
    assert report["tail_beads_followed"] == 0 and report["tail_bead_rms"] == report["tail_bead_rms_largest"] == 0.0


def test_a_scaffold_without_beads_is_refused():
    scaffold = synthetic_scaffold(1, 0, 5)
    scaffold.tails = None
    with pytest.raises(BadInputError, match="no tail beads"):
        build_solute(scaffold, Settings.model_validate({"build": {"tails": "scaffold"}}))
