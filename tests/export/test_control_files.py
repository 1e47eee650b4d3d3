"""Input of AMBER, NAMD and GENESIS, which no registry carries: its files as other readers take them, and every key and
group of atoms against what the settings say."""

import os
import re
import subprocess
from dataclasses import replace

import MDAnalysis
import numpy as np
import pytest
from support.command_line import result_of
from support.engine_energies import ENERGY_COLUMNS, chromamd_energy, evaluate
from support.molecular_systems import MolecularSystem, make_solute

from chromabuild.base.constants import AKMA_VELOCITY
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import DynamicsSection, SimulateSection
from chromabuild.export.amber import export_amber
from chromabuild.export.amber_control import phase_control
from chromabuild.export.genesis import export_genesis, selection_of
from chromabuild.export.namd import export_namd
from chromabuild.export.parts import PARTS, with_constant_restraints
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.hydrogens import repartitioned_masses
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.groups import atoms_of_group
from chromabuild.simulate.openmm_engine import nonbonded_options
from chromabuild.simulate.protocol import plan_phases

PHASES = [{"name": "minimise", "kind": "minimise", "steps": 50, "restraints": [{"group": "heavy", "constant": 5}]},
          {"name": "heat", "steps": 1000, "temperature": [100, 300], "hydrogen_mass_factor": 3, "end_pairs": 2,
           "output_period": 10, "trajectory_period": 20,
           "restraints": [{"group": "heavy", "constant": [5, 1]}, {"group": "backbone", "constant": 20}]},
          {"name": "produce", "steps": 2000, "ensemble": "NPT", "pressure": 2, "output_period": 50,
           "trajectory_period": 100, "timestep": 4, "hydrogen_mass_factor": 3}]
DYNAMICS = DynamicsSection(cutoff=8.0, trajectory_selection="solute")
BONDS = [EndBond((3, 70), 2.95)]


def planned(phases=PHASES):
    return plan_phases(SimulateSection(protocol=None, phases=phases))


@pytest.fixture(scope="module")
def mixed():
    """DNA, proteins, water and ions, somewhere."""
    solute = make_solute([["DA5", "DC", "DG3"], ["NALA", "TRP", "CVAL"], ["NALA", "HIE", "CVAL"]])
    topology = make_topology(solute, {"water": 5, "sodium": 2, "chloride": 1})
    generator = np.random.Generator(np.random.Philox(key=8))
    position = generator.uniform(0, 40, (topology.n_atoms, 3)).round(3)
    velocity = generator.normal(0, 4, position.shape)
    return BuiltSystem(topology, position, np.array([40.0, 42.0, 44.0]), velocity=velocity)


def test_a_phase_with_changing_restraints_becomes_parts():
    """Together they are the phase: steps, time, temperatures; the work of a release is that of its mean constants."""
    minimise, *parts, produce = with_constant_restraints(planned())
    whole = planned()[1]
    assert (minimise, produce) == (planned()[0], planned()[2])
    assert len(parts) == PARTS and sum(part.steps for part in parts) == whole.steps
    assert [part.stem for part in parts] == [f"02-heat-{k}" for k in range(1, PARTS + 1)]
    assert [part.draws_velocities for part in parts] == [True] + [False] * (PARTS - 1)
    ends = [part.temperature for part in parts]
    assert [end for _, end in ends[:-1]] == [start for start, _ in ends[1:]]
    assert (ends[0][0], ends[-1][1]) == whole.temperature
    assert [part.first_time for part in parts] == pytest.approx(whole.first_time + 0.2 * np.arange(PARTS))
    constants = np.array([[one.ends() for one in part.restraints] for part in parts])
    assert constants[:, 0, 0] == pytest.approx(np.linspace(4.8, 1.2, PARTS)) and (constants[:, 1] == 20).all()
    assert (constants[:, :, 0] == constants[:, :, 1]).all()
    short = [{"name": "short", "steps": 3, "restraints": [{"group": "heavy", "constant": [1, 0]}]}]
    assert [part.steps for part in with_constant_restraints(planned(short))] == [1, 1, 1]


