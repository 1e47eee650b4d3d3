"""What one shard holds: whole residues in global order."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from chromabuild.base.box_vectors import box_of
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import CHAIN_LETTERS, LEAST_RESIDUE_NUMBER, MAX_RESIDUES_PER_SEGMENT


@dataclass(frozen=True)
class Brick:
    """The residues of one brick, and where the brick lies."""

    box: np.ndarray
    """(3,) int64 diagonal of the vectors of the box, 0.001 angstrom."""
    lower: np.ndarray
    """(3,) int64 lower corner of the brick, 0.001 angstrom."""
    upper: np.ndarray
    """(3,) int64 upper corner, 0.001 angstrom."""
    position: np.ndarray
    """(n, 3) int32, 0.001 angstrom."""
    residue_template: np.ndarray
    """(r,) uint16, index into ``residue_names()``."""
    residue_first_id: np.ndarray
    """(r,) int64 global id of each residue's first atom, ascending."""
    residue_number: np.ndarray
    """(r,) int32, -999..9,999 within a segment."""
    residue_segment: np.ndarray
    """(r, 4) uint8, ASCII."""
    residue_chain: np.ndarray
    """(r,) uint8, the solute's own chain letter (ASCII), 0 where a residue has none (solvent)."""
    residue_in_entity: np.ndarray
    """(r, 2) int32 entity, and place in its sequence from 1; 0 in one without a sequence."""
    tilt: np.ndarray = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    """(3,) int64 b_x, c_x and c_y, 0.001 angstrom; corners are straight."""

    @property
    def vectors(self) -> np.ndarray:
        """(3,) edges, or (3, 3) vectors where they lean, angstrom."""
        return box_of(self.box / 1000, self.tilt / 1000)

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.position)

    @cached_property
    def residue_size(self) -> np.ndarray:
        """(r,) int32 atoms of each residue."""
        return template_sizes()[self.residue_template]

    @cached_property
    def atom_residue(self) -> np.ndarray:
        """(n,) int32 residue of each atom."""
        return np.repeat(np.arange(len(self.residue_template), dtype=np.int32), self.residue_size)

    @cached_property
    def atom_in_residue(self) -> np.ndarray:
        """(n,) int64 place of each atom in its residue."""
        first = np.cumsum(self.residue_size) - self.residue_size
        return np.arange(self.n_atoms) - first[self.atom_residue]

    @cached_property
    def global_id(self) -> np.ndarray:
        """(n,) int64, ascending."""
        return self.residue_first_id[self.atom_residue] + self.atom_in_residue

    @cached_property
    def chain_letters(self) -> np.ndarray:
        """(r,) uint8: a chain letter for every residue such that (chain, number) is unique in the shard.

        Biopython drops residues that repeat. Each segment gets a letter of its own while there are any (solute
        segments the one they ask for); then it shares the first letter where none of its numbers is taken.
        Raises BadInputError when 62 letters do not suffice, which takes bricks of about 260 angstrom.
        """
        code = np.ascontiguousarray(self.residue_segment).view("<u4").ravel()
        segments, first, member = np.unique(code, return_index=True, return_inverse=True)
        letter_of_segment = np.zeros(len(segments), dtype=np.uint8)
        letters = [ord(letter) for letter in CHAIN_LETTERS]
        wanted = {int(self.residue_chain[i]) for i in first} - {0}
        taken: dict[int, np.ndarray] = {}
        most = MAX_RESIDUES_PER_SEGMENT - LEAST_RESIDUE_NUMBER + 1
        by_segment = np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])
        for segment in np.argsort(first):
            numbers = self.residue_number[by_segment[segment]] - LEAST_RESIDUE_NUMBER
            own = int(self.residue_chain[first[segment]])
            if own:
                order = [own, *(x for x in letters if x not in taken and x not in wanted), *letters]
            else:
                order = [*(x for x in letters[::-1] if x not in taken and x not in wanted), *letters[::-1]]
            for letter in order:
                used = taken.setdefault(letter, np.zeros(most, dtype=bool))
                if not used[numbers].any():
                    used[numbers] = True
                    letter_of_segment[segment] = letter
                    break
            else:
                raise BadInputError("a brick holds more residues than 62 chain letters can tell apart: "
                                    "set solvate.brick_edge to 200 angstrom or less")
        return letter_of_segment[member]


def template_sizes() -> np.ndarray:
    """(t,) int32 atoms of every residue of the library."""
    return np.array([len(template.atoms) for template in residue_library().values()], dtype=np.int32)


def template_index(name: str) -> int:
    """Index of a residue in the library."""
    return residue_names().index(name)
