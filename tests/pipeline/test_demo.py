"""The bundled locus from `chromabuild init` to the force field: what every stage must keep, on the real thing.

Positions are read with h5py and bonds, rings and distances are found here, not by chromabuild's own finders.
"""

import json
import re
import shutil
import warnings
from itertools import pairwise

import Bio.PDB
import gemmi
import h5py
import MDAnalysis
import numpy as np
import pytest
import zstandard
from Bio import SeqIO
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from support.command_line import STAGES, chromabuild, digests, refusal, result_of

from chromabuild.base.files import file_hash, template_path
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.shards.brick_file import read_brick

pytestmark = pytest.mark.slow

RINGS = {  # by residue; nucleotides have the sugar besides the base
    "sugar": ("C1'", "C2'", "C3'", "C4'", "O4'"), "six": ("N1", "C2", "N3", "C4", "C5", "C6"),
    "five": ("C4", "C5", "N7", "C8", "N9"), "PRO": ("N", "CA", "CB", "CG", "CD"),
    "HIS": ("CG", "ND1", "CE1", "NE2", "CD2"), "PHE": ("CG", "CD1", "CE1", "CZ", "CE2", "CD2"),
}
RINGS_OF = {"DA": ["sugar", "six", "five"], "DG": ["sugar", "six", "five"], "DC": ["sugar", "six"],
            "DT": ["sugar", "six"], "PRO": ["PRO"], "HIS": ["HIS"], "PHE": ["PHE"], "TYR": ["PHE"]}
COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
HISTONES = json.loads(template_path("histones.json").read_text())
# Atoms of an amino-acid residue at pH 7 (histidine neutral): its formula less water, charged side chains as they are.
ATOMS = {"A": 10, "R": 24, "N": 14, "D": 12, "C": 11, "Q": 17, "E": 15, "G": 7, "H": 17, "I": 19, "L": 19, "K": 22,
         "M": 17, "F": 20, "P": 14, "S": 11, "T": 14, "W": 24, "Y": 21, "V": 16}


@pytest.fixture(scope="module")
def scaffold(demo):
    with h5py.File(demo.results / "scaffold.h5") as file:
        yield file


@pytest.fixture(scope="module")
def sequence(demo):
    return str(SeqIO.read(demo.folder / "demo.fa", "fasta").seq).upper()


@pytest.fixture(scope="module")
def dyads(demo):
    """Indices into the sequence, from the text of BED file and FASTA header."""
    lines = (demo.folder / "demo.dyads.bed").read_text().splitlines()
    first_base = int((demo.folder / "demo.fa").read_text().split(":")[1].split("-")[0]) - 1
    return [int(line.split("\t")[1]) - first_base for line in lines if not line.startswith("#")]


@pytest.fixture(scope="module")
def plain_shards(demo, tmp_path_factory):
    """The shards as plain PDB files."""
    folder = tmp_path_factory.mktemp("plain")
    for path in sorted((demo.results / "shards").glob("*.pdb.zst")):
        (folder / path.stem).write_bytes(zstandard.ZstdDecompressor().decompress(path.read_bytes()))
    return sorted(folder.iterdir())


def links(solute):
    """Length of every O3'-P bond by residue on the 5' side, and its strand."""
    first, names = solute.residue_first_atom, [t.index for t in residue_library().values()]
    for strand in (0, 1):
        residues = range(solute.molecule_first_residue[strand], solute.molecule_first_residue[strand + 1])
        for k, follower in pairwise(residues):
            o3 = first[k] + names[solute.residue_template[k]]["O3'"]
            p = first[follower] + names[solute.residue_template[follower]]["P"]
            yield strand, k - residues[0], float(np.linalg.norm(solute.position[p] - solute.position[o3]))


def close_pairs(solute, below):
    """Pairs of atoms below a distance that no bond joins, (n, 2)."""
    pairs = cKDTree(solute.position).query_pairs(below, output_type="ndarray")
    bonds = np.sort(solute.bonds(), axis=1).astype(np.int64)
    n = solute.n_atoms
    return pairs[~np.isin(pairs.min(axis=1) * n + pairs.max(axis=1), bonds[:, 0] * n + bonds[:, 1])]


