"""Small systems that the engine starts from, and their runs: a made-up chain among waters, and lone ions."""

from pathlib import Path

import numpy as np

from support import systems

BOX = np.array([31.0, 30.0, 32.0])
ENERGY = {"cutoffdist": 7, "switchdist": 7, "pairlistdist": 8}
PME = {"cutoffdist": 8, "switchdist": 7, "pairlistdist": 9, "deterministic": "YES"}
"""Of charged systems whose bits are compared."""
KB = 0.0019872042586408316  # kcal/mol/K


def make_system(folder: Path, n_waters: int = 40, neutral: bool = True) -> list:
    """A chain and some waters on a lattice, without ordinary non-bonded interactions unless `neutral` is false."""
    rng = np.random.default_rng(21)
    molecule, position = systems.chain(12, rng, charged=not neutral)
    # A harmonic improper has a cusp opposite its minimum, where no integrator keeps the energy.
    molecule.impropers = []
    water = systems.water()
    if neutral:
        water.charge = [0.0] * 3
    runs = [(molecule, 1), (water, n_waters)]
    shape = np.array([[0, 0, 0], [0.957, 0, 0], [-0.24, 0.927, 0]])
    cell = np.stack(np.meshgrid(*[np.arange(5)] * 3, indexing="ij"), -1).reshape(-1, 3)
    far = np.linalg.norm((cell + 0.5) / 5 - 0.5, axis=1).argsort()[::-1][:n_waters]
    waters = ((cell[far] + 0.1) * BOX / 5)[:, None] + shape
    everything = np.concatenate([position - position.mean(axis=0) + BOX / 2, waters.reshape(-1, 3)])
    systems.write_topology(folder / "t.h5", runs, lj=not neutral)
    systems.write_bricks(folder, runs, everything, BOX)
    return runs


def setup(folder: Path, ranks: int, name: str = "start", **dynamics: object) -> str:
    """Run chromamd setup; returns the restart pattern."""
    pattern = str(folder / f"{name}().rst")
    inp = systems.control(folder / "setup.inp", OUTPUT={"rstfile": pattern}, ENERGY=ENERGY, DYNAMICS=dynamics,
                          INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"})
    done = systems.run("setup", inp, ranks)
    assert done.returncode == 0, done.stderr
    return pattern


def relaxed_charged(folder: Path, n_waters: int) -> Path:
    """A charged chain among waters, relaxed a little, as restart files ``startR_().rst`` of one and of two ranks; gives
    the folder."""
    make_system(folder, n_waters, neutral=False)
    _set_up_charged(folder, {"shardfile": folder / "bricks.txt"}, 1, "raw")
    inp = systems.control(
        folder / "relax.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / "raw_().rst"},
        OUTPUT={"rstfile": folder / "start1_().rst"}, ENERGY=PME | {"deterministic": "NO"},
        MINIMIZE={"nsteps": 150, "force_scale_max": 5e-4})
    done = systems.run("run", inp, program="chromamd")
    assert done.returncode == 0, done.stderr
    _set_up_charged(folder, {"rstfile": folder / "start1_().rst"}, 2, "start2")
    return folder


def _set_up_charged(folder: Path, source: dict, ranks: int, name: str) -> None:
    inp = systems.control(folder / "setup.inp", INPUT={"topologyfile": folder / "t.h5", **source},
                          OUTPUT={"rstfile": folder / f"{name}_().rst"}, ENERGY=PME)
    done = systems.run("setup", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr


def minimised(folder: Path, ranks: int = 1) -> str:
    """Setup and a short minimisation; returns the restart pattern."""
    start = setup(folder, ranks)
    pattern = str(folder / "min().rst")
    inp = systems.control(folder / "min.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
                          OUTPUT={"rstfile": pattern}, ENERGY=ENERGY, MINIMIZE={"nsteps": 300, "force_scale_max": 5e-4})
    done = systems.run("run", inp, ranks)
    assert done.returncode == 0, done.stderr
    return pattern


def dynamics(folder: Path, start: str, end: str, n_steps: int, ranks: int = 1, threads: int = 1, rigid: bool = True,
             output: dict | None = None, **keys: object) -> str:
    """Run chromamd run for dynamics; returns the log."""
    inp = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
        OUTPUT={"rstfile": end, **(output or {})}, ENERGY=ENERGY,
        DYNAMICS={"nsteps": n_steps, "eneout_period": 1, "timestep": 0.001, **keys},
        CONSTRAINTS={"rigid_bond": "YES" if rigid else "NO"}, ENSEMBLE={"temperature": 300})
    done = systems.run("run", inp, ranks, threads=threads)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lone_ions(folder: Path, n: int = 64) -> str:
    """Atoms that do not feel each other, each free to move; returns the restart pattern."""
    ion = systems.ion()
    ion.charge = [0.0]
    systems.write_topology(folder / "t.h5", [(ion, n)], lj=False)
    systems.write_bricks(folder, [(ion, n)], np.random.default_rng(4).random((n, 3)) * BOX, BOX)
    return setup(folder, 1)
