"""Sugar-phosphate backbone over fixed bases: rigid nucleotides break the chain, a least-squares closure mends it.

Bases stay where the base pairs put them. The 11 sugar-phosphate atoms of every nucleotide start from an ideal B-DNA
conformation and are then fitted to standard bonds and angles, torsion priors of BI-DNA and soft contacts with all
neighbours on either strand (kernel ``backbone_closure``).
"""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild import _kernels
from chromabuild.dna.sequence import BASES
from chromabuild.dna.steps import dna_parameters
from chromabuild.files import template_path
from chromabuild.residues import residue_library

SUGAR = ("P", "OP1", "OP2", "O5'", "C5'", "O4'", "C1'", "C2'", "C4'", "C3'", "O3'")
"""The unknown atoms of a nucleotide in the order of the kernel."""
PREVIOUS = ("-C4'", "-C3'", "-O3'")
ATOM_CLASS = {"C": 1, "N": 2, "O": 3, "P": 4, "M": 5}
"""M is the methyl carbon of thymine, which needs more room than other carbons."""
BASE_ATOMS_MOST = 11
CHUNK = 32  # nucleotides minimised together; chosen by timing, and part of the result
MOST_ITERATIONS = 60
PASSES, LAST_RESTART_OF_STRAINED, MOST_PASSES = 3, 3, 8
OUTLIER = 4.0  # standard deviations


@dataclass(frozen=True)
class Restraints:
    """The tables of templates/backbone_restraints.json in the order of the kernel's window.

    A window holds C4', C3', O3' of the previous nucleotide, the 11 own atoms, and N with its two neighbours.
    """

    bond_atoms: np.ndarray
    """(b, 2) indices into the window."""
    bond_target: np.ndarray
    """(b, 4) angstrom, by base A, C, G, T."""
    bond_deviation: np.ndarray
    angle_atoms: np.ndarray
    angle_target: np.ndarray
    """(a, 4) radian."""
    angle_deviation: np.ndarray
    torsion_atoms: np.ndarray
    torsion_target: np.ndarray
    torsion_deviation: np.ndarray
    c1_tether: float
    contact_distance: np.ndarray
    """(5, 5) angstrom, by atom class C, N, O, P, M."""
    contact_deviation: float


@dataclass(frozen=True)
class BaseLayout:
    """Base atoms (without C1') in the order of the kernel: N, its two neighbours, then the rest."""

    atoms: dict[str, tuple[str, ...]]
    position: np.ndarray
    """(4, 11, 3) in the base frame; unused places are zero."""
    c1: np.ndarray
    """(4, 3) C1' in the base frame."""
    size: np.ndarray
    atom_class: np.ndarray
    """(4, 11)."""
    excluded_own: np.ndarray
    """(4, 22, 11) 1 where two atoms of a nucleotide are within three bonds: [base, other, sugar atom]."""
    excluded_next: np.ndarray
    """(11, 11) the same between nucleotides: [atom of the next, atom of this]."""


