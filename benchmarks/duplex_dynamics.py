"""Twenty base pairs by the protocol `standard` in chromamd and in OpenMM: density, shape of the DNA, drift.

d(GCGATCAATTCGATGACTGC) in a box of 31,887 atoms, OL15, TIP3P, 0.15 mol/L; 1 ns of production at
4 fs, a frame of the solute each 2 ps. Both engines build the same system and run all phases of the protocol; what is
done in WORK is not done again, so that the two may run on different machines. chromamd scales velocities and the box
(Bussi), OpenMM has Langevin dynamics and Monte Carlo moves.

Base pairs and steps: the two at either end are left out, where the protocol holds hydrogen bonds. Means are over frames
and places; a deviation is the root of the mean variance at a place. Errors are block standard errors of the frames'
means, or follow from the correlation of a series too slow for five blocks; a difference is set over the error of both.
Phosphates change between BI and BII, and backbones between their rotamers, as slowly as a run is long, of which blocks
know nothing: of several runs with other ions and velocities (--replicas) an error is that of their mean by their
spread, where that is the larger one.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import yaml
from common.command import Benchmark

from chromabuild.analysis.averages import averages, inefficiencies
from chromabuild.analysis.duplex import PAIR_NAMES, STEP_NAMES
from chromabuild.base.constants import BOLTZMANN
from chromabuild.base.phases import shipped_phases
from chromabuild.simulate.energy_log import EnergyLog

SEQUENCE = "GCGATCAATTCGATGACTGC"
BOX = [92.0, 60.0, 60.0]
TEMPERATURE = 310.0
ENDS = 2
"""Base pairs and steps at either end that do not count."""
ENGINES = ("chromamd", "openmm")
FRAME_STEPS = 500


def phases_of(length: str, frame_steps: int, steps: int | None) -> list[dict]:
    """Those of the protocol with another length of production; ``steps``: all of them so short, to try the script."""
    phases = [phase.model_dump(mode="json", exclude_defaults=True)
              for phase in shipped_phases("standard", TEMPERATURE)]
    phases[-1] |= {"length": length, "output_period": frame_steps, "trajectory_period": frame_steps}
    if steps:
        short = {"steps": steps, "length": None, "output_period": steps // 20, "trajectory_period": steps // 20}
        phases = [phase | (short if phase.get("kind") != "minimise" else {"steps": steps}) for phase in phases]
    return phases


def project(work: Path, engine: str, replica: int, length: str, steps: int | None) -> Path:
    """Settings of a run of an engine, from 1; its folder of results."""
    folder = work / (engine if replica == 1 else f"{engine}_{replica}")
    settings = folder / "locus.yaml"
    if not settings.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "duplex.fa").write_text(f">duplex\n{SEQUENCE}\n")
        command(folder, "init", ".", "--fasta", "duplex.fa")
        given = yaml.safe_load(settings.read_text())
        given["seed"] = replica
        phases = phases_of(length, FRAME_STEPS, steps)
        given["solvate"]["box"] = BOX
        given["dynamics"] |= {"engine": engine, "trajectory_selection": "solute"}
        given["simulate"] |= {"protocol": None, "temperature": TEMPERATURE, "phases": phases}
        settings.write_text(yaml.safe_dump(given, sort_keys=False))
    return folder / "results"


def command(folder: Path, *arguments: str) -> None:
    """A command of chromabuild in a folder."""
    subprocess.run([sys.executable, "-P", "-m", "chromabuild.cli", *arguments], cwd=folder, check=True)


def ran_on(results: Path) -> str:
    """What the log of production says of program and device."""
    first = next((results / "md").glob("*-produce.log")).read_text().partition("\n")[0]
    return first.rpartition(":")[0] if first.startswith("OpenMM") else "chromamd"


def series(results: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    """Name, unit and values (frames, places) of the twelve parameters."""
    with np.load(results / "analysis" / "dna_frames.npz") as frames:
        for kind, names in (("pair", PAIR_NAMES), ("step", STEP_NAMES)):
            for k, name in enumerate(names):
                yield name, "angstrom" if k < 3 else "degree", frames[kind][:, ENDS:-ENDS, k]


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Of a series (frames,), with its block error, or with that of its correlation where it is too slow for blocks."""
    found = averages(values[:, None])
    by_blocks = float(found.error[0])
    if np.isfinite(by_blocks):
        return float(found.mean[0]), by_blocks
    slowness = inefficiencies(values[:, None])[0]
    return float(found.mean[0]), float(found.deviation[0] * np.sqrt(slowness / len(values)))


