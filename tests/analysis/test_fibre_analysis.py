"""A fibre of nucleosomes: planted distances, stacking, linkers and angles, and its map as a .cool file."""

import subprocess
import sys

import h5py
import numpy as np
import pytest
from support.placed_nucleosomes import joined, place_nucleosomes
from support.universes import built_dna, universe_of

from chromabuild.analysis.contact_maps import ContactMaps
from chromabuild.analysis.fibre_analysis import FibreAnalysis, nucleosome_bins, path_topology
from chromabuild.analysis.histones import find_octamers, reference_fold, superposition
from chromabuild.dna.linking import twist, writhe
from chromabuild.dna.steps import analyse, rebuild, rotation_about_z
from chromabuild.genome.contact_map import write_nucleosome_map
from mesoscale.observables import MONONUCLEOSOME_RADIUS, MONONUCLEOSOME_S20W

FREE, LINKER, KINK = 20, 30, 25.0


def own_frame():
    """Where the fixture's nucleosome stands."""
    solute = place_nucleosomes([(np.eye(3), np.zeros(3))], keep="ABCDEFGH")
    (octamer,) = find_octamers(universe_of(solute))
    atoms, places = octamer.core()
    return superposition(places, solute.position[atoms].astype(float))[:2]


@pytest.fixture(scope="module")
def dinucleosome():
    """Two nucleosomes on 1KX5's path, a linker of 30 base pairs with a kink, straight ends, and its base pairs."""
    fold = reference_fold()
    wrapped = analyse(fold.path[:-1], fold.frame[:-1], fold.path[1:], fold.frame[1:])
    straight = np.array([0, 0, 3.4, 0, 0, 36.0])
    linker = np.tile(straight, (LINKER + 1, 1))
    linker[LINKER // 2, 4] = KINK
    steps = np.concatenate([np.tile(straight, (FREE, 1)), wrapped, linker, wrapped, np.tile(straight, (FREE, 1))])
    origin, frame = rebuild(steps)
    place, turn = own_frame()
    transforms = []
    for first in (FREE, FREE + 147 + LINKER):
        core = frame[first + 73] @ fold.frame[73].T
        rotation = core @ turn.T
        transforms.append((rotation, origin[first + 73] - core @ fold.path[73] - rotation @ place))
    dna = built_dna(("GATTACAGCC" * 40)[:len(origin)], origin, frame, np.zeros((len(origin), 6)))
    histones = place_nucleosomes(transforms, keep="ABCDEFGH")
    return universe_of(joined([dna, histones])), origin, frame


def test_writhe_and_knots_of_open_paths(dinucleosome):
    """Five base pairs a point are enough: 1.65 turns of 1KX5's path about a pitch of 26 angstrom, drawn by 29 chords,
    keep their writhe to a tenth of a turn. A trefoil that is opened at a lobe
    stays one, also when it is pressed flat, a coil is none, and the mirror image has the opposite writhe."""
    _, origin, frame = dinucleosome
    turns, coiling, knot = path_topology(origin, frame)
    assert coiling == pytest.approx(writhe(origin), abs=0.1) and knot == 1
    assert turns == twist(origin, frame)
    assert path_topology(-origin, frame)[1] == pytest.approx(-coiling, abs=1e-6)
    t = np.linspace(0, 2 * np.pi, 401)[:-1] + np.pi / 3  # begins at the outer end of a lobe
    curve = 150 * np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1)
    lobe = np.argmax(np.linalg.norm(curve, axis=1))
    cut = np.roll(curve, -lobe, axis=0)[10:-10]
    upright = np.tile(np.eye(3), (len(cut), 1, 1))
    assert path_topology(cut, upright)[2] == 3
    assert path_topology(cut * [1, 1, 0.01], upright)[2] == 3


def test_planted_linkers_and_angles(dinucleosome):
    universe, origin, frame = dinucleosome
    found = FibreAnalysis(universe).run()
    assert [one.dyad for one in found.whole.nucleosomes] == [FREE + 73, FREE + 147 + LINKER + 73]
    (linker,) = found.linkers
    assert linker.length == LINKER
    bend, twist = found.results.linker[0, 0]
    assert bend == pytest.approx(KINK, abs=1e-3) and twist == pytest.approx(36.0 * (LINKER + 1), abs=2e-3)
    fold = reference_fold()
    # Straight ends follow the first and the last base pair of the path, and the kink leaves each half linker straight.
    entry, leave = fold.frame[0][:, 2], fold.frame[-1][:, 2]
    expected = np.degrees(np.arccos(-entry @ leave))
    assert found.results.entry_exit[0] == pytest.approx(expected, abs=2e-3)
    assert found.results.gyration[0] == pytest.approx(np.sqrt(((origin - origin.mean(0)) ** 2).sum(1).mean()), abs=1e-3)


