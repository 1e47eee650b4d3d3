"""Contact energies beside OpenMiChroM, which trains energies of pairs on the same map: agreement and time.

    python -m venv peers && peers/bin/pip install OpenMiChroM openmm pandas
    python benchmarks/hic_peer.py --peers peers/bin/python

Both see the balanced Hi-C map of the 83 kb yeast locus without a fifth of its pixels, chosen at random. The peer's
probabilities are counts over the mean of neighbouring bins, as its documentation advises; its training ends after a set
number of iterations, and its energies would change further with more of them.
"""

import subprocess
import time
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.hic_scores import pearson, slope, stratum_adjusted
from common.timing import measured
from hic_agreement import CONFIG, HIC, NEAR, ensemble, parts_of

from chromabuild.base.settings import load_config
from chromabuild.genome.circle import separation
from chromabuild.genome.contact_fit import fit_map, polymer_of
from chromabuild.genome.contact_targets import read_counts, visibilities
from chromabuild.genome.locus import load_locus
from mesoscale.binned_polymer import contact_frequencies
from mesoscale.model import Parameters, build_chain

FIT = Path(__file__).resolve().parent / "common" / "openmichrom_fit.py"


def main() -> None:
    """Fit both, score both."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--peers", required=True, metavar="PYTHON", help="of an environment with OpenMiChroM, openmm and pandas")
    add("--iterations", type=int, default=15, help="of the peer's training")
    add("--frames", type=int, default=50, help="conformations of each, five times as many at the end")
    add("--steps", type=int, default=100, help="of dynamics between two of them")
    add("--samples", type=int, default=19200, help="conformations of our ensemble")
    add("--work", type=Path, default=Path("hic_peer"), help="folder of the peer's files")
    given = benchmark.start(quick={"iterations": 1, "frames": 2, "samples": 640})
    asked = [given.peers, "-c", "from importlib.metadata import version; print(version('OpenMiChroM'))"]
    benchmark.peer("OpenMiChroM", subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    fibre = load_locus(load_config(CONFIG).locus).fibre()
    counts = read_counts(HIC, fibre.chromosome, fibre.start, fibre.start + len(fibre.sequence))
    count = counts.count
    left_out = parts_of("random", len(count), 1) == 0
    visible, _ = visibilities(count, ~left_out)
    balanced = count / np.outer(visible, visible)
    probability = np.where(left_out | (separation(len(count)) == 0), 0.0, balanced / np.diagonal(balanced, 1).mean())
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    np.savez(work / "in.npz", map=np.minimum(probability, 1.0), iterations=given.iterations, frames=given.frames,
             steps=given.steps)  # fmt: skip
    used = measured([given.peers, FIT, work / "in.npz", work / "out.npz"], work / "log")
    with np.load(work / "out.npz") as result:
        maps = {f"OpenMiChroM, {given.iterations} iterations": (result["map"], used.cpu)}
    begun = time.process_time()
    chain = build_chain(fibre, Parameters(confinement_radius=190.0, core_charges="formal"))
    polymer = polymer_of(chain, fibre, counts)
    pair, _, energy = fit_map(polymer, counts, 1, ~left_out)
    model = contact_frequencies(ensemble(polymer.with_energies(pair, energy), given.samples, 1))
    maps["ensemble"] = model, time.process_time() - begun
    near = separation(len(count)) <= NEAR
    known = near & ~left_out
    table = benchmark.table(
        "peer", f"Correlation with the balanced map up to {NEAR * counts.size // 1000} kb, a part left out", program="",
        **{"CPU time, s": ".0f", "slope, 4 to 20 kb": ".2f", "Pearson, known": ".2f", "SCC, known": ".2f",
           "Pearson, left out": ".2f"})  # fmt: skip
    for name, (found, cpu) in maps.items():
        table.row(name, cpu, slope(found, 2, 10), pearson(found, balanced, known),
                  stratum_adjusted(found, balanced, known), pearson(found, balanced, near & left_out))
    benchmark.finish()


if __name__ == "__main__":
    main()
