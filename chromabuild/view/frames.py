"""Frames of the dynamics as the overview shows them: the path of the DNA, and the cores fitted to their histones."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.base.box_vectors import box_of_frame, nearest_image
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.peptide import superposition

if TYPE_CHECKING:
    from mesoscale.scaffold import Scaffold

PS = 0.0488882129  # ps in a unit of time of a DCD file: angstrom sqrt(u mol / kcal)


@dataclass(frozen=True)
class Frames:
    """f frames of p places along the DNA and m cores, angstrom, laid upon the fibre as it was built."""

    label: list[str]
    path: np.ndarray
    """(f, p, 3)."""
    core: np.ndarray
    """(f, m, 3)."""
    core_frame: np.ndarray
    """(f, m, 3, 3), axes as columns."""


def read_frames(trajectories: Sequence[tuple[str, Path]], solute: Solute, scaffold: "Scaffold", places: np.ndarray,
                most: int) -> Frames | None:
    """At most ``most`` frames, evenly chosen from all of some DCD files (name of the phase, path), None without any.

    ``places`` (p,): the base pairs whose positions are wanted. The solute is what a trajectory begins with. DNA that
    crosses the faces of the box is made whole. Raises BadInputError for a file that cannot be read or that is not of
    this solute.
    """
    from MDAnalysis.lib.formats.libdcd import DCDFile

    follower = _Follower(solute, scaffold, places)
    counts = []
    for _, path in trajectories:
        try:
            with DCDFile(str(path)) as file:
                counts.append(len(file))
                n_atoms = file.header["natoms"]
        except (OSError, EOFError) as error:
            raise BadInputError(f"{path} cannot be read as a trajectory ({error}): run chromabuild run") from error
        if n_atoms < solute.n_atoms:
            raise BadInputError(f"{path} holds {n_atoms:,} atoms and the solute has {solute.n_atoms:,}: "
                                "they are not of one build, run chromabuild run again")
    total = sum(counts)
    chosen = np.unique(np.linspace(0, total - 1, min(most, total)).round().astype(int)) if total and most else []
    first = np.concatenate([[0], np.cumsum(counts)]).astype(int)
    labels, found = [], []
    for index in chosen:
        k = int(np.searchsorted(first, index, side="right")) - 1
        name, path = trajectories[k]
        with DCDFile(str(path)) as file:
            file.seek(int(index - first[k]))
            frame, header = file.read(), file.header
        time = (header["istart"] + (index - first[k]) * header["nsavc"]) * header["delta"] * PS
        labels.append(f"{name}, {time:.6g} ps")
        found.append(follower.follow(frame.xyz[:solute.n_atoms], box_of_frame(frame.unitcell)))
    if not found:
        return None
    return Frames(labels, *(np.array(part) for part in zip(*found, strict=True)))


class _Follower:
    """Finds the path and the cores of a conformation of the solute."""

    def __init__(self, solute: Solute, scaffold: "Scaffold", places: np.ndarray) -> None:
        first, n = solute.residue_first_atom, len(scaffold.base)
        strands = [solute.molecule_name.index(name) for name in ("DNA-I", "DNA-J")]
        one, other = (int(solute.molecule_first_residue[k]) for k in strands)
        rows = np.array([one + np.arange(n), other + n - 1 - np.arange(n)])
        self._sugar = first[rows] + _atom_in_residue(solute, rows, "C1'")
        self._places = places
        self._scaffold = scaffold
        self._wrapped = [slice(a, b + 1) for a, b in zip(scaffold.first_bp, scaffold.last_bp, strict=True)]
        self._histones: list[np.ndarray] = []
        molecule = np.repeat(np.arange(len(solute.molecule_name)), np.diff(solute.molecule_first_residue))
        of_nucleosome = solute.molecule_nucleosome[molecule]
        for k in range(len(scaffold.dyad)):
            residues = np.flatnonzero(of_nucleosome == k)
            column = _atom_in_residue(solute, residues, "CA")
            self._histones.append((first[residues] + column)[column >= 0])
        position = np.asarray(solute.position, dtype=np.float64)
        self._built = position[self._sugar].mean(axis=0)
        self._built_cores = [position[atoms] for atoms in self._histones]

    def follow(self, position: np.ndarray, box: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Path (p, 3), cores (m, 3) and their frames (m, 3, 3) of positions (n, 3) in a box, (3,) or (3, 3), or none.
        """
        one, other = np.asarray(position[self._sugar], dtype=np.float64)
        middle = one + _nearest(other - one, box) / 2
        path = middle[0] + np.concatenate([[np.zeros(3)], np.cumsum(_nearest(np.diff(middle, axis=0), box), axis=0)])
        turn, shift = superposition(path, self._built)
        cores, frames = [], []
        for k, (atoms, built) in enumerate(zip(self._histones, self._built_cores, strict=True)):
            # The middle of the wrapped DNA: no histone is farther from it than half of any box that holds it.
            anchor = path[self._wrapped[k]].mean(axis=0)
            now = anchor + _nearest(np.asarray(position[atoms], dtype=np.float64) - anchor, box)
            core_turn, core_shift = superposition(built, now)
            cores.append(core_turn @ self._scaffold.core_origin[k] + core_shift)
            frames.append(core_turn @ self._scaffold.core_frame[k])
        # The axis of the helix is where the scaffold has it, not midway between the sugars.
        offset = self._scaffold.origin[self._places] - self._built[self._places]
        return ((path @ turn.T + shift)[self._places] + offset,
                np.array(cores).reshape(-1, 3) @ turn.T + shift, turn @ np.array(frames).reshape(-1, 3, 3))


def _nearest(vector: np.ndarray, box: np.ndarray | None) -> np.ndarray:
    """The shortest of a vector's images."""
    return vector if box is None else nearest_image(vector, box)


def _atom_in_residue(solute: Solute, residues: np.ndarray, name: str) -> np.ndarray:
    """Which atom of each residue has a name; -1: none."""
    column = np.array([template.index.get(name, -1) for template in residue_library().values()])
    return column[solute.residue_template[residues]]
