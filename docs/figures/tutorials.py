"""Pictures of the tutorials, from folders of builds with the settings that they name as real.

    python docs/figures/tutorials.py FIRST_LOCUS OWN_LOCUS SINGLE_NUCLEOSOME IMPORTED

FIRST_LOCUS, SINGLE_NUCLEOSOME: build folders with results/report.html. OWN_LOCUS: the folder with hic.cool and
my_gene/results. IMPORTED: a folder with npt.log (4,000 steps).
"""

import base64
import re
import sys
from io import BytesIO
from pathlib import Path

import h5py
import matplotlib
import numpy as np
from PIL import Image

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm

IMAGES = Path(__file__).resolve().parents[1] / "images" / "tutorials"


def side_by_side(report: Path, which: tuple[int, int], target: str) -> None:
    """Two pictures of a report (0 solute, 1 box, 2 scaffold) as one."""
    found = re.findall(r'<img[^>]*src="data:image/\w+;base64,([^"]+)"', report.read_text(encoding="utf-8"))
    sheet = Image.new("RGB", (1200, 450), "white")
    for place, number in enumerate(which):
        picture = Image.open(BytesIO(base64.b64decode(found[number]))).convert("RGB")
        sheet.paste(picture.resize((600, 450), Image.Resampling.LANCZOS), (600 * place, 0))
    sheet.quantize(256, dither=Image.Dither.NONE).save(IMAGES / target, optimize=True)


def contact_maps(folder: Path, target: str) -> None:
    """Hi-C of the locus beside the contacts of the fold, with the pair of bins that restrains it."""
    first, last, pair, edge = 84, 96, (84, 90), 2  # kb
    with h5py.File(folder / "hic.cool") as file:
        one, other, count = (file[f"pixels/{name}"][:] for name in ("bin1_id", "bin2_id", "count"))
    bins = (last - first) // edge
    one, other = one - first // edge, other - first // edge
    inside = (one >= 0) & (other < bins)
    hic = np.zeros((bins, bins))
    hic[one[inside], other[inside]] = hic[other[inside], one[inside]] = count[inside]
    fold = np.load(folder / "my_gene" / "results" / "contact_map.npz")
    start, resolution = int(fold["start"]) / 1000, int(fold["resolution"]) / 1000
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), constrained_layout=True)
    for axis, counts, begin, step, title in (
            (axes[0], hic, first, edge, "Hi-C, 2 kb"),
            (axes[1], fold["counts"], start, resolution, f"Contacts of a fold, {1000 * resolution:.0f} bp")):
        end = begin + step * len(counts)
        shown = axis.imshow(np.where(counts > 0, counts, np.nan), norm=LogNorm(), cmap="YlOrRd",
                            extent=(begin, end, end, begin))
        figure.colorbar(shown, ax=axis, label="count", shrink=0.85)
        for corner in (pair, pair[::-1]):
            axis.add_patch(plt.Rectangle(corner, edge, edge, fill=False, lw=2, ec="#2b5d8c"))
        axis.set(title=title, xlabel="chrXIII, kb", ylabel="chrXIII, kb")
    figure.savefig(IMAGES / target, dpi=100)


def constant_pressure(log: Path, target: str) -> None:
    """Temperature and volume of a run."""
    rows = [line.split()[1:] for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("INFO:")]
    table = dict(zip(rows[0], np.array(rows[1:], dtype=float).T, strict=True))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), constrained_layout=True)
    for axis, name, unit in ((axes[0], "TEMPERATURE", "temperature, K"), (axes[1], "VOLUME", "volume, nm$^3$")):
        axis.plot(table["TIME"], table[name] / (1000 if name == "VOLUME" else 1), color="#2b5d8c")
        axis.set(xlabel="time, ps", ylabel=unit)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].axhline(303.15, color="#8a94a6", lw=1, ls="--")
    figure.savefig(IMAGES / target, dpi=110)


if __name__ == "__main__":
    demo, own, one, imported = map(Path, sys.argv[1:])
    IMAGES.mkdir(parents=True, exist_ok=True)
    side_by_side(demo / "results" / "report.html", (2, 1), "first-locus.png")
    contact_maps(own, "your-own-locus.png")
    side_by_side(one / "results" / "report.html", (0, 1), "single-nucleosome.png")
    constant_pressure(imported / "npt.log", "imported-system.png")
