"""Nucleosomes along trajectories: planted unwrapping, sliding, turning, gaping, splitting and contacts, on 1KX5."""

import numpy as np
import pytest
from MDAnalysis.analysis import dssp
from MDAnalysis.lib.mdamath import triclinic_vectors
from scipy.spatial.transform import Rotation
from support.placed_nucleosomes import place_nucleosomes
from support.universes import built_dna, universe_of

from chromabuild.analysis.histones import find_octamers, reference_fold, superposition
from chromabuild.analysis.nucleosome_analysis import NucleosomeAnalysis
from chromabuild.analysis.nucleosome_measures import BRIDGE
from chromabuild.analysis.secondary_structure import assigned, backbone_rows
from chromabuild.analysis.tables import TURN, nucleosome_tables
from chromabuild.analysis.whole_nucleosomes import DYAD, WholeNucleosomes
from chromabuild.base.errors import BadInputError
from chromabuild.dna.steps import rebuild

STEP = 0.003  # angstrom, by which positions of the fixture are rounded


class Particle:
    """A nucleosome in its own frame, whose parts can be moved."""

    def __init__(self):
        self.solute = place_nucleosomes([(np.eye(3), np.zeros(3))])
        (octamer,) = find_octamers(universe_of(self.solute))
        atoms, places = octamer.core()
        origin, frame, _ = superposition(places, self.solute.position[atoms].astype(float))
        self.solute.position = ((self.solute.position - origin) @ frame).astype(np.float32)
        self.universe = universe_of(self.solute)
        self.whole = WholeNucleosomes(self.universe)
        (self.pairs,) = self.whole.nucleotides.duplexes

    def pair_atoms(self, k):
        rows = [self.pairs.first[k], self.pairs.second[k]]
        residues = self.universe.atoms.resindices[self.whole.nucleotides.atoms[rows, 11]]  # N1
        return np.flatnonzero(np.isin(self.universe.atoms.resindices, residues))

    def run(self, position, box=None):
        moved = universe_of(self.solute, [self.solute.position, position],
                            None if box is None else box)
        results = NucleosomeAnalysis(moved).run().results
        return {measure: results[measure][1, 0] for measure in
                ("unwrapped", "slid", "turned", "hinge", "dimer", "rmsd", "patch", "detached", "phosphate", "wrapped")}


@pytest.fixture(scope="module")
def particle():
    return Particle()


def test_the_crystal_is_at_rest(particle):
    found = particle.run(particle.solute.position)
    assert found["unwrapped"].tolist() == [0, 0] and not found["detached"].any() and found["patch"].tolist() == [0, 0]
    for measure in ("slid", "turned", "hinge", "dimer", "rmsd"):
        assert np.abs(found[measure]).max() < 2 * STEP, measure  # degree over some 10 angstrom, or angstrom
    # 3DNA's mean of the 146 steps of 1KX5. The path makes 1.65 turns in 147 base pairs (Davey et al. 2002), and the
    # means of ten steps before and behind a step are eleven apart: 1.65 360 11 / 147 = 44 degree, more where it kinks.
    assert found["wrapped"][0] == pytest.approx(34.63, abs=0.02) and 42 < found["wrapped"][1] < 50
    # Davey et al. 2002: DNA is held where the minor groove faces the octamer, 14 places, both strands at each.
    assert 28 <= found["phosphate"].sum() <= 120


def test_turns_of_the_path_are_those_of_superhelix_locations():
    """How often base pairs turn about the path as seen from the superhelix axis, over its middle 133."""
    fold = reference_fold()
    x, tangent = fold.frame[:, :, 0], fold.frame[:, :, 2]
    inward = -fold.path * [1, 1, 0]
    inward -= tangent * np.sum(inward * tangent, axis=1)[:, None]
    inward /= np.linalg.norm(inward, axis=1)[:, None]
    angle = np.unwrap(np.arctan2(np.sum(x * np.cross(tangent, inward), axis=1), np.sum(x * inward, axis=1)))
    slope = np.polyfit(np.arange(133), angle[7:140], 1)[0]
    assert 2 * np.pi / slope == pytest.approx(TURN, abs=0.02)


def test_planted_unwrapping(particle):
    position = particle.solute.position.copy()
    for k in (*range(12), 60, 144, 145, 146):
        position[particle.pair_atoms(k)] += [0, 0, 9.0 if k < 100 else -9.0]
    found = particle.run(position)
    assert found["unwrapped"].tolist() == [12, 3] and found["detached"].sum() == 16


