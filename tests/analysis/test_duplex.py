"""Analysis of duplexes, against rebuilding, a crystal structure and its published parameters."""

import json
from pathlib import Path

import gemmi
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import chromabuild

from chromabuild.analysis.duplex import Duplex, read_duplexes, rebuild_duplex, round_trip_error
from chromabuild.base.errors import BadInputError
from chromabuild.build.duplex import build_dna
from chromabuild.dna.backbone import base_layout, close_backbone, measure_backbone, place_bases
from chromabuild.dna.sequence import base_index, both_strands
from chromabuild.dna.start import SUGAR
from chromabuild.dna.steps import rotation_from_vector
from chromabuild.molecule.hydrogens import place_hydrogens, settle_base_methyls
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.detect import find_overlaps

CRYSTAL = Path(__file__).parent / "data" / "1kx5_dna.pdb.gz"


@pytest.fixture(scope="module")
def crystal():
    (duplex,) = read_duplexes(CRYSTAL)
    return duplex


def test_crystal_has_all_pairs_and_the_known_means(crystal):
    assert len(crystal.sequence) == 147
    assert (crystal.first[0], crystal.second[0], crystal.first[-1]) == ("I-73", "J73", "I73")
    steps = crystal.step_parameters
    # CEHS analysis of 1KX5 by an independent program: mean twist 34.60, rise 3.32; rounding of its base geometry.
    assert steps[:, 5].mean() == pytest.approx(34.60, abs=0.1)
    assert steps[:, 2].mean() == pytest.approx(3.32, abs=0.02)
    # Davey et al. 2002: base pairs have a propeller of about -12 degrees.
    assert crystal.pair_parameters[:, 4].mean() == pytest.approx(-12, abs=1.5)


def test_crystal_survives_the_round_trip(crystal):
    assert round_trip_error(crystal) < 1e-9
    origin, frame = crystal.pair_frames
    again, turned = rebuild_duplex(crystal.pair_parameters, crystal.step_parameters, origin[0], frame[0])
    assert np.abs(again - crystal.base_origin).max() < 1e-9
    assert np.abs(turned - crystal.base_frame).max() < 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_parameters_survive_the_round_trip(seed):
    random = np.random.Generator(np.random.Philox(key=seed))
    pair = random.uniform(-1, 1, (12, 6)) * [2, 1, 2, 40, 40, 30]
    step = random.uniform(-1, 1, (11, 6)) * [2, 2, 1, 30, 30, 20] + [0, 0, 3.4, 0, 0, 34]
    origin, frame = rebuild_duplex(pair, step)
    duplex = Duplex([""] * 12, [""] * 12, "A" * 12, origin, frame)
    assert np.abs(duplex.pair_parameters - pair).max() < 1e-9
    assert np.abs(duplex.step_parameters - step).max() < 1e-9


def crystal_atoms(names_of):
    """Positions in the crystal, (147, 2, atoms, 3), of atoms named for each base letter."""
    model = gemmi.read_structure(str(CRYSTAL))[0]
    strands = []
    for chain in "IJ":
        rows = [[residue.find_atom(name, "*").pos.tolist() if residue.find_atom(name, "*") else [np.nan] * 3
                 for name in names_of[residue.name[1]]] for residue in model[chain]]
        strands.append(rows)
    return strands


def test_crystal_dna_is_rebuilt_from_its_parameters(crystal):
    origin, frame = crystal.pair_frames
    place, turn = rebuild_duplex(crystal.pair_parameters, crystal.step_parameters, origin[0], frame[0])
    bases = both_strands(base_index(crystal.sequence))
    place, turn = np.concatenate([place[0], place[1][::-1]]), np.concatenate([turn[0], turn[1][::-1]])
    atoms, _ = place_bases(bases, place, turn)
    layout, found = base_layout(), crystal_atoms(base_layout().atoms)
    observed = found[0] + found[1]
    apart = np.concatenate([np.linalg.norm(atoms[k, : layout.size[b]] - observed[k], axis=1)
                            for k, b in enumerate(bases)])
    assert np.sqrt(np.mean(apart**2)) < 0.1  # standard planar bases against a crystal's
    sugar, _ = close_backbone(bases, place, turn)
    phosphorus = np.array(sum(crystal_atoms(dict.fromkeys("ACGT", ["P"])), []))[:, 0]
    apart = np.linalg.norm(sugar[:, SUGAR.index("P")] - phosphorus, axis=1)
    assert np.sqrt(np.nanmean(apart**2)) < 0.7
    geometry = measure_backbone(bases, sugar, atoms)
    assert np.sqrt(np.nanmean(geometry.bond_z**2)) <= 0.2 and np.sqrt(np.nanmean(geometry.angle_z**2)) <= 0.7
    assert np.nanmax(np.abs(np.concatenate([geometry.bond_z, geometry.angle_z], axis=1))) < 4


