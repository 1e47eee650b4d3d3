"""AMBER's sander on the exported files: its energies and forces are those of the topology, and it runs every phase."""

import os
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import netcdf_file
from support.export_phases import every_kind, planned
from support.four_point import placed, solvated_in
from support.judges import SANDER, needs_judges
from support.molecular_systems import MolecularSystem, fixture
from support.sander import agree_with, evaluated
from support.triclinic_systems import cut_out, reference_of_doubled, rhombic_dodecahedron
from test_charmm import solvated as charmm_system

from chromabuild.base.settings import DynamicsSection
from chromabuild.export.amber import export_amber
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import NonbondedOptions

OPTIONS = NonbondedOptions(9.0, 0.34, (64, 64, 72))
"""Fine: sander has an optimal influence function in place of that of smooth PME."""
PHASES = every_kind(200, 50)


@needs_judges
@pytest.mark.parametrize("name", ["water", "peptide", "duplex"])
def test_energies_and_forces(systems, tmp_path, name):
    system = systems[name]
    export_amber(BuiltSystem(system.topology, system.position, system.box), tmp_path)
    agree_with(system, OPTIONS, *evaluated(tmp_path, OPTIONS))


@needs_judges
def test_solute_alone(systems, tmp_path):
    """Bonds and angles, which waters hide."""
    system = systems["duplex"]
    dry = BuiltSystem(system.topology, system.position, system.box).part("solute")
    export_amber(dry, tmp_path)
    agree_with(MolecularSystem(dry.topology, dry.position, dry.box), OPTIONS, *evaluated(tmp_path, OPTIONS))


@needs_judges
def test_correction_maps_of_amber(tmp_path):
    """Those of ff19SB, in the five decimals of the file."""
    solute, position = fixture("peptide")
    system = MolecularSystem(make_topology(solute, {}, "amber19"), position, np.full(3, 40.0))
    export_amber(BuiltSystem(system.topology, position, system.box, solute), tmp_path)
    agree_with(system, OPTIONS, *evaluated(tmp_path, OPTIONS))


@needs_judges
@pytest.mark.parametrize("name", ["peptide", "duplex"])
@pytest.mark.parametrize("options", [OPTIONS, replace(OPTIONS, switch_distance=7.0, force_switch=True)],
                         ids=["truncated", "force switch"])
def test_charmm36m(tmp_path, name, options):
    """A CHAMBER prmtop: Urey-Bradley terms, impropers, correction maps, a table of 1-4 pairs, NBFIX."""
    built = charmm_system(name)
    export_amber(built, tmp_path)
    agree_with(MolecularSystem(built.topology, built.position, built.box), options, *evaluated(tmp_path, options))


@needs_judges
@pytest.mark.parametrize("water", ["opc", "tip4pew"])
def test_four_point_water(tmp_path, water):
    """Sander finds the place of the charge itself, and spreads its force. It goes along the bisector as far as in a
    water without error, and atoms here are rounded to 1e-3 angstrom: tolerances are ten times those of others."""
    made = solvated_in(water, "peptide", 27.0, 2000, 3)
    system = replace(made, position=placed(made.topology, made.position))
    export_amber(BuiltSystem(system.topology, system.position, system.box), tmp_path)
    agree_with(system, OPTIONS, *evaluated(tmp_path, OPTIONS), looser=10)


@needs_judges
@pytest.mark.parametrize("shape", [rhombic_dodecahedron(21.2)])
def test_leaning_boxes(tmp_path, shape):
    """Angles have four digits in AMBER's files."""
    system = cut_out("peptide", 30.0, shape)
    options = NonbondedOptions(7.0, 0.45, (64, 64, 64))
    export_amber(BuiltSystem(system.topology, system.position, shape), tmp_path)
    agree_with(system, options, *evaluated(tmp_path, options),
               reference=lambda system, options: reference_of_doubled(system, options, 1e-9))


def tables(text: str) -> list[dict[str, float]]:
    """Energies of every step that mdout of dynamics shows."""
    blocks = text[text.index(" NSTEP ="):text.index("A V E R A G E S")].split(" NSTEP =")[1:]
    return [{name: float(value) for name, value in re.findall(r"([A-Z][A-Za-z() -]*?)\s*=\s*(-?[\d.]+)", block)}
            for block in blocks]


def frames_of(path) -> tuple[int, ...]:
    """Frames and atoms of a trajectory."""
    with netcdf_file(path, mmap=False) as file:
        return file.variables["coordinates"].shape[:2]


@needs_judges
@pytest.mark.parametrize("water", ["tip3p", "opc"])
def test_sander_runs_every_phase(systems, tmp_path, water):
    """Without a warning; restraints hold what they say through all of it, trajectories have the frames of the settings,
    hydrogens are heavy where they shall be, and the script leaves out what is done."""
    if water == "tip3p":
        system = systems["peptide"]
    else:
        made = solvated_in(water, "peptide", 27.0, 2000, 3)
        system = replace(made, position=placed(made.topology, made.position))
    dynamics = DynamicsSection(cutoff=9.0, trajectory_selection="solute")
    bond = EndBond((0, 10), float(np.linalg.norm(system.position[10] - system.position[0])))
    built = BuiltSystem(system.topology, system.position, system.box)
    export_amber(built, tmp_path, dynamics, planned(PHASES), 3, [bond])
    call = {"env": os.environ | {"PMEMD": SANDER}, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([tmp_path / "run.sh"], **call)
    said = {path.stem: path.read_text() for path in sorted(tmp_path.glob("*.out"))}
    assert done.returncode == 0, next(iter(said.values()))[-2000:] + done.stderr
    assert list(said) == ["01-minimise", *sorted(f"02-heat-{k}" for k in range(1, 11)), "03-equilibrate", "04-produce"]
    for text in said.values():
        assert "WARNING" not in text, text[text.index("WARNING"):][:500]
    minimised = [float(value) for value in re.findall(r"^ +\d+ +(-\d\.\d+E\+\d+) ", said["01-minimise"], re.MULTILINE)]
    assert minimised[-1] < minimised[0]
    heated = tables(said["02-heat-10"])
    assert 150 < heated[-1]["TEMP(K)"] < 320 and heated[-1]["RESTRAINT"] > 0
    volume = [row["VOLUME"] for row in tables(said["03-equilibrate"])]
    assert volume[0] == pytest.approx(np.prod(system.box), rel=1e-6) and volume[-1] != volume[0]
    n = built.part("solute").topology.n_atoms
    assert [frames_of(tmp_path / f"{name}.nc") for name in ("02-heat-1", "04-produce")] == [(5, n), (2, n)]
    done = subprocess.run([tmp_path / "run.sh"], **call)
    assert done.returncode == 0 and {path.stem: path.read_text() for path in tmp_path.glob("*.out")} == said
