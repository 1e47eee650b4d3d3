"""Rhombic dodecahedra and truncated octahedra: images, contacts across faces, density, bricks, and files of them."""

import gemmi
import numpy as np
import pytest
from MDAnalysis.lib.distances import capped_distance, self_capped_distance
from scipy.spatial import cKDTree
from support.triclinic_systems import all_images

from chromabuild.base.box_vectors import (
    SHAPES,
    box_of_frame,
    cell_of,
    edges_and_angles,
    folded,
    nearest_to,
    straight,
    vectors_of,
    with_images,
    wrapped,
)
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.structure_file import StructureFile
from chromabuild.shards import read_shards, verify_shards
from chromabuild.shards.brick_file import read_brick
from chromabuild.shards.merge import merge_shards
from chromabuild.solvate import Part, prepare, solvate
from chromabuild.solvate.ions import MINIMUM_DISTANCE
from chromabuild.solvate.placement import check_filling, leaning_box, straight_in
from chromabuild.solvate.water import GAP_AT_FACES, seam_changes, tiling_of, water_tile
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.detect import close_pairs

PADDING = 4.0
WATER_CONTACTS = {(0, 0): 2.3, (0, 1): 1.5, (1, 1): 1.3}
"""Angstrom between oxygens (0) and hydrogens (1) of two waters across a face."""


@pytest.fixture(scope="module", params=[*SHAPES])
def shape(request):
    return request.param


@pytest.fixture(scope="module")
def section(shape):
    return SolvateSection(box=shape, padding=PADDING, brick_edge=35.0)


@pytest.fixture(scope="module")
def made(solute, section, tmp_path_factory):
    """Folder, manifest, vectors and positions."""
    folder = tmp_path_factory.mktemp("leaning")
    manifest = solvate(solute, section, 1, 1, folder)
    return folder, manifest, *read_shards(folder)


def parts(manifest, position):
    """Solute, waters (w, 3, 3), and ions."""
    n, w = manifest.counts["solute"], manifest.counts["water"]
    return position[:n], position[n:n + 3 * w].reshape(-1, 3, 3), position[n + 3 * w:]


def test_images_are_twice_the_padding_apart(made, solute):
    """And no farther than the solute needs: in one direction they are as near as that, as far as rounding goes."""
    folder, manifest, vectors, position = made
    placed, _, _ = parts(manifest, position)
    assert np.ptp(placed - solute.position, axis=0).max() < 0.002  # in one piece
    tree = cKDTree(placed)
    images = all_images(vectors)[1:]
    assert min(tree.query(placed + image)[0].min() for image in images) >= 2 * PADDING - 1e-3
    length = np.linalg.norm(images, axis=1)
    free = [distance - np.ptp(placed @ (image / distance)) for image, distance in zip(images, length, strict=True)]
    assert min(free) == pytest.approx(2 * PADDING, abs=0.02)
    verify_shards(folder)


def test_nothing_overlaps_across_any_face(made):
    """By MDAnalysis, which searches leaning boxes in another way."""
    _, manifest, vectors, position = made
    solute, water, ions = parts(manifest, position)
    cell = edges_and_angles(vectors).astype(np.float32)
    sites = water.reshape(-1, 3).astype(np.float32)
    pairs, distance = self_capped_distance(sites, 2.3, box=cell)
    apart = pairs[:, 0] // 3 != pairs[:, 1] // 3
    kinds = np.sort(np.minimum(pairs[apart] % 3, 1), axis=1)
    for kind, least in WATER_CONTACTS.items():
        # Waters of the tile itself may be a little nearer than those across a face.
        found = distance[apart][(kinds == kind).all(axis=1)]
        assert found.min(initial=9) > min(least, tile_contact(kind)) - 0.002
    _, near = capped_distance(solute.astype(np.float32), sites, 2.0, box=cell)
    assert near.min() > 1.3 - 0.002
    _, near = capped_distance(solute.astype(np.float32), ions.astype(np.float32), 6.0, box=cell)
    assert near.min() > MINIMUM_DISTANCE / 1000 - 0.002
    _, near = self_capped_distance(ions.astype(np.float32), 8.0, box=cell)
    assert near.min() > MINIMUM_DISTANCE / 1000 - 0.002