def pierced_rings(solute):
    """Number of (ring, bond) where the bond runs through the ring: it meets a triangle from the centre to an edge."""
    library = list(residue_library().values())
    rings = []
    for first, kind in zip(solute.residue_first_atom, solute.residue_template, strict=False):
        for name in RINGS_OF.get(library[kind].pdb_name, []):
            rings.append([first + library[kind].index[atom] for atom in RINGS[name]])
    bonds, position = solute.bonds(), solute.position.astype(float)
    middle = cKDTree(position[bonds].mean(axis=1))
    count = 0
    for ring in rings:
        corners = position[ring]
        centre = corners.mean(axis=0)
        # No bond of ours is longer than 2 angstrom and no ring wider than 1.5: what pierces is nearer than 2.5.
        for bond in bonds[middle.query_ball_point(centre, 2.5)]:
            if set(bond.tolist()) & set(ring):
                continue
            start, end = position[bond]
            edges = zip(corners, np.roll(corners, -1, axis=0), strict=True)
            count += any(_meets(start, end - start, centre, a, b) for a, b in edges)
    return count


def _meets(start, along, centre, a, b):
    matrix = np.column_stack([a - centre, b - centre, -along])
    if abs(np.linalg.det(matrix)) < 1e-9:
        return False
    u, v, t = np.linalg.solve(matrix, start - centre)
    return u >= 0 and v >= 0 and u + v <= 1 and 0 <= t <= 1


def test_crowded_dyads_are_moved_and_every_move_is_told(demo, scaffold, dyads):
    """The last two dyads are 142 bp apart, 157 are needed: least squares halves the missing 15, the others stay."""
    assert len(dyads) == 4
    placed, shifts = scaffold["nucleosome/dyad_index"][...], json.loads(scaffold.attrs["shifts"])
    assert placed.tolist() == pytest.approx([dyads[0], dyads[1], dyads[2] - 7.5, dyads[3] + 7.5], abs=0.5)
    assert np.diff(placed).min() == 157  # 147 wrapped, 10 of linker
    assert scaffold["bp/position"][placed[:2]].tolist() == [42737, 42901]
    assert shifts == demo.summaries["scaffold"]["shifts"]
    first_base = int(scaffold["bp/position"][0])
    assert [(s["from"] - first_base, s["to"] - first_base) for s in shifts] == list(
        zip(dyads[2:], placed.tolist()[2:], strict=True))
    assert all("dyads 142 bp apart, 157 needed" in s["reason"] for s in shifts)


def test_scaffold_is_complete_and_continuous(scaffold, sequence):
    n = len(sequence)
    assert scaffold["bp/base"][...].tobytes().decode() == sequence
    origin, frame = scaffold["bp/origin"][...], scaffold["bp/frame"][...]
    assert origin.shape == (n, 3) and frame.shape == (n, 3, 3)
    assert np.abs(frame.transpose(0, 2, 1) @ frame - np.eye(3)).max() < 1e-9
    assert np.linalg.det(frame) == pytest.approx(np.ones(n))
    step = np.diff(origin, axis=0)
    axis = frame[:-1, :, 2] + frame[1:, :, 2]
    rise = (step * axis).sum(axis=1) / np.linalg.norm(axis, axis=1)
    for value in (rise, np.linalg.norm(step, axis=1)):
        assert value.min() > 2.5 and value.max() < 4.5
    wrapped = scaffold["bp/nucleosome"][...]
    for k, dyad in enumerate(scaffold["nucleosome/dyad_index"][...]):
        assert np.flatnonzero(wrapped == k).tolist() == list(range(dyad - 73, dyad + 74))
    assert (wrapped >= -1).all() and scaffold.attrs["floor_violations"] == 0
    core = scaffold["nucleosome/frame"][...]
    assert core.shape == (4, 3, 3) and np.abs(core.transpose(0, 2, 1) @ core - np.eye(3)).max() < 1e-9
    sweeps = scaffold["energy/sweep"][...]
    for name in ("stretch", "bend", "twist", "electrostatic", "excluded", "restraint"):
        series = scaffold[f"energy/{name}"][...]
        assert series.shape == sweeps.shape and np.isfinite(series).all()
    assert all(0 <= rate[()] <= 1 for rate in scaffold["acceptance"].values())


