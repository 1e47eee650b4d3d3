"""The octamer template and its acceptance by the force field."""

import numpy as np
import openmm.app as app
import pytest
from Bio.SeqUtils import seq1
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.nucleosome.octamer import histone_segid, octamer, place_octamer

XENOPUS_H2B = ("PEPAKSAPAPKKGSKKAVTKTQKKDGKKRRKTRKESYAIYVYKVLKQVHPDTGISSKAMSIMNSFVNDVF"
               "ERIAGEASRLAHYNKRSTITSREIQTAVRLLLPGELAKHAVSEGTKAVTKYTSAK")
"""UniProtKB P02281 without the initiator methionine: SEQRES of PDB 1KX5."""


def test_composition_of_1kx5():
    core = octamer()
    assert core.position.shape == (15826, 3) and np.isfinite(core.position).all()
    assert np.array_equal(np.bincount(core.residue_chain), [135, 102, 128, 125] * 2)
    names = np.array(residue_names())[core.residue_template]
    assert [names[core.residue_chain == k][0] for k in range(4)] == ["NALA", "NSER", "NSER", "NPRO"]
    assert all(names[core.residue_chain == k][-1].startswith("C") for k in range(8))
    assert np.isin(names, ["HID", "HIE"]).sum() == 18
    charge = {"ARG": 1, "LYS": 1, "ASP": -1, "GLU": -1}
    # 148 of what the crystal shows (PDB 1KX5), and Glu -1 of each H2B.
    assert sum(charge.get(name[-3:], 0) for name in names) == 146
    for tails in ("crystal", "compact"):
        core = octamer(tails)
        h2b = core.residue_chain == 3
        assert core.residue_number[h2b].tolist() == list(range(-2, 123))
        assert "".join("H" if name in ("HID", "HIE") else seq1(name[-3:]) for name in names[h2b]) == XENOPUS_H2B


def test_two_halves_are_related_by_the_dyad():
    # The dyad is x: a half turn about it maps one copy on the other, to within the asymmetry of the crystal's core.
    core = octamer()
    first = np.concatenate([[0], np.cumsum([len(residue_library()[residue_names()[k]].atoms)
                                            for k in core.residue_template])])
    alpha = first[:-1] + [residue_library()[residue_names()[k]].index["CA"] for k in core.residue_template]
    for one, other, numbers in ((0, 4, range(45, 130)), (1, 5, range(25, 95))):
        pick = [alpha[(core.residue_chain == c) & np.isin(core.residue_number, numbers)] for c in (one, other)]
        turned = core.position[pick[1]] * [1, -1, -1]
        assert np.sqrt(np.mean(np.sum((turned - core.position[pick[0]]) ** 2, axis=1))) < 2.0


def test_hydrogens_do_not_collide_inside_the_folded_core():
    # Two contacts below 0.9 angstrom are known in the tails of the crystal; the corrector removes them.
    core = octamer()
    names = [residue_library()[residue_names()[k]] for k in core.residue_template]
    residue = np.repeat(np.arange(len(names)), [len(t.atoms) for t in names])
    pairs = cKDTree(core.position).query_pairs(0.9, output_type="ndarray")
    apart = np.abs(residue[pairs[:, 0]] - residue[pairs[:, 1]]) > 1
    assert apart.sum() <= 2
    assert not (residue[pairs[~apart, 0]] != residue[pairs[~apart, 1]]).any()


def test_copies_are_rigid():
    core = octamer()
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert np.allclose(place_octamer(core, np.array([1.0, 2, 3]), np.eye(3)), core.position + [1, 2, 3], atol=1e-4)
    turned = place_octamer(core, np.array([100.0, 0, 0]), turn)
    assert np.allclose(turned, core.position @ turn.T + [100, 0, 0], atol=1e-4)


def test_segids_are_unique_for_more_than_500_nucleosomes():
    names = {histone_segid(k, chain) for k in range(5000) for chain in "ABCDEFGH"}
    assert len(names) == 40000 and all(len(name) == 4 and name[0].isdigit() for name in names)
    with pytest.raises(BadInputError, match="build the locus in parts"):
        histone_segid(9000, "A")


def test_openmm_accepts_the_octamer_with_its_charge():
    core, library = octamer(), residue_library()
    topology, chains = app.Topology(), {}
    previous = None
    for template, chain in zip(core.residue_template, core.residue_chain, strict=True):
        if chain not in chains:
            chains[chain], previous = topology.addChain(), None
        entry = library[residue_names()[template]]
        residue = topology.addResidue(entry.pdb_name, chains[chain])
        atoms = [topology.addAtom(name, app.Element.getBySymbol(element), residue)
                 for name, element in zip(entry.atoms, entry.elements, strict=True)]
        for a, b in entry.bonds:
            topology.addBond(atoms[a], atoms[b])
        if previous is not None:
            topology.addBond(previous, atoms[entry.index["N"]])
        previous = atoms[entry.index["C"]]
    field = app.ForceField("amber14/protein.ff14SB.xml")
    system = field.createSystem(topology, nonbondedMethod=app.NoCutoff)
    bonded = [force for force in system.getForces() if force.getName() == "NonbondedForce"][0]
    charge = sum(bonded.getParticleParameters(k)[0]._value for k in range(system.getNumParticles()))
    assert charge == pytest.approx(146, abs=1e-6)
