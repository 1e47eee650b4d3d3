"""The prmtop as OpenMM and MDAnalysis read it: every term of our topology, and the coordinates."""

import warnings
from dataclasses import replace

import MDAnalysis
import numpy as np
import openmm
import pytest
from openmm import app, unit
from support.engine_energies import energies_by_force, relative_rms, set_pme
from support.molecular_systems import fixture, make_solute
from support.triclinic_systems import cut_out, rhombic_dodecahedron, truncated_octahedron

from chromabuild.base.box_vectors import reduced
from chromabuild.base.errors import BadInputError
from chromabuild.export.amber import LARGEST, export_amber
from chromabuild.export.prmtop_sections import write_section
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.import_files import import_system
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.openmm_engine import NonbondedOptions, energies_by_term, system_from_topology

OPTIONS = NonbondedOptions(9.0, 0.34, (32, 32, 36))


def energies(folder, options: NonbondedOptions) -> tuple[dict[str, float], np.ndarray]:
    """Energies, kcal/mol, and forces, kcal/mol/angstrom, of the files on OpenMM's Reference platform."""
    prmtop = app.AmberPrmtopFile(str(folder / "system.prmtop"))
    places = app.AmberInpcrdFile(str(folder / "system.rst7"))
    system = prmtop.createSystem(nonbondedMethod=app.PME, nonbondedCutoff=options.cutoff / 10, constraints=None,
                                 rigidWater=False, removeCMMotion=False)
    return energies_by_force(system, options, places.getPositions(), places.getBoxVectors())


@pytest.mark.parametrize("name", ["water", "peptide", "duplex"])
def test_openmm_finds_the_energies(systems, tmp_path, name):
    """Numbers of a prmtop have nine digits: 1e-7 of every term is more than their rounding.

    A rigid water has its third side as a bond in place of its angle, and both are at rest in it: what they hold apart
    from that is compared by the rest of the bonds and angles.
    """
    system = systems[name]
    export_amber(BuiltSystem(system.topology, system.position, system.box), tmp_path)
    ours, _ = energies_by_term(system_from_topology(system.topology, system.box, OPTIONS), system.position)
    found, _ = energies(tmp_path, OPTIONS)
    assert found["dihedral"] == pytest.approx(ours["dihedral"], rel=1e-6, abs=1e-9)
    assert found["nonbonded"] == pytest.approx(ours["lennard_jones"] + ours["electrostatic"], rel=1e-6)
    dry = BuiltSystem(system.topology, system.position, system.box)
    if name != "water":
        (tmp_path / "dry").mkdir()
        dry = dry.part("solute")
        export_amber(dry, tmp_path / "dry")
        ours, force = energies_by_term(system_from_topology(dry.topology, dry.box, OPTIONS), dry.position)
        found, their_force = energies(tmp_path / "dry", OPTIONS)
        for term in ("bond", "angle", "dihedral"):
            assert found[term] == pytest.approx(ours[term], rel=1e-6), term
        assert relative_rms(their_force, force) < 1e-6


@pytest.mark.parametrize("shape", [rhombic_dodecahedron(21.2), truncated_octahedron(23.0)])
def test_leaning_boxes(tmp_path, shape):
    """OpenMM's CPU platform, in single precision, on the files and on our topology; AMBER has angles of four digits.

    A vector that leans by half of another may lean forward or back: OpenMM decides that by rounding.
    """
    system = cut_out("peptide", 30.0, shape)
    export_amber(BuiltSystem(system.topology, system.position, shape), tmp_path)
    prmtop, places = (read(str(tmp_path / f"system.{suffix}")) for read, suffix in
                      ((app.AmberPrmtopFile, "prmtop"), (app.AmberInpcrdFile, "rst7")))
    vectors = [[component * 10 for component in vector.value_in_unit(unit.nanometer)] for vector in places.boxVectors]
    np.testing.assert_allclose(reduced(vectors), shape, atol=1e-5)
    assert prmtop._prmtop._raw_data["POINTERS"][27] == "3"
    options = NonbondedOptions(7.0, 0.4, (32, 32, 32))
    made = prmtop.createSystem(nonbondedMethod=app.PME, nonbondedCutoff=0.7, constraints=None, rigidWater=False,
                               removeCMMotion=False)
    set_pme(made, options)
    mine = system_from_topology(system.topology, shape, options, by_term=False)
    energy = []
    for one in (made, mine):
        for force in one.getForces():
            # A rigid water has a third bond in place of its angle.
            force.setForceGroup(isinstance(force, openmm.HarmonicBondForce | openmm.HarmonicAngleForce))
        context = openmm.Context(one, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("CPU"))
        context.setPeriodicBoxVectors(*(shape / 10))
        context.setPositions(system.position / 10)
        energy.append(context.getState(getEnergy=True, groups={0}).getPotentialEnergy()._value)
    assert energy[0] == pytest.approx(energy[1], rel=1e-5)


