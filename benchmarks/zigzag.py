"""Which nucleosomes touch in fibres of regular repeat length with linker histone: zigzags have i+2 before i+1.

The published finding (e.g. Perisic, Collepardo-Guevara & Schlick, J. Mol. Biol. 403:777, 2010): with linker histone at
150 mmol/L fibres of all these repeats are zigzags. Folding's own model: fitted charges, flexible tails, one linker
histone a nucleosome; a straight start, from which dynamics of fibre and tails (so many times folding's own) lead to
where sampling begins. Two cores touch when a tail bead of one is within 1.8 nm of a site of the
other's core, the range of their excluded volume. Printed: for each repeat the share of pairs k apart that touch, over
the last half of the sweeps, mean distances of centres, and the sedimentation coefficient, each with its standard error
over the replicas.
"""

import time
from dataclasses import replace

import numpy as np
from common.command import Benchmark
from scipy.spatial import cKDTree

from mesoscale.cores import crystal_core
from mesoscale.dynamics import equilibrate_with_tails, first_tails
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain, straight_conformation, with_field
from mesoscale.montecarlo import RANDOM_PER_TRIAL, CoupledTails, Walk
from mesoscale.observables import sedimentation_coefficient
from mesoscale.relaxation import Conformation, settle
from mesoscale.tails import TAIL, TailWalk, tails_of_fibre

TOUCH, FARTHEST = 1.8, 6  # nm; pairs up to so many apart
CHECKED = 50  # sweeps between two checks of the running energy


def touching(walk: Walk, tails: CoupledTails) -> np.ndarray:
    """Share of the pairs 1 to FARTHEST apart that touch."""
    chain = walk.chain
    cores = chain.cores
    sites = np.einsum("cij,sj->csi", walk.frame[cores], chain.shape.site) + walk.position[cores][:, None]
    tree = cKDTree(sites.reshape(-1, 3))
    beads = np.flatnonzero(tails.tails.kind == TAIL)
    owner = np.repeat(tails.tails.core, np.diff(tails.tails.first))[beads]
    touched = np.zeros((len(cores), len(cores)), bool)
    for core, near in zip(owner, tree.query_ball_point(tails.beads[beads], TOUCH), strict=True):
        touched[core, np.unique(np.array(near, int) // sites.shape[1])] = True
    touched |= touched.T
    return np.array([np.diagonal(touched, k).mean() for k in range(1, FARTHEST + 1)])


def run(repeat: int, nucleosomes: int, sweeps: int, dynamics: int, magnesium: bool, seed: int) -> np.ndarray:
    """Sample one fibre: shares (FARTHEST,) of touching pairs, distances i+1 to i+3 (nm), sedimentation coefficient."""
    dyads = tuple(80 + repeat * k for k in range(nucleosomes))
    fibre = Fibre("A" * (dyads[-1] + 81), dyads, linker_histone=(True,) * nucleosomes)
    parameters = Parameters(tails="flexible", magnesium=magnesium)
    chain = replace(build_chain(fibre, parameters), shape=crystal_core(rigid_tails=False))
    start = settle(chain, Conformation.boxed(chain, *straight_conformation(chain)))
    random = np.random.Generator(np.random.Philox(key=[repeat, seed]))
    chains = tails_of_fibre(fibre, parameters)
    beads = first_tails(chains, chain, start, random)
    for _ in range(dynamics):
        start, beads, _ = equilibrate_with_tails(chain, start, chains, beads, random)
    chain = with_field(chain)
    tails = CoupledTails.begin(TailWalk.begin(chains, chain, start.position, start.frame, beads), nucleosomes)
    walk = Walk.begin(chain, start.position, start.frame)
    tails.attach(walk)
    found = []
    for sweep in range(sweeps):
        counts = walk.advance(random.random((chain.n, RANDOM_PER_TRIAL)), strict=True, check=False)
        tails.regrow(walk, random, check=sweep % CHECKED == 0)
        if sweep < sweeps // 3:
            walk.adapt(*counts)
        if sweep >= sweeps // 2 and sweep % 5 == 0:
            centres = walk.position[chain.cores]
            distances = [np.linalg.norm(centres[k:] - centres[:-k], axis=1).mean() for k in (1, 2, 3)]
            found.append([*touching(walk, tails), *distances, sedimentation_coefficient(centres)])
    return np.mean(found, axis=0)


def main() -> None:
    """Run all repeats."""
    benchmark = Benchmark(__doc__)
    parser = benchmark.parser
    parser.add_argument("--repeat", type=int, nargs="*", default=[173, 182, 191, 200, 209])
    parser.add_argument("--nucleosomes", type=int, default=12)
    parser.add_argument("--sweeps", type=int, default=600)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--dynamics", type=int, default=4)
    parser.add_argument("--magnesium", action="store_true")
    given = benchmark.start(quick={"repeat": [191], "nucleosomes": 7, "sweeps": 6, "replicas": 2, "dynamics": 1})
    table = benchmark.table("contacts", "Fraction of nucleosome pairs in contact in fibres with linker histone, by "
                            f"repeat length: {given.nucleosomes} nucleosomes", **{"repeat, bp": ""},
                            **{f"i, i+{k}": ".2f" for k in range(1, FARTHEST + 1)},
                            **{f"distance i+{k}, nm": ".1f" for k in (1, 2, 3)},
                            **{"sedimentation coefficient, S": ".0f", "CPU time, s": ".0f"})
    for repeat in given.repeat:
        begun = time.process_time()
        runs = np.array([run(repeat, given.nucleosomes, given.sweeps, given.dynamics, given.magnesium, seed + 1)
                         for seed in range(given.replicas)])  # fmt: skip
        mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        cells = [{"value": m, "error": e} for m, e in zip(mean.tolist(), error.tolist(), strict=True)]
        table.row(repeat, *cells, time.process_time() - begun)
    benchmark.finish()


if __name__ == "__main__":
    main()
