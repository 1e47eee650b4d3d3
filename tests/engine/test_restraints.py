"""Restraints: energies against numpy, forces against finite differences, selections, ranks, and what they hold."""

from pathlib import Path

import numpy as np
import pytest
from support import systems
from support.chain_in_water import BOX, ENERGY, make_system, minimised, setup
from support.systems import sentence

GROUPS = {"group1": "ai:1-8", "group2": "ai:11-19 and not ai:13", "group3": "ai:20 or ai:22", "group4": "ai:25-30"}
KINDS = {
    "POSI": {"select_index1": "1", "constant1": 3.0},
    "POSI-Y": {"select_index1": "1", "constant1": 3.0, "direction1": "Y"},
    "DIST": {"select_index1": "1 2", "constant1": 2.0, "reference1": 3.0},
    "DISTMASS": {"select_index1": "1 4", "constant1": 2.0, "reference1": 3.0},
    "REPUL": {"select_index1": "1 2", "constant1": 2.0, "reference1": 30.0},
    "REPULMASS-idle": {"select_index1": "1 2", "constant1": 2.0, "reference1": 0.1},
    "FBMASS": {"select_index1": "1 4", "constant1": 2.0, "reference1": 1.0},
    "FB-idle": {"select_index1": "1 4", "constant1": 2.0, "reference1": 30.0},
    "ANGLE": {"select_index1": "1 2 3", "constant1": 20.0, "reference1": 70.0},
    "ANGLEMASS": {"select_index1": "4 1 2", "constant1": 20.0, "reference1": 120.0},
    "DIHED": {"select_index1": "1 2 3 4", "constant1": 20.0, "reference1": -170.0},
    "RMSD": {"select_index1": "1", "constant1": 4.0, "reference1": 0.1},
    "RMSDMASS": {"select_index1": "1", "constant1": 4.0, "reference1": 0.1},
}


def evaluate(folder: Path, position: np.ndarray, runs: list, kind: str, ranks: int = 1) -> tuple[float, np.ndarray]:
    """Energy and forces of one restraint alone: those with it less those without it."""
    moved = folder / "moved"
    moved.mkdir(exist_ok=True)
    systems.write_bricks(moved, runs, position, BOX)
    results = []
    for n in (1, 0):
        keys = {"nfunctions": n} | ({"function1": kind.split("-")[0], **KINDS[kind]} if n else {})
        inp = systems.control(
            folder / "e.inp", INPUT={"topologyfile": folder / "t.h5", "shardfile": moved / "bricks.txt",
                                     "reffile": folder / "bricks.txt"},
            OUTPUT={"forcefile": folder / "f.bin"}, ENERGY=ENERGY | {"pme_max_spacing": 4}, SELECTION=GROUPS,
            RESTRAINTS=keys)
        done = systems.run("energy", inp, ranks)
        assert done.returncode == 0, done.stderr
        results.append((systems.read_energies(done.stdout)["RESTRAINT_TOTAL"], systems.read_forces(folder / "f.bin")))
    return results[0][0], results[0][1] - results[1][1]


def superposed(x: np.ndarray, reference: np.ndarray, weight: np.ndarray) -> float:
    """Weighted root-mean-square deviation after Kabsch's rotation, by singular values."""
    weight = weight / weight.sum()
    x, reference = x - weight @ x, reference - weight @ reference
    u, s, v = np.linalg.svd((weight[:, None] * reference).T @ x)
    s[2] *= np.sign(np.linalg.det(u @ v))
    return np.sqrt(max(0.0, weight @ (x**2).sum(axis=1) + weight @ (reference**2).sum(axis=1) - 2 * s.sum()))


def expected(kind: str, x: np.ndarray, reference: np.ndarray, mass: np.ndarray) -> float:
    """The energy of a restraint, written down once more."""
    keys = KINDS[kind]
    sets = [np.array(s) for s in ([*range(8)], [10, 11, 13, 14, 15, 16, 17, 18], [19, 21], [*range(24, 30)])]
    k, wanted = keys["constant1"], keys.get("reference1", 0.0)
    groups = [sets[int(i) - 1] for i in keys["select_index1"].split()]
    weight = mass if "MASS" in kind else np.ones(len(x))
    if kind.startswith("POSI"):
        axes = [1] if kind.endswith("Y") else [0, 1, 2]
        return k * ((x - reference)[groups[0]][:, axes] ** 2).sum()
    centre = [np.average(x[g], axis=0, weights=weight[g]) for g in groups]
    if kind.startswith("DIST"):
        return k * (np.linalg.norm(centre[1] - centre[0]) - wanted) ** 2
    if kind.startswith("REPUL"):
        return k * min(np.linalg.norm(centre[1] - centre[0]) - wanted, 0) ** 2
    if kind.startswith("FB"):
        return k * max(np.linalg.norm(centre[1] - centre[0]) - wanted, 0) ** 2
    if kind.startswith("ANGLE"):
        a, b = centre[0] - centre[1], centre[2] - centre[1]
        return k * (np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) - np.radians(wanted)) ** 2
    if kind.startswith("RMSD"):
        return k * (superposed(x[groups[0]], reference[groups[0]], weight[groups[0]]) - wanted) ** 2
    b = np.diff(centre, axis=0)
    n1, n2 = np.cross(b[0], b[1]), np.cross(b[1], b[2])
    angle = np.arctan2(np.cross(n1, n2) @ b[1] / np.linalg.norm(b[1]), n1 @ n2)
    change = angle - np.radians(wanted)
    return k * (change - 2 * np.pi * np.round(change / (2 * np.pi))) ** 2


