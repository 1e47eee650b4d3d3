"""CPU seconds a fold of the 83 kb yeast locus, and how an ensemble of two and more agrees with Hi-C.

Each fold is a command of its own, `chromabuild ensemble N --fold K`, whose CPU seconds are counted; then one that sums
up. The map is the Hi-C of the same place at 2 kb, which restrains no fold. Folds that `--work` holds already are kept,
and have no time.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from common.command import Benchmark

CONFIG = Path(__file__).resolve().parents[1] / "workflows/config/chrXIII.yaml"
HIC = CONFIG.parent / "loci/chrXIII_36501-119500.hic_2kb.bedpe.gz"
SHOWN = ("reliability", "pearson", "stratum_adjusted", "smoothed_stratum_adjusted", "slope", "measured_slope",
         "radius_of_gyration_nm", "sedimentation_coefficient_svedberg")


def timed(*arguments: str) -> tuple[float, dict]:
    """CPU seconds of a command, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-P", "-m", "chromabuild.cli", "ensemble", *arguments, "--json"],
                          stdout=subprocess.PIPE, check=True, text=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, json.loads(done.stdout)


def main() -> None:
    """Make the folds one after the other, then sum up."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--folds", type=int, default=8)
    add("--config", type=Path, default=CONFIG)
    add("--map", type=Path, default=HIC)
    add("--set", nargs="*", default=[], metavar="SECTION.KEY=VALUE")
    add("--work", type=Path, help="output folder; a temporary one where none is named")
    given = benchmark.start(quick={"folds": 2, "config": CONFIG.with_name("demo.yaml"), "map": None,
                                   "set": ["scaffold.sweeps=5", "scaffold.choose=last"]})
    with tempfile.TemporaryDirectory() as scratch:
        settings = [f"output={given.work.resolve() if given.work else scratch}", *given.set]
        if given.map:
            settings.append(f"ensemble.map={given.map.resolve()}")
        options = [str(given.folds), "--config", str(given.config), "--threads", "1",
                   *(word for text in settings for word in ("--set", text))]
        table = benchmark.table("time", "CPU time of folds, one thread", what="", **{"CPU seconds": ",.0f"})
        spent = []
        for number in range(1, given.folds + 1):
            folder = Path(settings[0].partition("=")[2]) / "ensemble" / f"fold_{number:04d}" / "scaffold.h5"
            is_there = folder.exists()
            seconds, _ = timed(*options, "--fold", str(number))
            if not is_there:
                spent.append(seconds)
            table.row(f"fold {number}", None if is_there else seconds)
        found = {}
        if given.folds > 1:
            seconds, found = timed(*options)
            table.row("summing up", seconds)
        if spent:
            table.row("32 folds at this rate", 32 * sum(spent) / len(spent))
    if not found:
        benchmark.finish()
        return
    agreement = benchmark.table("agreement", f"{given.folds} folds beside the map", what="", value=".3f")
    for name in SHOWN:
        if isinstance(found.get(name), float):
            agreement.row(name.replace("_", " "), found[name])
    benchmark.finish()


if __name__ == "__main__":
    main()
