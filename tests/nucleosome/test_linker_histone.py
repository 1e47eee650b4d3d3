"""Linker histones: place, contacts, which nucleosomes carry one, and what the force field says."""

import json

import numpy as np
import openmm
import pytest
from Bio.SeqUtils import seq1
from openmm import unit
from scipy.spatial import cKDTree
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.base.settings import BuildSection, Settings
from chromabuild.build import build_solute
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.build.octamers import octamer_of_recipe
from chromabuild.clash import correct_clashes
from chromabuild.dna.helix import crystal_path
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.marks import octamer_recipes
from chromabuild.nucleosome.octamer import octamer
from chromabuild.nucleosome.recipe import OctamerRecipe, linker_histone_table
from chromabuild.simulate.openmm_engine import NonbondedOptions, system_from_topology
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit

NAMES = ("H5", "H1.0", "H1.4")


def nucleosome(recipe, phase=0):
    """147 base pairs on the crystal's path, A, C, G, T in turn, and the octamer."""
    dna, kinds, _ = build_dna((np.arange(147) + phase) % 4, *crystal_path())
    return assemble_solute(dna, kinds, [octamer_of_recipe(recipe)], np.zeros((1, 3)), np.eye(3)[None])


@pytest.mark.parametrize("name", NAMES)
def test_the_chain_is_whole_and_the_octamer_untouched(name):
    core, library = octamer_of_recipe(OctamerRecipe(linker_histone=name)), list(residue_library().values())
    entry = linker_histone_table()[name]
    kinds = core.residue_template[core.residue_chain == 8]
    assert "".join(seq1(library[k].pdb_name) for k in kinds) == entry["sequence"]
    assert core.residue_number[core.residue_chain == 8][0] == entry["first"]
    assert core.histone[8] == name and core.chain[8] == "L"
    plain = octamer("compact")
    # Hydroxyls of the octamer may turn towards the new chain, terminal oxygens are placed anew; nothing else differs.
    differing = np.linalg.norm(core.position[:len(plain.position)] - plain.position, axis=1) > 1e-6
    names = np.concatenate([library[k].atoms for k in plain.residue_template])
    assert set(names[differing]) <= {"HG", "HG1", "HH", "OXT"}


@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_no_close_contact_on_the_crystal_frames(name, phase):
    """Nothing of the linker histone is nearer than 2 angstrom to a heavy atom of DNA or octamer, whatever the bases."""
    solute = nucleosome(OctamerRecipe(linker_histone=name), phase)
    heavy = solute.elements() != "H"
    linker = np.arange(solute.n_atoms) >= solute.molecule_first_atom[-2]
    distance = cKDTree(solute.position[heavy & ~linker]).query(solute.position[heavy & linker])[0]
    assert distance.min() >= 2.0
    # Bonded neighbours aside, its own heavy atoms keep apart too.
    own = solute.position[heavy & linker]
    residue = solute.atom_residue[heavy & linker]
    pairs = cKDTree(own).query_pairs(2.4, output_type="ndarray")
    assert np.abs(np.diff(residue[pairs], axis=1)).max() <= 1


@pytest.mark.parametrize("name", NAMES)
def test_geometry_is_sound(name):
    solute = nucleosome(OctamerRecipe(linker_histone=name))
    found = audit(Atoms.from_solute(solute))
    assert not found.chirality_errors and not found.cis_peptides and not found.piercings
    # One loop of 4QLC (3.5 angstrom) is twisted: omega of H5 60-61, -148 degree in H1.4 too.
    assert len(found.twisted_peptides) <= 1
    a, b = solute.bonds().T
    heavy = (solute.elements()[a] != "H") & (solute.elements()[b] != "H")
    length = np.linalg.norm((solute.position[a] - solute.position[b]).astype(float), axis=1)[heavy]
    assert 1.15 < length.min() and length.max() < 1.86  # C=O 1.23, C-S 1.81


