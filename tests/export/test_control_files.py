"""Control files of AMBER, and what the exports to AMBER, NAMD and GENESIS have in common: phases with constant
restraints, refusals, and the way back by import."""

import re
from dataclasses import replace

import MDAnalysis
import numpy as np
import pytest
from support.command_line import result_of
from support.engine_energies import ENERGY_COLUMNS, chromamd_energy, evaluate
from support.molecular_systems import MolecularSystem
from support.planned_export import BONDS, DYNAMICS, planned

from chromabuild.base.errors import BadInputError
from chromabuild.export.amber import export_amber
from chromabuild.export.amber_control import phase_control
from chromabuild.export.genesis import export_genesis
from chromabuild.export.namd import export_namd
from chromabuild.export.parts import PARTS, with_constant_restraints
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.hydrogens import repartitioned_masses
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.groups import atoms_of_group
from chromabuild.simulate.openmm_engine import nonbonded_options


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
                "temp0=120.0", "ig=5", "cut=8.0", "ntpr=10", "ntwx=20", "ntwprt=7", "nmropt=1", "vdwmeth=1", "order=4",
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
