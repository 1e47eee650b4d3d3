"""Write the tables of the documentation, docs/tables/BENCHMARK-TABLE.md, from the newest results of each benchmark.

    python benchmarks/tables.py [--check]

A page includes a table by its file; tables that no page includes are not written. The caption names the machine, the
date, the versions and the script. With --check nothing is written: the exit code is 1 when a file of docs/tables is not
what the results give.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

from common.results import Result, newest

BENCHMARKS = Path(__file__).resolve().parent
DOCS = BENCHMARKS.parent / "docs"
TABLES = DOCS / "tables"
SIDE_BY_SIDE = ("engine_step",)
"""Benchmarks whose claim is about every kind of processor: their pages show the newest results of each."""


def page(benchmark: str, table: str, results: list[Result]) -> str:
    """The text of one file: the table of each result."""
    return "\n".join(f"{wrapped(f'**{made.title}**')}\n\n{made.markdown()}\n{wrapped(caption(benchmark, result))}\n"
                     for result in results for made in [result.tables[table]])


def wrapped(paragraph: str) -> str:
    """In lines of the documentation's width; words stay whole."""
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def caption(benchmark: str, result: Result) -> str:
    """Machine, date, versions of the programs, and the script."""
    machine = result.machine
    where = [machine.get("processor"), machine.get("instruction_set"), machine.get("note")]
    if machine.get("processor") and machine.get("cores"):
        where.insert(2, f"{machine['cores']} cores")
    where.append(machine.get("device"))
    versions = [f"{name} {version}" for name, version in result.versions.items() if name != "Python"]
    sentences = ["; ".join((", ".join(filter(None, where)), result.date, ", ".join(versions))),
                 f"Script: `benchmarks/{benchmark}.py`"]
    if result.source != "measured":
        sentences.append(f"Source: {result.source}")
    return "*" + ". ".join(sentences) + ".*"


def included() -> set[str]:
    """Names of the files that the pages include."""
    return {name for path in DOCS.glob("**/*.md") if path.parent != TABLES
            for name in re.findall(r"^```\{include\} \.\./tables/(\S+)$", path.read_text(), re.MULTILINE)}


def pages() -> dict[str, str]:
    """The text of every file by its name. Ends the program when a page includes a table that no result has."""
    results = {f"{benchmark}-{table}.md": (benchmark, table, made if benchmark in SIDE_BY_SIDE else made[:1])
               for (benchmark, table), made in newest().items()}
    names = included()
    if absent := sorted(names - results.keys()):
        sys.exit(f"no result has the tables {', '.join(absent)}, which pages of docs include")
    return {name: page(*results[name]) for name in sorted(names)}


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
