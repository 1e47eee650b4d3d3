"""Histones and DNA that make room for each other while they are built."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.base.settings import Settings
from chromabuild.build import build_solute
from chromabuild.nucleosome.peptide import rotate
from chromabuild.nucleosome.settling import settle_histones
from chromabuild.sterics.reference import angle_between
from chromabuild.sterics.torsions import library_torsions


def parts(solute):
    """Which atoms are DNA's, and which are heavy."""
    return np.arange(solute.n_atoms) < solute.molecule_first_atom[2], solute.elements() != "H"


def near_dna(solute):
    """Smallest distance of a histone's heavy atom to one of DNA, and of any atom to any."""
    dna, heavy = parts(solute)
    return [cKDTree(solute.position[some & dna]).query(solute.position[some & ~dna])[0].min()
            for some in (heavy, np.ones_like(heavy))]


@pytest.fixture(scope="module")
def pair_of_nucleosomes():
    """Two nucleosomes of random sequence on a short linker."""
    return build_solute(synthetic_scaffold(2, 22, 8, seed=3), Settings())


def test_dna_of_any_sequence_keeps_clear_of_its_histones(pair_of_nucleosomes):
    report = pair_of_nucleosomes.build_report
    heavy, any_atom = near_dna(pair_of_nucleosomes)
    # No two heavy atoms of 1KX5 are nearer than 2.2 angstrom; hydrogens meet steep forces below 1.3.
    assert heavy >= 2.2 and any_atom >= 1.3
    assert report["close_histone_pairs_left"] == 0
    assert report["bond_rmsz"] <= 0.2 and report["angle_rmsz"] <= 0.7
    assert report["bond_outliers"] == report["angle_outliers"] == 0
    assert 1.600 <= report["o3_p_shortest"] and report["o3_p_longest"] <= 1.615


def test_a_side_chain_within_dna_is_turned_away_and_nothing_else_moves(pair_of_nucleosomes):
    solute = pair_of_nucleosomes
    built, (dna, heavy) = solute.position.copy(), parts(solute)
    bonds = solute.bonds()
    residue, moved = driven_into_dna(solute, dna & heavy)
    spoilt = solute.position.copy()
    assert near_dna(solute)[0] < 1.6
    results = []
    for threads in (1, 2):
        solute.position = spoilt.copy()
        report = settle_histones(solute, threads=threads)
        results.append(solute.position)
    solute.position = built
    assert np.array_equal(*results)
    after = results[0]
    assert report["turned_side_chains"] >= 1 and report["close_histone_pairs_left"] == 0
    changed = (after != spoilt).any(axis=1)
    assert not changed[dna].any() and set(solute.atom_residue[changed]) == {residue}
    length = [np.linalg.norm(p[bonds[:, 0]] - p[bonds[:, 1]], axis=1) for p in (spoilt.astype(float), after)]
    assert np.abs(length[0] - length[1]).max() < 1e-3  # positions are kept in single precision: 1e-5 at 200 angstrom
    inner, middle, outer = (after[a].astype(float)[None] for a in moved)
    before = angle_between(*(spoilt[a].astype(float)[None] for a in moved))
    assert abs(angle_between(inner, middle, outer) - before)[0] < 0.05


def driven_into_dna(solute, obstacle):
    """Turn the first lysine or arginine that can be turned so into DNA, in place; it and three atoms of its chi1."""
    dna, names = cKDTree(solute.position[obstacle]), library_torsions()
    for r in range(solute.molecule_first_residue[2], solute.n_residues):
        chi = names[solute.residue_template[r]].chi
        if len(chi) < 4:
            continue
        first = solute.residue_first_atom[r]
        quad, turned = first + np.array(chi[0].quad), first + np.array(chi[0].turned)
        position = solute.position.astype(float)[np.concatenate([quad[1:3], turned])]
        axis = (position[1] - position[0]) / np.linalg.norm(position[1] - position[0])
        for angle in range(60, 360, 60):
            place = rotate(position[2:], position[1], axis, float(angle))
            if dna.query(place)[0].min() < 1.2:
                solute.position[turned] = place
                return r, quad[:3]
    raise AssertionError("no side chain reaches the DNA")
