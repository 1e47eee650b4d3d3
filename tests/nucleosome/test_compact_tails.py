"""Compact histone tails against the crystal's, on the DNA of the crystal."""

import json

import numpy as np
import openmm
import pytest
from openmm import app, unit
from scipy.spatial import cKDTree

from chromabuild.base.files import template_path
from chromabuild.build.duplex import build_dna
from chromabuild.dna.sequence import base_index
from chromabuild.molecule.histone_tails import TAILS
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.octamer import octamer
from chromabuild.sterics.atoms import HYDROGEN, Atoms
from chromabuild.sterics.audit import audit
from chromabuild.sterics.detect import find_clashes

pytestmark = pytest.mark.release


def nucleosome(tails):
    """A single nucleosome of 147 bp with the tails as named."""
    path = json.loads(template_path("nucleosome_path_1kx5.json").read_text())
    bases = base_index(path["sequence"])
    position, template, _ = build_dna(bases, np.array(path["origin"]), np.array(path["frame"]).reshape(-1, 3, 3))
    core, n = octamer(tails), len(bases)
    return Solute(
        position=np.concatenate([position, core.position]).astype(np.float32),
        residue_template=np.concatenate([template, core.residue_template]),
        residue_number=np.concatenate([np.tile(np.arange(1, n + 1), 2), core.residue_number]),
        residue_segment=np.concatenate([np.repeat([0, 1], n), 2 + core.residue_chain]),
        segment_name=["DI00", "DJ00", *(f"000{c}" for c in core.chain)],
        segment_chain=list("IJ") + list(core.chain),
        molecule_first_residue=np.concatenate(
            [[0, n, 2 * n], 2 * n + np.cumsum(np.bincount(core.residue_chain))]).astype(np.int64),
        molecule_name=["DNA-I", "DNA-J", *core.histone],
        molecule_nucleosome=np.array([-1, -1] + 8 * [0]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def compact():
    return nucleosome("compact")


def in_tail(solute):
    """(n,) bool: atoms of tail residues."""
    result = np.zeros(solute.n_residues, dtype=bool)
    first = solute.molecule_first_residue
    for k, name in enumerate(solute.molecule_name):
        for low, high in TAILS.get(name, []):
            number = solute.residue_number[first[k]:first[k + 1]]
            result[first[k]:first[k + 1]] |= (number >= low) & (number <= high)
    return result[solute.atom_residue]


def test_tails_stay_near_their_particle(compact):
    # DNA alone spans about 105 x 108 x 65 angstrom; a chain lying on it adds up to its own thickness, 10, on each side.
    dna = compact.position[:compact.molecule_first_atom[2]]
    assert (np.ptp(compact.position, axis=0) < np.ptp(dna, axis=0) + 20).all()
    volume = [np.prod(np.ptp(solute.position, axis=0)) for solute in (compact, nucleosome("crystal"))]
    assert volume[0] < 0.6 * volume[1]


def test_only_tails_differ_from_the_crystal():
    crystal, compact = octamer("crystal"), octamer("compact")
    assert np.array_equal(crystal.residue_template, compact.residue_template)
    assert crystal.position.shape == compact.position.shape
    solute = nucleosome("crystal")
    tail = in_tail(solute)[solute.molecule_first_atom[2]:]
    assert np.array_equal(crystal.position[~tail], compact.position[~tail])
    moved = np.linalg.norm(crystal.position[tail] - compact.position[tail], axis=1)
    assert np.median(moved) > 5.0


def test_no_close_contact_with_a_tail(compact):
    atoms = Atoms.from_solute(compact)
    tail = in_tail(compact)
    pairs, distance = find_clashes(atoms, 2.6)
    pairs, distance = pairs[tail[pairs].any(axis=1)], distance[tail[pairs].any(axis=1)]
    hydrogen = (atoms.element[pairs] == HYDROGEN).any(axis=1)
    # No pair is severe for the clash stage (2.0 angstrom, 1.3 with a hydrogen). Tight heavy pairs, 16 of them, are left
    # where roots are wedged in DNA (H2A 11-15 in the minor groove, H3 37-39 between the gyres) and two at an H2B end,
    # which found its place last; the crystal's have 59.
    assert distance[hydrogen].min() >= 1.3 and distance[~hydrogen].min() >= 2.0
    assert (~hydrogen).sum() <= 16


def test_geometry_is_sound(compact):
    found = audit(Atoms.from_solute(compact))
    assert not found.piercings and not found.chirality_errors
    assert not found.cis_peptides and not found.twisted_peptides


def test_bonds_are_those_of_the_crystal(compact):
    # Growing turns about bonds only; coordinates are stored in whole thousandths of an angstrom.
    bonds = compact.bonds()
    names = np.isin(compact.elements(), ["H"])
    bonds = bonds[~names[bonds].any(axis=1)]
    length = [np.linalg.norm(s.position[bonds[:, 0]] - s.position[bonds[:, 1]], axis=1)
              for s in (compact, nucleosome("crystal"))]
    assert np.abs(length[0] - length[1]).max() < 0.003


def test_positive_tails_lie_on_dna(compact):
    """Charged ends of lysine and arginine of the tails are nearer to phosphates than in the crystal."""
    def near(solute):
        names, tail = solute.atom_names(), in_tail(solute)
        ends = tail & np.isin(names, ["NZ", "CZ"])
        tree = cKDTree(solute.position[names == "P"])
        return (tree.query(solute.position[ends])[0] < 8.0).mean()

    assert near(compact) > 1.5 * near(nucleosome("crystal"))


def test_openmm_energy_is_finite(compact):
    topology, previous = app.Topology(), None
    first = set(compact.molecule_first_residue[:-1].tolist())
    library = residue_library()
    for k, template in enumerate(compact.residue_template):
        if k in first:
            chain, previous = topology.addChain(), None
        entry = library[residue_names()[template]]
        residue = topology.addResidue(entry.pdb_name, chain)
        atoms = [topology.addAtom(name, app.Element.getBySymbol(element), residue)
                 for name, element in zip(entry.atoms, entry.elements, strict=True)]
        for a, b in entry.bonds:
            topology.addBond(atoms[a], atoms[b])
        head, end = ("N", "C") if "CA" in entry.index else ("P", "O3'")
        if previous is not None:
            topology.addBond(previous, atoms[entry.index[head]])
        previous = atoms[entry.index[end]]
    field = app.ForceField("amber14/protein.ff14SB.xml", "amber14/DNA.OL15.xml")
    system = field.createSystem(topology, nonbondedMethod=app.CutoffNonPeriodic, nonbondedCutoff=0.9 * unit.nanometer)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("CPU"))
    context.setPositions(0.1 * compact.position.astype(np.float64))
    energy = context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
    # Contacts of the crystal's core with modelled DNA are stiff; an overlap of two atoms would give 1e9 and more.
    assert np.isfinite(energy) and energy < 1e7
