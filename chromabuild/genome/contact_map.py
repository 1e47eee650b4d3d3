"""The contact map of a scaffold as files for other programs: contact_map.npz, and contact_map.cool for Hi-C tools."""

from pathlib import Path

import h5py
import numpy as np

from chromabuild.base.files import atomic_path
from chromabuild.base.hdf5_file import written_hdf5


def write_contact_map(counts: np.ndarray, resolution: int, chromosome: str, start: int, folder: Path) -> None:
    """Write a symmetric map (k, k) whose first bin of ``resolution`` bp holds base pair ``start`` of ``chromosome``.

    The same map gives the same bytes.
    """
    first = start // resolution
    with atomic_path(folder / "contact_map.npz") as part, open(part, "wb") as file:
        np.savez_compressed(file, counts=counts, resolution=resolution, chromosome=chromosome, start=first * resolution)
    with written_hdf5(folder / "contact_map.cool") as file:
        _write_cooler(file, np.triu(counts), resolution, chromosome or "locus", first)


def _write_cooler(file: h5py.File, upper: np.ndarray, resolution: int, chromosome: str, first: int) -> None:
    """A file of version 3 of the cooler format (Abdennur & Mirny, Bioinformatics 36:311, 2020): one chromosome, which
    ends where the map (k, k) does, whose first bin is number ``first``."""
    one, other = np.nonzero(upper)
    bins = first + len(upper)
    edge = np.arange(bins + 1, dtype=np.int32) * np.int32(resolution)
    columns = {
        "chroms/name": np.array([chromosome.encode()]), "chroms/length": edge[-1:],
        "bins/chrom": np.zeros(bins, np.int32), "bins/start": edge[:-1], "bins/end": edge[1:],
        "pixels/bin1_id": first + one, "pixels/bin2_id": first + other, "pixels/count": upper[one, other],
        "indexes/chrom_offset": np.array([0, bins]),
        "indexes/bin1_offset": np.searchsorted(first + one, np.arange(bins + 1)),
    }  # fmt: skip
    for name, values in columns.items():
        file.create_dataset(name, data=values, track_times=False)
    file.attrs.update({
        "format": "HDF5::Cooler", "format-url": "https://github.com/open2c/cooler", "format-version": np.uint8(3),
        "bin-type": "fixed", "bin-size": np.uint32(resolution), "storage-mode": "symmetric-upper",
        "assembly": "unknown", "metadata": "{}", "generated-by": "chromabuild", "nchroms": np.int32(1),
        "nbins": np.int64(bins), "nnz": np.int64(len(one)), "sum": np.int64(upper.sum()),
    })  # fmt: skip
