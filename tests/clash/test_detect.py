"""The cell list finds exactly the pairs that brute force finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

from chromabuild.base.errors import BadInputError
from chromabuild.clash import close_pairs, find_clashes
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.bond_graph import BondGraph
from chromabuild.sterics.cell_list import CellList
from chromabuild.sterics.detect import find_overlaps


def brute_force(position, threshold, box=None):
    """Pairs i < j below a threshold, from all differences in float64."""
    difference = position[:, None].astype(np.float64) - position[None].astype(np.float64)
    if box is not None:
        difference -= np.round(difference / box) * box
    distance = np.sqrt((difference**2).sum(axis=-1))
    i, j = np.nonzero(np.triu(distance < threshold, 1))
    return np.stack([i, j], axis=1), distance[i, j]


@given(seed=st.integers(0, 2**32), n=st.integers(0, 300), edge=st.floats(0.5, 300.0), threshold=st.floats(0.05, 12.0),
       single=st.booleans(), clumped=st.booleans())
@settings(max_examples=150, deadline=None)
def test_equals_brute_force(seed, n, edge, threshold, single, clumped):
    random = np.random.default_rng(seed)
    position = random.random((n, 3)) * edge
    if clumped and n:
        position += random.choice([0.0, 1e5], size=(n, 1))  # far clumps share buckets of the folded table
    position = position.astype(np.float32 if single else np.float64)
    expected, distance = brute_force(position, threshold)
    pairs, found = close_pairs(position, threshold)
    assert np.array_equal(pairs, expected)
    np.testing.assert_allclose(found, distance, rtol=1e-14)


@given(seed=st.integers(0, 2**32), n=st.integers(2, 200), ratio=st.floats(0.02, 0.5))
@settings(max_examples=80, deadline=None)
def test_periodic_equals_brute_force(seed, n, ratio):
    random = np.random.default_rng(seed)
    box = random.uniform(5.0, 20.0, 3)
    threshold = ratio * box.min()
    position = random.uniform(-30.0, 30.0, (n, 3))
    expected, distance = brute_force(position, threshold, box)
    # Wrapping rounds at 30 ulp(30): pairs this near to the threshold may fall on either side.
    if len(distance) and np.abs(distance - threshold).min() < 1e-12:
        return
    pairs, found = close_pairs(position, threshold, box=box)
    assert np.array_equal(pairs, expected)
    np.testing.assert_allclose(found, distance, atol=1e-12)


@pytest.fixture(scope="module")
def clumps():
    """(100,000, 3) float32: twenty clumps in a wide box."""
    random = np.random.default_rng(1)
    centres = random.random((20, 1, 3)) * 4000.0
    return (centres + random.random((20, 5000, 3)) * 37.0).reshape(-1, 3).astype(np.float32)


def swept(position, threshold):
    """All pairs below a threshold by brute force along a sorted axis: every pair within it along x is measured."""
    wide = position.astype(np.float64)
    order = np.argsort(wide[:, 0], kind="stable")
    x = wide[order]
    found = []
    for shift in range(1, len(x)):
        near = np.flatnonzero(x[shift:, 0] - x[:-shift, 0] < threshold)
        if len(near) == 0:
            break
        d = np.sqrt(((x[near] - x[near + shift]) ** 2).sum(axis=1))
        hit = near[d < threshold]
        found.append(np.sort(np.stack([order[hit], order[hit + shift]], axis=1), axis=1))
    pairs = np.concatenate(found)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def test_large_cloud_equals_brute_force(clumps):
    assert np.array_equal(close_pairs(clumps, 0.9)[0], swept(clumps, 0.9))


def test_equals_every_peer(clumps):
    """SciPy, MDAnalysis, gemmi and Biopython find the same pairs (100,000 and 5,000 atoms)."""
    import gemmi
    from Bio.PDB.kdtrees import KDTree
    from MDAnalysis.lib.distances import self_capped_distance

    def canonical(pairs):
        pairs = np.sort(np.asarray(pairs).reshape(-1, 2), axis=1)
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]

    ours = close_pairs(clumps, 1.2)[0]
    wide = clumps.astype(np.float64)
    assert np.array_equal(canonical(cKDTree(wide).query_pairs(1.2, output_type="ndarray")), ours)
    assert np.array_equal(canonical(self_capped_distance(clumps, 1.2, method="pkdtree", return_distances=False)), ours)
    few, expected = clumps[:5000], close_pairs(clumps[:5000], 1.2)[0]
    peer = KDTree(few.astype(np.float64), 10).neighbor_search(1.2)
    assert np.array_equal(canonical([[n.index1, n.index2] for n in peer]), expected)
    chain = gemmi.Chain("A")
    for k, place in enumerate(few.tolist()):
        residue, atom = gemmi.Residue(), gemmi.Atom()
        residue.name, residue.seqid = "AR", gemmi.SeqId(str(k))
        atom.name, atom.element, atom.serial, atom.pos = "AR", gemmi.Element("Ar"), k, gemmi.Position(*place)
        residue.add_atom(atom)
        chain.add_residue(residue)
    model = gemmi.Model("1")
    model.add_chain(chain)
    contacts = gemmi.ContactSearch(1.2)
    contacts.ignore = gemmi.ContactSearch.Ignore.Nothing
    peer = contacts.find_contacts(gemmi.NeighborSearch(model, gemmi.UnitCell(), 1.5).populate())
    assert np.array_equal(canonical([[c.partner1.atom.serial, c.partner2.atom.serial] for c in peer]), expected)


@given(seed=st.integers(0, 2**32), kinds=st.integers(1, 4), periodic=st.booleans())
@settings(max_examples=40, deadline=None)
def test_threshold_of_each_class(seed, kinds, periodic):
    """A pair counts below the limit of its two kinds and the overall threshold."""
    random = np.random.default_rng(seed)
    position, kind = random.random((150, 3)) * 9.0, random.integers(0, kinds, 150).astype(np.int8)
    limit = random.uniform(0.0, 3.0, (kinds, kinds))
    limit = (limit + limit.T) / 2
    box = np.full(3, 9.0) if periodic else None
    pairs, distance = brute_force(position, 2.5, box)
    keep = distance < limit[tuple(kind[pairs].T)]
    found, measured = close_pairs(position, 2.5, box=box, kind=kind, limit=limit)
    assert np.array_equal(found, pairs[keep])
    np.testing.assert_allclose(measured, distance[keep], atol=1e-12)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_same_for_any_thread_count(threads):
    position = np.random.default_rng(2).random((50_000, 3)) * 80.0
    one, several = close_pairs(position, 1.0), close_pairs(position, 1.0, threads=threads)
    assert np.array_equal(one[0], several[0]) and np.array_equal(one[1], several[1])


def test_memory_does_not_follow_the_box():
    position = np.random.default_rng(3).random((10_000, 3)) * 40.0
    position[5000:] += 1e6
    cells = CellList(position, 0.9)
    held = cells.position.nbytes + cells.nbytes + 4 * len(position)
    assert held <= 64 * len(position)


def test_bonded_pairs_are_left_out():
    """In a zigzag chain everything within three bonds is excluded, the fourth neighbour is not."""
    chain = np.stack([np.arange(30) * 0.3, 0.1 * (np.arange(30) % 2), np.zeros(30)], axis=1)
    graph = BondGraph(30, np.stack([np.arange(29), np.arange(1, 30)], axis=1))
    expected = brute_force(chain, 2.0)[0]
    expected = expected[expected[:, 1] - expected[:, 0] > 3]
    assert len(expected)
    assert np.array_equal(close_pairs(chain, 2.0, graph)[0], expected)
    assert np.array_equal(close_pairs(chain, 2.0, graph, box=np.full(3, 50.0))[0], expected)


def test_exclusions_of_a_nucleosome(nucleosome):
    """Against shortest paths through the bonds, for the atoms of one strand's first residues."""
    atoms = Atoms.from_solute(nucleosome)
    n = 200
    bonds = atoms.graph.bonds[(atoms.graph.bonds < n).all(axis=1)]
    joined = np.eye(n, dtype=bool)
    adjacency = np.zeros((n, n), dtype=bool)
    adjacency[tuple(bonds.T)] = adjacency[tuple(bonds.T[::-1])] = True
    for _ in range(3):
        joined |= joined @ adjacency
    expected = brute_force(nucleosome.position[:n], 3.0)[0]
    expected = expected[~joined[tuple(expected.T)]]
    assert np.array_equal(close_pairs(nucleosome.position[:n], 3.0, BondGraph(n, bonds))[0], expected)


