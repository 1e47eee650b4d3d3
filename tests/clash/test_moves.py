"""The kernels behind the moves, against independent computations, and the torsions of the residue library."""

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

from chromabuild import _kernels
from chromabuild.clash.backbone import (
    SUGAR_AND_C1,
    geometry_change,
    local_topology,
    propose_link,
    propose_relaxation,
    strain,
    volumes,
)
from chromabuild.clash.correct import Corrector
from chromabuild.clash.tails import Growth, grow, growth_unit
from chromabuild.molecule.residues import residue_library
from chromabuild.sterics import reference
from chromabuild.sterics.atoms import BASE, Atoms
from chromabuild.sterics.scene import Scene
from chromabuild.sterics.sidechain import propose_rotation
from chromabuild.sterics.torsions import library_torsions


def torsions_of(name):
    return dict(zip(residue_library(), library_torsions(), strict=True))[name]


def test_rotation_equals_scipy():
    random = np.random.default_rng(1)
    local = np.asfortranarray(random.normal(size=(3, 6)))
    start = local.copy()
    axis = start[:, 1] - start[:, 0]
    turn = Rotation.from_rotvec(0.7 * axis / np.linalg.norm(axis))
    _kernels.torsion_moves.apply_rotation(local, np.array([0, 1], dtype=np.int32),
                                          np.array([0, 0, 1, 1, 0, 1], dtype=np.int32), 0.7)
    expected = start.copy()
    for k in (2, 3, 5):
        expected[:, k] = turn.apply(start[:, k] - start[:, 1]) + start[:, 1]
    np.testing.assert_allclose(local, expected, atol=1e-14)


def test_side_chain_torsions():
    for name, template in residue_library().items():
        found = torsions_of(name)
        assert len(found.chi) == (0 if template.link else len(template.chi))  # what is joined is not turned
        for torsion in found.chi + found.rotors:
            assert torsion.quad[3] in torsion.turned and torsion.quad[2] not in torsion.turned
            assert {"N", "CA", "C", "O"}.isdisjoint(template.atoms[k] for k in torsion.turned)
    assert {residue_library()["LYS"].atoms[r.quad[2]] for r in torsions_of("LYS").rotors} == {"NZ"}
    assert {residue_library()["THR"].atoms[r.quad[2]] for r in torsions_of("THR").rotors} == {"OG1", "CG2"}
    assert {residue_library()["NALA"].atoms[r.quad[2]] for r in torsions_of("NALA").rotors} == {"CB", "N"}
    assert {residue_library()["DT3"].atoms[r.quad[2]] for r in torsions_of("DT3").rotors} == {"C7", "O3'"}
    assert torsions_of("ARG").rotors == ()  # guanidinium is flat
    assert [t.planar for t in torsions_of("GLN").chi] == [False, False, True]
    assert torsions_of("PHE").chi[1].period == 180.0


def test_scores_equal_direct_count(nucleosome):
    """Turning a lysine: pairs below the thresholds counted from all distances."""
    atoms = Atoms.from_solute(nucleosome)
    scene = Scene(atoms, 0.9, 1)
    residue = next(r for r, name in enumerate(atoms.residue_name) if name == "LYS")
    first = int(nucleosome.residue_first_atom[residue])
    chi = [t.shifted(first) for t in torsions_of("LYS").chi]
    angle = np.random.default_rng(5).uniform(-np.pi, np.pi, (20, len(chi)))
    fatal, severe, _ = scene.rotation_scores(chi, angle)
    moved = np.array(sorted({a for t in chi for a in t.turned}))
    rest = np.setdiff1d(np.arange(atoms.n_atoms), moved)
    for k in range(len(angle)):
        position = scene.position.copy()
        for torsion, value in zip(chi, angle[k], strict=True):
            scene.turn(position, torsion, value)
        expected = np.zeros(2, dtype=int)
        for others in (rest, moved):
            distance = cdist(position[moved], position[others])
            i, j = np.nonzero(distance < 2.2)
            keep = (moved[i] < others[j]) if others is moved else np.ones(len(i), dtype=bool)
            pairs, d = np.stack([moved[i], others[j]], axis=1)[keep], distance[i, j][keep]
            free = ~atoms.graph.bonded(pairs)
            if others is moved:  # atoms on the same side of every turned bond keep their distance
                signature = np.array([[a in t.turned for t in chi] for a in range(first, first + 30)])
                free &= (signature[pairs[:, 0] - first] != signature[pairs[:, 1] - first]).any(axis=1)
            limit = np.where((atoms.element[pairs] == 1).any(axis=1), 1.3, 2.2)
            expected += [(free & (d < 0.9)).sum(), (free & (d < limit)).sum()]
        assert (fatal[k], severe[k]) == tuple(expected)