@pytest.mark.parametrize("file", ["solute.h5", "solute_clean.h5"])
def test_backbone_links_have_their_length(demo, scaffold, file):
    """O3'-P of both strands, in wrapped DNA, in linkers, and where one becomes the other."""
    wrapped = scaffold["bp/nucleosome"][...]
    n = len(wrapped)
    lengths = {"wrapped": [], "linker": [], "joint": []}
    for strand, k, length in links(Solute.read(demo.results / file)):
        bp, other = (k, k + 1) if strand == 0 else (n - 1 - k, n - 2 - k)
        kind = "joint" if wrapped[bp] != wrapped[other] else "linker" if wrapped[bp] < 0 else "wrapped"
        lengths[kind].append(length)
    assert sum(map(len, lengths.values())) == 2 * (n - 1)
    assert len(lengths["wrapped"]) == 2 * 4 * 146 and len(lengths["joint"]) >= 2 * 5
    for kind, values in lengths.items():
        assert 1.55 < min(values) and max(values) < 1.65, kind


def test_two_continuous_strands_of_the_sequence(demo_solute, sequence):
    """Heavy atoms of DNA bonded by distance alone: two components, which read as the FASTA file and its complement."""
    library = list(residue_library().values())
    n_dna = demo_solute.residue_first_atom[demo_solute.molecule_first_residue[2]]
    heavy = np.flatnonzero(demo_solute.elements()[:n_dna] != "H")
    # The longest bond is P-O (1.6 angstrom), the nearest atoms that are not bonded are 2.1 apart.
    pairs = cKDTree(demo_solute.position[heavy]).query_pairs(1.8, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(heavy), len(heavy)))
    n_strands, strand = connected_components(graph, directed=False)
    assert n_strands == 2
    letters = []
    for k in (0, 1):
        residues = np.unique(demo_solute.atom_residue[heavy[strand == k]])
        letters.append("".join(library[demo_solute.residue_template[r]].pdb_name[1] for r in residues))
    assert letters == [sequence, "".join(COMPLEMENT[base] for base in reversed(sequence))]


def test_every_residue_is_complete(demo, demo_solute, sequence):
    """Atoms by composition: the octamer's by its sequences, 64 of an A-T pair, 63 of G-C, less one a strand."""
    at = sum(base in "AT" for base in sequence)
    histones = [HISTONES["yeast"][name]["sequence"] for name in ("H3", "H4", "H2A", "H2B")]
    # The ends of a chain, NH3+ and COO-, have three atoms more than residues inside it.
    octamer = 2 * sum(sum(ATOMS[letter] for letter in chain) + 3 for chain in histones)
    assert demo_solute.n_atoms == 4 * octamer + 63 * len(sequence) + at - 2
    assert demo_solute.molecule_name == ["DNA-I", "DNA-J"] + ["H3", "H4", "H2A", "H2B"] * 8
    assert np.diff(demo_solute.molecule_first_residue)[2:].tolist() == [len(chain) for chain in histones] * 8
    assert np.isfinite(demo_solute.position).all()
    # Every hydrogen sits on one atom at a bond's length, and every heavy atom has a bonded neighbour.
    position, elements = demo_solute.position.astype(float), demo_solute.elements()
    a, b = demo_solute.bonds().T
    length = np.linalg.norm(position[a] - position[b], axis=1)
    with_hydrogen = (elements[a] == "H") | (elements[b] == "H")
    assert 0.9 < length[with_hydrogen].min() and length[with_hydrogen].max() < 1.4
    assert 1.1 < length[~with_hydrogen].min() and length[~with_hydrogen].max() < 2.0
    bonds_of = np.bincount(np.concatenate([a, b]), minlength=demo_solute.n_atoms)
    assert (bonds_of[elements == "H"] == 1).all() and bonds_of.min() == 1


