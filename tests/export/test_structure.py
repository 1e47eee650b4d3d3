"""Structure files as gemmi and Biopython read them: atoms, chains, entities, sequences, helices; parts of a solute."""

import warnings
from collections import Counter
from dataclasses import replace

import gemmi
import MDAnalysis
import numpy as np
import pytest
from Bio.PDB.binary_cif import BinaryCIFParser
from MDAnalysis.lib.distances import distance_array
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.dna.curve import circular_path
from chromabuild.export.frame import gathered, read_frame
from chromabuild.export.region import base_pairs_of_nucleosomes, base_pairs_of_region, part_of_solute
from chromabuild.export.solvent import solvent_near
from chromabuild.export.structure import write_structure
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.molecule.entities import chain_name

# Luger et al., Nature 389, 251 (1997), figure 2: helices of the histone folds.
FOLD = {"H3": [(64, 78), (86, 114), (121, 131)], "H4": [(31, 41), (50, 76), (83, 92)]}


@pytest.fixture(scope="module")
def mmcif(solute, tmp_path_factory):
    return write_structure(solute, tmp_path_factory.mktemp("cif") / "two.cif", "two nucleosomes", {"stage": "build"})


def test_gemmi_reads_every_atom(solute, mmcif):
    structure = gemmi.read_structure(str(mmcif))
    atoms = [(cra.atom.name, cra.residue.name, cra.residue.seqid.num, cra.residue.subchain,
              cra.atom.element.name.upper()) for cra in structure[0].all()]
    residue = solute.atom_residue
    molecule = np.searchsorted(solute.molecule_first_residue, residue, side="right") - 1
    assert [row[0] for row in atoms] == solute.atom_names().tolist()
    assert [row[2] for row in atoms] == solute.residue_number[residue].tolist()
    assert [row[3] for row in atoms] == [chain_name(k) for k in molecule.tolist()]
    assert [row[4] for row in atoms] == [element.upper() for element in solute.elements().tolist()]
    position = np.array([list(cra.atom.pos) for cra in structure[0].all()])
    assert np.abs(position - solute.position).max() < 0.00051


def test_entities_are_molecules_of_one_sequence(solute, mmcif):
    """Both copies of a histone are one entity; its sequence is that of the residues that are there."""
    structure = gemmi.read_structure(str(mmcif))
    assert [len(entity.subchains) for entity in structure.entities] == [1, 1, 4, 4, 4, 4]
    assert [entity.polymer_type for entity in structure.entities] == [gemmi.PolymerType.Dna] * 2 + [
        gemmi.PolymerType.PeptideL] * 4
    for entity in structure.entities:
        for name in entity.subchains:
            span = structure[0].get_subchain(name)
            assert [residue.name for residue in span] == entity.full_sequence
            assert [residue.label_seq for residue in span] == list(range(1, len(span) + 1))
    block = gemmi.cif.read(str(mmcif)).sole_block()
    assert block.find_value("_struct.title") == '"two nucleosomes"'
    table = block.find("_struct_asym.", ["id", "details"])
    assert [row.str(1) for row in table][:4] == ["", "", "nucleosome 1", "nucleosome 1"]
    canonical = {row.str(0): row.str(1).replace("\n", "") for row in
                 block.find("_entity_poly.", ["entity_id", "pdbx_seq_one_letter_code_can"])}
    assert canonical["1"] == "".join(name[1] for name in structure.entities[0].full_sequence)
    assert canonical["4"] == gemmi.one_letter_code(structure.entities[3].full_sequence)


def test_helices_are_those_of_the_histone_fold(solute, mmcif):
    """Within three residues of Luger's at either end, in every copy."""
    block = gemmi.cif.read(str(mmcif)).sole_block()
    first = solute.molecule_first_residue
    found: dict[str, list[tuple[int, int]]] = {}
    for row in block.find("_struct_conf.", ["beg_label_asym_id", "beg_label_seq_id", "end_label_seq_id"]):
        found.setdefault(row.str(0), []).append((int(row.str(1)), int(row.str(2))))
    for molecule, name in enumerate(solute.molecule_name):
        helices = [tuple(solute.residue_number[first[molecule] + end - 1] for end in ends)
                   for ends in found.get(chain_name(molecule), [])]
        for start, end in FOLD.get(name, []):
            assert any(abs(a - start) <= 3 and abs(b - end) <= 3 for a, b in helices), (name, start, end, helices)
        assert name in FOLD or name[:2] in ("H2", "DN")
    read = gemmi.read_structure(str(mmcif)).helices
    assert len(read) == sum(map(len, found.values())) and read[0].start.chain_name == "000A"


