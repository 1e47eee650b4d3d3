"""Maps about a solute: planted ions, a solution without a solute's trace, and potentials of waves summed one by one."""

import csv

import MDAnalysis
import mrcfile
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.solvated_dna import solvated

from chromabuild.analysis.potential_mesh import SMEARING, PotentialMesh
from chromabuild.analysis.solvent_maps import MOLAR, SolventMaps
from chromabuild.base.constants import COULOMB_CONSTANT
from chromabuild.base.errors import BadInputError
from chromabuild.pipeline.analysis import Source, analyse

BOX = np.array([70.0, 75.0, 80.0, 90.0, 90.0, 90.0])


def wave_sum(points, position, charge, cell, dielectric=1.0, screening=0.0, highest=14):
    """The potential at points, wave by wave; waves beyond ``highest`` weigh less than 1e-13."""
    numbers = np.stack(np.meshgrid(*[np.arange(-highest, highest + 1)] * 3), axis=-1).reshape(-1, 3)
    waves = 2 * np.pi * numbers @ np.linalg.inv(cell).T
    square = (waves**2).sum(axis=1)
    waves, square = waves[square + screening > 0], square[square + screening > 0]
    factor = 4 * np.pi * np.exp(-square / (4 * SMEARING**2)) / (square + screening**2) / abs(np.linalg.det(cell))
    density = np.exp(-1j * position @ waves.T).T @ charge
    return COULOMB_CONSTANT / dielectric * (np.exp(1j * points @ waves.T) @ (factor * density)).real


@pytest.mark.parametrize(("dielectric", "screening"), [(1.0, 0.0), (78.5, 0.1)])
def test_potentials_are_those_of_all_waves(dielectric, screening):
    rng = np.random.default_rng(1)
    cell = np.array([[30.0, 0, 0], [4.0, 27.0, 0], [-3.0, 5.0, 25.0]])
    position, charge = rng.uniform(-40, 40, (60, 3)), rng.normal(size=60)
    charge -= charge.mean() if not screening else 0.0
    points = rng.uniform(-50, 50, (200, 3))
    found = PotentialMesh(position, charge, cell).potential(COULOMB_CONSTANT, dielectric, screening).at(points)
    judged = wave_sum(points, position, charge, cell, dielectric, screening)
    # Linear weights alias waves of one mesh spacing, damped by exp(-(pi/SMEARING)^2/4) there; cubic interpolation
    # between mesh points errs by (h SMEARING)^4 of the spread.
    assert np.abs(found - judged).max() < 0.01 * judged.std()


def turned(universe, seed):
    """The system turned and moved, in any image of its box: frames of a rigid body."""
    rotation, moved = Rotation.random(random_state=seed).as_matrix(), np.random.default_rng(seed).uniform(-30, 30, 3)
    return universe.atoms.positions @ rotation.T + moved


def test_planted_ions_stay_where_the_molecule_carries_them():
    places = np.array([[8.0, 3.0, 20.0], [-6.0, 9.0, 5.0]])
    universe, _ = solvated(["MG", "NA"], 0, [places], BOX)
    built = universe.atoms.positions[:-2].copy()
    frames = np.array([turned(universe, seed) for seed in range(6)])
    frames -= BOX[:3] * np.floor(frames / BOX[:3])  # every atom in the box, whatever becomes of molecules
    universe.load_new(frames.astype(np.float32), dimensions=np.tile(np.float32(BOX), (6, 1)), dt=2.0)
    maps = SolventMaps(universe).run()
    for seen, place in zip(maps.results.ions, places, strict=True):
        assert seen.sum() == 6  # no image comes near
        voxels = np.argwhere(seen)
        assert (np.ptp(voxels, axis=0) <= 1).all()  # positions are single: one voxel, or two about a border
        middle = maps.grid.first + maps.grid.spacing * voxels[0]
        # Distances from all atoms are those that were planted, to half a diagonal of a voxel.
        there = np.linalg.norm(maps.structure - middle, axis=1)
        assert np.abs(there - np.linalg.norm(built - place, axis=1)).max() < np.sqrt(3) / 2 + 1e-3
        (peak, number), = maps.grid.peaks(seen, maps.n_frames)
        assert number == 1.0 and np.linalg.norm(peak - middle) < 1.0 + 1e-9
    assert maps.TOTALS == ("ions",)  # neither water nor charges


