"""Fine objects of chromaqm beside whole states: processor time of a step of dynamics, and messages.

Waters in a cube at 1 g/cm^3, 70 Ry, BLYP, built-in GTH potentials, non-orthogonal Car-Parrinello dynamics from random
states. The layers take turns, and a step is the difference of the processor time of all ranks of two runs over the
difference of their steps. Messages are those of all ranks in one step. Processor time is taken on one rank: ranks that
wait look for messages all the time.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from common.command import Benchmark
from common.results import ratios, spread
from planewave import waters

from chromabuild.quantum.chromaqm import executable

LAYERS = {
    "states": "layer = STATES",
    "objects": "layer = OBJECTS",
    "fine": "layer = OBJECTS\nsGrainSize = 8\northoGrainSize = 4\nnumChunks = 2\nrhoRsubplanes = 2",
}


def run(folder: Path, steps: int, n: int, ranks: int, layer: str) -> tuple[float, dict]:
    """Processor seconds of all ranks, and the result."""
    atoms, edge = waters(n)
    (folder / "atoms.xyz").write_text(f"{len(atoms.splitlines())}\n\n{atoms}\n")
    (folder / "run.inp").write_text(
        f"[INPUT]\natomfile = atoms.xyz\n[OUTPUT]\nresultfile = result.json\n[SYSTEM]\nbox = {edge}\n[ELECTRONS]\n"
        f"cutoff = 70\n[PARALLEL]\n{layer}\n[MINIMIZE]\ntolerance = 1e4\n[DYNAMICS]\nmethod = NONORTHOGONAL\n"
        f"timestep = 0.01\noverlap_tolerance = 1\nnsteps = {steps}\n")
    call = [str(executable()), "run", "run.inp"]
    if ranks > 1:
        call = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *call]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"chromaqm failed: {done.stderr[-600:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, json.loads((folder / "result.json").read_text())


def messages(result: dict) -> int:
    return sum(sum(values) for name, values in result["sent_by_ranks"].items() if not name.endswith("_bytes"))


def main() -> None:
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--waters", type=int, nargs="*", default=[8, 16])
    benchmark.parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4])
    benchmark.parser.add_argument("--rounds", type=int, default=3)
    benchmark.parser.add_argument("--steps", type=int, default=4)
    given = benchmark.start(quick={"waters": [1], "ranks": [2], "rounds": 1, "steps": 1})
    table = benchmark.table("times", "Processor time of a step on one core (s): whole states, objects of the default "
                            "grain and of a fine one (sGrainSize 8, orthoGrainSize 4, numChunks 2, rhoRsubplanes 2)",
                            waters="d", states=".2f", objects=".2f", ratio=".2f", fine=".2f", ratio_fine=".2f")
    for n in given.waters:
        step: dict[str, list[float]] = {name: [] for name in LAYERS}
        with tempfile.TemporaryDirectory() as name:
            for _ in range(given.rounds):
                for layer, keys in LAYERS.items():
                    short, long = (run(Path(name), steps, n, 1, keys)[0] for steps in (1, 1 + given.steps))
                    step[layer].append((long - short) / given.steps)
        whole, objects, fine = step.values()
        table.row(n, spread(whole), spread(objects), ratios(objects, whole), spread(fine), ratios(fine, whole))
    table = benchmark.table("messages", "Messages between ranks in a step: whole states, objects of the default grain "
                            "and of the fine one", waters="d", ranks="d", states="d", objects="d", fine="d")
    for n in given.waters[:1]:
        for ranks in given.ranks:
            with tempfile.TemporaryDirectory() as name:
                counts = [messages(run(Path(name), steps, n, ranks, keys)[1])
                          for keys in LAYERS.values() for steps in (1, 2)]
            table.row(n, ranks, *(last - first for first, last in zip(counts[::2], counts[1::2], strict=True)))
    benchmark.finish()


if __name__ == "__main__":
    main()
