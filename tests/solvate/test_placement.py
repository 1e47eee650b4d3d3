"""Any region of the placed solute against a selection from all of it; the file is made again when it is damaged."""

import numpy as np
import pytest

from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.solvate import placement
from chromabuild.solvate.placement import place_solute


@pytest.fixture(scope="module")
def placed(solute, tmp_path_factory):
    """The solute in cells of 9 angstrom, written in chunks of 500 atoms."""
    folder = tmp_path_factory.mktemp("placed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "CELL_EDGE", 9000)
        patch.setattr(placement, "_ATOMS_A_CHUNK", 500)
        yield place_solute(solute, SolvateSection(), folder)[0]


def expected_position(solute, box):
    """Centred in the box, in whole thousandths."""
    thousandths = np.rint(solute.position.astype(np.float64) * 1000).astype(np.int64)
    lower, upper = thousandths.min(0), thousandths.max(0)
    return thousandths - lower + (box - (upper - lower)) // 2


def test_whole_solute_comes_back_in_order(placed, solute):
    region = placed.residues_in(np.zeros(3, dtype=int), placed.box)
    assert np.array_equal(region.first_atom, solute.residue_first_atom[:-1])
    assert np.array_equal(region.template, solute.residue_template)
    assert np.array_equal(region.number, solute.residue_number)
    assert np.array_equal(region.segment, solute.residue_segment)
    assert np.array_equal(region.position, expected_position(solute, placed.box))
    assert [bytes(name).decode() for name in placed.segment_name] == solute.segment_name


def test_regions_are_those_of_the_whole(placed, solute):
    whole = placed.residues_in(np.zeros(3, dtype=int), placed.box)
    rng = np.random.default_rng(1)
    reach = np.abs(whole.position - np.repeat(whole.reference, whole.size, axis=0)).max()
    assert placed.reach == reach
    sizes = []
    for _ in range(40):
        lower, upper = np.sort(rng.integers(0, placed.box + 1, (2, 3)), axis=0)
        upper = np.maximum(upper, lower + 1)
        inside = np.flatnonzero(((whole.reference >= lower) & (whole.reference < upper)).all(1))
        region = placed.residues_in(lower, upper)
        assert np.array_equal(region.first_atom, whole.first_atom[inside])
        assert np.array_equal(region.position, whole.select(inside).position)
        sizes.append(len(inside))
    assert max(sizes) > 30 and min(sizes) < 5


def test_layers_hold_all_atoms_at_their_height(placed):
    whole = placed.residues_in(np.zeros(3, dtype=int), placed.box)
    height = int(placed.box[2])
    for lower, upper in ((-8000, 3000), (0, 20_000), (height - 4000, height + 12_000)):
        layer = placed.layer(lower, upper)
        found = {tuple(row) for row in layer.position.tolist() if lower <= row[2] < upper}
        wanted = {(x, y, z + image * height) for x, y, z in whole.position.tolist() for image in (-1, 0, 1)
                  if lower <= z + image * height < upper}
        assert found == wanted and len(layer.template) < 3 * len(whole.template)


def test_positions_may_stay_in_the_file(solute, tmp_path):
    path = tmp_path / "solute.h5"
    solute.write(path)
    opened = Solute.open(path)
    assert opened.n_atoms == solute.n_atoms and not isinstance(opened.position, np.ndarray)
    placed = place_solute(opened, SolvateSection(), tmp_path)[0]
    region = placed.residues_in(np.zeros(3, dtype=int), placed.box)
    opened.position.file.close()
    assert len(region.position) == solute.n_atoms


def test_file_is_kept_or_made_again(solute, tmp_path):
    section = SolvateSection()
    _, digest = place_solute(solute, section, tmp_path)
    path = tmp_path / placement.PLACED_NAME
    content, stamp = path.read_bytes(), path.stat().st_mtime_ns
    assert place_solute(solute, section, tmp_path)[1] == digest and path.stat().st_mtime_ns == stamp
    damaged = bytearray(content)
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)
    placed, _ = place_solute(solute, section, tmp_path)
    assert path.read_bytes() == content
    moved = Solute(**{name: getattr(solute, name) for name in type(solute).__dataclass_fields__}
                   | {"position": solute.position * np.float32(1.01)})
    assert place_solute(moved, section, tmp_path)[1] != digest and path.read_bytes() != content
