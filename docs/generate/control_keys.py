"""Control keys of chromamd and chromaqm, from what the programs themselves print by `help`."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chromabuild.quantum import chromaqm
from chromabuild.simulate.executable import executable
from generate.markdown import cell, code, table

KEY = re.compile(r"(?P<empty># )?(?P<name>\w+) *= (?P<default>\S*) *# (?P<about>.*)")
ENDING = re.compile(r" (?:\[(?P<unit>[^\[\]]+)\]|\((?P<choices>[A-Z0-9_ -]+)\))$")
MEANING = {
    "INPUT": "Files that are read.",
    "OUTPUT": "Files that are written.",
    "ENERGY": "The potential and how it is summed.",
    "MINIMIZE": "Minimisation; a file with this section minimises.",
    "DYNAMICS": "Dynamics: integrator, steps and periods.",
    "CONSTRAINTS": "Rigid bonds and waters.",
    "ENSEMBLE": "Thermostats and barostats.",
    "HEALTH": "Bands that dynamics must not leave; [Watch a run](../../how-to/watch-a-run.md) explains them.",
    "SELECTION": "Groups of atoms.",
    "RESTRAINTS": "Harmonic restraints.",
    "REMD": "Replica exchange; [Exchange replicas](../../how-to/exchange-replicas.md) explains it.",
    "GAMD": "Gaussian boosts; [Accelerate dynamics](../../how-to/accelerate-dynamics.md) explains them.",
    "BOUNDARY": "Box and domains.",
    "COMM": "Communication between ranks.",
}
QUANTUM_MEANING = {
    "INPUT": "Files that are read: atoms and pseudopotentials.",
    "OUTPUT": "Files that are written.",
    "SYSTEM": "Box and charge.",
    "ELECTRONS": "Plane waves and functional.",
    "PARALLEL": "Layer of states on ranks, and the grain of fine objects.",
    "MINIMIZE": "States of least energy, which every run but a continued one begins with.",
    "DYNAMICS": "Car-Parrinello dynamics; a file with this section does it.",
}


@dataclass(frozen=True)
class Key:
    """One key of the control file."""

    section: str
    name: str
    default: str
    unit: str
    choices: str
    about: str


def help_text(program: Path) -> str:
    """What a program prints by `help`."""
    return subprocess.run([program, "help"], capture_output=True, text=True, check=True).stdout


def parse(text: str) -> Iterator[Key]:
    """Every key of the help text in its order. Raises ValueError on a line that is neither section nor key."""
    section = ""
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            section = line.strip("[]")
        elif match := KEY.fullmatch(line):
            end = ENDING.search(match["about"])
            about = match["about"][:end.start()] if end else match["about"]
            unit, choices = (end["unit"] or "", end["choices"] or "") if end else ("", "")
            yield Key(section, match["name"], match["default"], unit, choices, about)
        elif line and not line.startswith("# usage"):
            raise ValueError(f"help prints a line of unknown form: {line!r}")


def page(program: Path, meaning: dict[str, str], ending: str) -> str:
    """The keys of one program; `ending` of the opening lines."""
    keys = list(parse(help_text(program)))
    name = program.name
    text = (f"# Control keys of `{name}`\n\n"
            "A control file has sections and keys in the form of GENESIS: `key = value`, one a line; `#` and `!`\n"
            "begin comments. Paths are relative to the working folder. An unknown key is refused with the nearest\n"
            f"one. `{name} help` prints these tables as a file, `{name} help SECTION` one section.\n\n{ending}")
    for section in dict.fromkeys(key.section for key in keys):
        rows = [(code(key.name), code(key.default), cell(key.unit), ", ".join(map(code, key.choices.split())),
                 cell(key.about)) for key in keys if key.section == section]
        text += f"\n## `[{section}]`\n\n{meaning[section]}\n\n"
        text += table(("key", "default", "unit", "values", "meaning"), rows)
    return text


def pages() -> dict[str, str]:
    """File name -> text."""
    return {"control-keys.md": page(executable(), MEANING, "Keys that end with a number (`group1`, `function1`) may be "
                                    "repeated with 2, 3 and so on.\n"),
            "quantum-keys.md": page(chromaqm.executable(), QUANTUM_MEANING, "Keys that end with a number (`upf1`, "
                                    "`gth1`) may be repeated with 2, 3 and so on.\n")}