def test_no_close_pair_after_the_correction(demo, demo_solute):
    """The report counts what is counted here before, and nothing is left after."""
    report = json.loads((demo.results / "clash_report.json").read_text())
    before = Solute.read(demo.results / "solute.h5")
    assert len(close_pairs(before, 0.9)) == report["before"]["pairs_below_threshold"]["count"]
    assert report["after"]["pairs_below_threshold"]["count"] == 0
    assert len(close_pairs(demo_solute, 0.9)) == 0
    # Turned, not torn: bonds are as long as before, and the cores' DNA has not moved apart from its ends.
    a, b = demo_solute.bonds().T
    length = [np.linalg.norm(s.position[a].astype(float) - s.position[b], axis=1) for s in (before, demo_solute)]
    assert np.abs(length[1] - length[0]).max() < 0.05


def test_no_ring_is_pierced(demo, demo_solute):
    report = json.loads((demo.results / "clash_report.json").read_text())
    assert pierced_rings(Solute.read(demo.results / "solute.h5")) == report["before"]["ring_piercings"]["count"]
    assert report["after"]["ring_piercings"]["count"] == 0 == pierced_rings(demo_solute)


def test_system_is_neutral_and_salted(demo, demo_solute):
    """Charges from the force field; 0.15 mol/L of NaCl beyond neutrality, by the volume of 55.5 mol/L of water."""
    with h5py.File(demo.results / "topology.h5") as file:
        charge = np.array([group["charge"][...].sum() for _, group in sorted(file["template"].items())])
        runs = file["molecule/template"][...], file["molecule/count"][...]
    counts = demo.manifest["counts"]
    assert np.sum(charge[runs[0]] * runs[1]) == pytest.approx(0, abs=1e-6)
    assert demo.manifest["net_charge"] == 0 == sum(shard["charge"] for shard in demo.manifest["shards"])
    assert counts["chloride"] / (counts["water"] + counts["sodium"] + counts["chloride"]) * 55.5 == pytest.approx(
        0.15, rel=0.005)
    solute_charge = np.sum((charge[runs[0]] * runs[1])[:-3])
    assert counts["sodium"] - counts["chloride"] == round(-solute_charge)
    # TIP3P at 0.98 g/mL, 0.0328 molecules per cubic angstrom, fills what the solute leaves: protein has 0.73 mL/g, a
    # nucleotide 183 mL/mol. The solute is a sixth of the box and its volume known to 10 %: 2 % of the rest; 1 % more is
    # for the water beside it.
    mass = {"H": 1.008, "C": 12.011, "N": 14.007, "O": 15.999, "S": 32.06, "P": 30.974}
    n_dna = demo_solute.molecule_first_residue[2]
    grams = sum(mass[e] for e in demo_solute.elements()[demo_solute.residue_first_atom[n_dna]:])
    free = np.prod(demo.manifest["box"]) - (0.73 * grams + 183 * n_dna) / 0.602214
    molecules = counts["water"] + counts["sodium"] + counts["chloride"]
    assert molecules / free == pytest.approx(0.0328, rel=0.03)


def test_every_atom_stands_in_one_brick(demo, demo_solute):
    """Ids over all bricks are 0..N-1, no two atoms of the periodic box are closer than 0.9, the solute is unharmed."""
    manifest, ids, positions = demo.manifest, [], []
    for shard in manifest["shards"]:
        brick = read_brick(demo.results / "shards" / f"{shard['name']}.cbb")
        ids.append(brick.global_id)
        positions.append(brick.position / 1000)
    ids, positions = np.concatenate(ids), np.concatenate(positions)
    n = manifest["atoms"]
    counts = manifest["counts"]
    assert n == len(ids) == counts["solute"] + 3 * counts["water"] + counts["sodium"] + counts["chloride"]
    assert np.array_equal(np.sort(ids), np.arange(n))
    position = positions[np.argsort(ids)]
    box = np.array(manifest["box"])
    tree = cKDTree(position % box, boxsize=box)
    assert len(tree.query_pairs(0.9, output_type="ndarray")) == 0
    shift = position[:demo_solute.n_atoms] - demo_solute.position
    shift -= np.round((shift - shift[0]) / box) * box
    assert np.abs(shift - shift[0]).max() < 0.0011


