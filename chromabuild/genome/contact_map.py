"""The contact map of a scaffold as files for other programs: contact_map.npz, and contact_map.cool for Hi-C tools."""

from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np

from chromabuild.base.files import atomic_path
from chromabuild.base.hdf5_file import written_hdf5

if TYPE_CHECKING:
    from scipy.sparse import spmatrix

Pixels = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Row, column, not before the row, and count of filled pixels (n,), by ascending row, then column."""


def write_contact_map(counts: np.ndarray, resolution: int, chromosome: str, start: int, folder: Path) -> None:
    """Write a symmetric map (k, k) whose first bin of ``resolution`` bp holds base pair ``start`` of ``chromosome``.

    The same map gives the same bytes.
    """
    first = start // resolution
    with atomic_path(folder / "contact_map.npz") as part, open(part, "wb") as file:
        np.savez_compressed(file, counts=counts, resolution=resolution, chromosome=chromosome, start=first * resolution)
    edge = np.arange(first + len(counts) + 1, dtype=np.int64) * resolution
    with written_hdf5(folder / "contact_map.cool") as file:
        _write_cooler(file, upper_pixels(counts), edge, chromosome or "locus", first, resolution)


def write_nucleosome_map(counts: np.ndarray, edge: np.ndarray, chromosome: str, path: Path) -> None:
    """Write a symmetric map (m, m) as a .cool file whose bins end at the m + 1 places ``edge`` of ``chromosome``.

    A bin before them reaches from the chromosome's start to the first one. The same map gives the same bytes.
    """
    first = int(edge[0] > 0)
    whole = np.concatenate([[0], edge]) if first else edge
    with written_hdf5(path) as file:
        _write_cooler(file, upper_pixels(counts), np.asarray(whole), chromosome or "locus", first, None)


def write_pixels(pixels: Pixels, bins: int, resolution: int, chromosome: str, start: int, path: Path) -> None:
    """Write a .cool file of ``bins`` bins of ``resolution`` bp, the first of which holds base pair ``start`` of
    ``chromosome``; counts may be fractions. The same pixels give the same bytes."""
    first = start // resolution
    edge = np.arange(first + bins + 1, dtype=np.int64) * resolution
    with written_hdf5(path) as file:
        _write_cooler(file, pixels, edge, chromosome or "locus", first, resolution)


def upper_pixels(counts: np.ndarray) -> Pixels:
    """The filled pixels of a symmetric map (k, k)."""
    upper = np.triu(counts)
    one, other = np.nonzero(upper)
    return one, other, upper[one, other]


def sorted_pixels(upper: "spmatrix") -> Pixels:
    """The filled pixels of a sparse map (k, k), upper triangle."""
    filled = upper.tocoo()
    order = np.lexsort((filled.col, filled.row))
    return filled.row[order].astype(np.int64), filled.col[order].astype(np.int64), filled.data[order]


def _write_cooler(file: h5py.File, pixels: Pixels, edge: np.ndarray, chromosome: str, first: int,
                  bin_size: int | None) -> None:
    """A file of version 3 of the cooler format (Abdennur & Mirny, Bioinformatics 36:311, 2020): one chromosome, which
    ends at the last of ``edge``; the first bin of the pixels is number ``first``; ``bin_size`` None: bins of any
    length."""
    one, other, count = pixels
    bins, edge = len(edge) - 1, edge.astype(np.int32)
    columns = {
        "chroms/name": np.array([chromosome.encode()]), "chroms/length": edge[-1:],
        "bins/chrom": np.zeros(bins, np.int32), "bins/start": edge[:-1], "bins/end": edge[1:],
        "pixels/bin1_id": first + one, "pixels/bin2_id": first + other, "pixels/count": count,
        "indexes/chrom_offset": np.array([0, bins]),
        "indexes/bin1_offset": np.searchsorted(first + one, np.arange(bins + 1)),
    }  # fmt: skip
    for name, values in columns.items():
        file.create_dataset(name, data=values, track_times=False)
    file.attrs.update({
        "format": "HDF5::Cooler", "format-url": "https://github.com/open2c/cooler", "format-version": np.uint8(3),
        "bin-type": "fixed" if bin_size else "variable", "bin-size": np.uint32(bin_size) if bin_size else "null",
        "storage-mode": "symmetric-upper", "assembly": "unknown", "metadata": "{}", "generated-by": "chromabuild",
        "nchroms": np.int32(1), "nbins": np.int64(bins), "nnz": np.int64(len(one)), "sum": count.sum(),
    })  # fmt: skip