def test_relaxation_equals_scipy():
    """Final cost of a small restrained group, against scipy's least squares from the same start."""
    random = np.random.default_rng(6)
    n = 8
    ideal = np.cumsum(random.normal(size=(n, 3)), axis=0)
    start = ideal + random.normal(scale=0.2, size=(n, 3))
    i, j = np.triu_indices(n, 1)
    target = np.linalg.norm(ideal[i] - ideal[j], axis=1)
    weight = np.full(len(i), 20.0)
    quad = np.array([[0, 1, 2, 3], [2, 3, 4, 5]], dtype=np.int32)
    volume = volumes(ideal, quad)
    contact = np.array([[0, 7], [1, 6]], dtype=np.int32)
    contact_distance = np.linalg.norm(ideal[contact[:, 0]] - ideal[contact[:, 1]], axis=1) + 0.5

    def residuals(flat):
        x = start.copy()
        x[:6] = flat.reshape(6, 3)
        d = np.linalg.norm(x[i] - x[j], axis=1)
        c = np.linalg.norm(x[contact[:, 0]] - x[contact[:, 1]], axis=1)
        return np.concatenate([weight * (d - target), 3.0 * (volumes(x, quad) - volume),
                               4.0 * np.minimum(c - contact_distance, 0.0), 0.5 * (x[:6] - start[:6]).ravel()])

    position = start.T.copy(order="F")
    cost = _kernels.local_relaxation.relax_group(
        6, position, np.stack([i, j]).astype(np.int32), target, weight, quad.T, volume, np.full(2, 3.0), contact.T,
        contact_distance, 4.0, 0.5, 200)
    best = least_squares(residuals, start[:6].ravel(), xtol=1e-12, ftol=1e-12)
    assert np.isclose(cost, (residuals(position.T[:6].ravel())**2).sum(), rtol=1e-10)
    assert cost <= 2 * best.cost * 1.01  # the kernel stops when a step gains less than 0.1 %
    assert np.array_equal(position.T[6:], start[6:])


def test_phosphate_moves_aside_within_four_sigma(nucleosome):
    """A carbon-like intruder beside a phosphate oxygen: the link gives way, its geometry stays."""
    atoms = Atoms.from_solute(nucleosome)
    scene = Scene(atoms, 0.9, 1)
    left, right = 40, 41
    oxygen = scene.atom(right, "OP1")
    phosphorus = scene.atom(right, "P")
    intruder = scene.atom(2 * 147 + 60, "CB")  # any far heavy atom will do
    outward = scene.position[oxygen] - scene.position[phosphorus]
    scene.position[intruder] = scene.position[oxygen] + 0.7 * outward / np.linalg.norm(outward)
    scene.start.array = scene.position.astype(np.float32)
    scene.rebuild()
    proposal = propose_link(scene, left, right)
    assert proposal is not None and proposal.before.fatal > 0 and proposal.after.fatal == 0
    topology = local_topology(scene, proposal.moved)
    after = scene.position.copy()
    after[proposal.moved] = proposal.position
    length = np.linalg.norm(after[topology.bonds[:, 0]] - after[topology.bonds[:, 1]], axis=1)
    assert (np.abs(length - topology.bond_reference) < 4 * topology.bond_deviation).all()
    bend = np.abs(reference.angles(after, topology.triples) - topology.angle_reference)
    assert (bend < 4 * topology.angle_deviation).all()
    bases = np.isin(atoms.part[proposal.moved], 3)
    assert not bases.any()


@pytest.mark.parametrize("left", [36, 40, 43, 49])
def test_sugar_gives_way_to_the_next_base(nucleosome, left):
    """A nucleotide pushed towards the one before until H2'' is 1.15 A from its H8 or H6: the sugars part them."""
    atoms = Atoms.from_solute(nucleosome)
    scene = Scene(atoms, 0.9, 1)
    right = left + 1
    sugar, base = scene.atom(left, "H2''"), scene.atom(right, "H8") or scene.atom(right, "H6")
    apart = scene.position[sugar] - scene.position[base]
    length = np.linalg.norm(apart)
    scene.position[scene.residue_first[right]:scene.residue_first[right + 1]] += apart * (1 - 1.15 / length)
    scene.start.array = scene.position.astype(np.float32)
    scene.position = scene.start[:]
    scene.rebuild()
    proposal = propose_relaxation(scene, sugar, base, ([left], [right]), SUGAR_AND_C1)
    assert proposal.before.severe >= 1 and proposal.after.clean
    assert scene.atom(left, "C1'") in proposal.moved and not np.isin(atoms.part[proposal.moved], BASE).any()
    topology = local_topology(scene, proposal.moved)
    before = strain(topology, scene.position)
    scene.position[proposal.moved] = proposal.position
    after = strain(topology, scene.position)
    assert np.linalg.norm(scene.position[sugar] - scene.position[base]) > 1.3
    assert (after.z <= np.maximum(4.0, before.z)).all() and (after.volume * before.volume > 0).all()


