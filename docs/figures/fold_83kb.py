"""Draw docs/images/fold_83kb.png: the folded yeast locus, and its contact map beside the Hi-C of the same place.

    python docs/figures/fold_83kb.py scaffold.h5 [scaffold of another seed.h5 ...]

The scaffolds are those of workflows/config/chrXIII.yaml; the first is shown, the map is that of all: contacts against
distance along the chromosome, and where cores lie in the confining sphere. Printed: Spearman's rank correlation of the
two maps, whole, and once the mean at each distance along the chromosome is divided out; for each scaffold its radius of
gyration, kept contacts, and drift of the energy; the slope of contacts against distance of each curve. Coarse polymers
as folding begins with, many of them and cheap, show what the sphere and the loops do to that slope.
"""

import gzip
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import NullFormatter
from scipy.stats import spearmanr

from chromabuild.base.settings import load_config
from chromabuild.genome.locus import load_locus
from chromabuild.report.pictures import scaffold_picture
from mesoscale.model import Parameters, build_chain
from mesoscale.observables import contact_map
from mesoscale.polymer import coarse_path, nodes_of
from mesoscale.scaffold import Scaffold

ROOT = Path(__file__).resolve().parent.parent.parent
HIC = ROOT / "workflows/config/loci/chrXIII_36501-119500.hic_2kb.bedpe.gz"
BIN = 2000
RADIUS = 60.0  # nm, as in the settings
SHELLS = 8
POLYMERS, NUCLEUS = 8, 190.0  # chains; radius (nm) of the sphere that 83 kb have to themselves in a yeast nucleus
FITTED = slice(1, 10)  # of the distances in bins from 1: 4 to 20 kb