def test_detection_moves_with_the_structure(nucleosome):
    """A rigid motion keeps every pair, up to rounding: positions change by 1e-13, so no distance does by 1e-12."""
    atoms = Atoms.from_solute(nucleosome)
    position = nucleosome.position.astype(np.float64)
    moved = Rotation.from_euler("xyz", [30, 50, 70], degrees=True).apply(position) + [100.0, -20.0, 5.0]
    pairs, distance = close_pairs(position, 2.0, atoms.graph)
    again, moved_distance = close_pairs(moved, 2.0, atoms.graph)
    assert np.array_equal(pairs, again)
    np.testing.assert_allclose(distance, moved_distance, atol=1e-11)


def test_spheres_equal_brute_force():
    random = np.random.default_rng(4)
    position = random.random((3000, 3)) * [500.0, 20.0, 20.0]
    centre = random.random((50, 3)) * [600.0, 30.0, 30.0] - 20.0
    for radius in (2.0, 15.0, 200.0):
        which, atom = CellList(position, 1.0).in_spheres(centre, radius)
        expected = np.argwhere(cdist(centre, position) < radius)
        found = np.stack([which, atom], axis=1)
        assert np.array_equal(found[np.lexsort(found.T[::-1])], expected)


def test_overlaps_of_two_carbons():
    """Two carbons 2.9 A apart overlap by 0.5 A; at 3.1 A by 0.3 A, which is no clash."""
    for separation, expected in ((2.9, 1), (3.1, 0)):
        atoms = Atoms(np.array([[0.0, 0, 0], [separation, 0, 0]]), np.array([6, 6], dtype=np.uint8),
                      np.array(["C1", "C2"]), np.array([0, 1], dtype=np.uint16), np.zeros(2, dtype=np.uint8),
                      np.array([0, 1], dtype=np.int32), ["X", "Y"], ["A:X:1", "A:Y:2"],
                      BondGraph(2, np.zeros((0, 2), dtype=np.int32)), np.array([-1, -1]))
        overlaps = find_overlaps(atoms)
        assert len(overlaps.pairs) == expected
        assert overlaps.clashscore == 500.0 * expected


