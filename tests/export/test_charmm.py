"""CHARMM's psf and parameter file of systems in CHARMM36m, and the input of NAMD and GENESIS that names them.

The judge is OpenMM's reader of these formats. Energies agree to the ten digits of the files.
"""

import re
from dataclasses import replace

import MDAnalysis
import numpy as np
import pytest
from openmm import app, unit
from support.charmm36m import lennard_jones
from support.command_line import result_of
from support.engine_energies import reference_energy, relative_rms
from support.force_field_judge import judged
from support.molecular_systems import DATA, SOLVENT, MolecularSystem, fixture, make_solute

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import DynamicsSection, SimulateSection
from chromabuild.export.amber import export_amber
from chromabuild.export.amber_control import phase_control
from chromabuild.export.charmm import write_charmm
from chromabuild.export.coordinates import write_crd
from chromabuild.export.genesis import export_genesis
from chromabuild.export.namd import export_namd
from chromabuild.export.pair_parameters import HALF_MINIMUM
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.hydrogens import repartitioned_masses
from chromabuild.forcefield.import_files import import_topology
from chromabuild.forcefield.topology_file import Topology
from chromabuild.shards import read_shards
from chromabuild.simulate.openmm_engine import NonbondedOptions, nonbonded_options
from chromabuild.simulate.protocol import plan_phases

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(40, 40, 40))
N_WATERS = 60
MODIFIED = [["DA5", "5CM", "DG3"], ["NALA", "ALY", "GLY", "PRO", "CALA"]]
DYNAMICS = DynamicsSection(force_field="charmm36m", trajectory_selection="solute")
PHASES = [{"name": "minimise", "kind": "minimise", "steps": 50, "restraints": [{"group": "heavy", "constant": 5}]},
          {"name": "produce", "steps": 2000, "ensemble": "NPT", "timestep": 4, "hydrogen_mass_factor": 3}]


def solvated(name: str) -> BuiltSystem:
    """A fixture of data/solvated.npz in CHARMM36m, with the first of its waters and all of its ions."""
    edge = {"water": 25.0, "peptide": 30.0, "duplex": 36.0}[name]
    key = f"{name} {edge:g} 0"
    with np.load(DATA / "solvated.npz") as file:
        position = (file[key] + round(500 * edge)) / 1000
        counts = dict(zip(SOLVENT, file[key + " counts"].tolist(), strict=True))
    solute = None if name == "water" else fixture(name)[0]
    first = len(position) - 3 * counts["water"] - counts["sodium"] - counts["chloride"]
    position = np.concatenate([position[:first + 3 * N_WATERS], position[first + 3 * counts["water"]:]])
    counts["water"] = N_WATERS
    return BuiltSystem(make_topology(solute, counts, "charmm36m"), position, np.full(3, edge), solute)


def modified() -> BuiltSystem:
    """Modified residues, water and ions, the atoms anywhere but none near another."""
    solute = make_solute(MODIFIED)
    topology = make_topology(solute, {"water": 20, "sodium": 3, "chloride": 2, "magnesium": 1}, "charmm36m")
    generator = np.random.Generator(np.random.Philox(key=5))
    sites = (np.argwhere(np.ones((9, 9, 9))) + 0.5) * 30 / 9
    position = generator.permutation(sites)[:topology.n_atoms] + generator.uniform(-0.5, 0.5, (topology.n_atoms, 3))
    return BuiltSystem(topology, position.round(3), np.full(3, 30.0), solute)


@pytest.fixture(scope="module")
def systems() -> dict[str, BuiltSystem]:
    return {"modified": modified(), **{name: solvated(name) for name in ("water", "peptide", "duplex")}}


