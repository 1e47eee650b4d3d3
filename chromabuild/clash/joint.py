"""Groups that block each other, solved together: every group has some states, one of each is chosen.

A side chain that is free in no rotamer while its neighbour stays may be free once that one turns too. States are the
rotamers of side chains and the re-closed conformers of phosphates; what states cost alone and in pairs is computed
once. Dead-end elimination (Goldstein 1994) then strikes out the states that cannot be part of the best combination,
and a depth-first search with a lower bound finds it among the rest. The result is the exact minimum.
"""

from dataclasses import dataclass

import numpy as np

from chromabuild import _kernels
from chromabuild.clash.backbone import link_states
from chromabuild.sterics import reference
from chromabuild.sterics.scene import Scene, Score, Surroundings
from chromabuild.sterics.sidechain import Proposal, rotamer_cost, turned_names
from chromabuild.sterics.torsions import Torsion, targets

MAX_SITES = 6
MAX_STATES = 60  # of a site, the cheapest ones alone
FATAL_COST, SEVERE_COST = 1e9, 1e5  # angstrom^2: no overlap energy of a site comes near the price of one pair


@dataclass
class Site:
    """A group of atoms and the states that it can be in; the first is the present one."""

    moved: np.ndarray
    state: np.ndarray
    """(s, m, 3) positions."""
    cost: np.ndarray
    """(s,) beside everything that belongs to no site."""
    details: list[dict]


def propose_joint(scene: Scene, chi: list[tuple[list[Torsion], list[Torsion]]],
                  links: list[tuple[int, int]]) -> Proposal | None:
    """The best combination of side-chain and phosphate states when it is better than the present one.

    ``chi`` holds chi torsions and hydrogen rotors of each side chain, nearest first; ``links`` pairs of consecutive
    nucleotides. At most MAX_SITES take part.
    """
    torsions = [t + [r for r in rotors if r.period == 360.0] for t, rotors in chi]
    groups = [np.array(sorted({a for t in ts for a in t.turned})) for ts in torsions]
    conformers = []
    for left, right in links:
        found = link_states(scene, left, right)
        if found is not None and not any(np.isin(found[0], other[0]).any() for other in conformers):
            conformers.append(found)
    room = MAX_SITES - len(conformers)
    torsions, groups = torsions[:room], groups[:room]
    if len(groups) + len(conformers) < 2:
        return None
    mobile = np.concatenate(groups + [c[0] for c in conformers])
    absent = np.zeros(scene.atoms.n_atoms, dtype=bool)
    absent[mobile] = True
    sites = [side_chain_site(scene, t, g, absent) for t, g in zip(torsions, groups, strict=True)]
    sites += [link_site(scene, *c, absent) for c in conformers]
    pair_cost = {(i, j): pair_costs(scene, sites[i], sites[j])
                 for i in range(len(sites)) for j in range(i + 1, len(sites))}
    choice, cost = best_combination([s.cost for s in sites], pair_cost)
    present = sum(s.cost[0] for s in sites) + sum(c[0, 0] for c in pair_cost.values())
    before, after = score_of(present), score_of(cost)
    if not after.better_than(before):
        return None
    changed = [(s, k) for s, k in zip(sites, choice, strict=True) if k != 0]
    moved = np.concatenate([s.moved for s, _ in changed])
    order = np.argsort(moved)
    position = np.concatenate([s.state[k] for s, k in changed])[order]
    detail: dict = {}
    for site, k in changed:
        for key, value in site.details[k].items():
            detail[key] = {**detail[key], **value} if isinstance(value, dict) and key in detail else value
    return Proposal("joint", moved[order], position, before, after, detail)


def score_of(cost: float) -> Score:
    """The counts behind a cost."""
    fatal, rest = divmod(cost, FATAL_COST)
    severe, energy = divmod(rest, SEVERE_COST)
    return Score(int(fatal), int(severe), float(energy))


def side_chain_site(scene: Scene, torsions: list[Torsion], moved: np.ndarray, absent: np.ndarray) -> Site:
    """The staggered states of a side chain."""
    now = reference.dihedrals(scene.position, np.array([t.quad for t in torsions]))
    options = [np.concatenate([[0.0], (targets(t, (0.0,)) - value + 180.0) % 360.0 - 180.0])
               for t, value in zip(torsions, now, strict=True)]
    angle = np.radians(np.stack(np.meshgrid(*options, indexing="ij"), axis=-1).reshape(-1, len(torsions)))
    surroundings = scene.rotation_surroundings(torsions, moved, absent)
    fatal, severe, energy = scene.rotation_scores(torsions, angle, surroundings, moved)
    cost = FATAL_COST * fatal + SEVERE_COST * severe + energy + rotamer_cost(torsions, now, angle)
    kept = np.concatenate([[0], 1 + np.argsort(cost[1:], kind="stable")[:MAX_STATES]])
    state = scene.rotated_states(torsions, angle[kept], moved)
    label = scene.atoms.residue_label[scene.atoms.residue[moved[0]]]
    details = [{"torsions": {f"{label}:{name}": value
                             for name, value in turned_names(scene, torsions, angle[k]).items()}} for k in kept]
    return Site(moved, state, cost[kept], details)