def test_four_bonds_from_a_hydrogen_are_no_overlap():
    """H-C-C-C-C in a ring of sorts, its ends 2.3 A apart: Probe leaves out what four bonds join to a hydrogen, and
    counts the same distance between atoms that no bonds join (1.17 + 1.70 - 2.3 = 0.57 A).
    """
    position = np.array([[0.0, 0, 0], [1.09, 0, 0], [1.6, 1.4, 0], [1.2, 2.3, 1.1], [0.0, 2.3, 0.0]])
    for bonds, expected in ([[0, 1], [1, 2], [2, 3], [3, 4]], 0), ([[0, 1], [1, 2], [2, 3]], 1):
        atoms = Atoms(position, np.array([1, 6, 6, 6, 6], dtype=np.uint8), np.array(["X"]),
                      np.zeros(5, dtype=np.uint16), np.zeros(5, dtype=np.uint8), np.zeros(5, dtype=np.int32), ["X"],
                      ["A:X:1"], BondGraph(5, np.array(bonds, dtype=np.int32)), np.array([-1]))
        pairs = find_overlaps(atoms).pairs.tolist()
        assert ([0, 4] in pairs) == expected


def test_crystal_has_no_clash(nucleosome):
    assert len(find_clashes(nucleosome, 0.9)[0]) == 0


def test_bad_input():
    with pytest.raises(BadInputError, match="not numbers"):
        close_pairs(np.array([[0.0, 0, np.nan], [0, 0, 0]]), 1.0)
    with pytest.raises(BadInputError, match="smaller than twice"):
        close_pairs(np.zeros((2, 3)), 1.0, box=[5.0, 1.5, 5.0])
