"""Slurm on two nodes: the same bits however data travel between them, and a node that dies.

Two network namespaces of this machine are the nodes, so that messages between them go by TCP, and shared memory ends
at their border (``common/slurm.py``). Dynamics of a duplex in water in the deterministic mode run on four ranks, two a
node, started by srun and by mpirun: every transport, halo pattern, FFT scheme, ranks for reciprocal space, overlap and
the midpoint method. Restart files and energies must be those of four ranks on one node.
Then `workflows/slurm/dynamics.sbatch` runs a project with a rank on each node, and the second node dies at a random
moment: it falls silent, as when its power fails. When it is back, Slurm starts the job again, and the dynamics go on
from the last checkpoint. Trajectory and energies must be those of a run that was left alone. In other trials the time
of the job is over, and it submits itself. The exit code is 1 when anything differs.
"""

import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml
from common import engine, slurm
from common.command import Benchmark
from common.solutes import duplex

from chromabuild.base.settings import SolvateSection
from chromabuild.forcefield.assign import make_topology
from chromabuild.pipeline.workflow import workflow_folder
from chromabuild.simulate import chromamd
from chromabuild.solvate import solvate

RANKS = 4
ENERGY = {"cutoffdist": 8, "switchdist": 8, "pairlistdist": 9, "deterministic": True}
WAYS: dict[str, dict[str, object]] = {
    **{f"{transport}, {pattern}": {"transport": transport, "pattern": pattern}
       for transport in ("PERSISTENT", "NEIGHBOURHOOD", "ONE_SIDED", "SHARED")
       for pattern in ("HALF", "FULL", "STAGED")},
    "messages not combined": {"transport": "PERSISTENT", "combine_messages": False},
    **{f"FFT {scheme}": {"fft": scheme} for scheme in ("SLAB", "PENCIL", "1D", "2D", "COLUMNS")},
    "overlap": {"overlap": True}, "overlap, SHARED": {"overlap": True, "transport": "SHARED"},
    "a torus of two nodes": {"torus": "2"}, "2 ranks for reciprocal space": {"pme_ranks": 2},
    "2 ranks for reciprocal space, overlap": {"pme_ranks": 2, "overlap": True},
    "midpoint": {"method": "MIDPOINT"}}
"""Section [COMM] of each way that data can travel."""
SCRIPT = workflow_folder() / "slurm" / "dynamics.sbatch"
INTERVAL = 5
"""Seconds between checkpoints."""
LOG = Path("results", "md", "02-dynamics.log")
PHASES = [{"name": "minimise", "kind": "minimise", "steps": 20},
          {"name": "dynamics", "steps": 300, "timestep": 2, "output_period": 10, "trajectory_period": 20}]


def solvated(folder: Path) -> tuple[Path, Path]:
    """Twelve base pairs in water: topology and bricks."""
    solute = duplex(12)
    manifest = solvate(solute, SolvateSection(box=(48.0, 48.0, 64.0)), 1, 1, folder / "shards")
    topology = make_topology(solute, manifest.counts, net_charge=manifest.net_charge)
    topology.write(folder / "topology.h5")
    return folder / "topology.h5", folder / "shards" / "bricks.txt"


def relaxed(folder: Path, bricks: Path) -> dict[int, Path]:
    """Restart files after a short minimisation, for two and four domains."""
    engine.set_up(folder, folder / "built_().rst", shards=bricks, energy=ENERGY)
    engine.run(folder, folder / "built_().rst", {"ENERGY": ENERGY, "MINIMIZE": {"method": "SD", "nsteps": 100}},
               folder / "low_().rst")
    starts = {}
    for ranks in (2, 4):
        starts[ranks] = folder / f"start{ranks}_().rst"
        control = folder / "spread.inp"
        chromamd.write_control(control, {"INPUT": {"topologyfile": folder / "topology.h5",
                                                   "rstfile": folder / "low_().rst"},
                                         "OUTPUT": {"rstfile": starts[ranks]}, "ENERGY": ENERGY})
        subprocess.run([*chromamd.launch_command(ranks), "setup", str(control)], check=True, capture_output=True)
    return starts


