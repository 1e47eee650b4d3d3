"""Coupled groups: the best combination is the best of all, and pairs that no single turn frees are freed."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.placed_nucleosomes import joined, place_nucleosomes

from chromabuild.clash import correct_clashes
from chromabuild.clash.correct import Corrector
from chromabuild.clash.joint import best_combination, pair_costs, propose_joint, side_chain_site
from chromabuild.sterics.atoms import Atoms


@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5), ties=st.booleans())
@settings(max_examples=100, deadline=None)
def test_best_combination_equals_enumeration(seed, sizes, ties):
    """Dead-end elimination and bounding lose nothing: the cost is that of trying everything."""
    random = np.random.default_rng(seed)

    def draw(*shape):
        return random.integers(0, 3, shape).astype(float) if ties else random.uniform(0.0, 10.0, shape)

    single = [draw(n) for n in sizes]
    pair = {(i, j): draw(sizes[i], sizes[j]) for i in range(len(sizes)) for j in range(i + 1, len(sizes))}

    def cost(choice):
        return sum(single[i][k] for i, k in enumerate(choice)) + sum(
            table[choice[i], choice[j]] for (i, j), table in pair.items())

    choice, found = best_combination(single, pair)
    lowest = min(cost(c) for c in product(*map(range, sizes)))
    assert np.isclose(found, lowest) and np.isclose(cost(choice), lowest)


@pytest.fixture(scope="module")
def corrector(nucleosome):
    return Corrector(nucleosome, Atoms.from_solute(nucleosome), 0.9, 1, 1)


def test_pair_costs_equal_direct_count(corrector):
    """Two neighbouring lysines or arginines in all their states, against distances of every pair of atoms."""
    scene = corrector.scene
    residues = [r for r, name in enumerate(scene.atoms.residue_name) if name in ("LYS", "ARG")]
    where = scene.position[[scene.atom(r, "CG") for r in residues]]
    gap = np.linalg.norm(where[:, None] - where[None], axis=2) + 1e3 * np.eye(len(where))
    one, other = (residues[k] for k in np.unravel_index(gap.argmin(), gap.shape))
    absent = np.zeros(scene.atoms.n_atoms, dtype=bool)
    sites = []
    for residue in (one, other):
        chi = corrector.chi(residue)[:2]
        moved = np.array(sorted({a for t in chi for a in t.turned}))
        sites.append(side_chain_site(scene, chi, moved, absent))
    cost = pair_costs(scene, *sites)
    contact, severe = scene.contact_distances(sites[0].moved[:, None], sites[1].moved[None])
    for s, t in ((0, 0), (3, 5), (len(cost) - 1, 2)):
        d = np.linalg.norm(sites[0].state[s][:, None] - sites[1].state[t][None], axis=2)
        soft = np.where(d < contact, (contact - d) ** 2, 0) + np.where(d < severe, 4 * (severe - d) ** 2, 0)
        assert np.isclose(cost[s, t], 1e9 * (d < 0.9).sum() + 1e5 * (d < severe).sum() + soft.sum())


def test_states_are_the_turned_positions(corrector):
    scene = corrector.scene
    residue = next(r for r, name in enumerate(scene.atoms.residue_name) if name == "LEU")
    chi = corrector.chi(residue)
    moved = np.array(sorted({a for t in chi for a in t.turned}))
    angle = np.random.default_rng(2).uniform(-3, 3, (4, len(chi)))
    state = scene.rotated_states(chi, angle, moved)
    for k in range(len(angle)):
        position = scene.position.copy()
        for torsion, value in zip(chi, angle[k], strict=True):
            scene.turn(position, torsion, value)
        np.testing.assert_allclose(state[k], position[moved], atol=1e-12)


def test_two_side_chains_that_block_each_other(nucleosome, corrector):
    """Two side chains, each in its best rotamer for the place where the other one stands, freed only together.

    The pair is planted: of the states of two neighbours the worst combination is taken.
    """
    scene, planted = corrector.scene, None
    names = scene.atoms.residue_name
    for one in [r for r, name in enumerate(names) if name in ("LEU", "MET", "PHE") and r not in corrector.tail_of]:
        near = scene.around(scene.position[scene.atom(one, "CG")], 6.0)
        for other in sorted(set(scene.atoms.residue[near].tolist())):
            if other == one or names[other] not in ("LEU", "MET", "PHE", "ILE", "VAL") or other in corrector.tail_of:
                continue
            chi = [corrector.chi(r) for r in (one, other)]
            groups = [np.array(sorted({a for t in c for a in t.turned})) for c in chi]
            absent = np.zeros(scene.atoms.n_atoms, dtype=bool)
            absent[np.concatenate(groups)] = True
            sites = [side_chain_site(scene, c, g, absent) for c, g in zip(chi, groups, strict=True)]
            cost = pair_costs(scene, *sites) + sites[0].cost[:, None] + sites[1].cost[None]
            s, t = np.unravel_index(cost.argmax(), cost.shape)
            if cost[s, t] >= 1e9 and s and t:
                planted = (sites, s, t, chi)
                break
        if planted:
            break
    sites, s, t, chi = planted
    position = nucleosome.position.copy()
    position[sites[0].moved], position[sites[1].moved] = sites[0].state[s], sites[1].state[t]
    crowded = replace(nucleosome, position=position)
    there = Corrector(crowded, Atoms.from_solute(crowded), 0.9, 1, 1)
    proposal = propose_joint(there.scene, [(c, []) for c in chi], [])
    assert proposal is not None and proposal.after.fatal == 0 < proposal.before.fatal
    there.scene.commit(proposal.moved, proposal.position)
    assert there.scene.count_severe(proposal.moved).fatal == 0


@pytest.mark.release
def test_result_does_not_depend_on_what_is_far_away(shifted_octamer):
    """The same nucleosome among different distant ones, in another order, is corrected to the same bytes: where a
    structure is cut into shards, and how its parts are numbered, does not matter. (Its bounding box does: tails stay
    inside it. So two of the distant ones are always there.)"""
    away = [place_nucleosomes([(np.eye(3), np.array(shift))], keep="AB") for shift in (
        (200.0, 200.0, 320.0), (-200.0, -200.0, -320.0), (0.0, 0.0, 300.0))]
    for k, solute in enumerate(away):
        solute.segment_name = [f"F{k}{name[-2:]}{name[0]}" for name in solute.segment_name]
    few, _ = correct_clashes(joined([shifted_octamer, *away[:2]]))
    many, _ = correct_clashes(joined([away[2], away[1], shifted_octamer, away[0]]))
    start = away[2].n_atoms + away[1].n_atoms
    n = shifted_octamer.n_atoms
    assert not np.array_equal(few.position[:n], shifted_octamer.position)
    assert np.array_equal(many.position[start:start + n], few.position[:n])
