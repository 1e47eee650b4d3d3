"""How folds agree with the contact map that they were given, and with pixels of it that were left out.

Contact energies are fitted to the Hi-C counts of the 83 kb yeast locus with a fifth of the pixels left out, five
times, so that every pixel is predicted once by an ensemble that does not know it; left out are single pixels at random,
or blocks of 8 kb by 8 kb, whose inner pixels have no neighbour that is known. Predictions are compared with the counts
(the visibilities of the bins, estimated from known pixels, are put in) and with the balanced map (they are divided
out). Beside the ensemble: distance alone, visibilities and distance, the averages of neighbouring pixels that the
energies are fitted to, and what the true map would score against counts as few as these.

With --crowding neighbours the same tables have names of their own.

--table writes the energies of a fit to all pixels, or, with --without K, of the fit that lacks part K;
benchmarks/hic_folds.py compares folds with them.
"""

import argparse
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.hic_scores import ceilings, pearson, slope, stratum_adjusted

from chromabuild.base.settings import load_config
from chromabuild.genome.circle import separation
from chromabuild.genome.contact_energies import contact_energies_text
from chromabuild.genome.contact_fit import entries_of, fit_map, polymer_of
from chromabuild.genome.contact_targets import NEAREST, BinnedCounts, read_counts, regularised_ratios, visibilities
from chromabuild.genome.locus import load_locus
from mesoscale.binned_polymer import BinnedPolymer, contact_frequencies
from mesoscale.maximum_entropy import WALKS
from mesoscale.model import Parameters, build_chain

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "workflows/config/chrXIII.yaml"
HIC = ROOT / "workflows/config/loci/chrXIII_36501-119500.hic_2kb.bedpe.gz"
PARTS, BLOCK = 5, 4  # of the pixels; bins of a block's edge
NEAR = 10  # bins: 20 kb
MEASURES = ("Pearson", "SCC", "Pearson, balanced", "SCC, balanced")


