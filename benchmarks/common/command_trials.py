"""Commands beside the chain that are stopped, killed or crowded, or whose disk fails, and asked again: what was lost?

One table of commands, one trial a kind of fault. Every trial starts from a copy of a finished small build, whose
output folder ``results`` is the disk that fails; a second, undisturbed call must leave what an undisturbed first one
leaves.
"""

import contextlib
import errno
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from chromabuild.base.in_use import LINGER_SECONDS
from common.fault_trials import (
    REPOSITORY,
    WITH_TIMES,
    Build,
    Ended,
    chromabuild,
    contents,
    counted,
    disk_that_fails,
    engines_of,
    is_on_its_way,
    leftovers,
    wait_for,
)

_OUT = "results/out"
_TWO_WATERS = ("--contact", "resid 4 and name O", "resid 5 and name O", "--radius", "0", "--functional", "PZ",
               "--cutoff", "26", "--scan", "2.2")
COMMANDS: dict[str, tuple[str, ...]] = {
    **{f"export {program}": ("export", program, "-o", _OUT)
       for program in ("gromacs", "openmm", "amber", "namd", "genesis", "lammps")},
    **{f"export structure {suffix}": ("export", "structure", f"{_OUT}/a.{suffix}")
       for suffix in ("cif", "bcif", "pdb")},
    **{f"export scene {suffix}": ("export", "scene", f"{_OUT}/a.{suffix}") for suffix in ("cxc", "tcl", "mvsx", "zip")},
    "export tracks": ("export", "tracks", "-o", _OUT),
    "import": ("import", "given/amber/system.prmtop", "given/amber/system.rst7", "-o", _OUT),
    "view": ("view",),
    "analyse": ("analyse", "trajectory", "results", "--measure", "dna,solvent,structure"),
    "relax": ("relax", "--set", "relax.enabled=true", "--set", "relax.minimise_steps=4", "--set", "relax.length=8 fs"),
    "shards only": ("shards", "--only", "1"),
    "shards merge": ("shards", "merge", "-o", f"{_OUT}/a.pdb"),
    "shards merge cif": ("shards", "merge", "-o", f"{_OUT}/a.cif.zst"),
    "shards bag": ("shards", "bag", "-o", f"{_OUT}/bag"),
    "clash fix": ("clash", "fix", "given/dna.cif", "-o", f"{_OUT}/fixed.cif"),
    "clash check": ("clash", "check", "given/dna.cif", "--html", f"{_OUT}/page.html"),
    "qm check": ("qm", "check", str(REPOSITORY / "docs/tutorials/files/magnesium_phosphate.pdb"), *_TWO_WATERS, "-o",
                 _OUT),
    "qm run": ("qm", "run", "results/case.inp"),
    "qm map": ("qm", "map", f"{_OUT}/planes.map", "--states", "8", "--planes", "20", "--ranks", "40", "--groups", "4"),
    "init": ("init", _OUT, "--array", "1x601:147"),
    "report": ("report",),
    "run chromamd": ("run",),
    "run openmm": ("run", "--engine", "openmm"),
    "ensemble": ("ensemble", "2", "--config", "given/ensemble/locus.yaml", "--set", "output=../../results/out"),
    "template add": ("template", "add", "given/nucleosome.cif", "-o", f"{_OUT}/own.nucleosome.h5"),
}
"""Name to arguments. Files that are read lie in ``given``."""
_BEFORE = {"relax": "solvate", "shards only": "solvate", "run chromamd": "run", "run openmm": "run"}
"""Commands that begin as before a stage, without what it and later ones leave."""
_GROWING = ("analysis.json", "ensemble.json")
"""Records of what is done so far."""
_OTHER_NUMBERS = "run openmm"
"""What goes on from a checkpoint with other random numbers: frames and rows are counted, not compared."""
_NOT_WALKED = {"validate": "writes nothing", "plan": "writes nothing", "verify": "writes nothing",
               "shards info": "writes nothing", "shards verify": "writes nothing", "analyse duplex": "writes nothing",
               "clash audit": "writes nothing",
               "template fetch": "asks a server, then does as template add", "workflow": "starts the stages",
               "all": "starts the stages", "contact-energies": "writes one file after minutes"}