def mean_and_deviation(values: np.ndarray) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and deviation of values (frames, places), each with its block error."""
    variance, error = mean_and_error(((values - values.mean(axis=0)) ** 2).mean(axis=1))
    deviation = float(np.sqrt(variance))
    return mean_and_error(values.mean(axis=1)), (deviation, error / (2 * deviation))


def of_all(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Mean of the means of runs, and the larger error: by theirs, or by their spread."""
    means, errors = np.transpose(values)
    spread = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
    return float(means.mean()), max(float(np.hypot.reduce(errors) / len(means)), float(spread))


def cell(value: tuple[float, float]) -> dict[str, float]:
    """A value with its error."""
    return {"value": value[0], "error": value[1]}


def apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Difference over its error."""
    return abs(one[0] - other[0]) / float(np.hypot(one[1], other[1]))


def drift_of(log: EnergyLog, atoms: int) -> tuple[float, float]:
    """Slope of the conserved quantity, kT/ns/atom, with its error from blocks of the rest."""
    time, energy = log["TIME"] / 1000, log.conserved / (BOLTZMANN * TEMPERATURE * atoms)
    design = np.column_stack([time - time.mean(), np.ones_like(time)])
    slope, level = np.linalg.lstsq(design, energy, rcond=None)[0]
    rest = energy - design @ (slope, level)
    return float(slope), mean_and_error(rest)[1] * np.sqrt(12) / np.ptp(time)


def main() -> None:
    """Run what is not done yet, and compare."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--run", nargs="*", choices=ENGINES, default=list(ENGINES), help="engines that run here (both)")
    add("--until", metavar="PHASE", help="the last phase that is run; nothing is compared")
    add("--replicas", type=int, default=1, help="runs of each engine (1)")
    add("--length", default="1 ns", help="of production (1 ns)")
    add("--steps", type=int, help="of every phase, to try the script")
    add("--threads", type=int, default=2)
    add("--work", type=Path, default=Path("build/duplex_dynamics"), help="folder of the runs")
    given = benchmark.start(quick={"steps": 20}, packages=("openmm",))
    runs = {engine: [project(given.work.resolve(), engine, k, given.length, given.steps)
                     for k in range(1, given.replicas + 1)] for engine in ENGINES}
    threads = ["--threads", str(given.threads)]
    for home in (results.parent for engine in given.run for results in runs[engine]):
        command(home, "all", "--until", "topology", *threads)
        for phase in yaml.safe_load((home / "locus.yaml").read_text())["simulate"]["phases"]:
            command(home, "run", "--phase", phase["name"], *threads)
            if phase["name"] == given.until:
                break
    if given.until:
        return
    for results in (one for of_engine in runs.values() for one in of_engine):
        command(results.parent, "analyse", "results", "--measure", "dna", *threads)
    benchmark.machine["device"] = ran_on(runs["openmm"][0])
    logs = {engine: [EnergyLog.read(next((one / "md").glob("*-produce.log"))) for one in of_engine]
            for engine, of_engine in runs.items()}
    table = benchmark.table("parameters", "Base-pair and step parameters of a duplex, and the difference of "
                            "chromamd and OpenMM over its error", quantity="", unit="", mean_chromamd=".3f",
                            mean_OpenMM=".3f", apart=".1f", deviation_chromamd=".3f", deviation_OpenMM=".3f",
                            apart_=".1f")
    found = {engine: [[mean_and_deviation(values) for _, _, values in series(one)] for one in of_engine]
             for engine, of_engine in runs.items()}
    for k, (name, unit, _) in enumerate(series(runs["chromamd"][0])):
        (mean, deviation), (mean_there, deviation_there) = (
            [of_all([one[k][which] for one in found[engine]]) for which in (0, 1)] for engine in ENGINES)
        table.row(name, unit, cell(mean), cell(mean_there), apart(mean, mean_there), cell(deviation),
                  cell(deviation_there), apart(deviation, deviation_there))
    whole = benchmark.table("system", "The same runs: density, temperature and drift of the conserved quantity",
                            quantity="", unit="", chromamd=".5f", OpenMM=".5f", apart=".1f")
    for name, unit in (("DENSITY", "g/cm³"), ("TEMPERATURE", "K")):
        values = [of_all([mean_and_error(log[name]) for log in of_engine]) for of_engine in logs.values()]
        whole.row(name.lower(), unit, *map(cell, values), apart(*values))
    lengths = [[log["TIME"][-1] - log["TIME"][0] for log in of_engine] for of_engine in logs.values()]
    whole.row("production", "ps", *(" + ".join(f"{length:.0f}" for length in one) for one in lengths), None)
    drifts = [drift_of(log, yaml.safe_load((one / "shards" / "manifest.json").read_text())["atoms"])
              for log, one in zip(logs["chromamd"], runs["chromamd"], strict=True)]
    whole.row("drift", "kT/ns per atom", cell(of_all(drifts)), None, None)
    benchmark.finish()


if __name__ == "__main__":
    main()
