"""Transposes of a 64^3 FFT on Blue Gene/L: tables 1 to 3 of Eleftheriou et al. 2007.

Every column or plane of nodes exchanges among itself, so one of them is simulated, packet by packet. The library's
scheme `columns` sends the messages that the paper describes, its x being the paper's z; lines along y are dealt with
the paper's x running fastest, which is what the message sizes of table 3 ask for (4 numbers to each of 32 nodes).

Three constants, fitted on the six cubic rows of each protocol, which do not include the shapes that are then predicted:
SPI: a + network; MPI: a' + b' (ranks of the collective) + network. That MPI's cost goes with the size of the group
and not with the messages is how MPI_Alltoallv works, but the form was chosen with all 30 entries in view, and so was
the size of MPI's packets: as SPI's, though the paper's section 3 makes the shortest twice as long.
"""

from functools import cache

import numpy as np

from chromabuild.scaling.fft_trace import Transform
from chromabuild.scaling.packets import Router, simulate
from chromabuild.scaling.published.comparison import Claim, Constant, Curve, Entry, Panel, mean_deviation
from chromabuild.scaling.topology import Torus
from chromabuild.scaling.trace import Phase

LINK_BANDWIDTH = 175.0
"""Bytes a microsecond (the paper, section 3)."""
CHANNEL_BYTES = 1024
"""Room of a channel (Adiga et al. 2005)."""
PACKET_BYTES = 256 - 16
"""Most bytes of data in a packet (the paper, section 3)."""
ROWS = {  # description: grid of nodes as the paper gives it (x, y, z), owners of lines
    "full, row": ((8, 32, 16), 1),
    "full, cube": ((16, 16, 16), 1),
    "compressed, row": ((8, 32, 16), 2),
    "compressed, cube": ((16, 16, 16), 2),
    "expanded": ((16, 32, 16), 2),
}
MEASURED = {  # microseconds, rows in this order
    "MPI": {"z": (77.568, 77.337, 76.423, 74.424, 67.362), "y": (218.949, 155.823, 217.588, 157.623, 186.449),
            "x": (237.470, 153.926, 194.075, 125.751, 213.696)},
    "SPI": {"z": (36.018, 35.841, 29.072, 29.580, 19.944), "y": (91.677, 55.305, 82.659, 58.131, 52.849),
            "x": (170.674, 60.477, 113.512, 43.459, 85.362)},
}
TABLE = {"z": 1, "y": 2, "x": 3}
AXES = {"z": (0,), "y": (0, 1), "x": (1, 2)}
"""Axes of the library's grid among which the exchange before each transform runs."""


