"""A fibre whose tails run through everything: what the clash correction has to undo.

Nucleosomes with 177 base pairs stand in two rows of stacks, about as near as their cores and linkers allow: without
tails no two of them are in severe contact, since no torsion mends that. Then every histone tail is pulled straight
(phi -120, psi 130 degrees), up to 130 angstrom long: through the octamers, the wrapped DNA and the linkers of its
neighbours.
"""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from chromabuild.clash.tails import find_tails, growth_unit
from chromabuild.molecule.solute import Solute
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.reference import dihedrals
from chromabuild.sterics.scene import Scene
from support.spread_nucleosomes import one_nucleosome

STRAIGHT = {"phi": -120.0, "psi": 130.0}
# Angstrom from each to the next but one, angstrom between the rows, degree of turn of the two rows.
RISE, SIDE, TURN = 62.0, 94.0, (120.0, 300.0)


def stacked_nucleosomes(copies: int, side: float = SIDE, turn: tuple[float, float] = TURN) -> Solute:
    """Copies of the nucleosome with 177 bp in two rows of stacks, each row turned alike about its axis."""
    unit = one_nucleosome()
    axis = np.linalg.svd(unit.position[::50] - unit.position.mean(axis=0))[2]  # rows: the flat one last
    axis[0] *= np.linalg.det(axis)
    flat = unit.position @ axis.T
    places = [np.array([side * (k % 2), 0.0, RISE * (k // 2) + RISE / 2 * (k % 2)]) for k in range(copies)]
    turns = [Rotation.from_euler("z", turn[k % 2], degrees=True).as_matrix() for k in range(copies)]
    residues, segments = unit.n_residues, len(unit.segment_name)
    first = unit.molecule_first_residue[None, :-1] + residues * np.arange(copies)[:, None]
    return Solute(
        np.concatenate([flat @ t.T + p for p, t in zip(places, turns, strict=True)]).astype(np.float32),
        np.tile(unit.residue_template, copies), np.tile(unit.residue_number, copies),
        np.concatenate([unit.residue_segment + segments * k for k in range(copies)]).astype(np.uint16),
        [f"{k:02d}{name[-2:]}" for k in range(copies) for name in unit.segment_name], unit.segment_chain * copies,
        np.append(first.ravel(), residues * copies), unit.molecule_name * copies,
        np.concatenate([np.where(unit.molecule_nucleosome < 0, -1, k) for k in range(copies)]).astype(np.int32))


def pulled_straight(solute: Solute) -> Solute:
    """The same with every histone tail stretched out from its root."""
    scene = Scene(Atoms.from_solute(solute), 0.9, 1)
    for tail in find_tails(scene, solute.molecule_name, solute.molecule_first_residue, solute.residue_number):
        for residue in tail.residues:
            unit = growth_unit(scene, tail, residue, [])
            for torsion, kind in zip(unit.torsions, unit.kinds, strict=True):
                if scene.atoms.residue_name[residue].endswith("PRO") and kind == "phi":
                    continue  # in a ring
                turn = STRAIGHT[kind] - dihedrals(scene.position, np.array([torsion.quad]))[0]
                scene.turn(scene.position, torsion, float(np.radians(turn)))
    return replace(solute, position=scene.position.astype(np.float32))
