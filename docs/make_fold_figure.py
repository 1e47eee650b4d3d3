"""Draw docs/images/fold_83kb.png: the folded yeast locus, and its contact map beside the Hi-C of the same place.

    python docs/make_fold_figure.py scaffold.h5

The scaffold is that of workflows/config/chrXIII.yaml. Printed: Spearman's rank correlation of the two maps, whole, and
once the mean at each distance along the chromosome is divided out.
"""

import gzip
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import NullFormatter
from scipy.stats import spearmanr

from chromabuild.report.pictures import scaffold_picture
from mesoscale.scaffold import Scaffold

ROOT = Path(__file__).parent.parent
HIC = ROOT / "workflows/config/loci/chrXIII_36501-119500.hic_2kb.bedpe.gz"
BIN = 2000


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


def main(path: str) -> None:
    """Draw the figure."""
    scaffold = Scaffold.read(path)
    start, size = int(scaffold.position[0]), scaffold.contact_resolution
    first = start // BIN * BIN
    place = (start // size * size + size * np.arange(len(scaffold.contact_map)) - first) // BIN
    place = np.maximum(place, 0)
    bins = int(place.max()) + 1
    model = np.zeros((bins, bins))
    np.add.at(model, (place[:, None], place[None]), scaffold.contact_map)
    hic = measured(first, bins)
    upper = np.triu_indices(bins, 1)
    expected = [by_distance(counts)[np.subtract(upper[1], upper[0])] for counts in (model, hic)]
    whole = spearmanr(model[upper], hic[upper]).statistic
    ratio = [counts[upper] / np.maximum(mean, 1e-9) for counts, mean in zip((model, hic), expected, strict=True)]
    beyond = spearmanr(*ratio).statistic
    print(f"rank correlation of the maps {whole:.2f}, with the mean at each distance divided out {beyond:.2f}")

    both = np.triu(model / model[upper].sum()) + np.tril(hic / hic[upper].sum(), -1)
    both[both == 0] = np.nan
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 5), width_ratios=(1.15, 1, 0.85), dpi=130)
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
    middle.set_title("above: model (circles: restrained loops); below: Hi-C")
    middle.set_xlabel(f"{scaffold.chromosome}, kb")
    figure.colorbar(shown, ax=middle, label="share of contacts", shrink=0.8)
    for counts, label in ((model, "model, within 25 nm"), (hic, "Hi-C, 2 kb bins")):
        mean = by_distance(counts)[1:]
        right.loglog(BIN / 1000 * np.arange(1, bins), mean / mean.sum(), label=label)
    right.set_xlabel("distance along the chromosome, kb")
    right.set_ylabel("share of contacts")
    right.set_title("contacts against distance")
    right.xaxis.set_minor_formatter(NullFormatter())
    right.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "images/fold_83kb.png")


if __name__ == "__main__":
    main(sys.argv[1])
