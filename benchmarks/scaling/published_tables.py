"""Published figures beside the simulator's: tables for docs/explanation/network-simulation.md, and the record
that `chromabuild plan` reads.

    python benchmarks/scaling/published_tables.py           (writes chromabuild/scaling/data/published_tables.json; 5 s)
"""

from chromabuild import __version__
from chromabuild.scaling.published import bluegene, fugaku, genesis, qcdoc, record
from chromabuild.scaling.published.comparison import mean_deviation, table


def blue_gene() -> None:
    """The 30 entries, both protocols of a row on one line."""
    found = {protocol: bluegene.entries(protocol) for protocol in ("SPI", "MPI")}
    print("## Blue Gene/L\n\n| table, row | SPI: paper, us | ours | | MPI: paper, us | ours | | |")
    print("|---|---|---|---|---|---|---|---|")
    for entries in zip(*found.values(), strict=True):
        cells = " | ".join(f"{e.paper:.1f} | {e.ours:.1f} | {100 * e.deviation:+.0f} %" for e in entries)
        print(f"| {entries[0].name.replace(', SPI', '')} | {cells} | {'fitted' if entries[0].fitted else ''} |")
    for protocol, entries in found.items():
        values = ", ".join(f"{value:.3f}" for value in bluegene.constants(protocol))
        rest = [entry for entry in entries if not entry.fitted]
        print(f"\n{protocol}: constants {values} us; mean deviation {100 * mean_deviation(entries):.1f} %, of rows "
              f"that were not fitted {100 * mean_deviation(rest):.1f} %")


def main() -> None:
    blue_gene()
    for title, module in (("QCDOC", qcdoc), ("Fugaku", fugaku), ("GENESIS", genesis)):
        print(f"\n## {title}\n\n{table(module.entries())}\n")
        print("\n".join(claim.line() for claim in module.claims()))
    edge = fugaku.edge_of(fugaku.SMALL, 768)
    print("\nFugaku, intervals of uTofu and MPI: {:.3f}, {:.2f} us; the busiest cable alone: {:.2f} us (p2p), {:.2f} "
          "us (3-stage)".format(*fugaku.intervals(), *(fugaku.cable_time(768, p, edge) for p in ("half", "3-stage"))))
    print(f"GENESIS: {genesis.constants()[0] * 1e6:.1f} us a partner, {genesis.constants()[1] * 1e-9:.1f} GB/s a node")
    record.write(record.computed(), __version__)


if __name__ == "__main__":
    main()