@pytest.mark.parametrize(("turn", "shift", "stacked"), [
    (0, (0, 0, 60.0), 1), (0, (0, 0, 85.0), 0), (0, (60.0, 0, 0), 0), (90, (0, 0, 60.0), 1)])
def test_planted_stacking_and_size(turn, shift, stacked):
    place, frame = own_frame()
    own = (frame.T, -frame.T @ place)
    about = rotation_about_z(np.radians(float(turn)))
    other = (about @ own[0], about @ own[1] + shift)
    analysis = FibreAnalysis(universe_of(place_nucleosomes([own, other]))).run()
    found = analysis.results
    apart = float(np.linalg.norm(shift))
    assert found.next[0, 0] == pytest.approx(apart, abs=1e-2) and found.stacked[0] == stacked
    # Kirkwood: s1 (1 + R / m * sum over ordered pairs of 1 / distance), nanometres.
    kirkwood = MONONUCLEOSOME_S20W * (1 + MONONUCLEOSOME_RADIUS / 2 * 2 * 10 / apart)
    assert found.sedimentation[0] == pytest.approx(kirkwood, rel=1e-3)
    assert analysis.contacts().tolist() == [[0, 1], [1, 0]]


def test_contacts_of_base_pairs_and_beads_are_those_of_all_pairs(dinucleosome):
    """Counted by brute force, in two processes; the chromosome begins elsewhere, between borders of bins."""
    universe, origin, _ = dinucleosome
    frames = np.stack([universe.atoms.positions, universe.atoms.positions + 7.0])
    moved = universe.copy()
    moved.load_new(frames)
    maps = ContactMaps(moved, start=1020).run(backend="multiprocessing", n_workers=2)
    apart = np.linalg.norm(origin[:, None] - origin[None], axis=2)
    assert np.array_equal(maps.results.base_pairs.toarray(), 2 * np.triu(apart <= 50.0, 1))
    free = np.array([*range(FREE), *range(FREE + 147, FREE + 147 + LINKER), *range(len(origin) - FREE, len(origin))])
    bead = free[4::9]
    dyads = [FREE + 73, FREE + 147 + LINKER + 73]
    place = np.concatenate([dyads, bead]) + 1020 - 1000
    fold = reference_fold()
    cores = [origin[k] - frame @ fold.frame[73].T @ fold.path[73] for k, frame in
             zip(dyads, dinucleosome[2][dyads], strict=True)]
    particle = np.concatenate([cores, origin[bead]])
    near = np.linalg.norm(particle[:, None] - particle[None], axis=2) < 250.0
    expected = np.zeros((len(maps.results.beads),) * 2, int)
    for one, other in np.argwhere(np.triu(near, 1)):
        low, high = sorted((place[one] // 50, place[other] // 50))
        expected[low, high] += 2
    assert maps.resolution == 50 and np.array_equal(np.triu(maps.results.beads), expected)


def test_processes_add_up(dinucleosome):
    universe = dinucleosome[0].copy()
    universe.load_new(np.repeat(universe.atoms.positions[None], 5, axis=0))
    analysis = FibreAnalysis(universe).run(backend="multiprocessing", n_workers=2)
    assert analysis.results.next.shape == (5, 1)
    near = int(analysis.results.next[0, 0] < 120)
    assert analysis.contacts().tolist() == [[0, 5 * near], [5 * near, 0]]
    assert analysis.contacts(3).tolist() == [[0, 2 * near], [2 * near, 0]]


def test_map_of_nucleosomes_is_read_by_hictk(dinucleosome, tmp_path):
    whole = FibreAnalysis(dinucleosome[0]).whole
    edge = nucleosome_bins(whole, start=1000)
    assert edge.tolist() == [1000, 1000 + FREE + 147 + LINKER // 2, 1000 + 2 * (FREE + 147) + LINKER]
    write_nucleosome_map(np.array([[5, 2], [2, 7]]), edge, "chrV", tmp_path / "map.cool")
    read = ("import sys, hictkpy; file = hictkpy.File(sys.argv[1]); "
            "print([dict(file.chromosomes()), file.fetch().to_numpy().tolist()])")
    # By another process: from its import on hictkpy keeps a core busy.
    done = subprocess.run([sys.executable, "-c", read, tmp_path / "map.cool"], capture_output=True, text=True)
    assert done.stdout.strip() == str([{"chrV": int(edge[-1])}, [[0, 0, 0], [0, 5, 2], [0, 2, 7]]]), done.stderr
    with h5py.File(tmp_path / "map.cool") as file:
        assert file["bins/start"][...].tolist() == [0, *edge[:-1]] and file.attrs["bin-type"] == "variable"