def test_shards_in_other_programs(demo, demo_solute, plain_shards):
    """MDAnalysis and gemmi read every shard, Biopython, which is slow, one in four: over all of them atoms and residues
    are those of the system."""
    counts = demo.manifest["counts"]
    residues = demo_solute.n_residues + counts["water"] + counts["sodium"] + counts["chloride"]
    found = {reader: np.zeros(2, dtype=int) for reader in ("MDAnalysis", "gemmi")}
    names = {}
    for k, path in enumerate(plain_shards):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            universe = MDAnalysis.Universe(str(path))
        model = gemmi.read_pdb(str(path))[0]
        size = model.count_atom_sites(), sum(len(chain) for chain in model)
        found["MDAnalysis"] += len(universe.atoms), len(universe.residues)
        found["gemmi"] += size
        if k % 4 == 0:
            structure = Bio.PDB.PDBParser(QUIET=True).get_structure("shard", str(path))
            assert (sum(1 for _ in structure.get_atoms()), sum(1 for _ in structure.get_residues())) == size
        for name, number in zip(*np.unique(universe.residues.resnames, return_counts=True), strict=True):
            names[name] = names.get(name, 0) + int(number)
        assert universe.dimensions[:3] == pytest.approx(demo.manifest["box"], abs=0.001)
    for reader, total in found.items():
        assert total.tolist() == [demo.manifest["atoms"], residues], reader
    assert (names["HOH"], names["NA"], names["CL"]) == (counts["water"], counts["sodium"], counts["chloride"])
    assert len(plain_shards) == len(demo.manifest["shards"])


def test_a_structure_by_the_command_line(demo, demo_solute, tmp_path):
    """The first nucleosome, by its number and by its base pairs; and options that do not go together."""
    made = result_of("export", "structure", tmp_path / "one.cif", "--nucleosomes", 1, cwd=demo.folder)
    assert re.fullmatch(r"chr[IVX]+:\d+-\d+", made["region"])
    assert (made["base pairs"], made["nucleosomes"]) == (147, 1)
    result_of("export", "structure", tmp_path / "same.cif", "--region", made["region"], cwd=demo.folder)
    assert (tmp_path / "one.cif").read_bytes() == (tmp_path / "same.cif").read_bytes()
    model = gemmi.read_structure(str(tmp_path / "one.cif"))[0]
    assert model.count_atom_sites() == made["atoms"] < demo_solute.n_atoms
    for scene in ("one.cxc", "one.tcl"):  # both have the structure that is there
        result_of("export", "scene", tmp_path / scene, "--nucleosomes", 1, cwd=demo.folder)
    told = refusal(chromabuild("export", "scene", tmp_path / "one.tcl", "--nucleosomes", 2, cwd=demo.folder), 3)
    assert "is there already" in told
    for told, *arguments in (("is there already", "one.cif"),
                             ("give one of them", "two.cif", "--region", "1-2", "--nucleosomes", 1),
                             ("give one of them", "two.cif", "--as-built", "--after", "dynamics"),
                             ("holds no dynamics", "two.cif", "--after", "dynamics")):
        name, *options = arguments
        assert told in refusal(chromabuild("export", "structure", tmp_path / name, *options, cwd=demo.folder), 3)
    assert not (tmp_path / "two.cif").exists()