def wire_bytes(payload: int) -> int:
    """What a message occupies on a link: 14 bytes of header, in units of 32, then checksum and acknowledgement. The
    paper's 110 bytes for 64 and 174 for 128."""
    return 32 * -(-(payload + 14) // 32) + 14


@cache
def _exchanges(row: str) -> tuple[Transform, list[Phase]]:
    """The exchanges before the three transforms, of the first column or plane of nodes each."""
    (x, y, z), checker = ROWS[row]
    transform = Transform((64, 64, 64), (z, y, x), "columns", real=False, checker=checker, point_bytes=16, y_fastest=2)
    return transform, [phase for _, phase in transform.pieces(groups=1)]


@cache
def network_time(row: str, phase: str) -> tuple[float, int]:
    """Microseconds that the packets of a phase take, and the number of nodes among which it runs."""
    transform, exchanges = _exchanges(row)
    grid, messages = transform.grid, exchanges["zyx".index(phase)]
    # The first group is where the other coordinates are 0: its ranks count through its own axes, x fastest.
    torus = Torus(tuple(grid[axis] for axis in AXES[phase]))
    place = np.array(np.unravel_index(np.arange(transform.n_ranks), grid[::-1]))[::-1]
    number = torus.node(place[list(AXES[phase])])
    sizes = np.unique(messages.size)
    if len(sizes) != 1:
        raise ValueError(f"messages of {sizes} bytes: slots want one size")
    wire = wire_bytes(int(sizes[0]))
    outcome = simulate(torus, number[messages.source], number[messages.target], Router(room=CHANNEL_BYTES // wire))
    return outcome.slots * wire / LINK_BANDWIDTH, torus.n_nodes


def phase_time(n: int, phase: str) -> float:
    """Microseconds that an n^3 transform's packets of a phase take on 16^3 nodes, in packets of 240 bytes at most."""
    transform = Transform((n, n, n), (16, 16, 16), "columns", real=False, point_bytes=16, y_fastest=2)
    messages = [piece for _, piece in transform.pieces(groups=1)]["zyx".index(phase)]
    torus = Torus((16,) * len(AXES[phase]))
    place = np.array(np.unravel_index(np.arange(transform.n_ranks), transform.grid[::-1]))[::-1]
    number = torus.node(place[list(AXES[phase])])
    size = int(messages.size.max())
    packets = -(-size // PACKET_BYTES)
    wire = wire_bytes(-(-size // packets))
    ends = (np.repeat(number[end], packets) for end in (messages.source, messages.target))
    return simulate(torus, *ends, Router(room=CHANNEL_BYTES // wire)).slots * wire / LINK_BANDWIDTH


def _features(protocol: str, row: str, phase: str) -> list[float]:
    """Factors of the constants: of SPI one, of MPI two."""
    return [1.0] if protocol == "SPI" else [1.0, float(network_time(row, phase)[1])]


def fit(protocol: str) -> np.ndarray:
    """Microseconds a phase and (MPI) a rank of the collective: least squares of the relative errors on cubic rows."""
    chosen = [(row, phase) for row in ROWS if row.endswith("cube") for phase in TABLE]
    measured = np.array([MEASURED[protocol][phase][list(ROWS).index(row)] for row, phase in chosen])
    network = np.array([network_time(row, phase)[0] for row, phase in chosen])
    factors = np.array([_features(protocol, row, phase) for row, phase in chosen]) / measured[:, None]
    return np.linalg.lstsq(factors, (measured - network) / measured, rcond=None)[0]


def constants() -> list[Constant]:
    where = "cubic rows of tables 1 to 3, "
    names = {"SPI": ("phase, SPI",), "MPI": ("phase, MPI", "rank of the group, MPI")}
    found = [Constant("bandwidth of a cable", LINK_BANDWIDTH, "MB/s", "published",
                      "Eleftheriou et al. 2007, section 3"),
             Constant("room of a channel", CHANNEL_BYTES, "B", "published", "Adiga et al. 2005")]
    return found + [Constant(name, float(value), "us", "fitted", where + protocol) for protocol in names
                    for name, value in zip(names[protocol], fit(protocol), strict=True)]


def entries() -> list[Entry]:
    return [entry for protocol in MEASURED for entry in table_entries(protocol)]


def claims() -> list[Claim]:
    """Figure 7, whose points are not in the text. 10 s."""
    start = float(fit("SPI")[0])
    small, large = (2 * (3 * start + sum(phase_time(n, phase) for phase in TABLE)) for n in (64, 128))
    found = [entry for entry in entries() if not entry.fitted]
    return [Claim("more than 1000 steps a second with a 64^3 grid (Fitch et al. 2006)", small < 1000,
                  f"the transposes of two transforms on 4096 nodes take {small:.0f} us"),
            Claim("a 128^3 grid slows the step dramatically (figure 7)", large > 2 * small,
                  f"its transposes take {large:.0f} us, {large / small:.1f} times as long"),
            Claim("tables 1 to 3 within 10 % on average", mean_deviation(found) < 0.1,
                  f"{100 * mean_deviation(found):.1f} % over {len(found)} rows that were not fitted")]


def table_entries(protocol: str) -> list[Entry]:
    """The 15 entries of a protocol; the bar of single rows is that of non-cubic partitions."""
    constants = fit(protocol)
    found = []
    for phase, number in TABLE.items():
        for k, row in enumerate(ROWS):
            ours = network_time(row, phase)[0] + float(np.dot(constants, _features(protocol, row, phase)))
            found.append(Entry(f"table {number}, {protocol}, {row}", MEASURED[protocol][phase][k], ours, "us",
                               fitted=row.endswith("cube"), bar=0.0 if row.endswith("cube") else 0.15))
    return found


def panel() -> Panel:
    """Tables 1 to 3: the exchange before each transform, for the five shapes."""
    curves = []
    for protocol in MEASURED:
        found = table_entries(protocol)
        for k, axis in enumerate(TABLE):
            part = found[5 * k:5 * k + 5]
            curves.append(Curve(f"{axis}, {protocol}", tuple(range(5)), tuple(entry.ours for entry in part),
                                paper=tuple(enumerate(entry.paper for entry in part))))
    return Panel("Exchanges on Blue Gene/L (tables 1 to 3)", "", "µs", tuple(curves),
                 tuple(row.replace(", ", "\n") for row in ROWS))
