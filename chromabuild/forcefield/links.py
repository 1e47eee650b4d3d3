"""What a bond between two side chains, or a side chain and the end of a chain, adds to a molecule: terms across it.

Terms of up to four atoms across such a bond lie within the two residues; a correction map reaches the residue before.
Each pair of residues is assigned once, both in capped chains; atoms of caps stand for those of the same name in the
neighbours.
"""

from dataclasses import dataclass

import numpy as np
from openmm import app

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.capped_chains import CAPS, CappedChains
from chromabuild.forcefield.openmm_system import SystemTerms, Term
from chromabuild.molecule.residues import residue_library


@dataclass(frozen=True, order=True)
class LinkedEnd:
    """One residue of a link."""

    residue: str
    is_first: bool
    """Whether it begins its chain."""
    is_last: bool
    """Whether its chain ends with it, in the link or in an end of its own."""


LinkKind = tuple[LinkedEnd, LinkedEnd]


@dataclass
class LinkTerms:
    """Terms across a link. Atoms are rows of ``place``."""

    terms: dict[str, Term]
    place: list[tuple[int, int, str]]
    """Which of the two residues (0, 1), an offset along its chain, and the name of the atom."""
    label: list[str]
    """Class of each."""


@dataclass
class LinkSpan:
    """Where a link stands in the system of all fragments: atoms of either side, in order."""

    sides: tuple[list[app.topology.Atom], ...]
    place: list[tuple[int, int, str]]


def add_fragment(chains: CappedChains, kind: LinkKind) -> LinkSpan:
    """Add both residues of a link in capped chains, bonded."""
    sides, place, linked = [], [], []
    for side, end in enumerate(kind):
        template = residue_library()[end.residue]
        start, stop = CAPS[template.kind]
        names = [start] * (not end.is_first) + [end.residue] + [stop] * (not end.is_last)
        middle = int(not end.is_first)
        added = chains.add(names)
        linked.append((end.residue, added[middle]))
        sides.append([atom for atoms in added for atom in atoms])
        place += [(side, k - middle, atom.name) for k, atoms in enumerate(added) for atom in atoms]
    chains.link(*linked[0], *linked[1])
    return LinkSpan((sides[0], sides[1]), place)


def cut_link(span: LinkSpan, everything: SystemTerms, label: list[str], columns: dict[str, tuple[str, ...]]
             ) -> LinkTerms:
    """The terms of the system of all fragments that have atoms on both sides; ``columns``: of each kind of term."""
    atoms = [atom.index for side in span.sides for atom in side]
    first, middle, end = atoms[0], span.sides[1][0].index, atoms[-1] + 1
    terms = {}
    for name, values in columns.items():
        term = everything.terms[name]
        low, high = term["atoms"].min(axis=1, initial=len(label)), term["atoms"].max(axis=1, initial=-1)
        across = (low >= first) & (low < middle) & (high >= middle) & (high < end)
        terms[name] = {"atoms": term["atoms"][across] - first} | {column: term[column][across] for column in values}
    terms["cmap"] = _forward(terms["cmap"])
    return LinkTerms(terms, span.place, label[first:end])


def _forward(maps: Term) -> Term:
    """Correction maps once, from phi to psi.

    Where a bond leads back to an earlier atom, OpenMM has the map a second time, with its angles exchanged.
    """
    atoms = np.where((maps["atoms"][:, 1] > maps["atoms"][:, 3])[:, None], maps["atoms"][:, ::-1], maps["atoms"])
    atoms, once = np.unique(atoms, axis=0, return_index=True)
    return {column: values[once] for column, values in maps.items()} | {"atoms": atoms}


def along_links(name: str, links: list[tuple[tuple[int, ...], LinkTerms]], residues: list[str], first: np.ndarray,
                classes: np.ndarray) -> list[Term]:
    """Terms of a kind of the links of a molecule, by its atoms.

    Args:
        name: of the kind.
        links: the residues of each, and its terms.
        residues: library names of the molecule.
        first: (r + 1,) first atom of every residue.
        classes: (n,) S8, of the atoms.

    Raises BadInputError where an atom of a neighbour is not like that of the cap that stood for it.
    """
    library, found = residue_library(), []
    for pair, link in links:
        term = link.terms[name]
        used = np.unique(term["atoms"]).tolist()
        where = {}
        for row in used:
            side, offset, atom = link.place[row]
            k = pair[side] + offset
            where[row] = int(first[k]) + library[residues[k]].index.get(atom, -1 - int(first[k]))
            if where[row] < 0 or classes[where[row]].decode() != link.label[row][:8]:
                raise BadInputError(f"the force field has a {name} term across a link that reaches {atom} of "
                                    f"{residues[k]}, which is unlike other residues there: this assignment cannot "
                                    "carry it")
        mapped = np.array([[where[row] for row in rows] for rows in term["atoms"].tolist()],
                          dtype=np.int32).reshape(term["atoms"].shape)
        found.append(term | {"atoms": mapped})
    return found