def test_atoms_are_named_the_same_in_every_file(demo, plain_shards):
    """Names of a brick that holds solute, in the PSF and in the PDB shard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        topology = MDAnalysis.Universe(str(demo.results / "topology.psf"))
        shard = MDAnalysis.Universe(str(plain_shards[0]))
    assert len(topology.atoms) == demo.manifest["atoms"]
    brick = read_brick(demo.results / "shards" / f"{plain_shards[0].stem}.cbb")
    same = topology.atoms[brick.global_id]
    solute = brick.global_id < demo.manifest["counts"]["solute"]
    assert solute.sum() > 100
    for attribute in ("names", "segids", "resids"):
        ours, theirs = (np.asarray(getattr(atoms, attribute))[solute] for atoms in (same, shard.atoms))
        assert np.array_equal(ours, theirs), attribute
    assert topology.atoms.total_charge() == pytest.approx(0, abs=1e-2)


def test_provenance_travels_with_every_output(demo):
    """Settings, seed, versions and checksums of the inputs: in the record, and inside every HDF5 file."""
    digest = digests(demo.results)
    record = json.loads((demo.results / "provenance.json").read_text())["stages"]
    assert list(record) == list(STAGES)
    vouched = {file: value for stage in record.values() for part in ("outputs", "companions")
               for file, value in stage[part].items()}
    digest["clash_report.html"] = file_hash(demo.results / "clash_report.html")
    assert vouched == {file: digest[file] for file in vouched}
    assert record["scaffold"]["provenance"]["inputs"]["fasta"]["blake3"] == digests(demo.folder)["demo.fa"]
    maker = {"scaffold.h5": "scaffold", "solute.h5": "build", "solute_clean.h5": "clash", "topology.h5": "topology"}
    for file, stage in maker.items():
        with h5py.File(demo.results / file) as content:
            inside = json.loads(content.attrs["provenance"])
        assert {key: inside[key] for key in record[stage]["provenance"]} == record[stage]["provenance"]
    for stage in record.values():
        provenance = stage["provenance"]
        assert provenance["seed"] == 1 and provenance["settings"] and provenance["versions"]["numpy"]
        for entry in provenance["inputs"].values():
            assert entry["blake3"] in (*vouched.values(), *digests(demo.folder).values())
    # Everything that lies there is vouched for: by the record, or as a shard by the manifest.
    shards = {f"shards/{shard['name']}.{suffix}": entry["blake3"] for shard in demo.manifest["shards"]
              for suffix, entry in shard["files"].items()}
    assert shards == {file: digest[file] for file in shards}
    others = set(digest) - set(vouched) - set(shards)
    # What an interrupted run goes on from is no output; its records vouch for it and for themselves.
    working = ("shards/records/", "shards/plan.h5", "shards/placed.h5")
    assert all(name.startswith(working) for name in others), others


def test_nothing_is_done_twice(demo):
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in demo.results.rglob("*")}
    result = result_of("all", "--until", "topology", "--threads", 2, cwd=demo.folder)
    assert [name for name, stage in result["stages"].items() if stage["run"]] == []
    assert list(result["stages"]) == list(STAGES)
    after = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in demo.results.rglob("*")}
    assert after == before


def test_verify_finds_every_damage(demo, tmp_path):
    """Sound as it stands; then one flipped byte, or a truncation, in one file at a time: exit code 5 and its name."""
    folder = shutil.copytree(demo.folder, tmp_path / "copy")
    assert all(check["result"] == "ok" for check in result_of("verify", cwd=folder)["checks"])
    shard = demo.manifest["shards"][3]["name"]
    for name in ("scaffold.h5", "solute_clean.h5", "clash_report.tsv", "topology.h5", "shards/manifest.json",
                 *(f"shards/{shard}.{suffix}" for suffix in ("pdb.zst", "bcif", "cbb"))):
        path = folder / "results" / name
        content = path.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1:]
        for damaged in (flipped, content[:-1]) if name.startswith("shards/brick") else (flipped,):
            path.write_bytes(damaged)
            sentence = refusal(chromabuild("verify", cwd=folder), 5)
            assert path.name in sentence and "run `chromabuild all` again" in sentence
        path.write_bytes(content)
    assert chromabuild("shards", "verify", cwd=folder).returncode == 0


def test_another_seed_gives_another_fibre(demo, tmp_path):
    for path in demo.folder.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    origins, quick = [], ("--set", "scaffold.sweeps=20", "--set", "scaffold.choose=last")
    for seed in (5, 6):
        result_of("scaffold", *quick, "--seed", seed, cwd=tmp_path)
        with h5py.File(tmp_path / "results" / "scaffold.h5") as file:
            origins.append(file["bp/origin"][...])
    assert np.abs(origins[1] - origins[0]).max() > 1.0
