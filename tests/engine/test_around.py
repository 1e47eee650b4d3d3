"""Selections by distance (around:, around_res:, around_mol:) against MDAnalysis, across the faces of periodic boxes and
without a box, on one rank and two.

What a group chooses is read from the forces of a POSI restraint that pulls every atom of it.
"""

import shutil
from pathlib import Path

import h5py
import MDAnalysis
import numpy as np
import pytest
from support import systems
from support.chain_in_water import BOX, ENERGY, make_system, setup
from support.systems import sentence

PULL = np.array([0.1, 0.2, 0.3])
"""How far the references lie from the atoms, angstrom."""
RESIDUE = 4
"""Atoms of a residue of the chain."""


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """Bricks of a chain across faces of the box, among waters, and the references; the same atoms for MDAnalysis."""
    folder = tmp_path_factory.mktemp("around")
    (chain, _), (water, count) = runs = make_system(folder)
    residue = np.arange(chain.n) // RESIDUE
    n = residue[-1] + 1
    with h5py.File(folder / "t.h5", "a") as file:
        names = file["template/0000"]
        for key, value in {"atom_residue": residue.astype("i4"), "residue_name": np.full(n, b"CHN", "S4"),
                           "residue_number": np.arange(1, n + 1, dtype="i4"),
                           "residue_segid": np.full(n, b"A", "S4")}.items():
            del names[key]
            names[key] = value
    position = (systems.read_restarts(setup(folder, 1), 1).position + BOX / 2).round(3)
    systems.write_bricks(folder, runs, position, BOX)
    setup(folder, 2, "two")
    (folder / "pulled").mkdir()
    systems.write_bricks(folder / "pulled", runs, position + PULL, BOX)
    waters = np.repeat(np.arange(count), water.n)
    atoms = MDAnalysis.Universe.empty(len(position), n_residues=n + count, trajectory=True,
                                      atom_resindex=np.concatenate([residue, n + waters]))
    atoms.add_TopologyAttr("id", np.arange(1, len(position) + 1))
    atoms.add_TopologyAttr("molnum", np.concatenate([np.zeros(n, int), 1 + np.arange(count)]))
    # Constraint groups are whole in bricks and restart files, at the same side of the box.
    shutil.copy(folder / "t.h5", folder / "pulled/t.h5")
    atoms.atoms.positions = systems.read_restarts(setup(folder / "pulled", 1), 1).position
    return folder, atoms


def chosen(folder: Path, expression: str, ranks: int, boundary: dict, energy: dict) -> set[int]:
    """Numbers, from 1, of the atoms that a group chooses."""
    forces = []
    for n in (0, 1):
        inp = systems.control(
            folder / "e.inp", ENERGY=energy, BOUNDARY=boundary, OUTPUT={"forcefile": folder / "f.bin"},
            INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt",
                   "reffile": folder / "pulled/bricks.txt"},
            SELECTION={"group1": expression},
            RESTRAINTS={"nfunctions": n, "function1": "POSI", "constant1": 10, "select_index1": 1})
        done = systems.run("energy", inp, ranks)
        assert done.returncode == 0, done.stderr
        forces.append(systems.read_forces(folder / "f.bin"))
    held = np.linalg.norm(forces[1] - forces[0], axis=1) > 1
    return set((np.flatnonzero(held) + 1).tolist())


@pytest.mark.mpi
@pytest.mark.parametrize("is_open", [False, True], ids=["periodic", "open"])
@pytest.mark.parametrize(("ours", "theirs", "ranks"), [
    ("ai:18-21 around:3.0", "around 3.0 id 18:21", 1),
    ("ai:18-21 around_atoms: 7.5", "around 7.5 id 18:21", 2),
    ("ai:18-21 around_res:2.0", "(same residue as (id 18:21 or around 2.0 id 18:21)) and not id 18:21", 1),
    ("ai:18 around_residues:7.5 and not ai:1-9", "(same residue as (id 18 or around 7.5 id 18)) and not id 18 1:9", 2),
    ("ai:42-44 around_mol:6.5", "(same molnum as (id 42:44 or around 6.5 id 42:44)) and not id 42:44", 1),
    ("ai:44 around_molecules:6.5 or ai:44", "same molnum as (id 44 or around 6.5 id 44)", 1),
    ("ai:1 or ai:18 around:3.0", "id 1 or around 3.0 id 18", 1),
    ("(ai:1 or ai:18) around:3.0", "around 3.0 (id 1 or id 18)", 1),
    ("not (ai:1-41 around_mol:9 or ai:1-41)", "not (same molnum as (id 1:41 or around 9 id 1:41))", 1),
    ("ai:18 around:2.0 around:3.0", "around 3.0 (around 2.0 id 18)", 2),
])
def test_against_mdanalysis(system, ours, theirs, ranks, is_open):
    folder, atoms = system
    atoms.dimensions = None if is_open else [*BOX, 90, 90, 90]
    if is_open:
        found = chosen(folder, ours, ranks, {"type": "NOBC"}, ENERGY | {"electrostatic": "CUTOFF"})
    else:
        found = chosen(folder, ours, ranks, {}, ENERGY | {"pme_max_spacing": 4})
    expected = set(atoms.select_atoms(theirs, periodic=not is_open).ids.tolist())
    assert expected and found == expected


def test_start_of_the_run_where_there_are_no_other_coordinates(system, tmp_path):
    """Two restart files alone; the run tells how many atoms it fixes."""
    folder, atoms = system
    inp = systems.control(tmp_path / "r.inp", ENERGY=ENERGY, SELECTION={"group1": "ai:18-21 around:7.5"},
                          INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / "two().rst"},
                          MINIMIZE={"nsteps": 1, "fixatm_select_index": 1})
    done = systems.run("run", inp, 2)
    assert done.returncode == 0, done.stderr
    atoms.dimensions = [*BOX, 90, 90, 90]
    n = len(atoms.select_atoms("around 7.5 id 18:21"))
    assert f"{n} atoms are fixed" in done.stdout


@pytest.mark.parametrize(("expression", "words"), [
    ("around:3", "without the atoms that it is around before it"),
    ("ai:1 around:x", "must be a positive number"),
    ("ai:1 around_res:0", "must be a positive number"),
    ("ai:1 around_chains:3", "none of around:, around_res:, around_mol:"),
    ("ai:999999 around:3", "chooses no atom"),
])
def test_what_cannot_be_is_refused(system, tmp_path, expression, words):
    folder, _ = system
    inp = systems.control(tmp_path / "r.inp", ENERGY=ENERGY, SELECTION={"group1": expression},
                          INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / "start().rst"},
                          MINIMIZE={"nsteps": 1, "fixatm_select_index": 1})
    done = systems.run("run", inp)
    assert done.returncode == 3
    assert words in sentence(done)