@pytest.mark.mpi
@pytest.mark.parametrize("kind", KINDS)
def test_energy_and_forces(tmp_path, kind):
    """Against the formulas in numpy, the forces by their central differences; two ranks give the same."""
    runs = make_system(tmp_path, n_waters=4)
    reference = systems.read_restarts(setup(tmp_path, 1), 1).position
    mass = np.concatenate([np.tile(m.mass, c) for m, c in runs])
    n = runs[0][0].n
    noise = np.random.default_rng(5).normal(scale=0.2, size=(n, 3)).round(3)
    position = reference.copy()
    position[:n] += noise
    energy, force = evaluate(tmp_path, position, runs, kind)
    assert energy == pytest.approx(expected(kind, position, reference, mass), rel=1e-9, abs=1e-12)
    numeric = np.zeros_like(force)
    for atom in range(n):
        for axis in range(3):
            values = []
            for step in (-1e-4, 1e-4):
                moved = position.copy()
                moved[atom, axis] += step
                values.append(expected(kind, moved, reference, mass))
            numeric[atom, axis] = (values[0] - values[1]) / 2e-4
    assert np.abs(numeric).max() > 0.01 or (kind.endswith("idle") and energy == 0)
    assert np.abs(force - numeric).max() < 1e-5 * np.abs(numeric).max() + 1e-8
    # Across the faces of the box: everything shifted by half of it, on two ranks.
    shifted = tmp_path / "shifted"
    shifted.mkdir()
    systems.write_topology(shifted / "t.h5", runs, lj=False)
    systems.write_bricks(shifted, runs, reference + BOX / 2, BOX)
    energy_shifted, force_shifted = evaluate(shifted, position + BOX / 2, runs, kind, ranks=2)
    assert energy_shifted == pytest.approx(energy, rel=1e-9)
    assert np.abs(force_shifted - force).max() < 1e-8


def test_restrained_atoms_stay(tmp_path):
    """300 K for 1 ps with a spring of 50 kcal/mol/angstrom^2 on the heavy atoms of a chain's beginning."""
    runs = make_system(tmp_path, n_waters=4)
    start = minimised(tmp_path)
    inp = systems.control(
        tmp_path / "run.inp", ENERGY=ENERGY | {"pme_max_spacing": 4}, SELECTION={"group1": "heavy and ai:1-12"},
        INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start, "reffile": tmp_path / "bricks.txt"},
        OUTPUT={"rstfile": tmp_path / "end().rst"},
        RESTRAINTS={"nfunctions": 1, "function1": "POSI", "constant1": 50, "select_index1": 1},
        DYNAMICS={"nsteps": 1000, "eneout_period": 10}, CONSTRAINTS={"rigid_bond": "YES"},
        ENSEMBLE={"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 20, "temperature": 300})
    done = systems.run("run", inp)
    assert done.returncode == 0, done.stderr
    table = systems.read_table(done.stdout)
    assert 200 < table["TEMPERATURE"][30:].mean() < 400
    end = systems.read_restarts(str(tmp_path / "end().rst"), 1)
    reference = systems.read_restarts(setup(tmp_path, 1), 1).position
    heavy = np.array(runs[0][0].mass[:12]) > 2
    moved = (end.position - reference)[:12][heavy]
    moved -= BOX * np.round(moved / BOX)
    # Bonds and angles that were strained pull as well: equipartition alone gives 0.13.
    assert np.linalg.norm(moved, axis=1).max() < 0.6


@pytest.mark.parametrize(("selection", "restraints", "words"), [
    ({"group1": "ai:1-3 und ai:5"}, {}, ["group1", "und"]),
    ({"group1": "(ai:1-3"}, {}, ["group1", ")"]),
    ({"group1": "name:CA"}, {}, ["group1", "name:CA", "an:"]),
    ({"group1": "ai:999999"}, {}, ["group1", "no atom"]),
    ({}, {}, ["group1", "missing"]),
    ({"group1": "all"}, {"select_index1": "1 2"}, ["select_index1", "1 groups"]),
    ({"group1": "all"}, {"function1": "POSE"}, ["POSE", "POSI"]),
    ({"group1": "segid:A"}, {}, ["segid:A", "equal molecules", "ai:"]),
])
def test_bad_restraints_are_refused(tmp_path, selection, restraints, words):
    make_system(tmp_path, n_waters=4)
    keys = {"nfunctions": 1, "function1": "POSI", "constant1": 1, "select_index1": 1} | restraints
    inp = systems.control(
        tmp_path / "e.inp", ENERGY=ENERGY, SELECTION=selection, RESTRAINTS=keys,
        INPUT={"topologyfile": tmp_path / "t.h5", "shardfile": tmp_path / "bricks.txt",
               "reffile": tmp_path / "bricks.txt"})
    done = systems.run("energy", inp)
    assert done.returncode == 3
    for word in words:
        assert word in sentence(done)
