"""Clusters cut from a duplex and from a peptide in water: formulas, charges, energies beside OpenMM, scans."""

import numpy as np
import openmm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openmm import app, unit
from support.molecular_systems import MolecularSystem, solvated

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.geometry import measure_torsion
from chromabuild.quantum.check import lowest_of
from chromabuild.quantum.cluster import Cluster, cut_cluster
from chromabuild.quantum.cluster_force_field import ClusterForceField
from chromabuild.quantum.points import box_around, dispersion_of
from chromabuild.quantum.scan import along_axes, read_values, scan_contact, scan_torsion


@pytest.fixture(scope="module")
def duplex() -> MolecularSystem:
    return solvated("duplex", 36.0)


@pytest.fixture(scope="module")
def peptide() -> MolecularSystem:
    return solvated("peptide", 30.0)


def labels(system: MolecularSystem) -> np.ndarray:
    """``residue:name`` of all atoms, residues counted from 0."""
    names = system.topology.per_atom("atom_name").astype("U4")
    return np.array([f"R:{k}:{name}" for k, name in zip(system.topology.residue_of_atom(), names, strict=True)],
                    dtype=object)


def cut(system: MolecularSystem, centres: list[str], radius: float) -> tuple[Cluster, list[int]]:
    """A cluster around atoms by their labels, and their rows."""
    label = labels(system)
    atoms = np.array([int(np.flatnonzero(label == name)[0]) for name in centres])
    cluster = cut_cluster(system.topology, system.position, system.box, atoms, radius, label)
    return cluster, [cluster.row(atom) for atom in atoms]


def formula(cluster: Cluster, piece: int) -> str:
    """Elements in alphabetic order."""
    elements = sorted(e for e, p in zip(cluster.element, cluster.piece, strict=True) if p == piece)
    return "".join(f"{e}{elements.count(e)}" for e in dict.fromkeys(elements))


@pytest.mark.parametrize(("centre", "expected", "charge"), [
    ("OP1", "C2H6O4P1", -1),  # dimethyl phosphate
    ("O4'", "C2H6O1", 0),  # dimethyl ether: C1' - O4' - C4' of the sugar
    ("C2'", "C1H4", 0),
])
def test_dna_falls_into_known_molecules(duplex, centre, expected, charge):
    cluster, (row,) = cut(duplex, [f"R:3:{centre}"], 0.0)
    piece = cluster.piece[row]
    assert formula(cluster, piece) == expected and cluster.piece_charge[piece] == charge


def test_bases_stand_alone(duplex):
    known = {"C5H5N5": "A", "C5H5N5O1": "G", "C4H5N3O1": "C", "C5H6N2O2": "T"}
    names = [name.decode()[1] for name in duplex.topology.templates[0].residue_name]
    for base in "ACGT":
        k = names.index(base)
        cluster, (row,) = cut(duplex, [f"R:{k}:C4"], 0.0)
        assert known[formula(cluster, cluster.piece[row])] == base and cluster.total_charge == 0


def test_closing_hydrogens_lie_along_the_bonds_that_are_cut(duplex):
    cluster, _ = cut(duplex, ["R:3:P"], 0.0)
    names = [label.rsplit(":", 1)[1] for label in cluster.label[cluster.n_atoms:]]
    assert sorted(names) == ["C3'~H", "C3'~H", "C5'~H"]
    for a, b in cluster.bonds[-3:]:
        assert np.linalg.norm(cluster.position[a] - cluster.position[b]) == pytest.approx(1.09, abs=1e-12)
    assert abs(cluster.charge.sum() - cluster.total_charge) < 1e-9


def test_no_two_hydrogens_stand_for_one_atom(duplex):
    """Radii of all sizes: pieces grow together where both sides of an atom would be closed."""
    for radius in (2.0, 3.0, 4.0, 5.0):
        cluster, _ = cut(duplex, ["R:3:C1'"], radius)
        caps = cluster.position[cluster.n_atoms:]
        apart = np.linalg.norm(caps[:, None] - caps, axis=2)[np.triu_indices(len(caps), 1)]
        assert apart.min(initial=9.0) > 1.5
        assert np.abs(np.bincount(cluster.piece, cluster.charge) - cluster.piece_charge).max() < 1e-9


def test_a_cluster_may_lie_across_the_faces_of_the_box(duplex):
    here, _ = cut(duplex, ["R:3:P"], 4.0)
    wrapped = duplex.position - duplex.box * np.floor(duplex.position / duplex.box + 0.3)
    moved = MolecularSystem(duplex.topology, wrapped, duplex.box)
    there, _ = cut(moved, ["R:3:P"], 4.0)
    assert here.label == there.label
    np.testing.assert_allclose(here.position, there.position, atol=1e-9)


