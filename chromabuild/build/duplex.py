"""Both strands of DNA with all their atoms: bases placed, backbones closed, hydrogens added."""

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.build.modified_bases import (
    THYMINE,
    added_atoms,
    residue_of_code,
    settle_hydroxymethyls,
    substituents,
)
from chromabuild.dna.backbone import (
    SUGAR,
    Obstacles,
    base_layout,
    close_backbone,
    measure_backbone,
    place_bases,
    wrong_chirality,
)
from chromabuild.dna.sequence import BASES, both_strands
from chromabuild.dna.stacking import relax_bases
from chromabuild.dna.steps import dna_parameters, split_pair
from chromabuild.molecule.hydrogens import place_hydrogens, settle_base_methyls
from chromabuild.molecule.residues import PHOSPHATE, PHOSPHATE_3, residue_library, residue_names
from chromabuild.nucleosome.peptide import place
from chromabuild.sterics.cell_list import CellList

OUTLIER = 4.0  # standard deviations
PHOSPHATE_REACH = 10.0  # angstrom from C1' to what the farthest oxygen of its phosphate can touch
SEAM = 30  # base pairs that a circle repeats on either side


def base_frames(
    sequence: np.ndarray, origin: np.ndarray, frame: np.ndarray, threads: int = 1, modified: np.ndarray | None = None,
    pairs: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bases (2n,), base origins (2n, 3) and frames (2n, 3, 3) of strand I, then strand J, from base pairs.

    Args:
        sequence: (n,) 0..3 for A, C, G, T of strand I.
        origin: (n, 3) of the base pairs, angstrom.
        frame: (n, 3, 3).
        threads: for the relaxation of overlapping bases.
        modified: (2n,) codes of substituted cytosines, which stack as thymines do.
        pairs: (n, 6) shear ... opening of every base pair at rest; default ``rest_of_pairs``.
    """
    pair = rest_of_pairs(sequence) if pairs is None else pairs
    (origin_i, frame_i), (origin_j, frame_j) = split_pair(origin, frame, pair)
    bases = both_strands(sequence)
    origins = np.concatenate([origin_i, origin_j[::-1]])
    frames = np.concatenate([frame_i, frame_j[::-1]])
    stacked = bases if modified is None else np.where(modified > 0, THYMINE, bases)
    return bases, *relax_bases(stacked, origins, frames, pair, threads)


def rest_of_pairs(sequence: np.ndarray) -> np.ndarray:
    """(n, 6) shear ... opening at rest, angstrom and degree, of base pairs (n,) 0..3 for A, C, G, T of strand I."""
    parameters = dna_parameters()
    return np.array([parameters.pair[letter] for letter in BASES])[sequence]


def build_dna(
    sequence: np.ndarray, origin: np.ndarray, frame: np.ndarray, threads: int = 1, circular: bool = False,
    histones: tuple[np.ndarray, np.ndarray] | None = None, modified: np.ndarray | None = None,
    pairs: np.ndarray | None = None, phosphate: bool = False, phosphate_3: bool = False,
) -> tuple[np.ndarray, np.ndarray, dict]:
    """All atoms of a duplex with free 5' and 3' hydroxyls, or of a closed circle without ends.

    Args:
        sequence: (n,) 0..3 for A, C, G, T of strand I.
        origin: (n, 3) of the base pairs, angstrom.
        frame: (n, 3, 3).
        threads: for relaxing bases and closing the backbone; the result does not depend on it.
        circular: whether the last base pair is followed by the first.
        histones: (k, 3) atoms that the backbone keeps clear of, and their ``ATOM_CLASS`` (k,).
        modified: (2n,) codes of modified cytosines (``genome.methylation``), strand I, then strand J, each 5' to 3';
            the backbone keeps clear of their substituents.
        pairs: (n, 6) shear ... opening of every base pair, as of ``base_frames``.
        phosphate: whether 5' ends carry a phosphate in place of a hydroxyl.
        phosphate_3: whether 3' ends do.

    Returns:
        Positions (atoms, 3), library indices of the residues (2n,) - strand I, then strand J - and the report on the
        backbone's quality.
    """
    if circular:
        bases, base_atoms, sugar, iterations = _closed_circle(sequence, origin, frame, threads, histones, modified,
                                                              pairs)
    else:
        bases, origins, frames = base_frames(sequence, origin, frame, threads, modified, pairs)
        base_atoms, c1 = place_bases(bases, origins, frames)
        added = None if modified is None else substituents(modified, base_atoms)
        obstacles = neighbours_of_dna(c1, histones, added, threads)
        sugar, iterations = close_backbone(bases, origins, frames, threads, obstacles=obstacles)

    n, index = len(sequence), {name: k for k, name in enumerate(residue_names())}
    template = np.array([index[f"D{letter}"] for letter in BASES])[bases]
    five, three = PHOSPHATE if phosphate else "5", PHOSPHATE_3 if phosphate_3 else "3"
    for end, suffix in () if circular else ((0, five), (n - 1, three), (n, five), (2 * n - 1, three)):
        template[end] = index[f"D{BASES[bases[end]]}{suffix}"]
    if modified is not None:
        for k in np.flatnonzero(modified):
            template[k] = index[residue_of_code(int(modified[k])) + residue_names()[template[k]][2:]]
    library = list(residue_library().values())
    sizes = np.array([len(entry.atoms) for entry in library])
    first_atom = np.concatenate([[0], np.cumsum(sizes[template])])
    position = np.zeros((first_atom[-1], 3))
    for kind in np.unique(template):
        which, atoms = np.flatnonzero(template == kind), library[kind].index
        letter = library[kind].base
        for source, names in ((sugar, SUGAR), (base_atoms, base_layout().atoms[letter])):
            for k, name in enumerate(names):
                if name in atoms:
                    position[first_atom[which] + atoms[name]] = source[which, k]
        if library[kind].modification:
            for name, placed in added_atoms(library[kind].modification, base_atoms[which]).items():
                position[first_atom[which] + atoms[name]] = placed
    place_end_phosphates(position, template, first_atom)
    place_hydrogens(position, template, first_atom)
    settle_base_methyls(position, template, first_atom)
    if modified is not None:
        settle_hydroxymethyls(position, template, first_atom)
    return position, template.astype(np.uint16), _backbone_report(bases, sugar, base_atoms, iterations, circular)


_AT_FIVE = (("P", "C4'", "C5'", "O5'", 1.593, 120.9, 175.0), ("OP3", "C5'", "O5'", "P", 1.58, 104.0, -60.0),
            ("OP1", "C5'", "O5'", "P", 1.485, 108.1, 185.4), ("OP2", "C5'", "O5'", "P", 1.485, 108.1, 54.6))
_AT_THREE = (("P3", "C4'", "C3'", "O3'", 1.607, 119.7, -169.0), ("O3T", "C3'", "O3'", "P3", 1.58, 104.0, -95.0),
             ("O1P3", "C3'", "O3'", "P3", 1.485, 107.9, 150.4), ("O2P3", "C3'", "O3'", "P3", 1.485, 107.9, 19.6))
"""Atoms of a phosphate, three atoms that each is placed by, its length (angstrom), angle and torsion (degree)."""


def place_end_phosphates(position: np.ndarray, residue_template: np.ndarray, first_atom: np.ndarray) -> None:
    """Place the phosphates of the ends that have one; arguments as of ``molecule.hydrogens.place_hydrogens``."""
    library = list(residue_library().values())
    for k, kind in enumerate(residue_template):
        for suffix, atoms in ((PHOSPHATE, _AT_FIVE), (PHOSPHATE_3, _AT_THREE)):
            if library[kind].name.endswith(suffix):
                _place_phosphate(position[first_atom[k]:], library[kind].index, atoms)


def _place_phosphate(position: np.ndarray, index: dict[str, int], atoms: tuple[tuple, ...]) -> None:
    """Put the phosphate of an end, (k, 3) from the first atom of its nucleotide, where it would stand within B-DNA.

    Torsions, lengths and angles are those of backbone_restraints.json (epsilon and zeta in BI); P-OH as in CHARMM36
    (P-ON4). Free oxygens stand at 114.6 degrees from the hydroxyl about the ester bond, so that the angle between them
    is 119.6 degrees.
    """
    known = {name: position[place_of] for name, place_of in index.items()}
    for name, a, b, c, length, angle, turn in atoms:
        known[name] = position[index[name]] = place(known[a], known[b], known[c], length, angle, turn)


def neighbours_of_dna(c1: np.ndarray, histones: tuple[np.ndarray, np.ndarray] | None,
                      added: tuple[np.ndarray, np.ndarray] | None, threads: int) -> Obstacles | None:
    """Those of the atoms (k, 3), with their ``ATOM_CLASS`` (k,), of histones and of what bases have in addition that
    the sugar-phosphates at ``c1`` (2n, 3) can touch."""
    present = [one for one in (histones, added) if one]
    if not present:
        return None
    position, atom_class = (np.concatenate(part) for part in zip(*present, strict=True))
    nucleotide, atom = CellList(position, PHOSPHATE_REACH, threads).in_spheres(c1, PHOSPHATE_REACH)
    if not len(atom):
        return None
    atom = atom[np.lexsort((atom, nucleotide))]
    first = np.concatenate([[0], np.cumsum(np.bincount(nucleotide, minlength=len(c1)))]).astype(np.int32)
    return Obstacles(first, atom_class[atom], np.ascontiguousarray(position[atom], dtype=float))


def check_circle(n: int) -> None:
    """Raises BadInputError for a circle of so few base pairs that its seam would meet itself."""
    if n <= 2 * SEAM:
        raise BadInputError(f"a circle of {n} base pairs is too small to be built: take more than {2 * SEAM}")


def _closed_circle(
    sequence: np.ndarray, origin: np.ndarray, frame: np.ndarray, threads: int,
    histones: tuple[np.ndarray, np.ndarray] | None, modified: np.ndarray | None, pairs: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bases (2n,), their atoms, sugar-phosphates and closure iterations of both strands of a circle.

    It is closed as a longer duplex whose ends repeat what lies beyond the seam; once more with the true neighbours
    there, so that both sides of the seam meet. Arguments are those of ``build_dna``.
    """
    n = len(sequence)
    check_circle(n)
    around = np.arange(-SEAM, n + SEAM) % n
    both = np.concatenate([around, n + around])  # either strand begins where the other ends
    bases, origins, frames = base_frames(sequence[around], origin[around], frame[around], threads,
                                         None if modified is None else modified[both],
                                         None if pairs is None else pairs[around])
    inner = np.concatenate([SEAM + np.arange(n), n + 3 * SEAM + np.arange(n)])
    repeated = inner[both]
    place = bases, origins[repeated], frames[repeated]  # a base and its copy must lie in the same place
    base_atoms, c1 = place_bases(*place)
    added = None if modified is None else substituents(modified, base_atoms[inner])
    obstacles = neighbours_of_dna(c1, histones, added, threads)
    sugar, iterations = close_backbone(*place, threads, obstacles=obstacles)
    sugar, more = close_backbone(*place, threads, start=sugar[repeated], obstacles=obstacles)
    return tuple(part[inner] for part in (bases, base_atoms, sugar, iterations + more))


def _backbone_report(
    bases: np.ndarray, sugar: np.ndarray, base_atoms: np.ndarray, iterations: np.ndarray, circular: bool
) -> dict:
    pairs = len(bases) // 2
    if circular:  # the last nucleotide of each strand once more before its first; its own row is dropped
        rows = np.arange(2 * pairs).reshape(2, -1)
        rows = np.concatenate([rows[:, -1:], rows], axis=1).ravel()
        bases, sugar, base_atoms = bases[rows], sugar[rows], base_atoms[rows]
    geometry = measure_backbone(bases, sugar, base_atoms, torsions=False)
    o3_p, wrong = geometry.bond[:, 0], wrong_chirality(sugar, base_atoms).sum(axis=0)
    return {
        "base_pairs": pairs,
        "o3_p_shortest": round(float(np.nanmin(o3_p)), 4),
        "o3_p_longest": round(float(np.nanmax(o3_p)), 4),
        "bond_rmsz": round(float(np.sqrt(np.nanmean(geometry.bond_z**2))), 4),
        "angle_rmsz": round(float(np.sqrt(np.nanmean(geometry.angle_z**2))), 4),
        "bond_outliers": int(np.sum(np.abs(geometry.bond_z) > OUTLIER)),
        "angle_outliers": int(np.sum(np.abs(geometry.angle_z) > OUTLIER)),
        "wrong_chirality": dict(zip(("C1'", "C3'", "C4'"), wrong.tolist(), strict=True)),
        "closure_iterations": round(float(iterations.mean()), 1),
    }
