"""The kernels behind the moves, against independent computations, and the torsions of the residue library."""

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

from chromabuild import _kernels
from chromabuild.clash import reference
from chromabuild.clash.atoms import Atoms
from chromabuild.clash.backbone import local_topology, propose_link, volumes
from chromabuild.clash.scene import Scene
from chromabuild.clash.sidechain import propose_rotation
from chromabuild.clash.torsions import library_torsions
from chromabuild.residues import residue_library


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
        assert len(found.chi) == len(template.chi)
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


def test_present_state_is_kept_when_nothing_improves(nucleosome):
    atoms = Atoms.from_solute(nucleosome)
    scene = Scene(atoms, 0.9, 1)
    residue = next(r for r, name in enumerate(atoms.residue_name) if name == "VAL")
    chi = [t.shifted(int(nucleosome.residue_first_atom[residue])) for t in torsions_of("VAL").chi]
    assert propose_rotation(scene, [(chi, np.radians([[0.0], [120.0], [240.0]]))], "chi") is None