def tile_contact(kind):
    """The nearest that two waters of the tile come to each other."""
    tile = water_tile()
    sites = tile.position[:, :3].reshape(-1, 3) / 1000
    cell = np.array([tile.edge / 1000] * 3 + [90] * 3, dtype=np.float32)
    pairs, distance = self_capped_distance(sites.astype(np.float32), 2.3, box=cell)
    apart = pairs[:, 0] // 3 != pairs[:, 1] // 3
    return distance[apart][(np.sort(np.minimum(pairs[apart] % 3, 1), axis=1) == kind).all(axis=1)].min(initial=9)


def test_as_many_waters_as_the_volume_holds(made, shards, shape):
    """With what the solute displaces in a rectangular box: within 1 %, and in proportion to the cube's volume."""
    _, manifest, vectors, _ = made
    _, upright, box, _ = shards
    density = water_tile().n_molecules / (water_tile().edge / 1000) ** 3

    def solvent(one):
        return sum(count for key, count in one.counts.items() if key != "solute")

    displaced = np.prod(box - GAP_AT_FACES) * density - solvent(upright)
    volume = np.linalg.det(vectors)
    assert solvent(manifest) == pytest.approx(volume * density - displaced, rel=0.01)
    share = {"dodecahedron": 0.7071, "octahedron": 0.7698}[shape]
    assert volume == pytest.approx(share * vectors[0, 0] ** 3, rel=1e-4)
    assert manifest.net_charge == 0
    assert manifest.counts["chloride"] / solvent(manifest) * 55.5 == pytest.approx(0.15, rel=0.01)


def test_water_has_its_density_in_boxes_of_any_size():
    """Across displaced faces a layer of half an angstrom is missing at most, as across straight ones."""
    generator = np.random.default_rng(3)
    tile = water_tile()
    for edge in generator.uniform(60_000, 90_000, 3):
        for name in SHAPES:
            tiling = tiling_of(leaning_box(name, edge), "tip3p")
            oxygen = tiling.unwrapped_oxygens(np.arange(tiling.n_tiles)).reshape(-1, 3)
            dropped, added = seam_changes(tiling)
            waters = (oxygen < np.array(tiling.box)).all(axis=1).sum() - len(dropped) + len(added)
            a, b, c = np.array(tiling.box) / 1000
            missing = a * b * c - waters * (tile.edge / 1000) ** 3 / tile.n_molecules
            assert -0.05 < missing / (a * b + b * c + c * a) < 0.75


def test_bricks_hold_what_lies_in_them(made):
    """Corners are straight; every residue stands in the brick of its reference atom."""
    folder, manifest, vectors, position = made
    place = straight(wrapped(position, vectors), vectors)
    n, w = manifest.counts["solute"], manifest.counts["water"]
    for shard in manifest.shards:
        brick = read_brick(folder / f"{shard.name}.cbb")
        ids = brick.global_id
        alone = ids[(ids >= n) & (((ids - n) % 3 == 0) | (ids >= n + 3 * w))]
        inside = place[alone]
        # Rounding may put an atom on a face on either side.
        assert (inside >= brick.lower - 2e-3).all() and (inside < brick.upper + 2e-3).all()
        assert len(ids) == shard.atoms > 0