@pytest.mark.parametrize("name", ["modified", "water", "peptide", "duplex"])
def test_openmm_finds_every_energy(systems, tmp_path, name):
    """Terms and forces of OpenMM's reading against those of the topology."""
    system = systems[name]
    write_charmm(system, tmp_path)
    psf = app.CharmmPsfFile(str(tmp_path / "system.psf"))
    psf.setBox(*(system.box / 10 * unit.nanometer))
    made = psf.createSystem(app.CharmmParameterSet(str(tmp_path / "system.prm")), nonbondedMethod=app.PME,
                            nonbondedCutoff=OPTIONS.cutoff / 10, constraints=None, rigidWater=False,
                            removeCMMotion=False)
    assert [made.getParticleMass(k)._value for k in range(made.getNumParticles())] == pytest.approx(
        system.topology.masses(), abs=1e-6)
    theirs, their_force = judged(made, system.position, OPTIONS)
    ours, force = reference_energy(MolecularSystem(system.topology, system.position, system.box), OPTIONS)
    ours["bond"] += ours.pop("urey_bradley", 0.0)
    for energy in (ours, theirs):  # with NBFIX, OpenMM has the Lennard-Jones terms of 1-4 pairs beside charges
        energy["nonbonded"] = energy.pop("lennard_jones") + energy.pop("electrostatic")
    assert {term: ours.get(term, 0.0) for term in theirs} == pytest.approx(theirs, rel=1e-6, abs=1e-6)
    assert relative_rms(force, their_force) < 1e-6
    missing = {"water": {"dihedral", "improper", "cmap"}, "duplex": {"cmap"}}.get(name, set())
    assert {term for term, value in theirs.items() if abs(value) < 1e-3} <= missing | {"bond", "angle"} & {
        term for term in theirs if name == "water"}


@pytest.mark.parametrize("name", ["modified", "water", "peptide", "duplex"])
def test_a_prmtop_of_amber_holds_every_term(systems, tmp_path, name):
    """OpenMM's reader of the file, and our import. Numbers have nine digits and maps five decimals. Rigid waters have a
    third bond in place of their angle: bonds and angles are compared where there is none (duplex: solute alone)."""
    system = systems[name].part("solute") if name == "duplex" else systems[name]
    export_amber(system, tmp_path)
    made = app.AmberPrmtopFile(str(tmp_path / "system.prmtop")).createSystem(
        nonbondedMethod=app.PME, nonbondedCutoff=OPTIONS.cutoff / 10, constraints=None, rigidWater=False,
        removeCMMotion=False)
    theirs, _ = judged(made, system.position, OPTIONS)
    back = import_topology(tmp_path / "system.prmtop", [])
    ours, found = (reference_energy(MolecularSystem(topology, system.position, system.box), OPTIONS)[0]
                   for topology in (system.topology, back))
    dry = not any(template.rigid_water for template in system.topology.templates)
    same = set(ours) if dry else set(ours) - {"bond", "angle"}
    for term in same:
        assert found[term] == pytest.approx(ours[term], rel=1e-6, abs=1e-4), term
    ours["bond"] += ours.pop("urey_bradley", 0.0)
    for energy in (ours, theirs):
        energy["nonbonded"] = energy.pop("lennard_jones") + energy.pop("electrostatic")
    same = {term for term in theirs if dry or term not in ("bond", "angle")}
    for term in same:
        assert theirs[term] == pytest.approx(ours.get(term, 0.0), rel=1e-6, abs=1e-4), term
    assert name != "modified" or back.special_pairs.any()  # NBFIX
    phase = phase_control(plan_phases(SimulateSection(protocol=None, phases=PHASES))[1], DYNAMICS,
                          nonbonded_options(DYNAMICS, system.box), 1, {}, 0)
    assert "fswitch=10" in phase and "truncated" not in phase


@pytest.mark.parametrize("name", ["modified", "peptide"])
def test_what_is_exported_can_be_imported(systems, tmp_path, name):
    """What ``chromabuild import`` makes of psf, parameters and card file has the same terms, Lennard-Jones and charges
    told apart, and the same names. (It refuses atoms that are anywhere: of these the topology alone.)"""
    system = systems[name]
    write_charmm(system, tmp_path)
    write_crd(tmp_path / "system.crd", system)
    if name == "modified":
        imported = import_topology(tmp_path / "system.psf", [tmp_path / "system.prm"])
    else:
        result_of("import", "system.psf", "system.crd", "system.prm", "--box", *(f"{edge:g}" for edge in system.box),
                  cwd=tmp_path)
        imported = Topology.read(tmp_path / "imported" / "topology.h5")
        _, position = read_shards(tmp_path / "imported" / "shards" / "bricks.txt")
        apart = position - system.position
        assert apart - system.box * np.round(apart / system.box) == pytest.approx(0, abs=1e-6)
    ours, theirs = (reference_energy(MolecularSystem(topology, system.position, system.box), OPTIONS)
                    for topology in (system.topology, imported))
    assert theirs[0] == pytest.approx(ours[0], rel=1e-6, abs=1e-6)
    assert relative_rms(theirs[1], ours[1]) < 1e-6
    for column in ("atom_name", "charge", "mass"):
        assert imported.per_atom(column).tolist() == system.topology.per_atom(column).tolist()
    assert imported.special_pairs.any() == system.topology.special_pairs.any()