def test_large_and_odd_clusters_are_refused(duplex):
    with pytest.raises(BadInputError, match=r"more than plane waves are for here \(100\): give a smaller --radius"):
        cut(duplex, ["R:3:P"], 9.0)


def in_vacuum(system: MolecularSystem) -> tuple[openmm.Context, int]:
    """OpenMM's own force field on the solute of a system alone, and its number of atoms."""
    n = system.topology.templates[0].n_atoms
    modeller = app.Modeller(system.judge, system.position * 0.1 * unit.nanometer)
    modeller.delete([residue for residue in system.judge.residues() if next(residue.atoms()).index >= n])
    made = app.ForceField("amber14-all.xml", "amber14/tip3p.xml").createSystem(modeller.topology,
                                                                              nonbondedMethod=app.NoCutoff)
    return openmm.Context(made, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference")), n


def test_a_turn_costs_what_openmm_says(peptide):
    """The whole peptide, uncut: a turn of a side chain changes pairs and dihedral terms alone, for bonds, angles and
    impropers stay. Reference platform: double precision."""
    label = labels(peptide)
    solute = peptide.topology.templates[0].n_atoms
    topology = peptide.topology
    atoms = np.arange(solute)
    context, n = in_vacuum(peptide)
    bonds = topology.term("bond")["atoms"]
    cluster = Cluster(atoms, tuple(label[:n]), ("C",) * n, peptide.position[:n], np.zeros(n, dtype=np.int64),
                      bonds[(bonds < n).all(axis=1)], topology.charges()[:n], np.zeros(1, dtype=np.int64))
    field = ClusterForceField(topology, cluster)
    residue = next(k for k in range(1, 20) if f"R:{k}:CG" in label and f"R:{k}:N" in label
                   and label.tolist().index(f"R:{k}:CG") < n)
    four = tuple(int(np.flatnonzero(label == f"R:{residue}:{name}")[0]) for name in ("N", "CA", "CB", "CG"))
    scan = scan_torsion(cluster, four, np.array([-150.0, -60.0, 30.0, 100.0]))
    found = np.array([field.energy(position) for position in scan.position])
    expected = []
    for position in scan.position:
        context.setPositions(position * 0.1)
        energy = context.getState(getEnergy=True).getPotentialEnergy()
        expected.append(energy.value_in_unit(unit.kilocalorie_per_mole))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-6, atol=1e-6)


def test_forces_on_pieces_are_slopes(duplex):
    cluster, _ = cut(duplex, ["R:3:P"], 4.0)
    field = ClusterForceField(duplex.topology, cluster)
    forces = field.piece_forces(cluster.position)
    assert len(forces) > 3 and np.abs(forces.sum(axis=0)).max() < 1e-9
    for piece in range(len(forces)):
        for axis in range(3):
            step = np.where(cluster.piece[:, None] == piece, 1e-4 * np.eye(3)[axis], 0.0)
            slope = (field.energy(cluster.position + step) - field.energy(cluster.position - step)) / 2e-4
            assert forces[piece, axis] == pytest.approx(-slope, abs=1e-4)


def nearest_water(system: MolecularSystem, atom: str) -> str:
    """Label of the water oxygen nearest to an atom."""
    label, topology = labels(system), system.topology
    run = next(k for k, t in enumerate(topology.run_template) if topology.templates[t].rigid_water)
    water = np.arange(topology.run_first_atom[run], topology.run_first_atom[run + 1], 3)
    apart = system.position[water] - system.position[int(np.flatnonzero(label == atom)[0])]
    apart -= system.box * np.round(apart / system.box)
    return label[water[(apart**2).sum(axis=1).argmin()]]


