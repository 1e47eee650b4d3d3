"""Histones of other species and variants, modelled on the octamer of PDB 1KX5.

The backbone is the template's wherever the alignment has a residue; loops of another length are closed anew, differing
ends cut or extended; side chains that differ are built from rotamers against everything around them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.molecule.hydrogens import place_hydrogens, settle_hydroxyls
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.nucleosome.loops import CANDIDATES, COMFORT, close_loop, extend_end
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.nucleosome.peptide import (
    Atoms,
    chi_torsions,
    one_letter,
    plain_name,
    side_chain_on,
    three_letters,
    torsion,
)
from chromabuild.nucleosome.side_chains import choose, is_polar, site

BACKBONE = ("N", "CA", "C", "O")
# Residues of 1KX5, and of the linker histone in 4QLC, that are folded: outside them chains differ at their ends, not in
# the middle.
FOLDED = {"H3": (48, 134), "H4": (24, 101), "H2A": (22, 117), "H2B": (34, 121), "H1": (24, 97)}
LOOP_REACH = 3  # residues on either side of an insertion or deletion that are built anew; more when none closes
WIDEST_LOOP = 6
BACK = (0, 2, 4, 7, 11)  # residues of an end that are built anew when its extension finds no room
TOO_CLOSE = 2.9  # angstrom: a kept side chain this near to something new is chosen anew


@dataclass
class Residue:
    """One residue of a chain that is being modelled; heavy atoms only."""

    name: str
    """Library name without the prefix of a chain's end."""
    number: int
    atoms: Atoms
    replaced: Atoms | None = None
    """Atoms of the template's residue where the side chain is new."""
    replaced_name: str | None = None
    held: bool = False
    """Whether its side chain stays, for it binds a metal."""

    @property
    def letter(self) -> str:
        """One-letter code; a modified residue has that of its parent."""
        return one_letter(self.name)


@cache
def histone_table() -> dict[str, dict[str, dict]]:
    """Sequences by species and histone (templates/histones.json)."""
    table = json.loads(template_path("histones.json").read_text())
    return {species: table[species] for species in table if species != "source"}


def model_histones(template: Octamer, entries: dict[str, dict], dna: np.ndarray, dna_polar: np.ndarray,
                   attempt: int = 0) -> Octamer:
    """The octamer with other histones, all hydrogens included, in the nucleosome's own frame.

    Args:
        template: the octamer to start from, chains numbered as in 1KX5.
        entries: by family (H3, H4, H2A, H2B) the entry of ``histone_table`` that both its copies become.
        dna: (m, 3) heavy atoms of wrapped DNA in the nucleosome's own frame, which new atoms keep clear of.
        dna_polar: (m,) bool, nitrogen and oxygen.
        attempt: chooses other draws for loops and ends.

    Raises BadInputError where no loop closes.
    """
    chains = chains_of(template)
    for k, family in enumerate(template.histone):
        if family in entries:
            random = np.random.Generator(np.random.Philox(key=np.array([k, attempt], dtype=np.uint64)))
            others = [x for c, chain in enumerate(chains) if c != k for r in chain for x in r.atoms.values()]
            chains[k] = remodel(chains[k], family, entries[family], np.concatenate([dna, others]), random)
    build_side_chains(chains, dna, dna_polar)
    return octamer_of(chains, template.chain, template.histone)


def chains_of(template: Octamer) -> list[list[Residue]]:
    """Heavy atoms of an octamer, residue by residue."""
    library = list(residue_library().values())
    chains: list[list[Residue]] = [[] for _ in template.chain]
    first = 0
    for kind, number, chain in zip(template.residue_template, template.residue_number, template.residue_chain,
                                   strict=True):
        entry = library[kind]
        atoms = {a: template.position[first + k].astype(float) for k, (a, e) in
                 enumerate(zip(entry.atoms, entry.elements, strict=True)) if e != "H" and a != "OXT"}
        chains[chain].append(Residue(entry.inner_name, int(number), atoms))
        first += len(entry.atoms)
    return chains