def test_each_brick_can_be_made_alone_and_by_many(made, solute, section, tmp_path):
    folder, manifest, _, _ = made
    n = len(manifest.shards)
    solvate(solute, section, 1, 1, tmp_path, only=[n - 1, 0])
    for k in range(3):
        solvate(solute, section, 1, 2, tmp_path, only=Part(k, 3))
    written = {path.name: path.read_bytes() for path in sorted(folder.glob("brick_*"))}
    assert {path.name: path.read_bytes() for path in sorted(tmp_path.glob("brick_*"))} == written
    for name in ("manifest.json", "bricks.txt", "plan.h5"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
    assert prepare(solute, section, 1, 1, folder).grid.n_bricks == n


def test_files_tell_the_vectors(made, tmp_path):
    """CRYST1 and _cell as gemmi reads them; waters stand in the cell around the solute, its middle in the middle."""
    folder, manifest, vectors, position = made
    merge_shards(folder, "all", tmp_path / "all.pdb")
    merge_shards(folder, "not water", tmp_path / "some.cif")
    angles = edges_and_angles(vectors)
    for name in ("all.pdb", "some.cif"):
        cell = gemmi.read_structure(str(tmp_path / name)).cell
        assert cell.parameters == pytest.approx(angles, abs=0.006)
        np.testing.assert_allclose(vectors_of(StructureFile.read(tmp_path / name).box), vectors, atol=0.02)
    solute, water, _ = parts(manifest, position)
    middle = vectors.sum(axis=0) / 2
    assert (solute.min(axis=0) + solute.max(axis=0)) / 2 == pytest.approx(middle, abs=0.002)
    assert np.abs(nearest_to(middle, water[:, 0], vectors)).max() < 1e-9
    corners, _ = cell_of(vectors)
    assert np.linalg.norm(water[:, 0] - middle, axis=1).max() <= np.linalg.norm(corners - middle, axis=1).max() + 0.1
    assert merge_shards(folder, "within 4 of solute", tmp_path / "near.pdb") > len(solute)


def test_clash_check_looks_across_leaning_faces(made, tmp_path):
    """Two waters that meet through a displaced face alone."""
    _, _, vectors, _ = made
    lines = ["CRYST1{:9.3f}{:9.3f}{:9.3f}{:7.2f}{:7.2f}{:7.2f} P 1           1".format(*edges_and_angles(vectors))]
    top = np.array([20.0, 20.0, vectors[2, 2] - 0.2])
    below = top - vectors[2] + [0, 0, 0.5]
    below = folded(below[None], vectors)[0]
    for k, oxygen in enumerate([top, below], 1):
        for name, shift in (("O", (0, 0, 0)), ("H1", (0.9572, 0, 0)), ("H2", (-0.24, 0.9266, 0))):
            x, y, z = oxygen + shift
            lines.append(f"HETATM{len(lines):5d}  {name:<3s} HOH W{k:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00"
                         f"          {name[0]:>2s}")
    (tmp_path / "two.pdb").write_text("\n".join([*lines, "END", ""]))
    atoms = Atoms.from_file(tmp_path / "two.pdb")
    pairs, distance = close_pairs(atoms.position, 0.9, atoms.graph, atoms.box)
    assert pairs.tolist() == [[0, 3], [1, 4], [2, 5]] and distance == pytest.approx(0.5, abs=0.01)


def test_images_by_trying_all(shape):
    """Wrapping, images near the faces and nearest images, against all translations."""
    vectors = leaning_box(shape, 40_000)
    generator = np.random.default_rng(5)
    points = generator.integers(-90_000, 90_000, (400, 3)).astype(np.int32)
    inside = folded(points, vectors)
    assert ((inside >= 0) & (inside < np.diag(vectors))).all()
    turns = (points - inside) @ np.linalg.inv(vectors)
    assert np.abs(turns - np.round(turns)).max() < 1e-9
    lattice = np.round(all_images(vectors)).astype(int)
    every = (inside[:, None] + lattice).reshape(-1, 3)
    near = every[((every >= -7000) & (every < np.diag(vectors) + 7000)).all(axis=1)]
    found, source = with_images(inside, vectors, 7000)
    assert {tuple(p) for p in near.tolist()} == {tuple(p) for p in found.tolist()} and len(near) == len(found)
    assert (folded(found, vectors) == inside[source]).all()
    middle = vectors.sum(axis=0) / 2
    moved = points + nearest_to(middle, points, vectors)
    least = np.linalg.norm(inside[:, None] + lattice - middle, axis=2).min(axis=1)
    assert np.linalg.norm(moved - middle, axis=1) == pytest.approx(least, abs=0.1)
    place = straight_in(points, vectors)
    assert np.abs(place - straight(wrapped(points.astype(float), vectors), vectors)).max() <= 1 + 1e-6
    assert (straight_in(points + vectors[1] - vectors[2], vectors) == place).all()


def test_cells_of_frames():
    cell = np.array([60.0, 90.0, 60.0, 60.0, 60.0, 60.0])
    expected = SHAPES["dodecahedron"] * 60
    np.testing.assert_allclose(box_of_frame(cell), expected, atol=1e-9)
    cell[[1, 3, 4]] = np.cos(np.radians(cell[[1, 3, 4]]))
    np.testing.assert_allclose(box_of_frame(cell), expected, atol=1e-9)
    assert box_of_frame(np.array([50, 90, 51, 90, 90, 52.0])).tolist() == [50, 51, 52]
    assert box_of_frame(np.zeros(6)) is None


def test_boxes_that_cannot_be(shape):
    with pytest.raises(BadInputError, match="below 20 A"):
        check_filling(leaning_box(shape, 20_000))
    with pytest.raises(BadInputError, match="columns of PDB files begin at -999.999"):
        check_filling(leaning_box(shape, 4_000_000))
