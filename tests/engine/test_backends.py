"""The Python side of both engines: control files, launching, following, tables."""

import stat
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from support.molecular_systems import solvated, write_bricks

from chromabuild.base.errors import BadInputError, ChromabuildError, IntegrityError, ResourceError, UnstableRunError
from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.shards import read_shards
from chromabuild.simulate import chromamd, launcher, openmm_engine
from chromabuild.simulate.energy_log import EnergyLog, TableReader
from chromabuild.simulate.executable import main
from chromabuild.simulate.protocol import Task, run_phases


def fake_engine(folder: Path, script: str) -> Path:
    """A stand-in for the engine, so that its failures can be chosen."""
    path = folder / "engine"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_control_file(tmp_path):
    chromamd.write_control(tmp_path / "a.inp", {"INPUT": {"topologyfile": Path("t.h5"), "rstfile": None},
                                                "CONSTRAINTS": {"rigid_bond": True, "fast_water": False}})
    assert (tmp_path / "a.inp").read_text().split() == [
        "[INPUT]", "topologyfile", "=", "t.h5", "[CONSTRAINTS]", "rigid_bond", "=", "YES", "fast_water", "=", "NO"]


@pytest.mark.parametrize(("code", "error"), [(3, BadInputError), (5, IntegrityError), (6, ResourceError),
                                             (8, UnstableRunError), (9, ChromabuildError)])
def test_exit_codes_become_errors_with_the_engine_s_sentence(tmp_path, monkeypatch, code, error):
    engine = fake_engine(tmp_path, f"echo noise; echo 'chromamd: a.inp, line 3: no such key' >&2; exit {code}\n")
    monkeypatch.setattr(chromamd, "executable", lambda precision: engine)
    with pytest.raises(error, match="^a.inp, line 3: no such key$"):
        chromamd.launch("run", tmp_path / "a.inp")


def test_a_crash_without_a_sentence_names_the_output(tmp_path, monkeypatch):
    engine = fake_engine(tmp_path, "echo 'Segmentation fault'; exit 139\n")
    monkeypatch.setattr(chromamd, "executable", lambda precision: engine)
    with pytest.raises(ChromabuildError, match="code 139 .Segmentation fault.*a.out"):
        chromamd.launch("run", tmp_path / "a.inp")


def test_progress_follows_the_log(tmp_path, monkeypatch):
    """Rows arrive once each, also when a line is written in two pieces."""
    log = tmp_path / "a.log"
    engine = fake_engine(tmp_path, f"""
exec >> {log}
echo 'INFO:  STEP  TIME  TOTAL_ENE'
printf 'INFO:  0  0.0  -1'
sleep 0.5
echo '00.0'
echo 'other text'
sleep 0.3
echo 'INFO:  10  0.02  -100.5'
""")
    monkeypatch.setattr(chromamd, "executable", lambda precision: engine)
    rows = []
    chromamd.launch("run", tmp_path / "a.inp", log=log, progress=rows.append)
    assert rows == [{"STEP": 0.0, "TIME": 0.0, "TOTAL_ENE": -100.0}, {"STEP": 10.0, "TIME": 0.02, "TOTAL_ENE": -100.5}]
    assert EnergyLog.read(log)["TOTAL_ENE"].tolist() == [-100.0, -100.5]


def test_missing_engine_and_mpirun(tmp_path, monkeypatch, capsys):
    launcher._installed_mpirun.cache_clear()
    monkeypatch.setattr("chromabuild.simulate.executable.__file__", str(tmp_path / "simulate" / "executable.py"))
    with pytest.raises(ResourceError, match="libopenmpi-dev"):
        chromamd.launch_command(1)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == ResourceError.exit_code
    assert "chromamd: the MD engine" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ResourceError, match="openmpi-bin"):
        launcher.launched(["/engine"], 2)
    launcher._installed_mpirun.cache_clear()