def _alignment(template: str, target: str, folded: tuple[int, int]) -> list[tuple[int | None, int | None]]:
    """Pairs (template index, target index) in order, None for a gap; ends differ in length only at their tips.

    Args:
        template: sequence of the template chain.
        target: sequence of the histone to model.
        folded: first and last index (template) of the folded part, both included.
    """
    aligner = PairwiseAligner(mode="global", open_gap_score=-12.0, extend_gap_score=-1.0, end_gap_score=0.0)
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    first, last = folded
    best = aligner.align(template, target)[0]
    partner = {i: c + i - a for (a, b), (c, _) in zip(*best.aligned, strict=True) for i in range(a, b)}
    inside = {i: j for i, j in partner.items() if first <= i <= last}
    start, end = min(inside), max(inside)
    pairs: list[tuple[int | None, int | None]] = []
    # Ends: counted outward from the folded part.
    before, after = min(start, inside[start]), min(len(template) - 1 - end, len(target) - 1 - inside[end])
    pairs += [(None, j) for j in range(inside[start] - before)]
    pairs += [(start - k, inside[start] - k) for k in range(before, 0, -1)]
    previous = inside[start] - 1
    for i in range(start, end + 1):
        if i not in inside:
            pairs.append((i, None))
            continue
        pairs += [(None, j) for j in range(previous + 1, inside[i])]
        pairs.append((i, inside[i]))
        previous = inside[i]
    pairs += [(end + k, inside[end] + k) for k in range(1, after + 1)]
    pairs += [(None, j) for j in range(inside[end] + after + 1, len(target))]
    return pairs


def remodel(chain: list[Residue], family: str, entry: dict, others: np.ndarray, random: np.random.Generator
            ) -> list[Residue]:
    """The chain with the sequence of a table entry, clear of ``others`` (m, 3); new side chains still to be built."""
    numbers = [r.number for r in chain]
    folded = (numbers.index(FOLDED[family][0]), numbers.index(FOLDED[family][1]))
    template, target = "".join(r.letter for r in chain), entry["sequence"]
    pairs = _alignment(template, target, folded)
    model: list[Residue | None] = [None] * len(target)
    for i, j in pairs:
        if i is not None and j is not None:
            model[j] = renamed(chain[i], target[j], j + entry["first"])
    cut_at_cis_peptides(model, target, [j for i, j in pairs if i is not None and j is not None and i < folded[0]])
    for before, after in _gaps(pairs):
        rebuild_loop(model, target, entry["first"], before, after, others, random)
    placed = [j for j, r in enumerate(model) if r is not None]
    if placed[0] > 0:
        build_end(model, target, entry["first"], placed[0], False, others, random)
    if placed[-1] < len(target) - 1:
        build_end(model, target, entry["first"], placed[-1], True, others, random)
    return model


def cut_at_cis_peptides(model: list[Residue | None], target: str, tail: list[int]) -> None:
    """Take away what lies before a cis peptide of the template where the target has no proline, to be grown anew.

    ``tail``: the residues before the folded part that the template has, ascending.
    """
    for j in reversed(tail[1:]):
        one, other = model[j - 1], model[j]
        if target[j] != "P" and one is not None and abs(float(torsion(
                one.atoms["CA"], one.atoms["C"], other.atoms["N"], other.atoms["CA"]))) < 90.0:
            model[:j] = [None] * j
            return


def build_end(model: list[Residue | None], target: str, first_number: int, edge: int, forward: bool,
              others: np.ndarray, random: np.random.Generator) -> None:
    """Add the residues beyond ``edge``; where there is no room, the template's last residues are built anew too."""
    best, least = None, np.inf
    for back in BACK:
        root = edge - back if forward else edge + back
        indices = range(root + 1, len(target)) if forward else range(root - 1, -1, -1)
        own = [x for k, r in enumerate(model) if r is not None and (k < root if forward else k > root)
               for x in r.atoms.values()]
        added, end, overlap = extend_end("".join(target[j] for j in indices), model[root].atoms, target[root], forward,
                                         np.concatenate([others, own]), random)
        if overlap < least:
            best, least = (root, end, indices, added), overlap
        if least < COMFORT:
            break
    root, end, indices, added = best
    model[root].atoms["O"] = end["O"]
    for j, atoms in zip(indices, added, strict=True):
        model[j] = Residue(three_letters(target[j]), j + first_number, atoms, {}, None)


def renamed(residue: Residue, letter: str, number: int) -> Residue:
    """A residue with another side chain on the same backbone, or the same one."""
    if residue.letter == letter:
        return Residue(residue.name, number, dict(residue.atoms), residue.replaced, residue.replaced_name)
    backbone = {a: residue.atoms[a] for a in BACKBONE}
    return Residue(three_letters(letter), number, backbone, dict(residue.atoms), plain_name(residue.name))