def test_rebuilt_dna_is_as_free_of_overlaps_as_the_crystal(crystal):
    sequence = base_index(crystal.sequence)
    position, template, _ = build_dna(sequence, *crystal.pair_frames)
    library = list(residue_library().values())
    first = np.concatenate([[0], np.cumsum([len(library[k].atoms) for k in template])])
    observed, residues = position.copy(), sum(([*gemmi.read_structure(str(CRYSTAL))[0][c]] for c in "IJ"), [])
    for k, residue in enumerate(residues):
        for name, a in library[template[k]].index.items():
            if library[template[k]].elements[a] != "H" and residue.find_atom(name, "*"):
                observed[first[k] + a] = residue.find_atom(name, "*").pos.tolist()
    place_hydrogens(observed, template, first)
    settle_base_methyls(observed, template, first)

    def clashscore(where):
        solute = Solute(where.astype(np.float32), template, np.tile(np.arange(1, 148), 2).astype(np.int32),
                        np.repeat([0, 1], 147).astype(np.uint16), ["DI00", "DJ00"], ["I", "J"],
                        np.array([0, 147, 294]), ["DNA-I", "DNA-J"], np.array([-1, -1]))  # fmt: skip
        return find_overlaps(Atoms.from_solute(solute)).clashscore

    assert clashscore(position) <= min(10.0, clashscore(observed))


def test_parameters_do_not_depend_on_where_the_duplex_lies_or_which_strand_comes_first(crystal, tmp_path):
    structure = gemmi.read_structure(str(CRYSTAL))
    turn = gemmi.Transform(gemmi.Mat33(rotation_from_vector(np.array([0.4, -1.0, 2.0])).tolist()),
                           gemmi.Vec3(40, -200, 13))
    structure[0].transform_pos_and_adp(turn)
    for name, new in (("I", "X"), ("J", "I"), ("X", "J")):
        structure[0][name].name = new
    model = gemmi.Model(1)
    for name in "IJ":
        model.add_chain(structure[0][name])
    other = gemmi.Structure()
    other.add_model(model)
    other.setup_entities()
    other.make_mmcif_document().write_file(str(tmp_path / "turned.cif"))
    (turned,) = read_duplexes(tmp_path / "turned.cif")
    sign = np.array([-1, 1, 1, -1, 1, 1])  # read from the other strand, shift and tilt change sign
    # Coordinates are written to 0.001 angstrom: a frame fitted to six atoms some angstrom apart turns by 1e-3 / 2 rad.
    assert np.abs(turned.step_parameters[::-1] * sign - crystal.step_parameters).max() < 0.1
    assert np.abs(turned.pair_parameters[::-1] * sign - crystal.pair_parameters).max() < 0.1


def test_a_broken_strand_ends_the_duplex(tmp_path):
    structure = gemmi.read_structure(str(CRYSTAL))
    chain = structure[0]["I"]
    del chain[60]
    structure.write_pdb(str(tmp_path / "nick.pdb"))
    first, second = read_duplexes(tmp_path / "nick.pdb")
    assert (len(first.sequence), len(second.sequence)) == (60, 86)
    assert first.first[-1] == "I-14" and second.first[0] == "I-12"


@pytest.mark.parametrize("content, complaint", [(None, "cannot be read"), ("no structure\n", "holds no"),
                                                ("END\n", "holds no")])
def test_useless_files_are_named(tmp_path, content, complaint):
    path = tmp_path / "file.pdb"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInputError, match=f"file.pdb {complaint}"):
        read_duplexes(path)


def test_command_prints_json_and_a_table(tmp_path):
    def run(*arguments):
        return chromabuild("analyse", "duplex", *arguments, cwd=tmp_path)

    done = run(str(CRYSTAL), "--json")
    assert done.returncode == 0, done.stderr
    (duplex,) = json.loads(done.stdout)["duplexes"]
    assert len(duplex["pairs"]) == 147 and len(duplex["steps"]) == 146 and duplex["round_trip_error"] < 1e-9
    assert duplex["steps"][0]["step"] == duplex["sequence"][:2]
    lines = run(str(CRYSTAL)).stdout.splitlines()
    assert lines[0].startswith("duplex 1: I-73..I73 with J73..J-73, 147 base pairs")
    failed = run("missing.pdb")
    assert failed.returncode == 3 and "missing.pdb" in failed.stderr and "Traceback" not in failed.stderr
