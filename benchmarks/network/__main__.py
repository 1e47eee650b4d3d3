"""All published figures beside ours: python -m benchmarks.network (from the root of the repository)."""

from . import bluegene, fugaku, genesis, qcdoc
from .comparison import mean_deviation, table


def main() -> None:
    blue = {protocol: bluegene.entries(protocol) for protocol in ("SPI", "MPI")}
    for protocol, found in blue.items():
        values = ", ".join(f"{value:.3f}" for value in bluegene.constants(protocol))
        predicted = [entry for entry in found if not entry.fitted]
        print(f"## Blue Gene/L, {protocol}\n\n{table(found)}\n\nConstants (us): {values}. Mean deviation "
              f"{100 * mean_deviation(found):.1f} %, of the predicted rows {100 * mean_deviation(predicted):.1f} %.\n")
    for title, module in (("QCDOC", qcdoc), ("Fugaku", fugaku), ("GENESIS", genesis)):
        print(f"## {title}\n\n{table(module.entries())}\n")
        print("\n".join(claim.line() for claim in module.claims()) + "\n")
    edge = fugaku.edge_of(fugaku.SMALL, 768)
    print("Fugaku, intervals of uTofu and MPI: {:.3f}, {:.2f} us; the busiest cable alone: {:.2f} us (p2p), {:.2f} us "
          "(3-stage)".format(*fugaku.intervals(), *(fugaku.cable_time(768, p, edge) for p in ("half", "3-stage"))))
    print(f"GENESIS: {genesis.constants()[0] * 1e6:.1f} us a partner, {genesis.constants()[1] * 1e-9:.1f} GB/s a node")


if __name__ == "__main__":
    main()
