"""GROMACS on the exported files: its energies are those of the topology, and it runs every phase without a warning."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import MDAnalysis
import numpy as np
import openmm
import pytest
from openmm import app
from support.command_line import chromabuild, refusal, result_of
from support.engine_energies import ENERGY_COLUMNS, evaluate, reference_energy, set_pme
from support.molecular_systems import SOLVENT, MolecularSystem, fixture, make_solute
from support.solvated_example import SOLUTE
from support.triclinic_systems import cut_out, rhombic_dodecahedron, truncated_octahedron
from test_charmm import solvated as charmm_system

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.export.gromacs import export_gromacs, index_groups
from chromabuild.export.gromacs.molecules import fast_bonds, type_names, write_topology
from chromabuild.export.gromacs.parameters import interactions
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.import_files import import_system, import_topology
from chromabuild.simulate.openmm_engine import SPLINE_ORDER, NonbondedOptions
from chromabuild.simulate.protocol import plan_phases

GMX = shutil.which("gmx")
EXACT = shutil.which("gmx_d") or GMX
"""In double precision where it is installed."""
needs_gromacs = pytest.mark.skipif(GMX is None, reason="GROMACS is not installed")
TERMS = {"bond": ["Bond", "Harmonic Pot."], "angle": ["Angle", "U-B"], "dihedral": ["Proper Dih."],
         "improper": ["Improper Dih."], "lennard_jones": ["LJ-14", "LJ (SR)"],
         "electrostatic": ["Coulomb-14", "Coulomb (SR)", "Coul. recip."], "cmap": ["CMAP Dih."]}
GROMACS_COULOMB = 138.935458 * 10 / 4.184
"""kcal angstrom/mol/e^2: the constant of GROMACS' manual, "Definitions and Units"."""


