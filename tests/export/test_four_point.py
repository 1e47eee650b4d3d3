"""Four-point water in the files of other programs, and back by ``chromabuild import``."""

from dataclasses import replace

import numpy as np
import openmm
import pytest
from openmm import app
from support.engine_energies import energies_by_force, reference_energy, relative_rms
from support.four_point import placed, solvated_in
from test_gromacs import GROMACS_COULOMB, TERMS, energies, needs_gromacs

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import DynamicsSection, SimulateSection
from chromabuild.export.amber import export_amber
from chromabuild.export.genesis import export_genesis
from chromabuild.export.gromacs import export_gromacs
from chromabuild.export.gromacs.parameters import interactions
from chromabuild.export.namd import export_namd
from chromabuild.export.openmm_files import export_openmm
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import force_field_files
from chromabuild.forcefield.import_files import import_system
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.openmm_engine import SPLINE_ORDER, NonbondedOptions
from chromabuild.simulate.protocol import plan_phases

OPTIONS = NonbondedOptions(9.0, 0.34, (30, 30, 30))


@pytest.fixture(scope="module")
def system():
    """A peptide and ions in OPC, sites where OpenMM would place them."""
    made = solvated_in("opc", "peptide", 27.0, 2000, 3)
    return replace(made, position=placed(made.topology, made.position))


@pytest.fixture
def built(system) -> BuiltSystem:
    return BuiltSystem(system.topology, system.position, system.box)


@pytest.mark.parametrize("program", ["amber", "gromacs"])
def test_exported_files_come_back(system, built, tmp_path, program):
    """OpenMM's readers find the sites in a prmtop and in a top. The import gives the energies of our own topology: a
    prmtop has nine digits, its bonds of extra points have no energy, and a rigid water of either its own bonds."""
    if program == "amber":
        export_amber(built, tmp_path)
        import_system(tmp_path / "system.prmtop", tmp_path / "system.rst7", [], tmp_path)
    else:
        export_gromacs(built, tmp_path, DynamicsSection(), (), 1)
        import_system(tmp_path / "system.top", tmp_path / "system.gro", [], tmp_path)
    topology = Topology.read(tmp_path / "topology.h5")
    water = topology.templates[1]
    assert water.rigid_water and water.virtual_site_atoms.tolist() == [[3, 0, 1, 2]]
    mine = system.topology.templates[1]
    np.testing.assert_allclose([water.virtual_site_w2, water.virtual_site_w3],
                               [mine.virtual_site_w2, mine.virtual_site_w3], atol=2e-8)
    assert not np.isin(3, water.bond_atoms)
    theirs, force = reference_energy(replace(system, topology=topology), OPTIONS)
    ours, my_force = reference_energy(system, OPTIONS)
    for term in ("dihedral", "lennard_jones", "electrostatic"):
        assert theirs[term] == pytest.approx(ours[term], rel=1e-6), term
    solute = np.arange(system.topology.templates[0].n_atoms)
    assert relative_rms(force[solute], my_force[solute]) < 1e-6


@needs_gromacs
@pytest.mark.slow
def test_gromacs_finds_the_energies(system, built, tmp_path):
    """As for three-point water in test_gromacs. Its coordinates round the sites, which a rerun does not place anew, to
    0.001 angstrom: 0.0003 on average, against forces of 20 kcal/mol/angstrom on each of 500 charges 0.13 kcal/mol."""
    theirs, _ = reference_energy(system, OPTIONS)
    export_gromacs(built, tmp_path, DynamicsSection(), plan_phases(SimulateSection()), 1)
    keys = {"define": "-DFLEXIBLE", "integrator": "md", "nsteps": 0, "continuation": "yes", "nstenergy": 1,
            "nstcalcenergy": 1, "constraints": "none", **interactions(OPTIONS, SPLINE_ORDER)}
    (tmp_path / "energy.mdp").write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
    ours = energies(tmp_path)
    constant = system.topology.coulomb_constant / GROMACS_COULOMB
    for term, parts in TERMS.items():
        found = [ours.get(part, 0.0) * (constant if term == "electrostatic" else 1.0) for part in parts]
        rounding = 0.5 if term == "electrostatic" else 1e-4
        assert sum(found) == pytest.approx(theirs[term], rel=1e-5, abs=1e-5 * np.abs(found).max() + rounding), term


