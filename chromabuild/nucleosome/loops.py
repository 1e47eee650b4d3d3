"""Backbone where the template has none: loops of another length, longer ends."""

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.nucleosome.peptide import (
    C_N,
    C_N_CA,
    CA_C,
    CA_C_N,
    N_CA,
    N_CA_C,
    Atoms,
    beta_carbon,
    carbonyl_oxygen,
    draw_phi_psi,
    place,
    rotate,
)

CANDIDATES = 600
TEMPLATE_SPREAD = 30.0  # degree
SWEEPS = 80
ENOUGH = 150  # closed loops, of CANDIDATES, to choose from
CLOSED = 0.03  # angstrom, rms of N, CA, C at the far end of a loop
BACKBONE_CONTACT = 3.2  # angstrom between heavy atoms; nearer counts squared
END_TRIALS, END_ATTEMPTS = 100, 24
COMFORT = 0.05  # angstrom^2 of overlap a residue that is not worth another attempt
REACH_PENALTY = 0.004  # angstrom^2 and angstrom from the core's centre: an end stays near its particle


def close_loop(letters: str, before: Atoms, after: Atoms, torsions: np.ndarray, obstacles: np.ndarray,
               random: np.random.Generator, count: int = CANDIDATES) -> list[Atoms] | None:
    """N, CA, C, O of residues ``letters`` between residues ``before`` and ``after``, which stay.

    Many chains are drawn and closed by cyclic coordinate descent (Canutescu & Dunbrack, Protein Sci. 12:963, 2003); the
    one that is freest of obstacles is taken; None when none closes.

    Args:
        letters: n residues.
        before: the residue before; its O is placed anew.
        after: the residue after.
        torsions: (n + 2, 2) phi and psi of ``before``, the loop and ``after`` in the template, degree; draws are near
            these, and from the Ramachandran regions where they are nan.
        obstacles: (m, 3) what to avoid.
        random: where the draws come from.
        count: how many chains are drawn.
    """
    n = len(letters)
    chain = [np.repeat(before[a][None], count, axis=0) for a in ("N", "CA", "C")]
    known = ~np.isnan(torsions)
    wobble = np.where(known, torsions, 0.0)[None] + random.normal(0.0, TEMPLATE_SPREAD, (count, n + 2, 2))
    psi = wobble[:, 0, 1] if known[0, 1] else draw_phi_psi(random, "A", count)[1]
    for k, letter in enumerate([*letters, "A"], start=1):
        phi, next_psi = draw_phi_psi(random, letter, count)
        phi = wobble[:, k, 0] if known[k, 0] else phi
        next_psi = wobble[:, k, 1] if known[k, 1] else next_psi
        chain.append(place(*chain[-3:], C_N, CA_C_N, psi))
        chain.append(place(*chain[-3:], N_CA, C_N_CA, 180.0))
        chain.append(place(*chain[-3:], CA_C, N_CA_C, phi))
        psi = next_psi
    points = np.stack(chain, axis=1)  # (count, 3 (n + 2), 3)
    target = np.array([after[a] for a in ("N", "CA", "C")])
    # Bonds that may turn: psi of the residue before, phi and psi of the loop, phi of the residue after.
    bonds = [(i, i + 1) for k in range(n + 2) for i in (3 * k, 3 * k + 1)][1:-1]
    proline = {k + 1 for k, letter in enumerate(letters) if letter == "P"}
    for _ in range(SWEEPS):
        for i, j in bonds:
            if i % 3 == 0 and i // 3 in proline:
                continue
            origin, axis = points[:, j], points[:, j] - points[:, i]
            axis = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
            # The turn that brings N, CA, C nearest to where they belong has this tangent.
            arm, wanted = points[:, -3:] - origin[:, None], target[None] - origin[:, None]
            product = np.swapaxes(arm, 1, 2) @ wanted  # (count, 3, 3)
            twist = np.stack([product[:, 1, 2] - product[:, 2, 1], product[:, 2, 0] - product[:, 0, 2],
                              product[:, 0, 1] - product[:, 1, 0]], axis=1)
            across = np.sum(axis * twist, axis=1)
            along = np.trace(product, axis1=1, axis2=2) - np.einsum("ci,cij,cj->c", axis, product, axis)
            points[:, j + 1:] = rotate(points[:, j + 1:], origin, axis, np.degrees(np.arctan2(across, along)))
        gap = np.sqrt(np.mean(np.sum((points[:, -3:] - target) ** 2, axis=-1), axis=1))
        if np.sum(gap < CLOSED) >= ENOUGH * count / CANDIDATES:
            break
    closed = np.flatnonzero(gap < CLOSED)
    if not len(closed):
        return None
    points = points[closed]
    points[:, -3:] = target
    oxygen = [carbonyl_oxygen(points[:, 3 * k + 1], points[:, 3 * k + 2], points[:, 3 * k + 3]) for k in range(n + 1)]
    beta = [beta_carbon(*(points[:, 3 * k + i] for i in range(3)))
            for k, letter in enumerate(letters, start=1) if letter != "G"]
    scored = np.concatenate([points[:, 3:-3], np.stack(oxygen + beta, axis=1)], axis=1)
    best = int(np.argmin(_overlap(scored, cKDTree(obstacles)) + _self_overlap(points)))
    before["O"] = oxygen[0][best]
    return [{"N": points[best, 3 * k], "CA": points[best, 3 * k + 1], "C": points[best, 3 * k + 2],
             "O": oxygen[k][best]} for k in range(1, n + 1)]


