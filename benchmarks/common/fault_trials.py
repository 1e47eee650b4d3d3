"""Stages of a small build that are killed, or whose disk fails, and run again: what was lost?

Every trial starts from a copy of what the stages before have left, in a process that is forked from this one, which has
everything loaded. Files are compared byte by byte with those of a build that was left alone, but for those that hold
times; of the dynamics positions, energies and final restarts are.
"""

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
WITH_TIMES = ("provenance.json", "report.html")
"""Files that say when and how fast they were made."""
PHASES = ("[{name: minimise, kind: minimise, steps: 4}, {name: dynamics, steps: 12, timestep: 1}]")
SETTINGS = {"solvate.padding": 5, "solvate.brick_edge": 25, "scaffold.sweeps": 30, "dynamics.cutoff": 6,
            "dynamics.checkpoint": "0.3 s", "dynamics.deterministic": True, "simulate.phases": PHASES,
            "simulate.output_period": 4, "simulate.trajectory_period": 4}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    """Of exit; less than zero: the number of the signal."""
    told: str
    """On standard error."""
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether a failure is told in one sentence, without a traceback."""
        sentences = [line for line in self.told.splitlines() if line.startswith("chromabuild: ")]
        is_fault = "Traceback" in self.told or "a fault in" in self.told
        return self.code == 0 or (len(sentences) == 1 and not is_fault)


def preload(library: Path) -> None:
    """Start this program again with the failing disk loaded, unless it is; before anything heavy is imported."""
    if os.environ.get("LD_PRELOAD", "").startswith(str(library)):
        return
    os.environ["LD_PRELOAD"] = str(failing_disk(library))
    # A forked process must not inherit a pool of threads; ranks that wait leave the processor to others.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HWLOC_COMPONENTS": "-pci,-linuxio,-opencl"}
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def failing_disk(library: Path) -> Path:
    """The shared library that, preloaded, lets a disk fail; made here, whole, since runs side by side share it."""
    source, part = REPOSITORY / "tests" / "support" / "failing_disk.c", library.with_suffix(f".{os.getpid()}.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(part), str(source), "-ldl"], check=True)
    return part.replace(library)


def chromabuild(folder: Path, *arguments: str, disk: dict[str, str] | None = None) -> int:
    """Start a command in a folder; the process, whose standard error goes to ``told`` there."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.chdir(folder)
        os.setsid()
        told = os.open(folder / "told", os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(told, 2)
        if disk:
            os.environ |= disk
            ctypes.CDLL(None).failing_disk_begin()
        from chromabuild.cli import main

        sys.argv = ["chromabuild", *arguments]
        main()
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else int(error.code is not None))
    except BaseException as error:
        os.write(2, f"Traceback: {error!r}\n".encode())
        os._exit(70)
    os._exit(0)


def wait_for(pid: int, folder: Path, limit: float = 300.0) -> Ended:
    """The end of a command; one that hangs is killed after ``limit`` seconds, or more where others have the cores."""
    begin = time.monotonic()
    limit *= max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            told = (folder / "told").read_text(errors="replace") if (folder / "told").exists() else ""
            return Ended(code, told, time.monotonic() - begin)
        if time.monotonic() - begin > limit:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            limit += 10
        time.sleep(0.005)


def contents(results: Path) -> dict[str, bytes]:
    """Name to content of what must not depend on faults."""
    found = {}
    for path in sorted(results.rglob("*")):
        name = str(path.relative_to(results))
        is_hidden = any(part.startswith(".") for part in path.relative_to(results).parts)  # locks, parts of folders
        if not path.is_file() or is_hidden or name in WITH_TIMES:
            continue
        if not name.startswith(("md/", "relax/")):
            found[name] = path.read_bytes()
        elif path.suffix == ".log":
            found[name] = b"\n".join(line for line in path.read_bytes().splitlines() if line.startswith(b"INFO:"))
        elif path.suffix == ".dcd" or (path.suffix == ".rst" and "checkpoint" not in name and name.startswith("md/")):
            found[name] = path.read_bytes()
    return found


def leftovers(results: Path) -> list[str]:
    """Part files."""
    return [str(path.relative_to(results)) for path in results.rglob("*.part")]


