"""Other programs read every shard whole: atoms, residues, names, coordinates, box."""

import warnings

import Bio.PDB
import gemmi
import MDAnalysis
import numpy as np
import openmm.app
import pytest
import zstandard
from Bio.PDB.binary_cif import BinaryCIFParser
from openmm import unit

from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import CHAIN_LETTERS
from chromabuild.shards.brick_file import read_brick
from chromabuild.solvate import prepare, solvate
from chromabuild.solvate.bricks import make_brick

pytestmark = pytest.mark.release

HALF_A_THOUSANDTH = 0.0005 + 1e-6


@pytest.fixture(scope="module")
def texts(shards, tmp_path_factory):
    """Per shard: its PDB text in a file, and what is in the brick."""
    folder, manifest, _, _ = shards
    plain = tmp_path_factory.mktemp("plain")
    result = []
    for shard in manifest.shards[::5]:
        text = zstandard.ZstdDecompressor().decompress((folder / f"{shard.name}.pdb.zst").read_bytes())
        path = plain / f"{shard.name}.pdb"
        path.write_bytes(text)
        brick = read_brick(folder / f"{shard.name}.cbb")
        result.append((path, brick.position / 1000, int(shard.name[-5:])))
    return result


def expected(system, k):
    """Atom names, elements, residue names and numbers, segments of brick k in order."""
    brick = make_brick(system, k)
    library = list(residue_library().values())
    templates = [library[t] for t in brick.residue_template]
    return {
        "names": [name for t in templates for name in t.atoms],
        "elements": [e.upper() for t in templates for e in t.elements],
        "residues": [(t.pdb_name, int(n)) for t, n in zip(templates, brick.residue_number, strict=True)],
        "segments": [bytes(s).decode().strip() for s in brick.residue_segment],
    }


def test_mdanalysis(texts, system, shards):
    for path, position, k in texts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            universe = MDAnalysis.Universe(str(path))
        want = expected(system, k)
        assert np.abs(universe.atoms.positions - position).max() < HALF_A_THOUSANDTH
        assert universe.atoms.names.tolist() == want["names"]
        assert [e.upper() for e in universe.atoms.elements] == want["elements"]
        # MDAnalysis takes a fall of residue numbers by more than 5,000 for a wrap and counts on in ten thousands.
        numbers = (universe.residues.resids % 10_000).tolist()
        assert list(zip(universe.residues.resnames, numbers, strict=True)) == want["residues"]
        assert universe.residues.segids.tolist() == want["segments"]
        assert universe.dimensions[:3] == pytest.approx(shards[2], abs=HALF_A_THOUSANDTH)


def test_biopython(texts, system):
    for path, position, k in texts:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it warns about residues that it joins or drops
            warnings.filterwarnings("ignore", message="Chain . is discontinuous")
            structure = Bio.PDB.PDBParser(PERMISSIVE=True).get_structure("x", str(path))
        atoms = list(structure.get_atoms())
        assert len(atoms) == len(position)
        assert len(list(structure.get_residues())) == len(expected(system, k)["residues"])
        # Biopython groups by chain: compare as sets of lines
        found = sorted(map(tuple, np.round(np.array([a.coord for a in atoms]), 3).tolist()))
        assert np.abs(np.array(found) - np.array(sorted(map(tuple, position.tolist())))).max() < HALF_A_THOUSANDTH


def test_biopython_reads_binary_cif(shards, system):
    """A reader of BinaryCIF that is not ours: atoms, residues, chains by their segments, names, coordinates."""
    folder, manifest, _, _ = shards
    for k in (0, 7, 16):
        structure = BinaryCIFParser().get_structure("x", str(folder / f"{manifest.shards[k].name}.bcif"))
        found, want = list(structure.get_atoms()), expected(system, k)
        brick = make_brick(system, k)
        residues = [(r.get_parent().id, r.get_resname(), r.id[1]) for r in structure.get_residues()]
        assert sorted(residues) == sorted((s, *r) for s, r in zip(want["segments"], want["residues"], strict=True))
        order = np.argsort([atom.serial_number for atom in found])
        assert [found[i].serial_number for i in order] == (brick.global_id + 1).tolist()
        assert [found[i].name for i in order] == want["names"]
        assert [found[i].element for i in order] == want["elements"]
        assert np.abs(np.array([found[i].coord for i in order]) - brick.position / 1000).max() < HALF_A_THOUSANDTH