def test_rigid_waters_and_molecules(tmp_path):
    """Waters are what AMBER's programs make rigid: residue WAT with three bonds; molecules are counted."""
    solute = make_solute([["DA5", "DC", "DG3"], ["NALA", "TRP", "CVAL"]])
    topology = make_topology(solute, {"water": 4, "sodium": 2, "chloride": 1})
    export_amber(BuiltSystem(topology, np.zeros((topology.n_atoms, 3)), np.full(3, 40.0), solute), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        universe = MDAnalysis.Universe(tmp_path / "system.prmtop")
    residues = universe.residues.resnames.tolist()
    assert residues == ["DA", "DC", "DG", "ALA", "TRP", "VAL", *["WAT"] * 4, "NA", "NA", "CL"]
    assert universe.atoms.names.tolist() == [name.decode() for name in topology.per_atom("atom_name").tolist()]
    assert universe.atoms.charges == pytest.approx(topology.charges(), rel=2e-7)
    rigid = app.AmberPrmtopFile(str(tmp_path / "system.prmtop")).createSystem(constraints=app.HBonds, rigidWater=True)
    assert rigid.getNumConstraints() == sum(
        len(topology.templates[t].constraint_atoms) * n for t, n in zip(topology.run_template, topology.run_count,
                                                                        strict=True))
    lines = (tmp_path / "system.prmtop").read_text().split("%FLAG ")
    section = {text.split()[0]: text.split(")\n")[1].split() for text in lines if ")\n" in text}
    assert section["SOLVENT_POINTERS"] == ["6", "9", "3"]
    n = [template.n_atoms for template in topology.templates]
    assert section["ATOMS_PER_MOLECULE"] == list(map(str, [n[0], n[1], 3, 3, 3, 3, 1, 1, 1]))


def test_every_pair_at_three_bonds_is_counted_once(tmp_path):
    """Rings: PRO and the bases have pairs that two torsions join, and pairs at two bonds that a torsion joins too."""
    solute = make_solute([["NPRO", "PRO", "TRP", "CHIE"], ["DA5", "DT3"]])
    topology = make_topology(solute, {})
    export_amber(BuiltSystem(topology, np.zeros((topology.n_atoms, 3)), np.full(3, 40.0)), tmp_path)
    system = app.AmberPrmtopFile(str(tmp_path / "system.prmtop")).createSystem()
    force, = (force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
    exceptions = [force.getExceptionParameters(k) for k in range(force.getNumExceptions())]
    pairs = {tuple(sorted(row[:2])): row[2]._value for row in exceptions if row[2]._value or row[4]._value}
    ours = topology.term("pair14")
    wanted = {tuple(sorted(pair)): q for pair, q in zip(ours["atoms"].tolist(), ours["charge_product"], strict=True)}
    assert pairs.keys() == wanted.keys()
    assert [pairs[pair] for pair in wanted] == pytest.approx(list(wanted.values()), abs=1e-7)
    excluded = {tuple(sorted(row[:2])) for row in exceptions}
    assert excluded == {tuple(sorted(pair)) for pair in topology.exclusions().tolist()}


def test_correction_maps_come_back(tmp_path):
    """ff19SB, in the file's five decimals: energies of OpenMM's reader and of our import, of two chains in one file."""
    one, position = fixture("peptide")
    topology = make_topology(one, {"sodium": 1}, "amber19")
    topology = replace(topology, run_count=np.where(topology.run_template == 0, 2, topology.run_count))
    position = np.concatenate([position, position[:, ::-1] + 20.0, [[30.0, 30.0, 30.0]]])
    box = np.full(3, 60.0)
    export_amber(BuiltSystem(topology, position, box), tmp_path)
    ours, _ = energies_by_term(system_from_topology(topology, box, OPTIONS), position)
    system = app.AmberPrmtopFile(str(tmp_path / "system.prmtop")).createSystem()
    maps = next(force for force in system.getForces() if isinstance(force, openmm.CMAPTorsionForce))
    assert maps.getNumTorsions() == len(topology.term("cmap")["atoms"]) > 2 and maps.getNumMaps() > 1
    for force in system.getForces():
        force.setForceGroup(int(force is maps or force.getName() == "CMAPTorsionForce"))
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(position / 10)
    theirs = context.getState(getEnergy=True, groups={1}).getPotentialEnergy() / unit.kilocalorie_per_mole
    assert theirs == pytest.approx(ours["cmap"], abs=1e-5 * maps.getNumTorsions()) and abs(theirs) > 0.1
    import_system(tmp_path / "system.prmtop", tmp_path / "system.rst7", [], tmp_path)
    back = Topology.read(tmp_path / "topology.h5")
    found, _ = energies_by_term(system_from_topology(back, box, OPTIONS), position)
    assert {term: found[term] for term in found} == {term: pytest.approx(value, rel=1e-6, abs=1e-5)
                                                     for term, value in ours.items()}


def test_what_a_prmtop_cannot_hold_is_refused(tmp_path):
    topology = make_topology(make_solute([["NALA", "CALA"]]), {})
    position, box = np.zeros((topology.n_atoms, 3)), np.full(3, 30.0)
    for change, told in ((dict(improper_atoms=[[0, 1, 2, 3]], improper_k=[1.0], improper_psi0=[0.0]),
                          "has harmonic impropers, which .* for dynamics.force_field charmm36m alone"),
                         (dict(pair14_sigma=topology.templates[0].pair14_sigma * 1.1), "1-4 pairs with parameters")):
        changed = replace(topology, templates=[replace(topology.templates[0], **change)])
        with pytest.raises(BadInputError, match=told):
            export_amber(BuiltSystem(changed, position, box), tmp_path / "out")
    water = make_topology(None, {"water": LARGEST // 3 + 1})
    with pytest.raises(BadInputError, match="too many for a prmtop"):
        export_amber(BuiltSystem(water, np.broadcast_to(np.zeros(3), (water.n_atoms, 3)), box), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("n", [0, 9, 10, 11, 10_000, 10_001])
def test_columns(tmp_path, n):
    """Ten integers a line, an empty line for none."""
    with open(tmp_path / "text", "w") as file:
        write_section(file, "X", "8d", np.arange(n))
    title, form, *lines = (tmp_path / "text").read_text().splitlines()
    assert (title, form) == ("%FLAG X", "%FORMAT(10I8)")
    assert [len(line) for line in lines] == [80] * (n // 10) + ([8 * (n % 10)] if n % 10 or not n else [])
    assert [int(word) for line in lines for word in line.split()] == list(range(n))


def test_velocities_are_kept(systems, tmp_path):
    """As OpenMM reads them, which turns AMBER's units of time into ps with 1/20.455."""
    system = systems["water"]
    velocity = np.random.Generator(np.random.Philox(key=4)).normal(0, 5, system.position.shape)
    export_amber(BuiltSystem(system.topology, system.position, system.box, velocity=velocity), tmp_path)
    places = app.AmberInpcrdFile(str(tmp_path / "system.rst7"))
    for found, expected, size in ((places.velocities, velocity, unit.angstrom / unit.picosecond),
                                  (places.positions, system.position, unit.angstrom)):
        assert np.array(found.value_in_unit(size)) == pytest.approx(expected, rel=1e-6)
