"""chromamd against OpenMM, against itself on other rank counts, and against the laws it must keep.

If the engine was not built these tests fail, on purpose: the build always makes it.
"""

import re
import subprocess
from pathlib import Path

import h5py
import MDAnalysis
import numpy as np
import pytest
from support.engine_energies import (
    TOLERANCES,
    assert_agree,
    chromamd_energy,
    energy_section,
    reference_energy,
    relative_rms,
    write_input,
)
from support.engine_runs import OPTIONS, simulate, start
from support.molecular_systems import MolecularSystem

from chromabuild.base.constants import BOLTZMANN
from chromabuild.base.errors import BadInputError, ResourceError
from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.simulate import chromamd
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.executable import executable
from chromabuild.simulate.openmm_engine import NonbondedOptions
from chromabuild.simulate.protocol import Task, run_phases

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("name", ["water", "peptide", "duplex"])
@pytest.mark.parametrize(("precision", "energy_tolerance", "force_tolerance"), TOLERANCES)
def test_every_term_against_openmm(systems, tmp_path, name, precision, energy_tolerance, force_tolerance):
    """Same alpha, grid and spline order. Energies term by term, relative; forces: rms error over rms force."""
    system = systems[name]
    assert_agree(chromamd_energy(system, tmp_path, precision, OPTIONS), reference_energy(system, OPTIONS),
                 energy_tolerance, force_tolerance)


def test_the_kernels_in_use_are_named(systems, tmp_path):
    """By `version` and in the log: the widest set that is compiled and that the processor has."""
    simulate(tmp_path, "run", 1, "mixed", start(systems["water"], tmp_path, 1), 1, 1)
    said = subprocess.run([executable("mixed"), "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\((mixed|double) precision, (AVX-512|AVX2|baseline)\)", said)
    flags = Path("/proc/cpuinfo").read_text().split()
    assert {"AVX-512": "avx512bw", "AVX2": "avx2"}.get(found[2], "sse2") in flags
    assert f"chromamd, {found[1]} precision, {found[2]}: " in (tmp_path / "run.log").read_text()


def test_switching_function_against_openmm(systems, tmp_path):
    options = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(32, 32, 36), switch_distance=7.5)
    system = systems["peptide"]
    theirs, their_force = reference_energy(system, options)
    energy, force = chromamd_energy(system, tmp_path, "double", options)
    assert energy["VDWAALS"] + energy["PAIR14_VDW"] == pytest.approx(theirs["lennard_jones"], rel=1e-6)
    assert relative_rms(force, their_force) < 1e-6


@pytest.mark.release
@pytest.mark.parametrize("name", ["peptide", "duplex"])
def test_forces_do_not_depend_on_the_number_of_ranks(systems, tmp_path, name):
    """Double precision: only the order of summation differs."""
    one_energy, one = chromamd_energy(systems[name], tmp_path, "double", OPTIONS)
    scale = np.sqrt(np.mean(one**2))
    for ranks in (2, 4, 8):
        energy, force = chromamd_energy(systems[name], tmp_path, "double", OPTIONS, ranks)
        assert np.max(np.abs(force - one)) < 1e-10 * scale, ranks
        assert energy["POTENTIAL_ENE"] == pytest.approx(one_energy["POTENTIAL_ENE"], rel=1e-10), ranks


@pytest.mark.release
@pytest.mark.parametrize("name", ["peptide", "duplex"])
def test_pieces_are_whole_molecules(systems, tmp_path, name):
    """Dynamics with repartitioned masses and a restraint on atoms chosen by name: the same bits when the topology has
    the long molecules whole and when it has them in pieces."""
    logs = []
    for variant in ("pieces", "whole"):
        folder = tmp_path / variant
        entries = start(systems[name], folder, 2)
        if variant == "whole":
            with h5py.File(folder / "topology.h5", "r+") as file:
                del file["pieces"]
                for template in file["template"].values():
                    template.pop("piece", None)
        chromamd.write_control(folder / "run.inp", {
            "INPUT": entries | {"reffile": folder / "shards" / "bricks.txt"},
            "OUTPUT": {"logfile": folder / "run.log", "rstfile": folder / "run_().rst"},
            "ENERGY": energy_section(OPTIONS) | {"dispersion_corr": "ENERGY"},
            "DYNAMICS": {"nsteps": 4, "timestep": 0.002, "eneout_period": 1, "iseed": 11, "hydrogen_mr": True,
                         "hmr_ratio": 2},
            "CONSTRAINTS": {"rigid_bond": True},
            "SELECTION": {"group1": "rno:2-3 and heavy and not an:P"},
            "RESTRAINTS": {"nfunctions": 1, "function1": "POSI", "constant1": 5.0, "select_index1": 1},
        })
        chromamd.launch("run", folder / "run.inp", 2, "double")
        log = EnergyLog.read(folder / "run.log")
        logs.append([*log.columns.values()])
    assert all(np.array_equal(*columns) for columns in zip(*logs, strict=True))
    for rank in range(2):
        assert len({(tmp_path / variant / f"run_{rank}.rst").read_bytes() for variant in ("pieces", "whole")}) == 1


