"""LAMMPS on the exported files: its energies and forces are those of the topology, and it runs every phase."""

import os
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from support.engine_energies import reference_energy, relative_rms
from support.export_phases import every_kind, planned
from support.four_point import placed, solvated_in
from support.judges import LAMMPS, needs_judges
from support.molecular_systems import MolecularSystem, fixture, make_solute
from support.triclinic_systems import cut_out, reference_of_doubled, rhombic_dodecahedron
from test_charmm import solvated as charmm_system

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import DynamicsSection
from chromabuild.export import lammps_maps
from chromabuild.export.lammps import export_lammps
from chromabuild.export.lammps_input import TRAJECTORY_GROUP
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.hydrogens import repartitioned_masses
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.groups import atoms_of_group
from chromabuild.simulate.openmm_engine import nonbonded_options

FINE = DynamicsSection(cutoff=9.0, pme_spacing=0.45, pme_spline_order=6)
"""A mesh on which PPPM and PME have the same sums to 1e-7 of the energy."""
PHASES = every_kind(20, 5)


def lammps(folder, script, *options) -> str:
    """The log of a run."""
    done = subprocess.run([LAMMPS, "-in", script, "-screen", "none", "-log", "run.log", *options], cwd=folder,
                          capture_output=True, text=True, timeout=300)
    log = (folder / "run.log").read_text()
    assert done.returncode == 0, (log + done.stderr)[-2000:]
    return log


def table(log: str) -> dict[str, np.ndarray]:
    """Columns of the last table of energies."""
    block = log[log.rindex("   Step "):log.index("Loop time", log.rindex("   Step "))].splitlines()
    rows = [list(map(float, line.split())) for line in block[1:] if re.fullmatch(r"[\d\s.e+-]+", line)]
    return dict(zip(block[0].split(), np.transpose(rows), strict=True))


@needs_judges
@pytest.mark.parametrize("water", ["opc", "tip4pew"])
def test_four_point_water(tmp_path, water):
    """LAMMPS has three atoms and finds the place of the charge itself; tolerances as for three points. A phase runs."""
    made = solvated_in(water, "peptide", 27.0, 2000, 3)
    position = placed(made.topology, made.position)
    system = replace(made, position=position)
    phases = planned([{"name": "move", "steps": 10, "output_period": 5}])
    export_lammps(BuiltSystem(made.topology, position, made.box, velocity=0.1 * position), tmp_path, FINE, phases)
    with open(tmp_path / "energy.in", "a") as file:
        file.write("write_dump all custom forces.txt id fx fy fz vx modify sort id format float %.10g\n")
    log = lammps(tmp_path, "energy.in")
    assert "WARNING" not in log, log[log.index("WARNING"):][:500]
    found = {key: value[0] for key, value in table(log).items()}
    ours, force = reference_energy(system, nonbonded_options(FINE, made.box))
    for term, columns in {"dihedral": ["E_dihed"], "lennard_jones": ["E_vdwl"],
                          "electrostatic": ["E_coul", "E_long"]}.items():
        assert sum(found[key] for key in columns) == pytest.approx(ours[term], rel=1e-5, abs=1e-9), term
    rows = np.loadtxt(tmp_path / "forces.txt", skiprows=9)
    real = made.topology.masses() > 0
    assert relative_rms(rows[:, 1:4], force[real]) < 1e-5
    assert rows[:, 4] * 1000 == pytest.approx(0.1 * position[real, 0], abs=1e-4)
    assert len(table(lammps(tmp_path, "01-move.in"))["Step"]) == 3


@needs_judges
@pytest.mark.parametrize(("name", "keys"), [("water", {}), ("peptide", {}), ("duplex", {}),
                                            ("duplex", {"switch_distance": 7.0, "dispersion_correction": False})])
