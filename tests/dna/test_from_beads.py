"""Atoms from beads: round trips of DNA and of a nucleosome."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from support.beads import dna_of_nucleosome
from support.molecular_systems import make_solute
from support.spread_nucleosomes import one_nucleosome

from chromabuild.base.errors import BadInputError
from chromabuild.build.beads import AMINO_ACID, PHOSPHATE, SUGAR, Beads, beads_of
from chromabuild.build.duplex import build_dna
from chromabuild.build.from_beads import atoms_on_beads
from chromabuild.dna.helix import straight_path
from chromabuild.dna.sequence import BASES
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute


def rms(difference: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.sum(difference**2, axis=1))))


def bent(place: np.ndarray) -> np.ndarray:
    """Places moved by a wave of 3 angstrom that is 120 long, as smooth as strain of a fibre, and by noise."""
    wave = 3.0 * np.sin(2 * np.pi * place[:, [1, 2, 0]] / 120.0)
    return place + wave + 0.1 * np.random.default_rng(26).standard_normal(place.shape)


def links(solute: Solute, beads: Beads) -> np.ndarray:
    """Lengths of the bonds between nucleotides, angstrom."""
    library = list(residue_library().values())
    first, following = solute.residue_first_atom, beads.following
    rows = [k for k in np.flatnonzero(beads.partner >= 0) if following[k] >= 0]
    at = [(first[k] + library[solute.residue_template[k]].index["O3'"],
           first[following[k]] + library[solute.residue_template[following[k]]].index["P"]) for k in rows]
    a, b = np.array(at).T
    return np.linalg.norm(solute.position[a] - solute.position[b], axis=1)


def test_a_straight_helix_on_the_beads_of_a_nucleosome_becomes_its_dna():
    """Beads alone carry the shape: B-DNA of the same sequence, which knows nothing of the nucleosome, takes it."""
    solute = dna_of_nucleosome()
    beads, n = beads_of(solute), solute.n_residues // 2
    library = list(residue_library().values())
    sequence = np.array([BASES.index(library[k].base) for k in solute.residue_template[:n]])
    position, _, _ = build_dna(sequence, *straight_path(n))
    straight = replace(solute, position=position.astype(np.float32))
    laid = atoms_on_beads(straight, beads, beads.place(solute.position))
    assert rms(straight.position - solute.position) > 50
    assert rms(laid.position - solute.position) < 1.0
    assert np.abs(links(laid, beads) - 1.61).max() < 0.05


def test_a_nucleosome_that_was_bent_comes_back():
    """All atoms, to beads, to beads elsewhere, to all atoms, and back to the first beads: DNA within 2 angstrom.

    Histones keep their shape and come back to the rounding of 32 bits.
    """
    solute = one_nucleosome()
    beads = beads_of(solute)
    place = beads.place(solute.position)
    moved = bent(place)
    there = atoms_on_beads(solute, beads, moved)
    assert rms(moved - place) > 3
    dna = (beads.partner >= 0)[solute.atom_residue]
    assert rms((beads.place(there.position) - moved)[beads.kind != AMINO_ACID]) < 1.0
    assert np.abs(links(there, beads) - 1.61).max() < 0.05
    assert np.abs(pdist(there.position[~dna][::50]) - pdist(solute.position[~dna][::50])).max() < 1e-3
    back = atoms_on_beads(there, beads, place)
    change = back.position - solute.position
    assert rms(change[dna]) < 2.0 and rms(change[~dna]) < 1e-3


def test_beads_where_they_are_give_the_atoms_back():
    """Proteins to the rounding of 32 bits, bases and all as good as the closure of the backbone."""
    solute = one_nucleosome()
    beads = beads_of(solute)
    back = atoms_on_beads(solute, beads, beads.place(solute.position))
    dna = (beads.partner >= 0)[solute.atom_residue]
    change = back.position - solute.position
    assert np.abs(change[~dna]).max() < 1e-4 and rms(change[dna]) < 0.5
    assert np.unique(beads.body).tolist() == [-1, 0]


def test_beads_are_centres_of_mass_and_carry_the_names_of_the_model():
    """By hand, of the second nucleotide of a strand: its phosphate has O3' of the first."""
    solute = dna_of_nucleosome()
    beads = beads_of(solute)
    template = [list(residue_library().values())[k] for k in solute.residue_template[:2]]
    first = solute.residue_first_atom
    names = [(1, "P"), (1, "OP1"), (1, "OP2"), (1, "O5'"), (0, "O3'")]
    atoms = solute.position[[first[k] + template[k].index[name] for k, name in names]].astype(float)
    mass = np.array([30.973762, *[15.9994] * 4])
    bead = beads.of_residue[1, PHOSPHATE]
    assert beads.place(solute.position)[bead] == pytest.approx(mass @ atoms / mass.sum(), abs=1e-4)
    assert beads.of_residue[0, PHOSPHATE] == -1 and (beads.of_residue[:, SUGAR] >= 0).all()
    assert not (beads.kind == AMINO_ACID).any() and beads.n == 6 * 177 - 2


def test_what_has_no_beads_is_refused():
    with pytest.raises(BadInputError, match="residue NA of the solute has no beads"):
        beads_of(make_solute([["NA"]]))
    with pytest.raises(BadInputError, match="a strand of 2 nucleotides is followed by none that is its complement"):
        beads_of(make_solute([["DA5", "DC3"], ["DA5", "DC3"]]))
