"""The PSF as an independent reader sees it."""

import MDAnalysis
import numpy as np
import openmm.app
import pytest
from support.molecular_systems import make_solute

from chromabuild.base.errors import BadInputError
from chromabuild.export.psf import _ten_columns, solvent_label, write_psf
from chromabuild.forcefield import make_topology

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


def test_solvent_labels():
    assert solvent_label("W", 0) == ("W000", 1)
    assert solvent_label("W", 9_999 * 36 + 9_998) == ("W010", 9_999)


def test_numbers_stand_in_ten_columns():
    numbers = [1, 10, 9_999, 10_000, 10_001, 123_456, 9_999_999, 10_000_000]
    assert _ten_columns(np.array(numbers)).tobytes().decode() == "".join(f"{number:10d}" for number in numbers)


def test_too_many_atoms(tmp_path):
    topology = make_topology(None, {"water": 4_000_000})
    with pytest.raises(BadInputError, match="too many for a PSF"):
        write_psf(topology, tmp_path / "t.psf")