def test_energies_and_forces(systems, tmp_path, name, keys):
    """LAMMPS takes erfc from a formula that is good to 1.5e-7 of the Coulomb energy of pairs, some ten times the sum of
    all terms in water: 1e-5 of each term and of the forces covers it, and the digits of its files."""
    system, dynamics = systems[name], FINE.model_copy(update=keys)
    export_lammps(BuiltSystem(system.topology, system.position, system.box), tmp_path, dynamics)
    with open(tmp_path / "energy.in", "a") as file:
        file.write("write_dump all custom forces.txt id fx fy fz modify sort id format float %.10g\n")
    log = lammps(tmp_path, "energy.in")
    assert "WARNING" not in log, log[log.index("WARNING"):][:500]
    found = {key: value[0] for key, value in table(log).items()}
    ours, force = reference_energy(system, nonbonded_options(dynamics, system.box))
    for term, columns in {"bond": ["E_bond"], "angle": ["E_angle"], "dihedral": ["E_dihed"],
                          "lennard_jones": ["E_vdwl"], "electrostatic": ["E_coul", "E_long"]}.items():
        assert sum(found[key] for key in columns) == pytest.approx(ours[term], rel=1e-5, abs=1e-9), term
    assert found["PotEng"] == pytest.approx(sum(ours.values()), rel=1e-5)
    rows = np.loadtxt(tmp_path / "forces.txt", skiprows=9)
    assert relative_rms(rows[:, 1:], force) < 1e-5


@needs_judges
def test_rhombic_dodecahedron(tmp_path):
    """Judged by two of its cells in a rectangular box; tolerances as above. Dynamics keeps its shape."""
    system = cut_out("peptide", 30.0, rhombic_dodecahedron(21.2))
    dynamics = FINE.model_copy(update={"cutoff": 7.0, "pairlist_buffer": 0.3})
    phases = planned([{"name": "move", "steps": 5, "ensemble": "NPT", "output_period": 5}])
    export_lammps(BuiltSystem(system.topology, system.position, system.box), tmp_path, dynamics, phases)
    with open(tmp_path / "energy.in", "a") as file:
        file.write("write_dump all custom forces.txt id fx fy fz modify sort id format float %.10g\n")
    log = lammps(tmp_path, "energy.in")
    # Where vectors lean by half of another, rounding decides whether LAMMPS finds that much.
    log = log.replace("WARNING: Triclinic box skew is large", "")
    assert "WARNING" not in log, log[log.index("WARNING"):][:500]
    found = {key: value[0] for key, value in table(log).items()}
    ours, force = reference_of_doubled(system, nonbonded_options(dynamics, system.box), 1e-9)
    for term, columns in {"bond": ["E_bond"], "angle": ["E_angle"], "dihedral": ["E_dihed"],
                          "lennard_jones": ["E_vdwl"], "electrostatic": ["E_coul", "E_long"]}.items():
        assert sum(found[key] for key in columns) == pytest.approx(ours[term], rel=1e-5, abs=1e-9), term
    assert relative_rms(np.loadtxt(tmp_path / "forces.txt", skiprows=9)[:, 1:], force) < 1e-5
    assert "triclinic" in lammps(tmp_path, "01-move.in")


def test_four_point_water_needs_a_rectangular_box(tmp_path):
    """As LAMMPS itself says, only later."""
    topology = make_topology(make_solute([["NALA", "CVAL"]]), {"water": 1}, water="opc")
    built = BuiltSystem(topology, np.zeros((topology.n_atoms, 3)), rhombic_dodecahedron(30.0))
    with pytest.raises(BadInputError, match="four-point water in rectangular boxes alone"):
        export_lammps(built, tmp_path, FINE)


