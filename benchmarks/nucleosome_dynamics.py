"""A nucleosome on 177 base pairs by the protocol `standard`: folds of the histones, base pairs, density.

1x601:177, ff14SB, OL15, TIP3P, 0.15 mol/L, a frame of the solute each 4 ps of production. Every phase of dynamics is
analysed. The RMSD is that of C-alpha atoms in the histones' folds, against PDB 1KX5; a base pair is open when it has
lost its hydrogen bonds. What is done in WORK is not done again; the analysis alone follows with --analyse.
"""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml
from common.command import Benchmark
from duplex_dynamics import TEMPERATURE, command, phases_of, ran_on

from chromabuild.simulate.energy_log import EnergyLog

FRAME_STEPS = 1000


def project(work: Path, engine: str, length: str, steps: int | None) -> Path:
    """Settings of the run, in its folder."""
    settings = work / "locus.yaml"
    if not settings.exists():
        subprocess.run([sys.executable, "-P", "-m", "chromabuild.cli", "init", str(work), "--array", "1x601:177"],
                       check=True)
        given = yaml.safe_load(settings.read_text())
        phases = phases_of(length, FRAME_STEPS, steps)
        given["dynamics"] |= {"engine": engine, "trajectory_selection": "solute"}
        given["simulate"] |= {"protocol": None, "temperature": TEMPERATURE, "phases": phases}
        settings.write_text(yaml.safe_dump(given, sort_keys=False))
    return work


def columns(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Columns of a table of the analysis."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in names}


def analysed(folder: Path, phase: dict, number: int) -> list[list[float]]:
    """Time (ps), RMSD (angstrom), base pairs detached at both ends, open base pairs, and density (g/cm^3) of frames."""
    out = folder / "analysis" / phase["name"]
    command(folder, "analyse", "results", "--phase", phase["name"], "--measure", "dna,nucleosome", "-o", str(out))
    frames = columns(out / "nucleosome_series.csv", "time_ps", "rmsd_of_the_folds_angstrom", "detached_at_the_entry_bp",
                     "detached_at_the_exit_bp")
    time, rmsd, entry, leave = frames.values()
    opened = columns(out / "dna_series.csv", "open_pairs")["open_pairs"]
    log = EnergyLog.read(folder / "results" / "md" / f"{number:02d}-{phase['name']}.log")
    density = np.interp(time, log["TIME"], log["DENSITY"])
    return np.column_stack([time, rmsd, entry + leave, opened, density]).round(4).tolist()


def main() -> None:
    """Run, analyse, keep the numbers."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--engine", choices=("chromamd", "openmm"), default="openmm")
    add("--length", default="200 ps", help="of production (200 ps)")
    add("--steps", type=int, help="of every phase, to try the script")
    add("--analyse", action="store_true", help="run nothing")
    add("--work", type=Path, default=Path("build/nucleosome_dynamics"), help="folder of the run")
    given = benchmark.start(quick={"steps": 20, "engine": "chromamd"}, packages=("openmm",))
    folder = project(given.work.resolve(), given.engine, given.length, given.steps)
    if not given.analyse:
        command(folder, "all", "--until", "run")
    listed = folder / "results" / "md" / "phases.json"
    if not listed.exists():
        sys.exit(f"{listed} is not there: the run is not done")
    benchmark.machine["device"] = ran_on(folder / "results")
    phases = yaml.safe_load((folder / "locus.yaml").read_text())["simulate"]["phases"]
    table = benchmark.table("stability", "A nucleosome by the protocol `standard`, by phase", phase="", until_ps=".0f",
                            RMSD_of_the_folds_angstrom=".2f", largest_RMSD=".2f", open_base_pairs=".2f",
                            detached_base_pairs=".1f", density=".4f")
    series = benchmark.table("series", "The same by frame", time_ps=".0f", RMSD=".2f", detached=".0f", open_pairs=".0f",
                             density=".4f")
    for number, phase in enumerate(phases, 1):
        if phase.get("kind") == "minimise":
            continue
        rows = np.array(analysed(folder, phase, number))
        rest = rows[len(rows) // 2:].mean(axis=0)
        table.row(phase["name"], rows[-1, 0], rest[1], rows[:, 1].max(), rest[3], rest[2], rest[4])
        series.rows += rows.tolist()
    benchmark.finish()


if __name__ == "__main__":
    main()
