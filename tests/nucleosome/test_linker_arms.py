"""Linker arms that a linker histone holds: their path, the core that holds them, and what refuses them."""

import json

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from support.universes import universe_of

from chromabuild.analysis.nucleosome_analysis import NucleosomeAnalysis
from chromabuild.analysis.tables import nucleosome_tables
from chromabuild.api import build_solute, fibre_of, fold
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.base.settings import validated
from chromabuild.dna.arms import linker_arms, rows_on_arms, with_arms
from chromabuild.dna.helix import DYAD, crystal_path, step_elasticity, superhelix_path
from chromabuild.dna.steps import analyse
from chromabuild.genome.arrays import array_of
from chromabuild.genome.locus import load_locus
from chromabuild.genome.wrapping import ARM
from mesoscale.cores import crystal_core
from mesoscale.cores import crystal_path as core_path
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, shapes_of

REACH = DYAD + ARM


def whole_path():
    """The 167 base pairs of a chromatosome in the order of the DNA."""
    order = rows_on_arms(np.arange(-REACH, REACH + 1))
    return tuple(part[order] for part in with_arms(crystal_path()))


def test_arms_lie_as_in_4qlc():
    """Base pairs within 1.5 angstrom rms of those of the entry (its own coordinates have 0.5 to 1 at 3.5 angstrom), and
    directions within 10 degrees of its: chords over ten base pairs."""
    origin, _ = linker_arms()
    data = json.loads(template_path("chromatosome_arms_4qlc.json").read_text())
    seen = np.concatenate([data["entry"]["observed"], data["exit"]["observed"]])
    assert np.sqrt(np.mean(np.sum((origin - seen) ** 2, axis=1))) < 1.5
    for rows in (slice(0, ARM), slice(ARM, None)):
        one, other = (path[rows][-1] - path[rows][0] for path in (origin, seen))
        assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > np.cos(np.radians(10.0))


def test_arms_continue_the_path_within_the_range_of_steps():
    """No step of the arms, nor of the joints, leaves rest by more than 3 standard deviations (Olson et al. 1998)."""
    origin, frame = whole_path()
    step = analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])
    rest, deviation = (part[0] for part in step_elasticity(np.zeros(2, dtype=int), "generic"))
    ends = np.r_[:ARM, len(step) - ARM:len(step)]
    assert np.abs((step[ends] - rest) / deviation).max() < 3.0
    core = origin[ARM:-ARM]
    assert np.array_equal(core, crystal_path()[0])


def test_arms_go_on_from_any_path():
    """On another path the joint steps are those on 1KX5."""
    order = rows_on_arms(np.arange(-REACH, REACH + 1))
    found = []
    for path in (crystal_path(), superhelix_path()):
        origin, frame = (part[order] for part in with_arms(path))
        found.append(analyse(origin[:-1], frame[:-1], origin[1:], frame[1:]))
    ends = np.r_[:ARM, 2 * REACH - ARM:2 * REACH]
    assert np.allclose(found[0][ends], found[1][ends], atol=1e-5)


def test_the_mesoscale_core_holds_the_same_base_pairs():
    """Path, joints, charges and spheres; a core without arms is as before."""
    origin, frame = core_path(2 * REACH + 1)
    whole = whole_path()
    assert np.allclose(10.0 * origin, whole[0], atol=1e-6) and np.allclose(frame, whole[1], atol=1e-6)
    plain = crystal_core()
    held, one = crystal_core(2 * REACH + 1, dna_charge=-2.7), crystal_core((DYAD, REACH), dna_charge=-2.7)
    assert held.site_charge.sum() == pytest.approx(plain.site_charge.sum() - 20 * 2.7)
    assert one.site_charge.sum() == pytest.approx(plain.site_charge.sum() - 10 * 2.7)
    assert np.allclose(held.joint_point, origin[[-1, 0]]) and np.allclose(one.joint_point[1], plain.joint_point[1])
    assert np.array_equal(one.joint_frame[1], plain.joint_frame[1])
    # Arms cross: entering and leaving DNA come nearer to the dyad axis and go on outward.
    assert held.joint_frame[0, 0, 0] > 0 > held.joint_frame[1, 0, 0]
    apart = cKDTree(10.0 * held.sphere).query(np.concatenate([whole[0][:ARM], whole[0][-ARM:]]))[0]
    assert apart.max() < 7.0  # angstrom: a sphere every three base pairs of 3.4, the last at most two from the end
    with pytest.raises(ValueError, match="give the charge"):
        crystal_core((REACH, DYAD))
    fibre = Fibre("ACGT" * 100, (90, 290), ends=((REACH, REACH), (DYAD, DYAD)), linker_histone=(True, False))
    assert [len(shape.site) for shape in shapes_of(fibre, Parameters())[0]] == [len(plain.site) + 6, len(plain.site)]