@needs_judges
@pytest.mark.parametrize(("name", "keys"), [("peptide", {}), ("duplex", {"switch_distance": 9.0})])
def test_charmm36m(tmp_path, name, keys):
    """Urey-Bradley terms are angles there, and correction maps a fix. Force switch, and plain truncation.

    Forces of nearly flat impropers lose digits in LAMMPS, which takes them from the cosine: of other atoms alone. Those
    of the force switch agree to 3e-5, and to 1e-5 without it.
    """
    system = charmm_system(name)
    dynamics = DynamicsSection(force_field="charmm36m", **(FINE.model_dump(include={
        "cutoff", "pme_spacing", "pme_spline_order"}) | keys))
    phases = planned([{"name": name, "steps": 5, "output_period": 5} for name in ("one", "two")])
    export_lammps(system, tmp_path, dynamics, phases)
    with open(tmp_path / "energy.in", "a") as file:
        file.write("write_dump all custom forces.txt id fx fy fz modify sort id format float %.10g\n")
    log = lammps(tmp_path, "energy.in")
    assert "WARNING" not in log, log[log.index("WARNING"):][:500]
    found = {key: value[0] for key, value in table(log).items()}
    made = MolecularSystem(system.topology, system.position, system.box)
    ours, force = reference_energy(made, nonbonded_options(dynamics, system.box))
    assert found.get("f_cmap1", 0.0) == pytest.approx(ours["cmap"], rel=1e-5)
    for terms, columns in {("bond",): ["E_bond"], ("angle", "urey_bradley"): ["E_angle"], ("dihedral",): ["E_dihed"],
                           ("improper",): ["E_impro"], ("lennard_jones",): ["E_vdwl"],
                           ("electrostatic",): ["E_coul", "E_long"]}.items():
        wanted = sum(ours[term] for term in terms)
        assert sum(found[key] for key in columns) == pytest.approx(wanted, rel=1e-5), terms
        assert abs(wanted) > 0.1
    rows = np.loadtxt(tmp_path / "forces.txt", skiprows=9)
    bent = np.setdiff1d(np.arange(len(force)), system.topology.term("improper")["atoms"])
    assert relative_rms(rows[bent, 1:], force[bent]) < (1e-5 if keys else 5e-5)
    if name == "peptide":  # maps go on behind a restart file
        subprocess.run([tmp_path / "run.sh"], env=os.environ | {"LMP": LAMMPS}, check=True, timeout=300)
        assert table((tmp_path / "02-two.log").read_text())["f_cmap1"].any()


@needs_judges
def test_more_correction_maps_than_a_fix_holds(tmp_path, monkeypatch):
    """ff19SB has one for each residue: LAMMPS' fix holds six of them, and here two."""
    monkeypatch.setattr(lammps_maps, "MAPS_A_FIX", 2)
    solute, position = fixture("peptide")
    system = MolecularSystem(make_topology(solute, {}, "amber19"), position, np.full(3, 40.0))
    export_lammps(BuiltSystem(system.topology, position, system.box), tmp_path, FINE)
    found = {key: value[0] for key, value in table(lammps(tmp_path, "energy.in")).items()}
    ours, _ = reference_energy(system, nonbonded_options(FINE, system.box))
    maps = [found[f"f_cmap{k}"] for k in (1, 2, 3)]
    assert all(maps) and sum(maps) == pytest.approx(ours["cmap"], rel=1e-5)
    assert found["E_dihed"] == pytest.approx(ours["dihedral"], rel=1e-6)


