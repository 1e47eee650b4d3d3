"""The solvated system: distances by k-d tree, counts, and independence of bricks, workers and crashes."""

import json
import multiprocessing
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

import chromabuild
from chromabuild.base import files
from chromabuild.base.errors import BadInputError, ResourceError
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.shards import Manifest, read_shards, verify_shards
from chromabuild.shards.brick_file import read_brick
from chromabuild.solvate import prepare, solvate
from chromabuild.solvate.bricks import make_brick
from chromabuild.solvate.ions import formal_charges
from chromabuild.solvate.layout import CLOSEST, input_key, make_layout
from chromabuild.solvate.layout_file import read_layout, write_layout
from chromabuild.solvate.placement import place_solute
from chromabuild.solvate.water import seam_changes


def hashes(folder):
    """Suffix-wise content of all shard files."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("brick_*"))}


def split(manifest, position):
    """Solute atoms, (w, 3, 3) waters, Na+, Cl-; K+ and Mg2+ are not returned."""
    sizes = [count * (3 if key == "water" else 1) for key, count in manifest.counts.items()]
    assert list(manifest.counts) == ["solute", "water", "sodium", "potassium", "magnesium", "chloride"]
    solute, water, sodium, _, _, chloride, rest = np.split(position, np.cumsum(sizes))
    assert len(rest) == 0
    return solute, water.reshape(-1, 3, 3), sodium, chloride


def placed_positions(placed):
    """(n, 3) int32 of the whole solute in global order."""
    return placed.residues_in(np.zeros(3, dtype=int), placed.box).position


def periodic(position, box):
    return cKDTree(position % box, boxsize=box)


def test_order_and_solute(shards, solute):
    _, manifest, box, position = shards
    moved, water, sodium, chloride = split(manifest, position)
    shift = moved - solute.position
    assert np.abs(shift - shift[0]).max() <= 0.0005 * 2 + 1e-5  # rounded once; the shift itself is whole thousandths
    assert moved.min(0) == pytest.approx([10, 10, 10], abs=0.002)
    assert (box - moved.max(0)) == pytest.approx([10, 10, 10], abs=0.002)
    assert ((water[:, 0] >= 0) & (water[:, 0] < box)).all()
    length = np.linalg.norm(water[:, 1:] - water[:, :1], axis=2)
    assert np.abs(length - 0.9572).max() < 0.00174
    assert manifest.atoms == len(position) == solute.n_atoms + 3 * len(water) + len(sodium) + len(chloride)


def test_neutral_and_salted(shards, solute):
    _, manifest, _, _ = shards
    counts = manifest.counts
    charge = formal_charges()[solute.residue_template].sum()
    assert charge == -13  # DNA 2 x -11; H4 24-102 with N- and C-terminus +9
    assert manifest.net_charge == charge + counts["sodium"] - counts["chloride"] == 0
    assert sum(shard.charge for shard in manifest.shards) == 0
    waters_before_ions = counts["water"] + counts["sodium"] + counts["chloride"]
    assert 55.5 * counts["chloride"] / waters_before_ions == pytest.approx(0.15, abs=0.5 * 55.5 / waters_before_ions)


def test_distances(shards, solute):
    """No overlap of water with water, ions or solute anywhere, so neither across tiles, bricks nor faces."""
    _, manifest, box, position = shards
    moved, water, sodium, chloride = split(manifest, position)
    oxygen = water[:, 0]
    assert not periodic(oxygen, box).query_pairs(2.3 - 1e-6)
    hydrogen = water[:, 1:].reshape(-1, 3)
    pairs = periodic(hydrogen, box).query_pairs(1.25, output_type="ndarray")
    assert (pairs[:, 0] // 2 == pairs[:, 1] // 2).all()
    ions = np.concatenate([sodium, chloride])
    ion_tree = periodic(ions, box)
    assert not ion_tree.query_pairs(5.0 - 1e-6)
    assert ion_tree.query(moved % box)[0].min() >= 5.0 - 1e-6
    assert ion_tree.query(oxygen % box)[0].min() >= 2.3 - 1e-6
    elements = solute.elements()
    for element, limits in CLOSEST.items():
        atoms = moved[elements == element] % box
        if len(atoms):
            assert periodic(oxygen, box).query(atoms)[0].min() >= limits[0] - 1e-6
            assert periodic(hydrogen, box).query(atoms)[0].min() >= limits[1] - 1e-6


def test_only_overlapping_waters_are_left_out(system, solute):
    """Brute force over the periodic images: the layout's waters are exactly those that the table allows."""
    layout, placed = system.layout, system.placed
    atoms_of_solute = placed_positions(placed)
    n = layout.tiling.tile.n_molecules
    tiles = np.arange(layout.tiling.n_tiles)
    present = layout.part(tiles).occupant.ravel() > 0
    inside = (layout.tiling.unwrapped_oxygens(tiles).reshape(-1, 3) < placed.box).all(1)
    box = placed.box / 1000
    elements = solute.elements()
    allowed = np.ones(len(present), dtype=bool)
    slots = np.arange(len(tiles) * n)
    molecules = layout.tiling.molecules(slots) / 1000
    for element, limits in CLOSEST.items():
        atoms = atoms_of_solute[elements == element] / 1000
        if len(atoms):
            tree = periodic(atoms, box)
            allowed &= tree.query(molecules[:, 0] % box)[0] >= limits[0] - 1e-9
            allowed &= tree.query(molecules[:, 1:].reshape(-1, 3) % box)[0].reshape(-1, 2).min(1) >= limits[1] - 1e-9
    assert not present[~allowed].any()
    near_face = ((molecules[:, 0] < 7) | (molecules[:, 0] > box - 7)).any(1)
    assert (present == allowed)[inside & ~near_face].all()


