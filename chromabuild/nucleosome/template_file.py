"""A user's nucleosome template: the path of its DNA and its octamer, as `chromabuild template add` writes them."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import h5py
import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.hdf5_file import CHECKED, HARMED, check_kind, written_hdf5
from chromabuild.molecule.residues import residue_names
from chromabuild.nucleosome.octamer import Octamer

FORMAT = "chromabuild-nucleosome"
VERSION = 1


@dataclass(frozen=True)
class NucleosomeTemplate:
    """What a fibre needs of a nucleosome, in the nucleosome's own frame (docs/reference/file-formats.md), angstrom."""

    origin: np.ndarray
    """(147, 3) base-pair origins; the dyad is in the middle."""
    frame: np.ndarray
    """(147, 3, 3)."""
    octamers: dict[str, Octamer]
    """By conformation of the tails: ``compact`` and ``crystal``."""
    report: dict = field(default_factory=dict)
    """What was found in the structure, and what was completed."""

    def write(self, path: str | Path) -> None:
        """Write HDF5 by atomic rename."""
        with written_hdf5(path, **CHECKED) as file:
            file.attrs["format"] = FORMAT
            file.attrs["version"] = VERSION
            file.attrs["provenance"] = json.dumps(self.report, sort_keys=True)
            file.create_dataset("bp/origin", data=self.origin)
            file.create_dataset("bp/frame", data=self.frame)
            for tails, core in self.octamers.items():
                for name, values in {
                        "position": core.position.astype(np.float32),
                        "residue_name": [residue_names()[k].encode() for k in core.residue_template],
                        "residue_number": core.residue_number, "residue_chain": core.residue_chain,
                        "histone": [name.encode() for name in core.histone]}.items():
                    file.create_dataset(f"octamer/{tails}/{name}", data=np.asarray(values))


@cache
def read_template(path: str | Path) -> NucleosomeTemplate:
    """Read what ``write`` wrote. Raises BadInputError when the file is missing or is no template."""
    try:
        with h5py.File(path, "r") as file:
            check_kind(file, path, FORMAT, VERSION, "make it with `chromabuild template add`")
            index = {name: k for k, name in enumerate(residue_names())}
            octamers = {}
            for tails, group in file["octamer"].items():
                kinds = np.array([index[name.decode()] for name in group["residue_name"]], dtype=np.uint16)
                octamers[tails] = Octamer(
                    group["position"][...].astype(float), kinds, group["residue_number"][...],
                    group["residue_chain"][...], tuple("ABCDEFGH"), tuple(name.decode() for name in group["histone"]))
            return NucleosomeTemplate(file["bp/origin"][...], file["bp/frame"][...], octamers,
                                      json.loads(file.attrs["provenance"]))
    except HARMED as error:
        raise BadInputError(f"{path} cannot be read as a nucleosome template ({error}): make it with "
                            "`chromabuild template add`") from None
