"""Draw docs/images/hic_agreement.png: an ensemble with contact energies beside the Hi-C map that they were fitted to.

    python docs/figures/hic_agreement.py

Map of the ensemble (above) and balanced counts (below); contacts against distance; and, for pairs up to 20 kb apart,
the ensemble against the targets that it was given. Numbers, and pixels that were left out: benchmarks/hic_agreement.py.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import NullFormatter

from chromabuild.base.settings import load_config
from chromabuild.genome.circle import separation
from chromabuild.genome.contact_fit import fit_map, polymer_of
from chromabuild.genome.contact_targets import read_counts, visibilities
from chromabuild.genome.locus import load_locus
from mesoscale.binned_polymer import BinnedPolymer, contact_frequencies
from mesoscale.maximum_entropy import WALKS
from mesoscale.model import Parameters, build_chain

ROOT = Path(__file__).resolve().parent.parent.parent
HIC = ROOT / "workflows/config/loci/chrXIII_36501-119500.hic_2kb.bedpe.gz"
RADIUS, SAMPLES, SEED, NEAR = 190.0, 300, 1, 10  # nm; of each walk; bins


def frequencies(polymer: BinnedPolymer) -> np.ndarray:
    """Frequencies (n, n) of contacts in the polymer's ensemble."""
    random = np.random.Generator(np.random.Philox(key=[SEED, 10**6]))
    return contact_frequencies(polymer.sample(polymer.start(WALKS, random), SAMPLES, random)[0])


def main() -> None:
    """Fit and draw."""
    fibre = load_locus(load_config(ROOT / "workflows/config/chrXIII.yaml").locus).fibre()
    chain = build_chain(fibre, Parameters(confinement_radius=RADIUS, core_charges="formal"))
    counts = read_counts(HIC, fibre.chromosome, fibre.start, fibre.start + len(fibre.sequence))
    polymer = polymer_of(chain, fibre, counts)
    pair, target, energy = fit_map(polymer, counts, SEED)
    free, made = frequencies(polymer), frequencies(polymer.with_energies(pair, energy))
    bins = len(counts.count)
    visible, _ = visibilities(counts.count, np.ones((bins, bins), bool))
    balanced = counts.count / np.outer(visible, visible)
    upper = np.triu_indices(bins, 2)
    balanced = balanced * made[upper].sum() / balanced[upper].sum()
    both = np.where(separation(bins) < 2, np.nan, np.triu(made) + np.tril(balanced))
    both[both <= 0] = np.nan

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), dpi=110)
    start, end = counts.start / 1000, (counts.start + bins * counts.size) / 1000
    shown = left.imshow(both, norm=LogNorm(3e-4, 5e-2), cmap="magma_r", extent=(start, end, end, start))
    left.set_title("above: ensemble; below: Hi-C, balanced", fontsize=10)
    left.set_xlabel(f"{fibre.chromosome}, kb")
    figure.colorbar(shown, ax=left, label="frequency of a contact", shrink=0.8)
    distance = counts.size / 1000 * np.arange(2, bins)
    for values, label, style in ((balanced, "Hi-C, balanced", "-"), (made, "ensemble", "-"),
                                 (free, "polymer without energies", "--")):  # fmt: skip
        middle.loglog(distance, [np.diagonal(values, k).mean() for k in range(2, bins)], style, label=label)
    middle.set_xticks([5, 10, 20, 40, 80], labels=["5", "10", "20", "40", "80"])
    middle.xaxis.set_minor_formatter(NullFormatter())
    middle.set_xlabel("distance along the chromosome, kb")
    middle.set_ylabel("frequency of a contact")
    middle.legend(frameon=False)
    near = pair[:, 1] - pair[:, 0] <= NEAR
    right.loglog(target[near], made[tuple(pair[near].T)], ".", label="ensemble")
    right.loglog(target[near], free[tuple(pair[near].T)], ".", ms=3, color="0.6", label="without energies")
    span = np.array([target[near].min(), target[near].max()])
    right.loglog(span, span, "k-", lw=0.8)
    right.set_xlabel("target of the map, pairs up to 20 kb apart")
    right.set_ylabel("frequency in the ensemble")
    right.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(ROOT / "docs/images/hic_agreement.png")


if __name__ == "__main__":
    main()
