"""Relaxation of stacked bases."""

import numpy as np

from chromabuild.build.duplex import base_frames
from chromabuild.dna import stacking
from chromabuild.dna.backbone import place_bases
from chromabuild.dna.helix import crystal_path, straight_path
from chromabuild.dna.sequence import BASES, both_strands
from chromabuild.dna.stacking import relax_bases
from chromabuild.dna.steps import FLIP, analyse, dna_parameters, split_pair


def unrelaxed(sequence, origin, frame):
    pair = np.array([dna_parameters().pair[letter] for letter in BASES])[sequence]
    (origin_i, frame_i), (origin_j, frame_j) = split_pair(origin, frame, pair)
    return (both_strands(sequence), np.concatenate([origin_i, origin_j[::-1]]),
            np.concatenate([frame_i, frame_j[::-1]]), pair)


def closest_stacked(bases, origin, frame):
    """(n - 1,) shortest distance between base atoms of neighbouring pairs."""
    n, layout = len(bases) // 2, stacking.base_layout()
    atoms = place_bases(bases, origin, frame)[0]
    atoms[np.arange(11) >= layout.size[bases][:, None]] = np.nan
    pairs = np.concatenate([atoms[:n], atoms[n:][::-1]], axis=1)
    return np.array([np.nanmin(np.linalg.norm(a[:, None] - b[None], axis=2))
                     for a, b in zip(pairs[:-1], pairs[1:], strict=True)])


def wrapped(seed):
    sequence = np.random.Generator(np.random.Philox(key=seed)).integers(0, 4, 147)
    return unrelaxed(sequence, *crystal_path())


def test_bases_threaded_on_the_crystal_path_no_longer_overlap():
    bases, origin, frame, pair = wrapped(1)
    before = closest_stacked(bases, origin, frame)
    relaxed = relax_bases(bases, origin, frame, pair)
    after = closest_stacked(bases, *relaxed)
    # The contact distance less one deviation of it: what elasticity and contact settle on.
    assert before.min() < 2.6 < 2.75 < after.min()
    moved = np.linalg.norm(relaxed[0] - origin, axis=1)
    assert moved.max() < 1.0 and moved.mean() < 0.15


def test_straight_dna_stays_where_it_is():
    sequence = np.arange(24) % 4
    bases, origin, frame, pair = unrelaxed(sequence, *straight_path(24))
    place, turn = relax_bases(bases, origin, frame, pair)
    assert np.linalg.norm(place - origin, axis=1).max() < 0.25
    assert np.allclose(np.swapaxes(turn, 1, 2) @ turn, np.eye(3), atol=1e-12)


def test_pairs_keep_their_hydrogen_bonds():
    bases, origin, frame, pair = wrapped(2)
    place, turn = relax_bases(bases, origin, frame, pair)
    found = analyse(place[147:][::-1], turn[147:][::-1] @ FLIP, place[:147], turn[:147])
    assert np.abs(found - pair)[:, 1].max() < 0.35  # stretch, angstrom
    assert np.abs(found - pair)[:, 5].max() < 10.0  # opening, degree


def test_pieces_and_threads_do_not_matter(monkeypatch):
    sequence = np.random.Generator(np.random.Philox(key=5)).integers(0, 4, 147)
    origin, frame = crystal_path()
    path = np.concatenate([origin, origin + [0, 0, 500.0]]), np.concatenate([frame, frame])
    bases, origin, frame, pair = unrelaxed(np.tile(sequence, 2), *path)
    one, two = (relax_bases(bases, origin, frame, pair, threads) for threads in (1, 2))
    assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])
    monkeypatch.setattr(stacking, "PIECE", 1000)
    whole = relax_bases(bases, origin, frame, pair)
    # A piece's margin of 12 pairs: what lies beyond is felt by less than the convergence criterion.
    assert np.abs(whole[0] - one[0]).max() < 0.1


def test_result_turns_with_the_molecule():
    sequence = np.random.Generator(np.random.Philox(key=6)).integers(0, 4, 147)
    origin, frame = crystal_path()
    turn = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    _, plain, _ = base_frames(sequence, origin, frame)
    _, turned, _ = base_frames(sequence, origin @ turn.T, turn @ frame)
    assert np.abs(turned - plain @ turn.T).max() < 1e-9