@cache
def restraints() -> Restraints:
    """Read templates/backbone_restraints.json."""
    data = json.loads(template_path("backbone_restraints.json").read_text())
    window = {name: i for i, name in enumerate(PREVIOUS + SUGAR + ("N", "Ca", "Cb"))}

    def table(entries: dict, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        atoms = np.array([[window[name] for name in key.split()] for key in entries], dtype=np.int32)
        values = [value if isinstance(value, dict) else dict.fromkeys(BASES, value) for value, _ in entries.values()]
        target = [[value[base] for base in BASES] for value in values]
        return atoms, scale * np.array(target, dtype=float), scale * np.array([sd for _, sd in entries.values()])

    torsion_atoms, torsion_target, torsion_deviation = table(data["torsions"], np.pi / 180)
    contact = np.zeros((5, 5))
    for key, distance in data["contacts"].items():
        first, second = (ATOM_CLASS[element] - 1 for element in key.split())
        contact[first, second] = contact[second, first] = distance
    return Restraints(
        *table(data["bonds"], 1.0),
        *table(data["angles"], np.pi / 180),
        torsion_atoms, torsion_target[:, 0], torsion_deviation,
        data["c1_tether"], contact, data["contact_deviation"],
    )  # fmt: skip


def _within_three_bonds(bonds: np.ndarray, n: int) -> np.ndarray:
    """(n, n) bool, true for atoms joined by at most three bonds."""
    joined = np.eye(n, dtype=int)
    joined[bonds[:, 0], bonds[:, 1]] = joined[bonds[:, 1], bonds[:, 0]] = 1
    return np.linalg.matrix_power(joined, 3) > 0


@cache
def base_layout() -> BaseLayout:
    """Base atoms, their elements and the pairs left out of the soft contacts."""
    library, parameters = residue_library(), dna_parameters()
    atoms, position, c1 = {}, np.zeros((4, BASE_ATOMS_MOST, 3)), np.zeros((4, 3))
    size, atom_class = np.zeros(4, dtype=np.int32), np.ones((4, BASE_ATOMS_MOST), dtype=np.int32)
    excluded_own = np.zeros((4, 22, 11), dtype=np.int32)
    for k, letter in enumerate(BASES):
        base = parameters.base[letter]
        leading = ("N9", "C4", "C8") if letter in "AG" else ("N1", "C2", "C6")
        names = leading + tuple(name for name in base.atoms if name not in leading and name != "C1'")
        atoms[letter], size[k] = names, len(names)
        position[k, : len(names)] = base.position[[base.atoms.index(name) for name in names]]
        c1[k] = base.position[base.atoms.index("C1'")]
        atom_class[k, : len(names)] = [ATOM_CLASS["M" if name == "C7" else name[0]] for name in names]
        template = residue_library()[f"D{letter}"]
        near = _within_three_bonds(template.bonds, len(template.atoms))
        columns = [template.index[name] for name in SUGAR]
        excluded_own[k, : 11 + len(names)] = near[np.ix_(columns + [template.index[name] for name in names], columns)]
    template = library["DA"]
    n = len(template.atoms)
    link = np.array([[template.index["O3'"], n + template.index["P"]]])
    near = _within_three_bonds(np.concatenate([template.bonds, template.bonds + n, link]), 2 * n)
    columns = np.array([template.index[name] for name in SUGAR])
    excluded_next = near[np.ix_(n + columns, columns)].astype(np.int32)
    return BaseLayout(atoms, position, c1, size, atom_class, excluded_own, excluded_next)


@cache
def starting_conformation() -> np.ndarray:
    """(4, 11, 3) sugar-phosphate of A, C, G, T in the base frame (templates/nucleotide_start.json)."""
    data = json.loads(template_path("nucleotide_start.json").read_text())
    return np.array([[data["position"][base][atom] for atom in SUGAR] for base in BASES])


def place_bases(base_index: np.ndarray, origin: np.ndarray, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Base atoms (m, 11, 3) in kernel order and C1' targets (m, 3) of nucleotides with given base frames.

    Args:
        base_index: (m,) 0..3 for A, C, G, T.
        origin: (m, 3) base origins.
        frame: (m, 3, 3) base frames, each in its own strand's sense.
    """
    layout = base_layout()
    atoms = origin[:, None] + np.einsum("mij,maj->mai", frame, layout.position[base_index])
    return atoms, origin + np.einsum("mij,mj->mi", frame, layout.c1[base_index])


def close_backbone(
    base_index: np.ndarray, origin: np.ndarray, frame: np.ndarray, threads: int = 1, start: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sugar-phosphate atoms of a duplex with fixed bases.

    Args:
        base_index: (2n,) 0..3 for A, C, G, T; strand I, then strand J, each 5' to 3'; nucleotide k pairs with 2n-1-k.
        origin: (2n, 3) base origins, angstrom.
        frame: (2n, 3, 3) base frames, each in its own strand's sense.
        threads: OpenMP threads; the result does not depend on it.
        start: (4, 11, 3) conformation to start from, in the base frame; default ``starting_conformation()``.

    Returns:
        Position (2n, 11, 3) of the atoms ``SUGAR`` (phosphates of the two 5' ends carry no meaning), and the
        Levenberg-Marquardt iterations (2n,) that each nucleotide took in all passes.
    """
    table, layout = restraints(), base_layout()
    bases, c1 = place_bases(base_index, origin, frame)
    start = starting_conformation() if start is None else start
    begin = origin[:, None] + np.einsum("mij,maj->mai", frame, start[base_index])
    sugar, restarted = begin.copy(), False
    total = np.zeros(len(base_index), dtype=np.int64)
    # The second pass shifts the borders of the chunks to where the first pass had their middles, and sees the other
    # strand's mended backbone; the third settles what the second moved. Far from its minimum a sugar may turn inside
    # out or a link be caught in a strained fold: it starts anew beside neighbours that are in place by now, and gets
    # further passes.
    for number in range(MOST_PASSES):
        first_length = CHUNK // 2 if number % 2 else CHUNK
        position = np.asfortranarray(sugar.transpose(2, 1, 0))
        iterations, failed = _kernels.backbone_closure.close_backbone(
            base_type=base_index + 1, base_size=layout.size, base_class=layout.atom_class.T,
            base_position=bases.transpose(2, 1, 0), c1_position=c1.T,
            bond_atom=table.bond_atoms.T + 1, bond_target=table.bond_target, bond_sigma=table.bond_deviation,
            angle_atom=table.angle_atoms.T + 1, angle_target=table.angle_target, angle_sigma=table.angle_deviation,
            torsion_atom=table.torsion_atoms.T + 1, torsion_target=table.torsion_target,
            torsion_sigma=table.torsion_deviation, c1_sigma=table.c1_tether,
            sugar_class=[ATOM_CLASS[name[0]] for name in SUGAR], contact_distance=table.contact_distance,
            contact_sigma=table.contact_deviation, excluded_own=layout.excluded_own.transpose(2, 1, 0),
            excluded_next=layout.excluded_next.T, chunk_length=CHUNK, first_length=first_length,
            most_iterations=MOST_ITERATIONS, n_threads=threads, position=position,
        )  # fmt: skip
        if failed:
            raise ValueError(f"{failed} nucleotides have more neighbours than a duplex can have: base pairs overlap")
        sugar = position.transpose(2, 1, 0)
        total += iterations
        bad = wrong_chirality(sugar, bases).any(axis=1)
        if 0 < number < LAST_RESTART_OF_STRAINED:
            geometry = measure_backbone(base_index, sugar, bases)
            strained = np.nanmax(np.abs(np.concatenate([geometry.bond_z, geometry.angle_z], axis=1)), axis=1) > OUTLIER
            bad |= strained
            bad[:-1] |= strained[1:]  # the window of a nucleotide reaches back to the one before it
        if number + 1 == MOST_PASSES or (number + 1 >= PASSES and not bad.any() and not restarted):
            break
        restarted = bad.any()
        sugar = np.where(bad[:, None, None], begin, sugar)
    return np.ascontiguousarray(sugar), total


@dataclass(frozen=True)
class BackboneGeometry:
    """Bonds, angles and torsions of every window, one row a nucleotide; NaN where a 5' end lacks the atoms."""

    bond: np.ndarray
    """(2n, b) angstrom."""
    angle: np.ndarray
    """(2n, a) degree."""
    torsion: np.ndarray
    """(2n, t) degree."""
    bond_z: np.ndarray
    """Deviation from the target in standard deviations, like ``angle_z``."""
    angle_z: np.ndarray


def measure_torsion(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Torsion a-b-c-d in radian, IUPAC sign; all (..., 3)."""
    middle = c - b
    first, second = np.cross(b - a, middle), np.cross(middle, d - c)
    sine = np.sum(np.cross(first, second) * middle, axis=-1) / np.linalg.norm(middle, axis=-1)
    return np.arctan2(sine, np.sum(first * second, axis=-1))


def measure_backbone(base_index: np.ndarray, sugar: np.ndarray, bases: np.ndarray) -> BackboneGeometry:
    """Geometry of a duplex's backbone against the restraint tables.

    Args:
        base_index: (2n,) as in ``close_backbone``.
        sugar: (2n, 11, 3) atoms ``SUGAR``.
        bases: (2n, 11, 3) base atoms in kernel order; only the first three are used.
    """
    table, n = restraints(), len(base_index)
    window = np.full((n, 17, 3), np.nan)
    window[1:, :3] = sugar[:-1, 8:]
    window[:, 3:14] = sugar
    window[:, 14:] = bases[:, :3]
    for first in (0, n // 2):
        window[first, :6] = np.nan

    def corner(atoms: np.ndarray, k: int) -> np.ndarray:
        return window[:, atoms[:, k]]

    bond = np.linalg.norm(corner(table.bond_atoms, 0) - corner(table.bond_atoms, 1), axis=-1)
    u = corner(table.angle_atoms, 0) - corner(table.angle_atoms, 1)
    v = corner(table.angle_atoms, 2) - corner(table.angle_atoms, 1)
    angle = np.arctan2(np.linalg.norm(np.cross(u, v), axis=-1), np.sum(u * v, axis=-1))
    torsion = measure_torsion(*(corner(table.torsion_atoms, k) for k in range(4)))
    return BackboneGeometry(
        bond, np.degrees(angle), np.degrees(torsion),
        (bond - table.bond_target.T[base_index]) / table.bond_deviation,
        (angle - table.angle_target.T[base_index]) / table.angle_deviation,
    )  # fmt: skip


def wrong_chirality(sugar: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """(2n, 3) true where C1', C3' or C4' is not the D-deoxyribose centre of the beta anomer.

    The sign is that of the triple product of the three heavy neighbours in a fixed order.
    """
    at = {name: sugar[:, k] for k, name in enumerate(SUGAR)}

    def volume(centre: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.sum(np.cross(a - at[centre], b - at[centre]) * (c - at[centre]), axis=-1)

    return np.stack([
        volume("C1'", at["O4'"], at["C2'"], bases[:, 0]) < 0,
        volume("C3'", at["C4'"], at["C2'"], at["O3'"]) < 0,
        volume("C4'", at["O4'"], at["C3'"], at["C5'"]) > 0,
    ], axis=1)  # fmt: skip