def test_turns_keep_bonds_and_angles(nucleosome):
    """A lysine turned about all its chi and a whole tail grown again: no bond or angle changes, but for rounding."""
    atoms = Atoms.from_solute(nucleosome)
    corrector = Corrector(nucleosome, atoms, 0.9, 1, 1)
    scene = corrector.scene
    residue = next(r for r, name in enumerate(atoms.residue_name) if name == "LYS")
    chi = corrector.chi(residue)
    moved = np.array(sorted(chi[0].turned))
    turned = scene.position.copy()
    for torsion in chi:
        scene.turn(turned, torsion, 1.0)
    assert (geometry_change(scene, moved, turned[moved]) < 1e-6).all()
    tail = corrector.tails[0]
    start = scene.position.copy()
    grown = grow(scene, Growth(scene, tail, corrector.chi), 5, seed=1, attempt=3)
    position = scene.position[grown]
    scene.position[:] = start
    assert np.linalg.norm(position - start[grown], axis=1).max() > 5.0
    assert (geometry_change(scene, grown, position) < 1e-6).all()
    position[0] += [0.0, 0.0, 0.01]  # and a bond that is bent is noticed
    assert (geometry_change(scene, grown, position) > 1e-4).all()


def test_tail_torsions_turn_what_lies_beyond(nucleosome):
    """phi and psi of every tail residue, against a walk through the bonds of the whole structure."""
    atoms = Atoms.from_solute(nucleosome)
    corrector = Corrector(nucleosome, atoms, 0.9, 1, 1)
    assert {tail.outward for tail in corrector.tails} == {-1, 1}
    for tail in corrector.tails:
        for residue in tail.residues:
            for torsion in growth_unit(corrector.scene, tail, residue, []).torsions:
                assert list(torsion.turned) == atoms.graph.beyond(torsion.quad[1], torsion.quad[2])


def test_contact_limits_equal_the_tables(nucleosome):
    """Distances of every pair of a residue's atoms with those around it and each other, from kinds and bonds."""
    atoms = Atoms.from_solute(nucleosome)
    scene = Scene(atoms, 0.9, 1)
    first, last = atoms.residue_first[350], atoms.residue_first[351]
    moved = np.arange(first, last)
    body = (np.arange(len(moved)) % 3).astype(np.int32)
    found = scene.surroundings(moved, scene.position[moved].mean(axis=0), 6.0, body)
    contact, severe = scene.contact_distances(found.around[:, None], moved[None])
    pairs = np.stack(np.broadcast_arrays(found.around[:, None], moved[None]), axis=-1).reshape(-1, 2)
    bonded = atoms.graph.bonded(pairs).reshape(contact.shape)
    assert bonded.any() and not np.isin(found.around, moved).any()
    assert np.array_equal(found.contact, np.where(bonded, 0.0, contact))
    assert np.array_equal(found.severe, np.where(bonded, 0.0, severe))
    p, q = np.triu_indices(len(moved), 1)
    keep = (body[p] != body[q]) & ~atoms.graph.bonded(np.stack([moved[p], moved[q]], axis=1))
    assert np.array_equal(found.inner, np.stack([p[keep], q[keep]], axis=1))
    assert np.array_equal(found.inner_contact, scene.contact_distances(moved[p[keep]], moved[q[keep]])[0])


def test_present_state_is_kept_when_nothing_improves(nucleosome):
    atoms = Atoms.from_solute(nucleosome)
    scene = Scene(atoms, 0.9, 1)
    residue = next(r for r, name in enumerate(atoms.residue_name) if name == "VAL")
    chi = [t.shifted(int(nucleosome.residue_first_atom[residue])) for t in torsions_of("VAL").chi]
    assert propose_rotation(scene, [(chi, np.radians([[0.0], [120.0], [240.0]]))], "chi") is None
