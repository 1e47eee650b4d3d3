"""Write the tables of the documentation, docs/tables/BENCHMARK-TABLE.md, from the newest results of each benchmark.

    python benchmarks/tables.py [--check]

A page includes a table by its file. The caption names the machine, the date, the versions and the script. With --check
nothing is written: the exit code is 1 when a file of docs/tables is not what the results give.
"""

import argparse
import sys
from pathlib import Path

from common.results import Result, newest

BENCHMARKS = Path(__file__).resolve().parent
TABLES = BENCHMARKS.parent / "docs" / "tables"


def page(benchmark: str, table: str, result: Result) -> str:
    """The text of one file."""
    made = result.tables[table]
    return f"**{made.title}**\n\n{made.markdown()}\n{caption(benchmark, result)}\n"


def caption(benchmark: str, result: Result) -> str:
    """Machine, date, versions of the programs, and the script."""
    machine = result.machine
    where = [machine.get("processor"), machine.get("instruction_set"), machine.get("note")]
    if machine.get("processor") and machine.get("cores"):
        where.insert(2, f"{machine['cores']} cores")
    versions = [f"{name} {version}" for name, version in result.versions.items() if name != "Python"]
    sentences = ["; ".join((", ".join(filter(None, where)), result.date, ", ".join(versions)))]
    script = BENCHMARKS / f"{benchmark}.py"
    if script.exists():
        sentences.append(f"Script: `benchmarks/{script.name}`")
    if result.source != "measured":
        sentences.append(f"Source: {result.source}")
    return "*" + ". ".join(sentences) + ".*"


def pages() -> dict[str, str]:
    """The text of every file by its name."""
    return {f"{benchmark}-{table}.md": page(benchmark, table, result)
            for (benchmark, table), result in newest().items()}


def main() -> None:
    """Write, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    given = parser.parse_args()
    wanted = pages()
    there = {path.name: path.read_text() for path in TABLES.glob("*.md")}
    if given.check:
        wrong = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
        if wrong:
            sys.exit(f"docs/tables is not what the results give ({', '.join(wrong)}): run python benchmarks/tables.py")
        return
    TABLES.mkdir(exist_ok=True)
    for name in there.keys() - wanted.keys():
        (TABLES / name).unlink()
    for name, text in wanted.items():
        (TABLES / name).write_text(text)
    print(f"{len(wanted)} tables in {TABLES}")


if __name__ == "__main__":
    main()