def test_openmm_assigns_its_force_field_to_the_exported_atoms(built, tmp_path):
    """The sites are extra points of system.cif, and virtual in system.xml."""
    export_openmm(built, tmp_path, DynamicsSection())
    pdbx = app.PDBxFile(str(tmp_path / "system.cif"))
    judge = app.ForceField(*force_field_files("amber14", "opc")).createSystem(
        pdbx.topology, nonbondedMethod=app.PME, nonbondedCutoff=0.9, constraints=None, rigidWater=False,
        removeCMMotion=False)
    theirs, their_force = energies_by_force(judge, OPTIONS, pdbx.positions)
    ours = openmm.XmlSerializer.deserialize((tmp_path / "system.xml").read_text())
    state = openmm.XmlSerializer.deserialize((tmp_path / "state.xml").read_text())
    sites = [i for i in range(ours.getNumParticles()) if ours.isVirtualSite(i)]
    assert sites == [i for i in range(judge.getNumParticles()) if judge.isVirtualSite(i)]
    place = np.asarray(state.getPositions(asNumpy=True)) * 10
    np.testing.assert_allclose(place, built.position, atol=1e-6)
    assert theirs["nonbonded"] < 0 and np.isfinite(their_force).all()


@pytest.mark.parametrize("export", [export_genesis, export_namd])
def test_programs_that_read_a_prmtop(system, built, tmp_path, export):
    """What NAMD and GENESIS look for: a water of oxygen, hydrogens and an extra point without mass, in this order, its
    bonds to hydrogens and between them among those with hydrogen, and that to the extra point among the others. It
    comes back with the same energies."""
    phases = plan_phases(SimulateSection(protocol=None, phases=[
        {"name": "minimise", "kind": "minimise", "steps": 10}, {"name": "move", "steps": 10}]))
    export(built, tmp_path, DynamicsSection(), phases)
    prmtop = app.AmberPrmtopFile(str(tmp_path / "system.prmtop"))._prmtop
    water = next(k for k in range(prmtop.getNumAtoms()) if prmtop.getResidueLabel(k) == "WAT")
    assert [prmtop.getAtomName(water + k) for k in range(4)] == ["O", "H1", "H2", "EPW"]
    assert float(prmtop._raw_data["MASS"][water + 3]) == 0 and prmtop.getResidueLabel(water + 3) == "WAT"
    own = {"WITHOUT_HYDROGEN": set(), "INC_HYDROGEN": set()}
    for name, found in own.items():
        rows = np.array(prmtop._raw_data[f"BONDS_{name}"], dtype=int).reshape(-1, 3)[:, :2] // 3 - water
        found |= {tuple(sorted(row)) for row in rows.tolist() if 0 <= min(row) and max(row) < 4}
    assert own == {"WITHOUT_HYDROGEN": {(0, 3)}, "INC_HYDROGEN": {(0, 1), (0, 2), (1, 2)}}
    names = ("01-minimise", "02-move")
    if export is export_namd:
        for name in names:
            keys = dict(line.split(None, 1) for line in (tmp_path / f"{name}.conf").read_text().splitlines()[1:])
            assert (keys["waterModel"], keys["lonePairs"], keys["rigidBonds"]) == ("tip4", "off", "all")
        place = tmp_path / "system.coor"
        assert len(np.frombuffer(place.read_bytes()[4:])) == 3 * built.topology.n_atoms
    else:
        assert "water_model      = WAT" in (tmp_path / "02-move.inp").read_text()
        place = tmp_path / "system.inpcrd"
    import_system(tmp_path / "system.prmtop", place, [], tmp_path, box=built.box.tolist())
    theirs, _ = reference_energy(replace(system, topology=Topology.read(tmp_path / "topology.h5")), OPTIONS)
    ours, _ = reference_energy(system, OPTIONS)
    for term in ("dihedral", "lennard_jones", "electrostatic"):
        assert theirs[term] == pytest.approx(ours[term], rel=1e-6), term


PSF = """PSF EXT NAMD

         1 !NTITLE
* three waters

        {atoms} !NATOM
"""
PARAMETERS = """* TIP4P
*

ATOMS
MASS -1 OT4 15.99940
MASS -1 HT4 1.00800
MASS -1 LP4 0.00000

BONDS
OT4 HT4 450.0 0.9572
HT4 HT4 0.0 1.5139

ANGLES
HT4 OT4 HT4 55.0 104.52

NONBONDED nbxmod 5 atom cdiel shift vatom vdistance vswitch -
cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac 1.0 wmin 1.5
OT4 0.0 -0.1550 1.7699
HT4 0.0 0.0 0.2245
LP4 0.0 0.0 0.0

END
"""


