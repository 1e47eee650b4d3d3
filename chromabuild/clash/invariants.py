"""What a correction of clashes must keep, measured on the structure before and after it."""

from dataclasses import dataclass

import numpy as np

from chromabuild.clash.backbone import bonded_paths
from chromabuild.clash.report import LIST_LIMIT
from chromabuild.molecule.geometry import cross
from chromabuild.sterics import reference
from chromabuild.sterics.atoms import BASE, DNA_BACKBONE, HYDROGEN, SUGAR, Atoms, Widened
from chromabuild.sterics.audit import backbone_geometry, stereocentres
from chromabuild.sterics.cell_list import corners
from chromabuild.sterics.chains import NamePlaces


@dataclass(frozen=True)
class Course:
    """What a correction notes on its way."""

    move_count: np.ndarray
    """(n,) int: moves of each atom."""
    adjusted: np.ndarray
    """(n,) bool: atoms that a move has shifted other than by turning about a bond."""
    turn_change: np.ndarray
    """(2,): largest change of a bond (angstrom) and of an angle (degree) by a turn."""
    fatal_history: list[int]
    """Fatal pairs after each round."""


def invariants(course: Course, place: NamePlaces, before: Atoms, after: Atoms, found: tuple[dict, dict]) -> dict:
    """What a correction must keep, measured: name -> {holds, value, limit}; ``found`` before and after."""
    old, new = Widened(before.position), Widened(after.position)
    touched = course.move_count > 0
    # Bonds that only rigid turns have touched change by the rounding of their ends to float32 at each move.
    a, b = before.graph.bonds.T
    bent = course.adjusted
    rigid = (touched[a] | touched[b]) & ~bent[a] & ~bent[b]
    a, b = a[rigid], b[rigid]
    moves = int(course.move_count.max()) + 1
    rounding = float(np.sqrt(3) * np.spacing(np.float32(np.abs(corners(before.position)).max())) * moves)

    def lengths(position: Widened) -> np.ndarray:
        return np.linalg.norm(position[a] - position[b], axis=1)

    bond_change = float(np.abs(lengths(new) - lengths(old)).max(initial=0.0))
    centres = stereocentres(before, place)
    centres = centres[touched[centres].any(axis=1)]

    def volume(position: Widened) -> np.ndarray:
        u, v, w = (position[centres[:, k]] - position[centres[:, 0]] for k in (1, 2, 3))
        return (cross(u, v) * w).sum(axis=1)

    flipped = int((volume(old) * volume(new) <= 0).sum())
    c, n = place.peptide_bonds.T
    quads = np.stack([place("CA")[before.residue[c]], c, n, place("CA")[before.residue[n]]], axis=1)
    quads = quads[(quads >= 0).all(axis=1)]
    quads = quads[touched[quads].any(axis=1) & ~bent[quads].any(axis=1)]
    turn = reference.dihedrals(new, quads) - reference.dihedrals(old, quads)
    omega = float(np.abs((turn + 180.0) % 360.0 - 180.0).max(initial=0.0))
    omega_limit = float(np.degrees(4 * rounding / 1.3)) + 1e-6
    history = course.fatal_history
    rises = max((after_ - before_ for before_, after_ in zip(history, history[1:], strict=False)), default=0)
    bases = (before.part == BASE) & touched & (before.element != HYDROGEN)

    def newly(key: str, *names: str) -> int:
        """Entries after the correction that were not there before; of long lists, how many more there are."""
        if any(state[key]["count"] > LIST_LIMIT for state in found):
            return max(found[1][key]["count"] - found[0][key]["count"], 0)
        was, now = ({tuple(item[name] for name in names) for item in state[key]["items"]} for state in found)
        return len(now - was)

    def change_of_duplexes(key: str) -> float:
        was, now = ([d[key] for d in state["duplexes"]] for state in found)
        return float(np.abs(np.subtract(was, now)).max(initial=0.0)) if len(was) == len(now) else float("inf")

    checks = {
        "untouched_atoms_unchanged": (int((before.position[~touched] != after.position[~touched]).sum()), 0),
        "heavy_atoms_of_bases_moved": (int((before.position[bases] != after.position[bases]).any(axis=1).sum()), 0),
        "bond_change_of_turns": (float(course.turn_change[0]), 1e-6),
        "angle_change_of_turns": (float(course.turn_change[1]), 1e-6),
        "bond_change_of_turns_as_stored": (bond_change, max(rounding, 1e-6)),
        "backbone_z_of_phi_moves": (worst_backbone_z(course.adjusted, before, place, old, new), reference.MAX_Z),
        "chirality_flips": (flipped, 0),
        "omega_change_of_rigid_turns": (omega, omega_limit),
        "rise_of_fatal_pairs": (max(rises, 0), 0),
        "new_ring_piercings": (newly("ring_piercings", "ring", "bond_a", "bond_b"), 0),
        "new_threaded_strands": (newly("threaded_strands", "step", "bond_a", "bond_b"), 0),
        "change_of_base_pairs": (change_of_duplexes("base_pairs"), 0),
        "change_of_strand_turns": (change_of_duplexes("turns"), 0),
    }
    return {name: {"holds": bool(value <= limit), "value": value, "limit": limit}
            for name, (value, limit) in checks.items()}


def worst_backbone_z(adjusted: np.ndarray, atoms: Atoms, place: NamePlaces, old: Widened, new: Widened) -> float:
    """Largest |z| of the bonds and angles that re-adjustments of DNA touched and that did not start worse.

    Those of the backbone against its reference; others, which have none, against what they were.
    """
    moved = adjusted & np.isin(atoms.part, (DNA_BACKBONE, SUGAR))
    if not moved.any():
        return 0.0
    residues = np.zeros(len(atoms.residue_name) + 2, dtype=bool)
    changed = np.unique(atoms.residue[moved]) + 1
    for k in (-1, 0, 1):
        residues[changed + k] = True
    tables = [backbone_geometry(atoms.at(p.array), place, residues[1:-1]) for p in (old, new)]
    group = np.flatnonzero(moved)
    a, b = atoms.graph.bonds[moved[atoms.graph.bonds].any(axis=1)].T
    worst = 0.0
    for items, first, deviation, measure in (
            (np.stack([a, b], axis=1), 0, reference.OTHER_BOND_DEVIATION,
             lambda position, k: np.linalg.norm(position[k[:, 0]] - position[k[:, 1]], axis=1)),
            (bonded_paths(atoms.graph, group, 3), 3, reference.OTHER_ANGLE_DEVIATION, reference.angles)):
        known = tables[0][first]
        touched = moved[known].any(axis=1)
        before, after = (np.abs(table[first + 2][touched]) for table in tables)
        worst = max(worst, float(after[after > before].max(initial=0.0)))
        names = {row if row[0] < row[-1] else row[::-1] for row in map(tuple, known[touched].tolist())}
        other = np.array([row for row in map(tuple, items.tolist())
                          if (row if row[0] < row[-1] else row[::-1]) not in names],
                         dtype=np.int64).reshape(-1, items.shape[1])
        change = np.abs(measure(new, other) - measure(old, other)) / deviation
        worst = max(worst, float(change.max(initial=0.0)))
    return worst
