"""What the builder makes is a sound start for molecular mechanics, without any correction in between."""

import json
from pathlib import Path

import gemmi
import numpy as np
import openmm
import pytest
from support.engine_energies import energy_section, write_input
from support.molecular_systems import MolecularSystem
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.analysis.duplex import read_duplexes
from chromabuild.base.files import template_path
from chromabuild.base.settings import Settings
from chromabuild.build import build_solute
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.dna.helix import crystal_path
from chromabuild.dna.sequence import base_index
from chromabuild.dna.steps import fit_frames
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.hydrogens import place_hydrogens, settle_base_methyls
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.octamer import octamer
from chromabuild.simulate import chromamd
from chromabuild.simulate.openmm_engine import NonbondedOptions, system_from_topology

CRYSTAL = Path(__file__).parent.parent / "analysis" / "data" / "1kx5_dna.pdb.gz"
# The 147-base-pair 601 sequence (Lowary & Widom 1998) as in PDB 4QLC.
WIDOM_601 = ("CTGGAGAATCCCGGTGCCGAGGCCGCTCAATTGGTCGTAGACAGCTCTAGCACCGCTTAAACGCACGTACGCGCTG"
             "TCCCCCGCGTTTTAACCGCCAAGGGGATTACTCCCTAGTCTCCAGGCACGTGTCAGATATATACATCCTGT")
KJ_PER_NM = 41.84  # of 1 kcal/mol/angstrom

pytestmark = pytest.mark.slow


def test_an_array_of_601_starts_with_finite_forces(tmp_path):
    """Twelve repeats of 167 base pairs in chromamd: no force above 1e6 kJ/mol/nm."""
    scaffold = synthetic_scaffold(12, 20, 10)
    for first in scaffold.first_bp:
        scaffold.base[first:first + 147] = np.frombuffer(WIDOM_601.encode(), dtype=np.uint8)
    solute = build_solute(scaffold, Settings())
    position = np.round(solute.position - solute.position.min(axis=0) + 12.0, 3).astype(float)
    box = np.ceil(position.max(axis=0) + 12.0)
    system = MolecularSystem(make_topology(solute, {}), position, box)
    options = NonbondedOptions(cutoff=8.0, alpha=0.3, grid=tuple(16 * int(np.ceil(edge / 64)) for edge in box))
    entries = write_input(system, tmp_path)
    chromamd.write_control(tmp_path / "first.inp", {
        "INPUT": entries, "OUTPUT": {"forcefile": tmp_path / "first.force"}, "ENERGY": energy_section(options)})
    chromamd.launch("energy", tmp_path / "first.inp")
    force = KJ_PER_NM * np.linalg.norm(chromamd.read_forces(tmp_path / "first.force"), axis=1)
    assert np.isfinite(force).all() and force.max() < 1e6


def test_a_nucleosome_relaxes_to_the_energy_of_the_crystal():
    """The same histones with our DNA and with that of 1KX5, hydrogens of both ours, after 50 steps each: energies in
    vacuum, beyond the cutoff as in water, within 1 % of each other.
    """
    path = json.loads(template_path("nucleosome_path_1kx5.json").read_text())
    dna, kinds, _ = build_dna(base_index(np.frombuffer(path["sequence"].encode(), np.uint8)), *crystal_path())
    solute = assemble_solute(dna, kinds, [octamer("crystal")], np.zeros((1, 3)), np.eye(3)[None])
    built, crystal = solute.position.astype(float), solute.position.astype(float)
    crystal[:len(dna)] = crystal_dna(dna, kinds, solute.residue_first_atom[:295])
    system = system_from_topology(make_topology(solute, {}), np.full(3, 400.0),
                                  NonbondedOptions(cutoff=8.0, alpha=0.35, grid=(64, 64, 64)))
    for force in system.getForces():
        if isinstance(force, openmm.NonbondedForce):
            force.setNonbondedMethod(openmm.NonbondedForce.CutoffNonPeriodic)
    energies = []
    for position in (built, crystal):
        context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("CPU"))
        context.setPositions(0.1 * position)
        openmm.LocalEnergyMinimizer.minimize(context, maxIterations=50)
        energies.append(context.getState(getEnergy=True).getPotentialEnergy()._value)
    assert energies[1] < -1e5 and energies[0] == pytest.approx(energies[1], rel=0.01)


def crystal_dna(dna, kinds, first):
    """Atoms of 1KX5's DNA in the nucleosome's own frame, in our order; hydrogens placed as ours are."""
    (duplex,) = read_duplexes(CRYSTAL)
    shift, turn = fit_frames(crystal_path()[0], duplex.pair_frames[0])
    library, model = list(residue_library().values()), gemmi.read_structure(str(CRYSTAL))[0]
    result = dna.copy()
    for k, residue in enumerate(residue for name in "IJ" for residue in model[name]):
        entry = library[kinds[k]]
        for name, index in entry.index.items():
            if entry.elements[index] != "H":
                result[first[k] + index] = shift + turn @ residue.find_atom(name, "*").pos.tolist()
    place_hydrogens(result, kinds, first)
    settle_base_methyls(result, kinds, first)
    return result
