"""Runs of chromaqm on small systems."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from support import systems

Atoms = Sequence[tuple[str, float, float, float]]
"""Element and position in bohr."""

HYDROGEN: Atoms = (("H", .1, .2, .3), ("H", .9, 1.1, 1.05))
WATER: Atoms = (("O", .1, .2, .3), ("H", 1.55, 1.25, .45), ("H", -1.4, 1.2, -.2))
MAGNESIUM_WATER: Atoms = (("Mg", .1, .2, .3), ("O", 2.9, 1.7, 1.6), ("H", 3.2, 2.6, 3.2), ("H", 4.4, .9, 1.3))


@dataclass(frozen=True)
class Case:
    """Atoms in a cubic box (bohr) and how they are computed; ``cutoff`` in Ry."""

    atoms: Atoms
    box: float
    cutoff: float
    functional: str
    charge: int = 0
    tolerance: float = 1e-11


def write_case(folder: Path, case: Case, name: str = "case", **sections: dict) -> Path:
    """Write atoms and control file, whose sections are those of the case with what is given beside them."""
    (folder / f"{name}.xyz").write_text(f"{len(case.atoms)}\n\n" + "".join(
        f"{element} {x:.12f} {y:.12f} {z:.12f}\n" for element, x, y, z in case.atoms))
    keys = {
        "INPUT": {"atomfile": f"{name}.xyz", "length_unit": "BOHR"},
        "OUTPUT": {"resultfile": f"{name}.json"},
        "SYSTEM": {"box": case.box, "charge": case.charge},
        "ELECTRONS": {"cutoff": case.cutoff, "functional": case.functional},
        "MINIMIZE": {"tolerance": case.tolerance},
    }
    for section, values in sections.items():
        keys[section] = keys.get(section, {}) | values
    return systems.control(folder / f"{name}.inp", **keys)


def run(folder: Path, control: Path, ranks: int = 1, threads: int = 1) -> subprocess.CompletedProcess[str]:
    """Run chromaqm on a control file."""
    return systems.run("run", control.name, ranks, "chromaqm", threads, folder)


def compute(folder: Path, case: Case, ranks: int = 1, threads: int = 1, **sections: dict) -> dict:
    """The result file of a run that must end well."""
    done = run(folder, write_case(folder, case, **sections), ranks, threads)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "case.json").read_text())


def rows_of_dynamics(text: str) -> np.ndarray:
    """Lines of dynamics in a log: step, time (fs), potential, kinetic of ions and states, conserved (Ha), K."""
    table = text.split("# dynamics")[1].split("# forces")[0]
    return np.array([line.split() for line in table.splitlines()[2:] if line.strip() and line[0] != "#"], float)
