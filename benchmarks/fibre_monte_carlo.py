"""Folding and sampling of a large fibre: CPU seconds to a scaffold without overlaps, and of a Monte Carlo sweep.

    OMP_NUM_THREADS=1 python benchmarks/fibre_monte_carlo.py [--nucleosomes 427] [--radius 60] [--sweeps 10]

The fibre is the first part of the bundled yeast locus (chrXIII:36,501-119,500), confined to a sphere. One thread. Peer
for the first number: LAMMPS with NICG's 519-nucleosome input needed 103 CPU-s, at coarser resolution and with overlaps
left (relaxation and run of its own scripts, one core). The target for a sweep of 427 nucleosomes is 0.6 CPU-s.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from chromabuild.config import load_config
from chromabuild.locus import load_locus
from mesoscale.model import Parameters, build_chain, overlaps
from mesoscale.montecarlo import MOVES, RANDOM_PER_TRIAL, Walk
from mesoscale.observables import radius_of_gyration
from mesoscale.relaxation import gather, settle

CONFIG = Path(__file__).parent.parent / "workflows/config/chrXIII.yaml"
BURN_IN = 3  # sweeps in which steps adapt


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nucleosomes", type=int, default=427)
    parser.add_argument("--radius", type=float, default=60.0, help="of the confining sphere, nm")
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    fibre = load_locus(load_config(CONFIG).locus).fibre()
    m = min(options.nucleosomes, len(fibre.dyads))
    end = fibre.last_bp[m - 1] + 20
    contacts = tuple(c for c in fibre.contacts if max(c.first[1], c.second[1]) <= end)
    fibre = replace(fibre, sequence=fibre.sequence[:end], dyads=fibre.dyads[:m], contacts=contacts)
    chain = build_chain(fibre, Parameters(confinement_radius=options.radius))
    print(f"{m} nucleosomes, {end} bp, {chain.n} particles, {len(chain.contact)} restraints, R {options.radius} nm")

    begin = time.process_time()
    gathered = gather(chain, np.random.Generator(np.random.Philox(key=[options.seed, 0])))
    middle = time.process_time()
    found = settle(chain, gathered)
    done = time.process_time()
    left = overlaps(chain, found.position, found.frame)
    print(f"gathered {middle - begin:.1f} CPU-s, settled {done - middle:.1f}, in all {done - begin:.1f}; "
          f"overlaps left {len(left)}, radius of gyration {radius_of_gyration(found.position):.1f} nm")  # fmt: skip

    walk = Walk.begin(chain, found.position, found.frame)
    random = np.random.Generator(np.random.Philox(key=[options.seed, 1]))
    tried, accepted, seconds = np.zeros(len(MOVES), int), np.zeros(len(MOVES), int), []
    for sweep in range(BURN_IN + options.sweeps):
        numbers = random.random((chain.n, RANDOM_PER_TRIAL))
        begin = time.process_time()
        counts = walk.advance(numbers, strict=True)
        if sweep < BURN_IN:
            walk.adapt(*counts)
            continue
        seconds.append(time.process_time() - begin)
        tried, accepted = tried + counts[0], accepted + counts[1]
    sweep = float(np.median(seconds))
    print(f"sweep of {chain.n} trials: {sweep:.2f} CPU-s (median of {len(seconds)}), {chain.n / sweep:.0f} moves/s")
    print("accepted: " + ", ".join(f"{n} {a / max(t, 1):.2f}" for n, t, a in zip(MOVES, tried, accepted, strict=True)))


if __name__ == "__main__":
    main()
