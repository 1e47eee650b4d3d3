"""Ubiquitin on a lysine of a histone: PDB 1UBI behind an isopeptide bond, with room around it.

The carbonyl of its last glycine is bonded to the nitrogen of the lysine. Torsions of the lysine and of the main chain
of the last four residues, which are disordered in free ubiquitin, are drawn; the fold stays that of the crystal. Of the
draws that touch nothing, the one with most room beside histones, wrapped DNA and the way on of its ends is taken.
"""

import json
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.dna.helix import crystal_path
from chromabuild.dna.steps import fit_frames
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.homology import BACKBONE, Residue
from chromabuild.nucleosome.peptide import draw_phi_psi, one_letter, rotate, torsion
from chromabuild.nucleosome.side_chains import is_polar, overlap_energy, site

NAME = "ubiquitin"
FLEXIBLE = 4
"""Residues at the end whose torsions are drawn."""
DRAWS, ROUNDS = 1000, 20
AMIDE = {"C": "CH", "O": "OH", "CA": "CH3"}
"""Atoms of the last glycine, and those of acetyl-lysine that stand where they do."""
LIKELY = 8.0  # kT above the best: side chains of the lysine that are drawn
REACH = 3.2  # angstrom between heavy atoms that counts as free
ROOMY = 8.0  # angstrom: more room than this is no better
LINKER_STEP, LINKER_REACH, LINKER_LENGTH = 3.4, 16.0, 20  # angstrom, and base pairs, of DNA that goes on straight


@cache
def ubiquitin() -> tuple[tuple[str, ...], tuple[dict[str, np.ndarray], ...]]:
    """Library names and heavy atoms (templates/ubiquitin.json), angstrom."""
    table = json.loads(template_path("ubiquitin.json").read_text())
    rows = iter(0.001 * np.array(table["heavy_atom_position"]))
    atoms = tuple({atom: next(rows) for atom, element in zip(residue_library()[name].atoms,
                                                              residue_library()[name].elements, strict=True)
                   if element != "H"} for name in table["residues"])
    return tuple(table["residues"]), atoms


def attach_ubiquitin(chains: list[list[Residue]], chain: int, index: int, dna: np.ndarray, dna_polar: np.ndarray
                     ) -> list[Residue]:
    """The chain of a ubiquitin on a lysine, whose side chain takes another place in ``chains``.

    Args:
        chains: heavy atoms of all that is there, in the nucleosome's own frame.
        chain: which of them carries it.
        index: the lysine in that chain.
        dna: (m, 3) heavy atoms of wrapped DNA.
        dna_polar: (m,) bool, nitrogen and oxygen.

    Raises BadInputError where there is no room.
    """
    lysine = chains[chain][index]
    others = [(x, is_polar(name)) for c, one in enumerate(chains) for k, residue in enumerate(one)
              if (c, k) != (chain, index) for name, x in residue.atoms.items()]
    around = np.concatenate([dna, np.array([x for x, _ in others])])
    polar = np.concatenate([dna_polar, np.array([flag for _, flag in others], dtype=bool)])
    backbone = {name: lysine.atoms[name] for name in BACKBONE}
    choice = site(0, "ALY", backbone, None, None)
    names = [name for name in choice.names if name not in AMIDE.values()]
    near = np.linalg.norm(around - lysine.atoms["CA"], axis=1) < 15.0
    energy = choice.energy + overlap_energy(choice.position, np.array([is_polar(name) for name in choice.names]),
                                            around[near][None], polar[near])[:, 0]
    likely = np.flatnonzero(energy < energy.min() + LIKELY)
    tree, way = cKDTree(around), cKDTree(_linker_axes())
    random = np.random.Generator(np.random.Philox(key=np.array([chain, lysine.number], dtype=np.uint64)))
    for _ in range(ROUNDS):
        which = likely[random.integers(len(likely), size=DRAWS)]
        drawn = _drawn(choice.side_chain, which, random)
        best = _roomiest(drawn, tree, way)
        if best is not None:
            lysine.atoms |= {name: choice.side_chain[name][which[best]] for name in ("CB", *names)}
            return [Residue(name, k + 1, {atom: x[best] for atom, x in atoms.items()})
                    for k, (name, atoms) in enumerate(zip(ubiquitin()[0], drawn, strict=True))]
    raise BadInputError(f"no place for ubiquitin on residue {lysine.number} of histone chain {'ABCDEFGH'[chain]}: "
                        "leave out the mark, or marks and linker histones beside it")