def test_lennard_jones_parameters_are_those_of_the_force_field(systems, tmp_path):
    """1-4 parameters, which the topology has of pairs only, and NBFIX, against OpenMM's file of CHARMM36."""
    write_charmm(systems["modified"], tmp_path)
    text = (tmp_path / "system.prm").read_text()
    single, special = text[text.index("wmin 1.5"):text.index("END")].split("NBFIX")
    known, pairs = lennard_jones()
    rows = [line.split() for line in single.splitlines()[1:] if line]
    assert len(rows) > 50 and sum(len(row) == 7 for row in rows) > 5
    for name, *values in rows:
        _, epsilon, radius, *of_14 = map(float, values)
        wanted = known[name]
        assert [-epsilon, radius / HALF_MINIMUM] == pytest.approx([wanted["epsilon"], wanted["sigma"]], rel=1e-8)
        epsilon, radius = of_14[1:] or (epsilon, radius)
        assert [-epsilon, radius / HALF_MINIMUM] == pytest.approx([wanted["epsilon14"], wanted["sigma14"]], rel=1e-8)
    names = {row[0] for row in rows}
    wanted = {frozenset((a, b)): (epsilon, sigma) for a, b, sigma, epsilon in pairs if {a, b} <= names}
    found = {frozenset(row.split()[:2]): (-float(row.split()[2]), float(row.split()[3]) / (2 * HALF_MINIMUM))
             for row in special.split("\n") if row}
    assert found.keys() == wanted.keys() and len(found) == 2
    assert all(found[pair] == pytest.approx(wanted[pair], rel=1e-8) for pair in found)


def test_namd_files(systems, tmp_path):
    """What the configurations name is there; MDAnalysis reads types, masses and places."""
    system = systems["modified"]
    paths = export_namd(system, tmp_path, DYNAMICS, plan_phases(SimulateSection(protocol=None, phases=PHASES)), 9)
    assert all(path.is_file() for path in paths) and not list(tmp_path.glob("*.prmtop"))
    for stem, psf in (("01-minimise", "system.psf"), ("02-produce", "heavy.psf")):
        keys = dict(line.split(None, 1) for line in (tmp_path / f"{stem}.conf").read_text().splitlines()[1:])
        assert (keys["paraTypeCharmm"], keys["structure"], keys["parameters"]) == ("on", psf, "system.prm")
        assert (keys["exclude"], keys["1-4scaling"], keys["coordinates"]) == ("scaled1-4", "1.0", "system.pdb")
        assert (keys["cutoff"], keys["switchdist"], keys["vdwForceSwitching"]) == ("12.0", "10.0", "on")
        assert not keys.keys() & {"amber", "parmfile", "readexclusions", "scnb"}
    heavy = MDAnalysis.Universe(tmp_path / "heavy.psf", tmp_path / "system.coor", format="NAMDBIN")
    assert heavy.atoms.masses == pytest.approx(repartitioned_masses(system.topology, 3.0), abs=1e-6)
    assert heavy.atoms.types.tolist() == system.topology.per_atom("atom_class").astype("U8").tolist()
    assert heavy.atoms.positions == pytest.approx(system.position, abs=1e-5)
    assert heavy.select_atoms("segid S001").residues.resids.tolist() == [1, 2, 3, 4, 5]
    assert MDAnalysis.Universe(tmp_path / "system.pdb").atoms.positions == pytest.approx(system.position, abs=1e-3)