@pytest.mark.parametrize(("slid", "turned"), [(2, 0.0), (-3, 0.0), (0, 12.0), (1, -8.0)])
def test_planted_sliding_and_turning(particle, slid, turned):
    """Every base pair goes to where another one stands in 1KX5, and is turned about its own axis."""
    fold, position = reference_fold(), particle.solute.position.astype(float)
    turn = Rotation.from_euler("z", turned, degrees=True).as_matrix()
    for k in range(147):
        site, atoms = k - slid, particle.pair_atoms(k)
        if not 0 <= site < 147:
            position[atoms] += [0, 0, 200.0]
            continue
        local = (position[atoms] - fold.path[k]) @ fold.frame[k]
        position[atoms] = fold.path[site] + local @ (fold.frame[site] @ turn).T
    found = particle.run(position)
    assert found["slid"] == pytest.approx(slid, abs=1e-3)
    assert found["turned"] == pytest.approx(turned, abs=0.03)  # rounding of the fixture: 0.003 A over 5 A


def test_planted_gaping(particle):
    position = particle.solute.position.astype(float)
    turn = Rotation.from_euler("y", 4.0, degrees=True)
    pivot = reference_fold().path[DYAD]
    for k in range(DYAD + 1, 147):
        atoms = particle.pair_atoms(k)
        position[atoms] = turn.apply(position[atoms] - pivot) + pivot
    assert np.allclose(particle.run(position)["hinge"], [0, 4.0, 0], atol=0.01)


def test_planted_splitting(particle):
    position = particle.solute.position.astype(float)
    octamer = particle.whole.nucleosomes[0].octamer
    fold = [position[chain.alpha[chain.core]] for chain in octamer.chains]
    away = np.concatenate([fold[2], fold[3]]).mean(0) - np.concatenate([fold[k] for k in (0, 1, 4, 5)]).mean(0)
    dimer = np.isin(particle.universe.atoms.segids, ["C000", "D000"])
    position[dimer] += 3.0 * away / np.linalg.norm(away)
    found = particle.run(position)["dimer"]
    assert found[0] == pytest.approx(3.0, abs=1e-2) and found[1] == pytest.approx(0.0, abs=1e-2)


def test_a_moved_chain_is_told_by_its_own_rmsd(particle):
    """The octamer follows one of eight chains by less than half of its way (a shift by the eighth that it weighs, and a
    turn); squares of all chains, weighed by their atoms, are that of the octamer."""
    position = particle.solute.position.astype(float)
    position[particle.universe.atoms.segids == "E000"] += [0.0, 2.0, 0.0]
    analysis = NucleosomeAnalysis(universe_of(particle.solute, [position])).run()
    rmsd, of_chains = analysis.results.rmsd[0, 0], analysis.results.chain_rmsd[0]
    atoms = np.array([len(chain.core) for _, chain in analysis.chains])
    assert of_chains.argmax() == 4 and 1.0 < of_chains[4] < 2.0
    assert rmsd**2 * atoms.sum() == pytest.approx((of_chains**2 * atoms).sum(), rel=1e-5)