@pytest.mark.parametrize("name", NAMES)
def test_the_globular_domain_sits_on_the_dyad(name):
    """Where the mesoscale model has it: that superposed 4QLC by H3 and H4 alone, and knows residue centres only."""
    head = np.array(json.loads(template_path("tail_beads_1kx5.json").read_text())["head"])
    core, (first, last) = octamer_of_recipe(OctamerRecipe(linker_histone=name)), linker_histone_table()[name]["domain"]
    library = list(residue_library().values())
    start = np.concatenate([[0], np.cumsum([len(library[k].atoms) for k in core.residue_template])])
    inside = (core.residue_chain == 8) & (core.residue_number >= first) & (core.residue_number <= last)
    alpha = np.array([core.position[start[r] + library[core.residue_template[r]].index["CA"]]
                      for r in np.flatnonzero(inside)])
    assert len(alpha) == 74
    # Every cluster of the head lies within the domain, whose radius is about 14 angstrom.
    assert cKDTree(alpha).query(head)[0].max() < 8.0
    assert np.linalg.norm(alpha.mean(axis=0) - head.mean(axis=0)) < 4.0


def test_which_nucleosomes_carry_one(tmp_path):
    dyads = np.arange(2000) * 180 + 73

    def carried(**settings):
        return [r.linker_histone for r in octamer_recipes(BuildSection(**settings), "chrI", dyads, seed=3)]

    assert set(carried(linker_histone="H1.4")) == {"H1.4"} and set(carried()) == {""}
    some = carried(linker_histone="H5", linker_histone_share=0.3)
    # 2000 draws: the share is within four standard deviations of a binomial, 0.04.
    assert abs(some.count("H5") / 2000 - 0.3) < 0.041
    more = carried(linker_histone="H5", linker_histone_share=0.5)
    assert all(b == "H5" for a, b in zip(some, more, strict=True) if a == "H5")  # a larger share adds to a smaller one
    half = octamer_recipes(BuildSection(linker_histone="H5", linker_histone_share=0.3), "chrI", dyads[1000:], seed=3)
    assert [r.linker_histone for r in half] == some[1000:]  # neighbours do not matter
    bed = tmp_path / "marks.bed"
    bed.write_text("chrI\t0\t300\tH1.4\n")
    assert carried(marks=str(bed))[:3] == ["H1.4", "H1.4", ""]
    bed.write_text("chrI\t0\t300\tH1.9\n")
    with pytest.raises(BadInputError, match="no variant 'H1.9'"):
        carried(marks=str(bed))


def test_chains_follow_their_nucleosomes():
    """Two nucleosomes, of which one carries H5: order, numbers and segments of the solute."""
    config = Settings.model_validate({"seed": 3, "build": {"linker_histone": "H5", "linker_histone_share": 0.5}})
    solute = build_solute(synthetic_scaffold(2, 25, 12), config)
    assert [entry["nucleosomes"] for entry in solute.build_report["octamers"]
            if entry["linker_histone"] == "H5"] == [1]
    core = ["H3", "H4", "H2A", "H2B"] * 2
    assert solute.molecule_name[2:] in ([*core, "H5", *core], [*core, *core, "H5"])
    last = solute.molecule_name[-1] == "H5"
    assert np.bincount(solute.molecule_nucleosome[2:]).tolist() == ([8, 9] if last else [9, 8])
    assert len(set(solute.segment_name)) == len(solute.segment_name) == 2 + 17
    linker = solute.molecule_name.index("H5")
    rows = slice(*solute.molecule_first_residue[linker:linker + 2])
    assert solute.residue_number[rows].tolist() == list(range(19, 109))
    assert solute.segment_name[solute.residue_segment[rows][0]].endswith("L")


@pytest.mark.slow
def test_clash_correction_topology_and_openmm_accept_it():
    """Clash correction, force field and minimisation of a nucleosome with H5, from the builder's output alone."""
    solute = build_solute(synthetic_scaffold(1, 0, 10), Settings.model_validate({"build": {"linker_histone": "H5"}}))
    solute, found = correct_clashes(solute)
    assert found.fatal == 0 and found.data["after"]["heavy_pairs_below_2"] == 0
    topology = make_topology(solute, {})
    box = np.ptp(solute.position, axis=0) + 60.0
    options = NonbondedOptions(cutoff=9.0, alpha=0.35, grid=(32, 32, 32))
    system = system_from_topology(topology, box, options)
    for force in system.getForces():
        if isinstance(force, openmm.NonbondedForce):
            force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("CPU"))
    context.setPositions(0.1 * (solute.position - solute.position.min(axis=0) + 30.0).astype(float))
    first = context.getState(getEnergy=True, getForces=True)
    forces = first.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer)
    assert np.isfinite(forces).all() and np.linalg.norm(forces, axis=1).max() < 1e6
    openmm.LocalEnergyMinimizer.minimize(context, maxIterations=10)
    last = context.getState(getEnergy=True).getPotentialEnergy()
    assert last < first.getPotentialEnergy()
