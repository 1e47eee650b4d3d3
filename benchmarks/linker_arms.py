"""What linker histones that hold their linker arms do to a fibre: the same array with arms free and held.

Folding's own model in 150 mmol/L salt, rigid tails and no walls, from a straight start; the linker histone acts through
the ten base pairs on either side of its nucleosome, which lie as in PDB 4QLC. Printed, with standard errors over the
replicas: the distance between the base pairs 83 before and after a dyad (the width of the stem that DNA makes with a
linker histone, Bednar et al., PNAS 95:14173, 1998), radius of gyration, distances of centres and the sedimentation
coefficient, all over the last half of the sweeps.
"""

import time

import numpy as np
from common.command import Benchmark

from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain, segment_ends, straight_conformation, with_field
from mesoscale.montecarlo import RANDOM_PER_TRIAL, Walk
from mesoscale.observables import radius_of_gyration, sedimentation_coefficient
from mesoscale.relaxation import Conformation, settle

CORE, ARM = 73, 10  # base pairs from the dyad to the end of the core, and those of an arm
RISE = Parameters().rise  # nm
SPACING = 5  # sweeps between two frames


def stems(walk: Walk, held: bool) -> np.ndarray:
    """Distance (nm) between the base pairs 83 before and 83 after the dyad of every core with a linker on both sides.

    Where arms are held these are its joints, else they lie ten base pairs along its linkers.
    """
    chain = walk.chain
    start, end = segment_ends(chain, walk.position, walk.frame)
    found = []
    for p in chain.cores[1:-1]:
        before = [end[p - 1], *start[p - 1::-1]]
        after = [start[p], *end[p:]]
        one, other = (along(way, 0.0 if held else ARM * RISE) for way in (before, after))
        found.append(np.linalg.norm(one - other))
    return np.array(found)


def along(way: list[np.ndarray], length: float) -> np.ndarray:
    """The point (3,) so far (nm) along a polygon."""
    for one, other in zip(way, way[1:], strict=False):
        piece = float(np.linalg.norm(other - one))
        if length <= piece:
            return one + (other - one) * length / piece
        length -= piece
    return way[-1]


def run(repeat: int, nucleosomes: int, held: bool, sweeps: int, seed: int) -> np.ndarray:
    """Sample one fibre: width of the stem, radius of gyration, distances i+1
    and i+2, sedimentation coefficient; nm, svedberg."""
    half = (repeat - 1) // 2
    dyads = tuple(half + repeat * k for k in range(nucleosomes))
    ends = ((CORE + ARM, CORE + ARM),) * nucleosomes if held else ()
    fibre = Fibre("ACGT" * (repeat * nucleosomes // 4 + 1), dyads, ends=ends, linker_histone=(True,) * nucleosomes)
    chain = with_field(build_chain(fibre, Parameters()))
    start = settle(chain, Conformation.boxed(chain, *straight_conformation(chain)))
    random = np.random.Generator(np.random.Philox(key=[repeat, seed]))
    walk = Walk.begin(chain, start.position, start.frame)
    found = []
    for sweep in range(sweeps):
        counts = walk.advance(random.random((chain.n, RANDOM_PER_TRIAL)), strict=True)
        if sweep < sweeps // 3:
            walk.adapt(*counts)
        if sweep >= sweeps // 2 and sweep % SPACING == 0:
            centres = walk.position[chain.cores]
            next_, second = (np.linalg.norm(centres[k:] - centres[:-k], axis=1).mean() for k in (1, 2))
            found.append([stems(walk, held).mean(), radius_of_gyration(walk.position), next_, second,
                          sedimentation_coefficient(centres)])
    return np.mean(found, axis=0)


def main() -> None:
    """Run arrays with free and held arms."""
    benchmark = Benchmark(__doc__)
    parser = benchmark.parser
    parser.add_argument("--repeat", type=int, nargs="*", default=[187, 197])
    parser.add_argument("--nucleosomes", type=int, default=12)
    parser.add_argument("--sweeps", type=int, default=2000)
    parser.add_argument("--replicas", type=int, default=3)
    given = benchmark.start(quick={"repeat": [197], "nucleosomes": 4, "sweeps": 20, "replicas": 2})
    table = benchmark.table(
        "shape", f"Linker arms free and held by linker histones: arrays of {given.nucleosomes} nucleosomes",
        **{"repeat, bp": "", "linker arms": "", "stem, nm": ".1f",
           "radius of gyration, nm": ".1f", "distance i+1, nm": ".1f", "distance i+2, nm": ".1f",
           "sedimentation coefficient, S": ".1f", "CPU time, s": ".0f"})
    for repeat in given.repeat:
        for held in (False, True):
            begun = time.process_time()
            runs = np.array([run(repeat, given.nucleosomes, held, given.sweeps, seed + 1)
                             for seed in range(given.replicas)])
            mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            cells = [{"value": m, "error": e} for m, e in zip(mean.tolist(), error.tolist(), strict=True)]
            table.row(repeat, "held" if held else "free", *cells, time.process_time() - begun)
    benchmark.finish()


if __name__ == "__main__":
    main()