def test_helices_are_those_of_the_crystal_and_one_is_planted(particle):
    """Helices of the folds of 1KX5 as Luger et al. 1997 (doi:10.1038/38444) give them for H3 and H4, to three residues
    at either end, where programs differ; a tail on the atoms of the long helix of H3 is a helix."""
    universe, position = particle.universe, particle.solute.position
    tail, helix = (universe.select_atoms(f"segid A000 and resid {which} and name N CA C O").indices
                   for which in ("5:24", "87:106"))
    planted = position.copy()
    planted[tail] = position[helix] + np.float32([0.0, 0.0, 200.0])
    analysis = NucleosomeAnalysis(universe_of(particle.solute, [position, planted])).run()
    tables = nucleosome_tables(analysis, np.arange(2.0))[0]
    rows = [row for row in tables["nucleosome_residues"].rows if row[1] in ("A000", "B000")]
    share = {(row[2], row[3]): row[6] for row in rows}
    for histone, first, last in (("H3", 44, 57), ("H3", 64, 77), ("H3", 86, 114), ("H3", 121, 131),
                                 ("H4", 31, 41), ("H4", 49, 76), ("H4", 83, 93)):
        assert all(share[histone, k] == 1.0 for k in range(first + 3, last - 2)), (histone, first)
    assert all(share[histone, k] == 0.0 for histone, k in (("H3", 60), ("H3", 81), ("H3", 117), ("H4", 45), ("H4", 80)))
    # DSSP calls no residue of a helix's first and last turn by itself: an end of each side is not counted.
    assert all(share["H3", k] == 0.5 for k in range(7, 23))
    (mean,) = [row[5] for row in tables["nucleosome_tails"].rows
               if row[1] == "A000" and row[3] == "residues in helices"]
    assert 8 <= mean <= 9.5


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.5])
def test_helices_and_strands_of_all_chains_at_once_are_those_of_mdanalysis(particle, noise):
    """Its DSSP takes one chain at a time; noise makes strands of some loops and breaks helices."""
    random, names = np.random.default_rng(3), particle.universe.atoms.names
    places, prolines, whose, expected = [], [], [], []
    for k, (_, chain) in enumerate(NucleosomeAnalysis(particle.universe).chains):
        rows = backbone_rows(chain.heavy_residue, names[chain.heavy].astype(str), len(chain.residues))
        place = particle.solute.position[chain.heavy][rows].astype(float)
        places.append(place + random.normal(0, noise, place.shape))
        prolines.append(particle.universe.residues.resnames[chain.residues] == "PRO")
        whose.append(np.full(len(place), k))
        expected.append(np.argmax(dssp.assign(places[-1], donor_mask=~prolines[-1]), axis=1))
    assert np.array_equal(assigned(*map(np.concatenate, (places, prolines, whose))), np.concatenate(expected))


def test_an_h4_tail_at_the_acidic_patch_is_counted(particle):
    atoms = particle.universe.select_atoms
    patch, lysine = (atoms(where).indices[0] for where in
                     ("segid C000 and resid 61 and name OE1", "segid F000 and resid 16 and name NZ"))
    position = particle.solute.position.copy()
    for apart, counted in ((BRIDGE - 0.1, [1, 1]), (BRIDGE + 0.1, [0, 0])):
        outward = position[patch] / np.linalg.norm(position[patch])
        position[lysine] = position[patch] + apart * outward
        near = np.linalg.norm(position - position[lysine], axis=1)
        assert particle.run(position)["patch"].tolist() == counted, near.min()


def test_rigid_motions_and_images_change_nothing(particle):
    turn = Rotation.from_rotvec([0.3, 1.0, -0.4])
    moved = turn.apply(particle.solute.position) + [90, 20, -50]
    box = [170, 170, 170, 90, 90, 90]
    images = np.random.default_rng(3).integers(-1, 2, (len(moved), 3)) @ triclinic_vectors(box)
    frames = [particle.solute.position, moved, moved + images]
    found = NucleosomeAnalysis(universe_of(particle.solute, frames, box)).run().results
    for measure in NucleosomeAnalysis.MEASURES:
        values = found[measure].astype(float)
        apart = np.nan_to_num(np.abs(values - values[0]))
        assert apart.max() < 5e-3 and np.array_equal(np.isnan(values[0]), np.isnan(values[2])), measure


def test_two_nucleosomes_and_a_lost_dimer():
    both = place_nucleosomes([(np.eye(3), np.zeros(3)), (np.eye(3), np.array([0.0, 0.0, 60.0]))])
    found = find_octamers(universe_of(both))
    assert [octamer.name for octamer in found] == ["A000", "A001"]
    assert all([chain.family for chain in octamer.chains] == ["H3", "H4", "H2A", "H2B"] * 2 for octamer in found)
    less = place_nucleosomes([(np.eye(3), np.zeros(3))], keep="IJABEFGH")
    (octamer,) = find_octamers(universe_of(less))
    assert [k for k, chain in enumerate(octamer.chains) if chain is None] in ([2, 3], [6, 7])
    results = NucleosomeAnalysis(universe_of(less)).run().results
    assert np.isnan(results.dimer[0, 0]).sum() == 1 and results.rmsd[0, 0] < 2 * STEP


def test_dna_alone_has_no_nucleosome():
    steps = np.tile([0.0, 0.0, 3.4, 0.0, 0.0, 36.0], (11, 1))
    with pytest.raises(BadInputError, match="the file holds no nucleosome"):
        WholeNucleosomes(universe_of(built_dna("GATTACAGCCTG", *rebuild(steps))), "the file")
