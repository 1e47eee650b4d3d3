"""The all-atom solute of one and two nucleosomes."""

import itertools

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.build import build_solute
from chromabuild.build.duplex import build_dna
from chromabuild.dna.helix import straight_path
from chromabuild.dna.sequence import base_index
from chromabuild.dna.steps import dna_parameters, rebuild, rotation_from_vector
from chromabuild.molecule.geometry import measure_torsion
from chromabuild.molecule.residues import residue_library, residue_names


@pytest.fixture(scope="module")
def fibre():
    return build_solute(synthetic_scaffold(2, 30, 15), Settings())


@pytest.fixture(scope="module")
def atoms(fibre):
    """Position of (residue, atom name) by a function."""
    names, first = fibre.atom_names(), fibre.residue_first_atom
    where = [{names[a]: a for a in range(first[r], first[r + 1])} for r in range(fibre.molecule_first_residue[2])]
    return lambda residue, name: fibre.position[where[residue][name]].astype(float)


def test_counts_of_one_nucleosome(scaffold_of):
    # 25,086 atoms for 1KX5's own composition: 15,740 of the octamer, 147 pairs of 64 (A-T) or 63 (G-C) atoms, less
    # 4 for the ends (each 5' end loses P, OP1, OP2 and gains HO5', each 3' end gains HO3': -1 a strand).
    scaffold = scaffold_of(1, 0, 0)
    solute = build_solute(scaffold, Settings())
    at = int(np.isin(scaffold.base, [ord("A"), ord("T")]).sum())
    assert solute.n_atoms == 15826 + 63 * 147 + at - 2
    assert solute.segment_name == ["DI00", "DJ00"] + [f"000{chain}" for chain in "ABCDEFGH"]
    assert solute.molecule_name == ["DNA-I", "DNA-J"] + ["H3", "H4", "H2A", "H2B"] * 2
    assert np.array_equal(np.diff(solute.molecule_first_residue), [147, 147] + [135, 102, 128, 125] * 2)


def test_strands_are_continuous_and_standard(fibre, atoms):
    n = fibre.molecule_first_residue[1]
    o3_p = [np.linalg.norm(atoms(k, "O3'") - atoms(k + 1, "P")) for s in (0, n) for k in range(s, s + n - 1)]
    assert 1.595 < min(o3_p) and max(o3_p) < 1.62
    report = fibre.build_report
    assert report["bond_rmsz"] <= 0.2 and report["angle_rmsz"] <= 0.7
    assert report["bond_outliers"] == report["angle_outliers"] == 0
    assert sum(report["wrong_chirality"].values()) == 0


def test_backbone_is_of_type_bi_with_c2_endo_sugars(fibre, atoms):
    n = fibre.molecule_first_residue[1]
    bi, endo = [], []
    for k in range(n - 1):
        corner = [atoms(k, "C4'"), atoms(k, "C3'"), atoms(k, "O3'"), atoms(k + 1, "P"), atoms(k + 1, "O5'")]
        epsilon, zeta = measure_torsion(*corner[:4]), measure_torsion(*corner[1:])
        bi.append(np.degrees(epsilon - zeta + 2 * np.pi) % 360 > 180)
        delta = measure_torsion(atoms(k, "C5'"), atoms(k, "C4'"), atoms(k, "C3'"), atoms(k, "O3'"))
        endo.append(110 < np.degrees(delta) < 165)
    assert np.mean(bi) > 0.9  # kinked steps of the core go to BII, as in the crystal
    assert np.mean(endo) > 0.99


def test_sugar_stereochemistry_by_priority_rules(fibre, atoms):
    # CIP: C1' R or S by base nitrogen, all DNA nucleosides are 1'R, 3'S, 4'R. Triple product of substituents in
    # falling priority, seen with the hydrogen away: negative for R, positive for S.
    def handed(centre, *others):
        a, b, c = (point - centre for point in others)
        return "R" if a @ np.cross(b, c) < 0 else "S"

    for k in range(1, 100):
        nitrogen = "N9" if residue_names()[fibre.residue_template[k]][1] in "AG" else "N1"
        at = {name: atoms(k, name) for name in ("C1'", "C2'", "C3'", "C4'", "C5'", "O3'", "O4'", nitrogen)}
        assert handed(at["C1'"], at["O4'"], at[nitrogen], at["C2'"]) == "R"
        assert handed(at["C3'"], at["O3'"], at["C4'"], at["C2'"]) == "S"
        assert handed(at["C4'"], at["O4'"], at["C3'"], at["C5'"]) == "R"
        assert handed(atoms(k, "C5'"), atoms(k, "O5'"), at["C4'"], atoms(k, "H5''")) == "R"
        # H2'' lies on the face of H1', so it is always the nearer of the two.
        near, far = (np.linalg.norm(atoms(k, name) - atoms(k, "H1'")) for name in ("H2''", "H2'"))
        assert near < far


def test_watson_crick_pairs_hold(fibre, atoms):
    n = fibre.molecule_first_residue[1]
    for k in range(n):
        partner = 2 * n - 1 - k
        purine = residue_names()[fibre.residue_template[k]][1] in "AG"
        a, b = (k, partner) if purine else (partner, k)
        assert 2.7 < np.linalg.norm(atoms(a, "N1") - atoms(b, "N3")) < 3.1


