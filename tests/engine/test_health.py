"""What the engine says of the health of a run, and how it ends one that leaves its bands."""

import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from support import systems
from support.chain_in_water import BOX, make_system

from chromabuild.base.errors import BadInputError, UnstableRunError

# Overflows on the way to an unstable state end a debug build before the watch does.
pytestmark = [pytest.mark.mpi, pytest.mark.release]

BOLTZMANN = 8.31446261815324 / 4184
COLUMNS = ("TEMP_SOLUTE", "TEMP_SOLVENT", "DENSITY", "MAX_FORCE", "MAX_FORCE_ATOM")
ENERGY = {"cutoffdist": 8, "switchdist": 7, "pairlistdist": 9, "deterministic": "YES"}


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> Path:
    """An uncharged chain of 41 atoms, which feels only its bonds, and 100 waters, relaxed; for one rank and for two."""
    folder = tmp_path_factory.mktemp("health")
    make_system(folder, 100)
    with h5py.File(folder / "t.h5", "r+") as file:
        # Lennard-Jones between oxygens alone, so that waters can overlap.
        epsilon = 0.15
        file["lj/c12"][0, 0], file["lj/c6"][0, 0] = 4 * epsilon * 3.15**12, 4 * epsilon * 3.15**6
        group = file["template/0000"]
        del group["atom_name"], group["residue_segid"]
        group["atom_name"] = np.array([f"C{k}".encode() for k in range(41)], "S4")
        group["residue_segid"] = np.array([b"PRO1"], "S4")
    for ranks in (1, 2):
        set_up(folder, {"shardfile": folder / "bricks.txt"}, ranks, f"raw{ranks}")
    for ranks in (1, 2):
        inp = systems.control(
            folder / "relax.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / f"raw{ranks}_().rst"},
            OUTPUT={"rstfile": folder / f"start{ranks}_().rst", "logfile": folder / "relax.log"}, ENERGY=ENERGY,
            MINIMIZE={"nsteps": 100, "force_scale_max": 5e-4, "displacement_max": 0.02})
        done = systems.run("run", inp, ranks, "chromamd")
        assert done.returncode == 0, done.stderr
    return folder