@pytest.mark.release
def test_restart_continues_bit_for_bit(systems, tmp_path):
    """40 steps in one go and 20 + 20 steps leave the same files, on one and on two ranks."""
    for ranks in (1, 2):
        folder = tmp_path / str(ranks)
        folder.mkdir()
        entries = start(systems["peptide"], folder, ranks)
        simulate(folder, "whole", ranks, "mixed", entries, 40, 10, rstout_period=20)
        simulate(folder, "first", ranks, "mixed", entries, 20, 10, rstout_period=20)
        entries["rstfile"] = folder / "first_().rst"
        simulate(folder, "second", ranks, "mixed", entries, 20, 10, rstout_period=20)
        for rank in range(ranks):
            assert (folder / f"whole_{rank}.rst").read_bytes() == (folder / f"second_{rank}.rst").read_bytes()


def test_fresh_velocities_have_the_temperature(systems, tmp_path):
    """Maxwell velocities along constraints: kinetic energy 3/2 kT per degree of freedom pair, sampled once.

    The standard deviation of the temperature is T sqrt(2/f); five of them are allowed.
    """
    system = systems["peptide"]
    log = simulate(tmp_path, "nve", 1, "mixed", start(system, tmp_path, 1), 1, 1)
    n_freedom = 3 * system.topology.n_atoms - len(system.topology.term("constraint")["atoms"]) - 3
    assert abs(log["TEMPERATURE"][0] - 300) < 5 * 300 * np.sqrt(2 / n_freedom)
    thermal = log["KINETIC_ENE"][0] + 2 / 3 * log["HALF_KICK_ENE"][0]
    assert thermal == pytest.approx(0.5 * n_freedom * BOLTZMANN * log["TEMPERATURE"][0], rel=1e-4)