def link_site(scene: Scene, moved: np.ndarray, state: list[np.ndarray], phi: list[float], absent: np.ndarray) -> Site:
    """The present and the re-closed conformers of a phosphate."""
    state = [scene.position[moved], *state]
    surroundings = without(scene.group_surroundings(moved, 3.0), absent)
    scores = [scene.group_score(position, surroundings) for position in state]
    cost = np.array([FATAL_COST * s.fatal + SEVERE_COST * s.severe + s.energy for s in scores])
    return Site(moved, np.array(state), cost, [{}, *({"phi_start": value} for value in phi)])


def without(surroundings: Surroundings, absent: np.ndarray) -> Surroundings:
    """Surroundings less the atoms that a mask marks."""
    keep = ~absent[surroundings.around]
    return Surroundings(surroundings.around[keep], surroundings.around_position[keep], surroundings.contact[keep],
                        surroundings.severe[keep], surroundings.inner, surroundings.inner_contact,
                        surroundings.inner_severe)


def pair_costs(scene: Scene, one: Site, other: Site) -> np.ndarray:
    """(s, t) cost of every state of one site beside every state of another."""
    contact, severe = scene.contact_distances(other.moved[:, None], one.moved[None])
    pairs = np.stack(np.broadcast_arrays(other.moved[:, None], one.moved[None]), axis=-1).reshape(-1, 2)
    free = ~scene.graph.bonded(pairs).reshape(contact.shape)
    cost = np.zeros((len(one.state), len(other.state)))
    _kernels.torsion_moves.score_state_pairs(
        one.state.transpose(2, 1, 0), other.state.transpose(2, 1, 0), np.asfortranarray(contact * free),
        np.asfortranarray(severe * free), scene.threshold, FATAL_COST, SEVERE_COST, cost.T)
    return cost


def best_combination(single: list[np.ndarray], pair: dict[tuple[int, int], np.ndarray]) -> tuple[list[int], float]:
    """The choice of one state of each site with the lowest sum of single and pair costs, and that sum.

    Among equals the first in the order of states is chosen.
    """
    sites = range(len(single))

    def between(i: int, j: int) -> np.ndarray:
        return pair[i, j] if i < j else pair[j, i].T

    alive = [np.arange(len(cost)) for cost in single]
    # Goldstein: state r of a site is dead when another one, t, is cheaper by more than the rest could ever give back.
    while True:
        before = sum(map(len, alive))
        for i in sites:
            worst = np.subtract.outer(single[i][alive[i]], single[i][alive[i]])
            for j in sites:
                if j != i:
                    block = between(i, j)[np.ix_(alive[i], alive[j])]
                    worst += (block[:, None, :] - block[None, :, :]).min(axis=2)
            alive[i] = alive[i][~(worst > 1e-9).any(axis=1)]
        if sum(map(len, alive)) == before:
            break
    order = sorted(sites, key=lambda i: (len(alive[i]), i))
    # What the sites not yet chosen cost at least, alone and among themselves.
    least = np.zeros(len(order) + 1)
    for k in reversed(range(len(order))):
        i = order[k]
        cost = single[i][alive[i]].copy()
        for j in order[k + 1:]:
            cost += between(i, j)[np.ix_(alive[i], alive[j])].min(axis=1)
        least[k] = least[k + 1] + cost.min()
    best: list[int] = []
    best_cost = np.inf
    choice = [0] * len(single)

    def descend(k: int, so_far: float, extra: list[np.ndarray]) -> None:
        nonlocal best, best_cost
        if k == len(order):
            if so_far < best_cost - 1e-9:
                best, best_cost = choice.copy(), so_far
            return
        i = order[k]
        cost = single[i][alive[i]] + extra[i]
        for place in np.argsort(cost, kind="stable"):
            here = so_far + cost[place]
            if here + least[k + 1] >= best_cost - 1e-9:
                break
            choice[i] = int(alive[i][place])
            following = list(extra)
            for j in order[k + 1:]:
                following[j] = extra[j] + between(i, j)[choice[i], alive[j]]
            descend(k + 1, here, following)

    descend(0, 0.0, [np.zeros(len(a)) for a in alive])
    return best, float(best_cost)