@pytest.mark.parametrize(("version", "expected"), [
    ("mpirun (Open MPI) 4.1.4", ["--oversubscribe", "--bind-to", "none"]),
    ("HYDRA build details: Version: 4.0.2", []),
])
def test_options_of_each_mpi(tmp_path, monkeypatch, version, expected):
    launcher._installed_mpirun.cache_clear()
    mpirun = tmp_path / "mpirun"
    fake_engine(tmp_path, f"echo '{version}'\n").rename(mpirun)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(chromamd, "executable", lambda precision: Path("/engine"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert chromamd.launch_command(4) == [str(mpirun), *expected, "-np", "4", "/engine"]
    exported = chromamd.launch_command(4, variables=["OMP_NUM_THREADS"])
    assert ("-x OMP_NUM_THREADS" in " ".join(exported)) == bool(expected)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert ("--allow-run-as-root" in chromamd.launch_command(4)) == bool(expected)
    launcher._installed_mpirun.cache_clear()


def test_table_reader_ignores_other_lines():
    reader = TableReader()
    assert [reader.row(line) for line in ("text", "INFO:  STEP  TIME", "INFO: 1 0.5", "", "INFO:  STEP  TIME")] == \
        [None, None, {"STEP": 1.0, "TIME": 0.5}, None, None]


def test_log_without_table(tmp_path):
    (tmp_path / "a.log").write_text("nothing\n")
    with pytest.raises(BadInputError, match="no energy table"):
        EnergyLog.read(tmp_path / "a.log")
    with pytest.raises(BadInputError, match="b.log"):
        EnergyLog.read(tmp_path / "b.log")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ensemble", ["NVE", "NVT"])
def test_openmm_as_engine(tmp_path, ensemble):
    """Minimise, then 0.1 ps: energy or temperature kept, frames and tables as chromamd writes them."""
    system = solvated("peptide", 26.0)
    config = Settings(dynamics=DynamicsSection(engine="openmm", thermostat_time=0.01), simulate=SimulateSection(phases=[
        {"name": "minimise", "kind": "minimise", "steps": 20},
        {"name": "dynamics", "ensemble": ensemble, "steps": 50, "output_period": 10, "trajectory_period": 25}]))
    rows = []
    system.topology.write(tmp_path / "topology.h5")
    bricks = write_bricks(tmp_path / "shards", system.position, system.box, system.topology, (2, 3, 1))
    files = run_phases(config, Task(config.dynamics, 7, tmp_path / "topology.h5", bricks, tmp_path / "md"),
                       openmm_engine, progress=lambda phase, row: rows.append((phase.name, row["STEP"])))
    assert [step for stage, step in rows if stage == "dynamics"] == [0, 10, 20, 30, 40, 50]
    minimisation, table = files.minimisation, files.energies
    assert minimisation["POTENTIAL_ENE"][1] < minimisation["POTENTIAL_ENE"][0]
    if ensemble == "NVE":
        # Leapfrog's half-step kinetic energy fluctuates by less than 1%; a broken force would not stay within it.
        assert np.ptp(table.conserved[1:]) < 0.01 * table["KINETIC_ENE"].mean()
    else:
        # Ten relaxation times later; five standard deviations of the temperature of 3,000 degrees of freedom.
        assert table.conserved is None
        assert abs(table["TEMPERATURE"][-1] - 310) < 5 * 310 * np.sqrt(2 / 3000)
    universe = MDAnalysis.Universe.empty(system.topology.n_atoms, trajectory=True)
    universe.load_new(str(files.trajectory))
    assert len(universe.trajectory) == 2
    assert universe.dimensions[:3] == pytest.approx(system.box, abs=1e-3)


def test_bricks_are_read_in_global_order_and_checked(tmp_path):
    system = solvated("peptide", 26.0)
    bricks = write_bricks(tmp_path, system.position, system.box, system.topology, (2, 2, 1))
    box, position = read_shards(bricks)
    assert box == pytest.approx(system.box)
    shift = (position - system.position) / system.box
    assert np.max(np.abs(shift - np.round(shift))) * 26.0 < 1e-9
    other = tmp_path / "brick_00001.cbb"
    other.write_bytes(other.read_bytes()[:-5])
    with pytest.raises(IntegrityError, match="run chromabuild solvate again"):
        read_shards(bricks)
    other.unlink()
    with pytest.raises(IntegrityError, match="brick_00001.cbb"):
        read_shards(bricks)


def test_energies_and_forces_of_the_energy_command(tmp_path):
    (tmp_path / "a.out").write_text("chatter\nATOMS = 2\nPOTENTIAL_ENE =  -1.5E+000\nBOND = 2.0\nVIRIAL = 1.0 2.0\n")
    assert chromamd.read_energies(tmp_path / "a.inp") == {"ATOMS": 2.0, "POTENTIAL_ENE": -1.5, "BOND": 2.0}
    (tmp_path / "b.out").write_text("chatter\n")
    with pytest.raises(BadInputError, match="no energies"):
        chromamd.read_energies(tmp_path / "b.inp")
    force = np.arange(6.0).reshape(2, 3)
    path = tmp_path / "a.force"
    path.write_bytes(b"CMDFORC1" + np.int64(2).tobytes() + force.tobytes())
    assert chromamd.read_forces(path).tolist() == force.tolist()
    for damaged in (path.read_bytes()[:-1], b"", b"X" + path.read_bytes()[1:]):
        path.write_bytes(damaged)
        with pytest.raises(IntegrityError, match="not a whole force file"):
            chromamd.read_forces(path)