def parts_of(kind: str, bins: int, seed: int) -> np.ndarray:
    """Part 0 to PARTS - 1 (n, n) of each pixel, symmetric; -1 nearer than NEAREST bins."""
    random = np.random.Generator(np.random.Philox(key=seed))
    edge = BLOCK if kind == "blocks" else 1
    coarse = np.triu(random.integers(0, PARTS, 2 * (-(-bins // edge),)))
    part = np.kron(coarse + np.triu(coarse, 1).T, np.ones((edge, edge), int))[:bins, :bins]
    return np.where(separation(bins) < NEAREST, -1, part)


def ensemble(polymer: BinnedPolymer, samples: int, seed: int) -> np.ndarray:
    """Conformations (s, n, 3) of a polymer, nm."""
    random = np.random.Generator(np.random.Philox(key=[seed, 10**6]))
    place = polymer.start(WALKS, random)
    polymer.sample(place, 5, random)
    return polymer.sample(place, samples // WALKS, random)[0]


def predicted(polymer: BinnedPolymer, counts: BinnedCounts, kind: str, samples: int, seed: int
              ) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Balanced maps (n, n) by predictor, each pixel from a model that does not know it, and v_i v_j of those models."""
    count = counts.count
    bins, part = len(count), parts_of(kind, len(count), seed)
    apart = separation(bins)
    found = {name: np.zeros((bins, bins)) for name in ("distance", "neighbours", "ensemble")}
    visible = np.ones((bins, bins))
    for k in range(PARTS):
        known, left_out = part != k, part == k
        v, decay = visibilities(count, known)
        visible[left_out] = np.outer(v, v)[left_out]
        found["distance"][left_out] = decay[apart][left_out]
        found["neighbours"][left_out] = (decay[apart] * regularised_ratios(count, known))[left_out]
        pair, _, energy = fit_map(polymer, counts, seed, known)
        model = contact_frequencies(ensemble(polymer.with_energies(pair, energy), samples, seed))
        found["ensemble"][left_out] = model[left_out]
        print(f"{kind}: part {k + 1} of {PARTS}", flush=True)
    return found, visible


def score_left_out(
    benchmark: Benchmark, given: argparse.Namespace, polymer: BinnedPolymer, counts: BinnedCounts
) -> None:
    """Predictions of pixels that were left out, and what the noise of the counts allows."""
    count, everything = counts.count, np.ones_like(counts.count, bool)
    visible, _ = visibilities(count, everything)
    agreement = benchmark.table(
        NAMES[given.crowding]["agreement"],
        "Correlation with the Hi-C map at pixels that were left out, means at each distance divided out",
        left_out="", prediction="", pairs="", **dict.fromkeys(MEASURES, ".2f"))
    ranges = {"all": everything, f"up to {NEAR * counts.size // 1000} kb": separation(len(count)) <= NEAR}
    for kind in given.kinds:
        maps, weight = predicted(polymer, counts, kind, given.samples, given.seed)
        named = {"distance alone": (maps["distance"], 1.0), "visibilities and distance": (maps["distance"], weight),
                 "averages of neighbouring pixels": (maps["neighbours"], weight),
                 "ensemble without visibilities": (maps["ensemble"], 1.0), "ensemble": (maps["ensemble"], weight)}
        for name, (balanced, factor) in named.items():
            for pairs, scored in ranges.items():
                seen = balanced * factor, count, balanced, count / np.outer(visible, visible)
                agreement.row(kind, name, pairs, pearson(*seen[:2], scored), stratum_adjusted(*seen[:2], scored),
                              pearson(*seen[2:], scored), stratum_adjusted(*seen[2:], scored))
    for pairs, scored in ranges.items():
        most = ceilings(count, visible, scored, 50, given.seed)
        agreement.row("-", "the true map (ceiling)", pairs, *(most[name] for name in MEASURES))

NAMES = {"sphere": {name: name for name in ("agreement", "slope", "loops")},
         "neighbours": {"agreement": "agreement_neighbours", "slope": "slope_neighbours", "loops": "loops_neighbours"}}
"""Tables by what crowds the folds."""


def main() -> None:
    """Fit, predict, score."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--radius", type=float, default=190.0, help="nm, of the sphere: the share of 83 kb in a yeast nucleus")
    add("--crowding", choices=("sphere", "neighbours"), default="sphere",
        help="what keeps the locus at its density: the sphere, or images of the chain in a cell of the same volume")
    add("--samples", type=int, default=19200, help="conformations of an ensemble")
    add("--seed", type=int, default=1)
    add("--config", type=Path, help="locus.yaml of another locus")
    add("--hic", type=Path, help="and its map")
    add("--kinds", nargs="*", default=["random", "blocks"], choices=("random", "blocks"))
    add("--table", type=Path, help="where to write the energies of a fit")
    add("--without", type=int, help="part of the random pixels that this fit lacks")
    given = benchmark.start(quick={"samples": 640, "kinds": []})
    locus = load_locus(load_config(given.config or CONFIG).locus)
    fibre = locus.fibre()
    chain = build_chain(fibre, Parameters(confinement_radius=given.radius, core_charges="formal"))
    counts = read_counts(given.hic or HIC, fibre.chromosome, fibre.start, fibre.start + len(fibre.sequence))
    polymer = polymer_of(chain, fibre, counts)
    if given.crowding == "neighbours":
        polymer = polymer.with_neighbours()
    count, bins = counts.count, len(counts.count)
    everything = np.ones((bins, bins), bool)
    visible, _ = visibilities(count, everything)

    if given.kinds:
        score_left_out(benchmark, given, polymer, counts)
    known = everything if given.without is None else parts_of("random", bins, given.seed) != given.without
    pair, target, energy = fit_map(polymer, counts, given.seed, known)
    samples = ensemble(polymer.with_energies(pair, energy), given.samples, given.seed)
    made, free = contact_frequencies(samples), contact_frequencies(ensemble(polymer, given.samples, given.seed))
    slopes = benchmark.table(NAMES[given.crowding]["slope"], "Exponent of contacts against distance, 4 to 20 kb",
                             map="", exponent=".2f")
    slopes.row("Hi-C counts", slope(count, 2, 10))
    slopes.row("Hi-C counts, balanced", slope(count / np.outer(visible, visible), 2, 10))
    slopes.row("polymer without contact energies", slope(free, 2, 10))
    slopes.row("ensemble", slope(made, 2, 10))
    loops = benchmark.table(NAMES[given.crowding]["loops"], "Frequency of the restrained loops", loop="", **{
        "target of the map": ".3f", "ensemble": ".3f", "polymer without energies": ".3f", "seen over expected": ".2f",
        "energy, kBT": ".2f"})
    ratio = regularised_ratios(count, known)
    middle = counts.middle - fibre.start
    for contact in fibre.contacts:
        i, j = (int(np.argmin(np.abs(middle - sum(place) / 2))) for place in (contact.first, contact.second))
        row = np.flatnonzero((pair == [i, j]).all(axis=1))
        loops.row(f"{fibre.start + contact.first[0]}-{fibre.start + contact.second[0]}",
                  float(target[row[0]]) if len(row) else None, made[i, j], free[i, j], ratio[i, j],
                  float(energy[row[0]]) if len(row) else None)
    if given.table is not None:
        entries = entries_of(pair, target, energy, counts, fibre.start)
        given.table.write_text(contact_energies_text(entries, fibre.chromosome, fibre.start))
    benchmark.finish()


if __name__ == "__main__":
    main()
