"""Which bonds of a residue are double, from its elements and bonds: all hydrogens are there.

An atom with fewer neighbours than its valence has one double bond at most, to a neighbour of the same kind: the Kekule
structure in which most of them have one. Of structures that have as many, such as the two of a carboxylate, it is the
one whose bonds come first, as in the PDB's Chemical Component Dictionary. Atoms that bonds to other residues saturate
have no such neighbour. A carbon that is left over, in guanidinium and in charged histidine, has its double bond to a
nitrogen with three neighbours.
"""

from functools import cache

from chromabuild.molecule.residues import ResidueTemplate, residue_library

VALENCE = {"C": 4, "N": 3, "O": 2, "P": 5}
"""Neighbours of an atom without a double bond; of phosphorus one more than that."""


@cache
def double_bonds(name: str) -> frozenset[int]:
    """Rows of ``bonds`` of the residue of the library that has this name."""
    template = residue_library()[name]
    neighbours: list[list[int]] = [[] for _ in template.atoms]
    for a, b in template.bonds.tolist():
        neighbours[a].append(b)
        neighbours[b].append(a)
    open_atoms = {k for k, element in enumerate(template.elements) if len(neighbours[k]) < VALENCE.get(element, 0)}
    rows = _most([row for row, bond in enumerate(template.bonds.tolist()) if open_atoms.issuperset(bond)], template)
    taken = {atom for row in rows for atom in template.bonds[row].tolist()}
    for row, (a, b) in enumerate(template.bonds.tolist()):
        nitrogens = [k for k in neighbours[a] if template.elements[k] == "N"]
        if a in open_atoms - taken and b in nitrogens and len(nitrogens) > 1 and len(neighbours[b]) == 3:
            rows, taken = (*rows, row), taken | {a, b}
    return frozenset(rows)


def _most(rows: list[int], template: ResidueTemplate) -> tuple[int, ...]:
    """The largest choice of rows of bonds without a common atom; of equals the first."""
    if not rows:
        return ()
    bonds = template.bonds
    # Of the atom with the fewest choices, each in turn, or none.
    choices: dict[int, list[int]] = {}
    for row in rows:
        for atom in bonds[row].tolist():
            choices.setdefault(atom, []).append(row)
    atom = min(choices, key=lambda k: len(choices[k]))
    best: tuple[int, ...] = ()
    for row in choices[atom]:
        found = (row, *_most([other for other in rows if not set(bonds[other].tolist()) & set(bonds[row].tolist())],
                             template))
        best = max(best, found, key=len)
    if len(choices[atom]) > 1:
        without = _most([row for row in rows if atom not in bonds[row]], template)
        best = max(best, without, key=len)
    return best