def measured(first: int, bins: int) -> np.ndarray:
    """The Hi-C counts as a symmetric map (bins, bins) from base pair `first`."""
    counts = np.zeros((bins, bins))
    for line in gzip.open(HIC, "rt"):
        if not line.startswith("#"):
            field = line.split("\t")
            i, j = (int(field[k]) // BIN - first // BIN for k in (1, 4))
            if 0 <= min(i, j) and max(i, j) < bins:
                counts[i, j] = counts[j, i] = float(field[7])
    return counts


def by_distance(counts: np.ndarray) -> np.ndarray:
    """Mean count at each distance in bins."""
    return np.array([np.diagonal(counts, k).mean() for k in range(len(counts))])


def in_bins(scaffold: Scaffold) -> np.ndarray:
    """The model's contact map summed to bins of BIN."""
    start, size = int(scaffold.position[0]), scaffold.contact_resolution
    place = (start // size * size + size * np.arange(len(scaffold.contact_map)) - start // BIN * BIN) // BIN
    place = np.maximum(place, 0)
    bins = int(place.max()) + 1
    counts = np.zeros((bins, bins))
    np.add.at(counts, (place[:, None], place[None]), scaffold.contact_map)
    return counts


def of_polymers(radius: float, loops: bool) -> np.ndarray:
    """Mean contacts at each distance in bins of POLYMERS coarse polymers in a sphere (nm)."""
    fibre = load_locus(load_config(ROOT / "workflows/config/chrXIII.yaml").locus).fibre()
    parameters = Parameters(confinement_radius=radius, core_charges="formal")
    chain = build_chain(fibre if loops else replace(fibre, contacts=()), parameters)
    nodes = nodes_of(chain)
    offset = fibre.start % BIN
    bins = -(-(offset + len(fibre.sequence)) // BIN)
    random = [np.random.Generator(np.random.Philox(key=seed)) for seed in range(POLYMERS)]
    paths = [coarse_path(chain, nodes, one) for one in random]
    return by_distance(contact_map(chain.bp[nodes] + offset, paths, bins, BIN))


def slope(mean: np.ndarray) -> float:
    """Exponent of the contacts against distance, 4 to 20 kb."""
    distance = np.arange(1, len(mean))[FITTED]
    return float(np.polyfit(np.log(distance), np.log(mean[1:][FITTED]), 1)[0])


def shell_shares(scaffold: Scaffold) -> np.ndarray:
    """Share of cores in each of SHELLS shells of equal volume of the confining sphere, about their mean."""
    distance = np.linalg.norm(scaffold.core_origin - scaffold.core_origin.mean(axis=0), axis=1) / 10
    edges = RADIUS * np.linspace(0, 1, SHELLS + 1) ** (1 / 3)
    edges[-1] = np.inf  # the sphere is soft: some lie a little beyond it
    return np.histogram(distance, edges)[0] / len(distance)


def ideal_chain_shares() -> np.ndarray:
    """The same for an ideal chain much longer than the sphere is wide: density (sin(pi r/R)/r)^2 (de Gennes 1979)."""
    inside = np.linspace(0, 1, SHELLS + 1) ** (1 / 3)
    return np.diff(inside - np.sin(2 * np.pi * inside) / (2 * np.pi))


def main(paths: list[str]) -> None:
    """Draw the figure."""
    scaffolds = [Scaffold.read(path) for path in paths]
    scaffold = scaffolds[0]
    start = int(scaffold.position[0])
    first = start // BIN * BIN
    models = [in_bins(one) for one in scaffolds]
    model, bins = np.sum(models, axis=0), len(models[0])
    hic = measured(first, bins)
    upper = np.triu_indices(bins, 1)
    expected = [by_distance(counts)[np.subtract(upper[1], upper[0])] for counts in (model, hic)]
    whole = spearmanr(model[upper], hic[upper]).statistic
    ratio = [counts[upper] / np.maximum(mean, 1e-9) for counts, mean in zip((model, hic), expected, strict=True)]
    beyond = spearmanr(*ratio).statistic
    print(f"rank correlation of the maps {whole:.2f}, with the mean at each distance divided out {beyond:.2f}")
    for path, one in zip(paths, scaffolds, strict=True):
        kept = [contact["kept"] for contact in one.contacts if contact["kept"] is not None]
        seen = one.observables
        print(f"{path}: Rg {seen['radius_of_gyration']:.1f} nm, {sum(kept)} of {len(kept)} contacts kept")
        print(f"  drift of the energy {seen['energy_drift']:.0f} kBT against a noise of {seen['energy_noise']:.0f}")

    both = np.triu(model / model[upper].sum()) + np.tril(hic / hic[upper].sum(), -1)
    both[both == 0] = np.nan
    figure, ((left, middle), (right, shells)) = plt.subplots(2, 2, figsize=(11.5, 9), dpi=110)
    left.imshow(scaffold_picture(scaffold.origin, scaffold.frame, scaffold.nucleosome, scaffold.core_origin,
                                 scaffold.core_frame, (900, 825)))  # fmt: skip
    left.set_axis_off()
    extent = np.ptp(scaffold.origin, axis=0) / 10
    left.set_title(f"{len(scaffold.dyad)} nucleosomes, {len(scaffold.base):,} bp, "
                   + " x ".join(f"{edge:.0f}" for edge in extent) + " nm")  # fmt: skip
    edges = (first / 1000, (first + bins * BIN) / 1000)
    shown = middle.imshow(both, norm=LogNorm(), cmap="magma_r", extent=(*edges, edges[1], edges[0]))
    for contact in scaffold.contacts:
        if contact["distance"] is not None:
            x, y = ((start + sum(contact[key]) / 2) / 1000 for key in ("second", "first"))
            middle.plot(x, y, "o", mfc="none", mec="tab:cyan" if contact["kept"] else "tab:red", ms=9)
    middle.set_title(f"above: {len(models)} folds (circles: restrained loops, red if open); below: Hi-C", fontsize=10)
    middle.set_xlabel(f"{scaffold.chromosome}, kb")
    figure.colorbar(shown, ax=middle, label="share of contacts", shrink=0.8)
    seeds = [one.provenance["seed"] for one in scaffolds]
    curves = [(by_distance(counts), f"model, within 25 nm, seed {seed}", "-")
              for seed, counts in zip(seeds, models, strict=True)]  # fmt: skip
    curves += [(by_distance(hic), "Hi-C, 2 kb bins", "-"),
               (of_polymers(RADIUS, True), f"polymers with loops, sphere of {RADIUS:.0f} nm", ":"),
               (of_polymers(NUCLEUS, False), f"polymers without loops, {NUCLEUS:.0f} nm", "--")]  # fmt: skip
    for mean, label, style in curves:
        print(f"{label}: contacts fall off as distance to the power {slope(mean):.2f}")
        right.loglog(BIN / 1000 * np.arange(1, bins), mean[1:] / mean[1:].sum(), style, label=label)
    right.set_xlabel("distance along the chromosome, kb")
    right.set_ylabel("share of contacts")
    right.set_title("contacts against distance")
    right.set_xticks([2, 5, 10, 20, 50], labels=["2", "5", "10", "20", "50"])
    right.xaxis.set_minor_formatter(NullFormatter())
    right.set_ylim(1e-4, 0.5)
    right.legend(frameon=False, fontsize=8)
    at = (np.arange(SHELLS) + 0.5) / SHELLS
    for k, one in enumerate(scaffolds):
        shells.step(at, SHELLS * shell_shares(one), where="mid", label=f"model, seed {seeds[k]}")
    shells.plot(at, np.ones(SHELLS), "k:", label="evenly filled")
    shells.plot(at, SHELLS * ideal_chain_shares(), "k--", label="ideal chain")
    shells.set_xlabel(f"share of the volume of the sphere of {RADIUS:.0f} nm, from its centre")
    shells.set_ylabel("density of cores / mean density")
    shells.set_title("where cores lie")
    shells.set_ylim(0, None)
    shells.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(ROOT / "docs/images/fold_83kb.png")


if __name__ == "__main__":
    main(sys.argv[1:])
