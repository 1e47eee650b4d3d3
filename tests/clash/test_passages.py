"""Moves that would put a bond through a ring or a backbone between strands, against audits of everything."""

from dataclasses import replace

import numpy as np
import pytest
from support.crowded_fibre import pulled_straight
from support.placed_nucleosomes import place_nucleosomes

from chromabuild.clash.tails import find_tails, growth_unit
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import ring_piercings
from chromabuild.sterics.chains import NamePlaces, find_duplexes, threaded_strands
from chromabuild.sterics.passages import Passages
from chromabuild.sterics.scene import Scene


@pytest.fixture(scope="module")
def crowd():
    """DNA and H3 of two nucleosomes in each other, with tails pulled straight."""
    places = [(np.eye(3), np.zeros(3)), (np.eye(3), np.array([9.0, 4.0, 12.0]))]
    return pulled_straight(place_nucleosomes(places, keep="IJAE"))


@pytest.mark.release
def test_opened_equals_auditing_everything(crowd):
    """Random turns of tails and shifts of nucleotides, some of which undo or redo what is pierced already."""
    atoms = Atoms.from_solute(crowd)
    scene = Scene(atoms, 0.9, 1)
    passages = Passages(scene)
    passages.find_steps()
    place = NamePlaces(atoms)
    duplexes = find_duplexes(atoms, place)
    tails = find_tails(scene, crowd.molecule_name, crowd.molecule_first_residue, crowd.residue_number)
    nucleotides = np.flatnonzero(place("C1'") >= 0)
    random = np.random.default_rng(5)

    def audited() -> set:
        now = replace(atoms, position=scene.position.astype(np.float32))
        return {*ring_piercings(now), *threaded_strands(now, place, duplexes)}

    before, outcomes = audited(), []
    for k in range(100):
        if k % 4 < 3:
            tail = tails[random.integers(len(tails))]
            residue = tail.residues[random.integers(len(tail.residues) // 2)]
            torsions = growth_unit(scene, tail, residue, []).torsions
            if not torsions:
                continue
            moved, old = torsions[0].turned_atoms.astype(np.int64), scene.position.copy()
            scene.turn(scene.position, torsions[0], float(random.uniform(-np.pi, np.pi)))
            position = scene.position[moved].copy()
            scene.position[:] = old
        else:  # no re-adjustment is as coarse: C1' moves, and with it the outlines of two steps
            residue = nucleotides[random.integers(len(nucleotides))]
            moved = np.arange(atoms.residue_first[residue], atoms.residue_first[residue + 1])
            position = scene.position[moved] + random.normal(scale=0.25, size=3)
        kept = scene.position.copy()
        opened = passages.opened(moved, position)
        assert np.array_equal(scene.position, kept) and scene.moved_since == []
        scene.commit(moved, position)
        scene.rebuild()
        after = audited()
        assert opened == bool(after - before), k
        outcomes.append(opened)
        before = after
    assert 5 <= sum(outcomes) <= len(outcomes) - 5
