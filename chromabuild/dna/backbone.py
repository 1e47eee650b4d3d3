"""Sugar-phosphate backbone over fixed bases: rigid nucleotides break the chain, a least-squares closure mends it.

Bases stay where the base pairs put them. The 11 sugar-phosphate atoms of every nucleotide start from where a library
foretells them (``chromabuild.dna.start``) and are then fitted to standard bonds and angles, torsion priors of BI-DNA
and soft contacts with all neighbours on either strand (kernel ``backbone_closure``).
"""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from chromabuild import _kernels
from chromabuild.base.files import template_path
from chromabuild.dna.sequence import BASES
from chromabuild.dna.start import SUGAR, foretold_conformation, ideal_conformation, placed_conformation
from chromabuild.dna.steps import dna_parameters
from chromabuild.molecule.geometry import measure_torsion
from chromabuild.molecule.residues import residue_library
from mesoscale.handle import Handle

PREVIOUS = ("-C4'", "-C3'", "-O3'")
ATOM_CLASS = {"C": 1, "N": 2, "O": 3, "P": 4, "M": 5, "C1'": 6, "C2'": 7, "C5'": 8}
"""M is the methyl carbon of thymine; it and three of the sugar's, with their hydrogens, need more room than others."""
SUGAR_CLASS = [ATOM_CLASS.get(name, ATOM_CLASS[name[0]]) for name in SUGAR]
BASE_ATOMS_MOST = 11
PIECE, MARGIN = 96, 5  # nucleotides minimised together, and beyond either end; chosen by timing, part of the result
ITERATIONS = (4, 3)  # of the two passes over everything
CONVERGED = 1e-3  # of the sum of squares of a piece, gained by one iteration
OUTLIER = 4.0  # standard deviations
# What the two passes leave is mended nucleotide by nucleotide, beside neighbours that are in place by then.
SETTLED = 0.1  # angstrom: what moved farther in the last iteration gets more of them
LOOSE = 0.5  # standard deviations of O3'-P: so is this
# The link between nucleotides takes up what the path strains; held tighter than its spread in crystals, it leaves that
# to the many angles, of which none is then far off.
LINK, LINK_SHARE = 0, 0.4
MEND_REACH, MEND_ITERATIONS, MEND_CONVERGED, MOST_MENDS = 6, 40, 1e-4, 6
LOOSE_MENDS = 3  # the first only with more iterations


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
    """(8, 8) angstrom, by ``ATOM_CLASS``."""
    contact_deviation: float


@dataclass(frozen=True)
class Obstacles:
    """Heavy atoms of proteins that a backbone keeps clear of, listed for every nucleotide near them."""

    first: np.ndarray
    """(2n + 1,) int32: those of nucleotide k are first[k] .. first[k + 1] - 1."""
    atom_class: np.ndarray
    """(m,) of ``ATOM_CLASS``."""
    position: np.ndarray
    """(m, 3) angstrom."""


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
    contact, plain = np.zeros((8, 8)), [1, 2, 3, 4, 5, 1, 1, 1]  # the sugar's own carbons are carbons first
    for key, distance in data["contacts"].items():
        first, second = (ATOM_CLASS[element] for element in key.split())
        if max(first, second) <= ATOM_CLASS["M"]:
            alike = np.equal.outer(plain, [first]) & np.equal.outer([second], plain)
            contact[alike | alike.T] = distance
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


