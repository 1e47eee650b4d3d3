"""Which atoms a trajectory holds, against the atoms one by one."""

import numpy as np
import pytest
from support.molecular_systems import make_solute

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.molecule_runs import DCD_ATOMS, MoleculeRuns, part_of, trajectory_ranges

DUPLEX = [["DA5", "DC", "DG3"], ["DC5", "DG", "DT3"]]


def atoms_of(ranges):
    return np.concatenate([np.arange(first - 1, last) for first, last in ranges])


@pytest.mark.parametrize("selection", ["all", "solute", "solute-and-ions", "auto"])
def test_ranges_hold_the_chosen_atoms(tmp_path, selection):
    solute = make_solute(DUPLEX)
    topology = make_topology(solute, {"water": 20, "sodium": 4, "chloride": 2})
    topology.write(tmp_path / "topology.h5")
    ranges = trajectory_ranges(tmp_path / "topology.h5", selection)
    assert ranges == MoleculeRuns.of(topology).ranges(selection)
    n = solute.n_atoms
    kept = {"solute": np.arange(n), "solute-and-ions": np.r_[np.arange(n), n + 60:n + 66]}.get(selection,
                                                                                               np.arange(n + 66))
    assert np.array_equal(atoms_of(ranges), kept)
    assert len(ranges) == (2 if selection == "solute-and-ions" else 1)
    part = part_of(topology, selection)
    assert np.array_equal(part.masses(), topology.masses()[kept])
    assert np.array_equal(part.per_atom("atom_name"), topology.per_atom("atom_name")[kept])


@pytest.mark.parametrize("waters, chosen", [(333_200, "all"), (333_400, "solute-and-ions")])
def test_auto_leaves_water_out_from_a_million_atoms_on(waters, chosen):
    runs = MoleculeRuns.of(make_topology(make_solute(DUPLEX), {"water": waters, "sodium": 4}))
    assert (runs.n_atoms < 1_000_000) == (chosen == "all")
    assert runs.ranges("auto") == runs.ranges(chosen)


def test_pure_water():
    runs = MoleculeRuns.of(make_topology(None, {"water": 500_000}))
    assert runs.ranges("auto") == [(1, 1_500_000)]
    with pytest.raises(BadInputError, match="solute-and-ions chooses no atom of this system"):
        runs.ranges("solute-and-ions")


def test_what_a_dcd_does_not_hold_is_refused(tmp_path):
    topology = make_topology(make_solute(DUPLEX), {"water": DCD_ATOMS // 3, "sodium": 4})
    topology.write(tmp_path / "topology.h5")
    with pytest.raises(BadInputError, match="holds at most 536,870,911: choose solute-and-ions"):
        trajectory_ranges(tmp_path / "topology.h5", "all")
    n, ions = make_solute(DUPLEX).n_atoms, topology.n_atoms - 3
    assert trajectory_ranges(tmp_path / "topology.h5", "auto") == [(1, n), (ions, topology.n_atoms)]
