"""The PSF as an independent reader sees it."""

import io

import MDAnalysis
import numpy as np
import openmm.app
import pytest
from support.molecular_systems import make_solute

from chromabuild.base.errors import BadInputError
from chromabuild.export.psf import MAX_ATOMS, _ten_columns, _write_tuples, solvent_label, write_psf
from chromabuild.export.universe import make_universe
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.molecule_runs import part_of

DUPLEX = [["DA5", "DC", "DG3"], ["DC5", "DG", "DT3"]]
PEPTIDE = ["NALA", "TRP", "HIE", "CVAL"]


@pytest.mark.filterwarnings("ignore")
def test_mdanalysis_and_openmm_read_it(tmp_path):
    solute = make_solute([*DUPLEX, PEPTIDE, PEPTIDE])
    topology = make_topology(solute, {"water": 10_001, "sodium": 2, "chloride": 1})
    path = tmp_path / "topology.psf"
    write_psf(topology, path, solute)
    universe = MDAnalysis.Universe(path)
    assert len(universe.atoms) == topology.n_atoms
    assert np.allclose(universe.atoms.charges, topology.charges(), atol=1e-6)
    assert np.allclose(universe.atoms.masses, topology.masses(), atol=1e-4)
    assert universe.atoms.names[:solute.n_atoms].tolist() == solute.atom_names().tolist()
    solvent_bonds = {tuple(sorted(pair)) for pair in universe.bonds.indices.tolist() if min(pair) >= solute.n_atoms}
    solute_bonds = {tuple(sorted(pair)) for pair in universe.bonds.indices.tolist() if min(pair) < solute.n_atoms}
    assert solute_bonds == {tuple(sorted(pair)) for pair in solute.bonds().tolist()}
    assert len(solvent_bonds) == 2 * 10_001
    assert universe.select_atoms("segid S002").residues.resnames.tolist() == ["ALA", "TRP", "HIS", "VAL"]
    assert universe.select_atoms("segid S003").residues.resids.tolist() == [1, 2, 3, 4]
    waters = universe.select_atoms("resname HOH").residues
    assert len(waters) == 10_001
    assert (waters.segids[0], waters.resids[0]) == ("W000", 1)
    assert (waters.segids[9_998], waters.resids[9_998]) == ("W000", 9_999)
    assert (waters.segids[9_999], waters.resids[9_999]) == ("W001", 1)
    # every improper of ff14SB and OL15 is a centre with three neighbours, never a chain
    assert len(universe.impropers) > 0
    assert openmm.app.CharmmPsfFile(str(path)).topology.getNumAtoms() == topology.n_atoms


@pytest.mark.filterwarnings("ignore")
def test_a_universe_is_that_of_the_psf(tmp_path):
    solute = make_solute([*DUPLEX, PEPTIDE, PEPTIDE])
    topology = make_topology(solute, {"water": 10_001, "sodium": 2, "chloride": 1})
    write_psf(topology, tmp_path / "topology.psf", solute)
    read, made = MDAnalysis.Universe(tmp_path / "topology.psf"), make_universe(topology, solute)
    for name in ("names", "types", "resnames", "resids", "segids", "resindices"):
        assert getattr(made.atoms, name).tolist() == getattr(read.atoms, name).tolist(), name
    assert np.allclose(made.atoms.charges, read.atoms.charges, atol=1e-6)
    assert np.allclose(made.atoms.masses, read.atoms.masses, atol=1e-4)
    assert sorted(made.bonds.indices.tolist()) == sorted(read.bonds.indices.tolist())
    assert made.segments.segids.tolist()[:3] == ["S000", "S001", "S002"]


def test_solvent_labels():
    assert solvent_label("W", 0) == ("W000", 1)
    assert solvent_label("W", 9_999 * 36 + 9_998) == ("W010", 9_999)


def test_numbers_stand_in_ten_columns():
    numbers = [1, 10, 9_999, 10_000, 10_001, 123_456, 9_999_999, 10_000_000, 99_999_999, 100_000_000,
               123_450_067, 999_999_999]
    assert _ten_columns(np.array(numbers)).tobytes().decode() == "".join(f"{number:10d}" for number in numbers)


def test_too_many_atoms(tmp_path):
    topology = make_topology(None, {"water": 400_000_000})
    with pytest.raises(BadInputError, match="too many for a PSF"):
        write_psf(topology, tmp_path / "t.psf")


def test_the_largest_indices_can_be_read_by_columns_and_at_blanks():
    file = io.BytesIO()
    _write_tuples(file, [np.array([[MAX_ATOMS - 1, MAX_ATOMS]] * n) for n in (3, 2)], 4)
    first, second = file.getvalue().decode().splitlines()[:2]
    assert first.split() == [first[k:k + 10].strip() for k in range(0, 80, 10)] == ["999999998", "999999999"] * 4
    assert second.split() == ["999999998", "999999999"]


@pytest.mark.filterwarnings("ignore")
def test_solute_and_ions_alone(tmp_path):
    """They are called what they are called in the PSF of all."""
    solute = make_solute([*DUPLEX, PEPTIDE])
    whole = make_topology(solute, {"water": 10_001, "sodium": 12, "chloride": 3})
    part = part_of(whole, "solute-and-ions")
    universes = []
    for name, topology in (("all", whole), ("part", part)):
        write_psf(topology, tmp_path / f"{name}.psf", solute)
        universes.append(MDAnalysis.Universe(tmp_path / f"{name}.psf"))
    chosen, found = universes[0].select_atoms("not resname HOH"), universes[1].atoms
    assert len(found) == solute.n_atoms + 15
    for column in ("names", "resnames", "resids", "segids", "types", "charges", "masses"):
        assert getattr(chosen, column).tolist() == getattr(found, column).tolist(), column
    assert found.bonds.indices.tolist() == chosen.bonds.indices.tolist()
    assert len(found.dihedrals) == len(chosen.dihedrals) and len(found.impropers) == len(chosen.impropers)
