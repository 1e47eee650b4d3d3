"""Audits find planted faults, and none in the crystal structure."""

from dataclasses import replace

import numpy as np
import pytest

from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit, find_rings, ring_piercings
from chromabuild.sterics.chains import crosses


@pytest.fixture(scope="module")
def atoms(nucleosome):
    return Atoms.from_solute(nucleosome)


def test_crystal_is_sound(atoms):
    found = audit(atoms)
    assert found.piercings == [] and found.chirality_errors == []
    assert found.cis_peptides == [] and found.twisted_peptides == []
    assert np.abs(found.bond_z).max() < 4 and np.abs(found.angle_z).max() < 4
    assert len(found.link_length) == 2 * 146
    assert 1.55 < found.link_length.min() and found.link_length.max() < 1.65


def test_every_ring_is_found(atoms):
    """Sugar and base of every nucleotide (purines have two base rings), and the rings of PRO, HIS, PHE, TYR."""
    expected = {"DA": 3, "DG": 3, "DC": 2, "DT": 2, "PRO": 1, "HID": 1, "HIE": 1, "HIP": 1, "PHE": 1, "TYR": 1}
    total = sum(expected.get(name.rstrip("35") if name[0] == "D" else name[-3:], 0) for name in atoms.residue_name)
    assert len(find_rings(atoms)) == total


@pytest.mark.parametrize("ring_atoms", [("N1", "C2", "C5"), ("C1'", "C3'", "C4'")])
def test_planted_piercing(atoms, ring_atoms):
    """A lysine's CE-NZ bond put through the middle of a base and of a ribose ring."""
    residue = 70
    first = np.searchsorted(atoms.residue, residue)
    members = [first + k for k, name in enumerate(atoms.name[atoms.residue == residue]) if name in ring_atoms]
    ring = next(tuple(a for a in r if a >= 0) for r in find_rings(atoms).tolist() if set(members) <= set(r))
    corners = atoms.position[list(ring)].astype(np.float64)
    middle = corners.mean(axis=0)
    normal = np.linalg.svd(corners - middle)[2][2]
    lysine = next(r for r, name in enumerate(atoms.residue_name) if name == "LYS")
    begin = np.searchsorted(atoms.residue, lysine)
    place = {name: begin + k for k, name in enumerate(atoms.name[atoms.residue == lysine])}
    position = atoms.position.copy()
    position[place["CE"]], position[place["NZ"]] = middle + 0.7 * normal, middle - 0.8 * normal
    found = ring_piercings(replace(atoms, position=position))
    assert (ring, tuple(sorted((place["CE"], place["NZ"])))) in [(p.ring, tuple(sorted(p.bond))) for p in found]
    position[place["CE"]] += 3.0 * normal
    position[place["NZ"]] += 3.0 * normal
    assert ring not in [p.ring for p in ring_piercings(replace(atoms, position=position))
                        if set(p.bond) == {place["CE"], place["NZ"]}]


def test_segment_and_triangle():
    a, b, c = np.array([[[0.0, 0, 0]], [[1.0, 0, 0]], [[0.0, 1, 0]]])
    through = crosses(np.array([[0.2, 0.2, 1.0]]), np.array([[0.2, 0.2, -1.0]]), a, b, c)
    short = crosses(np.array([[0.2, 0.2, 1.0]]), np.array([[0.2, 0.2, 0.1]]), a, b, c)
    beside = crosses(np.array([[0.8, 0.8, 1.0]]), np.array([[0.8, 0.8, -1.0]]), a, b, c)
    parallel = crosses(np.array([[0.0, 0.2, 0.1]]), np.array([[1.0, 0.2, 0.1]]), a, b, c)
    assert through[0] and not short[0] and not beside[0] and not parallel[0]


def test_mirror_image_has_every_centre_wrong(atoms):
    mirrored = replace(atoms, position=atoms.position * np.array([-1, 1, 1], dtype=np.float32))
    names = atoms.name[audit(mirrored).chirality_errors]
    assert np.sum(names == "C1'") == 294 and np.sum(names == "C3'") == 294 and np.sum(names == "C4'") == 294
    glycines = sum(name.endswith("GLY") for name in atoms.residue_name)
    proteins = len(atoms.residue_name) - 294
    assert np.sum(names == "CA") == proteins - glycines
    ile_thr = sum(name[-3:] in ("ILE", "THR") for name in atoms.residue_name)
    assert np.sum(names == "CB") == ile_thr


def test_planted_cis_peptide(atoms):
    """Everything beyond a peptide bond turned by half a turn about it."""
    residue = next(r for r in range(300, len(atoms.residue_name)) if atoms.residue_name[r] == "ALA")
    begin = np.searchsorted(atoms.residue, [residue - 1, residue])
    c = begin[0] + list(atoms.name[atoms.residue == residue - 1]).index("C")
    n = begin[1] + list(atoms.name[atoms.residue == residue]).index("N")
    beyond = atoms.graph.beyond(c, n)
    position = atoms.position.astype(np.float64)
    axis = position[n] - position[c]
    axis /= np.linalg.norm(axis)
    r = position[beyond] - position[n]
    position[beyond] = position[n] + 2 * (r @ axis)[:, None] * axis - r  # Rodrigues at 180 degrees
    assert audit(replace(atoms, position=position)).cis_peptides == [n]
    assert audit(replace(atoms, position=position)).twisted_peptides == []


def test_stretched_link_is_an_outlier(atoms):
    position = atoms.position.copy()
    phosphorus = np.flatnonzero(atoms.name == "P")[10]
    position[phosphorus] += 0.5
    found = audit(replace(atoms, position=position))
    outliers = found.bonds[np.abs(found.bond_z) > 4]
    assert len(outliers) >= 1 and (outliers == phosphorus).any(axis=1).all()
