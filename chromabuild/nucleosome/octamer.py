"""The histone octamer of PDB 1KX5 with all hydrogens, and its copies on every core of a fibre."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import h5py
import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.molecule.hydrogens import place_hydrogens, settle_hydroxyls
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute, base_36

FAMILIES = ("H3", "H4", "H2A", "H2B") * 2
LINKER_CHAIN = "L"
MOST_PROTEINS = 1296
MOST_NUCLEOSOMES = 7200  # segments are counted in 16 bits, up to nine to a nucleosome


@dataclass(frozen=True)
class Octamer:
    """Eight chains in the nucleosome's own frame, and a linker histone where it is carried; sizes are those of 1KX5
    with whole H2B.

    Chains of another protein in its own frame have the same form.
    """

    position: np.ndarray
    """(15826, 3) angstrom."""
    residue_template: np.ndarray
    """(980,) library indices."""
    residue_number: np.ndarray
    """(980,) as in 1KX5, where H2B begins at -2."""
    residue_chain: np.ndarray
    """(980,) 0..7."""
    chain: tuple[str, ...]
    """Chain letters of 1KX5, A..H, L for a linker histone, and those from M on for ubiquitins."""
    histone: tuple[str, ...]
    """H3, H4, H2A, H2B, H3, H4, H2A, H2B, or names of variants; then the linker histone and ubiquitins, if any."""
    links: tuple[tuple[int, int], ...] = ()
    """Pairs of residues that a bond of a side chain joins."""

    @cached_property
    def first_atom(self) -> np.ndarray:
        """(981,) first atom of every residue, and the number of atoms."""
        library = list(residue_library().values())
        return np.concatenate([[0], np.cumsum([len(library[k].atoms) for k in self.residue_template])])

    @cached_property
    def alpha_carbons(self) -> np.ndarray:
        """(980, 3) angstrom; of an ion beside a protein, the ion."""
        library = list(residue_library().values())
        return self.position[self.first_atom[:-1] + [library[k].index.get("CA", 0) for k in self.residue_template]]


@cache
def octamer(tails: str = "crystal") -> Octamer:
    """Read the octamer from templates/ and add all hydrogens.

    ``tails`` is ``crystal`` for the chains of 1KX5 as they are, or ``compact`` for tails that lie on their own
    nucleosome (templates/tools/make_compact_tails.py); the folded core is the same, to the last bit.
    """
    library, index = residue_library(), {name: k for k, name in enumerate(residue_names())}
    with h5py.File(template_path("nucleosome_1kx5.h5")) as file:
        heavy_position = 0.001 * file["heavy_atom_position"][...]
        names = [name.decode() for name in file["residue_name"][...]]
        number = file["residue_number"][...].astype(np.int32)
        letters = tuple(name.decode() for name in file["chain"][...])
        histone = tuple(name.decode() for name in file["histone"][...])
        chain = np.array([letters.index(name.decode()) for name in file["residue_chain"][...]])
    template = np.array([index[name] for name in names], dtype=np.uint16)
    first_atom = np.concatenate([[0], np.cumsum([len(library[name].atoms) for name in names])])
    elements = np.concatenate([library[name].elements for name in names])
    position = _with_hydrogens(heavy_position, elements, template, first_atom)
    if tails == "compact":
        with h5py.File(template_path("histone_tails_compact.h5")) as file:
            rows = file["heavy_atom"][...]
            heavy_position[rows] = 0.001 * file["position"][...]
        moved = np.repeat(np.arange(len(names)), np.diff(first_atom))[elements != "H"][rows]
        in_tail = np.repeat(np.isin(np.arange(len(names)), moved), np.diff(first_atom))
        compact = _with_hydrogens(heavy_position, elements, template, first_atom)
        # Hydroxyls of the core keep their hydrogens whatever the tails do.
        position = np.where(in_tail[:, None], compact, position)
    return Octamer(position, template, number, chain, letters, histone)


def _with_hydrogens(heavy_position: np.ndarray, elements: np.ndarray, template: np.ndarray,
                    first_atom: np.ndarray) -> np.ndarray:
    """(n, 3) positions of all atoms from those of the heavy ones."""
    position = np.zeros((first_atom[-1], 3))
    position[elements != "H"] = heavy_position
    place_hydrogens(position, template, first_atom)
    settle_hydroxyls(position, template, first_atom)
    return position


def without_chains(core: Octamer, gone: Sequence[int]) -> Octamer:
    """An octamer less some of its chains."""
    kept = ~np.isin(core.residue_chain, gone)
    atoms = np.repeat(kept, np.diff(core.first_atom))
    left = [k for k in range(len(core.chain)) if k not in gone]
    place = np.cumsum(kept) - 1
    return Octamer(core.position[atoms], core.residue_template[kept], core.residue_number[kept],
                   np.searchsorted(left, core.residue_chain[kept]), tuple(core.chain[k] for k in left),
                   tuple(core.histone[k] for k in left),
                   tuple((int(place[a]), int(place[b])) for a, b in core.links if kept[a] and kept[b]))


def place_octamer(core: Octamer, origin: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """(n, 3) float32, angstrom: the atoms of ``core`` where its frame is ``frame`` (3, 3) at ``origin`` (3,)."""
    return (origin + core.position @ frame.T).astype(np.float32)


def histone_segid(nucleosome: int, chain: str) -> str:
    """Segment id of a histone: the nucleosome's number in three digits of base 36, then the chain letter of 1KX5.

    It starts with a digit for every nucleosome that fits, so that it never meets a DNA segment (``DI00``).
    """
    if nucleosome >= MOST_NUCLEOSOMES:
        raise BadInputError(
            f"nucleosome {nucleosome} has no segment id left (at most {MOST_NUCLEOSOMES}): build the locus in parts"
        )
    return base_36(nucleosome, 3) + chain


def protein_segid(number: int, chain: str) -> str:
    """Segment id of a chain of another protein: P, its number in two digits of base 36, then a letter of the chain."""
    if number >= MOST_PROTEINS:
        raise BadInputError(f"protein {number} has no segment id left (at most {MOST_PROTEINS}): build the locus in "
                            "parts")
    return f"P{base_36(number, 2)}{chain}"


def protein_of_molecules(solute: Solute) -> list[int]:
    """Number, from 0, of the protein on DNA that each molecule belongs to; -1 for DNA and histones."""
    first = solute.residue_segment[solute.molecule_first_residue[:-1]]
    names = [solute.segment_name[k] for k in first]
    return [int(name[1:3], 36) if nucleosome < 0 and not strand.startswith("DNA") and name[:1] == "P" else -1
            for name, nucleosome, strand in zip(names, solute.molecule_nucleosome.tolist(), solute.molecule_name,
                                                strict=True)]