def test_a_solution_of_one_concentration_gives_a_flat_map():
    ions, waters = 300, 3000
    frames = np.random.default_rng(5).uniform(0, 1, (4, ions + waters, 3)) * BOX[:3]
    universe, _ = solvated(["K"] * ions, waters, frames, BOX)
    maps = SolventMaps(universe).run()
    for name, number in (("K+", ions), ("water", waters)):
        expected = number / np.prod(BOX[:3]) * MOLAR
        seen = (maps.results.ions if name == "K+" else maps.results.water).sum()
        # Counts of images overlap where the map is wider than the box: at most each ion twice, so twice the variance.
        assert maps.molar(name).mean() == pytest.approx(expected, rel=5 * np.sqrt(2 / seen))


def test_files_are_read_back(tmp_path):
    universe, _ = solvated(["MG", "NA"], 3, [np.array([[12.0, 0, 0], [0, 12.0, 4], *np.eye(3) * 14])], BOX)
    charge = np.zeros(universe.atoms.n_atoms)
    charge[-5:-3], charge[0] = (2.0, 1.0), -3.0
    universe.add_TopologyAttr("charges", charge)
    maps = SolventMaps(universe).run()
    names = maps.write(tmp_path)
    assert sorted(names) == sorted(p.name for p in tmp_path.iterdir())
    with mrcfile.open(tmp_path / "map_Mg2+.mrc") as file:
        # Sections of the file are planes of z, and its origin is a whole number of voxels away.
        assert np.allclose(file.data.transpose(2, 1, 0), maps.molar("Mg2+"))
        start = np.array([file.nstart[axis].item() for axis in "xyz"])
        assert np.allclose(start * file.voxel_size.x, maps.grid.first, atol=1e-4)
    shown = MDAnalysis.Universe(str(tmp_path / "map_structure.pdb"))
    assert np.abs(shown.atoms.positions - maps.structure).max() < 6e-4  # three decimals
    assert maps.potential("explicit").shape == maps.grid.shape


def test_a_map_needs_a_nucleosome_that_is_there():
    universe, _ = solvated(["MG"], 0, [np.zeros((1, 3))], BOX)
    with pytest.raises(BadInputError, match="the file holds no nucleosome"):
        SolventMaps(universe, nucleosome=1, whose="the file")


def test_frames_before_ions_have_settled_are_in_no_map(tmp_path):
    """Five ions that come to the phosphates after 20 of 60 frames, and are there in 6 of 10 frames from then on."""
    random = np.random.default_rng(7)
    at, away = np.array([13.0, 0.0, 9.0]), np.array([30.0, 0.0, 0.0]) + 8 * np.eye(5, 3)
    there = random.random((60, 5)) < 0.6
    there[:20] = False
    frames = np.where(there[..., None], at, away)
    universe, _ = solvated(["NA"] * 5, 0, frames, BOX)
    source = Source(universe, "planted", (), tmp_path / "none", 2.0 * np.arange(60))
    found = analyse(source, tmp_path, ("map",))
    first = round(found["equilibrated_from_ps"] / 2)
    assert 19 <= first <= 26  # a few frames at the end of the rise may count as either
    with open(tmp_path / "map_peaks.csv", newline="") as file:
        peaks = list(csv.DictReader(file))
    assert {float(peak["from_ps"]) for peak in peaks} == {2.0 * first}
    assert float(peaks[0]["ions_mean"]) == pytest.approx(there[first:].sum(axis=1).mean(), rel=1e-5)
    with open(tmp_path / "map_series.csv", newline="") as file:
        bound = [int(row["bound_Na+_count"]) for row in csv.DictReader(file)]
    assert bound == there.sum(axis=1).tolist()
