"""Published figures of four machines beside those of the network simulator, 30 s.

Blue Gene/L (Eleftheriou et al. 2007), QCDOC (Fang, Deng and Martyna 2007), Fugaku (Li et al. 2023) and Oakforest-PACS
(Jung et al. 2019). Some constants are fitted on some of the figures ("fitted"); the others are predicted. A band is
what the paper leaves open. --figures draws docs/images/published_PAPER.svg. With --save the record that
`chromabuild plan --machine` reads, chromabuild/scaling/data/published_tables.json, is renewed too.
"""

from pathlib import Path

from common.command import Benchmark

from chromabuild import __version__
from chromabuild.scaling.published import PAPERS, record
from chromabuild.scaling.published.comparison import report
from chromabuild.scaling.published.figures import draw

TABLES = {"eleftheriou": "eleftheriou_constants", "fang": "fang_constants", "li": "li_constants",
          "jung": "jung_constants"}
"""Paper -> table of its constants."""
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def main() -> None:
    """Compute all entries."""
    benchmark = Benchmark(__doc__, computed="network simulation, independent of the machine")
    benchmark.parser.add_argument("--papers", nargs="+", choices=TABLES, default=list(TABLES), help="only these")
    benchmark.parser.add_argument("--figures", action="store_true", help="draw docs/images/published_PAPER.svg")
    given = benchmark.start(quick={"figures": False})
    computed = record.computed(given.papers)
    for name in given.papers:
        paper, of_constants = PAPERS[name], TABLES[name]
        module, entries = paper.load(), computed[paper.table]
        table = benchmark.table(name, paper.title, figure="", unit="", published=".4g", simulated=".4g",
                                **{"deviation, %": "+.1f", "band": "", "kind": ""})
        for entry in entries:
            table.row(entry.name, entry.unit, entry.paper, entry.ours, 100 * entry.deviation, entry.band, entry.kind)
        values = benchmark.table(of_constants, f"{paper.title}: constants", constant="", value=".4g", unit="",
                                 kind="", source="")
        for constant in module.constants():
            values.row(constant.name, constant.value, constant.unit, constant.kind, constant.source)
        print("\n".join(report(module.constants(), entries, module.claims() if not given.quick else [])))
        if given.figures:
            draw(entries, module.panel(), IMAGES / f"published_{name}.svg")
    benchmark.finish()
    if given.save:
        record.write(computed, __version__)


if __name__ == "__main__":
    main()
