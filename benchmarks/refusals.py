"""Whether `validate` refuses what any stage refuses, and in the same words: settings drawn at random over the schema.

Every trial writes the settings of a small locus, asks `validate`, and then runs the chain in its own process up to
--until. A build that `validate` accepts has to end; one that it refuses is refused by `all` with the same sentence and
exit code. What a trial found otherwise is printed and counted, with the settings that show it.
"""

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from common.command import Benchmark
from common.random_settings import as_sections, settings

LOCI = {"DNA of 32 bp": ("ACGTTGCATGGATCCA" * 2, None, False),
        "DNA of 60 bp": ("GCATGTAAGTTCAGTCGATACGTTAGCAAGCTGATCGTCAACTGGCCATGCAAGTTCAGTC", None, False),
        "circle of 150 bp": ("ACGTTGCATGGATCCAAGCTGTTACGGTAC" * 5, None, True),
        "1 nucleosome": ("ACGTTGCATGGATCCAAGCTGTTACGGTAC" * 5, 74, False)}
OF_THE_WORK = (4, 8)
"""Exit codes that say how the work went, which nobody knows before: clashes remain, the simulation became unstable."""
OUTCOMES = ("ended", "refused alike", "refused late", "refused otherwise", "fault", "too long")


def write(folder: Path, locus: str, changes: dict[str, object]) -> None:
    """A project."""
    sequence, dyad, is_circular = LOCI[locus]
    folder.mkdir(parents=True)
    (folder / "locus.fa").write_text(f">chr1\n{sequence}\n")
    if dyad is not None:
        (folder / "nucleosomes.bed").write_text(f"chr1\t{dyad}\t{dyad + 1}\n")
    cheap = {"scaffold.sweeps": 2, "solvate.padding": 8.0,
             "locus.nucleosomes": None if dyad is None else "nucleosomes.bed", "locus.circular": is_circular}
    (folder / "locus.yaml").write_text(json.dumps(as_sections(cheap | changes)))  # JSON is YAML


def answers(folder: Path, until: str) -> dict[str, list]:
    """Code and sentence of `validate`, of `plan` where the chain goes to its end, as it does, and of `all` where it is
    refused, or else of the stages one after the other up to the one that ends badly."""
    from typer.testing import CliRunner

    from chromabuild.base.settings import load_config
    from chromabuild.cli import app
    from chromabuild.pipeline.stages import STAGES

    os.chdir(folder)

    def asked(*words: str) -> list:
        done = CliRunner().invoke(app, list(words))
        lines = [line for line in done.stderr.splitlines() if line.startswith("chromabuild: ")]
        return [done.exit_code, lines[-1].removeprefix("chromabuild: ") if lines else repr(done.exception)]

    found = {"validate": asked("validate", "--until", until)}
    if until == "run":
        found["plan"] = asked("plan", "--no-fold")
    if found["validate"][0]:
        return found | {"all": asked("all", "--threads", "1", "--until", until)}
    config = load_config("locus.yaml")
    for stage in STAGES:
        if stage.applies is None or stage.applies(config):
            found[stage.name] = asked(stage.name, "--threads", "1")
            if found[stage.name][0]:
                break
        if stage.name == until:
            break
    return found


def judged(found: dict[str, list]) -> str:
    """One of OUTCOMES."""
    last = list(found)[-1]
    code, told = found[last]
    if any(one[0] == 1 for one in found.values()):
        return "fault"
    if found["validate"][0] == 0:
        return "ended" if code == 0 or code in OF_THE_WORK else "refused late"
    plan = found.get("plan", found["validate"])
    if found["validate"] != found["all"] or (plan != found["validate"] and found["validate"][0] != 6):
        return "refused otherwise"
    return "refused alike"


def trial(folder: Path, until: str, limit: float) -> dict[str, list] | None:
    """What ``answers`` finds, in a process forked from this one; None where it takes longer than ``limit`` seconds."""
    out = folder / "answers.json"
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            sys.stdout = sys.stderr = open(folder / "log", "w")
            os.dup2(sys.stdout.fileno(), 2)
            out.write_text(json.dumps(answers(folder, until)))
        finally:
            os._exit(0)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return json.loads(out.read_text()) if out.is_file() else {"validate": [0, ""], "crash": [1, "no answer"]}
        time.sleep(0.05)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def main() -> None:
    """Draw, try, count."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--trials", type=int, default=200)
    add("--first", type=int, default=0, help="number of the first trial; a trial is drawn by its number")
    add("--locus", choices=LOCI, default="DNA of 32 bp")
    add("--changes", type=int, default=8, help="settings that are drawn in a trial, at most")
    add("--until", default="run", help="last stage")
    add("--limit", type=float, default=300.0, help="seconds of a trial")
    given = benchmark.start(quick={"trials": 3, "until": "scaffold"})
    import h5py  # noqa: F401
    import openmm.app  # noqa: F401
    import scipy.optimize
    import scipy.spatial  # noqa: F401

    import chromabuild.api
    import chromabuild.cli
    import chromabuild.pipeline.chain  # noqa: F401

    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for k in range(given.first, given.first + given.trials):
            draw = random.Random(k)
            changes = settings(draw, draw.randint(0, given.changes))
            folder = Path(name) / str(k)
            write(folder, given.locus, changes)
            found = trial(folder, given.until, given.limit)
            outcome = "too long" if found is None else judged(found)
            counts[outcome] += 1
            if outcome not in ("ended", "refused alike"):
                print(f"trial {k}: {outcome}: {json.dumps(changes)}", flush=True)
                for asked, answer in (found or {}).items():
                    print(f"    {asked}: {answer}", flush=True)
            if (k + 1) % 10 == 0:
                print(f"  after trial {k}: {dict(counts)}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    table = benchmark.table("refusals", "Settings drawn at random, and how `validate` and the chain answer", locus="",
                            trials=",d", **{outcome: ",d" for outcome in OUTCOMES})
    table.row(given.locus, given.trials, *(counts[outcome] for outcome in OUTCOMES))
    benchmark.finish()


if __name__ == "__main__":
    main()
