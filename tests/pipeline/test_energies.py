"""Energies of every term and forces: chromamd beside OpenMM's Reference platform, on what the demo is made of.

Both evaluate the same Topology with the same Ewald splitting, PME grid and spline order, so that only arithmetic
differs: 1e-6 of every term and 1e-6 rms of the forces in the double-precision build, 1e-5 and 1e-4 in the mixed one.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from support.engine_energies import TOLERANCES, Evaluation, assert_agree, evaluate, reference_energy, write_input
from support.molecular_systems import MolecularSystem

from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute
from chromabuild.shards import read_shards
from chromabuild.simulate.openmm_engine import NonbondedOptions

pytestmark = [pytest.mark.slow, pytest.mark.mpi]


@dataclass(frozen=True)
class Case:
    """A system, what OpenMM says of it, and the [INPUT] that chromamd reads."""

    options: NonbondedOptions
    theirs: Evaluation
    entries: dict[str, object]


@pytest.fixture(scope="module")
def solute(nucleosome, tmp_path_factory):
    """A nucleosome with tails and linkers alone in its box: 26,745 atoms with a charge of -204 e.

    The neutralising background belongs to the electrostatic energy of both.
    """
    box, position = read_shards(nucleosome.results / "shards" / "bricks.txt")
    solute = Solute.read(nucleosome.results / "solute_clean.h5")
    system = MolecularSystem(make_topology(solute, {}), position[:solute.n_atoms], box)
    options = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=tuple(16 * int(np.ceil(edge / 16)) for edge in box))
    return Case(options, reference_energy(system, options), write_input(system, tmp_path_factory.mktemp("solute")))


@pytest.fixture(scope="module")
def solvated_piece(piece):
    """Two histones in salt water, from the files that `chromabuild solvate` and `chromabuild topology` wrote."""
    entries = {"topologyfile": piece.results / "topology.h5", "shardfile": piece.results / "shards" / "bricks.txt"}
    box, position = read_shards(entries["shardfile"])
    system = MolecularSystem(Topology.read(entries["topologyfile"]), position, box)
    assert system.topology.net_charge == pytest.approx(0, abs=1e-6)
    assert all(piece.manifest["counts"][name] > 0 for name in ("solute", "water", "sodium", "chloride"))
    assert len(piece.manifest["shards"]) > 1
    options = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=tuple(16 * int(np.ceil(edge / 16)) for edge in box))
    return Case(options, reference_energy(system, options), entries)


@pytest.mark.parametrize("name", ["solute", "solvated_piece"])
@pytest.mark.parametrize(("precision", "energy_tolerance", "force_tolerance"), TOLERANCES)
def test_every_term_against_openmm(request, tmp_path, name, precision, energy_tolerance, force_tolerance):
    case = request.getfixturevalue(name)
    ours = evaluate(case.entries, tmp_path, precision, case.options)
    assert len(ours[1]) == len(case.theirs[1])
    assert_agree(ours, case.theirs, energy_tolerance, force_tolerance)


def test_two_ranks_find_the_same(solvated_piece, tmp_path):
    """Bricks of the pipeline distributed over two domains; double precision, only the order of summation differs."""
    one, two = (evaluate(solvated_piece.entries, tmp_path, "double", solvated_piece.options, ranks) for ranks in (1, 2))
    scale = np.sqrt(np.mean(one[1] ** 2))
    assert np.abs(two[1] - one[1]).max() < 1e-10 * scale
    assert two[0]["POTENTIAL_ENE"] == pytest.approx(one[0]["POTENTIAL_ENE"], rel=1e-10)
