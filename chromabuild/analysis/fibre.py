"""DNA of a built fibre, measured on its atoms: geometry by stretch, steps along nucleosomes, and topology."""

from dataclasses import dataclass

import numpy as np

from chromabuild.dna.backbone import SUGAR, base_layout, measure_backbone
from chromabuild.dna.linking import twist, writhe
from chromabuild.dna.sequence import BASES
from chromabuild.dna.steps import FLIP, analyse, dna_parameters, fit_frames, midframe
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute

OUTLIER = 4.0  # standard deviations
AXIS_POINTS = 5000  # of the polygon whose writhe is computed; its time grows with the square


@dataclass(frozen=True)
class DnaAtoms:
    """Both strands of a solute in the order of the closure: strand I, then strand J, each 5' to 3'."""

    bases: np.ndarray
    """(2n,) 0..3 for A, C, G, T."""
    sugar: np.ndarray
    """(2n, 11, 3) atoms ``SUGAR``, angstrom; NaN where a 5' end lacks them."""
    base_atoms: np.ndarray
    """(2n, 11, 3) as of ``place_bases``."""


@dataclass(frozen=True)
class Stretch:
    """One linker, one wrapped core, or a free end."""

    name: str
    first_bp: int
    last_bp: int
    o3_p_shortest: float
    """Angstrom."""
    o3_p_longest: float
    bond_rmsz: float
    angle_rmsz: float
    outliers: int
    """Bonds and angles beyond 4 standard deviations."""


def dna_atoms(solute: Solute) -> DnaAtoms | None:
    """The duplex of a solute; nothing when its first two molecules are no complete double strand."""
    first = solute.molecule_first_residue
    if list(solute.molecule_name[:2]) != ["DNA-I", "DNA-J"] or first[2] != 2 * first[1]:
        return None
    library, layout = list(residue_library().values()), base_layout()
    template, start = solute.residue_template[: first[2]], solute.residue_first_atom[: first[2]]
    bases = np.array([BASES.index(t.base) if t.kind == "nucleotide" else -1 for t in library])[template]
    sugar, base_atoms = (np.full((len(bases), 11, 3), np.nan) for _ in range(2))
    for kind in np.unique(template):
        which, atoms = np.flatnonzero(template == kind), library[kind].index
        for target, names in ((sugar, SUGAR), (base_atoms, layout.atoms[library[kind].base])):
            for k, name in enumerate(names):
                if name in atoms:
                    target[which, k] = solute.position[start[which] + atoms[name]]
    return DnaAtoms(bases, sugar, base_atoms)


def base_pair_frames(dna: DnaAtoms) -> tuple[np.ndarray, np.ndarray]:
    """Origins (n, 3) and frames (n, 3, 3) of the base pairs, fitted to the atoms."""
    origin, frame = np.empty((len(dna.bases), 3)), np.empty((len(dna.bases), 3, 3))
    for k, letter in enumerate(BASES):
        which = np.flatnonzero(dna.bases == k)
        standard, names = dna_parameters().base[letter], base_layout().atoms[letter]
        ring = dna.base_atoms[which][:, [names.index(name) for name in standard.ring]]
        origin[which], frame[which] = fit_frames(ring, standard.ring_position)
    n = len(dna.bases) // 2
    return midframe(origin[n:][::-1], frame[n:][::-1] @ FLIP, origin[:n], frame[:n])


def stretches(dna: DnaAtoms, core: np.ndarray, closed: bool = False) -> list[Stretch]:
    """Backbone geometry of every run of base pairs with the same ``core`` (n,): a nucleosome's index, -1 if free.

    The link between two stretches counts with the one that it leads to. ``closed``: the last base pair is followed by
    the first.
    """
    n = len(core)
    geometry = measure_backbone(dna.bases, dna.sugar, dna.base_atoms, torsions=False)
    o3_p, z = geometry.bond[:, 0], np.concatenate([geometry.bond_z, geometry.angle_z], axis=1)
    bonds = geometry.bond_z.shape[1]
    edges = np.concatenate([[0], np.flatnonzero(np.diff(core)) + 1, [n]])
    result = []
    for first, end in zip(edges[:-1], edges[1:], strict=True):
        rows = np.concatenate([np.arange(first, end), np.arange(2 * n - end, 2 * n - first)])
        name = f"nucleosome {core[first] + 1}"
        if core[first] < 0:
            end_name = "linker beside the seam" if closed else "free end"
            name = end_name if first == 0 or end == n else f"linker after nucleosome {core[first - 1] + 1}"
        if not np.isfinite(o3_p[rows]).any():
            continue
        result.append(Stretch(
            name, int(first), int(end - 1), float(np.nanmin(o3_p[rows])), float(np.nanmax(o3_p[rows])),
            float(np.sqrt(np.nanmean(z[rows, :bonds] ** 2))), float(np.sqrt(np.nanmean(z[rows, bonds:] ** 2))),
            int(np.sum(np.abs(z[rows]) > OUTLIER)),
        ))  # fmt: skip
    return result


def step_parameters(origin: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """(n - 1, 6) shift, slide, rise, tilt, roll, twist from pair origins (n, 3) and frames (n, 3, 3)."""
    return analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])


def topology(origin: np.ndarray, frame: np.ndarray, threads: int = 1, closed: bool = False) -> dict[str, float]:
    """Twist and writhe in turns, and their sum, of a fibre; that of a closed one is its linking number.

    Long open fibres are thinned: the axis goes through every so many base pairs (``axis_spacing``).
    """
    every = 1 if closed else -(-len(origin) // AXIS_POINTS)
    turns, coiling = twist(origin, frame, closed, every), writhe(origin[::every], closed, threads)
    return {"linking_number": turns + coiling, "twist": turns, "writhe": coiling, "axis_spacing": every}