def _gaps(pairs: Sequence[tuple[int | None, int | None]]) -> list[tuple[int, int]]:
    """Target indices (last before, first after) of every insertion or deletion between aligned residues."""
    aligned = [k for k, (i, j) in enumerate(pairs) if i is not None and j is not None]
    result = []
    for k, following in zip(aligned, aligned[1:], strict=False):
        if following != k + 1:
            result.append((pairs[k][1], pairs[following][1]))
    return result


def _phi_psi(model: list[Residue | None], k: int) -> tuple[float, float]:
    """Backbone torsions of a residue in degree, nan where a neighbour is missing."""
    here, previous, following = model[k], model[k - 1], model[k + 1] if k + 1 < len(model) else None
    if here is None:
        return np.nan, np.nan
    n, ca, c = (here.atoms[a] for a in ("N", "CA", "C"))
    joined_before = previous is not None and np.linalg.norm(previous.atoms["C"] - n) < 1.6
    joined_after = following is not None and np.linalg.norm(following.atoms["N"] - c) < 1.6
    return (float(torsion(previous.atoms["C"], n, ca, c)) if joined_before else np.nan,
            float(torsion(n, ca, c, following.atoms["N"])) if joined_after else np.nan)


def rebuild_loop(model: list[Residue | None], target: str, first_number: int, before: int, after: int,
                 others: np.ndarray, random: np.random.Generator, reach: int = LOOP_REACH,
                 candidates: int = CANDIDATES) -> None:
    """Close the chain between two residues around an insertion, deletion or gap, as far out as it takes.

    Residues less than ``reach`` from ``before`` and ``after`` are built anew, up to WIDEST_LOOP when none closes;
    ``candidates`` chains are drawn.

    Raises BadInputError where no loop closes.
    """
    for left, right in ((before - r, after + r) for r in range(reach, WIDEST_LOOP + 1)):
        if left < 0 or right >= len(model):
            break
        rebuilt = range(left + 1, right)
        own = [x for k, r in enumerate(model) if r is not None and not left <= k <= right for x in r.atoms.values()]
        torsions = np.array([_phi_psi(model, k) for k in range(left, right + 1)])
        found = close_loop("".join(target[k] for k in rebuilt), model[left].atoms, model[right].atoms, torsions,
                           np.concatenate([others, own]), random, candidates)
        if found is not None:
            for k, atoms in zip(rebuilt, found, strict=True):
                model[k] = Residue(three_letters(target[k]), k + first_number, atoms, {}, None)
            return
    raise BadInputError(f"no loop closes between residues {before + first_number} and {after + first_number}: "
                        "choose another variant or template")


def substitute(chain: list[Residue], index: int, letter: str) -> None:
    """Put another residue at a place of a chain; its side chain is built by ``build_side_chains``."""
    chain[index] = renamed(chain[index], letter, chain[index].number)


def modify(chain: list[Residue], index: int, name: str) -> None:
    """Put the modified residue ``name`` at the place of its parent; ``build_side_chains`` builds its side chain."""
    parent = chain[index]
    backbone = {a: parent.atoms[a] for a in BACKBONE}
    chain[index] = Residue(name, parent.number, backbone, dict(parent.atoms), plain_name(parent.name))


def build_side_chains(chains: list[list[Residue]], dna: np.ndarray, dna_polar: np.ndarray) -> None:
    """Give every residue that lacks its side chain one, then choose those anew that new atoms have come too near to.

    ``chains`` are changed in place; ``dna`` (m, 3) are heavy atoms in the way, ``dna_polar`` (m,) nitrogen and oxygen.
    """
    residues = [r for chain in chains for r in chain]
    new = [k for k, r in enumerate(residues) if r.replaced is not None]
    for k in new:
        residues[k].atoms |= side_chain_on(plain_name(residues[k].name), residues[k].atoms)
    _choose_side_chains(residues, new, dna, dna_polar)
    crowded = _crowded(residues, new)
    for k in crowded:
        residues[k].replaced, residues[k].replaced_name = dict(residues[k].atoms), plain_name(residues[k].name)
    if crowded:
        _choose_side_chains(residues, sorted(new + crowded), dna, dna_polar)


