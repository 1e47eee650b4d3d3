"""The beginning of the bundled yeast locus from FASTA through the protocol `demo`: time, memory and energy by phase.

5 kb have 28 nucleosomes, 26 kb have 148. Settings are those of the example, but that the fibre is folded into walls
about itself and not into the sphere of the whole locus. Stages and phases are the commands that users run, each in a
process of its own. The energy is the potential energy of the last step of a phase over atoms.
"""

import json
import shutil
import sys
from pathlib import Path

import yaml
from common.command import Benchmark
from common.shortened import shorten
from common.timing import measured

from chromabuild.simulate.energy_log import EnergyLog

STAGES = ("scaffold", "build", "clash", "solvate", "topology")
COMMAND = (sys.executable, "-P", "-m", "chromabuild.cli")


def main() -> None:
    """Each length in turn."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--base-pairs", type=int, nargs="+", default=[5000, 26000], help="of the beginning of the locus")
    add("--threads", type=int, default=2)
    add("--work", type=Path, default=Path("phases"), help="folder of the builds, which are removed")
    given = benchmark.start(quick={"base_pairs": [1000]})
    table = benchmark.table("phases", f"Yeast, chrXIII: stages, phases of the protocol demo, {given.threads} threads",
                            **{"base pairs": ",", "nucleosomes": "", "atoms": ",", "stage or phase": "",
                               "wall time, s": ".0f", "CPU time, s": ".0f", "memory of a process, GB": ".2f",
                               "energy, kcal/mol/atom": ".3f", "temperature, K": ".1f"})
    for base_pairs in given.base_pairs:
        folder = given.work.resolve() / str(base_pairs)
        measured([*COMMAND, "init", "--example", "chrXIII", "--force", begun(folder)], folder / "init.log")
        shorten(folder, base_pairs)
        settings = yaml.safe_load((folder / "locus.yaml").read_text())
        settings["scaffold"]["confinement_radius"] = None
        settings["simulate"]["protocol"] = "demo"
        if given.quick:
            settings["locus"]["contacts"] = None
        (folder / "locus.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        dyads = [line for line in next(folder.glob("*.dyads.bed")).read_text().splitlines() if not line.startswith("#")]
        results = folder / "results"

        def run(*words: str, folder: Path = folder) -> tuple[float, float, float]:
            used = measured([*COMMAND, *words, "--threads", given.threads], folder / f"{words[-1]}.log", folder=folder,
                            threads=given.threads)
            return used.wall, used.cpu, used.memory

        took = {f"`chromabuild {stage}`": run(stage) for stage in STAGES}
        atoms = json.loads((results / "shards" / "manifest.json").read_text())["atoms"]
        for name, usage in took.items():
            table.row(base_pairs, len(dyads), atoms, name, *usage, None, None)
        for name in ("minimise", "dynamics"):
            usage = run("run", "--phase", name)
            log = EnergyLog.read(next((results / "md").glob(f"*-{name}.log")))
            table.row(base_pairs, len(dyads), atoms, f"phase {name}", *usage, log["POTENTIAL_ENE"][-1] / atoms,
                      log["TEMPERATURE"][-1] if name == "dynamics" else None)
        benchmark.keep()
        shutil.rmtree(folder)
    benchmark.finish()


def begun(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    main()