def _overlap(points: np.ndarray, obstacles: cKDTree) -> np.ndarray:
    """(s,) angstrom^2 by which points (s, k, 3) come too near to obstacles."""
    distance = obstacles.query(points, distance_upper_bound=BACKBONE_CONTACT)[0]
    return np.sum(np.clip(BACKBONE_CONTACT - distance, 0.0, None) ** 2, axis=1)


def _self_overlap(points: np.ndarray) -> np.ndarray:
    """(s,) angstrom^2 of overlap between residues two or more apart in backbones N, CA, C, ... (s, 3 k, 3)."""
    residue = np.arange(points.shape[1]) // 3
    first, second = np.nonzero(residue[:, None] + 2 <= residue[None])
    distance = np.linalg.norm(points[:, first] - points[:, second], axis=-1)
    return np.sum(np.clip(BACKBONE_CONTACT - distance, 0.0, None) ** 2, axis=1)


def extend_end(letters: str, last: Atoms, last_letter: str, forward: bool, obstacles: np.ndarray,
               random: np.random.Generator) -> tuple[list[Atoms], Atoms, float]:
    """Backbones of residues beyond the end of a chain, from the end outward; the best of several attempts.

    Returns the residues, the present end (with its O placed anew when the chain grows forward) and the overlap per
    residue, angstrom^2.

    Args:
        letters: the residues in the order in which they are added.
        last: the present end.
        last_letter: the residue there.
        forward: towards the C terminus.
        obstacles: (m, 3) what to avoid, without the present end.
        random: where the draws come from.
    """
    best, least = None, np.inf
    for _ in range(END_ATTEMPTS):
        chain, overlap = _grow(letters, last, last_letter, forward, obstacles, random)
        if overlap < least:
            best, least = chain, overlap
        if least < COMFORT * len(letters):
            break
    return best[1:], best[0], least / len(letters)


def _grow(letters: str, last: Atoms, last_letter: str, forward: bool, obstacles: np.ndarray,
          random: np.random.Generator) -> tuple[list[Atoms], float]:
    """The present end and the residues beyond it, and their overlap; each residue the best of many draws."""
    chain, seen, total = [dict(last)], obstacles, 0.0
    for present_letter, letter in zip(last_letter + letters, letters, strict=False):
        # Forward: psi of the present residue and phi of the new one; backward: the other way round.
        phi = draw_phi_psi(random, letter if forward else present_letter, END_TRIALS)[0]
        psi = draw_phi_psi(random, present_letter if forward else letter, END_TRIALS)[1]
        present = chain[-1]
        names = ("N", "CA", "C") if forward else ("C", "CA", "N")
        row = [np.repeat(present[a][None], END_TRIALS, axis=0) for a in names]
        if forward:
            row.append(place(*row[-3:], C_N, CA_C_N, psi))
            row.append(place(*row[-3:], N_CA, C_N_CA, 180.0))
            row.append(place(*row[-3:], CA_C, N_CA_C, phi))
            n, ca, c = row[3:]
            # Its own O: opposite to where the next N would be; placed anew when the chain goes on.
            oxygen = carbonyl_oxygen(ca, c, place(n, ca, c, C_N, CA_C_N, 135.0))
        else:
            row.append(place(*row[-3:], C_N, C_N_CA, phi))
            row.append(place(*row[-3:], CA_C, CA_C_N, 180.0))
            row.append(place(*row[-3:], N_CA, N_CA_C, psi))
            c, ca, n = row[3:]
            oxygen = carbonyl_oxygen(ca, c, row[2])
        points = np.stack([n, ca, c, oxygen] + ([] if letter == "G" else [beta_carbon(n, ca, c)]), axis=1)
        # Atoms bonded to the present residue are no obstacles to it: C and N are its neighbours.
        overlap = _overlap(points[:, [k for k in range(points.shape[1]) if k != (0 if forward else 2)]], cKDTree(seen))
        best = int(np.argmin(overlap + REACH_PENALTY * np.linalg.norm(ca, axis=-1)))
        total += float(overlap[best])
        if forward:
            present["O"] = carbonyl_oxygen(row[1][best], row[2][best], n[best])
        seen = np.concatenate([seen, list(present.values())])
        chain.append({"N": n[best], "CA": ca[best], "C": c[best], "O": oxygen[best]})
    return chain, total
