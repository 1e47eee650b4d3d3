"""The worked cases of the page on contacts: plane waves beside the force field.

Mg2+ with five waters at a phosphate, pulled off, and the methyl group of 5-methylcytosine, turned about its bond: the
commands of docs/how-to/check-a-contact.md with the files there. Points that --work holds are not computed again;
processor time and memory are those of the points that are, and are left out where all were there.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from common.command import Benchmark

FILES = Path(__file__).resolve().parents[1] / "docs/tutorials/files"
CASES = {
    "magnesium": ["magnesium_phosphate.pdb", "--contact", "resname MG", "resid 2 and name OP1", "--radius", "2.5",
                  "--cutoff", "70", "--scan", "1.8,1.9,2.1,2.3,2.6,3.2"],
    "methylcytosine": ["methylcytosine.pdb", "--force-field", "charmm36m", "--torsion", "resname 5CM and name C4",
                       "resname 5CM and name C5", "resname 5CM and name C5A", "resname 5CM and name H5A1",
                       "--radius", "0", "--scan", "0,30,60"],
}


def checked(name: str, folder: Path, threads: int) -> tuple[dict, dict | None]:
    """What `chromabuild qm check` finds, and what it cost: points, processor seconds a point, gigabytes; None where
    every point was there. A case that was stopped goes on with what it had cost so far."""
    def done() -> int:
        return len(list((folder / "points").glob("*.json")))

    kept = folder / "cost.json"
    cost = json.loads(kept.read_text()) if kept.exists() else None
    points = done()
    file, *options = CASES[name]
    call = subprocess.Popen(["chromabuild", "qm", "check", FILES / file, *options, "-o", folder, "--json", "--threads",
                             str(threads)], stdout=subprocess.PIPE, text=True)
    found = call.stdout.read()
    # Of this command and what it started alone: getrusage would keep the memory of the largest case for all.
    _, status, used = os.wait4(call.pid, 0)
    call.returncode = os.waitstatus_to_exitcode(status)
    if new := done() - points:
        earlier = cost or {"points": 0, "seconds": 0.0, "gigabytes": 0.0}
        cost = {"points": earlier["points"] + new, "seconds": earlier["seconds"] + used.ru_utime + used.ru_stime,
                "gigabytes": max(earlier["gigabytes"], used.ru_maxrss * 1024e-9)}
        kept.write_text(json.dumps(cost))
    if call.returncode != 0:
        sys.exit(f"chromabuild qm check ended with code {call.returncode}")
    return json.loads(found), cost


def main() -> None:
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--cases", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}")
    benchmark.parser.add_argument("--work", type=Path, default=Path("contact_checks"), metavar="FOLDER")
    benchmark.parser.add_argument("--threads", type=int, default=1)
    given = benchmark.start(quick={"cases": []})
    lowest = benchmark.table("minima", "Where plane waves and the force field are lowest (angstrom, degree), and the "
                             "deviation of the curves (kcal/mol)", case="", force_field="", atoms="d", charge="d",
                             plane_waves=".2f", field=".2f", deviation=".2f")
    scan = benchmark.table("scans", "Energies along the scans (kcal/mol)", case="", value=".2f", plane_waves=".2f",
                           force_field=".2f")
    forces = benchmark.table("forces", "Net forces on pieces, as built (kcal/mol/angstrom)", case="", piece="",
                             charge="d", plane_waves=".1f", force_field=".1f", left=".1f")
    spent = benchmark.table("cost", "Cost of a point", case="", atoms="d", cutoff_Ry=".0f", points="d",
                            processor_time_s=".0f", memory_GB=".1f")
    for name in given.cases:
        found, cost = checked(name, given.work / name, given.threads)
        lowest.row(name, found["force_field_name"], found["atoms"], found["charge"], found["minimum_plane_waves"],
                   found["minimum_force_field"], found["deviation"])
        for row in zip(found["value"], found["plane_waves"], found["force_field"], strict=True):
            scan.row(name, *row)
        for piece in found["pieces"]:
            waves, field = piece["plane_waves"], piece["force_field"]
            forces.row(name, piece["name"], piece["charge"], length(waves), length(field),
                       length([a - b for a, b in zip(waves, field, strict=True)]))
        if cost:
            spent.row(name, found["atoms"], found["cutoff"], cost["points"], cost["seconds"] / cost["points"],
                      cost["gigabytes"])
    benchmark.finish()


def length(vector: list[float]) -> float:
    return sum(x * x for x in vector) ** 0.5


if __name__ == "__main__":
    main()