def test_amber_control(mixed):
    """Keys, and restraints as groups of atoms."""
    options = nonbonded_options(DYNAMICS, mixed.box)
    groups = {name: atoms_of_group(name, mixed.topology) for name in ("heavy", "backbone")}
    minimise, first, *_, produce = with_constant_restraints(planned())
    text = phase_control(minimise, DYNAMICS, options, 5, groups, 0)
    assert " imin=1," in text and " maxcyc=50," in text and " ntr=1," in text and "&wt" not in text
    text = phase_control(first, DYNAMICS, options, 5, groups, 7)
    for key in ("imin=0", "irest=0", "ntx=1", "nstlim=100", "dt=0.002", "ntt=11", "tautp=0.1", "tempi=100.0", "ntc=2",
                "temp0=120.0", "ig=5", "cut=8.0", "ntpr=10", "ntwx=20", "ntwprt=7", "nmropt=1", "vdwmeth=0", "order=4",
                f"nfft1={options.grid[0]}", "type='TEMP0'", "istep2=100", "value1=100.0", "value2=120.0", "type='END'"):
        assert f"  {key}," in text, key
    assert "\nDISANG=02-heat-1_end_pairs.rst\n" in text
    blocks = text[text.index("DISANG"):].split("\n")[1:]
    for name, constant in (("heavy", 4.8), ("backbone", 20)):
        assert blocks.pop(0) == name and float(blocks.pop(0)) == constant
        numbers = []
        while blocks[0].startswith("ATOM"):
            numbers += map(int, blocks.pop(0).split()[1:])
        atoms = np.concatenate([np.arange(a - 1, b) for a, b in zip(numbers[::2], numbers[1::2], strict=True)])
        assert atoms.tolist() == groups[name].tolist()
        assert blocks.pop(0) == "END"
    assert blocks == ["END", ""]
    text = phase_control(produce, DYNAMICS, options, 5, {}, 0)
    for key in ("irest=1", "ntx=5", "ntp=1", "barostat=2", "pres0=2.0265", "dt=0.004", "ntb=2", "ntr=0", "nmropt=0"):
        assert f"  {key}," in text, key
    langevin = DYNAMICS.model_copy(update={"thermostat": "langevin"})
    assert "  ntt=3,\n" in phase_control(produce, langevin, options, 5, {}, 0)
    switched = replace(options, switch_distance=6.0)
    assert "truncated here" in phase_control(produce, DYNAMICS, switched, 5, {}, 0).splitlines()[0]


def test_amber_files(mixed, tmp_path):
    paths = export_amber(mixed, tmp_path, DYNAMICS, planned(), 1, BONDS)
    assert all(path.is_file() for path in paths) and (tmp_path / "run.sh").stat().st_mode & 0o111
    lines = [line for line in (tmp_path / "run.sh").read_text().splitlines() if line.startswith("phase 0")]
    assert lines[0] == "phase 01-minimise system.prmtop system.rst7"
    assert lines[1] == "phase 02-heat-1 heavy.prmtop 01-minimise.rst7"
    assert lines[-1] == "phase 03-produce heavy.prmtop 02-heat-10.rst7"
    heavy = MDAnalysis.Universe(tmp_path / "heavy.prmtop")
    assert heavy.atoms.masses == pytest.approx(repartitioned_masses(mixed.topology, 3.0), rel=1e-7)
    assert heavy.atoms.masses.sum() == pytest.approx(mixed.topology.masses().sum())
    rst = (tmp_path / "02-heat-1_end_pairs.rst").read_text()
    assert re.findall(r"(\w+)=([\d.,]+?),? ", rst) == [("iat", "4,71"), ("r1", "0.0"), ("r2", "2.95"), ("r3", "2.95"),
                                                       ("r4", "999.0"), ("rk2", "2"), ("rk3", "2")]