def place_bases(base_index: np.ndarray, origin: np.ndarray, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Base atoms (m, 11, 3) in kernel order and C1' targets (m, 3) of nucleotides with given base frames.

    Args:
        base_index: (m,) 0..3 for A, C, G, T.
        origin: (m, 3) base origins.
        frame: (m, 3, 3) base frames, each in its own strand's sense.
    """
    layout = base_layout()
    atoms = origin[:, None] + layout.position[base_index] @ np.swapaxes(frame, 1, 2)
    return atoms, origin + (frame @ layout.c1[base_index][:, :, None])[..., 0]


def close_backbone(
    base_index: np.ndarray, origin: np.ndarray, frame: np.ndarray, threads: int = 1, start: np.ndarray | None = None,
    obstacles: Obstacles | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Sugar-phosphate atoms of a duplex with fixed bases.

    Args:
        base_index: (2n,) 0..3 for A, C, G, T; strand I, then strand J, each 5' to 3'; nucleotide k pairs with 2n-1-k.
        origin: (2n, 3) base origins, angstrom.
        frame: (2n, 3, 3) base frames, each in its own strand's sense.
        threads: OpenMP threads; the result does not depend on it.
        start: (2n, 11, 3) positions to start from, angstrom; default ``foretold_conformation``.
        obstacles: atoms of proteins to keep clear of; default none.

    Returns:
        Position (2n, 11, 3) of the atoms ``SUGAR`` (phosphates of the two 5' ends carry no meaning), and the
        Levenberg-Marquardt iterations (2n,) that each nucleotide took in all passes.
    """
    n = len(base_index)
    bases, c1 = place_bases(base_index, origin, frame)
    ideal = placed_conformation(ideal_conformation(), base_index, origin, frame)
    foretold = foretold_conformation(base_index, origin, frame) if start is None else start
    sugar, total = foretold, np.zeros(n, dtype=np.int64)
    model = _model(base_index, bases, c1, obstacles)

    def run(pieces: np.ndarray, margin: int, most_iterations: int, converged: float) -> np.ndarray:
        nonlocal sugar, total
        sugar, iterations, last_step = _minimise(model, sugar, pieces, margin, most_iterations, converged, threads)
        total += iterations
        return last_step

    # The second pass shifts the borders of the pieces to where the first pass had their middles, and sees the other
    # strand's mended backbone.
    for number, most_iterations in enumerate(ITERATIONS):
        last_step = run(_even_pieces(n, PIECE // (1 + number % 2)), MARGIN, most_iterations, CONVERGED)
    # Far from its minimum a sugar may turn inside out, a phosphate too, or a link be caught in a strained fold: when
    # more iterations do not help, it starts anew, from either conformation in turn.
    moving = last_step > SETTLED
    if moving.any():
        run(_pieces_around(moving), 0, MEND_ITERATIONS, MEND_CONVERGED)
    for number in range(MOST_MENDS):
        wrong, loose = _faults(base_index, sugar, bases)
        if not (wrong.any() or (number < LOOSE_MENDS and loose.any())):
            break
        anew = wrong | loose if number else wrong.copy()
        anew[:-1] |= wrong[1:]  # the window of a nucleotide reaches back to the one before it
        sugar = np.where(anew[:, None, None], ideal if number % 2 else foretold, sugar)
        run(_pieces_around(anew | loose), 0, MEND_ITERATIONS, MEND_CONVERGED)
    return np.ascontiguousarray(sugar), total


def _even_pieces(n: int, first_length: int) -> np.ndarray:
    """(2, p) first and last nucleotide, both included, of pieces of both strands; each strand's first may differ."""
    starts = [np.concatenate([[0], np.arange(first_length, n // 2, PIECE)]) + strand * (n // 2) for strand in (0, 1)]
    ends = [np.concatenate([part[1:], [(strand + 1) * (n // 2)]]) - 1 for strand, part in enumerate(starts)]
    return np.stack([np.concatenate(starts), np.concatenate(ends)])


def _pieces_around(marked: np.ndarray) -> np.ndarray:
    """(2, p) first and last nucleotide of pieces that reach ``MEND_REACH`` around marked ones, within their strand."""
    n, found = len(marked) // 2, []
    for strand in (0, 1):
        near = np.flatnonzero(marked[strand * n : (strand + 1) * n])
        groups = np.split(near, np.flatnonzero(np.diff(near) > 3 * MEND_REACH) + 1) if len(near) else []
        found += [(strand * n + max(group[0] - MEND_REACH, 0), strand * n + min(group[-1] + MEND_REACH, n - 1))
                  for group in groups]
    return np.array(found).T


def _faults(base_index: np.ndarray, sugar: np.ndarray, bases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(2n,) nucleotides that are outliers or have a wrong centre, and those whose link to the one before is loose."""
    geometry = measure_backbone(base_index, sugar, bases, torsions=False)
    wrong = wrong_chirality(sugar, bases).any(axis=1)
    for z in (geometry.bond_z, geometry.angle_z):
        wrong |= (np.abs(z) > OUTLIER).any(axis=1)  # a comparison with NaN is false
    return wrong, np.abs(geometry.bond_z[:, 0]) > LOOSE


def _model(base_index: np.ndarray, bases: np.ndarray, c1: np.ndarray, obstacles: Obstacles | None) -> Handle:
    """The kernel's tables, with the duplex (2n nucleotides) that its backbone is closed over."""
    kernel, table, layout = _kernels.backbone_closure, restraints(), base_layout()
    handle = Handle(kernel.create_backbone(), kernel.free_backbone, "model of a backbone")
    number = handle.number
    kernel.set_atoms(number, base_size=layout.size, base_class=layout.atom_class.T, sugar_class=SUGAR_CLASS,
                     excluded_own=layout.excluded_own.transpose(2, 1, 0), excluded_next=layout.excluded_next.T)
    kernel.set_terms(
        number, atom=table.bond_atoms.T + 1, target=table.bond_target,
        sigma=np.where(np.arange(len(table.bond_atoms)) == LINK, LINK_SHARE, 1.0) * table.bond_deviation)
    kernel.set_terms(number, atom=table.angle_atoms.T + 1, target=table.angle_target, sigma=table.angle_deviation)
    kernel.set_terms(number, atom=table.torsion_atoms.T + 1, target=np.repeat(table.torsion_target[:, None], 4, axis=1),
                     sigma=table.torsion_deviation)
    kernel.set_tether(number, sigma=table.c1_tether)
    kernel.set_contacts(number, distance=table.contact_distance, sigma=table.contact_deviation)
    kernel.set_duplex(number, base_type=base_index + 1, base_position=bases.transpose(2, 1, 0), c1_position=c1.T)
    if obstacles is None:  # the kernel takes no empty arrays: one that no nucleotide has stands for none
        none = np.zeros(len(base_index) + 1, dtype=np.int32)
        obstacles = Obstacles(none, np.ones(1, dtype=np.int32), np.zeros((1, 3)))
    kernel.set_obstacles(number, first=obstacles.first, atom_class=obstacles.atom_class, position=obstacles.position.T)
    return handle


def _minimise(
    model: Handle, sugar: np.ndarray, pieces: np.ndarray, margin: int, most_iterations: int, converged: float,
    threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (2n, 11, 3), iterations (2n,) and last steps (2n,) of one pass of the kernel over ``pieces`` (2, p)."""
    position = np.array(sugar.transpose(2, 1, 0), order="F")
    iterations, last_step, failed = _kernels.backbone_closure.close_pieces(
        model.number, piece_first=pieces[0] + 1, piece_last=pieces[1] + 1, margin=margin,
        most_iterations=most_iterations, converged_fraction=converged, n_threads=threads, position=position)
    if failed:
        raise ValueError(f"{failed} nucleotides have more neighbours than a duplex can have: base pairs overlap")
    return position.transpose(2, 1, 0), iterations, last_step


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


def measure_backbone(
    base_index: np.ndarray, sugar: np.ndarray, bases: np.ndarray, torsions: bool = True
) -> BackboneGeometry:
    """Geometry of a duplex's backbone against the restraint tables.

    Args:
        base_index: (2n,) as in ``close_backbone``.
        sugar: (2n, 11, 3) atoms ``SUGAR``.
        bases: (2n, 11, 3) base atoms in kernel order; only the first three are used.
        torsions: leave them out (empty) for speed when false.
    """
    table, n = restraints(), len(base_index)
    window = np.full((17, 3, n), np.nan)  # nucleotides last: every operation runs along memory
    window[:3, :, 1:] = sugar[:-1, 8:].transpose(1, 2, 0)
    window[3:14] = sugar.transpose(1, 2, 0)
    window[14:] = bases[:, :3].transpose(1, 2, 0)
    for first in (0, n // 2):
        window[:6, :, first] = np.nan

    def product(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]

    bond, angle = np.empty((len(table.bond_atoms), n)), np.empty((len(table.angle_atoms), n))
    for k, (a, b) in enumerate(table.bond_atoms):
        apart = window[a] - window[b]
        bond[k] = np.sqrt(product(apart, apart))
    for k, (a, b, c) in enumerate(table.angle_atoms):
        u, v = window[a] - window[b], window[c] - window[b]
        along = product(u, v)
        angle[k] = np.arctan2(np.sqrt(np.maximum(product(u, u) * product(v, v) - along**2, 0.0)), along)
    torsion = np.empty((0, n))
    if torsions:
        torsion = np.array([measure_torsion(*(window[a].T for a in atoms)) for atoms in table.torsion_atoms])
    return BackboneGeometry(
        bond.T, np.degrees(angle).T, np.degrees(torsion).T,
        ((bond - table.bond_target[:, base_index]) / table.bond_deviation[:, None]).T,
        ((angle - table.angle_target[:, base_index]) / table.angle_deviation[:, None]).T,
    )  # fmt: skip


def wrong_chirality(sugar: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """(2n, 3) true where C1', C3' or C4' is not the D-deoxyribose centre of the beta anomer.

    The sign is that of the triple product of the three heavy neighbours in a fixed order.
    """
    at = {name: sugar[:, k] for k, name in enumerate(SUGAR)}

    def volume(centre: str, *others: np.ndarray) -> np.ndarray:
        a, b, c = ((point - at[centre]).T for point in others)
        return (a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2])
                + a[2] * (b[0] * c[1] - b[1] * c[0]))  # fmt: skip

    return np.stack([
        volume("C1'", at["O4'"], at["C2'"], bases[:, 0]) < 0,
        volume("C3'", at["C4'"], at["C2'"], at["O3'"]) < 0,
        volume("C4'", at["O4'"], at["C3'"], at["C5'"]) > 0,
    ], axis=1)  # fmt: skip