def settings_of(folder, array="2x601:197", bed=None, locus=None, **build):
    """Settings of an array with H5; ``bed`` instead of its dyads (98 and 295 of two)."""
    array = array_of(array)
    (folder / "a.fa").write_text(array.fasta())
    (folder / "a.bed").write_text(bed or array.bed())
    return validated({"locus": {"fasta": str(folder / "a.fa"), "nucleosomes": str(folder / "a.bed")} | (locus or {}),
                      "scaffold": {"sweeps": 20, "packing": "free"},
                      "build": {"linker_histone": "H5", "linker_arms": "held"} | build}, {}, "test")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    settings = settings_of(tmp_path_factory.mktemp("arms"), "1x601:197")
    scaffold = fold(load_locus(settings.locus), settings, threads=1)
    return scaffold, build_solute(scaffold, settings, threads=1)


def test_the_build_holds_them(built):
    """167 base pairs of the solute's path are those of the chromatosome; DNA is whole; the linker histone touches both
    arms and the dyad, as H5 in 4QLC does with its residues 41-42, 82, 94 (entry) and 22-29, 63-74 (exit)."""
    scaffold, solute = built
    assert (scaffold.first_bp[0], scaffold.last_bp[0]) == (scaffold.dyad[0] - REACH, scaffold.dyad[0] + REACH)
    report, strand, residue = solute.build_report, len(scaffold.base), solute.atom_residue
    assert scaffold.floor_violations == report["unwrapped base pairs"] == 0
    assert report["bond_outliers"] == report["angle_outliers"] == 0
    heavy = solute.elements() != "H"
    dna = heavy & (residue < 2 * strand)
    pair = np.where(residue < strand, residue, 2 * strand - 1 - residue) - scaffold.dyad[0]
    linker = heavy & (np.arange(solute.n_atoms) >= solute.molecule_first_atom[solute.molecule_name.index("H5")])
    tree = cKDTree(solute.position[dna])
    touched = {"entry": set(), "dyad": set(), "exit": set()}
    for own, near in zip(solute.residue_number[residue[linker]].tolist(),
                         tree.query_ball_point(solute.position[linker], 4.5), strict=True):
        for site in pair[dna][near].tolist():
            touched["entry" if site < -DYAD else "exit" if site > DYAD else "dyad"].add(own)
    assert {41, 42, 94} <= touched["entry"] and {28, 63, 67, 70, 74} <= touched["exit"]
    assert {47, 48, 69, 73, 86, 90} <= touched["dyad"]


ROW = "array_2x601_197\t{0}\t{1}\t{2}\t1\t+\t{3}\t{4}\n"


@pytest.mark.parametrize(("ends", "build", "wrapped"), [
    (None, {}, [(REACH, REACH)] * 2),
    (None, {"linker_arms": "free"}, [(DYAD, DYAD)] * 2),
    ([(REACH, DYAD), (DYAD, 79)], {"linker_arms": "free"}, [(REACH, DYAD), (DYAD, 79)]),
    ([(DYAD, DYAD), None], {}, [(DYAD, DYAD), (REACH, REACH)]),
])
def test_each_nucleosome_holds_what_settings_or_its_record_say(tmp_path, ends, build, wrapped):
    """A record with columns 7 and 8 decides by itself; the others do what build.linker_arms says."""
    bed = None
    if ends is not None:
        bed = "".join(ROW.format(dyad, dyad + 1, f"N{k}", dyad - pair[0], dyad + pair[1] + 1) if pair else
                      f"array_2x601_197\t{dyad}\t{dyad + 1}\tN{k}\n"
                      for k, (dyad, pair) in enumerate(zip((98, 295), ends, strict=True), 1))
    settings = settings_of(tmp_path, bed=bed, locus={"wrapping": "thick"} if ends else {}, **build)
    assert list(fibre_of(load_locus(settings.locus), settings).wrapped) == wrapped