def test_namd_files(mixed, tmp_path):
    """Coordinates and restraints as MDAnalysis reads them; velocities are in NAMD's unit."""
    paths = export_namd(mixed, tmp_path, DYNAMICS, planned(), 9, BONDS)
    assert all(path.is_file() for path in paths)
    universe = MDAnalysis.Universe(tmp_path / "system.prmtop", tmp_path / "system.coor", format="NAMDBIN")
    assert universe.atoms.positions == pytest.approx(mixed.position, abs=1e-5)
    data = (tmp_path / "system.vel").read_bytes()
    assert int.from_bytes(data[:4], "little") == len(mixed.position)
    velocity = np.frombuffer(data[4:], "<f8").reshape(-1, 3) * AKMA_VELOCITY
    assert velocity == pytest.approx(mixed.velocity)
    held = MDAnalysis.Universe(tmp_path / "02-heat-1_held.pdb")
    expected = np.zeros(len(mixed.position))
    expected[atoms_of_group("heavy", mixed.topology)] += 4.8
    expected[atoms_of_group("backbone", mixed.topology)] += 20
    assert held.atoms.occupancies == pytest.approx(expected) and held.atoms.positions == pytest.approx(mixed.position)
    assert (tmp_path / "02-heat-1_end_pairs.txt").read_text() == "bond 3 70 2 2.95\n"
    cell = (tmp_path / "system.xsc").read_text().splitlines()[-1].split()
    assert [float(cell[k]) for k in (1, 5, 9)] == mixed.box.tolist() and len(cell) == 13
    keys = dict(line.split(None, 1) for line in (tmp_path / "02-heat-1.conf").read_text().splitlines()[1:])
    assert keys["parmfile"] == "heavy.prmtop" and keys["bincoordinates"] == "01-minimise.coor"
    assert float(keys["1-4scaling"]) == pytest.approx(1 / 1.2, abs=1e-6) and keys["exclude"] == "scaled1-4"
    assert keys["temperature"] == "100.0" and "binvelocities" not in keys and keys["conskcol"] == "O"
    text = (tmp_path / "02-heat-2.conf").read_text()
    assert "binvelocities        02-heat-1.vel\n" in text
    runs = [int(count) for count in re.findall(r"^run (\d+)$", text, re.M)]
    ramp = [float(value) for value in re.findall(r"^stochRescaleTemp ([\d.]+)$", text, re.M)]
    cycle = int(re.search(r"^stepspercycle +(\d+)$", text, re.M)[1])
    assert sum(runs) == 100 and all(count % cycle == 0 for count in runs)
    assert ramp[-len(runs):] == pytest.approx(120 + 20 * (np.cumsum(runs) - np.array(runs) / 2) / 100)
    text = (tmp_path / "03-produce.conf").read_text()
    assert "langevinPistonTarget 2.0265\n" in text and text.endswith("run 2000\n") and "constraints" not in text


def test_genesis_files(mixed, tmp_path):
    """Coordinates as MDAnalysis reads them; periods are multiples of the update of pair lists."""
    paths = export_genesis(mixed, tmp_path, DYNAMICS, planned(), 2, BONDS)
    assert all(path.is_file() for path in paths)
    universe = MDAnalysis.Universe(tmp_path / "system.prmtop", tmp_path / "system.inpcrd", format="INPCRD")
    assert universe.atoms.positions == pytest.approx(mixed.position, abs=1e-5)
    last = (tmp_path / "system.inpcrd").read_text().splitlines()[-1]
    assert [float(last[12 * k:12 * k + 12]) for k in range(6)] == [*mixed.box, 90, 90, 90]
    for path in paths:
        if path.suffix != ".inp" or "_prst" in path.name:
            continue
        keys = dict(re.findall(r"^(\w+) *= (.*)$", path.read_text(), re.M))
        period = int(keys["nbupdate_period"])
        assert all(int(keys[name]) % period == 0 for name in ("nsteps", "eneout_period", "crdout_period"))
        assert keys["forcefield"] == "AMBER" and keys["switchdist"] == keys["cutoffdist"] == "8.0"
    keys = dict(re.findall(r"^(\w+) *= (.*)$", (tmp_path / "02-heat-1.inp").read_text(), re.M))
    assert keys["rstfile"] == "02-heat-1.rst" and keys["ambreffile"] == "system.inpcrd"
    assert keys["hydrogen_mr"] == "YES" and keys["hmr_ratio"] == keys["hmr_ratio_xh1"] == "3.0"
    changes = int(keys["nsteps"]) / int(keys["anneal_period"])
    assert changes * float(keys["dtemperature"]) == pytest.approx(20) and changes == round(changes)
    assert (keys["function3"], keys["reference3"], keys["select_index3"]) == ("DIST", "2.95", "3 4")
    assert (keys["group3"], keys["group4"]) == ("ai:4", "ai:71") and keys["nfunctions"] == "3"
    keys = dict(re.findall(r"^(\w+) *= (.*)$", (tmp_path / "03-produce.inp").read_text(), re.M))
    assert (keys["ensemble"], keys["pressure"], keys["timestep"]) == ("NPT", "2.0", "0.004")