@pytest.mark.slow
def test_minimiser_goes_downhill_from_a_bad_start(systems, tmp_path):
    """Every atom displaced by up to 0.3 angstrom along each axis: steep walls, but nothing pierced."""
    system = systems["duplex"]
    noise = np.random.Generator(np.random.Philox(key=3)).uniform(-0.3, 0.3, system.position.shape)
    bad = MolecularSystem(system.topology, np.round(system.position + noise, 3), system.box, system.judge)
    entries = start(bad, tmp_path, 1)
    chromamd.write_control(tmp_path / "minimise.inp", {
        "INPUT": entries, "OUTPUT": {"logfile": tmp_path / "minimise.log", "rstfile": tmp_path / "minimised_().rst"},
        "ENERGY": energy_section(OPTIONS), "MINIMIZE": {"nsteps": 60, "eneout_period": 1, "force_scale_max": 5e-2},
    })
    chromamd.launch("run", tmp_path / "minimise.inp", precision="double")
    energy = EnergyLog.read(tmp_path / "minimise.log")["POTENTIAL_ENE"]
    good, _ = reference_energy(system, OPTIONS)
    assert len(energy) >= 60
    # Steps need not lower the energy each time, but none may exceed the highest of the five taken before it. A step
    # that was undone shows as the same energy again.
    taken = energy[np.insert(np.diff(energy) != 0, 0, True)]
    assert all(taken[i] <= taken[max(0, i - 5):i].max() for i in range(1, len(taken)))
    # Nearly all of what the displacement cost is won back.
    assert energy[-1] - sum(good.values()) < 0.1 * (energy[0] - sum(good.values()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.release
def test_run_from_the_settings_of_a_build(systems, tmp_path):
    """Setup, minimisation and dynamics as `chromabuild run` starts them, on two ranks; tables, frames and restarts."""
    system = systems["peptide"]
    entries = write_input(system, tmp_path)
    config = Settings(dynamics=DynamicsSection(ranks=2), simulate=SimulateSection(phases=[
        {"name": "minimise", "kind": "minimise", "steps": 20},
        {"name": "dynamics", "steps": 40, "output_period": 10, "trajectory_period": 20}]))
    rows = []
    task = Task(config.dynamics, 5, entries["topologyfile"], entries["shardfile"], tmp_path / "md")
    files = run_phases(config, task, chromamd, progress=lambda phase, row: rows.append((phase.name, row["STEP"])))
    assert [step for stage, step in rows if stage == "minimise"] == [0, 10, 20]
    assert [step for stage, step in rows if stage == "dynamics"] == [0, 10, 20, 30, 40]
    minimisation, table = files.minimisation, files.energies
    assert minimisation["POTENTIAL_ENE"][-1] < minimisation["POTENTIAL_ENE"][0]
    assert table["TIME"].tolist() == pytest.approx([0, 0.02, 0.04, 0.06, 0.08])
    assert np.ptp(table["CONSERVED_ENE"]) < 0.01 * table["KINETIC_ENE"].mean()
    for rank in range(2):
        assert Path(files.restart.replace("()", str(rank))).stat().st_size > 0
    universe = MDAnalysis.Universe.empty(system.topology.n_atoms, trajectory=True)
    universe.load_new(str(files.trajectory))
    assert len(universe.trajectory) == 2
    assert universe.dimensions[:3] == pytest.approx(system.box, abs=1e-3)
    # In 40 steps of 2 fs nothing moves far: the frame is in global order.
    shift = (universe.trajectory[-1].positions - system.position) / system.box
    assert np.max(np.abs(shift - np.round(shift)) * system.box) < 3.0


@pytest.mark.parametrize(("section", "line", "expected"), [
    ("INPUT", "psffile = a.psf", "chromamd import"),
    ("INPUT", "grotopfile = topol.top", "chromamd import"),
    ("ENERGY", "cutofdist = 9.0", "cutoffdist"),
    ("ENERGI", "cutoffdist = 9.0", "ENERGY"),
    ("DYNAMICS", "timestp = 0.002", "timestep"),
    ("ENERGY", "cutoffdist = nine", "cutoffdist = nine"),
    ("ENERGY", "pme_nspline = 4.5", "pme_nspline = 4.5"),
    ("CONSTRAINTS", "rigid_bond = MAYBE", "MAYBE"),
])
def test_bad_control_files_are_refused_with_the_remedy(tmp_path, section, line, expected):
    """Unknown keys and sections name the nearest valid one; the sentence names file and line; exit code 3."""
    control = tmp_path / "bad.inp"
    control.write_text(f"# comment\n[{section}]\n{line}\n")
    with pytest.raises(BadInputError) as caught:
        chromamd.launch("run", control)
    assert expected in str(caught.value)
    assert "bad.inp" in str(caught.value)
    assert "line " + ("2" if section == "ENERGI" else "3") in str(caught.value)


def test_missing_files_are_refused(tmp_path):
    control = tmp_path / "a.inp"
    chromamd.write_control(control, {"INPUT": {"topologyfile": tmp_path / "no.h5", "shardfile": tmp_path / "no.txt"}})
    with pytest.raises(BadInputError, match="no.h5"):
        chromamd.launch("energy", control)
    with pytest.raises(BadInputError, match="gone.inp"):
        chromamd.launch("run", tmp_path / "gone.inp")


@pytest.mark.parametrize(("built", "remedy"), [(["chromamd"], "CHROMAMD_DOUBLE=ON"), ([], "install an MPI compiler")])
def test_a_missing_engine_is_told_with_the_remedy(tmp_path, monkeypatch, built, remedy):
    (tmp_path / "_bin").mkdir()
    for name in built:
        (tmp_path / "_bin" / name).touch()
    monkeypatch.setattr("chromabuild.simulate.executable.__file__", str(tmp_path / "simulate" / "executable.py"))
    with pytest.raises(ResourceError, match=remedy):
        chromamd.executable("double")
