"""The contact map of a scaffold as files for other programs: contact_map.npz, and contact_map.cool for Hi-C tools."""

import tempfile
from pathlib import Path

import h5py
import numpy as np

from chromabuild.files import atomic_path


def write_contact_map(counts: np.ndarray, resolution: int, chromosome: str, start: int, folder: Path) -> None:
    """Write a symmetric map (k, k) whose first bin of ``resolution`` bp holds base pair ``start`` of ``chromosome``.

    The same map gives the same bytes.
    """
    import hictkpy

    first = start // resolution
    one, other = np.nonzero(np.triu(counts))
    with atomic_path(folder / "contact_map.npz") as part, open(part, "wb") as file:
        np.savez_compressed(file, counts=counts, resolution=resolution, chromosome=chromosome, start=first * resolution)
    with atomic_path(folder / "contact_map.cool") as part, tempfile.TemporaryDirectory() as scratch:
        dated = Path(scratch) / "dated.cool"
        size = (first + len(counts)) * resolution
        writer = hictkpy.cooler.FileWriter(dated, {chromosome or "locus": size}, resolution, tmpdir=scratch)
        pixels = {"bin1_id": first + one, "bin2_id": first + other, "count": counts[one, other].tolist()}
        if len(one):
            writer.add_pixels_from_dict(pixels, sorted=True)
        writer.finalize()
        _copy_without_dates(dated, part)


def _copy_without_dates(source: Path, target: Path) -> None:
    """Copy an HDF5 file, leaving out when it and its datasets were made."""
    with h5py.File(source, "r") as old, h5py.File(target, "w") as new:
        def copy(name: str, item: h5py.Group | h5py.Dataset) -> None:
            if isinstance(item, h5py.Dataset):
                made = new.create_dataset(name, data=item[()], dtype=item.dtype, track_times=False)
            else:
                made = new.require_group(name)
            made.attrs.update(item.attrs)

        new.attrs.update({key: value for key, value in old.attrs.items() if key != "creation-date"})
        old.visititems(copy)