def test_genesis_with_a_file_a_rank(mixed, tmp_path):
    """prst_setup makes a set where restraints, masses or rigid bonds change, from that of the phase before, and the
    script names every control file in turn."""
    export_genesis(mixed, tmp_path, DYNAMICS, planned(), 2, BONDS)
    folder = tmp_path / "parallel"
    parts = [f"02-heat-{k}" for k in range(1, PARTS + 1)]
    stems = ["01-minimise", *parts, "03-produce"]
    script = (folder / "run.sh").read_text()
    assert re.findall(r"^(cut|run) (\S+)$", script, re.M) == [(do, stem) for stem in stems for do in ("cut", "run")]
    assert {path.stem for path in folder.glob("*.inp")} == {stem + end for stem in stems for end in ("", "_prst")}
    keys = {path.stem: dict(re.findall(r"^(\w+) *= (.*)$", path.read_text(), re.M)) for path in folder.glob("*.inp")}
    for before, stem in zip([None, *stems], stems, strict=False):
        cut, run = keys[f"{stem}_prst"], keys[stem]
        assert (folder / cut["prmtopfile"]).is_file() and (folder / cut["ambcrdfile"]).is_file()
        assert cut["prmtopfile"] == ("../system.prmtop" if before is None else "../heavy.prmtop")
        heads = re.findall(r"^rstfile *= (.*)$", (folder / f"{stem}_prst.inp").read_text(), re.M)
        assert heads == [*([f"{before}_().rst"] if before else []), f"{stem}_start_().rst"]
        assert cut.get("restart") == (None if before in (None, "01-minimise") else "YES")
        starts, ends = re.findall(r"^rstfile *= (.*)$", (folder / f"{stem}.inp").read_text(), re.M)
        assert (starts, ends) == (f"{stem}_start_().rst", f"{stem}_().rst")
        assert run.get("selfile") == cut.get("selfile") == (None if stem == "03-produce" else f"{stem}.sel")
        assert not {"prmtopfile", "ambcrdfile", "hydrogen_mr", "hmr_ratio"} & run.keys() and "type" not in cut
        whole = dict(re.findall(r"^(\w+) *= (.*)$", (tmp_path / f"{stem}.inp").read_text(), re.M))
        for key in ("nsteps", "forcefield", "pme_ngrid_x", "box_size_z", "ensemble", "group1", "constant1"):
            assert run.get(key) == whole.get(key)
        assert cut["domain_xyz"] == "8" and cut["pairlistdist"] == whole["pairlistdist"]
    assert keys["02-heat-1"]["dcdfile"] == "02-heat-1_().dcd"
    # Three runs of the script with stand-ins: what is there is neither cut nor run again.
    (tmp_path / "cut").write_text('#!/bin/sh\ngrep "domain_xyz" $1 >>did; touch $(basename $1 _prst.run)_start_0.rst\n')
    (tmp_path / "spdyn").write_text('#!/bin/sh\necho $1 >>did; touch $(basename $1 .inp)_000.rst\n')
    environment = {**os.environ, "DOMAINS": "64", "PRST_SETUP": f"sh {tmp_path / 'cut'}",
                   "SPDYN": f"sh {tmp_path / 'spdyn'}"}
    for _ in range(2):
        subprocess.run([folder / "run.sh"], env=environment, check=True)
        did = (folder / "did").read_text().splitlines()
        assert did == [line for stem in stems for line in ("domain_xyz       = 64", f"{stem}.inp")]


def test_genesis_goes_on_with_a_set_where_nothing_changes(mixed, tmp_path):
    phases = [{"name": name, "steps": 100, "output_period": 10, "trajectory_period": 10} for name in ("a", "b")]
    export_genesis(mixed, tmp_path, DYNAMICS, planned(phases), 2)
    assert [path.name for path in sorted((tmp_path / "parallel").glob("*_prst.inp"))] == ["01-a_prst.inp"]
    assert "rstfile          = 01-a_().rst\n" in (tmp_path / "parallel/02-b.inp").read_text()


