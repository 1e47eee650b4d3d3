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
from mesoscale.kernels import kernel_energies
from mesoscale.model import Chain, Parameters, build_chain, overlaps, with_field
from mesoscale.montecarlo import MOVES, RANDOM_PER_TRIAL, Walk
from mesoscale.observables import radius_of_gyration
from mesoscale.relaxation import gather, settle

CONFIG = Path(__file__).parent.parent / "workflows/config/chrXIII.yaml"
FLOPS_A_LOOK_UP = 64 * 4 * 2  # of the spline alone
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

    print(f"seconds a sweep ({chain.n} trials), one core:")
    for name, made in (("sums over sites", chain), ("table of the field", with_field(chain))):
        time_sweeps(name, made, found.position, found.frame, options.sweeps, options.seed)


def time_sweeps(name: str, chain: Chain, position: np.ndarray, frame: np.ndarray, sweeps: int, seed: int) -> None:
    """Print the time of a sweep from a conformation, the trials a second, and the kernel's share of what a core can do.

    The energy from scratch is timed as well: its look-ups in the table are counted, each of 64 points with four lanes.
    """
    walk = Walk.begin(chain, position, frame)
    random = np.random.Generator(np.random.Philox(key=[seed, 1]))
    for _ in range(BURN_IN):
        walk.adapt(*walk.advance(random.random((chain.n, RANDOM_PER_TRIAL)), strict=True))
    numbers = random.random((sweeps * chain.n, RANDOM_PER_TRIAL))
    begin = time.process_time()
    tried, accepted = walk.advance(numbers, strict=True)
    spent = (time.process_time() - begin) / sweeps
    rates = ", ".join(f"{move} {a / max(t, 1):.2f}" for move, t, a in zip(MOVES, tried, accepted, strict=True))
    print(f"  {name}: {spent:.3f} s, {chain.n / spent:.0f} trials/s; accepted: {rates}")
    if chain.field is not None:
        begin = time.process_time()
        kernel_energies(chain, walk.position, walk.frame)
        spent = time.process_time() - begin
        done = look_ups(chain, walk.position, walk.frame)
        print(f"  energy from scratch: {spent:.3f} s for {done} look-ups: {done * FLOPS_A_LOOK_UP / spent / 1e9:.1f} "
              "GFLOP/s in single precision, floors and grids included")  # fmt: skip


def look_ups(chain: Chain, position: np.ndarray, frame: np.ndarray) -> int:
    """How often the energy from scratch asks a table: sites and beads within reach of another core's centre."""
    sites = np.einsum("cij,sj->csi", frame[chain.cores], chain.shape.site) + position[chain.cores][:, None]
    reach = chain.cutoff + np.linalg.norm(chain.shape.site, axis=1).max()
    done = 0
    for k, p in enumerate(chain.cores):
        done += np.count_nonzero(np.linalg.norm(sites[:k] - position[p], axis=2) < reach)
        others = chain.beads[np.abs(chain.beads - p) > 1]
        done += np.count_nonzero(np.linalg.norm(position[others] - position[p], axis=1) < reach)
    return done


if __name__ == "__main__":
    main()
