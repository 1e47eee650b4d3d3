"""Parts of a system: a selection's molecules, whole, with the energies that OpenMM gives them in every format."""

import MDAnalysis
import numpy as np
import openmm
import pytest
from openmm import app
from support.engine_energies import set_pme
from support.molecular_systems import MolecularSystem

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.amber import export_amber
from chromabuild.export.gromacs import export_gromacs
from chromabuild.export.openmm_files import export_openmm
from chromabuild.export.system import BuiltSystem
from chromabuild.simulate.openmm_engine import nonbonded_options, system_from_topology

DYNAMICS = DynamicsSection(cutoff=8.0, dispersion_correction=False)  # a part has no uniform density


def near(system: MolecularSystem, atoms: np.ndarray, distance: float) -> np.ndarray:
    """(n,) bool: atoms in molecules of which one atom is so near to one of ``atoms``, by brute force."""
    topology = system.topology
    apart = system.position[:, None] - system.position[atoms]
    apart -= system.box * np.round(apart / system.box)
    close = (np.linalg.norm(apart, axis=2) <= distance).any(axis=1)
    molecule = np.repeat(np.arange(topology.run_count.sum()), np.concatenate(
        [np.full(count, topology.templates[t].n_atoms) for t, count in zip(
            topology.run_template, topology.run_count, strict=True)]))
    return np.isin(molecule, molecule[close])


@pytest.fixture(scope="module")
def whole(systems) -> MolecularSystem:
    """Two strands in water and salt."""
    return systems["duplex"]


SELECTION = "(segid S000 and resid 1) or within 3.5 of (segid S000 and resid 1:3) and not segid S001"


@pytest.fixture(scope="module")
def wanted(whole) -> np.ndarray:
    """Its atoms: the first strand, whole, and waters and ions around its first residues."""
    first = whole.topology.templates[0]
    chosen = near(whole, np.flatnonzero(first.atom_residue < 3), 3.5)
    n = first.n_atoms
    chosen[:n] = True
    chosen[n:n + whole.topology.templates[1].n_atoms] = False
    return np.flatnonzero(chosen)


@pytest.fixture(scope="module")
def part(whole) -> BuiltSystem:
    return BuiltSystem(whole.topology, whole.position, whole.box, velocity=whole.position * 0.1).part(SELECTION)


def test_molecules_are_those_that_brute_force_finds(whole, wanted, part):
    assert 0 < part.topology.n_atoms < whole.topology.n_atoms
    assert np.array_equal(part.position, whole.position[wanted])
    assert np.array_equal(part.velocity, 0.1 * whole.position[wanted])
    for column in ("charge", "mass", "atom_name"):
        assert np.array_equal(part.topology.per_atom(column), whole.topology.per_atom(column)[wanted])
    bonds = whole.topology.term("bond")["atoms"]
    inside = np.isin(bonds, wanted).all(axis=1)
    assert inside.sum() == np.isin(bonds, wanted).any(axis=1).sum()  # no bond is cut
    assert np.array_equal(wanted[part.topology.term("bond")["atoms"]], bonds[inside])


def test_atoms_keep_their_places(whole, wanted):
    built = BuiltSystem(whole.topology, whole.position, whole.box)
    chosen = built.chosen(SELECTION)
    place = {atom: k for k, atom in enumerate(wanted.tolist())}
    for atom in range(0, whole.topology.n_atoms, 7):
        assert chosen.place(whole.topology, atom) == place.get(atom)


def energy(system: openmm.System, position: np.ndarray) -> float:
    """KJ/mol on the Reference platform; ``position`` in angstrom."""
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(position / 10)
    return context.getState(getEnergy=True).getPotentialEnergy()._value


def without_others(system: openmm.System, kept: np.ndarray) -> None:
    """Take charges, Lennard-Jones energies and bonded constants of all other atoms away."""
    there = np.zeros(system.getNumParticles(), dtype=bool)
    there[kept] = True
    terms = {"HarmonicBondForce": (2, "Bond"), "HarmonicAngleForce": (3, "Angle"),
             "PeriodicTorsionForce": (4, "Torsion")}
    for force in system.getForces():
        if isinstance(force, openmm.NonbondedForce):
            for k in np.flatnonzero(~there).tolist():
                force.setParticleParameters(k, 0, 0.1, 0)
            for k in range(force.getNumExceptions()):
                i, j, *_ = force.getExceptionParameters(k)
                if not there[[i, j]].all():
                    force.setExceptionParameters(k, i, j, 0, 0.1, 0)
            continue
        width, name = terms[force.getName()]
        for k in range(getattr(force, f"getNum{name}s")()):
            values = getattr(force, f"get{name}Parameters")(k)
            if not there[list(values[:width])].all():
                getattr(force, f"set{name}Parameters")(k, *values[:-1], 0 * values[-1])


def test_every_format_has_the_energy_of_the_part(whole, wanted, part, tmp_path):
    """OpenMM on the files of each format, and on the whole system with all that is not in the part taken away.

    Numbers of the files have nine digits; OpenMM reads coordinates of the part as they are.
    """
    options = nonbonded_options(DYNAMICS, whole.box)
    judge = system_from_topology(whole.topology, whole.box, options, rigid=False, by_term=False)
    without_others(judge, wanted)
    expected = energy(judge, whole.position)
    export_amber(part, tmp_path / "amber")
    export_gromacs(part, tmp_path / "gromacs", DYNAMICS, (), 1)
    export_openmm(part, tmp_path / "openmm", DYNAMICS)
    method = {"nonbondedMethod": app.PME, "nonbondedCutoff": options.cutoff / 10, "constraints": None,
              "rigidWater": False, "removeCMMotion": False}
    gro = MDAnalysis.Universe(tmp_path / "gromacs" / "system.gro")
    top = app.GromacsTopFile(str(tmp_path / "gromacs" / "system.top"), defines={"FLEXIBLE": ""},
                             periodicBoxVectors=np.diag(gro.dimensions[:3].astype(float)) / 10)
    prmtop = app.AmberPrmtopFile(str(tmp_path / "amber" / "system.prmtop"))
    restart = app.AmberInpcrdFile(str(tmp_path / "amber" / "system.rst7"))
    state = openmm.XmlSerializer.deserialize((tmp_path / "openmm" / "state.xml").read_text())
    found = {"gromacs": (top.createSystem(**method), gro.atoms.positions.astype(float)),
             "openmm": (system_from_topology(part.topology, part.box, options, rigid=False, by_term=False),
                        10 * state.getPositions(asNumpy=True)._value),
             "amber": (prmtop.createSystem(**method), 10 * restart.getPositions(asNumpy=True)._value)}
    for name, (system, position) in found.items():
        set_pme(system, options)
        assert np.abs(position - part.position).max() < 1e-5, name
        # A water of a prmtop has a third bond in place of its angle: both are at rest within the digits of its sides.
        tolerance = 1e-4 if name == "amber" else 1e-6
        assert energy(system, part.position) == pytest.approx(expected, rel=tolerance), name


def test_nothing_is_selected(whole):
    with pytest.raises(BadInputError, match="no atom is selected by 'protein'"):
        BuiltSystem(whole.topology, whole.position, whole.box).part("protein")
