"""Halo patterns and transports of Li et al. (2023, doi:10.1145/3581784.3607064): what they send and how long they take.

A Lennard-Jones crystal at the reduced density 0.8442 and, with --potential (Cu_u3.eam of LAMMPS), copper, as in the
paper. Domains wider than the reach of the list have 26 neighbours (13 with HALF), narrower ones 124 (62); FULL is the
whole shell. Every message is sent alone, as in the paper. Messages and bytes of rank 0 (one way, a step) are those of
the log, beside those of the network simulator for the same boxes and the width of the engine's halo; its corners are
boxes. The time is the `communication` row of the timing table a step, mean over the ranks: least of the rounds, in
which all ways take turns. It wants an idle machine; with --rounds 0 only messages and bytes are compared, of one
transport, since all carry the same.
"""

import itertools
import re
import tempfile
from pathlib import Path

import numpy as np
from common import lattices
from common.command import Benchmark
from common.engine import atom_topology, parts_of, run, set_up, write_system
from materials import CUTOFF, LATTICE, MASS, SKIN, TIMESTEP

from chromabuild.scaling.halo_trace import p2p, three_stage

CASES = {26: (2, 4, ("PERSISTENT", "NEIGHBOURHOOD", "ONE_SIDED", "SHARED")), 124: (3, 4, ("PERSISTENT", "SHARED"))}
"""Of neighbours: domains an axis, cells of the crystal an axis of a domain (26) or of the box (124), transports."""
PATTERNS = ("HALF", "FULL", "STAGED")
BYTES = 24
"""Of an atom: three coordinates."""
SLACK = (4.0, 0.05)
"""The halo is wider than the list by so many angstrom, at most by this share of the box (neighbour_lists.f90)."""


def crystal(folder: Path, kind: str, neighbours: int) -> tuple[np.ndarray, float, int]:
    """Restart files for the domains; the box (angstrom), atoms a cubic angstrom and the domains along an axis."""
    side, cells, _ = CASES[neighbours]
    # Twice the reach is the least a box can have; domains of 26 neighbours are wider than the reach.
    cells = side * cells if neighbours == 26 else cells
    position, box = lattices.fcc((cells,) * 3, LATTICE[kind])
    position = (position + np.random.default_rng(1).normal(scale=0.02 * LATTICE[kind], size=position.shape)) % box
    lj = lattices.ARGON if kind == "lj" else {"mass": MASS["eam"]}
    write_system(folder, atom_topology(len(position), **lj), position, box)
    # Of the potential the set-up needs the reach only.
    set_up(folder, folder / "start_().rst", (side,) * 3, energy=energy(kind) | {"forcefield": "LJ"})
    return box, len(position) / np.prod(box), side


def energy(kind: str) -> dict[str, object]:
    """[ENERGY] of a material."""
    return {"forcefield": kind.upper(), "cutoffdist": CUTOFF[kind], "pairlistdist": CUTOFF[kind] + SKIN[kind]}


def main() -> None:
    """All ways in turn."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--potential", type=Path, help="Cu_u3.eam, for copper too")
    add("--neighbours", type=int, nargs="+", default=list(CASES), choices=CASES)
    add("--steps", type=int, default=50)
    add("--rounds", type=int, default=3)
    given = benchmark.start(quick={"neighbours": [26], "rounds": 0})
    table = benchmark.table(
        "ways", "A halo exchange by pattern and transport: rank 0 a step, one way", material="", neighbours="",
        pattern="", transport="", messages="", simulated="", bytes=",",
        **{"simulated bytes": ",", "difference, %": ".0f", "communication, ms": ".2f"})
    steps = given.steps if given.rounds else 1
    kinds = ("lj", "eam") if given.potential else ("lj",)
    for kind, neighbours in itertools.product(kinds, given.neighbours):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            box, density, side = crystal(folder, kind, neighbours)
            edge, reach = tuple(box / side), CUTOFF[kind] + SKIN[kind] + min(SLACK[0], SLACK[1] * min(box))
            files = {"eamfile": given.potential.resolve()} if kind == "eam" else {}
            ways = list(itertools.product(PATTERNS, CASES[neighbours][2] if given.rounds else ["PERSISTENT"]))
            found: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
            counts = {}
            for _, way in itertools.product(range(max(1, given.rounds)), ways):
                run(folder, folder / "start_().rst", {
                    "INPUT": files, "ENERGY": energy(kind), "ENSEMBLE": {"temperature": 50},
                    "COMM": {"pattern": way[0], "transport": way[1], "combine_messages": False},
                    "DYNAMICS": {"nsteps": steps, "timestep": TIMESTEP[kind], "eneout_period": steps}},
                    ranks=side**3)
                log = (folder / "run.out").read_text()
                counts[way] = tuple(map(int, re.search(r"sends (\d+) messages, (\d+) bytes", log).groups()))
                found[way].append(1e3 * parts_of(log, ["communication"])["communication"] / steps)
            for (pattern, transport), times in found.items():
                if pattern == "STAGED":
                    phases = three_stage((side,) * 3, edge, reach, density * BYTES)
                else:
                    phases = p2p((side,) * 3, edge, reach, density * BYTES, half=pattern == "HALF")
                messages = sum(int(np.sum(phase.source == 0)) for phase in phases)
                size = sum(int(phase.size[phase.source == 0].sum()) for phase in phases)
                sent = counts[pattern, transport]
                table.row(kind.upper(), neighbours, pattern, transport, sent[0], messages, sent[1], size,
                          100 * (size / sent[1] - 1), min(times) if given.rounds else None)
    benchmark.finish()


if __name__ == "__main__":
    main()