def test_gemmi(texts, system):
    for path, position, k in texts:
        structure = gemmi.read_pdb(str(path))
        found = [(c.residue.name, c.residue.seqid.num, c.residue.segment, c.atom.name, c.atom.element.name.upper(),
                  *c.atom.pos.tolist()) for c in structure[0].all()]
        want = expected(system, k)
        brick = make_brick(system, k)
        residue = [(*want["residues"][r], want["segments"][r]) for r in brick.atom_residue]
        listed = [(*residue[i], want["names"][i], want["elements"][i], *position[i]) for i in range(len(position))]
        assert len(found) == len(listed)
        for a, b in zip(sorted(found), sorted(listed), strict=True):
            assert a[:5] == b[:5]
            assert a[5:] == pytest.approx(b[5:], abs=HALF_A_THOUSANDTH)
        assert sum(len(chain) for chain in structure[0]) == len(want["residues"])


def test_openmm(texts, system):
    for path, position, k in texts[:2]:
        pdb = openmm.app.PDBFile(str(path))
        found = np.array(pdb.positions.value_in_unit(unit.angstrom))
        assert pdb.topology.getNumAtoms() == len(position)
        assert pdb.topology.getNumResidues() == len(expected(system, k)["residues"])
        assert np.abs(found - position).max() < HALF_A_THOUSANDTH
        assert [a.element.symbol.upper() for a in pdb.topology.atoms()] == expected(system, k)["elements"]


def test_openmm_assigns_the_force_field(solute, tmp_path):
    """A system in one brick is a complete input: AMBER recognises every residue and the charge is zero."""
    solvate(solute, SolvateSection(brick_edge=200.0, padding=6.0, compress=False), 1, 1, tmp_path)
    pdb = openmm.app.PDBFile(str(tmp_path / "brick_00000.pdb"))
    field = openmm.app.ForceField("amber14/protein.ff14SB.xml", "amber14/DNA.OL15.xml", "amber14/tip3p.xml")
    system = field.createSystem(pdb.topology)
    force = next(f for f in system.getForces() if isinstance(f, openmm.NonbondedForce))
    charge = sum(force.getParticleParameters(i)[0].value_in_unit(unit.elementary_charge)
                 for i in range(force.getNumParticles()))
    assert charge == pytest.approx(0, abs=1e-3)


def test_chain_letters_of_a_large_brick(solute, tmp_path):
    """A brick of 98 x 84 x 66 angstrom and more: waters need several letters, none of the solute's."""
    system = prepare(solute, SolvateSection(brick_edge=200.0, padding=25.0), 1, 1, tmp_path)
    brick = make_brick(system, 0)
    assert system.layout.counts["water"] > 3 * 9999
    keys = brick.chain_letters.astype(np.int64) * 10000 + brick.residue_number
    assert len(np.unique(keys)) == len(keys)
    of_solute = brick.residue_chain > 0
    assert (brick.chain_letters[of_solute] == brick.residue_chain[of_solute]).all()
    assert not set(brick.chain_letters[of_solute]) & set(brick.chain_letters[~of_solute])
    assert set(map(chr, brick.chain_letters)) <= set(CHAIN_LETTERS)
    segment = brick.residue_segment.copy().view("S4").ravel()
    assert all(len(set(brick.chain_letters[segment == s])) == 1 for s in np.unique(segment))


def test_pdb_columns(texts, shards):
    """Line by line against the format's column table."""
    path, position, _ = texts[1]
    lines = path.read_text().splitlines()
    assert lines[0].startswith("CRYST1") and lines[-1].rstrip() == "END"
    atoms = [line for line in lines[1:-1] if not line.startswith("TER")]
    assert {len(line) for line in atoms} == {80}
    ids = read_brick(shards[0] / f"{path.stem}.cbb").global_id
    assert [int(line[6:11]) for line in atoms] == ((ids + 1) % 100_000).tolist()
    found = np.array([[float(line[30 + 8 * k:38 + 8 * k]) for k in range(3)] for line in atoms])
    assert found == pytest.approx(position)
    for line in atoms:
        name, element = line[12:16], line[76:78].strip()
        assert (line[:6] == "HETATM") == (line[17:20].strip() in ("HOH", "NA", "CL"))
        assert name[0] == " " or len(name.strip()) == 4 or len(element) == 2
        assert line[54:66] == "  1.00  0.00" and line[72] in "DPWNC"