def test_every_bond_has_its_length(fibre):
    # Any hydrogen not placed, or placed on another atom, breaks this.
    a, b = fibre.bonds().T
    position, elements = fibre.position.astype(float), fibre.elements()
    length = np.linalg.norm(position[a] - position[b], axis=1)
    hydrogen = (elements[a] == "H") | (elements[b] == "H")
    assert np.all((length[hydrogen] > 0.94) & (length[hydrogen] < 1.35))
    assert np.all((length[~hydrogen] > 1.15) & (length[~hydrogen] < 1.95))
    assert np.isfinite(position).all()


def test_no_clash_within_dna_and_no_base_overlap(fibre):
    n_dna = fibre.residue_first_atom[fibre.molecule_first_residue[2]]
    position = fibre.position[:n_dna].astype(float)
    bonded = {tuple(sorted(pair)) for pair in fibre.bonds() if max(pair) < n_dna}
    neighbours = [set() for _ in range(n_dna)]
    for a, b in bonded:
        neighbours[a].add(b)
        neighbours[b].add(a)
    close = cKDTree(position).query_pairs(0.9)
    for a, b in close:
        assert b in neighbours[a] or neighbours[a] & neighbours[b], (a, b)
    heavy = np.flatnonzero(fibre.elements()[:n_dna] != "H")
    residue = fibre.atom_residue[heavy]
    pairs = cKDTree(position[heavy]).query_pairs(2.3, output_type="ndarray")
    apart = np.abs(residue[pairs[:, 0]] - residue[pairs[:, 1]]) > 1
    assert not apart.any()


def test_threads_and_repeats_give_the_same_bytes(scaffold_of):
    scaffold = scaffold_of(1, 0, 40)
    one, two = (build_solute(scaffold, Settings(), threads=threads) for threads in (1, 2))
    assert np.array_equal(one.position, two.position)
    assert one.provenance == two.provenance


def test_solute_turns_with_the_scaffold(scaffold_of):
    scaffold = scaffold_of(1, 0, 12)
    turn, shift = rotation_from_vector(np.array([0.7, -1.1, 0.4])), np.array([30.0, -20.0, 55.0])
    plain = build_solute(scaffold, Settings()).position.astype(float)
    scaffold.origin, scaffold.core_origin = (part @ turn.T + shift for part in (scaffold.origin, scaffold.core_origin))
    scaffold.frame, scaffold.core_frame = turn @ scaffold.frame, turn @ scaffold.core_frame
    turned = build_solute(scaffold, Settings()).position.astype(float)
    # Steps are computed in single precision, and iterations end when one gains less than a thousandth: what differs in
    # the seventh digit of a step of 0.1 angstrom may do so by 1e-3 angstrom some iterations later.
    assert np.abs((turned - shift) @ turn - plain).max() < 0.01
    histones = np.arange(len(plain)) >= len(plain) - 15826
    assert np.abs((turned - shift) @ turn - plain)[histones].max() < 1e-4  # float32 of some 100 angstrom carries 1e-5


def test_superhelix_mode_builds(scaffold_of):
    config = Settings()
    config.build.nucleosome_path = "superhelix"
    report = build_solute(scaffold_of(1, 0, 10), config).build_report
    assert report["bond_rmsz"] <= 0.2 and report["angle_rmsz"] <= 0.7
    assert 1.6 <= report["o3_p_shortest"] and report["o3_p_longest"] <= 1.615


@pytest.mark.parametrize("step", ["b_dna", "AA", "CA", "GC"])
def test_straight_duplexes_close(step):
    tables = dna_parameters()
    values = tables.b_dna if step == "b_dna" else tables.step[step].mean
    origin, frame = rebuild(np.tile(values, (39, 1)))
    position, template, report = build_dna(np.arange(40) % 4, origin, frame)
    assert report["bond_rmsz"] <= 0.2 and report["angle_rmsz"] <= 0.7
    assert report["bond_outliers"] == report["angle_outliers"] == 0
    sizes = [len(residue_library()[residue_names()[k]].atoms) for k in template]
    assert len(position) == sum(sizes)


def test_atoms_per_base_pair():
    # A-T pairs have 64 atoms, G-C pairs 63; equal shares give 63.5 (63.58 for the composition of 1KX5).
    origin, frame = straight_path(402)
    position, _, _ = build_dna(np.arange(402) % 4, origin, frame)
    inner = position.shape[0] - sum(len(residue_library()[name].atoms) for name in ("DA5", "DC3", "DG5", "DT3"))
    assert inner / 400 == pytest.approx(63.5, abs=0.01)


def test_wrong_letter_is_named():
    with pytest.raises(BadInputError, match="base 2 of the sequence is 'N'"):
        base_index("ACNT")


def test_long_strands_span_segments():
    from chromabuild.build.assembly import _dna_segments

    names, segment, number = _dna_segments(20000)
    assert names == ["DI00", "DI01", "DI02", "DJ00", "DJ01", "DJ02"]
    assert number.max() == 9999 and len(set(zip(segment.tolist(), number.tolist(), strict=True))) == 40000
    assert all(len(name) == 4 for name in names)
    assert [a for a, _ in itertools.groupby(segment.tolist())] == [0, 1, 2, 3, 4, 5]
