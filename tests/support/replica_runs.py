"""Replicas of small systems that exchange parameters, and what they leave."""

from pathlib import Path

import numpy as np

from support import systems
from support.chain_in_water import BOX

ENERGY = {"electrostatic": "CUTOFF", "cutoffdist": 7, "switchdist": 7, "pairlistdist": 8}


def write_oscillators(folder: Path, n: int = 2) -> str:
    """Atoms that do not feel each other, for springs of restraints; returns the restart pattern of one rank."""
    ion = systems.ion()
    ion.charge = [0.0]
    systems.write_topology(folder / "t.h5", [(ion, n)], lj=False)
    places = 8.0 + 12.0 * np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), -1).reshape(-1, 3)[:n]
    systems.write_bricks(folder, [(ion, n)], places, BOX)
    inp = systems.control(folder / "setup.inp", ENERGY=ENERGY, OUTPUT={"rstfile": folder / "start_().rst"},
                          INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"})
    done = systems.run("setup", inp)
    assert done.returncode == 0, done.stderr
    return str(folder / "start_().rst")


def outputs(folder: Path, name: str = "run") -> dict[str, object]:
    """[OUTPUT] of replicas."""
    return {"logfile": folder / f"{name}{{}}.log", "remfile": folder / f"{name}{{}}.rem",
            "rstfile": folder / f"{name}{{}}_().rst"}


def parameters_of_rows(folder: Path, replicas: int, step: np.ndarray, name: str = "run") -> np.ndarray:
    """(replicas, rows): the parameter with which each replica came to these steps."""
    held = []
    for replica in range(1, replicas + 1):
        record = np.loadtxt(folder / f"{name}{replica}.rem", dtype=int, ndmin=2)
        held.append(record[np.maximum(np.searchsorted(record[:, 0], step) - 1, 0), 1])
    return np.array(held)


def tables(folder: Path, replicas: int, name: str = "run") -> list[dict[str, np.ndarray]]:
    """The energy tables of all replicas."""
    return [systems.read_table((folder / f"{name}{replica}.log").read_text()) for replica in range(1, replicas + 1)]


def acceptances(folder: Path, name: str = "run") -> dict[tuple[int, int], tuple[int, int]]:
    """Pair of parameters to how many attempts were accepted, and how many there were; from the log of the first."""
    found = {}
    for line in (folder / f"{name}1.log").read_text().splitlines():
        if line.startswith("exchange of parameters "):
            words = line.replace(":", "").split()
            found[int(words[3]), int(words[5])] = int(words[6]), int(words[8])
    return found