@needs_judges
def test_lammps_runs_every_phase(systems, tmp_path):
    """Without a warning; restraints hold what they say through all of it, trajectories have the frames of the
    settings, hydrogens are heavy where they shall be, and the script leaves out what is done."""
    system = systems["peptide"]
    dynamics = DynamicsSection(cutoff=9.0, trajectory_selection="solute")
    bond = EndBond((0, 10), float(np.linalg.norm(system.position[10] - system.position[0])))
    built = BuiltSystem(system.topology, system.position, system.box)
    export_lammps(built, tmp_path, dynamics, planned(PHASES), 3, [bond])
    call = {"env": os.environ | {"LMP": LAMMPS}, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([tmp_path / "run.sh"], **call)
    logs = {path.stem: path.read_text() for path in sorted(tmp_path.glob("*.log"))}
    assert done.returncode == 0, next(iter(logs.values()))[-2000:] + done.stderr
    assert list(logs) == ["01-minimise", *sorted(f"02-heat-{k}" for k in range(1, 11)), "03-equilibrate", "04-produce"]
    for log in logs.values():
        assert "WARNING" not in log, log[log.index("WARNING"):][:500]
    minimised = table(logs["01-minimise"])["PotEng"]
    assert minimised[-1] < minimised[0]
    heated = table(logs["02-heat-10"])
    assert heated["Step"].tolist() == [90, 95, 100] and 150 < heated["Temp"][-1] < 310  # 0.2 ps, in a bath of 0.1 ps
    volume = table(logs["03-equilibrate"])["Volume"]
    assert volume[0] == pytest.approx(np.prod(system.box), rel=1e-6) and volume[-1] != volume[0]
    assert [int.from_bytes((tmp_path / f"{name}.dcd").read_bytes()[8:12], "little")
            for name in ("02-heat-1", "04-produce")] == [6, 3]
    n_solute = built.part("solute").topology.n_atoms
    assert f"{n_solute} atoms in group {TRAJECTORY_GROUP}" in logs["01-minimise"]
    done = subprocess.run([tmp_path / "run.sh"], **call)
    assert done.returncode == 0 and {path.stem: path.read_text() for path in tmp_path.glob("*.log")} == logs


@needs_judges
@pytest.mark.parametrize("thermostat", ["nose-hoover", "langevin", "berendsen"])
def test_every_thermostat(systems, tmp_path, thermostat):
    system = systems["water"]
    dynamics = DynamicsSection(cutoff=8.0, thermostat=thermostat)
    phases = planned([{"name": name, "steps": 5, "ensemble": name.upper(), "output_period": 5}
                      for name in ("nvt", "npt", "nve")])
    export_lammps(BuiltSystem(system.topology, system.position, system.box), tmp_path, dynamics, phases)
    subprocess.run([tmp_path / "run.sh"], env=os.environ | {"LMP": LAMMPS}, check=True, timeout=300)
    assert len(table((tmp_path / "03-nve.log").read_text())["Step"]) == 2


@pytest.fixture(scope="module")
def mixed():
    """DNA, a protein, water and ions, somewhere."""
    topology = make_topology(make_solute([["DA5", "DC", "DG3"], ["NALA", "TRP", "CVAL"]]),
                             {"water": 5, "sodium": 2, "chloride": 1})
    position = np.random.Generator(np.random.Philox(key=8)).uniform(0, 40, (topology.n_atoms, 3)).round(3)
    return BuiltSystem(topology, position, np.array([40.0, 42.0, 44.0]), velocity=position - 20)


def section(text: str, title: str) -> list[list[str]]:
    """Words of the lines of a section of a data file."""
    return [line.split() for line in text.split(f"\n{title}\n\n")[1].split("\n\n")[0].splitlines()]


def test_files(mixed, tmp_path):
    """What the data file and the scripts say, against topology and settings."""
    topology = mixed.topology
    paths = export_lammps(mixed, tmp_path, DynamicsSection(cutoff=8.0), planned(PHASES), 9, [EndBond((3, 70), 2.95)])
    assert all(path.is_file() for path in paths) and (tmp_path / "run.sh").stat().st_mode & 0o111
    text = (tmp_path / "system.data").read_text()
    atoms = np.array(section(text, "Atoms # full"), dtype=float)
    assert atoms[:, 0].tolist() == list(range(1, topology.n_atoms + 1))
    assert atoms[:, 3] == pytest.approx(topology.charges()) and atoms[:, 4:] == pytest.approx(mixed.position)
    assert np.bincount(atoms[:, 1].astype(int))[3:].tolist() == [3] * 5 + [1] * 3
    velocity = np.array(section(text, "Velocities"), dtype=float)[:, 1:]
    assert velocity == pytest.approx(mixed.velocity / 1000)
    kind = atoms[:, 2].astype(int) - 1
    for name, masses in (("light", topology.masses()), ("heavy", repartitioned_masses(topology, 3.0))):
        values = [float(line.split()[2]) for line in (tmp_path / f"{name}.in").read_text().splitlines()]
        assert np.array(values)[kind] == pytest.approx(masses)
    groups: dict[str, list[int]] = {}
    for name, words in re.findall(r"^group (\w+) id (.*)$", (tmp_path / "start.in").read_text(), re.M):
        for word in words.split():
            first, last = (word.split(":") * 2)[:2] if ":" not in word else word.split(":")
            groups.setdefault(name, []).extend(range(int(first) - 1, int(last)))
    assert set(groups) == {"heavy", "backbone", TRAJECTORY_GROUP} and len(groups[TRAJECTORY_GROUP]) == topology.n_atoms
    for name in ("heavy", "backbone"):
        assert groups[name] == atoms_of_group(name, topology).tolist()
    scripts = {path.stem: path.read_text().splitlines() for path in paths if path.stem[0].isdigit()}
    first, heat, last = scripts["01-minimise"], scripts["02-heat-1"], scripts["04-produce"]
    assert first[1:4] == ["include start.in", "include settings.in", "include light.in"]
    assert "fix held_heavy heavy spring/self 10" in first and "fix held_backbone backbone spring/self 1e-09" in first
    assert heat[1:4] == ["read_restart 01-minimise.restart", "include settings.in", "include heavy.in"]
    for line in ("fix held_heavy heavy spring/self 9.6", "fix held_backbone backbone spring/self 40",
                 " bond 4 71 2 2 2.95", "fix bath all temp/csvr 100 120 100 10", "reset_timestep 0", "timestep 2",
                 "velocity all create 100 10 dist gaussian", "run 10"):
        assert line in heat, line
    order = [next(k for k, line in enumerate(heat) if line.startswith(start))
             for start in ("fix held", "fix ends", "fix bath", "fix rigid", "fix motion", "velocity", "run")]
    assert order == sorted(order)
    assert "fix motion all nph iso 2 2 2000" in scripts["03-equilibrate"]
    assert not any("held_heavy" in line or "velocity" in line for line in last)
    assert "fix held_backbone backbone spring/self 6" in last and last[-1] == "write_restart 04-produce.restart.part"


def test_what_lammps_has_no_style_for_is_refused(mixed, tmp_path):
    topology = make_topology(make_solute([["NALA", "CALA"]]), {})
    position, box = np.zeros((topology.n_atoms, 3)), np.full(3, 30.0)
    template = topology.templates[0]
    for change, told in ((dict(improper_atoms=[[0, 1, 2, 3]], improper_k=[1.0], improper_psi0=[0.0]),
                          "has harmonic impropers, which .* for dynamics.force_field charmm36m alone"),
                         (dict(pair14_epsilon=template.pair14_epsilon * 0.9), "not those of AMBER"),
                         (dict(exclusion=template.exclusion[1:]), "not those of AMBER")):
        changed = replace(topology, templates=[replace(template, **change)])
        with pytest.raises(BadInputError, match=told):
            export_lammps(BuiltSystem(changed, position, box), tmp_path / "out", DynamicsSection())
    opc = make_topology(None, {"water": 5}, water="opc")
    apart = replace(opc, templates=[replace(opc.templates[0], virtual_site_w2=[0.1], virtual_site_w3=[0.2])])
    for water, keys, told in ((opc, {"switch_distance": 7.0}, "truncates Lennard-Jones in four-point water"),
                              (apart, {}, "not on the bisector .* LAMMPS has no rule")):
        with pytest.raises(BadInputError, match=told):
            export_lammps(BuiltSystem(water, np.zeros((20, 3)), box), tmp_path / "out", DynamicsSection(**keys))
    nothing = planned([{"name": "held", "steps": 5, "restraints": [{"group": "backbone", "constant": 3}]}])
    with pytest.raises(BadInputError, match="backbone"):
        water = make_topology(None, {"water": 2})
        export_lammps(BuiltSystem(water, np.zeros((6, 3)), box), tmp_path / "out", DynamicsSection(), nothing)
    assert not (tmp_path / "out").exists()