def gmx(folder: Path, *arguments: object, told: str = "") -> str:
    """What a command of GROMACS prints; it must succeed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMPI")}
    done = subprocess.run([EXACT, *map(str, arguments)], cwd=folder, input=told, capture_output=True, text=True,
                          timeout=300, env=environment | {"GMX_MAXBACKUP": "-1"})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def energies(folder: Path) -> dict[str, float]:
    """Energies of system.gro under energy.mdp, kcal/mol, by the names of GROMACS."""
    said = gmx(folder, "grompp", "-f", "energy.mdp", "-c", "system.gro", "-p", "system.top", "-n", "index.ndx", "-o",
               "energy.tpr")
    assert "WARNING" not in said, said
    gmx(folder, "mdrun", "-s", "energy.tpr", "-deffnm", "energy", "-rerun", "system.gro", "-nt", 1)
    menu = gmx(folder, "energy", "-f", "energy.edr", "-o", "none.xvg", told="Potential\n\n")
    names = [name for row in TERMS.values() for name in row if name.replace(" ", "-") in menu]
    gmx(folder, "energy", "-f", "energy.edr", "-o", "energy.xvg", "-xvg", "none", "-dp",
        told="\n".join(name.replace(" ", "-") for name in names) + "\n\n")
    values = [float(word) / 4.184 for word in (folder / "energy.xvg").read_text().split()[1:]]
    assert len(values) == len(names)
    # GROMACS prints the terms in the order of its own list.
    order = sorted(names, key=lambda name: menu.index(name.replace(" ", "-")))
    return dict(zip(order, values, strict=True))


def in_charmm(known: MolecularSystem) -> MolecularSystem:
    """The peptide in its water and salt, with another force field."""
    sizes = {t.name: int(known.topology.run_count[known.topology.run_template == k].sum())
             for k, t in enumerate(known.topology.templates)}
    counts = {key: sizes[residue] for key, residue in SOLVENT.items() if residue in sizes}
    return replace(known, topology=make_topology(fixture("peptide")[0], counts, "charmm36m"))


@needs_gromacs
@pytest.mark.slow
@pytest.mark.parametrize("name", ["water", "peptide", "duplex", "peptide in charmm36m"])
def test_gromacs_finds_the_energies(systems, tmp_path, name):
    """Each term within 1e-5 of OpenMM's Reference platform on our topology.

    Where GROMACS is in single precision it adds 1e6 pairs of either sign, each to 6e-8: the total of a term is good to
    1e-5 of its largest part.
    """
    system = in_charmm(systems["peptide"]) if "charmm" in name else systems[name]
    options = NonbondedOptions(9.0, 0.34, (32, 32, 36))
    theirs, _ = reference_energy(system, options)
    theirs["angle"] += theirs["urey_bradley"]
    export_gromacs(BuiltSystem(system.topology, system.position, system.box), tmp_path, DynamicsSection(),
                   plan_phases(SimulateSection()), 1)
    keys = {"define": "-DFLEXIBLE", "integrator": "md", "nsteps": 0, "continuation": "yes", "nstenergy": 1,
            "nstcalcenergy": 1, "constraints": "none", **interactions(options, SPLINE_ORDER)}
    (tmp_path / "energy.mdp").write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
    ours = energies(tmp_path)
    constant = system.topology.coulomb_constant / GROMACS_COULOMB
    for term, parts in TERMS.items():
        found = [ours.get(part, 0.0) * (constant if term == "electrostatic" else 1.0) for part in parts]
        assert sum(found) == pytest.approx(theirs[term], rel=1e-5, abs=1e-5 * np.abs(found).max() + 1e-4), term


def test_terms_of_charmm_come_back(systems, tmp_path):
    """Urey-Bradley terms, which a top has in its angles, impropers and correction maps by our own import."""
    topology = in_charmm(systems["peptide"]).topology
    write_topology(topology, tmp_path)
    back = import_topology(tmp_path / "system.top", [])
    for name, columns in (("urey_bradley", ("k", "r0")), ("improper", ("k", "psi0")), ("cmap", ())):
        found, expected = back.term(name), topology.term(name)
        assert len(found["atoms"]) == len(expected["atoms"]) > 0, name
        order, theirs = (np.lexsort(one["atoms"].T) for one in (found, expected))
        assert np.array_equal(found["atoms"][order], expected["atoms"][theirs]), name
        for column in columns:
            assert found[column][order] == pytest.approx(expected[column][theirs], rel=1e-8, abs=1e-8), (name, column)


@needs_gromacs
@pytest.mark.slow
@pytest.mark.parametrize("shape", [rhombic_dodecahedron(21.2), truncated_octahedron(23.0)])
def test_gromacs_agrees_on_an_imported_system(tmp_path, shape):
    """Energies of the exported top and gro, terms as above; and the import keeps the system to its digits."""
    system = cut_out("peptide", 30.0, shape)
    options = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(24, 24, 24))
    export_gromacs(BuiltSystem(system.topology, system.position, shape), tmp_path, DynamicsSection(),
                   plan_phases(SimulateSection()), 1)
    keys = {"define": "-DFLEXIBLE", "integrator": "md", "nsteps": 0, "continuation": "yes", "nstenergy": 1,
            "nstcalcenergy": 1, "constraints": "none", **interactions(options, SPLINE_ORDER)}
    (tmp_path / "energy.mdp").write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
    theirs = energies(tmp_path)
    import_system(tmp_path / "system.top", tmp_path / "system.gro", [], tmp_path / "imported")
    entries = {"topologyfile": tmp_path / "imported/topology.h5", "shardfile": tmp_path / "imported/shards/bricks.txt"}
    ours, _ = evaluate(entries, tmp_path, "double", options)
    constant = system.topology.coulomb_constant / GROMACS_COULOMB
    for term, parts in TERMS.items():
        found = [theirs.get(part, 0.0) * (constant if term == "electrostatic" else 1.0) for part in parts]
        mine = sum(ours[column] for column in ENERGY_COLUMNS[term])
        assert mine == pytest.approx(sum(found), rel=1e-5, abs=1e-5 * np.abs(found).max() + 1e-4), term


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A solute in water, its force field, and a protocol with all that a phase can have."""
    folder = tmp_path_factory.mktemp("gromacs")
    (folder / "results").mkdir()
    shutil.copy(SOLUTE, folder / "results" / "solute_clean.h5")
    (folder / "locus.yaml").write_text("""
solvate: {padding: 3.0, brick_edge: 60.0}
dynamics: {trajectory_selection: solute-and-ions}
simulate:
  protocol: null
  phases:
    - {name: minimise, kind: minimise, steps: 20, restraints: [{group: heavy, constant: 5}]}
    - {name: heat, steps: 20, temperature: [100, 200], hydrogen_mass_factor: 3, end_pairs: 2,
       output_period: 10, trajectory_period: 10,
       restraints: [{group: dna, constant: [5, 1]}, {group: histone-core, constant: 2}]}
    - {name: produce, steps: 20, ensemble: NPT, pressure: 2, output_period: 10, trajectory_period: 10}
""")
    for stage in ("solvate", "topology"):
        result_of(stage, cwd=folder)
    return folder