@pytest.mark.parametrize("group", ["solute", "heavy", "backbone", "dna", "protein"])
def test_genesis_selections_mean_the_groups(mixed, group):
    """The expression, evaluated over residue numbers, atom names and masses."""
    topology = mixed.topology
    number = topology.residue_of_atom() + 1
    names = topology.per_atom("atom_name").astype("U4")
    text = selection_of(group, topology).replace("heavy", "HEAVY")
    text = re.sub(r"rno:(\d+)-(\d+)", r"((number >= \1) & (number <= \2))", text)
    text = re.sub(r"an:([\w']+)", lambda found: f"(names == {found[1]!r})", text)
    text = text.replace(" or ", " | ").replace(" and ", " & ")
    chosen = eval(text, {"number": number, "names": names, "HEAVY": topology.masses() > 1.5})
    assert np.flatnonzero(chosen).tolist() == atoms_of_group(group, topology).tolist()


@pytest.mark.parametrize("export", [export_amber, export_namd, export_genesis])
def test_what_cannot_be_exported_leaves_nothing(mixed, tmp_path, export):
    for phases, told in (([{"name": "a", "steps": 1, "hydrogen_mass_factor": 2},
                           {"name": "b", "steps": 1, "hydrogen_mass_factor": 3}], "several values"),
                         ([{"name": "a", "steps": 1, "restraints": [{"group": "tails", "constant": 1}]}],
                          "restrains tails, and the system has no atom of it")):
        with pytest.raises(BadInputError, match=told):
            export(mixed, tmp_path / "out", DYNAMICS, planned(phases), 1)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["water", "peptide", "duplex"])
def test_what_is_exported_can_be_imported(systems, tmp_path, name):
    """chromabuild import of prmtop and restart: chromamd finds the energies of the system that was exported, term by
    term, to the nine digits of the prmtop. Bonds and angles are those of the solute: a water of a prmtop has others."""
    system = systems[name]
    exported = BuiltSystem(system.topology, system.position, system.box)
    if name != "water":
        exported = exported.part("solute")
        system = MolecularSystem(exported.topology, exported.position, exported.box)
    export_amber(exported, tmp_path)
    result_of("import", "system.prmtop", "system.rst7", cwd=tmp_path)
    options = nonbonded_options(DYNAMICS, system.box)
    (tmp_path / "ours").mkdir()
    ours, _ = chromamd_energy(system, tmp_path / "ours", "double", options)
    entries = {"topologyfile": tmp_path / "imported" / "topology.h5",
               "shardfile": tmp_path / "imported" / "shards" / "bricks.txt"}
    theirs, _ = evaluate(entries, tmp_path, "double", options)
    constant = system.topology.coulomb_constant / Topology.read(entries["topologyfile"]).coulomb_constant
    for term, columns in ENERGY_COLUMNS.items():
        if name == "water" and term in ("bond", "angle"):
            continue
        for column in columns:
            found = theirs[column] * (constant if term == "electrostatic" else 1)
            assert found == pytest.approx(ours[column], rel=1e-6, abs=1e-5), column


def test_a_force_switch_is_asked_for(mixed, tmp_path):
    """By NAMD's and GENESIS' own keys; a switch of the energy is their default."""
    for switch, wanted in (("force", 1), ("energy", 0)):
        dynamics = DYNAMICS.model_copy(update={"switch_distance": 6.0, "switch": switch})
        phase = planned()[:1]
        namd = next(path for path in export_namd(mixed, tmp_path / switch, dynamics, phase, 9, BONDS)
                    if path.suffix == ".namd" or path.suffix == ".conf")
        genesis = next(path for path in export_genesis(mixed, tmp_path / f"{switch}-genesis", dynamics, phase, 9, BONDS)
                       if path.suffix == ".inp")
        assert len(re.findall(r"vdwForceSwitching +on", namd.read_text())) == wanted
        assert len(re.findall(r"vdw_force_switch += +YES", genesis.read_text())) == wanted
