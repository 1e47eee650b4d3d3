"""A solute of any size, made in seconds: copies of one built nucleosome with 177 bp, spread over a box.

It stands for a long locus where only its size and the share of the box that it fills matter: 469 copies have the
83,000 base pairs, the nucleosomes and within 1 % the atoms of the yeast locus chrXIII:36,501-119,500.
"""

from pathlib import Path

import h5py
import numpy as np
from scipy.spatial.transform import Rotation

from chromabuild.molecule.residues import residue_names
from chromabuild.molecule.solute import FORMAT, VERSION, Solute, base_36


def one_nucleosome() -> Solute:
    """Octamer and 177 bp of random sequence as the builder once made them; centred on the origin.

    From a file, so that what is built on it does not change with the builder.
    """
    return Solute.read(Path(__file__).parent / "data" / "nucleosome_177bp.h5")


def write_spread(path: str | Path, box: tuple[float, float, float], copies: int) -> int:
    """Write a solute file of ``copies`` nucleosomes, turned at random, on a lattice that fills ``box`` (angstrom).

    One copy is in memory at a time. Gives the number of atoms. Raises ValueError when the box is too small.
    """
    unit = one_nucleosome()
    reach = 2 * np.linalg.norm(unit.position, axis=1).max()
    room = np.array(box) - reach
    lattice = np.maximum(1, np.floor(np.array(box) / reach)).astype(int)
    if copies > lattice.prod() or (room <= 0).any():
        raise ValueError(f"{copies} nucleosomes of {reach:.0f} angstrom do not fit a box of {box}: at most "
                         f"{lattice.prod()}")
    cells = np.linspace(0, lattice.prod() - 1, copies).round().astype(int)
    index = np.stack(np.unravel_index(cells, lattice), axis=1)
    centres = reach / 2 + room * (index + 0.5) / lattice
    turns = Rotation.random(copies, random_state=1).as_matrix()
    segments, residues = len(unit.segment_name), unit.n_residues
    with h5py.File(path, "w") as file:
        file.attrs["format"], file.attrs["version"], file.attrs["provenance"] = FORMAT, VERSION, "{}"
        position = file.create_dataset("atom/position", (copies * unit.n_atoms, 3), "f4")
        for k in range(copies):
            position[k * unit.n_atoms:(k + 1) * unit.n_atoms] = centres[k] + unit.position @ turns[k].T
        file["residue/template"] = np.tile(unit.residue_template, copies)
        file["residue/template_name"] = [name.encode() for name in residue_names()]
        file["residue/number"] = np.tile(unit.residue_number, copies)
        shift = np.repeat(segments * np.arange(copies), residues)
        file["residue/segment"] = (np.tile(unit.residue_segment.astype(int), copies) + shift).astype(np.uint16)
        file["segment/name"] = [b"S" + base_36(k, 3).encode() for k in range(segments * copies)]
        file["segment/chain"] = [chain.encode() for chain in unit.segment_chain] * copies
        first = unit.molecule_first_residue[None, :-1] + residues * np.arange(copies)[:, None]
        file["molecule/first_residue"] = np.append(first.ravel(), residues * copies)
        file["molecule/name"] = [name.encode() for name in unit.molecule_name] * copies
        file["molecule/nucleosome"] = np.where(unit.molecule_nucleosome < 0, -1, 0).tolist() * copies
    return copies * unit.n_atoms