def test_interface_density(system, solute):
    """Waters left out times their volume is the solute's volume: 0.73 mL/g of protein, 183 mL/mol of nucleotide.

    Partial specific volumes scatter by 5 %; the table was chosen on a whole nucleosome (+4 %), and a small solute has
    relatively more surface, hence 15 %.
    """
    layout = system.layout
    mass = {"H": 1.008, "C": 12.011, "N": 14.007, "O": 15.999, "S": 32.06, "P": 30.974}
    library = list(residue_library().values())
    protein = [t for t in solute.residue_template if library[t].kind == "amino acid"]
    grams = sum(mass[element] for t in protein for element in library[t].elements)
    volume = (0.73 * grams + 183 * (solute.n_residues - len(protein))) / 0.602214
    dropped, added = seam_changes(layout.tiling)
    oxygen = layout.tiling.unwrapped_oxygens(np.arange(layout.tiling.n_tiles))
    without_solute = (oxygen < system.placed.box).all(2).sum() - len(dropped) + len(added)
    with_solute = sum(layout.counts.values())
    tile = layout.tiling.tile
    water_volume = (tile.edge / 1000) ** 3 / tile.n_molecules
    assert (without_solute - with_solute) * water_volume == pytest.approx(volume, rel=0.15)


def test_bricks_hold_their_reference_atoms(shards, system):
    folder, manifest, box, _ = shards
    heavy = {name: next((i for i, e in enumerate(t.elements) if e != "H"), 0) for name, t in residue_library().items()}
    names = residue_names()
    for k, shard in enumerate(manifest.shards):
        content = read_brick(folder / f"{shard.name}.cbb")
        brick = make_brick(system, k)
        first = np.cumsum(brick.residue_size) - brick.residue_size
        reference = content.position[first + [heavy[names[t]] for t in brick.residue_template]] / 1000 % box
        assert ((reference >= shard.lower) & (reference < shard.upper)).all()


def test_same_molecules_for_any_bricks(shards, solute, tmp_path):
    _, manifest, _, position = shards
    for edge in (17.0, 60.0, 200.0):
        other = solvate(solute, SolvateSection(brick_edge=edge), 1, 1, tmp_path / str(edge))
        assert other.counts == manifest.counts
        assert np.array_equal(read_shards(tmp_path / str(edge))[1], position)


