"""Solutes that the benchmarks build for themselves: a duplex, a nucleosome, and many copies of it spread over a box."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
from scipy.spatial.transform import Rotation

from chromabuild.base.settings import Settings
from chromabuild.build import build_solute
from chromabuild.clash import correct_clashes
from chromabuild.dna.helix import crystal_path
from chromabuild.dna.steps import advance, dna_parameters
from chromabuild.molecule.residues import residue_names
from chromabuild.molecule.solute import FORMAT, VERSION, Solute, base_36

WRAPPED = 147


def straight_scaffold(nucleosomes: int, flank: int, seed: int = 1) -> SimpleNamespace:
    """A scaffold of one nucleosome or none with ``flank`` straight base pairs on either side, random sequence."""
    path_origin, path_frame = crystal_path()
    step = dna_parameters().b_dna
    origins, frames, owner = [], [], []
    core_origin, core_frame, first = [], [], []
    origin, frame = np.zeros(3), np.eye(3)
    for part in range(2):
        for _ in range(flank):
            origins.append(origin)
            frames.append(frame)
            owner.append(-1)
            origin, frame = advance(origin, frame, step)
        if part == 0 and nucleosomes:
            turned = frame @ path_frame[0].T
            centre = origin - turned @ path_origin[0]
            first.append(len(origins))
            core_origin.append(centre)
            core_frame.append(turned)
            origins += [centre + turned @ place for place in path_origin]
            frames += [turned @ turn for turn in path_frame]
            owner += [0] * WRAPPED
            origin, frame = advance(origins[-1], frames[-1], step)
    n = len(origins)
    letters = np.random.Generator(np.random.Philox(key=seed)).integers(0, 4, n)
    first_bp = np.array(first, np.int32)
    return SimpleNamespace(
        name="straight", chromosome="chrS", circular=False, position=np.arange(n), origin=np.array(origins),
        frame=np.array(frames),
        base=np.frombuffer(b"ACGT", np.uint8)[letters], nucleosome=np.array(owner, np.int32),
        core_origin=np.array(core_origin).reshape(-1, 3), core_frame=np.array(core_frame).reshape(-1, 3, 3),
        dyad=first_bp + WRAPPED // 2, first_bp=first_bp, last_bp=first_bp + WRAPPED - 1, missing=(), proteins=())


def duplex(base_pairs: int) -> Solute:
    """Straight DNA of random sequence; an even number of base pairs."""
    return build_solute(straight_scaffold(0, base_pairs // 2), Settings())


@cache
def nucleosome() -> Solute:
    """An octamer on 177 base pairs of random sequence, freed of clashes, centred on the origin."""
    solute, _ = correct_clashes(build_solute(straight_scaffold(1, 15), Settings()))
    solute.position -= solute.position.mean(axis=0)
    return solute


def write_spread(path: Path, box: tuple[float, float, float], copies: int) -> int:
    """Write a solute file of ``copies`` nucleosomes, turned at random, on a lattice that fills ``box`` (angstrom).

    It stands for a long locus where only its size and the share of the box that it fills matter: 469 copies have the
    base pairs and nucleosomes of the 83 kb yeast locus. One copy is in memory at a time. Gives the number of atoms.
    Raises ValueError when the box is too small.
    """
    unit = nucleosome()
    reach = 2 * np.linalg.norm(unit.position, axis=1).max()
    lattice = np.maximum(1, np.floor(np.array(box) / reach)).astype(int)
    if copies > lattice.prod() or min(box) < reach:
        raise ValueError(f"{copies} nucleosomes of {reach:.0f} angstrom do not fit a box of {box}: at most "
                         f"{lattice.prod()}")
    cells = np.linspace(0, lattice.prod() - 1, copies).round().astype(int)
    index = np.stack(np.unravel_index(cells, lattice), axis=1)
    centres = np.array(box) * (index + 0.5) / lattice  # cells are at least as wide as a nucleosome
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