@pytest.mark.parametrize(("array", "bed", "locus", "build", "sentence"), [
    ("2x601:167", None, {}, {}, "a.bed, line 1: N1 and N2 leave 0 bp between them with their linker arms held, 10 are"),
    ("2x601:157", None, {}, {}, "N1 and N2 share 10 bp with their linker arms held"),
    ("1x601:157", None, {}, {}, "a.bed, line 1: the linker arms of N1 reach 5 bp beyond the sequence: extend it"),
    ("2x601:197", None, {}, {"linker_histone": "none"}, "no nucleosome that is wrapped to its ends carries a linker"),
    ("2x601:197", None, {"wrapped_length": 141}, {}, "wrapped_length 147, or linker_arms to free"),
    ("2x601:197", None, {}, {"nucleosome_path": "superhelix"}, "superhelix has no linker arms"),
    ("2x601:197", ROW.format(98, 99, "N1", 15, 172), {"wrapping": "thick"}, {"linker_histone": "none",
     "linker_arms": "free"}, "a.bed, line 1: 83 and 73 bp beside the dyad are wrapped; a core holds 73"),
    ("2x601:197", ROW.format(98, 99, "N1", 14, 172), {"wrapping": "thick"}, {},
     "does not lie within 73 bp of the dyad 98, with a linker histone 83"),
])
def test_arms_that_cannot_be_held_are_refused(tmp_path, array, bed, locus, build, sentence):
    settings = settings_of(tmp_path, array, bed, {"minimum_linker": 0} | locus if array == "2x601:157" else locus,
                           **build)
    with pytest.raises(BadInputError) as error:
        fibre_of(load_locus(settings.locus), settings)
    assert sentence in str(error.value)


def test_analysis_sees_arms_and_linker_histone(built):
    """Nothing is detached as built, and the linker histone lies as in 4QLC; an exit arm that is moved by 30 angstrom
    is detached, and has lost its linker histone; one that is moved by 5 angstrom and turned by 20 degrees is found so.
    """
    scaffold, solute = built
    moved = solute.position.copy()
    bases = 2 * len(scaffold.base)
    pair = np.minimum(solute.atom_residue, bases - 1 - solute.atom_residue) - scaffold.dyad[0]
    moved[(pair > DYAD) & (solute.atom_residue < bases)] += [0.0, 0.0, 30.0]
    linker = solute.residue_first_atom[solute.molecule_first_residue[solute.molecule_name.index("H5"):][:2]]
    own, turned = slice(*linker.tolist()), solute.position.copy()
    # The folded domain is what turns about its own centre: residues 24 to 97 of H5.
    is_domain = np.isin(solute.residue_number[solute.atom_residue[own]], range(24, 98))
    centre = turned[own][is_domain & (solute.atom_names()[own] == "CA")].mean(axis=0)
    turned[own] = Rotation.from_rotvec([0, np.radians(20), 0]).apply(turned[own] - centre) + centre + [3.0, 0.0, 4.0]
    analysis = NucleosomeAnalysis(universe_of(solute, [solute.position, moved, turned])).run()
    assert [one.linker_histone.name for one in analysis.nucleosomes] == ["H5"]
    assert analysis.results.arm.tolist() == [[[0, 0]], [[0, 10]], [[0, 0]]]
    touched = analysis.results.linker_histone[:, 0]
    assert (touched[0] >= [3, 10, 8]).all() and touched[1, 2] < touched[0, 2] and touched[0, 0] == touched[1, 0]
    pose = analysis.results.pose[:, 0]  # coordinates of the model are rounded to 0.001 angstrom, the build moves none
    assert pose[0, 0] < 10 and pose[0, 1] < 0.1 and pose[0, 2] < 0.5 and np.array_equal(pose[0], pose[1])
    assert pose[2, 1] == pytest.approx(5.0, abs=0.1) and pose[2, 2] == pytest.approx(20.0, abs=0.5)
    series = nucleosome_tables(analysis, np.arange(3.0))[0]["nucleosome_series"]
    assert "detached_of_the_exit_arm_bp" in series.header and len(series.rows[0]) == len(series.header)