def test_single_bricks_give_the_same_bytes(shards, solute, tmp_path):
    folder, _, _, _ = shards
    section = SolvateSection(brick_edge=30.0)
    reference = hashes(folder)
    assert len(reference) == 3 * 18
    for k in (0, 7, 17):
        alone = tmp_path / f"only{k}"
        part = solvate(solute, section, 1, 1, alone, only=[k])
        assert [shard.name for shard in part.shards] == [f"brick_{k:05d}"]
        assert not (alone / "manifest.json").exists()
        made = hashes(alone)
        assert len(made) == 3 and all(reference[name] == content for name, content in made.items())
    for k in range(18):  # one after the other they make the whole set
        solvate(solute, section, 1, 1, tmp_path / "only0", only=[k])
    assert (tmp_path / "only0" / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()
    with pytest.raises(BadInputError, match="brick 18 does not exist"):
        solvate(solute, section, 1, 1, tmp_path / "none", only=[18])


@pytest.mark.slow
def test_any_number_of_processes_gives_the_same_bytes(solute, tmp_path):
    """One and three processes; a process that is killed is reported and the same call continues."""
    section = SolvateSection(brick_edge=17.0)
    solvate(solute, section, 1, 1, tmp_path / "1")
    reference = hashes(tmp_path / "1")
    assert len(reference) >= 3 * 4 * 16
    folder = tmp_path / "3"
    solvate(solute, section, 1, 3, folder)
    assert hashes(folder) == reference
    assert (folder / "manifest.json").read_bytes() == (tmp_path / "1" / "manifest.json").read_bytes()
    assert not multiprocessing.active_children()

    def kill_one(done, total):
        if done == 10:
            multiprocessing.active_children()[0].kill()

    with pytest.raises(ResourceError, match="killed"):
        solvate(solute, section, 1, 2, tmp_path / "killed", progress=kill_one)
    assert not (tmp_path / "killed" / "manifest.json").exists()
    solvate(solute, section, 1, 1, tmp_path / "killed")
    assert hashes(tmp_path / "killed") == reference


MIXED = {"salt": 0.05, "potassium_chloride": 0.1, "magnesium_chloride": 0.05, "calcium_chloride": 0.03,
         "counterion": "magnesium"}


@pytest.mark.parametrize("placement", ["uniform", "debye-hueckel"])
@pytest.mark.release
def test_other_salts(solute, tmp_path, placement):
    """Five species: neutral, apart from each other and the solute, and the same whatever the bricks."""
    settings = {**MIXED, "padding": 40.0 if placement == "debye-hueckel" else 10.0, "ion_placement": placement}
    manifest = solvate(solute, SolvateSection(brick_edge=60.0, **settings), 1, 1, tmp_path / "a")
    verify_shards(tmp_path / "a")
    box, position = read_shards(tmp_path / "a")
    counts = manifest.counts
    assert manifest.net_charge == 0 and min(counts.values()) > 0
    waters = sum(counts.values()) - counts["solute"]
    assert counts["sodium"] == pytest.approx(0.05 * waters / 55.5, abs=0.5)
    assert counts["potassium"] == pytest.approx(0.1 * waters / 55.5, abs=0.5)
    ions = position[counts["solute"] + 3 * counts["water"]:]
    assert not periodic(ions, box).query_pairs(5.0 - 1e-6)
    assert periodic(ions, box).query(position[:counts["solute"]] % box)[0].min() >= 5.0 - 1e-6
    other = solvate(solute, SolvateSection(brick_edge=23.0, **settings), 1, 1, tmp_path / "b")
    assert other.counts == counts
    assert np.array_equal(read_shards(tmp_path / "b")[1], position)


def test_potential_draws_cations_to_dna(solute, tmp_path):
    """The mean potential at the ions' places is that of all free slots with weights exp(-z phi), by brute force.

    Twelve seeds; the tolerance is four standard errors, and 0.02 kT for what choices take from each other.
    """
    box = (100.0, 95.0, 85.0)
    section = SolvateSection(box=box, ion_placement="debye-hueckel")
    placed, _ = place_solute(solute, section, tmp_path)
    layouts = [make_layout(placed, section, seed, 1) for seed in range(12)]
    layout = layouts[0]
    site, charge = charged_sites(placed)
    screening = 3.04 / np.sqrt(0.15)

    def potential_at(position):
        difference = position[:, None] - site
        difference -= np.array(box) * np.rint(difference / box)
        r = np.linalg.norm(difference, axis=2)
        return (np.where(r < 40, charge * 7.13 * np.exp(-r / screening) / r, 0)).sum(1)

    present = layout.has_water(np.arange(layout.tiling.n_tiles)).ravel()
    slots = np.random.default_rng(1).permutation(np.flatnonzero(present))[:20_000]
    oxygen = layout.tiling.oxygens(slots) / 1000
    free = periodic(placed_positions(placed) / 1000, np.array(box)).query(oxygen)[0] >= 5
    phi = potential_at(oxygen[free])
    assert (phi < -1).any()
    for key, sign in (("sodium", 1), ("chloride", -1)):
        found = potential_at(layout.tiling.oxygens(np.concatenate([p.ions[key] for p in layouts])) / 1000)
        weight = np.exp(-sign * np.clip(phi, -3, 3))
        mean = np.average(phi, weights=weight)
        error = np.sqrt(np.average((phi - mean) ** 2, weights=weight) / len(found))
        assert abs(found.mean() - mean) < 4 * error + 0.02
        if key == "sodium":
            assert mean < phi.mean() - 6 * error  # the test can tell it from a uniform draw


def charged_sites(placed):
    """Angstrom and e: phosphates, charged side chains, chain ends; from the atom names."""
    names, region = residue_names(), placed.residues_in(np.zeros(3, dtype=int), placed.box)
    library = residue_library()
    atom = {"ASP": ("CG", -1), "GLU": ("CD", -1), "LYS": ("NZ", 1), "ARG": ("CZ", 1)}
    site, charge = [], []
    for template, start in zip(region.template, region.start, strict=True):
        name = names[template]
        groups = [atom[name[-3:]]] if name[-3:] in atom else []
        if library[name].kind == "nucleotide":
            groups = [("P", -1)] if "P" in library[name].atoms else []
        elif len(name) == 4:
            groups.append(("N", 1) if name[0] == "N" else ("C", -1))
        for label, q in groups:
            site.append(region.position[start + library[name].atoms.index(label)] / 1000)
            charge.append(q)
    return np.array(site), np.array(charge)


def test_other_seed_moves_ions_only(shards, solute, tmp_path):
    _, manifest, _, position = shards
    other = solvate(solute, SolvateSection(brick_edge=30.0), 2, 1, tmp_path)
    assert other.counts == manifest.counts
    _, _, sodium, _ = split(other, read_shards(tmp_path)[1])
    assert not np.array_equal(sodium, split(manifest, position)[2])


def test_finished_bricks_are_kept(solute, tmp_path):
    section = SolvateSection(brick_edge=40.0)
    solvate(solute, section, 1, 1, tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("brick_*")}
    damaged = tmp_path / "brick_00003.bcif"
    content = bytearray(damaged.read_bytes())
    content[100] ^= 1
    damaged.write_bytes(content)
    (tmp_path / ".brick_00001.cbb.99999.part").write_bytes(b"torn")
    solvate(solute, section, 1, 1, tmp_path)
    verify_shards(tmp_path)
    changed = {path.name for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp}
    assert changed == {"brick_00003.pdb.zst", "brick_00003.bcif", "brick_00003.cbb"}
    assert not list(tmp_path.glob(".*.part"))


def test_other_settings_replace_the_set(solute, tmp_path):
    solvate(solute, SolvateSection(brick_edge=25.0), 1, 1, tmp_path)
    manifest = solvate(solute, SolvateSection(brick_edge=60.0, compress=False, salt=0.0), 1, 1, tmp_path)
    names = {f"{shard.name}.{suffix}" for shard in manifest.shards for suffix in ("pdb", "bcif", "cbb")}
    assert set(hashes(tmp_path)) == names
    assert manifest.counts["chloride"] == 0 and manifest.counts["sodium"] == 13
    verify_shards(tmp_path)


def test_given_box(solute, tmp_path):
    manifest = solvate(solute, SolvateSection(box=(101.5, 90.25, 80.0)), 1, 1, tmp_path)
    assert manifest.box == (101.5, 90.25, 80.0)
    with pytest.raises(BadInputError, match=r"solvate.box = 30 A along x is smaller than the solute \(80\.\d+ A\)"):
        solvate(solute, SolvateSection(box=(30, 100, 100)), 1, 1, tmp_path)
    with pytest.raises(BadInputError, match="there is room for"):
        solvate(solute, SolvateSection(salt=6, potassium_chloride=6, magnesium_chloride=6), 1, 1, tmp_path)


def test_bad_solutes_are_refused(solute, tmp_path):
    broken = Solute(**{**vars_of(solute), "position": solute.position.copy()})
    broken.position[17, 1] = np.nan
    with pytest.raises(BadInputError, match="atom 17 of the solute has no finite position"):
        solvate(broken, SolvateSection(), 1, 1, tmp_path)
    named = Solute(**{**vars_of(solute), "segment_name": ["W00A", *solute.segment_name[1:]]})
    with pytest.raises(BadInputError, match="segment W00A is named like"):
        solvate(named, SolvateSection(), 1, 1, tmp_path)


    doubled = solute.residue_number.copy()
    doubled[1] = doubled[0]
    with pytest.raises(BadInputError, match="segment D00I has residue number 8 twice"):
        solvate(Solute(**{**vars_of(solute), "residue_number": doubled}), SolvateSection(), 1, 1, tmp_path)
    numbered = Solute(**{**vars_of(solute), "residue_number": solute.residue_number - 1008})
    with pytest.raises(BadInputError, match="residue number -1000, shards hold -999 to 9999"):
        solvate(numbered, SolvateSection(), 1, 1, tmp_path)


def test_plan_is_the_same_for_any_threads(system):
    assert_same(make_layout(system.placed, SolvateSection(), 1, 3), system.layout)


def assert_same(layout, stored):
    """A layout as it was made and as it is read, also where the tiles asked for are not all neighbours."""
    assert stored.counts == layout.counts
    tiles = np.arange(layout.tiling.n_tiles)
    occupant = layout.has_water(tiles).astype(int)
    for content, slots in enumerate(layout.ions.values(), start=2):
        occupant.ravel()[slots] = content
    count = np.array([(occupant == content).sum(1) for content in range(1, 6)]).T
    assert np.array_equal(count.sum(0), list(layout.counts.values()))
    some = np.random.default_rng(2).random(len(tiles)) < 0.4
    assert some.any()
    for chosen in (tiles, tiles[some], tiles[:0]):
        part = stored.part(chosen)
        assert np.array_equal(part.occupant, occupant[chosen])
        assert np.array_equal(part.before, (np.cumsum(count, axis=0) - count)[chosen])


def vars_of(solute):
    return {name: getattr(solute, name) for name in type(solute).__dataclass_fields__}


def test_damaged_plan_is_made_again(solute, tmp_path):
    section = SolvateSection()
    placed, solute_hash = place_solute(solute, section, tmp_path)
    inputs = input_key(solute_hash, placed.box, section, 1)
    path = tmp_path / "plan.h5"
    layout = make_layout(placed, section, 1, 1)
    write_layout(layout, tmp_path, inputs)
    stored = read_layout(tmp_path, placed.box, inputs, "tip3p")
    assert_same(layout, stored)
    content = path.read_bytes()
    rng = random.Random(1)
    for _ in range(200):
        damaged = bytearray(content)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        assert read_layout(tmp_path, placed.box, inputs, "tip3p") is None
    path.write_bytes(content[:len(content) // 2])
    assert read_layout(tmp_path, placed.box, inputs, "tip3p") is None
    path.write_bytes(content)
    assert read_layout(tmp_path, placed.box, inputs, "tip3p") is not None
    assert read_layout(tmp_path, placed.box, inputs | {"settings": "other"}, "tip3p") is None


def test_full_disk_keeps_what_is_there(solute, tmp_path, monkeypatch):
    """No space at the start: nothing is touched. No space in the middle: finished bricks stay and the run continues."""
    section = SolvateSection(brick_edge=30.0)
    solvate(solute, section, 1, 1, tmp_path)
    before = hashes(tmp_path) | {"manifest": (tmp_path / "manifest.json").read_bytes()}
    with monkeypatch.context() as patch:
        usage = type("usage", (), {"free": 1000})
        patch.setattr("shutil.disk_usage", lambda path: usage)
        with pytest.raises(ResourceError, match="free space or choose another output folder"):
            solvate(solute, section, 2, 1, tmp_path)
    assert hashes(tmp_path) | {"manifest": (tmp_path / "manifest.json").read_bytes()} == before
    verify_shards(tmp_path)

    written, real = [], Path.write_bytes

    def limited(path, content):
        if len(written) == 20:
            real(path, bytes(content)[:10])
            raise OSError(28, "No space left on device", str(path))
        written.append(path)
        return real(path, content)

    other = tmp_path / "other"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", limited)
        with pytest.raises(ResourceError, match="cannot write .*No space left on device"):
            solvate(solute, section, 1, 1, other)
    assert not (other / "manifest.json").exists() and not list(other.glob(".*.part"))
    solvate(solute, section, 1, 1, other)
    assert hashes(other) == {name: content for name, content in before.items() if name != "manifest"}


@pytest.mark.release
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_really_full_disk(solute, tmp_path):
    """A tmpfs of 600 kB: refused before the first brick; a write that outgrows it leaves nothing behind."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        with pytest.raises(ResourceError):
            solvate(solute, SolvateSection(brick_edge=30.0), 1, 1, tmp_path)
        (tmp_path / "filler").write_bytes(b"0" * 500_000)
        with pytest.raises(ResourceError):
            with files.atomic_path(tmp_path / "more") as part:
                part.write_bytes(b"0" * 500_000)
        assert not list(tmp_path.glob(".*.part")) and not (tmp_path / "more").exists()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.slow
def test_kill_and_rerun():
    """Killed with -9 at random moments, started again: never a torn file under a final name, then the same set.

    Twelve of the benchmark's 200 trials: three replace another set, one has two worker processes.
    """
    script = Path(__file__).parents[2] / "benchmarks" / "kill_and_rerun.py"
    # The package under test, whatever the folder that the tests are started from.
    environment = os.environ | {"PYTHONPATH": str(Path(chromabuild.__file__).parents[1])}
    done = subprocess.run([sys.executable, str(script), "--quick"], env=environment, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    table = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    found = dict(zip(table[0], map(int, table[2]), strict=True))
    assert found["trials"] == 12 and found["killed while running"] >= 1
    for fault in ("truncated files", "finished files rewritten", "files left over", "final sets that differ"):
        assert found[fault] == 0, fault


def test_progress_and_manifest(solute, tmp_path):
    seen = []
    manifest = solvate(solute, SolvateSection(brick_edge=40.0), 1, 1, tmp_path, progress=lambda *a: seen.append(a))
    total = len(manifest.shards)
    assert seen == [(k + 1, total) for k in range(total)]
    assert Manifest.read(tmp_path) == manifest
    content = json.loads((tmp_path / "manifest.json").read_text())
    assert content["format"] == "chromabuild-shards" and content["version"] == 1


@pytest.mark.slow
def test_a_hundred_thousand_atoms(solute, tmp_path):
    """49 copies of the solute on a grid: chains and numbers repeat, segments do not."""
    copies, spacing = 49, 90.0
    shift = np.array([(i % 7 * spacing, i // 7 * spacing, 0) for i in range(copies)], dtype=np.float32)
    n_segments = len(solute.segment_name)
    many = Solute(
        position=(solute.position[None] + shift[:, None]).reshape(-1, 3),
        residue_template=np.tile(solute.residue_template, copies),
        residue_number=np.tile(solute.residue_number, copies),
        residue_segment=np.concatenate([solute.residue_segment + np.uint16(n_segments * k) for k in range(copies)]),
        segment_name=[f"S{k:03d}" for k in range(n_segments * copies)],
        segment_chain=solute.segment_chain * copies,
        molecule_first_residue=np.append(
            (solute.molecule_first_residue[None, :-1] + solute.n_residues * np.arange(copies)[:, None]).ravel(),
            solute.n_residues * copies),
        molecule_name=solute.molecule_name * copies, molecule_nucleosome=np.tile(solute.molecule_nucleosome, copies))
    assert many.n_atoms > 100_000
    manifest = solvate(many, SolvateSection(), 1, 2, tmp_path)
    assert manifest.net_charge == 0 and manifest.atoms > 2_000_000
    box, position = read_shards(tmp_path)
    water = split(manifest, position)[1]
    assert not cKDTree(water[:, 0] % box, boxsize=box).query_pairs(2.3 - 1e-6)
    system = prepare(many, SolvateSection(), 1, 2, tmp_path)
    for k in range(system.grid.n_bricks):
        brick = make_brick(system, k)
        keys = brick.chain_letters.astype(np.int64) * 10000 + brick.residue_number
        assert len(np.unique(keys)) == len(keys)