@needs_gromacs
@pytest.mark.slow
def test_gromacs_runs_every_phase_without_a_warning(project):
    """By the script that is written; called again it has nothing to do."""
    made = result_of("export", "gromacs", cwd=project)
    folder = Path(made["folder"]) if Path(made["folder"]).is_absolute() else project / made["folder"]
    assert {"run.sh", "energy.mdp", "01-minimise.mdp", "02-heat.mdp", "03-produce.mdp"} <= set(made["files"])
    assert "holds an export already" in refusal(chromabuild("export", "gromacs", cwd=project), 3)
    words = {"GMX": f"{GMX} -nocopyright", "MDRUN": "-nt 1"}
    call = {"env": os.environ | words, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([folder / "run.sh"], **call)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr, done.stderr[done.stderr.index("WARNING"):][:800]
    universe = MDAnalysis.Universe(folder / "03-produce.gro")
    assert len(universe.atoms) == made["atoms"]
    assert (folder / "02-heat.xtc").is_file() and (folder / "03-produce.cpt").is_file()
    again = subprocess.run([folder / "run.sh"], **call)
    assert again.returncode == 0 and not again.stderr


@needs_gromacs
@pytest.mark.slow
@pytest.mark.parametrize("thermostat", ["nose-hoover", "langevin", "berendsen"])
def test_gromacs_takes_every_thermostat(project, tmp_path, thermostat):
    """Every phase passes grompp without a warning, from the coordinates as built."""
    made = result_of("export", "gromacs", "--output", tmp_path, "--force", "--set", f"dynamics.thermostat={thermostat}",
                     cwd=project)
    for name in made["files"]:
        if name.endswith(".mdp"):
            said = gmx(tmp_path, "grompp", "-f", name, "-c", "system.gro", "-r", "system.gro", "-p", "system.top", "-n",
                       "index.ndx", "-o", "phase.tpr")
            assert "WARNING" not in said, said[said.index("WARNING"):][:800]


@pytest.mark.slow
def test_a_part_with_its_protocol(project, tmp_path):
    """Volume stays constant, restraints without atoms go and hydrogen bonds to a strand that is left out, and grompp
    warns of the net charge alone, which the summary tells; all water keeps the pressure."""
    assert "at 'proteins'" in refusal(chromabuild("export", "gromacs", "--part", "proteins", "-o", tmp_path / "none",
                                                   cwd=project), 3)
    near, one = tmp_path / "near", tmp_path / "one"
    summary = result_of("export", "gromacs", "--part", "dna or within 4 of protein", "-o", near, cwd=project)
    assert summary["selected atoms"] <= summary["atoms"] and "restraints left out" not in summary
    assert summary["net charge"] == "-13.00 e"
    assert "pcoupl " not in (near / "03-produce.mdp").read_text()
    assert "END_PAIRS" in (near / "02-heat.mdp").read_text()
    summary = result_of("export", "gromacs", "--part", "water or ions or segid D00I", "-o", one, cwd=project)
    assert summary["restraints left out"] == "histone-core"
    heat = (one / "02-heat.mdp").read_text()
    assert "POSRES_DNA" in heat and "HISTONE" not in heat and "END_PAIRS" not in heat
    assert "C-rescale" in (one / "03-produce.mdp").read_text()
    if GMX is not None:
        for folder in (near, one):
            said = gmx(folder, "grompp", "-f", "02-heat.mdp", "-c", "system.gro", "-r", "system.gro", "-p",
                       "system.top", "-n", "index.ndx", "-o", "phase.tpr", "-maxwarn", 1)
            assert "in a system with net charge" in said and "WARNING 2" not in said, said


def test_names_and_groups(tmp_path):
    """Two chains of the same name have files of their own; groups are ranges of the whole system."""
    solute = make_solute([["DA5", "DC", "DG3"], ["NALA", "TRP", "CVAL"], ["NALA", "HIE", "CVAL"]])
    topology = make_topology(solute, {"water": 7, "sodium": 2, "chloride": 1})
    for template in topology.templates[1:3]:
        template.name = "H3"
    topology.templates[0].name = "h3"
    paths = write_topology(topology, tmp_path)
    assert [path.stem for path in paths] == ["system", "h3", "H3_2", "H3_3", "HOH", "NA", "CL"]
    assert len({name.lower() for name in type_names(topology)}) == len(topology.lj_name)
    groups = index_groups(topology)
    n = solute.n_atoms
    n_dna = topology.templates[0].n_atoms
    assert groups == {"System": [(1, n + 24)], "Solute": [(1, n)], "DNA": [(1, n_dna)], "Protein": [(n_dna + 1, n)],
                      "Water": [(n + 1, n + 21)], "Ions": [(n + 22, n + 24)], "NA": [(n + 22, n + 23)],
                      "CL": [(n + 24, n + 24)]}


def test_branched_correction_maps_are_refused(tmp_path):
    """An atom that is N of one map and C of another."""
    topology = make_topology(make_solute([["NALA", "ALA", "CALA"]]), {}, "charmm36m")
    atoms = topology.templates[0].cmap_atoms
    crossed = np.concatenate([atoms, atoms[:, [1, 0, 2, 3, 4]]])
    topology.templates[0] = replace(topology.templates[0], cmap_atoms=crossed, cmap_map=np.zeros(2))
    with pytest.raises(BadInputError, match="CMAP"):
        write_topology(topology, tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_kinds_of_heavy_hydrogens_are_refused(tmp_path):
    topology = make_topology(make_solute([["NALA", "CALA"]]), {})
    phases = plan_phases(SimulateSection(protocol=None, phases=[
        {"name": f"by-{factor}", "steps": 1, "hydrogen_mass_factor": factor} for factor in (1, 2, 3)]))
    system = BuiltSystem(topology, np.zeros((topology.n_atoms, 3)), np.full(3, 30.0))
    with pytest.raises(BadInputError, match="several values of hydrogen_mass_factor"):
        export_gromacs(system, tmp_path / "out", DynamicsSection(), phases, 1)
    assert not (tmp_path / "out").exists()


def test_the_solute_alone(tmp_path):
    """Without water there is no protocol; the settings' phases are left out."""
    solute = make_solute([["NALA", "CVAL"]])
    topology = make_topology(solute, {"water": 2})
    whole = BuiltSystem(topology, np.arange(3.0 * topology.n_atoms).reshape(-1, 3), np.full(3, 90.0), solute)
    paths = export_gromacs(whole.part("solute"), tmp_path, Settings().dynamics, (), 1)
    assert sorted(path.name for path in paths) == ["chain-0.itp", "index.ndx", "system.gro", "system.top"]
    title, number, *atoms, box = (tmp_path / "system.gro").read_text().splitlines()
    assert int(number) == len(atoms) == solute.n_atoms
    assert [float(word) for word in atoms[-1][20:].split()] == pytest.approx(whole.position[solute.n_atoms - 1] / 10)
    assert atoms[-1][:20] == "    2VAL    OXT" + f"{solute.n_atoms:5d}" and box.split() == ["9.00000"] * 3


@pytest.mark.parametrize("name", ["water", "peptide", "duplex"])
def test_openmm_reads_the_topology(systems, tmp_path, name):
    """OpenMM's own reader of GROMACS files finds the energies of our topology to 1e-6: another judge, in double
    precision, and one that is always installed."""
    system = systems[name]
    export_gromacs(BuiltSystem(system.topology, system.position, system.box), tmp_path, DynamicsSection(), (), 1)
    # Its reader of gro files wants three decimals.
    top = app.GromacsTopFile(str(tmp_path / "system.top"), unitCellDimensions=openmm.Vec3(*(system.box / 10)),
                             defines={"FLEXIBLE": ""})
    options = NonbondedOptions(9.0, 0.34, (32, 32, 36))
    judge = top.createSystem(nonbondedMethod=app.PME, nonbondedCutoff=options.cutoff / 10, constraints=None,
                             rigidWater=False, removeCMMotion=False)
    set_pme(judge, options)
    context = openmm.Context(judge, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(system.position / 10)
    theirs = context.getState(getEnergy=True).getPotentialEnergy()._value / 4.184
    ours, _ = reference_energy(system, options)
    assert theirs == pytest.approx(sum(ours.values()), rel=1e-6)


@needs_gromacs
def test_bonds_faster_than_five_steps_are_rigid(tmp_path):
    """grompp warns of bonds of fewer steps a period. In CHARMM36m at 4 fs that is C2=O2 of thymine alone: its period is
    2 pi sqrt(6.86 u / (2 x 860 kcal/mol/A^2)) = 19.4 fs."""
    system = charmm_system("duplex")
    phases = plan_phases(SimulateSection(protocol=None, phases=[
        {"name": "minimise", "kind": "minimise", "steps": 5}, {"name": "warm", "steps": 5, "timestep": 2},
        {"name": "produce", "steps": 5, "timestep": 4, "hydrogen_mass_factor": 3}]))
    export_gromacs(system, tmp_path, DynamicsSection(force_field="charmm36m", cutoff=9, switch_distance=8), phases, 1)
    rigid = set()
    for template in system.topology.templates[:2]:
        bonds = template.bond_atoms[fast_bonds(template, 3.0, 4.0)]
        rigid |= {" ".join(template.atom_name[row].astype(str)) for row in bonds}
    assert rigid == {"C2 O2"}
    defined = ["RIGID_FAST_BONDS" in path.read_text() for path in sorted(tmp_path.glob("0*.mdp"))]
    assert defined == [False, True, True]
    for name in ("02-warm", "03-produce"):
        done = subprocess.run([GMX, "grompp", "-f", f"{name}.mdp", "-c", "system.gro", "-p", "system.top", "-n",
                               "index.ndx", "-o", f"{name}.tpr"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr[-2000:]
        assert "oscillational period" not in done.stderr or name == "03-produce"
    plain = tmp_path / "plain.mdp"
    plain.write_text((tmp_path / "03-produce.mdp").read_text().replace("-DRIGID_FAST_BONDS", ""))
    done = subprocess.run([GMX, "grompp", "-f", "plain.mdp", "-c", "system.gro", "-p", "system.top", "-n", "index.ndx",
                           "-o", "plain.tpr"], cwd=tmp_path, capture_output=True, text=True)
    assert "WARNING" in done.stderr and "less than 5 times" in done.stderr
