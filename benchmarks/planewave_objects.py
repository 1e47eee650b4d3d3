"""Fine objects of chromaqm beside whole states: processor time of a step of dynamics, and messages.

Waters in a cube at 1 g/cm^3, 70 Ry, BLYP, built-in GTH potentials, non-orthogonal Car-Parrinello dynamics from random
states. The layers take turns, and a step is the difference of the processor time of all ranks of two runs over the
difference of their steps. Ranks that wait look for messages all the time, which counts; where there are fewer cores
than ranks, they let others go first. Messages are those of all ranks in one step.
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
    "splines": "layer = OBJECTS",
}
SPLINES = "local_sums = SPLINE\nnonlocal_sums = SPLINE\n"


def run(folder: Path, steps: int, n: int, ranks: int, layer: str) -> tuple[float, dict]:
    """Processor seconds of all ranks of a run with a layer of LAYERS, and the result."""
    atoms, edge = waters(n)
    (folder / "atoms.xyz").write_text(f"{len(atoms.splitlines())}\n\n{atoms}\n")
    (folder / "run.inp").write_text(
        f"[INPUT]\natomfile = atoms.xyz\n[OUTPUT]\nresultfile = result.json\n[SYSTEM]\nbox = {edge}\n[ELECTRONS]\n"
        f"cutoff = 70\n{SPLINES if layer == 'splines' else ''}[PARALLEL]\n{LAYERS[layer]}\n[MINIMIZE]\n"
        f"tolerance = 1e4\n[DYNAMICS]\nmethod = NONORTHOGONAL\n"
        f"timestep = 0.01\noverlap_tolerance = 1\nnsteps = {steps}\n")
    call = [str(executable()), "run", "run.inp"]
    if ranks > 1:
        call = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *call]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, env=environment)
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
    benchmark.parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    benchmark.parser.add_argument("--rounds", type=int, default=3)
    benchmark.parser.add_argument("--steps", type=int, default=4)
    given = benchmark.start(quick={"waters": [1], "ranks": [2], "rounds": 1, "steps": 1})
    grains = ("whole states, objects of the default grain, of a fine one (sGrainSize 8, orthoGrainSize 4, numChunks 2, "
              "rhoRsubplanes 2) and with splines")
    times = benchmark.table("times", f"Processor time of a step on all ranks (s): {grains}", waters="d", ranks="d",
                            states=".2f", objects=".2f", ratio=".2f", fine=".2f", ratio_fine=".2f", splines=".2f")
    sent = benchmark.table("messages", f"Messages between ranks in a step: {grains}", waters="d", ranks="d", states="d",
                           objects="d", fine="d", splines="d")
    for n in given.waters:
        for ranks in given.ranks:
            step: dict[str, list[float]] = {name: [] for name in LAYERS}
            counts = {}
            with tempfile.TemporaryDirectory() as name:
                for _ in range(given.rounds):
                    for layer in LAYERS:
                        (short, first), (long, last) = (run(Path(name), steps, n, ranks, layer)
                                                        for steps in (1, 1 + given.steps))
                        step[layer].append((long - short) / given.steps)
                        counts[layer] = (messages(last) - messages(first)) // given.steps
            whole, objects, fine, splines = step.values()
            times.row(n, ranks, spread(whole), spread(objects), ratios(objects, whole), spread(fine),
                      ratios(fine, whole), spread(splines))
            if ranks > 1:
                sent.row(n, ranks, *counts.values())
    benchmark.finish()


if __name__ == "__main__":
    main()