def test_genesis_files(systems, tmp_path):
    """What the control files name is there, and residues are counted as the selections have them."""
    system = systems["modified"]
    paths = export_genesis(system, tmp_path, DYNAMICS, plan_phases(SimulateSection(protocol=None, phases=PHASES)), 9)
    assert all(path.is_file() for path in paths) and not list(tmp_path.glob("*.prmtop"))
    keys = dict(re.findall(r"^(\w+) *= (.*)$", (tmp_path / "01-minimise.inp").read_text(), re.M))
    for key, name in (("psffile", "psf"), ("parfile", "prm"), ("crdfile", "crd"), ("reffile", "pdb")):
        assert keys[key] == f"system.{name}" and tmp_path / keys[key] in paths
    assert (keys["forcefield"], keys["switchdist"], keys["vdw_force_switch"]) == ("CHARMM", "10.0", "YES")
    keys = dict(re.findall(r"^(\w+) *= (.*)$", (tmp_path / "02-produce.inp").read_text(), re.M))
    atoms = MDAnalysis.Universe(tmp_path / "system.psf", tmp_path / "system.crd", topology_format="PSF").atoms
    assert atoms.residues.resnames[atoms.residues.resnames == keys["water_model"]].size == 20
    assert "reffile" not in keys and keys["hydrogen_mr"] == "YES"
    assert atoms.resids.tolist() == (system.topology.residue_of_atom() + 1).tolist()
    assert atoms.positions == pytest.approx(system.position, abs=1e-5)
    # GENESIS takes the sides of a rigid water from the bonds of its atom types.
    sides = re.findall(r"^(OT|HT) +(OT|HT) +\S+ (\S+)$", (tmp_path / "system.prm").read_text(), re.M)
    assert {frozenset(pair): float(length) for *pair, length in sides} == pytest.approx(
        {frozenset(("OT", "HT")): 0.9572, frozenset(("HT",)): 2 * 0.9572 * np.sin(np.radians(104.52 / 2))})


def without(template, term, row):
    """A kind of molecule without a row of a term."""
    return replace(template, **{name: np.delete(getattr(template, name), row, axis=0)
                                for name in vars(template) if name.startswith(f"{term}_")})


CHANGES = {
    "atom types of CHARMM": lambda t: replace(t, atom_class=t.atom_class[:0]),
    "bonds of atom types": lambda t: replace(t, bond_k=t.bond_k * (1 + 1e-3 * (np.arange(len(t.bond_k)) == 1))),
    "dihedrals of atom types": lambda t: without(t, "dihedral", -1),
    "angles without parameters": lambda t: without(t, "angle", 0),
    "do not follow from its bonds": lambda t: replace(t, exclusion=t.exclusion[1:]),
    "not those of one angle": lambda t: replace(t, urey_bradley_atoms=t.urey_bradley_atoms * 0 + [0, 1]),
    "scaled charges": lambda t: replace(t, pair14_charge_product=t.pair14_charge_product / 1.2),
    "1-4 pairs of atom types": lambda t: replace(t, pair14_sigma=t.pair14_sigma * (1 + 1e-3 * (t.pair14_sigma < 2.5))),
    "has periodicity 0": lambda t: replace(t, dihedral_n=0 * t.dihedral_n),
    "several Lennard-Jones parameters": lambda t: replace(t, lj_type=t.lj_type[::-1]),
    "capital letters": lambda t: replace(t, atom_class=np.char.lower(t.atom_class)),
}


@pytest.mark.parametrize("told", CHANGES)
@pytest.mark.parametrize("export", [export_namd, export_genesis])
def test_what_a_parameter_file_cannot_hold_is_refused(systems, tmp_path, export, told):
    """In one sentence, and nothing is written."""
    system = systems["modified"]
    templates = [CHANGES[told](t) if k == 1 else t for k, t in enumerate(system.topology.templates)]
    changed = replace(system, topology=replace(system.topology, templates=templates))
    with pytest.raises(BadInputError, match=told):
        export(changed, tmp_path / "out", DYNAMICS)
    assert not (tmp_path / "out").exists()
