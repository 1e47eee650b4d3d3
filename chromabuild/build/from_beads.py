"""Atoms of a solute whose beads have moved: residues laid on their beads, and the backbone of DNA closed anew."""

import numpy as np

from chromabuild.build.beads import Beads, atoms_of
from chromabuild.build.duplex import neighbours_of_dna, place_end_phosphates, rest_of_pairs
from chromabuild.dna.backbone import ATOM_CLASS, SUGAR, close_backbone, place_bases
from chromabuild.dna.sequence import BASES
from chromabuild.dna.stacking import relax_bases
from chromabuild.dna.steps import dna_parameters, fit_frames
from chromabuild.molecule.hydrogens import place_hydrogens, settle_base_methyls
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute


def atoms_on_beads(solute: Solute, beads: Beads, place: np.ndarray, threads: int = 1) -> Solute:
    """The solute on beads at other places, (b, 3) angstrom, with bases and proteins as they are in it.

    Bodies of proteins keep their shape. Bases that overlap give way, and sugars and phosphates are those that close the
    backbone between the bases, clear of proteins, as in the builder. Strands are linear.
    """
    laid = atoms_of(beads, solute, place)
    library = list(residue_library().values())
    position, first = laid.position.astype(float), laid.residue_first_atom
    element = np.concatenate([library[k].elements for k in laid.residue_template])
    rows = np.flatnonzero((beads.partner[laid.atom_residue] < 0) & (element != "H"))
    kind = np.array([ATOM_CLASS.get(e, ATOM_CLASS["C"]) for e in element[rows]], dtype=np.int32)
    proteins = (position[rows], kind) if len(rows) else None
    for start, end in _duplexes(beads):
        template = [library[k] for k in laid.residue_template[start:end]]
        bases = np.array([BASES.index(one.base) for one in template])
        origin, frame = np.zeros((end - start, 3)), np.zeros((end - start, 3, 3))
        for k, letter in enumerate(BASES):
            base, which = dna_parameters().base[letter], np.flatnonzero(bases == k)
            atoms = np.array([[first[start + i] + template[i].index[name] for name in base.ring] for i in which], int)
            if len(which):
                origin[which], frame[which] = fit_frames(position[atoms], base.ring_position)
        new_origin, new_frame = relax_bases(bases, origin, frame, rest_of_pairs(bases[:len(bases) // 2]), threads)
        for i, k in enumerate(range(start, end)):
            atoms = slice(first[k], first[k + 1])
            position[atoms] = new_origin[i] + (position[atoms] - origin[i]) @ frame[i] @ new_frame[i].T
        origin, frame = new_origin, new_frame
        _, c1 = place_bases(bases, origin, frame)
        obstacles = neighbours_of_dna(c1, proteins, None, threads)
        sugar, _ = close_backbone(bases, origin, frame, threads, obstacles=obstacles)
        for i, one in enumerate(template):
            for k, name in enumerate(SUGAR):
                if name in one.index:
                    position[first[start + i] + one.index[name]] = sugar[i, k]
        place_end_phosphates(position, laid.residue_template[start:end], first[start:end + 1])
        dna = slice(first[start], first[end])
        place_hydrogens(position[dna], laid.residue_template[start:end], first[start:end + 1] - first[start])
        settle_base_methyls(position[dna], laid.residue_template[start:end], first[start:end + 1] - first[start])
    laid.position = position.astype(np.float32)
    return laid


def _duplexes(beads: Beads) -> list[tuple[int, int]]:
    """First residue and end of each two strands, which stand one behind the other."""
    found, k = [], 0
    while k < len(beads.partner):
        if beads.partner[k] < 0:
            k += 1
            continue
        found.append((k, int(beads.partner[k]) + 1))
        k = found[-1][1]
    return found
