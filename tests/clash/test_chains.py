"""Chains as curves: winding of strands, backbones between strands, molecules within each other."""

from dataclasses import replace

import numpy as np
import pytest
from support.placed_nucleosomes import place_nucleosomes

from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit, find_rings, near_pairs, ring_piercings
from chromabuild.sterics.chains import NamePlaces, crosses, find_duplexes, merged_molecules, signed_crossings


@pytest.fixture(scope="module")
def atoms(nucleosome):
    return Atoms.from_solute(nucleosome)


def helix(turns, phase, n=400):
    t = np.linspace(0.0, 2 * np.pi * turns, n)
    return np.stack([10 * np.cos(t + phase), 3.4 * 10.5 * t / (2 * np.pi), -10 * np.sin(t + phase)], axis=1)


def gauss_integral(one, other):
    """Linking number by the solid-angle formula of Klenin and Langowski (2000) for closed polygons."""
    total = 0.0
    for i in range(len(one)):
        a, b = one[i], one[(i + 1) % len(one)]
        for j in range(len(other)):
            c, d = other[j], other[(j + 1) % len(other)]
            r13, r14, r24, r23 = c - a, d - a, d - b, c - b
            n = [np.cross(r13, r14), np.cross(r14, r24), np.cross(r24, r23), np.cross(r23, r13)]
            n = [v / max(np.linalg.norm(v), 1e-15) for v in n]
            angle = sum(np.arcsin(np.clip(n[k] @ n[(k + 1) % 4], -1, 1)) for k in range(4))
            total += angle * np.sign(np.cross(d - c, b - a) @ r13)
    return total / (4 * np.pi)


def test_right_handed_helices_wind_positively():
    """Two strands of a right-handed helix seen from the side cross twice a turn."""
    for turns in (1.0, 3.0, 7.0):
        one, other = helix(turns, 0.3), helix(turns, 0.3 + np.pi)
        assert signed_crossings(one, other) == 2 * turns
        mirror = np.array([-1.0, 1.0, 1.0])
        assert signed_crossings(one * mirror, other * mirror) == -2 * turns


def test_crossings_equal_the_linking_number():
    """Of closed curves: two random knots, against the Gauss integral; half the signed crossings is the linking number
    from every side."""
    random = np.random.default_rng(3)
    for _ in range(4):
        one, other = (np.cumsum(random.normal(size=(14, 3)), axis=0) for _ in range(2))
        other += one.mean(axis=0) - other.mean(axis=0)
        closed = [np.concatenate([c, c[:1]]) for c in (one, other)]
        expected = gauss_integral(one, other)
        assert np.isclose(expected, round(expected), atol=1e-6)
        for turn in (np.eye(3), np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])):
            assert signed_crossings(*(c @ turn for c in closed)) == 2 * round(expected)


def test_duplex_of_a_nucleosome(atoms):
    """All 147 base pairs in one run. 147 bp wind about 14 times (10.4 bp a turn), less the 1.7 left-handed turns of the
    superhelix that the projection counts along."""
    found = find_duplexes(atoms, NamePlaces(atoms))
    assert len(found) == 1 and len(found[0].first) == 147
    assert np.array_equal(found[0].second, 293 - found[0].first)
    assert 11.0 <= found[0].turns <= 14.5


def test_chain_between_two_strands(atoms):
    """A lysine side chain is no backbone; an N-terminal tail put through a base-pair step is found, beside it not."""
    assert audit(atoms).threaded == []
    place = NamePlaces(atoms)
    corners = atoms.position[place("C1'")[[70, 71, 293 - 71, 293 - 70]]].astype(np.float64)
    middle = corners.mean(axis=0)
    normal = np.linalg.svd(corners - middle)[2][2]
    residue = 294
    ca, c = (int(place(name)[residue]) for name in ("CA", "C"))
    position = atoms.position.copy()
    middle = middle + 0.5 * np.linalg.svd(corners - middle)[2][0]  # not on an edge where two triangles meet
    position[ca], position[c] = middle + 0.8 * normal, middle - 0.7 * normal
    found = audit(replace(atoms, position=position)).threaded
    rings = {frozenset(p.ring) for p in found if p.bond == (ca, c)}
    assert rings == {frozenset(place("C1'")[[70, 71, 293 - 71, 293 - 70]].tolist())}
    position[[ca, c]] += (9.0 * normal).astype(np.float32)
    assert (ca, c) not in {p.bond for p in audit(replace(atoms, position=position)).threaded}


def test_merged_molecules():
    """A histone on top of another one is found; the same two 40 angstrom apart are not."""
    for shift, expected in ((0.4, 1), (60.0, 0)):
        two = Atoms.from_solute(place_nucleosomes([(np.eye(3), np.zeros(3)), (np.eye(3), np.full(3, shift))], keep="B"))
        found = merged_molecules(two, near_pairs(two))
        assert len(found) == expected
        if found:
            assert (found[0].first, found[0].second) == (0, two.n_atoms // 2)
            assert found[0].pairs > 50


def test_piercings_equal_trying_every_bond():
    """Three histones in one place, shaken: every ring against every bond near it."""
    places = [(np.eye(3), np.array([0.0, 0.0, 1.3 * k])) for k in range(3)]
    base = Atoms.from_solute(place_nucleosomes(places, keep="B"))
    random = np.random.default_rng(4)
    position = base.position + random.normal(scale=0.15, size=base.position.shape).astype(np.float32)
    shaken = replace(base, position=position)
    rings, bonds, wide = find_rings(shaken), shaken.graph.bonds, position.astype(np.float64)
    expected = set()
    for members in rings.tolist():
        ring = tuple(a for a in members if a >= 0)
        centre = wide[list(ring)].mean(axis=0)
        near = bonds[np.linalg.norm(wide[bonds].mean(axis=1) - centre, axis=1) < 5.0]
        near = near[~np.isin(near, ring).any(axis=1)]
        for k in range(len(ring)):
            a, b = wide[ring[k]], wide[ring[(k + 1) % len(ring)]]
            corner = [np.broadcast_to(p, (len(near), 3)) for p in (centre, a, b)]
            hit = crosses(wide[near[:, 0]], wide[near[:, 1]], *corner)
            expected |= {(ring, tuple(sorted(bond))) for bond in near[hit].tolist()}
    assert len(expected) > 5
    assert {(p.ring, p.bond) for p in ring_piercings(shaken)} == expected
