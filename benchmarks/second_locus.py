"""A locus of another chromosome through the settings of the yeast locus: from files as they are published to agreement.

A script makes a genome of two chromosomes (FASTA, gzip), its nucleosomes (narrowPeak) and a Hi-C map (.cool, 2 kb) from
a model that shares nothing with the one that is fitted: cells are Gaussian chains of beads of 500 bp in which loops are
drawn anew, planted ones with their own probability and others anywhere; counts are Poisson numbers of their contacts,
times a visibility of each bin, as many as in the yeast map. The region is cut by `chromabuild init --region`, then
`validate`, `contact-energies` and `scaffold` run with the settings of docs/explanation/hi-c.md, none of them changed.

Every pixel is predicted by an ensemble that does not know it, and compared with the counts and with the truth behind
them, which no experiment tells.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import hictkpy
import numpy as np
from common.command import Benchmark
from common.hic_scores import ceilings, pearson, slope, stratum_adjusted
from hic_agreement import NEAR, ensemble, predicted

from chromabuild.base.settings import load_config
from chromabuild.genome.circle import separation
from chromabuild.genome.contact_energies import read_contact_energies
from chromabuild.genome.contact_fit import polymer_of
from chromabuild.genome.contact_targets import BinnedCounts, read_counts, visibilities
from chromabuild.genome.locus import load_locus
from mesoscale.binned_polymer import BinnedPolymer, contact_frequencies
from mesoscale.model import Parameters, build_chain
from mesoscale.scaffold import Scaffold

CHROMOSOME, LENGTH, FIRST, LAST = "chrIV", 120_000, 20_001, 100_000
SETTINGS = ("scaffold.confinement_radius=190", "scaffold.core_charges=formal", "locus.overlaps=draw")
BEAD, BIN = 500, 2000  # base pairs
STEP, CLOSE = 34.5, 40.0  # nm: of a bead (69 nm in 2 kb, as the yeast fibre), and of a contact
LOOPS = ((30_000, 42_000, 0.16), (42_000, 64_000, 0.10), (70_000, 79_000, 0.20), (52_000, 90_000, 0.06))
"""Ends of the planted loops, and the share of cells that have each."""
OTHERS, MEAN_LOOP = 2, 8000  # loops of a cell that lie anywhere, and their mean length
READS = 12_000  # pairs at least two bins apart in the map of the locus


def truth(cells: int, rng: np.random.Generator) -> np.ndarray:
    """Mean contacts (n, n) of bins of the chromosome over cells."""
    beads = LENGTH // BEAD
    chain = np.diag(np.full(beads, 1e-6))  # keeps the middle where it is
    for k in range(beads - 1):
        _join(chain, k, k + 1, STEP)
    total = np.zeros((beads, beads))
    for _ in range(cells):
        springs = chain.copy()
        for first, last, share in LOOPS:
            if rng.random() < share:
                _join(springs, first // BEAD, last // BEAD, STEP)
        for first, length in zip(rng.integers(0, beads - 2, OTHERS), rng.exponential(MEAN_LOOP, OTHERS), strict=True):
            _join(springs, first, min(beads - 1, int(first + 2 + length / BEAD)), STEP)
        place = np.linalg.solve(np.linalg.cholesky(springs).T, rng.standard_normal((beads, 3)))
        square = (place**2).sum(axis=1)
        total += square[:, None] + square[None] - 2 * place @ place.T < CLOSE**2
    ratio = BIN // BEAD
    return total.reshape(beads // ratio, ratio, beads // ratio, ratio).sum(axis=(1, 3)) / cells


def _join(springs: np.ndarray, one: int, other: int, length: float) -> None:
    """A spring of root mean square length ``length`` (nm) between two beads."""
    k = 3 / length**2
    springs[[one, other], [one, other]] += k
    springs[[one, other], [other, one]] -= k


def write_inputs(folder: Path, cells: int, seed: int) -> np.ndarray:
    """genome.fa.gz, peaks.narrowPeak and map.cool; the contacts behind the map."""
    rng = np.random.default_rng(seed)
    with gzip.open(folder / "genome.fa.gz", "wt") as file:
        for name, length in (("chrI", 30_000), (CHROMOSOME, LENGTH)):
            letters = "".join(rng.choice(list("ACGT"), length, p=[0.31, 0.19, 0.19, 0.31]))
            file.write(f">{name}\n" + "\n".join(letters[k:k + 60] for k in range(0, length, 60)) + "\n")
    with open(folder / "peaks.narrowPeak", "w") as file:
        for name, length in (("chrI", 30_000), (CHROMOSOME, LENGTH)):
            dyad = 100
            while dyad < length - 100:
                for other in (0, 30)[:1 + int(rng.random() < 0.3)]:  # alternatives that overlap
                    file.write(f"{name}\t{dyad + other - 73}\t{dyad + other + 74}\t.\t{rng.integers(100, 999)}\t.\t"
                               f"{rng.gamma(3, 2):.2f}\t-1\t-1\t73\n")
                dyad += int(rng.normal(165, 8)) + (150 if rng.random() < 0.06 else 0)
    contacts = truth(cells, rng)
    bins = len(contacts)
    visible = np.exp(rng.normal(0, 0.3, bins))
    expected = contacts * np.outer(visible, visible)
    locus = slice(FIRST // BIN, LAST // BIN)
    counts = rng.poisson(expected * READS / np.triu(expected[locus, locus], 2).sum())
    one, other = np.nonzero(np.triu(counts))
    with hictkpy.cooler.FileWriter(str(folder / "map.cool"), {"chrI": 30_000, CHROMOSOME: LENGTH}, BIN) as file:
        file.add_pixels_from_dict({"bin1_id": (one + 15).tolist(), "bin2_id": (other + 15).tolist(),
                                   "count": counts[one, other].tolist()})
    return contacts[locus, locus]


def command(folder: Path, *words: str) -> dict:
    """What a command of chromabuild prints."""
    done = subprocess.run([sys.executable, "-m", "chromabuild.cli", *words, "--json"], cwd=folder, capture_output=True,
                          text=True)
    if done.returncode:
        sys.exit(f"chromabuild {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout.strip() else {}


def main() -> None:
    """Make the inputs, run the commands, score."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--cells", type=int, default=4000, help="of the map")
    add("--samples", type=int, default=19200, help="conformations of an ensemble")
    add("--sweeps", type=int, default=20, help="of the fold; 0: none is made")
    add("--left-out", action=argparse.BooleanOptionalAction, default=True, help="predict every pixel without it")
    add("--seed", type=int, default=1)
    given = benchmark.start(quick={"cells": 200, "samples": 640, "sweeps": 0, "left_out": False})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        true = write_inputs(folder, given.cells, given.seed)
        sets = [word for one in SETTINGS for word in ("--set", one)]
        command(folder, "init", "locus", "--fasta", "genome.fa.gz", "--nucleosomes", "peaks.narrowPeak", "--region",
                f"{CHROMOSOME}:{FIRST}-{LAST}", *sets)
        work = folder / "locus"
        command(work, "validate", "--until", "scaffold")
        command(work, "contact-energies", "../map.cool", "-t", "1")
        settings = load_config(work / "locus.yaml")
        fibre = load_locus(settings.locus).fibre()
        chain = build_chain(fibre, Parameters(confinement_radius=settings.scaffold.confinement_radius,
                                              core_charges="formal"))
        counts = read_counts(folder / "map.cool", fibre.chromosome, fibre.start, fibre.start + len(fibre.sequence))
        polymer = polymer_of(chain, fibre, counts)
        entries = read_contact_energies(work / "contact_energies.bedpe", fibre.chromosome, fibre.start,
                                        len(fibre.sequence))
        pair = (np.array([(one.first[0], one.second[0]) for one in entries]) + fibre.start - counts.start) // BIN
        fitted = polymer.with_energies(pair, np.array([one.energy for one in entries]))
        made, free = (contact_frequencies(ensemble(one, given.samples, given.seed)) for one in (fitted, polymer))
        slopes = benchmark.table("slope", f"{CHROMOSOME}:{FIRST:,}-{LAST:,} of a made genome: exponent of contacts "
                                 "against distance, 4 to 20 kb", map="", exponent=".2f")
        for name, values in (("truth", true), ("counts", counts.count), ("polymer without contact energies", free),
                             ("ensemble", made)):
            slopes.row(name, slope(values, 2, 10))
        loops = benchmark.table("loops", "Planted loops over what is usual at their distance", loop="", **{
            "cells that have it": ".2f", "truth": ".2f", "ensemble": ".2f", "polymer without contact energies": ".2f"})
        for first, last, share in LOOPS:
            i, j = ((place - FIRST + 1) // BIN for place in (first, last))
            loops.row(f"{first}-{last}", share, *(float(one[i, j] / np.diagonal(one, j - i).mean())
                                                  for one in (true, made, free)))
        if given.sweeps:
            folds = benchmark.table("fold", "A fold of the locus down to the base pair", quantity="", value="")
            command(work, "scaffold", "-t", "1", "--set", f"scaffold.sweeps={given.sweeps}", "--set",
                    "scaffold.contact_energies=contact_energies.bedpe")
            scaffold = Scaffold.read(work / "results" / "scaffold.h5")
            folds.row("nucleosomes", str(len(scaffold.dyad)))
            folds.row("pairs of DNA and cores that overlap", str(scaffold.floor_violations))
            folds.row("radius of gyration, nm", f"{scaffold.observables['radius_of_gyration']:.0f}")
    if given.left_out:
        score(benchmark, polymer, counts, true, given.samples, given.seed)
    benchmark.finish()


def score(benchmark: Benchmark, polymer: BinnedPolymer, counts: BinnedCounts, true: np.ndarray, samples: int, seed: int
          ) -> None:
    """Predictions of pixels that were left out, beside the counts and the truth."""
    maps, visible = predicted(polymer, counts, "random", samples, seed)
    everything = np.ones_like(counts.count, bool)
    v, _ = visibilities(counts.count, everything)
    near = separation(len(true)) <= NEAR
    table = benchmark.table(
        "agreement", "Correlation at pixels that were left out, means at each distance divided out", prediction="",
        pairs="", **{"Pearson with counts": ".2f", "SCC with counts": ".2f", "Pearson with the truth": ".2f",
                     "SCC with the truth": ".2f"})
    for pairs, scored in (("all", everything), (f"up to {NEAR * BIN // 1000} kb", near)):
        for name, key in (("visibilities and distance", "distance"),
                          ("averages of neighbouring pixels", "neighbours"), ("ensemble", "ensemble")):
            seen, balanced = maps[key] * visible, maps[key]
            table.row(name, pairs, pearson(seen, counts.count, scored), stratum_adjusted(seen, counts.count, scored),
                      pearson(balanced, true, scored), stratum_adjusted(balanced, true, scored))
        most = ceilings(counts.count, v, scored, 50, seed)
        table.row("the true map (ceiling)", pairs, most["Pearson"], most["SCC"], None, None)


if __name__ == "__main__":
    main()
