"""Cutting a System into molecules."""

import numpy as np
import openmm
from openmm import app

from chromabuild.forcefield.from_openmm import MISSING_BOND_K, topology_from_system


def build(residues: list[list[str]], bonds: list[tuple[int, int]], constraints: list[tuple[int, int, float]],
          numbers: list[str] | None = None) -> tuple[openmm.System, openmm.System, app.Topology]:
    """A System without and with constraints; atoms are carbons of distinct names, exclusions those of the bonds."""
    topology = app.Topology()
    chain = topology.addChain("SEGMENT")
    atoms = []
    for k, names in enumerate(residues):
        residue = topology.addResidue("LONGNAME", chain, numbers[k] if numbers else str(k + 1))
        atoms += [topology.addAtom(name, app.element.carbon, residue) for name in names]
    systems = []
    for rigid in (False, True):
        system, bond, nonbonded = openmm.System(), openmm.HarmonicBondForce(), openmm.NonbondedForce()
        for atom in atoms:
            system.addParticle(1.0 if atom.name.startswith("H") else 16.0)
            nonbonded.addParticle(0.0, 0.3, 0.4)
        for i, j in bonds:
            bond.addBond(i, j, 0.15, 1000.0)
            nonbonded.addException(i, j, 0.0, 1.0, 0.0)
        for i, j, distance in constraints if rigid else []:
            system.addConstraint(i, j, distance)
        system.addForce(bond)
        system.addForce(nonbonded)
        systems.append(system)
    for i, j in bonds:
        topology.addBond(atoms[i], atoms[j])
    return systems[0], systems[1], topology


def test_equal_molecules_share_a_template_whatever_their_number():
    sites = [["O", "H1", "H2"]] * 4 + [["X"], ["O", "H1", "H2"]]
    constraints = [(o + a, o + b, d) for o in (0, 3, 6, 9, 13) for a, b, d in
                   ((0, 1, 0.09572), (0, 2, 0.09572), (1, 2, 0.15139))]
    topology = topology_from_system(*build(sites, [], constraints, ["1", "-7", "-6A", "", "3", "9"]), "test")
    # A run ends where the numbers do not go on; what has none counts as the first residue.
    assert topology.run_template.tolist() == [0, 0, 0, 1, 0] and topology.run_count.tolist() == [1, 2, 1, 1, 1]
    assert topology.run_residue.tolist() == [1, -7, 1, 3, 9] and topology.run_segid.tolist() == [b"SEGM"] * 5
    water, ion = topology.templates
    assert water.rigid_water and not ion.rigid_water
    # Nothing holds these waters together without constraints, so that minimisation would tear them apart.
    assert water.bond_k.tolist() == [MISSING_BOND_K] * 3
    np.testing.assert_allclose(water.bond_r0, water.constraint_distance)
    np.testing.assert_allclose(water.constraint_distance, [0.9572, 0.9572, 1.5139])
    assert water.residue_name.tolist() == [b"LONG"] and water.residue_segid.tolist() == [b"SEGM"]


def test_interleaved_molecules_become_one():
    """Atoms 0-2 and 1-3 are bound: no cut leaves the terms whole before the fourth atom."""
    topology = topology_from_system(*build([["A"], ["B"], ["C"], ["D"], ["E"]], [(0, 2), (1, 3)], []), "test")
    assert [t.n_atoms for t in topology.templates] == [4, 1]
    assert topology.templates[0].bond_atoms.tolist() == [[0, 2], [1, 3]]
    assert topology.templates[0].residue_number.tolist() == [1, 2, 3, 4]
    assert topology.exclusions().tolist() == [[0, 2], [1, 3]]


def test_residues_stay_whole():
    """A residue of two unbound atoms is one molecule."""
    topology = topology_from_system(*build([["A", "B"], ["C"]], [], []), "test")
    assert [t.n_atoms for t in topology.templates] == [2, 1]
