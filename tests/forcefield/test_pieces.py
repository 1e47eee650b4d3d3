"""The pieces of a topology file give back all terms of every molecule, and do not grow with its length."""

import subprocess

import h5py
import numpy as np
import pytest
from test_assign import MOLECULES, make_solute, strand

from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import _OPTIONAL, _SCHEMA, _dataset_name
from chromabuild.simulate import chromamd

TABLES = {kind: [_dataset_name(name) for name, _, _ in _SCHEMA
                 if _dataset_name(name).split("/")[0] == kind and name not in _OPTIONAL]
          for kind in ("bond", "angle", "urey_bradley", "dihedral", "improper", "exclusion", "pair14", "constraint")}


def written(folder, molecules):
    """An open topology file."""
    make_topology(make_solute(molecules), {"water": 4}).write(folder / "t.h5")
    return h5py.File(folder / "t.h5")


@pytest.mark.parametrize("name", MOLECULES)
def test_pieces_give_every_term_back(tmp_path, name):
    """For each piece of each molecule: the rows of the whole molecule that touch its atoms, in their order."""
    with written(tmp_path, MOLECULES[name]) as file:
        pool = file["pieces"]
        start = pool["first_atom"][...]
        cut = [group for group in file["template"].values() if "piece" in group]
        assert len(cut) == len(file["template"]) - 1  # all but water
        for molecule in cut:
            pieces = molecule["piece"][...]
            sizes = np.diff(start)[pieces]
            first = np.concatenate([[0], np.cumsum(sizes)])
            assert np.array_equal(sizes, np.bincount(molecule["atom_residue"][...]))
            for column in ("lj_type", "charge", "mass"):
                assert np.array_equal(molecule[column][...], np.concatenate(
                    [pool[column][start[p]:start[p + 1]] for p in pieces]))
            for kind, columns in TABLES.items():
                atoms = molecule[columns[0]][...]
                owned = pool["first_term"][kind][...]
                for k, p in enumerate(pieces):
                    rows = slice(owned[p], owned[p + 1])
                    touching = ((atoms >= first[k]) & (atoms < first[k + 1])).any(axis=1)
                    assert np.array_equal(pool[columns[0]][rows] - start[p] + first[k], atoms[touching])
                    for column in columns[1:]:
                        assert np.array_equal(pool[column][rows], molecule[column][touching])


def test_pieces_do_not_grow_with_the_molecule(tmp_path):
    """A residue and its two neighbours decide a piece: at most 4^3 inner ones and 2 x 4^2 at the ends of a strand."""
    sequence = "".join(np.random.default_rng(4).choice(list("ACGT"), 2000))
    with written(tmp_path, [strand(sequence), strand(sequence[::-1])]) as file:
        assert len(file["pieces/first_atom"]) - 1 <= 4**3 + 2 * 4**2


def test_residues_joined_by_a_constraint_stay_together(tmp_path):
    topology = make_topology(make_solute([strand("ACGTAC")]), {})
    molecule = topology.templates[0]
    first = np.flatnonzero(np.diff(molecule.atom_residue, prepend=-1))
    molecule.constraint_atoms = np.vstack([molecule.constraint_atoms, [[first[3] + 2, first[2] + 1]]]).astype("i4")
    molecule.constraint_distance = np.append(molecule.constraint_distance, 2.0)
    topology.write(tmp_path / "t.h5")
    with h5py.File(tmp_path / "t.h5") as file:
        sizes = np.diff(file["pieces/first_atom"][...])[file["template/0000/piece"][...]]
    expected = np.diff(np.append(first, molecule.n_atoms))
    assert sizes.tolist() == [*expected[:2], expected[2] + expected[3], *expected[4:]]


@pytest.mark.parametrize("damage", ["bit", "range", "reach"])
def test_damaged_pieces_are_refused_by_the_engine(tmp_path, damage):
    """A changed bit by the checksum; a piece that is not there; a piece whose terms reach beyond the molecule."""
    path, control = tmp_path / "t.h5", tmp_path / "merge.inp"
    make_topology(make_solute([strand("ACGT")]), {"water": 10}).write(path)
    with h5py.File(path, "r+") as file:
        place = file["pieces/angle/theta0"].id.get_chunk_info(0).byte_offset
        if damage == "range":
            file["template/0000/piece"][2] = 40
        elif damage == "reach":
            file["template/0000/piece"][...] = file["template/0000/piece"][...][::-1]
    content = bytearray(path.read_bytes())
    if damage == "bit":
        content[place + 77] ^= 4
    path.write_bytes(content)
    chromamd.write_control(control, {"INPUT": {"topologyfile": path, "dcdfile": tmp_path / "absent_().dcd"},
                                     "OUTPUT": {"dcdfile": tmp_path / "merged.dcd"}})
    done = subprocess.run([chromamd.executable(), "merge", control], capture_output=True, text=True, timeout=60)
    assert done.returncode == 5 and str(path) in done.stderr
    assert {"bit": "theta0", "range": "names a piece", "reach": "beyond the molecule"}[damage] in done.stderr