class Build:
    """A build that was left alone: its folder before every stage, and its files after it."""

    def __init__(self, root: Path, example: tuple[str, ...], until: str = "report") -> None:
        """Make it up to a stage; ``example``: arguments of ``init``."""
        from chromabuild.pipeline.stages import STAGES

        self.root = root
        names = [stage.name for stage in STAGES if stage.name not in ("refine", "relax")]
        self.stages = names[:names.index(until) + 1]
        self.after: dict[str, dict[str, bytes]] = {}
        self.seconds: dict[str, float] = {}
        work = root / "alone"
        settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
        work.mkdir(parents=True)
        self._must(work, "init", ".", *example, *settings, "--force")
        for stage in self.stages:
            self.copy(work, root / "before" / stage)
            self.seconds[stage] = self._must(work, stage).seconds
            self.after[stage] = contents(work / "results")

    @staticmethod
    def _must(folder: Path, *arguments: str) -> Ended:
        ended = wait_for(chromabuild(folder, *arguments), folder)
        if ended.code:
            sys.exit(f"chromabuild {' '.join(arguments)} ended with {ended.code}: {ended.told}")
        return ended

    @staticmethod
    def copy(source: Path, target: Path) -> None:
        """Copy a project. Finished files are replaced, never changed, so links serve; files of the dynamics grow."""
        def link(one: str, other: str) -> None:
            (shutil.copy2 if "/md/" in one else os.link)(one, other)

        shutil.copytree(source, target, copy_function=link)

    def fresh(self, stage: str) -> Path:
        """A folder as it is before a stage."""
        folder = self.root / "trial"
        shutil.rmtree(folder, ignore_errors=True)
        self.copy(self.root / "before" / stage, folder)
        return folder

    def torn(self, stage: str, results: Path) -> list[str]:
        """Files that are neither as before the stage nor as after it, nor on their way."""
        before = contents(self.root / "before" / stage / "results")
        return [name for name, content in contents(results).items()
                if content not in (before.get(name), self.after[stage].get(name)) and not is_on_its_way(name)]

    def differ(self, stage: str, results: Path) -> list[str]:
        """Files that are missing, too many or other than undisturbed."""
        found, expected = contents(results), self.after[stage]
        return [name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name)]


def is_on_its_way(name: str) -> bool:
    """Whether a file may be between what it was and what it will be: the next call goes on from it."""
    return Path(name).name == "scaffold_trajectory.h5" or Path(name).suffix in (".log", ".dcd", ".states")


def engines_of(folder: Path) -> list[int]:
    """Engines that work in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes()
            if b"chromamd" in (entry / "comm").read_bytes() and str(folder).encode() in line:
                found.append(int(entry.name))
    return found


def killed_once(build: Build, stage: str, moment: float) -> dict[str, object]:
    """Kill a stage after so many seconds, or earlier where it has ended by then, look, run it again, compare."""
    while True:
        folder = build.fresh(stage)
        pid = chromabuild(folder, stage)
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if wait_for(pid, folder).code == -signal.SIGKILL:
            break
        moment *= 0.7
    torn = [] if engines_of(folder) else build.torn(stage, folder / "results")
    again = wait_for(chromabuild(folder, stage), folder)
    return {"as": "killed", "torn": torn, "failed": [] if again.code == 0 else [again.told],
            "left": leftovers(folder / "results"), "different": build.differ(stage, folder / "results")}


def count_calls(build: Build, stage: str) -> int:
    """Calls of a stage that change files in the output folder."""
    folder = build.fresh(stage)
    counter = build.root / "counter"
    disk = disk_that_fails(folder / "results", counter, 0, errno.ENOSPC)
    ended = wait_for(chromabuild(folder, stage, disk=disk), folder)
    if ended.code:
        sys.exit(f"chromabuild {stage} ended with {ended.code}: {ended.told}")
    return counted(counter)


def counted(counter: Path) -> int:
    """Calls that a file of the failing disk has counted. Ends the program where it has seen none."""
    calls = struct.unpack("q", counter.read_bytes())[0]
    return calls or sys.exit("the disk that fails has seen no call: is its library loaded (LD_PRELOAD)?")


def failed_once(build: Build, stage: str, call: int, error: int) -> dict[str, object]:
    """Let all calls from one on fail, look, mend the disk, run again, compare."""
    folder = build.fresh(stage)
    disk = disk_that_fails(folder / "results", build.root / "counter", call, error)
    first = wait_for(chromabuild(folder, stage, disk=disk), folder)
    torn, left = build.torn(stage, folder / "results"), leftovers(folder / "results")
    again = wait_for(chromabuild(folder, stage), folder)
    is_clean = first.is_clean and first.code in (0, 6)
    return {"as": f"code {first.code}", "unclean": [] if is_clean else [f"{first.code}: {first.told}"],
            "torn": torn, "left": left, "failed": [] if again.code == 0 else [again.told],
            "different": build.differ(stage, folder / "results")}


def disk_that_fails(folder: Path, counter: Path, call: int, error: int) -> dict[str, str]:
    """Variables for a program with ``failing_disk``: its calls that change files below the folder fail from one on (0:
    none); ``counter``: a file that counts them, from 0 again."""
    counter.write_bytes(bytes(8))
    return {"FAILING_FOLDER": str(folder), "FAILING_COUNTER": str(counter), "FAILING_FROM": str(call),
            "FAILING_WITH": str(error)}
