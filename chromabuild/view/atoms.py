"""Atoms of a place: one script a nucleosome with its DNA, or a stretch of linker, which the page adds when it is asked.

Browsers let a page that was opened from a file load scripts and pictures, but no data; so a place is a call of
``chromabuildAtoms(number, facts, bytes)``. The bytes are three int16 an atom (whole steps from the place's centre),
then uint16 of each residue: its template, and its number. Names, elements and bonds follow from the template.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from blake3 import blake3

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.view.binary import finest_step, quantised

if TYPE_CHECKING:
    from mesoscale.scaffold import Scaffold

LONGEST = 100  # base pairs of linker in one place: 340 angstrom
STRANDS = {"DNA-I": 1, "DNA-J": -1}


@dataclass(frozen=True)
class Place:
    """A stretch of DNA with the proteins on it."""

    first_bp: int
    last_bp: int
    nucleosome: int
    """-1: linker."""
    residues: np.ndarray
    """(r,) rows of the solute: strand I, strand J, proteins."""


def stretches(scaffold: "Scaffold") -> list[tuple[int, int, int]]:
    """(first base pair, last, nucleosome or -1) of every place along the DNA, in order; together they are all of it."""
    found, at = [], 0
    bounds = [*zip(scaffold.first_bp.tolist(), scaffold.last_bp.tolist(), strict=True)]
    for k, (first, last) in enumerate([*bounds, (len(scaffold.base), -1)]):
        if first > at:
            pieces = -(-(first - at) // LONGEST)
            edges = np.linspace(at, first, pieces + 1).round().astype(int).tolist()
            found += [(a, b - 1, -1) for a, b in pairwise(edges)]
        if k < len(bounds):
            found.append((first, last, k))
            at = last + 1
    return found


def places(solute: Solute, scaffold: "Scaffold") -> Iterator[Place]:
    """Every place; each residue of the solute is in one of them.

    What is neither DNA nor on a nucleosome goes with the first. Raises BadInputError when the solute is not of the
    scaffold.
    """
    n, first = len(scaffold.base), solute.molecule_first_residue
    strand = {name: k for k, name in enumerate(solute.molecule_name) if name in STRANDS}
    if len(strand) != 2 or any(first[k + 1] - first[k] != n for k in strand.values()):
        raise BadInputError(f"the solute is not of the scaffold's {n:,} base pairs: run chromabuild build again")
    proteins: dict[int, list[np.ndarray]] = {}
    found = stretches(scaffold)
    rest = found[0][2]
    for k, nucleosome in enumerate(solute.molecule_nucleosome.tolist()):
        if k not in strand.values():
            known = 0 <= nucleosome < len(scaffold.dyad)
            proteins.setdefault(nucleosome if known else rest, []).append(np.arange(first[k], first[k + 1]))
    one, other = int(first[strand["DNA-I"]]), int(first[strand["DNA-J"]])
    carried = set()
    for a, b, nucleosome in found:
        # Proteins of no nucleosome are carried once, though many places are linkers.
        own = proteins.get(nucleosome, []) if nucleosome not in carried else []
        carried.add(nucleosome)
        yield Place(a, b, nucleosome, np.concatenate(
            [one + np.arange(a, b + 1), other + n - 1 - np.arange(b, a - 1, -1), *own]))


def solute_key(solute: Solute) -> str:
    """What tells these atoms from others: a page does not show those of another build."""
    digest = blake3(np.ascontiguousarray(solute.position).tobytes())
    digest.update(np.ascontiguousarray(solute.residue_template).tobytes())
    return digest.hexdigest()[:16]


def used_templates(solute: Solute) -> list[int]:
    """The residue templates that occur, ascending; a place counts them from 0."""
    return np.unique(solute.residue_template).tolist()


def template_table(used: list[int]) -> list[dict]:
    """Name, atoms, elements and bonds of the residues of a page."""
    library = list(residue_library().values())
    return [{"name": library[k].pdb_name, "full": residue_names()[k], "atoms": " ".join(library[k].atoms),
             "elements": " ".join(library[k].elements), "bonds": library[k].bonds.ravel().tolist()} for k in used]


def atom_rows(solute: Solute, residues: np.ndarray) -> np.ndarray:
    """(a,) the atoms of some residues, in their order."""
    starts = solute.residue_first_atom
    sizes = starts[residues + 1] - starts[residues]
    offset = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.repeat(starts[residues] - offset, sizes) + np.arange(sizes.sum())


def place_script(number: int, place: Place, solute: Solute, used: list[int], family: dict[str, str], key: str) -> str:
    """The script of a place. ``family``: H3, H4, H2A or H2B of each kind of histone; ``key``: of ``solute_key``."""
    position = np.asarray(solute.position)[atom_rows(solute, place.residues)].astype(np.float64)
    low, high = position.min(axis=0), position.max(axis=0)
    centre = np.round((low + high) / 2, 3)
    step = finest_step(2 * float(np.abs([low - centre, high - centre]).max()))
    template = np.searchsorted(used, solute.residue_template[place.residues])
    content = b"".join(part.astype(part.dtype.newbyteorder("<")).tobytes() for part in (
        quantised(position, centre, step), template.astype(np.uint16),
        solute.residue_number[place.residues].astype(np.int16)))
    facts = {"key": key, "atoms": len(position), "residues": len(place.residues), "step": round(step, 3),
             "centre": centre.tolist(), "molecules": _molecules(place, solute, family)}
    return (f"chromabuildAtoms({number}, {json.dumps(facts, separators=(',', ':'))}, "
            f'"{base64.b64encode(content).decode("ascii")}");\n')


def _molecules(place: Place, solute: Solute, family: dict[str, str]) -> list[dict]:
    """Runs of residues of one molecule and segment: what it is, where it begins, and the base pair of its first."""
    molecule = np.searchsorted(solute.molecule_first_residue, place.residues, side="right") - 1
    segment = solute.residue_segment[place.residues]
    new = np.flatnonzero(np.append(True, (np.diff(molecule) != 0) | (np.diff(segment.astype(int)) != 0)))
    found = []
    for row in new.tolist():
        name = solute.molecule_name[molecule[row]]
        entry = {"name": name, "segment": solute.segment_name[segment[row]],
                 "chain": solute.segment_chain[segment[row]], "residue": row}
        within = int(place.residues[row] - solute.molecule_first_residue[molecule[row]])
        if name in STRANDS:
            strand = STRANDS[name]
            n = int(solute.molecule_first_residue[molecule[row] + 1] - solute.molecule_first_residue[molecule[row]])
            entry |= {"bp": within if strand > 0 else n - 1 - within, "strand": strand}
        elif name in family:
            entry["family"] = family[name]
        found.append(entry)
    return found