def _choose_side_chains(residues: list[Residue], movable: list[int], dna: np.ndarray, dna_polar: np.ndarray) -> None:
    sites = []
    for k in movable:
        name = plain_name(residues[k].name)
        if chi_torsions(name):
            backbone = {a: residues[k].atoms[a] for a in BACKBONE}
            sites.append(site(k, name, backbone, residues[k].replaced, residues[k].replaced_name))
    moving = {s.owner for s in sites}
    fixed, polar, owner = [dna], [dna_polar], [np.full(len(dna), -1)]
    for k, residue in enumerate(residues):
        kept = [a for a in residue.atoms if k not in moving or a in (*BACKBONE, "CB")]
        fixed.append(np.array([residue.atoms[a] for a in kept]))
        polar.append(np.array([is_polar(a) for a in kept]))
        owner.append(np.full(len(kept), k))
    chosen = choose(sites, np.concatenate(fixed), np.concatenate(polar), np.concatenate(owner))
    for s, option in zip(sites, chosen, strict=True):
        residues[s.owner].atoms |= {a: x[option] for a, x in s.side_chain.items()}


def _crowded(residues: list[Residue], new: list[int]) -> list[int]:
    """Kept residues whose side chains new residues have come too near to."""
    is_new = set(new)
    fresh = np.array([x for k in new for x in residues[k].atoms.values()]).reshape(-1, 3)
    fresh_owner = np.array([k for k in new for _ in residues[k].atoms])
    tree, result = cKDTree(fresh), []
    for k, residue in enumerate(residues):
        names = [a for a in residue.atoms if a not in (*BACKBONE, "CB")]
        held = k in is_new or residue.held or bool(residue_library()[residue.name].link)
        if held or not chi_torsions(plain_name(residue.name)) or not names:
            continue
        near = tree.query_ball_point([residue.atoms[a] for a in names], TOO_CLOSE)
        if any(abs(fresh_owner[i] - k) > 1 for row in near for i in row):
            result.append(k)
    return result


def octamer_of(chains: list[list[Residue]], letters: tuple[str, ...], names: tuple[str, ...],
               links: Sequence[tuple[tuple[int, int], tuple[int, int]]] = ()) -> Octamer:
    """Chains as arrays with names of chain ends, terminal oxygens and hydrogens.

    ``links``: pairs of residues, each by chain and index in it, that a bond of a side chain joins. A chain whose last
    residue is linked and whose side chain is not ends in the bond of its carbonyl.
    """
    library, index = residue_library(), {name: k for k, name in enumerate(residue_names())}
    kinds, numbers, chain_of, pieces = [], [], [], []
    first = np.concatenate([[0], np.cumsum([len(chain) for chain in chains])])
    linked = tuple(tuple(int(first[c]) + k for c, k in link) for link in links)
    ends = {(c, k) for link in links for c, k in link if not library[chains[c][k].name].link
            and all(library[chains[i][j].name].kind == "amino acid" for i, j in link)
            and not any(chains[i][j].held for i, j in link)}
    for c, chain in enumerate(chains):
        for k, residue in enumerate(chain):
            prefix = "N" if k == 0 else "C" if k == len(chain) - 1 and (c, k) not in ends else ""
            is_lone = library[residue.name].kind == "ion"
            entry = library[residue.name if is_lone or library[residue.name].is_acylated else prefix + residue.name]
            atoms = residue.atoms
            if prefix == "C" and not is_lone:
                # In the plane of CA, C and O, 120 degrees from both.
                ca, carbon, oxygen = atoms["CA"], atoms["C"], atoms["O"]
                out = (carbon - ca) / np.linalg.norm(carbon - ca) + (carbon - oxygen) / np.linalg.norm(carbon - oxygen)
                atoms = atoms | {"OXT": carbon + 1.25 * out / np.linalg.norm(out)}
            kinds.append(index[entry.name])
            numbers.append(residue.number)
            chain_of.append(c)
            pieces.append(np.array([atoms.get(a, np.zeros(3)) if e != "H" else np.zeros(3)
                                    for a, e in zip(entry.atoms, entry.elements, strict=True)]))
    kind = np.array(kinds, dtype=np.uint16)
    first_atom = np.concatenate([[0], np.cumsum([len(p) for p in pieces])])
    position = np.concatenate(pieces)
    place_hydrogens(position, kind, first_atom, linked)
    settle_hydroxyls(position, kind, first_atom)
    return Octamer(position, kind, np.array(numbers, dtype=np.int32), np.array(chain_of), letters, names, linked)
