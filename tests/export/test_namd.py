"""NAMD input, which no registry carries: its files as other readers take them, and every key against what the settings
say. With CHARMM's force fields: test_charmm.py."""

import re
from dataclasses import replace

import MDAnalysis
import numpy as np
import pytest
from support.planned_export import BONDS, DYNAMICS, planned
from support.triclinic_systems import truncated_octahedron

from chromabuild.base.box_vectors import vectors_from_angles
from chromabuild.base.constants import AKMA_VELOCITY
from chromabuild.export.namd import export_namd
from chromabuild.forcefield.coordinate_files import read_cell
from chromabuild.simulate.groups import atoms_of_group


def test_namd_files(mixed, tmp_path):
    """Coordinates and restraints as MDAnalysis reads them; velocities are in NAMD's unit."""
    paths = export_namd(mixed, tmp_path, DYNAMICS, planned(), 9, BONDS)
    assert all(path.is_file() for path in paths)
    universe = MDAnalysis.Universe(tmp_path / "system.prmtop", tmp_path / "system.coor", format="NAMDBIN")
    assert universe.atoms.positions == pytest.approx(mixed.position, abs=1e-5)
    data = (tmp_path / "system.vel").read_bytes()
    assert int.from_bytes(data[:4], "little") == len(mixed.position)
    velocity = np.frombuffer(data[4:], "<f8").reshape(-1, 3) * AKMA_VELOCITY
    assert velocity == pytest.approx(mixed.velocity)
    keys = dict(line.split(None, 1) for line in (tmp_path / "02-heat-1.conf").read_text().splitlines()[1:])
    held = MDAnalysis.Universe(tmp_path / keys["conskfile"])
    expected = np.zeros(len(mixed.position))
    expected[atoms_of_group("heavy", mixed.topology)] += 4.8
    expected[atoms_of_group("backbone", mixed.topology)] += 20
    # Two decimals of 100 for all restraints together.
    constants = held.atoms.occupancies * float(keys["constraintScaling"])
    assert constants == pytest.approx(expected, abs=0.005 * 24.8 / 100 + 1e-6)
    assert held.atoms.positions == pytest.approx(mixed.position)
    assert (tmp_path / "02-heat-1_end_pairs.txt").read_text() == "bond 3 70 2 2.95\n"
    cell = (tmp_path / "system.xsc").read_text().splitlines()[-1].split()
    assert [float(cell[k]) for k in (1, 5, 9)] == mixed.box.tolist() and len(cell) == 13
    assert keys["parmfile"] == "heavy.prmtop" and keys["bincoordinates"] == "01-minimise.coor"
    assert float(keys["1-4scaling"]) == pytest.approx(1 / 1.2, abs=1e-6) and keys["exclude"] == "scaled1-4"
    assert keys["temperature"] == "100.0" and "binvelocities" not in keys and keys["conskcol"] == "O"
    text = (tmp_path / "02-heat-2.conf").read_text()
    assert "binvelocities        02-heat-1.vel\n" in text
    runs = [int(count) for count in re.findall(r"^run (\d+)$", text, re.M)]
    ramp = [float(value) for value in re.findall(r"^stochRescaleTemp ([\d.]+)$", text, re.M)]
    cycle = int(re.search(r"^stepspercycle +(\d+)$", text, re.M)[1])
    assert sum(runs) == 100 and all(count % cycle == 0 for count in runs)
    assert ramp[-len(runs):] == pytest.approx(120 + 20 * (np.cumsum(runs) - np.array(runs) / 2) / 100)
    text = (tmp_path / "03-produce.conf").read_text()
    assert "langevinPistonTarget 2.0265\n" in text and text.endswith("run 2000\n") and "constraints" not in text


def test_leaning_box(mixed, tmp_path):
    """The vectors and half of their sum, as chromabuild import reads them."""
    export_namd(replace(mixed, box=truncated_octahedron(40.0)), tmp_path, DYNAMICS)
    cell = read_cell(tmp_path / "system.xsc")
    np.testing.assert_allclose(vectors_from_angles(cell[:3], cell[3:]), truncated_octahedron(40.0), atol=1e-4)
    line = (tmp_path / "system.xsc").read_text().splitlines()[-1].split()
    assert [float(word) for word in line[10:]] == pytest.approx(truncated_octahedron(40.0).sum(axis=0) / 2, abs=1e-5)
