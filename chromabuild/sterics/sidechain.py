"""Side chains: turn chi1, then chi1 and chi2, then all, to staggered values; turn groups of hydrogens."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chromabuild.sterics import reference
from chromabuild.sterics.scene import Scene, Score
from chromabuild.sterics.torsions import Torsion, targets


@dataclass(frozen=True)
class Proposal:
    """A move that makes things better."""

    kind: str
    moved: np.ndarray
    position: np.ndarray
    before: Score
    after: Score
    detail: dict


TORSION_CHANGE_COST = 0.02  # angstrom^2 a turned torsion: prefers the smaller change among equals
ROTAMER_COST = 0.02  # angstrom^2 a unit of -ln p
# -ln of how rare a well is beside the commonest, at 60, 180 and -60 degrees: over all side chains chi1 is there about
# 15, 30 and 55 % of the time (Dunbrack and Cohen 1997), the torsions beyond mostly at 180.
CHI1_PRIOR, CHI_PRIOR = (1.3, 0.6, 0.0), (1.5, 0.0, 1.5)
FINE, COARSE, SINGLE = (-20.0, -10.0, 0.0, 10.0, 20.0), (-20.0, 0.0, 20.0), (0.0,)


def side_chain_stages(chi: list[Torsion], rotors: list[Torsion]) -> list[tuple[list[Torsion], list[tuple[float, ...]]]]:
    """Torsions and spreads of each stage, cheapest first."""
    hydroxyl = [r for r in rotors if r.period == 360.0]
    stages = []
    if chi:
        stages.append((chi[:1] + (hydroxyl if len(chi) == 1 else []), [FINE] + [SINGLE] * len(hydroxyl)))
    if len(chi) >= 2:
        stages.append((chi[:2] + hydroxyl, [COARSE, COARSE] + [SINGLE] * len(hydroxyl)))
    if len(chi) == 3:
        stages.append((chi, [COARSE, COARSE, COARSE]))
    if len(chi) >= 4:
        stages.append((chi[:4], [COARSE, COARSE, SINGLE, SINGLE]))
    if len(chi) >= 5:  # beyond the side chain of the parent stands what the modification adds
        stages.append((chi, [COARSE] + [SINGLE] * (len(chi) - 1)))
    return [(torsions, spreads[:len(torsions)]) for torsions, spreads in stages]


def trial_angles(scene: Scene, torsions: list[Torsion], spreads: list[tuple[float, ...]]) -> np.ndarray:
    """(s, t) angles in radian by which to turn; the first trial leaves everything as it is."""
    now = reference.dihedrals(scene.position, np.array([t.quad for t in torsions]))
    options = []
    for torsion, spread, value in zip(torsions, spreads, now, strict=True):
        change = (targets(torsion, spread) - value + 180.0) % 360.0 - 180.0
        options.append(np.concatenate([[0.0], change]))
    return np.radians(np.stack(np.meshgrid(*options, indexing="ij"), axis=-1).reshape(-1, len(torsions)))


def propose_rotation(scene: Scene, stages: Iterable[tuple[list[Torsion], np.ndarray]], kind: str) -> Proposal | None:
    """The best trial of the first stage that leaves nothing severe, else the best of all; None when none improves.

    The first trial of each stage must be the present state. Stages turn different atoms, so they are compared by what
    they gain, not by what they count.
    """
    best, best_gain = None, (0, 0)
    for torsions, angle in stages:
        fatal, severe, energy = scene.rotation_scores(torsions, angle)
        now = reference.dihedrals(scene.position, np.array([t.quad for t in torsions]))
        cost = energy + rotamer_cost(torsions, now, angle)
        k = int(np.lexsort((cost, severe, fatal))[0])
        before, after = (Score(int(fatal[j]), int(severe[j]), float(energy[j])) for j in (0, k))
        gain = (after.fatal - before.fatal, after.severe - before.severe)
        if gain < best_gain:
            best, best_gain = (torsions, angle[k], before, after), gain
        if after.clean:
            break
    if best is None:
        return None
    torsions, angle, before, after = best
    moved = np.array(sorted({a for t, value in zip(torsions, angle, strict=True) if value != 0 for a in t.turned}))
    old = scene.position[moved].copy()
    for torsion, value in zip(torsions, angle, strict=True):
        if value != 0:
            scene.turn(scene.position, torsion, float(value))
    new = scene.position[moved].copy()
    scene.position[moved] = old
    return Proposal(kind, moved, new, before, after, {"torsions": turned_names(scene, torsions, angle)})


def turned_names(scene: Scene, torsions: list[Torsion], angle: np.ndarray) -> dict[str, float]:
    """Atom names of each torsion that is turned, and by how many degrees."""
    return {"-".join(map(scene.atoms.name_of, t.quad)): round(float(np.degrees(value)), 2)
            for t, value in zip(torsions, angle, strict=True) if value != 0}


def rotamer_cost(torsions: list[Torsion], now: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """(s,) cost of (s, t) turns (radian) away from dihedrals ``now`` (degree): less change and likelier rotamers first.

    It decides among states that are equally free of overlaps.
    """
    cost = TORSION_CHANGE_COST * (angle != 0).sum(axis=1)
    value = now + np.degrees(angle)
    for k, torsion in enumerate(torsions):
        if torsion.planar or torsion.period < 360.0:
            continue
        well = np.round(((value[:, k] - 60.0) % 360.0) / 120.0).astype(int) % 3  # 60, 180, -60
        cost = cost + ROTAMER_COST * np.array(CHI1_PRIOR if k == 0 else CHI_PRIOR)[well]
    return cost


def propose_side_chain(scene: Scene, chi: list[Torsion], rotors: list[Torsion]) -> Proposal | None:
    """Turn a side chain as little as needed."""
    stages = ((torsions, trial_angles(scene, torsions, spreads))
              for torsions, spreads in side_chain_stages(chi, rotors))
    return propose_rotation(scene, stages, "chi")


def propose_rotor(scene: Scene, rotor: Torsion) -> Proposal | None:
    """Turn a methyl, ammonium or hydroxyl group."""
    step = 20.0 if rotor.period < 360.0 else 30.0
    angle = np.radians(np.arange(0.0, rotor.period, step))[:, None]
    return propose_rotation(scene, [([rotor], angle)], "rotor")
