"""The command line of a benchmark: ``--quick``, ``--save``, what is printed first, and the file at the end."""

import argparse
import datetime
import sys
from pathlib import Path

from common.machine import machine, slug, versions
from common.results import Result, Table


class Benchmark:
    """One run of a benchmark: its options, its tables, and where they go.

        benchmark = Benchmark(__doc__)
        benchmark.parser.add_argument("--rounds", type=int, default=3)
        given = benchmark.start(quick={"rounds": 1}, peers={"GROMACS": "2022.5"})
        table = benchmark.table("step", "Time per step (ms)", system="", time=".1f")
        table.row("w30k", 65.0)
        benchmark.finish()
    """

    def __init__(self, documentation: str, computed: str = "") -> None:
        """The first line of ``documentation`` is the purpose, the rest is shown after the options. ``computed`` says
        what stands in place of a machine where the results are the same on any.
        """
        self.name = Path(sys.argv[0]).stem
        self._computed = computed
        purpose, _, details = documentation.partition("\n")
        self.parser = argparse.ArgumentParser(description=purpose, epilog=details.strip(),
                                              formatter_class=argparse.RawDescriptionHelpFormatter)
        self.parser.add_argument("--quick", action="store_true", help="small sizes, less than a minute: does it work?")
        self.parser.add_argument("--save", action="store_true", help="keep the tables under benchmarks/results")
        self.parser.add_argument("--machine", metavar="NAME", help="name of this machine in the name of that file")
        self._tables: dict[str, Table] = {}

    def start(self, quick: dict, packages: tuple[str, ...] = ()) -> argparse.Namespace:
        """Parse, replace what ``quick`` names if asked, print machine and versions (of Python ``packages`` too)."""
        self._given = self.parser.parse_args()
        if self._given.quick:
            vars(self._given).update(quick)
        self.machine = {"note": self._computed} if self._computed else machine()
        self._versions = versions(*packages)
        print(", ".join(f"{name} {value}" for name, value in self.machine.items()))
        print(", ".join(f"{name} {value}" for name, value in self._versions.items()), flush=True)
        return self._given

    def peer(self, name: str, version: str) -> None:
        """Note the version of a peer."""
        self._versions[name] = version
        print(f"{name} {version}", flush=True)

    def table(self, name: str, title: str, **columns: str) -> Table:
        """A table of this benchmark; see ``Table.of``."""
        print(title, flush=True)
        self._tables[name] = Table.of(title, **columns)
        return self._tables[name]

    def keep(self) -> str | None:
        """Write what the tables hold so far, if asked; gives the name of the file."""
        if not self._given.save:
            return None
        if self._given.quick:
            sys.exit("results of --quick are not kept: run without it to --save")
        settings = {key: _shown(value) for key, value in vars(self._given).items()
                    if key not in ("quick", "save", "machine", "work") and value is not None}
        result = Result(self.name, datetime.date.today().isoformat(), self.machine, self._versions, settings,
                        {name: table for name, table in self._tables.items() if table.rows})
        return str(result.write(self._given.machine or slug(self.machine)))

    def finish(self) -> None:
        """Print the tables whole; write them if asked."""
        for table in self._tables.values():
            print(f"\n{table.title}\n\n{table.markdown()}", end="")
        kept = self.keep()
        if kept:
            print(f"\nkept in {kept}")


def _shown(value: object) -> object:
    """An option as the results keep it: of a file elsewhere on this machine only the name."""
    if isinstance(value, Path):
        return value.name if value.is_absolute() else str(value)
    return value
