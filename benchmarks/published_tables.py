"""Published figures of four machines beside those of the network simulator, 5 s.

Blue Gene/L (Eleftheriou et al. 2007), QCDOC (Fang, Deng and Martyna 2007), Fugaku (Li et al. 2023) and Oakforest-PACS
(Jung et al. 2019). Some constants are fitted on some of the figures ("fitted"); the others are predicted. With --save
the record that `chromabuild plan --machine` reads, chromabuild/scaling/data/published_tables.json, is renewed too.
"""

from common.command import Benchmark

from chromabuild import __version__
from chromabuild.scaling.published import bluegene, fugaku, genesis, qcdoc, record
from chromabuild.scaling.published.comparison import mean_deviation


def main() -> None:
    """Compute all entries."""
    benchmark = Benchmark(__doc__, computed="network simulation, independent of the machine")
    given = benchmark.start(quick={})
    table = benchmark.table("comparison", "Published and simulated communication times", machine="", figure="",
                            unit="", published=".4g", simulated=".4g", **{"deviation, %": "+.1f", "kind": ""})
    computed = record.computed()
    for machine, entries in computed.items():
        for entry in entries:
            table.row(machine, entry.name, entry.unit, entry.paper, entry.ours, 100 * entry.deviation,
                      "fitted" if entry.fitted else "predicted")
    for protocol in ("SPI", "MPI"):
        entries = bluegene.entries(protocol)
        values = ", ".join(f"{value:.3f}" for value in bluegene.constants(protocol))
        print(f"Blue Gene/L, {protocol}: constants {values} us; mean deviation {100 * mean_deviation(entries):.1f} %, "
              f"of predicted rows {100 * mean_deviation(entry for entry in entries if not entry.fitted):.1f} %")
    edge = fugaku.edge_of(fugaku.SMALL, 768)
    print("Fugaku: intervals of uTofu and MPI {:.3f}, {:.2f} us; the busiest cable alone {:.2f} us (p2p), {:.2f} us "
          "(3-stage)".format(*fugaku.intervals(), *(fugaku.cable_time(768, p, edge) for p in ("half", "3-stage"))))
    print(f"GENESIS: {genesis.constants()[0] * 1e6:.1f} us a partner, {genesis.constants()[1] * 1e-9:.1f} GB/s a node")
    for module in (qcdoc, fugaku, genesis):
        print("\n".join(claim.line() for claim in module.claims()))
    benchmark.finish()
    if given.save:
        record.write(computed, __version__)


if __name__ == "__main__":
    main()
