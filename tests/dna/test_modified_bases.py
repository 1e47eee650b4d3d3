"""Modified cytosines in a duplex: geometry against CHARMM36, pairs and backbone as without them, nothing in the way."""

from functools import cache

import numpy as np
import pytest
from support import charmm_xml

from chromabuild.build.duplex import build_dna
from chromabuild.build.modified_bases import residue_of_code
from chromabuild.dna.helix import crystal_path
from chromabuild.dna.sequence import both_strands
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from chromabuild.sterics.detect import find_clashes
from chromabuild.sterics.reference import angle_between

LIBRARY = list(residue_library().values())
SEQUENCE = np.random.default_rng(1).integers(0, 4, 147)
CYTOSINE = np.flatnonzero(both_strands(SEQUENCE) == 1)
# Substituents, and the bonds and angles of CGenFF that they are made of.
ADDED = {
    "5CM": ({"C5 C5A": "CG2R62 CG331"}, {"C6 C5 C5A": "CG2R62 CG2R62 CG331", "C4 C5 C5A": "CG2R64 CG2R62 CG331"}),
    "5HC": ({"C5 C5M": "CG2R62 CG321", "C5M O5": "CG321 OG311"}, {"C5 C5M O5": "CG2R62 CG321 OG311"}),
    "5FC": ({"C5 C5A": "CG2R62 CG2O4", "C5A O5A": "CG2O4 OG2D1"}, {"C5 C5A O5A": "CG2R62 CG2O4 OG2D1"}),
}


@cache
def duplex(code):
    """The wrapped DNA of 1KX5's path with every cytosine of both strands modified (0: none)."""
    modified = None
    if code:
        modified = np.where(both_strands(SEQUENCE) == 1, code, 0)
    position, kinds, report = build_dna(SEQUENCE, *crystal_path(), modified=modified)
    solute = Solute(position.astype(np.float32), kinds, np.tile(np.arange(147) + 1, 2).astype(np.int32),
                    np.repeat([0, 1], 147).astype(np.uint16), ["DI00", "DJ00"], ["A", "B"], np.array([0, 147, 294]),
                    ["DNA-I", "DNA-J"], np.array([-1, -1], np.int32))
    return solute, report


def atoms_of(solute, residue):
    first = solute.residue_first_atom
    return dict(zip(LIBRARY[solute.residue_template[residue]].atoms,
                    solute.position[first[residue]:first[residue + 1]].astype(float), strict=True))


@pytest.mark.parametrize("code", [1, 2, 3])
def test_substituents_are_those_of_charmm36(code):
    solute, _ = duplex(code)
    name = residue_of_code(code)
    assert {LIBRARY[solute.residue_template[k]].modification for k in CYTOSINE} == {name}
    assert solute.modifications() == {name: len(CYTOSINE)}
    bonds, angles = ADDED[name]
    for k in CYTOSINE.tolist():
        atoms = atoms_of(solute, k)
        for pair, classes in bonds.items():
            a, b = (atoms[atom] for atom in pair.split())
            assert np.linalg.norm(a - b) == pytest.approx(charmm_xml.bond(*classes.split()), abs=0.021)
        for triple, classes in angles.items():
            a, b, c = (atoms[atom][None] for atom in triple.split())
            assert angle_between(a, b, c)[0] == pytest.approx(charmm_xml.angle(*classes.split())[0], abs=3.0)
        ring = np.array([atoms[a] for a in ("N1", "C2", "N3", "C4", "C5", "C6")])
        normal = np.linalg.svd(ring - ring.mean(axis=0))[2][-1]
        carbon = atoms["C5M" if code == 2 else "C5A"]
        assert abs((carbon - ring.mean(axis=0)) @ normal) < 0.02
        if code == 2:
            assert abs((atoms["O5"] - ring.mean(axis=0)) @ normal) > 1.0  # out of the plane
        if code == 3:  # in the plane, beside the amino group
            assert abs((atoms["O5A"] - ring.mean(axis=0)) @ normal) < 0.02
            assert np.linalg.norm(atoms["O5A"] - atoms["N4"]) < 3.1


@pytest.mark.parametrize("code", [1, 2, 3])
def test_pairs_and_backbone_stay_sound(code):
    """Watson-Crick hydrogen bonds as in the same duplex without modifications, no outlier, no atom in the way."""
    plain, _ = duplex(0)
    solute, report = duplex(code)
    for k in range(147):
        here, partner = (atoms_of(solute, row) for row in (k, 293 - k))
        there, other = (atoms_of(plain, row) for row in (k, 293 - k))
        if SEQUENCE[k] not in (1, 2):
            continue
        one, two = (here, partner) if SEQUENCE[k] == 1 else (partner, here)
        old, older = (there, other) if SEQUENCE[k] == 1 else (other, there)
        for a, b in (("N4", "O6"), ("N3", "N1"), ("O2", "N2")):
            length = np.linalg.norm(one[a] - two[b])
            assert 2.55 < length < 3.35 and length == pytest.approx(np.linalg.norm(old[a] - older[b]), abs=0.25)
    assert report["bond_outliers"] == report["angle_outliers"] == 0
    found = audit(Atoms.from_solute(solute))
    assert not found.chirality_errors and not found.piercings
    pairs, distance = find_clashes(solute, 2.0)
    assert not (solute.elements()[pairs] != "H").all(axis=1).any() and distance.min(initial=9.0) > 1.25


def test_nothing_else_changes_and_one_strand_may_be_modified_alone():
    plain, _ = duplex(0)
    same, kinds, _ = build_dna(SEQUENCE, *crystal_path(), modified=np.zeros(294, dtype=np.int8))
    assert (same.astype(np.float32) == plain.position).all()
    only = np.zeros(294, dtype=np.int8)
    only[CYTOSINE[CYTOSINE < 147]] = 1
    _, kinds, _ = build_dna(SEQUENCE, *crystal_path(), modified=only)
    names = np.array([LIBRARY[kind].name for kind in kinds])
    assert not np.char.startswith(names[147:], "5CM").any()
    assert (np.char.startswith(names[:147], "5CM") == (SEQUENCE == 1)).all()


def test_ends_of_strands_may_be_modified():
    sequence = np.array([1, 2, 0, 3, 2, 1])
    modified = np.where(both_strands(sequence) == 1, 1, 0)
    _, kinds, _ = build_dna(sequence, *(x[40:46] for x in crystal_path()), modified=modified)
    assert [LIBRARY[kind].name for kind in kinds[[0, 5, 6, 11]]] == ["5CM5", "5CM3", "DG5", "DG3"]