def test_contacts_are_scanned_as_rigid_bodies(duplex):
    cluster, (a, b) = cut(duplex, [nearest_water(duplex, "R:3:OP1"), "R:3:OP1"], 3.0)
    scan = scan_contact(cluster, (a, b), None)
    apart = np.linalg.norm(scan.position[:, a] - scan.position[:, b], axis=1)
    np.testing.assert_allclose(apart, scan.value, atol=1e-9)
    np.testing.assert_array_equal(scan.position[scan.as_built], cluster.position)
    assert scan.moving[a] and not scan.moving[b] and (np.diff(scan.value) > 0).all()
    for part in (scan.moving, ~scan.moving):
        shapes = scan.position[:, part][:, :, None] - scan.position[:, part][:, None]
        assert np.ptp(np.linalg.norm(shapes, axis=3), axis=0).max() < 1e-9
    turned = along_axes(scan)
    before, after = (np.linalg.norm(x[:, :, None] - x[:, None], axis=3) for x in (scan.position, turned))
    np.testing.assert_allclose(before, after, atol=1e-9)
    assert (2 * np.ptp(turned, axis=1).max(axis=0) <= box_around(turned)).all()
    one_piece = int(np.flatnonzero((cluster.piece == cluster.piece[b]) & (np.arange(len(cluster.piece)) != b))[0])
    with pytest.raises(BadInputError, match="are of one piece, which cannot be pulled apart"):
        scan_contact(cluster, (one_piece, b), None)
    with pytest.raises(BadInputError, match="a contact of 0.5 angstrom is too short to scan"):
        scan_contact(cluster, (a, b), np.array([0.5]))


def test_torsions_turn_to_the_angles_asked_for(duplex):
    base = [name.decode()[1] for name in duplex.topology.templates[0].residue_name].index("T")
    cluster, rows = cut(duplex, [f"R:{base}:{name}" for name in ("C4", "C5", "C7", "H71")], 0.0)
    scan = scan_torsion(cluster, tuple(rows), None)
    assert len(scan.value) in (12, 13)
    angle = np.degrees(measure_torsion(*(scan.position[:, row] for row in rows)))
    np.testing.assert_allclose((angle - scan.value + 180) % 360 - 180, 0, atol=1e-6)
    np.testing.assert_allclose(scan.position[scan.as_built], cluster.position, atol=1e-9)
    assert scan.moving.sum() == 4
    ring = tuple(cluster.label.index(f"R:{base}:{name}") for name in ("N1", "C2", "N3", "C4"))
    with pytest.raises(BadInputError, match="is in a ring and cannot turn"):
        scan_torsion(cluster, ring, None)
    with pytest.raises(BadInputError, match="is no bond of the cluster"):
        scan_torsion(cluster, (rows[0], rows[2], rows[0], rows[3]), None)


@given(st.floats(-50, 50), st.floats(0.1, 3), st.integers(0, 30))
def test_ranges_have_both_ends(first, step, n):
    last = first + n * step
    values = read_values(f"{first!r}:{last!r}:{step!r}")
    assert len(values) == n + 1
    np.testing.assert_allclose(values, first + step * np.arange(n + 1), atol=1e-9)


@pytest.mark.parametrize("text", ["", "a", "1:2", "2:1:0.5", "1:2:-1", "1,,2", "nan", "1:2:0"])
def test_other_texts_are_no_scan(text):
    with pytest.raises(BadInputError, match="is neither numbers with commas between"):
        read_values(text)


def test_scans_have_an_end():
    with pytest.raises(BadInputError, match="has more than 60 points"):
        read_values("0:1e9:1")


def test_dispersion_attracts_and_falls_with_the_sixth_power():
    """Two waters far apart: D3's energy goes as -C6/r^6 (damping is below 1 % at 8 angstrom and
    beyond), C8 adds some 10 % there; and forces are slopes of the energy."""
    elements = ["O", "H", "H"] * 2
    water = np.array([[0.0, 0.0, 0.0], [0.76, 0.59, 0.0], [-0.76, 0.59, 0.0]])

    def pair(r: float) -> tuple[float, np.ndarray]:
        return dispersion_of(elements, np.vstack([water, water + [0.0, 0.0, r]]), "BLYP")

    alone = 2 * dispersion_of(elements[:3], water, "BLYP")[0]
    near, far = (pair(r)[0] - alone for r in (8.0, 16.0))
    assert near < 0 and far < 0 and 5.9 < np.log2(near / far) < 6.5
    slope = (pair(3.001)[0] - pair(2.999)[0]) / 0.002
    assert pair(3.0)[1][3:, 2].sum() == pytest.approx(slope, rel=1e-4)
    with pytest.raises(BadInputError, match="--dispersion has no parameters for PADE: use BLYP or PBE"):
        dispersion_of(elements[:3], water, "PADE")


@pytest.mark.parametrize(("value", "true", "told"), [
    ([1.6, 1.8, 2.0, 2.2], 1.87, 1.87), ([1.6, 1.8, 4.0], 1.95, 1.8), ([1.9, 2.1, 2.3], 1.87, 1.9)])
def test_where_a_curve_is_lowest(value, true, told):
    """A parabola is found; beyond the ends of a scan and far from its points nothing is."""
    assert lowest_of(np.array(value), 50 * (np.array(value) - true) ** 2) == pytest.approx(told, abs=1e-9)