def dynamics(folder: Path, topology: Path, start: Path, comm: dict[str, object], steps: int) -> Path:
    """A control file, alone in a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    chromamd.write_control(folder / "run.inp", {
        "INPUT": {"topologyfile": topology, "rstfile": start},
        "OUTPUT": {"rstfile": folder / "end_().rst", "logfile": folder / "run.log", "dcdfile": folder / "frames.dcd"},
        "ENERGY": ENERGY, "CONSTRAINTS": {"rigid_bond": True}, "COMM": comm,
        "ENSEMBLE": {"ensemble": "NPT", "tpcontrol": "LANGEVIN", "temperature": 300, "barostat": "MTK"},
        "DYNAMICS": {"nsteps": steps, "timestep": 0.002, "eneout_period": 5, "crdout_period": 5, "iseed": 3}})
    return folder / "run.inp"


def outcome(folder: Path) -> tuple[list[str], bytes]:
    """Rows of the energy table, and the trajectory."""
    rows = [line for line in (folder / "run.log").read_text().splitlines() if line.startswith("INFO:")]
    return rows, (folder / "frames.dcd").read_bytes()


def same_bits(benchmark: Benchmark, cluster: slurm.Cluster, folder: Path, steps: int, ways: list[str]) -> bool:
    """The table of ways; whether all bits were those of one node."""
    topology, bricks = solvated(folder)
    starts = relaxed(folder, bricks)
    program = chromamd.executable()
    alone = folder / "alone"
    inp = dynamics(alone, topology, starts[RANKS], {}, steps)
    cluster.run("mpirun", "--oversubscribe", "--bind-to", "none", "-np", RANKS, program, "run", inp)
    reference = outcome(alone)
    atoms = len(engine.restart_positions(folder / "low_().rst"))
    table = benchmark.table(
        "bits", f"{atoms:,} atoms, {steps} steps on {RANKS} ranks of two nodes against one node, and time of a step",
        way="", **{"bits by srun": "", "bits by mpirun": "", "a step by srun, ms": ".0f"})
    well = True
    for way in ways:
        found, seconds = [], 0.0
        start = starts[RANKS - int(WAYS[way].get("pme_ranks", 0))]
        mpirun = ["mpirun", "--map-by", "node", "--oversubscribe", "--bind-to", "none", "-np", RANKS]
        for launch in (["srun", "-N2", "-n", RANKS], ["salloc", "-Q", "-N2", "-n", RANKS, *mpirun]):
            place = folder / "way"
            inp = dynamics(place, topology, start, WAYS[way], steps)
            cluster.run(*launch, program, "run", inp)
            found.append("same" if outcome(place) == reference else "DIFFERENT")
            seconds = seconds or engine.parts_of((place / "run.log").read_text(), ["total"])["total"] / steps
        table.row(way, *found, 1000 * seconds)
        well &= found == ["same", "same"]
    return well


def project(folder: Path) -> None:
    """A nucleosome in water in a folder of its own, ready for `chromabuild run` on two ranks."""
    folder.mkdir()
    bases = np.random.Generator(np.random.Philox(key=1)).choice(list("ACGT"), 177)
    (folder / "locus.fa").write_text(">one\n" + "".join(bases) + "\n")
    (folder / "dyads.bed").write_text("one\t88\t89\n")
    settings = {
        "locus": {"fasta": "locus.fa", "nucleosomes": "dyads.bed"}, "solvate": {"padding": 6},
        "dynamics": {"cutoff": 8, "pairlist_buffer": 1, "deterministic": True, "checkpoint": f"{INTERVAL} s"},
        "simulate": {"protocol": None, "phases": PHASES}}
    (folder / "locus.yaml").write_text(yaml.safe_dump(settings))
    subprocess.run(["chromabuild", "all", "--until", "topology", "--threads", "2"], cwd=folder, check=True,
                   capture_output=True)


def submit(cluster: slurm.Cluster, folder: Path, minutes: int = 60, notice: int = 30) -> None:
    """The dynamics of a project as a job of one task on each node."""
    cluster.run("sbatch", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=1", f"--time={minutes}",
                f"--signal=B:USR1@{notice}", SCRIPT, cwd=folder)


def last_step(folder: Path) -> int:
    """Of the energy table of the dynamics so far; 0 before there is one."""
    log = folder / LOG
    rows = re.findall(r"^INFO: +(\d+)", log.read_text(), re.MULTILINE) if log.exists() else []
    return int(rows[-1]) if rows else 0


def finished(cluster: slurm.Cluster, folder: Path, seconds: float = 1800) -> None:
    """Wait until no job is left. Raises RuntimeError when that takes too long."""
    end = time.monotonic() + seconds
    while cluster.run("squeue", "-h", timeout=60).stdout.strip():
        if time.monotonic() > end:
            raise RuntimeError(f"the jobs of {folder} do not end:\n{(folder / 'chromabuild.log').read_text()[-2000:]}")
        time.sleep(1)


def stopped(benchmark: Benchmark, cluster: slurm.Cluster, root: Path, trials: int, rng: random.Random) -> bool:
    """The table of trials; whether all ended with the bits of the run that was left alone."""
    project(root / "project")
    alone = root / "alone"
    shutil.copytree(root / "project", alone)
    submit(cluster, alone)
    finished(cluster, alone)
    reference = energies_and_frames(alone)
    steps = PHASES[-1]["steps"]
    step = engine.parts_of((alone / LOG).read_text(), ["total"])["total"] / steps
    table = benchmark.table(
        "stopped", f"A nucleosome in water, a rank on each node, {steps} steps of {step:.2f} s, checkpoints every "
        f"{INTERVAL} s", **{"what happened": "", "at step": "", "went on from step": "", "computed again, s": ".1f",
                            "noticed after, s": "", "result": ""})
    well = True
    for k in range(trials):
        folder = root / f"trial{k}"
        shutil.copytree(root / "project", folder)
        dies, noticed = k % 2 == 0, "-"
        submit(cluster, folder, minutes=60 if dies else 1)
        if dies:
            wanted = rng.randrange(len(reference[0]) // 4, len(reference[0]) - 4)
            while last_step(folder) < 10 * wanted:
                time.sleep(0.1)
            at = last_step(folder)
            begin = time.monotonic()
            cluster.nodes["node2"].lose_power()
            cluster.wait_for({"down"}, ["node2"])
            noticed = f"{time.monotonic() - begin:.0f}"
            cluster.revive("node2")
        finished(cluster, folder)
        steps_on = [int(word) for word in re.findall(r"continued from the checkpoint at step +(\d+)",
                                                     (folder / LOG).read_text())]
        found = "same bits" if energies_and_frames(folder) == reference else "DIFFERENT"
        table.row("the second node dies" if dies else "the time of the job is over", at if dies else steps_on[-1],
                  steps_on[-1], (at - steps_on[-1]) * step if dies else 0.0, noticed, found)
        well &= found == "same bits"
        shutil.rmtree(folder)
    return well


def energies_and_frames(folder: Path) -> tuple[list[str], bytes]:
    """Rows of the energy table and frames of the dynamics."""
    log = folder / LOG
    rows = [line for line in log.read_text().splitlines() if line.startswith("INFO:")]
    return rows, log.with_suffix(".dcd").read_bytes()


def main() -> None:
    """All ways, then the trials."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--steps", type=int, default=20, help="of each way")
    add("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    add("--trials", type=int, default=6)
    add("--seed", type=int, default=1)
    given = benchmark.start(quick={"ways": ["PERSISTENT, HALF", "SHARED, FULL"], "steps": 5, "trials": 0})
    reason = slurm.missing()
    if reason:
        sys.exit(f"two nodes cannot be had: {reason}")
    benchmark.peer("Slurm", slurm.version())
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "bits").mkdir()
        with slurm.two_nodes(root / "slurm") as cluster:
            well = same_bits(benchmark, cluster, root / "bits", given.steps, given.ways)
            if given.trials:
                well &= stopped(benchmark, cluster, root, given.trials, random.Random(given.seed))
    benchmark.finish()
    sys.exit(not well)


if __name__ == "__main__":
    main()