"""Commands of the program that are in no table, and why."""
EARLY = ("export structure cif", "export scene cxc", "shards merge", "shards bag", "clash fix", "clash check", "qm map")
"""Those that need no topology and take a second at most."""
STOPS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP, "SIGKILL": signal.SIGKILL}
_REMEDY = re.compile(r"free |choose |give |name |make |leave ")

HYDROGEN = {
    "case.xyz": "2\n\nH 0.1 0.2 0.3\nH 0.9 1.1 1.05\n",
    "case.inp": "[INPUT]\natomfile = results/case.xyz\nlength_unit = BOHR\n[OUTPUT]\nresultfile = results/case.json\n"
                "[SYSTEM]\nbox = 6\n[ELECTRONS]\ncutoff = 30\nfunctional = PZ\n"}
"""A molecule for chromaqm, in files of the output folder."""


def _check_all_are_walked() -> None:
    """End the program where a command of chromabuild is neither a stage nor in a table."""
    from typer.main import get_command

    from chromabuild.cli import app
    from chromabuild.pipeline.stages import STAGES

    def names(group: object, before: str = "") -> Iterator[str]:
        for name, one in getattr(group, "commands", {}).items():
            yield from names(one, f"{before}{name} ")
            if not getattr(one, "commands", {}):
                yield before + name

    tried = {" ".join(word for word in words if word.isalpha()) for words in COMMANDS.values()}
    known = {*_NOT_WALKED, *(stage.name for stage in STAGES)}
    left_out = [name for name in names(get_command(app))
                if name not in known and not any(f"{words} ".startswith(f"{name} ") for words in tried)]
    if left_out:
        sys.exit(f"COMMANDS lacks {', '.join(left_out)}: add a row, or say in _NOT_WALKED why there is none")


def _seen(name: str, file: str, left: dict[str, bytes]) -> bytes | int | None:
    """What is compared of a file."""
    content = left.get(file)
    counted = name == _OTHER_NUMBERS and file.endswith((".dcd", ".log"))
    return len(content) if counted and content is not None else content