def test_binary_holds_the_same(solute, mmcif):
    """Read by Biopython."""
    path = write_structure(solute, mmcif.with_suffix(".bcif"), "two nucleosomes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        structure = BinaryCIFParser().get_structure("x", str(path))
    found = list(structure.get_atoms())
    assert [atom.get_name() for atom in found] == solute.atom_names().tolist()
    assert np.abs(np.array([atom.get_coord() for atom in found]) - solute.position).max() < 0.00051
    assert [chain.id for chain in structure[0]] == [chain_name(k) for k in range(len(solute.molecule_name))]
    assert path.stat().st_size < 0.15 * mmcif.stat().st_size


def test_pdb_has_a_letter_for_each_molecule(solute, scaffold, tmp_path):
    one = part_of_solute(solute, scaffold, int(scaffold.first_bp[1]), int(scaffold.last_bp[1]))
    structure = gemmi.read_structure(str(write_structure(one, tmp_path / "one.pdb", "one")))
    assert [chain.name for chain in structure[0]] == list("ABCDEFGHIJ")
    assert sum(1 for _ in structure[0].all()) == one.n_atoms
    position = np.array([list(cra.atom.pos) for cra in structure[0].all()])
    assert np.abs(position - one.position).max() < 0.00051
    assert [path.name for path in tmp_path.iterdir()] == ["one.pdb"]


def test_a_part_has_its_base_pairs_and_nucleosomes(solute, scaffold):
    """Residues that pair in the whole pair in the part: strand J runs the other way."""
    n = len(scaffold.base)
    first, last = base_pairs_of_nucleosomes("2", scaffold)
    assert (first, last) == (scaffold.first_bp[1], scaffold.last_bp[1])
    part = part_of_solute(solute, scaffold, first, last)
    assert part.molecule_name == ["DNA-I", "DNA-J", *solute.molecule_name[10:]]
    assert set(part.molecule_nucleosome.tolist()) == {-1, 1}
    length = last - first + 1
    starts, whole = part.residue_first_atom, solute.residue_first_atom
    for k in (0, 40, length - 1):
        for ours, theirs in ((k, first + k), (2 * length - 1 - k, n + n - 1 - (first + k))):
            a, b = starts[ours:ours + 2]
            c, d = whole[theirs:theirs + 2]
            assert np.array_equal(part.position[a:b], solute.position[c:d])
            assert part.residue_number[ours] == solute.residue_number[theirs]
    assert Counter(part.elements().tolist())["P"] == 2 * length


@pytest.mark.parametrize(("text", "expected"), [
    ("chrIV:1001-1010", (0, 9)), ("1,011-1,020", (10, 19)), ("chrIV:1-1001", (0, 0)),
    ("chrIV:1300-99999", (299, None))])
def test_regions(scaffold, text, expected):
    first, last = expected
    assert base_pairs_of_region(text, scaffold) == (first, len(scaffold.base) - 1 if last is None else last)


@pytest.mark.parametrize(("text", "told"), [
    ("chrV:1001-1010", "another chromosome than the locus, chrIV:1001-"), ("10-5", "holds no base pair"),
    ("chrIV:90000-95000", "holds no base pair of the locus"), ("chrIV", "is no region: write it as chrIV:1000-2000")])
def test_regions_that_are_none(scaffold, text, told):
    with pytest.raises(BadInputError, match=told):
        base_pairs_of_region(text, scaffold)


@pytest.mark.parametrize(("text", "told"), [("0-1", "the locus has 1-2"), ("2-1", "are not there"), ("x", "no range")])
def test_nucleosomes_that_are_none(scaffold, text, told):
    with pytest.raises(BadInputError, match=told):
        base_pairs_of_nucleosomes(text, scaffold)


def test_a_circle_is_closed(tmp_path):
    """By a connection between its last O3' and its first P."""
    sequence = np.arange(84) % 4
    position, template, _ = build_dna(sequence, *circular_path(84), circular=True)
    circle = assemble_solute(position, template, [], np.zeros((0, 3)), np.zeros((0, 3, 3)), circular=True)
    structure = gemmi.read_structure(str(write_structure(circle, tmp_path / "circle.cif", "circle")))
    assert [(link.partner1.atom_name, link.partner2.atom_name) for link in structure.connections] == [("O3'", "P")] * 2
    for link in structure.connections:
        atoms = [structure[0].find_cra(partner).atom for partner in (link.partner1, link.partner2)]
        assert atoms[0].pos.dist(atoms[1].pos) == pytest.approx(1.61, abs=0.03)


@pytest.fixture(scope="module")
def wet(solute):
    """Rigid waters, four-point by their fourth atom, and ions about a corner of the box, some of them near the solute:
    the topology of these alone stands for that of all."""
    water = MoleculeTemplate(name="HOH", rigid_water=True, lj_type=[0, 1, 1, 1], charge=[0, 0.5, 0.5, -1],
                             mass=[15.999, 1.008, 1.008, 0], atom_name=[b"O", b"H1", b"H2", b"EPW"],
                             atom_residue=[0] * 4, residue_name=[b"HOH"], residue_number=[1], residue_segid=[b"W"])
    ion = MoleculeTemplate(name="NA", lj_type=[0], charge=[1], mass=[22.99], atom_name=[b"NA"], atom_residue=[0],
                           residue_name=[b"NA"], residue_number=[1], residue_segid=[b"I"])
    rest = MoleculeTemplate(name="solute", lj_type=np.zeros(solute.n_atoms), charge=np.zeros(solute.n_atoms),
                            mass=np.ones(solute.n_atoms), atom_residue=solute.atom_residue,
                            residue_name=[b"X"] * solute.n_residues)
    topology = Topology([rest, water, ion], np.array([0, 1, 2], dtype=np.int32), np.array([1, 200, 20]),
                        np.array([b"a", b"b"]), np.ones(2), np.ones(2), 332.0, "none")
    box = np.ptp(solute.position, axis=0) + 40.0
    random = np.random.default_rng(5)
    place = random.uniform(0, 1, (220, 3)) * box
    shape = np.array([[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0], [0.1, 0.1, 0]])
    waters = np.mod((place[:200, None] + shape).reshape(-1, 3), box)  # atom by atom: molecules are parted
    return topology, np.concatenate([solute.position, waters, place[200:]]), box


def test_water_within_a_distance(solute, wet, tmp_path):
    """The molecules that MDAnalysis finds near, whole and in the image next to the solute, behind it in each format."""
    topology, position, box = wet
    kinds = solvent_near(topology, position, box, solute.position, 9.0)
    assert [(kind.residue, kind.names, kind.elements) for kind in kinds] == [
        ("HOH", ["O", "H1", "H2"], ["O", "H", "H"]), ("NA", ["NA"], ["NA"])]
    n = solute.n_atoms
    first = np.concatenate([position[n:n + 800:4], position[n + 800:]])
    apart = distance_array(first.astype(np.float32), solute.position.astype(np.float32), box=[*box, 90, 90, 90])
    near = apart.min(axis=1) < 9.0
    assert [len(kind.position) for kind in kinds] == [near[:200].sum(), near[200:].sum()] and 0 < near.sum() < 220
    for kind in kinds:
        assert cKDTree(solute.position).query(kind.position[:, 0])[0].max() < 9.0
        assert np.linalg.norm(kind.position - kind.position[:, :1], axis=2).max() < 1.0
    cif = write_structure(solute, tmp_path / "wet.cif", "wet", solvent=kinds)
    structure = gemmi.read_structure(str(cif))
    assert structure[0].count_atom_sites() == n + sum(kind.n_atoms for kind in kinds)
    assert [entity.entity_type.name for entity in structure.entities][-2:] == ["Water", "NonPolymer"]
    rows = [cra for cra in structure[0].all()][n:]
    assert {cra.residue.name for cra in rows} == {"HOH", "NA"} and rows[0].residue.het_flag == "H"
    block = gemmi.cif.read(str(cif)).sole_block()
    assert [row.str(0) for row in block.find("_pdbx_entity_nonpoly.", ["comp_id"])] == ["HOH", "NA"]
    wanted = np.concatenate([kind.position.reshape(-1, 3) for kind in kinds])
    assert np.abs(np.array([list(cra.atom.pos) for cra in rows]) - wanted).max() < 0.00051
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = write_structure(solute, tmp_path / "wet.bcif", "", None, kinds)
        binary = BinaryCIFParser().get_structure("x", str(path))
    found = list(binary.get_atoms())
    for ours, theirs in zip(found[n:], rows, strict=True):
        assert (ours.get_name(), ours.get_parent().get_resname().strip()) == (theirs.atom.name, theirs.residue.name)
        assert np.abs(ours.get_coord() - theirs.atom.pos.tolist()).max() < 0.00051
    pdb = gemmi.read_structure(str(write_structure(solute, tmp_path / "wet.pdb", "", None, kinds)))
    assert pdb[0].count_atom_sites() == structure[0].count_atom_sites() and len(pdb[0]) == len(solute.molecule_name) + 2
    assert not solvent_near(topology, position, box, solute.position, 0.0)


@pytest.fixture
def parted(solute):
    """The solute in a box that is little larger than it, every atom in the image that lies in the box; and the box."""
    box = np.ptp(solute.position, axis=0) + 30.0
    moved = solute.position + np.random.default_rng(3).uniform(0, 1, 3) * box
    return np.mod(moved, box), moved, box


def test_molecules_that_the_box_has_parted_are_gathered(solute, parted):
    wrapped, moved, box = parted
    assert (np.abs(wrapped - moved).max(axis=0) > 1).all()
    found = gathered(wrapped, solute, box, solute.position)
    image = (found - moved)[0]
    np.testing.assert_allclose(image / box, np.round(image / box), atol=1e-6)
    np.testing.assert_allclose(found - image, moved, atol=1e-4)
    assert gathered(wrapped, solute, np.zeros(3), solute.position) is wrapped


def test_frames_of_a_trajectory(solute, parted, tmp_path):
    """Written by MDAnalysis: frames are counted from 1, or from -1 backwards; water behind the solute is left out."""
    wrapped, _, box = parted
    every = MDAnalysis.Universe.empty(solute.n_atoms + 3, trajectory=True)
    with MDAnalysis.Writer(str(tmp_path / "a.dcd"), every.atoms.n_atoms) as file:
        for k in range(3):
            every.atoms.positions = np.concatenate([wrapped + k, np.zeros((3, 3))])
            every.dimensions = [*box, 90, 90, 90]
            file.write(every.atoms)
    for number, k in ((1, 0), (3, 2), (-1, 2), (-3, 0)):
        position, edges = read_frame(tmp_path / "a.dcd", number, solute.n_atoms)
        np.testing.assert_allclose(position[:-3], wrapped + k, atol=1e-3)
        np.testing.assert_allclose(edges, box, rtol=1e-5)
    for number in (0, 4, -4):
        with pytest.raises(BadInputError, match=f"has no frame {number}: it holds 3"):
            read_frame(tmp_path / "a.dcd", number, solute.n_atoms)
    with pytest.raises(BadInputError, match="are not of one build"):
        read_frame(tmp_path / "a.dcd", 1, solute.n_atoms + 4)
    (tmp_path / "b.dcd").write_text("no frames")
    with pytest.raises(BadInputError, match="cannot be read as a trajectory"):
        read_frame(tmp_path / "b.dcd", 1, solute.n_atoms)


def test_what_cannot_be_written_is_refused(solute, tmp_path):
    with pytest.raises(BadInputError, match=r"x\.xyz is no structure file .* name it \.cif, \.bcif or \.pdb"):
        write_structure(solute, tmp_path / "x.xyz", "")
    big = solute
    while big.n_atoms < 100_000:
        big = _twice(big)
    with pytest.raises(BadInputError, match="a PDB file holds 99,999 in 62"):
        write_structure(big, tmp_path / "x.pdb", "")
    assert not list(tmp_path.iterdir())


def _twice(solute):
    n = solute.n_residues
    return replace(
        solute, position=np.tile(solute.position, (2, 1)), residue_template=np.tile(solute.residue_template, 2),
        residue_number=np.tile(solute.residue_number, 2), residue_segment=np.tile(solute.residue_segment, 2),
        molecule_first_residue=np.concatenate([solute.molecule_first_residue, n + solute.molecule_first_residue[1:]]),
        molecule_name=solute.molecule_name * 2, molecule_nucleosome=np.tile(solute.molecule_nucleosome, 2))