def _drawn(side_chain: dict[str, np.ndarray], which: np.ndarray, random: np.random.Generator
           ) -> list[dict[str, np.ndarray]]:
    """Ubiquitins (s, 3) by residue and atom on some conformations of the lysine."""
    names, crystal = ubiquitin()
    last = len(names) - 1
    target = np.stack([side_chain[name][which] for name in AMIDE.values()], axis=1)
    _, frame = fit_frames(target, np.array([crystal[last][name] for name in AMIDE]))
    shift = target[:, 0] - frame @ crystal[last]["C"]
    labels = [(k, atom) for k, atoms in enumerate(crystal) for atom in atoms]
    points = shift[:, None] + np.array([crystal[k][atom] for k, atom in labels]) @ np.swapaxes(frame, 1, 2)
    row = {label: i for i, label in enumerate(labels)}
    for k in range(last, last - FLEXIBLE, -1):
        phi, psi = draw_phi_psi(random, one_letter(names[k]), len(which))
        inner = np.array([j < k for j, _ in labels])
        before = inner | np.array([j == k and atom not in ("C", "O", "CA") for j, atom in labels])
        beyond = side_chain["NZ"][which] if k == last else (k + 1, "N")
        # What lies before a bond turns about it, and what lies beyond stays: psi first, then phi.
        for turned, start, a, b, end, value in ((before, (k, "N"), (k, "CA"), (k, "C"), beyond, psi),
                                                (inner, (k - 1, "C"), (k, "N"), (k, "CA"), (k, "C"), phi)):
            before_bond, after = points[:, row[a]], points[:, row[b]]
            last_atom = points[:, row[end]] if isinstance(end, tuple) else end
            now = torsion(points[:, row[start]], before_bond, after, last_atom)
            axis = before_bond - after
            axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
            points[:, turned] = rotate(points[:, turned], after, axis, value - now)
    result: list[dict[str, np.ndarray]] = [{} for _ in names]
    for i, (k, atom) in enumerate(labels):
        result[k][atom] = points[:, i]
    return result


def _roomiest(drawn: Sequence[dict[str, np.ndarray]], tree: cKDTree, way: cKDTree) -> int | None:
    """Which of the ubiquitins touches neither its surroundings nor itself, and has most room; None where all do."""
    fold, tail = drawn[:-FLEXIBLE], drawn[-FLEXIBLE:]
    middles = np.stack([atoms["CA"] for atoms in fold], axis=1)
    room = np.minimum(tree.query(middles)[0].min(axis=1), ROOMY)
    free = (room > REACH + 1.0) & (way.query(middles)[0].min(axis=1) > LINKER_REACH)
    best, most = None, 0.0
    for s in np.flatnonzero(free)[np.argsort(-room[free], kind="stable")].tolist():
        if room[s] <= most:
            break
        inner = np.array([x[s] for atoms in fold for x in atoms.values()])
        outer = np.array([x[s] for atoms in tail[:-1] for x in atoms.values()])
        last = np.array([tail[-1][name][s] for name in ("N", "CA")])
        beside = tree.query(np.concatenate([inner, outer, last]))[0]
        alone = [x[s] for atoms in tail[1:] for x in atoms.values()]
        if beside.min() < REACH or cKDTree(inner).query(np.array(alone))[0].min() < REACH:
            continue
        if min(beside[:len(inner)].min(), room[s]) > most:
            best, most = s, float(min(beside[:len(inner)].min(), room[s]))
    return best


@cache
def _linker_axes() -> np.ndarray:
    """(2n, 3) points on the axis of DNA that leaves the particle straight."""
    origin, frame = crystal_path()
    steps = LINKER_STEP * np.arange(1, LINKER_LENGTH + 1)[:, None]
    return np.concatenate([origin[end] + sign * steps * frame[end, :, 2] for end, sign in ((0, -1.0), (-1, 1.0))])
