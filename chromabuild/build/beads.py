"""Beads of a solute: three a nucleotide (phosphate, sugar, base), one an amino acid (its CA); and atoms on them.

The phosphate of a nucleotide takes O3' of the one before it, and the first of a strand has none, as in the model 3SPN.2
(Hinckley, Freeman, Whitmer and de Pablo, J. Chem. Phys. 139, 144903 (2013)). Nucleotides stand pair by pair, strand I
before strand J, so that what belongs together lies together; then come the proteins.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import ResidueTemplate, residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.octamer import protein_of_molecules

PHOSPHATE_ATOMS, SUGAR_ATOMS = ("P", "OP1", "OP2", "O5'"), ("C5'", "C4'", "O4'", "C3'", "C2'", "C1'")
_MASS = {"C": 12.0107, "N": 14.0067, "O": 15.9994, "P": 30.973762}
PHOSPHATE, SUGAR, BASE, AMINO_ACID = range(4)
_AT_A_TIME = 1 << 18


@dataclass(frozen=True)
class Beads:
    """The beads of a solute, in their order."""

    kind: np.ndarray
    """(b,) ``PHOSPHATE``, ``SUGAR``, ``BASE`` or ``AMINO_ACID``."""
    residue: np.ndarray
    """(b,) residue of the solute."""
    letter: np.ndarray
    """(b,) S1 base of a nucleotide; empty of amino acids."""
    atom_bead: np.ndarray
    """(a,) bead of each atom that takes part in one, ascending by bead; all heavy atoms but the ends of strands."""
    atom: np.ndarray
    """(a,) these atoms, of the solute."""
    atom_weight: np.ndarray
    """(a,) share of the atom in the place of its bead; they sum to 1 (the CA alone in an amino acid)."""
    following: np.ndarray
    """(r,) residue behind each in its chain; -1 at the end."""
    partner: np.ndarray
    """(r,) nucleotide that pairs with each; -1 of amino acids."""
    body: np.ndarray
    """(r,) what moves as one: the proteins of a nucleosome, or another protein, from 0; -1 of nucleotides."""

    @property
    def n(self) -> int:
        """Number of beads."""
        return len(self.kind)

    @cached_property
    def of_residue(self) -> np.ndarray:
        """(r, 4) bead of each kind that each residue has; -1 where it has none."""
        table = np.full((len(self.following), 4), -1)
        table[self.residue, self.kind] = np.arange(self.n)
        return table

    def bodies(self) -> list[np.ndarray]:
        """Residues of each body."""
        order = np.argsort(self.body, kind="stable")
        ends = np.searchsorted(self.body[order], np.arange(self.body.max(initial=-1) + 2))
        return [order[a:b] for a, b in pairwise(ends.tolist())]

    def place(self, position: np.ndarray) -> np.ndarray:
        """(b, 3) places of the beads from (n, 3) of all atoms, angstrom."""
        place = np.zeros((self.n, 3))
        np.add.at(place, self.atom_bead, self.atom_weight[:, None] * np.asarray(position, dtype=float)[self.atom])
        return place


def beads_of(solute: Solute) -> Beads:
    """The beads of a solute.

    Raises BadInputError for residues that are neither nucleotides nor amino acids, and strands without a partner.
    """
    library = list(residue_library().values())
    template = [library[k] for k in solute.residue_template.tolist()]
    for kind in {t.kind for t in template} - {"nucleotide", "amino acid"}:
        name = next(t.name for t in template if t.kind == kind)
        raise BadInputError(f"residue {name} of the solute has no beads: leave out what is neither DNA nor protein")
    following, partner = _neighbours(solute, template)
    before = np.full(len(template), -1)
    before[following[following >= 0]] = np.flatnonzero(following >= 0)
    nucleotides = [k for pair in _pairs(partner) for k in pair]
    others = [k for k, t in enumerate(template) if t.kind == "amino acid"]
    first = solute.residue_first_atom
    rows: list[tuple[int, int, bytes]] = []
    members: list[list[int]] = []
    weights: list[list[float]] = []
    for k in nucleotides:
        index, elements, start = template[k].index, template[k].elements, int(first[k])
        base = [a for a, name in enumerate(template[k].atoms) if elements[a] != "H" and "'" not in name
                and name not in (*PHOSPHATE_ATOMS, "OP3")]
        groups = [(SUGAR, [index[name] for name in SUGAR_ATOMS]), (BASE, base)]
        if before[k] >= 0:
            groups.insert(0, (PHOSPHATE, [index[name] for name in PHOSPHATE_ATOMS]))
        for kind, atoms in groups:
            found = [start + a for a in atoms]
            mass = [_MASS[elements[a]] for a in atoms]
            if kind == PHOSPHATE:
                found.append(int(first[before[k]]) + template[before[k]].index["O3'"])
                mass.append(_MASS["O"])
            rows.append((kind, k, template[k].base.encode()))
            members.append(found)
            weights.append([m / sum(mass) for m in mass])
    for k in others:
        if "CA" not in template[k].index:
            raise BadInputError(f"residue {template[k].name} of the solute has no CA for its bead: leave it out")
        rows.append((AMINO_ACID, k, b""))
        heavy = [a for a, element in enumerate(template[k].elements) if element != "H"]
        members.append([int(first[k]) + a for a in heavy])
        weights.append([float(template[k].atoms[a] == "CA") for a in heavy])
    return Beads(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]),
                 np.array([row[2] for row in rows], dtype="S1"),
                 np.repeat(np.arange(len(rows)), [len(atoms) for atoms in members]), np.concatenate(members),
                 np.concatenate(weights), following, partner, _bodies(solute, partner))


def _neighbours(solute: Solute, template: list[ResidueTemplate]) -> tuple[np.ndarray, np.ndarray]:
    """``following`` and ``partner`` of ``Beads``."""
    following, partner = np.full(len(template), -1), np.full(len(template), -1)
    first = solute.molecule_first_residue.tolist()
    strands = []
    for m, (a, b) in enumerate(zip(first, first[1:], strict=False)):
        following[a:b - 1] = np.arange(a + 1, b)
        if m in solute.circular:
            following[b - 1] = a
        if template[a].kind == "nucleotide":
            strands.append((a, b))
    for (a, b), (c, d) in zip(strands[::2], [*strands[1::2], (0, 0)] if len(strands) % 2 else strands[1::2],
                              strict=True):
        letters = "".join(t.base for t in template[a:b])
        other = "".join(t.base for t in template[c:d])[::-1]
        if letters.translate(str.maketrans("ACGT", "TGCA")) != other:
            raise BadInputError(f"a strand of {b - a} nucleotides is followed by none that is its complement: give a "
                                "solute of duplexes")
        partner[a:b] = np.arange(c, d)[::-1]
        partner[c:d] = np.arange(a, b)[::-1]
    return following, partner


def _bodies(solute: Solute, partner: np.ndarray) -> np.ndarray:
    """``body`` of ``Beads``."""
    owner = list(zip(solute.molecule_nucleosome.tolist(), protein_of_molecules(solute), strict=True))
    alone = [(*one, k) if one == (-1, -1) else one for k, one in enumerate(owner)]
    number = {one: k for k, one in enumerate(sorted(set(alone)))}
    body = np.repeat([number[one] for one in alone], np.diff(solute.molecule_first_residue))
    body[partner >= 0] = -1
    proteins = partner < 0
    body[proteins] = np.unique(body[proteins], return_inverse=True)[1]
    return body


def _pairs(partner: np.ndarray) -> np.ndarray:
    """(p, 2) pairs of nucleotides."""
    first = np.flatnonzero((partner >= 0) & (np.arange(len(partner)) < partner))
    return np.stack([first, partner[first]], axis=1)


def atoms_of(beads: Beads, solute: Solute, place: np.ndarray) -> Solute:
    """The solute with its parts on beads at other places, (b, 3) angstrom; each part keeps its shape.

    By least squares (Kabsch, Acta Cryst. A32, 922 (1976)) a nucleotide is laid with its own beads, the next phosphate
    and the base of its partner on theirs, and so is each body of proteins as a whole. Bonds between nucleotides are as
    good as that.
    """
    old, n = beads.place(solute.position), solute.n_residues
    turn, source, target = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    guides = _guides(beads)
    count = (guides >= 0).sum(axis=1)
    for size in np.unique(count[count > 0]):
        some = np.flatnonzero(count == size)
        used = guides[some][guides[some] >= 0].reshape(-1, size)
        turn[some], source[some], target[some] = _superposed(old[used], place[used])
    for residues in beads.bodies():
        used = beads.of_residue[residues, AMINO_ACID][None]
        turn[residues], source[residues], target[residues] = _superposed(old[used], place[used])
    position = np.empty((solute.n_atoms, 3), dtype=np.float32)
    for start in range(0, solute.n_atoms, _AT_A_TIME):
        atoms = slice(start, start + _AT_A_TIME)
        of = solute.atom_residue[atoms]
        position[atoms] = target[of] + np.einsum("aij,aj->ai", turn[of], solute.position[atoms] - source[of])
    return replace(solute, position=position)


def _guides(beads: Beads) -> np.ndarray:
    """(r, 5) beads that each nucleotide follows; -1 where there is none."""
    table, following, partner = beads.of_residue, beads.following, beads.partner
    guides = np.full((len(following), 5), -1)
    guides[:, :3] = table[:, :3]
    paired = partner >= 0
    guides[paired, 3] = table[partner[paired], BASE]
    joined = paired & (following >= 0)
    guides[joined, 4] = table[following[joined], PHOSPHATE]
    return guides


def _superposed(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rotations (m, 3, 3), and centres (m, 3) before and after, that lay (m, k, 3) points on others."""
    before, after = source.mean(axis=1), target.mean(axis=1)
    u, _, v = np.linalg.svd(np.einsum("mki,mkj->mij", target - after[:, None], source - before[:, None]))
    u[:, :, 2] *= np.linalg.det(u @ v)[:, None]
    return u @ v, before, after