def _still_at_work(folder: Path) -> list[int]:
    """Engines that have not ended soon after what started them: they write a last checkpoint."""
    end = time.monotonic() + LINGER_SECONDS
    while (found := engines_of(folder)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def names_of(stages: Sequence[str]) -> tuple[str, ...]:
    """Commands for which a build of these stages is enough."""
    return tuple(COMMANDS) if "run" in stages else EARLY


class Walk:
    """The build after the whole chain, and what every command leaves of it undisturbed."""

    def __init__(self, build: Build) -> None:
        """Take a finished build; files that commands read are added."""
        _check_all_are_walked()
        self.build, self.root = build, build.root
        self.seconds: dict[str, float] = {}
        self.before: dict[str, bytes] = {}
        self._after: dict[str, dict[str, bytes]] = {}
        work = build.root / "alone"
        for arguments in (("export", "structure", "given/dna.cif"), *("run" in build.stages) * (
                ("export", "amber", "-o", "given/amber"),
                ("init", "given/nucleosome", "--array", "1x601:147"),
                *((stage, "--config", "given/nucleosome/locus.yaml") for stage in ("scaffold", "build")),
                ("export", "structure", "given/nucleosome.cif", "--as-built", "--config",
                 "given/nucleosome/locus.yaml"),
                ("init", "given/ensemble", "--array", "2x601:197", "--set", "ensemble.bin=50", "--set",
                 "scaffold.sweeps=30"))):
            ended = wait_for(chromabuild(work, *arguments), work)
            if ended.code:
                sys.exit(f"chromabuild {' '.join(arguments)} ended with {ended.code}: {ended.told}")
        for name, text in HYDROGEN.items():
            (work / "results" / name).write_text(text, encoding="utf-8")
        self.before = self._found(work)

    def fresh(self, name: str) -> Path:
        """A folder as it is before a command."""
        if name in _BEFORE:
            return self.build.fresh(_BEFORE[name])
        folder = self.root / "trial"
        shutil.rmtree(folder, ignore_errors=True)
        Build.copy(self.root / "alone", folder)
        return folder

    def after(self, name: str) -> dict[str, bytes]:
        """What a command leaves undisturbed."""
        if name not in self._after:
            folder = self.fresh(name)
            ended = self._again(name, folder)
            if ended.code:
                sys.exit(f"chromabuild {' '.join(COMMANDS[name])} ended with {ended.code}: {ended.told}")
            self.seconds[name] = ended.seconds
            self._after[name] = self._found(folder)
        return self._after[name]

    @staticmethod
    def _found(folder: Path) -> dict[str, bytes]:
        return {name: content for name, content in contents(folder / "results").items()
                if Path(name).name not in WITH_TIMES}

    @staticmethod
    def _again(name: str, folder: Path) -> Ended:
        return wait_for(chromabuild(folder, *COMMANDS[name]), folder)

    def _lost(self, name: str, folder: Path, is_done: bool) -> dict[str, list[str]]:
        """Torn files and part files now, and what a second call makes of it."""
        at_work = _still_at_work(folder)
        after, now = self.after(name), self._found(folder)
        torn = [file for file, content in now.items()
                if content not in (self.before.get(file), after.get(file)) and Path(file).name not in _GROWING
                and not is_on_its_way(file)]
        left = leftovers(folder / "results")
        again = self._again(name, folder)
        found = self._found(folder)
        # What is there is not replaced without --force; a kill may come when all is there.
        expected = (0, 3) if is_done or now == after else (0,)
        return {"torn": torn, "left": left, "at work": [str(one) for one in at_work],
                "failed": [] if again.code in expected else [f"{again.code}: {again.told}"],
                "left after": leftovers(folder / "results"),
                "different": [file for file in sorted({*found, *after})
                              if _seen(name, file, found) != _seen(name, file, after)]}

    def count_calls(self, name: str) -> int:
        """Calls of a command that change files in the output folder."""
        self.after(name)
        folder, counter = self.fresh(name), self.root / "counter"
        disk = disk_that_fails(folder / "results", counter, 0, errno.ENOSPC)
        wait_for(chromabuild(folder, *COMMANDS[name], disk=disk), folder)
        return counted(counter)

    def disk_fails(self, name: str, call: int, error: int = errno.ENOSPC) -> dict[str, object]:
        """All calls from one on fail."""
        folder = self.fresh(name)
        disk = disk_that_fails(folder / "results", self.root / "counter", call, error)
        first = wait_for(chromabuild(folder, *COMMANDS[name], disk=disk), folder)
        sentence = next((line for line in first.told.splitlines() if line.startswith("chromabuild: ")), "")
        is_told = first.code == 0 or first.is_clean and "results" in sentence and bool(_REMEDY.search(sentence))
        return {"as": f"code {first.code}",
                "unclean": [] if is_told and first.code in (0, 6) else [f"{first.code}: {first.told[-600:]}"],
                **self._lost(name, folder, first.code == 0)}

    def stopped(self, name: str, how: str, part: float) -> dict[str, object]:
        """A signal after a part of its time."""
        self.after(name)
        folder = self.fresh(name)
        pid = chromabuild(folder, *COMMANDS[name])
        time.sleep(0.02 + part * self.seconds[name])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, STOPS[how])
        first = wait_for(pid, folder)
        fine = (0, -9) if how == "SIGKILL" else (0, 7)
        lost = self._lost(name, folder, first.code == 0)
        if how == "SIGKILL":  # nobody is there to clear up; the second call does
            lost["left"] = []
        return {"as": f"code {first.code}", "unclean": [] if first.code in fine and (
            first.is_clean or how == "SIGKILL") else [f"{first.code}: {first.told[-600:]}"], **lost}

    def crowded(self, name: str) -> dict[str, object]:
        """Two at once, one of which may be told so."""
        self.after(name)
        folder = self.fresh(name)
        pids = [chromabuild(folder, *COMMANDS[name])]
        time.sleep(0.1 * self.seconds[name])
        pids.append(chromabuild(folder, *COMMANDS[name]))
        ends = [wait_for(pid, folder) for pid in pids]
        codes = sorted(end.code for end in ends)
        told = " ".join(end.told for end in ends)
        is_named = any(f"process {pid}" in told for pid in pids) or 9 not in codes
        return {"as": f"codes {codes}", "unclean": [] if codes in ([0, 0], [0, 9], [0, 3]) and is_named else
                [str([(end.code, end.told[-300:]) for end in ends])], **self._lost(name, folder, True)}
