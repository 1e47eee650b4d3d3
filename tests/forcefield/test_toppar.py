"""CHARMM36m as assigned, against numbers of CHARMM's own files (data/toppar.json): no reader of OpenMM in between."""

import json

import h5py
import numpy as np
import pytest
from support.molecular_systems import DATA, make_solute

from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology

TOPPAR = json.loads((DATA / "toppar.json").read_text())


@pytest.fixture(scope="module")
def topology() -> Topology:
    """An alanine and a deoxyadenosine in the middle of chains, water and salt."""
    return make_topology(make_solute([["NALA", "ALA", "CALA"], ["DA5", "DA", "DA3"]]),
                         {"water": 1, "sodium": 1, "chloride": 1}, "charmm36m")


def types_of(template: MoleculeTemplate, residue: int, name: str) -> dict[int, str]:
    """CHARMM type of each atom of a residue, by its number; its charge is checked."""
    table = TOPPAR["residues"][name]
    names = {"NA": {"NA": "SOD"}, "CL": {"CL": "CLA"}}.get(name, {})
    found = {}
    for atom in np.flatnonzero(template.atom_residue == residue).tolist():
        own = template.atom_name[atom].decode()
        kind, charge = table[names.get(own, own)]
        assert template.charge[atom] == pytest.approx(charge, abs=1e-9), own
        found[atom] = kind
    assert len(found) == len(table)
    return found


@pytest.fixture(scope="module")
def parts(topology) -> list[tuple[MoleculeTemplate, dict[int, str]]]:
    return [(template, types_of(template, residue, name)) for template, residue, name in zip(
        topology.templates, (1, 1, 0, 0, 0), ("ALA", "DA", "HOH", "NA", "CL"), strict=True)]


def test_atom_types_are_kept(topology, parts, tmp_path):
    """Those of CHARMM's files, in the topology file too; files of other force fields have none."""
    for template, types in parts:
        assert {atom: template.atom_class[atom].decode() for atom in types} == types
    topology.write(tmp_path / "charmm.h5")
    for ours, theirs in zip(topology.templates, Topology.read(tmp_path / "charmm.h5").templates, strict=True):
        assert ours.atom_class.tolist() == theirs.atom_class.tolist() and len(ours.atom_class) == ours.n_atoms
    make_topology(None, {"water": 1}).write(tmp_path / "amber.h5")
    with h5py.File(tmp_path / "amber.h5") as file:
        assert "lj_type" in file["template/0000"] and "atom_class" not in file["template/0000"]
    assert len(Topology.read(tmp_path / "amber.h5").templates[0].atom_class) == 0


def looked_up(table: dict, key: tuple[str, ...]):
    """Of types in either direction; then with wildcards at the ends, as CHARMM does."""
    for names in (key, key[::-1], ("X", *key[1:-1], "X"), ("X", *key[-2:0:-1], "X")):
        if " ".join(names) in table:
            return table[" ".join(names)]
    raise AssertionError(f"toppar has nothing for {key}")


def rows(template: MoleculeTemplate, types: dict[int, str], term: str):
    """Rows of a term within the residue: number and types of its atoms."""
    for k, atoms in enumerate(getattr(template, f"{term}_atoms").tolist()):
        if all(atom in types for atom in atoms):
            yield k, tuple(types[atom] for atom in atoms), atoms


def test_bonds_angles_and_urey_bradley_terms(parts):
    count = {"bond": 0, "angle": 0, "urey": 0}
    for template, types in parts:
        urey = {tuple(sorted(atoms)): k for k, atoms in enumerate(template.urey_bradley_atoms.tolist())}
        for k, key, _ in rows(template, types, "bond"):
            assert [template.bond_k[k], template.bond_r0[k]] == pytest.approx(looked_up(TOPPAR["BOND"], key), rel=1e-9)
            count["bond"] += 1
        for k, key, atoms in rows(template, types, "angle"):
            stiffness, angle, *rest = looked_up(TOPPAR["ANGL"], key)
            assert [template.angle_k[k], template.angle_theta0[k]] == pytest.approx([stiffness, angle], rel=1e-9)
            count["angle"] += 1
            own = urey.get((min(atoms[0], atoms[2]), max(atoms[0], atoms[2])))
            if rest and rest[0]:
                assert [template.urey_bradley_k[own], template.urey_bradley_r0[own]] == pytest.approx(rest, rel=1e-9)
                count["urey"] += 1
            else:
                assert own is None
    assert count["bond"] > 40 and count["angle"] > 70 and count["urey"] > 15, count


def test_dihedrals_and_a_correction_map(topology, parts):
    found = 0
    for template, types in parts[:2]:
        ours: dict[tuple, list] = {}
        for k, key, atoms in rows(template, types, "dihedral"):
            ours.setdefault((*atoms, *key), []).append(
                [template.dihedral_k[k], template.dihedral_n[k], template.dihedral_phase[k]])
        for atoms, values in ours.items():
            expected = looked_up(TOPPAR["DIHE"], atoms[4:])
            assert np.array(sorted(values, key=lambda row: row[1])) == pytest.approx(
                np.array(sorted(expected, key=lambda row: row[1])), rel=1e-9), atoms
            found += 1
    assert found > 80
    template = parts[0][0]
    assert len(template.cmap_atoms) == 1
    given = np.array(TOPPAR["CMAP"]["C NH1 CT1 C NH1 CT1 C NH1"]).reshape(24, 24)
    ours = topology.cmap_energy[template.cmap_map[0]].reshape(24, 24)
    # CHARMM's map begins at -180 degrees, ours at 0.
    assert np.roll(ours, 12, axis=(0, 1)) == pytest.approx(given, abs=1e-9)


def test_lennard_jones_with_its_exceptions(topology, parts):
    """Each type; 1-4 pairs with parameters of their own; NBFIX of sodium and chloride."""
    own = {kind: (-value[1], 2 * value[2] / 2**(1 / 6)) for kind, value in TOPPAR["NONB"].items()}
    special = {kind: (-value[4], 2 * value[5] / 2**(1 / 6)) if len(value) > 3 else own[kind]
               for kind, value in TOPPAR["NONB"].items()}
    for template, types in parts:
        for atom, kind in types.items():
            number = template.lj_type[atom]
            assert [topology.lj_epsilon[number], topology.lj_sigma[number]] == pytest.approx(own[kind], rel=1e-6), kind
        for k, (a, b), _ in rows(template, types, "pair14"):
            epsilon, sigma = (special[a][0] * special[b][0])**0.5, (special[a][1] + special[b][1]) / 2
            assert [template.pair14_epsilon[k], template.pair14_sigma[k]] == pytest.approx([epsilon, sigma], rel=1e-6)
    assert own["CT3"] != special["CT3"]
    sodium, chloride = (template.lj_type[0] for template, _ in parts[3:])
    c12, c6 = topology.lj_c12[sodium, chloride], topology.lj_c6[sodium, chloride]
    # CHARMM's files have this pair twice, as -0.083875 and -0.0839.
    epsilon, minimum = TOPPAR["NBFI"]["SOD CLA"]
    assert [c6**2 / (4 * c12), (2 * c12 / c6) ** (1 / 6)] == pytest.approx([-epsilon, minimum], rel=5e-4)
    assert topology.special_pairs[sodium, chloride]