def set_up(folder: Path, source: dict, ranks: int, name: str) -> None:
    inp = systems.control(folder / "setup.inp", INPUT={"topologyfile": folder / "t.h5", **source},
                          OUTPUT={"rstfile": folder / f"{name}_().rst"}, ENERGY=ENERGY)
    done = systems.run("setup", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr


def rows(log: Path) -> list[str]:
    """The energy table as it stands in a log."""
    return [line for line in log.read_text().splitlines() if line.startswith("INFO:")]


def control(system: Path, folder: Path, ranks: int = 1, health: dict | None = None, name: str = "run",
            ensemble: dict | None = None, start: str = "start", output: dict | None = None, **dynamics: object) -> Path:
    folder.mkdir(exist_ok=True)
    return systems.control(
        folder / f"{name}.inp",
        INPUT={"topologyfile": system / "t.h5", "rstfile": system / f"{start}{ranks}_().rst", "continue": "YES"},
        OUTPUT={"logfile": folder / f"{name}.log", "rstfile": folder / f"{name}_().rst",
                "checkpoint": folder / f"{name}_check_().rst", "checkpoint_interval": 1e-6, **(output or {})},
        ENERGY=ENERGY, CONSTRAINTS={"rigid_bond": "YES"},
        ENSEMBLE=ensemble or {"ensemble": "NVT", "tpcontrol": "BUSSI", "tau_t": 0.1, "temperature": 300},
        DYNAMICS={"nsteps": 60, "eneout_period": 20, "timestep": 0.001, "iseed": 5, **dynamics},
        **({"HEALTH": health} if health else {}))


def engine(inp: Path, ranks: int = 1):
    return systems.run("run", inp, ranks, "chromamd")


def test_vital_signs_against_restart_and_forces(system, tmp_path):
    """Temperatures and density from positions, velocities and masses; the largest force from the file of forces. One
    rank and two give the same bits."""
    tables = []
    for ranks in (1, 2):
        inp = control(system, tmp_path, ranks, name=f"run{ranks}")
        done = engine(inp, ranks)
        assert done.returncode == 0, done.stderr
        tables.append([line.split() for line in rows(inp.with_suffix(".log"))])
    assert tables[0][0][-5:] == list(COLUMNS) and tables[0][0][-6] == "HALF_KICK_ENE"
    last = dict(zip(tables[0][0], tables[0][-1], strict=True))
    restart = systems.read_restarts(str(tmp_path / "run1_().rst"), 1)
    with h5py.File(system / "t.h5") as file:
        mass = [file[f"template/{k:04d}/mass"][...] for k in (0, 1)]
        constraints = len(file["template/0000/constraint/atoms"])
    masses = np.concatenate([mass[0], np.tile(mass[1], 100)])
    kinetic = 0.5 * masses * (restart.velocity**2).sum(axis=1) / 418.4
    freedom = np.array([3 * 41 - constraints, 6 * 100.0])
    freedom *= (freedom.sum() - 3) / freedom.sum()
    # Of the share of half a kick the log tells the sum, and each part has some.
    found = freedom * BOLTZMANN / 2 * [float(last[name]) for name in COLUMNS[:2]]
    unseen = found - [kinetic[:41].sum(), kinetic[41:].sum()]
    assert unseen.sum() == pytest.approx(2 / 3 * float(last["HALF_KICK_ENE"]), abs=1e-3)
    assert (unseen > 0).all() and (unseen < 0.05 * found).all()
    assert float(last["DENSITY"]) == pytest.approx(masses.sum() / restart.box.prod() * 10 / 6.02214076, abs=1e-6)
    inp = systems.control(tmp_path / "force.inp", ENERGY=ENERGY, CONSTRAINTS={"rigid_bond": "YES"},
                          INPUT={"topologyfile": system / "t.h5", "rstfile": tmp_path / "run1_().rst"},
                          OUTPUT={"forcefile": tmp_path / "force"})
    assert systems.run("energy", inp, 1, "chromamd").returncode == 0
    force = np.linalg.norm(np.frombuffer((tmp_path / "force").read_bytes()[16:], "<f8").reshape(-1, 3), axis=1)
    assert float(last["MAX_FORCE"]) == pytest.approx(force.max(), abs=1e-3)
    assert int(last["MAX_FORCE_ATOM"]) == force.argmax() + 1
    assert [row[-5:] for row in tables[0]] == [row[-5:] for row in tables[1]]


def told(done, code: int = UnstableRunError.exit_code) -> str:
    assert done.returncode == code, done.stderr
    return systems.sentence(done).removeprefix("chromamd: ")


@pytest.mark.parametrize("ranks", [1, 2])
def test_overlapping_atoms_are_named(system, tmp_path, ranks):
    """One water stands on another: nothing moves, and nothing is saved."""
    place = systems.read_restarts(str(system / "start1_().rst"), 1).position
    place[[44, 45, 46]] = place[[41, 42, 43]] + [0.3, 0.2, 0.0]
    shutil.copy(system / "t.h5", tmp_path)
    (tmp_path / "again").mkdir()
    systems.write_bricks(tmp_path, make_system(tmp_path / "again", 100), place, BOX)
    set_up(tmp_path, {"shardfile": tmp_path / "bricks.txt"}, ranks, f"start{ranks}")
    sentence = told(engine(control(tmp_path, tmp_path / "run", ranks), ranks))
    first, second = re.search(r"the force on (atom \d+ .*?\)) at .* overlap with (atom \d+ .*?\)), 0.36 angstrom",
                              sentence).groups()
    assert {first, second} == {"atom 42 (X of WAT 1, molecule 1 of 100)", "atom 45 (X of WAT 1, molecule 2 of 100)"}
    assert "unstable at step 0 (0.000 ps)" in sentence and "above max_force = 10000" in sentence
    assert f"there is no checkpoint of this run: it began from {tmp_path}/start{ranks}_().rst" in sentence
    assert not list((tmp_path / "run").glob("*.rst")) and sentence in (tmp_path / "run" / "run.log").read_text()


def test_a_long_time_step_is_told_from_the_masses(system, tmp_path):
    """12 fs, of which the bonds of the chain would bear less than 9; the last checkpoint is from before."""
    with h5py.File(system / "t.h5") as file:
        bond = file["template/0000/bond"]
        heavy = (file["template/0000/mass"][...][bond["atoms"][...]] > 2).all(axis=1)
        period = 2000 * np.pi / np.sqrt(2 * bond["k"][...][heavy].max() * 418.4 * 2 / 12.011)
    sentence = told(engine(control(system, tmp_path, timestep=0.012, nsteps=2000)))
    assert ("the time step of 12.000 fs, since the fastest bond (masses 12.011 and 12.011) has a period of "
            f"{period:.1f} fs: give {0.2 * period:.1f} fs or less") in sentence
    step = int(re.search(r"unstable at step (\d+)", sentence)[1])
    good = re.search(r"the last good checkpoint, of step (\d+), is (.*)", sentence)
    assert good is None or int(good[1]) < step and Path(good[2]).is_file()
    assert not (tmp_path / "run_0.rst").exists()


@pytest.mark.parametrize(("band", "words"), [
    ({"max_force": 0.001}, "the force on atom"), ({"max_temperature": 10}, "above max_temperature = 10"),
    ({"max_drift": 1e-9}, "the conserved energy drifts by"), ({"max_volume_ratio": 1.0000001}, "the volume is")])
def test_every_band_ends_the_run(system, tmp_path, band, words):
    ensemble = {"ensemble": "NPT", "tpcontrol": "BUSSI", "tau_t": 0.1, "temperature": 300, "tau_p": 0.1}
    sentence = told(engine(control(system, tmp_path, health=band, ensemble=ensemble)))
    assert words in sentence and next(iter(band)) in sentence
    assert re.search(r"atom \d+ \((C\d+ of CHN 1, segment PRO1|X of WAT 1, molecule \d+ of 100)\) at "
                     r"-?[\d.]+, -?[\d.]+, -?[\d.]+ angstrom", sentence)


def test_the_last_checkpoint_is_good_and_the_run_goes_on_from_it(system, tmp_path):
    """A run that is heated beyond its band ends; with a wider band it goes on, to the bits of a run without one."""
    heated = {"ensemble": "NVT", "tpcontrol": "BUSSI", "tau_t": 0.01, "temperature": 100, "temperature_end": 300}
    keys = {"ensemble": heated, "nsteps": 200, "eneout_period": 10}
    undisturbed = control(system, tmp_path / "undisturbed", **keys)
    assert engine(undisturbed).returncode == 0
    inp = control(system, tmp_path / "run", health={"max_temperature": 200}, **keys)
    sentence = told(engine(inp))
    step = int(re.search(r"unstable at step (\d+)", sentence)[1])
    saved = int(re.search(r"the last good checkpoint, of step (\d+)", sentence)[1])
    assert 0 < saved < step < 200
    assert (tmp_path / "run" / "run.log").read_text().endswith(sentence + "\n")
    done = engine(control(system, tmp_path / "run", health={"max_temperature": 0}, **keys))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "run_0.rst").read_bytes() == (tmp_path / "undisturbed" / "run_0.rst").read_bytes()
    assert rows(tmp_path / "run" / "run.log") == rows(tmp_path / "undisturbed" / "run.log")


def test_a_band_that_cannot_be(system, tmp_path):
    sentence = told(engine(control(system, tmp_path, health={"max_volume_ratio": 0.5})), BadInputError.exit_code)
    assert "max_volume_ratio" in sentence and "larger than 1" in sentence