def test_charmm_psf_with_lone_pairs(tmp_path):
    """TIP4P as CHARMM writes it: the lone pair comes second, on the bisector, 0.15 angstrom from the oxygen."""
    rows = [("OH2", "OT4", 0.0, 15.9994), ("OM", "LP4", -1.04, 0.0), ("H1", "HT4", 0.52, 1.008),
            ("H2", "HT4", 0.52, 1.008)]
    n = 3
    lines = PSF.format(atoms=4 * n).splitlines()
    lines += [f"{4 * m + k + 1:10d} WAT      {m + 1:<8d} TIP4     {name:<8s} {kind:<6s} {charge:14.6f}{mass:14.4f}"
              f"{-1 if mass == 0 else 0:12d}" for m in range(n) for k, (name, kind, charge, mass) in enumerate(rows)]

    def section(title, numbers, width):
        text = [f"{number:10d}" for number in numbers]
        return ["", title, *("".join(text[k:k + width]) for k in range(0, len(text), width))]

    first = [4 * m + 1 for m in range(n)]
    lines += section(f"{2 * n:10d} !NBOND: bonds", [x for o in first for x in (o, o + 2, o, o + 3)], 8)
    lines += section(f"{n:10d} !NTHETA: angles", [x for o in first for x in (o + 2, o, o + 3)], 9)
    for title in ("!NPHI: dihedrals", "!NIMPHI: impropers", "!NDON: donors", "!NACC: acceptors"):
        lines += section(f"{0:10d} {title}", [], 8)
    lines += section(f"{0:10d} !NNB", [0] * (4 * n), 8)
    lines += ["", f"{1:10d}{0:10d} !NGRP NST2", f"{0:10d}{0:10d}{0:10d}"]
    lines += ["", f"{n:10d}{4 * n:10d} !NUMLP NUMLPH"]
    lines += [f"{3:10d}{4 * m + 1:10d}   F      -0.150000       0.00000       0.00000" for m in range(n)]
    lines += section("", [x for o in first for x in (o + 1, o, o + 2, o + 3)], 8)[2:] + [""]
    (tmp_path / "w.psf").write_text("\n".join(lines) + "\n")
    (tmp_path / "w.prm").write_text(PARAMETERS)
    half = np.radians(104.52 / 2)
    shape = np.array([[0, 0, 0], [0.15, 0, 0], 0.9572 * np.array([np.cos(half), np.sin(half), 0]),
                      0.9572 * np.array([np.cos(half), -np.sin(half), 0])])
    position = np.concatenate([shape + [5.0 + 4 * m, 6, 7] for m in range(n)])
    lines = ["* test", "*", f"{4 * n:10d}  EXT"]
    lines += [f"{k + 1:10d}{k // 4 + 1:10d}  TIP4      {rows[k % 4][0]:<8s}"
              + "".join(f"{x:20.10f}" for x in position[k]) + f"  WAT       {k // 4 + 1:<8d}{0.0:20.10f}"
              for k in range(4 * n)]
    (tmp_path / "w.crd").write_text("\n".join(lines) + "\n")
    import_system(tmp_path / "w.psf", tmp_path / "w.crd", [tmp_path / "w.prm"], tmp_path, box=[30.0, 30.0, 30.0])
    water = Topology.read(tmp_path / "topology.h5").templates[0]
    assert water.rigid_water and water.virtual_site_atoms.tolist() == [[1, 0, 3, 2]]
    # The distance over twice the depth of the hydrogens.
    expected = 0.15 / (2 * 0.9572 * np.cos(half))
    np.testing.assert_allclose([water.virtual_site_w2, water.virtual_site_w3], expected, rtol=1e-6)


def test_other_kinds_of_sites_are_refused(system, built, tmp_path):
    export_gromacs(built, tmp_path, DynamicsSection(), (), 1)
    path = tmp_path / "HOH.itp"
    text = path.read_text()
    start = text.index("[ virtual_sites3 ]")
    path.write_text(text[:start] + "[ virtual_sites3 ]\n4 1 2 3 4 0.1 0.1 3.0\n" + text[text.index("\n\n", start):])
    with pytest.raises(BadInputError, match="virtual site of a kind that the engine does not have"):
        import_system(tmp_path / "system.top", tmp_path / "system.gro", [], tmp_path)
