"""Force-field assignment by junctions against OpenMM's assignment of whole molecules."""

import io
import itertools
import time

import numpy as np
import openmm
import pytest
from openmm import app, unit
from support.charmm36m import charmm36m
from support.molecular_systems import make_solute, openmm_topology

from chromabuild.base.constants import COULOMB_CONSTANT
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.force_fields import force_field_files
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.dna.curve import circular_path
from chromabuild.forcefield.amber_residues import added_residues
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.openmm_system import read_system, separate_urey_bradley
from chromabuild.forcefield.rules import DATA
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute

AMINO_ACIDS = [name for name in residue_names() if residue_library()[name].kind == "amino acid" and len(name) == 3
               and not residue_library()[name].modification and not residue_library()[name].link
               and f"C{name}" in residue_names()]
"""Those that may end a chain, too."""


def strand(bases: str) -> list[str]:
    return [f"D{base}{'5' if k == 0 else '3' if k == len(bases) - 1 else ''}" for k, base in enumerate(bases)]


def protein(names: list[str]) -> list[str]:
    return [f"N{names[0]}", *names[1:-1], f"C{names[-1]}"]


def random_protein(length: int, seed: int) -> list[str]:
    return protein(list(np.random.Generator(np.random.Philox(key=seed)).choice(AMINO_ACIDS, length)))


def canonical(atoms: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Rows in an order that does not depend on who wrote them; a term read backwards is the same term."""
    backwards = atoms[:, 0] > atoms[:, -1]
    atoms = np.where(backwards[:, None], atoms[:, ::-1], atoms)
    rows = np.column_stack([atoms, *columns])
    return rows[np.lexsort(rows.T[::-1])]


MOLECULES = {
    "every nucleotide step": [strand("AACAGATCCGCTGGTTA"), strand("CA"), strand("GT"), strand("TC")],
    "every residue": [protein(AMINO_ACIDS), protein(AMINO_ACIDS[::-1]), protein(AMINO_ACIDS[1::2] + AMINO_ACIDS[::2])],
    "random": [random_protein(120, 5), random_protein(2, 6), random_protein(3, 7)],
}


@pytest.mark.parametrize("name", MOLECULES)
def test_terms_are_those_of_whole_molecules(name):
    """Every term, in the same atom order, to rounding of the unit conversion, for junctions in all contexts."""
    assert_terms_are_openmm_s(make_solute(MOLECULES[name]))


WITH_PROLINES = [protein(AMINO_ACIDS + ["PRO", "PRO", "GLY", "LYS", "PRO"]), protein(["PRO", "PRO", "PRO"]),
                 protein(["GLY", "ALA", "GLY"]), protein(["HIE", "SER"])]
"""Every residue; correction maps before and over proline; ends with patches of their own."""


@pytest.mark.parametrize("force_field", ["amber-bsc1", "amber19", "charmm36m"])
def test_other_force_fields(force_field):
    """The same for whole molecules, correction maps over three residues among the terms, with water and ions."""
    assert_terms_are_openmm_s(make_solute([*WITH_PROLINES, strand("AACAGATCCGCTGGTTA")]), force_field,
                               water=2, sodium=1, chloride=1)


DISULPHIDES = [["NALA", "CALA"], ["NALA", "CYX", "GLY", "CYX", "ALA", "CYX", "CALA"], ["NALA", "CYX", "PRO", "CALA"],
               ["NGLY", "CGLY"]]
AT_ENDS = [["NCYX", "GLY", "CCYX"]]
ISOPEPTIDES = [["NALA", "CALA"], ["NALA", "KUB", "GLY", "KUB", "CLEU"], ["NALA", "CALA"], ["NMET", "ARG", "GLY"],
               ["NARG", "GLY", "GLY"]]
"""Two chains that end in bonds to side chains of another; one that is not linked stands between."""


@pytest.mark.parametrize("force_field", ["amber-bsc1", "amber19", "charmm36m"])
def test_disulphides_within_and_between_chains(force_field):
    """The same; OpenMM does not patch an end of a chain in CHARMM once more."""
    with_ends = force_field != "charmm36m"
    solute = make_solute([*DISULPHIDES, *(AT_ENDS if with_ends else [])])
    solute.links = ((3, 5), (7, 10), *(((15, 17),) if with_ends else ()))
    assert_terms_are_openmm_s(solute, force_field)
    topology = make_topology(solute, {}, force_field)
    assert [len(one.residue_name) for one in topology.templates] == [2, 11, 2, *([3] if with_ends else [])]


@pytest.mark.parametrize("force_field", ["amber14-analogy", "amber19-analogy"])
def test_isopeptides(force_field):
    """The same, correction maps of ff19SB across the bond among the terms: once, where OpenMM has them both ways."""
    solute = make_solute(ISOPEPTIDES)
    solute.links = ((3, 11), (5, 14))
    assert_terms_are_openmm_s(solute, force_field)


def test_a_circle_in_charmm():
    """The seam has the terms of any other step."""
    solute = make_solute([["DA", "DC", "DG", "DT", "DT"], ["DA", "DA", "DC", "DG", "DT"]])
    solute.circular = (0, 1)
    assert_terms_are_openmm_s(solute, "charmm36m")


def test_a_circle_is_joined_through_its_seam():
    """The terms of two closed strands, each as if OpenMM had seen the bond that closes it, and a first force of no
    more than a clash-free duplex has: below 1e6 kJ/mol/nm.
    """
    sequence = np.random.Generator(np.random.Philox(key=3)).integers(0, 4, 84)
    position, template, _ = build_dna(sequence, *circular_path(84), circular=True)
    solute = assemble_solute(position, template, [], np.zeros((0, 3)), np.zeros((0, 3, 3)), circular=True)
    first, last = solute.residue_first_atom[[0, 83]]
    library, names = residue_library(), residue_names()
    closing = (library[names[template[0]]].index["P"] + first, library[names[template[83]]].index["O3'"] + last)
    assert set(closing) in [set(bond) for bond in solute.bonds().tolist()]
    assert np.linalg.norm(position[closing[0]] - position[closing[1]]) == pytest.approx(1.607, abs=0.01)
    system = assert_terms_are_openmm_s(solute)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("CPU"))
    context.setPositions(0.1 * solute.position.astype(float))
    force = context.getState(getForces=True).getForces(asNumpy=True)
    force = force.value_in_unit(unit.kilojoule_per_mole / unit.nanometer)
    assert np.abs(force).max() < 1e6


def test_a_circle_survives_its_file(tmp_path):
    solute = make_solute([["DA", "DC", "DG"], strand("AC")])
    solute.circular = (0,)
    solute.write(tmp_path / "solute.h5")
    read = Solute.read(tmp_path / "solute.h5")
    assert read.circular == (0,) and np.array_equal(read.bonds(), solute.bonds())


def assert_terms_are_openmm_s(solute: Solute, force_field: str = "amber14", **counts: int) -> openmm.System:
    """Compare with what OpenMM finds for all the molecules as a whole; returns its System."""
    topology = make_topology(solute, counts, force_field)
    judge = openmm_topology(solute, counts)
    if force_field == "charmm36m":  # OpenMM finds residues and patches by itself
        rules, templates = charmm36m(), {}
    else:
        files = force_field_files(force_field)
        more = [io.StringIO(added_residues(["KUB"], [DATA / name for name in files], True))] * force_field.endswith(
            "analogy")
        rules = app.ForceField(*files, *more)
        templates = {residue: residue.name for residue in judge.residues()}
    system = rules.createSystem(judge, constraints=None, rigidWater=False, removeCMMotion=False,
                                residueTemplates=templates)
    everything = read_system(system)
    terms = everything.terms
    assert np.array_equal(topology.charges(), everything.charge)
    assert np.array_equal(topology.masses(), everything.mass)
    lj_type = topology.per_atom("lj_type")
    if everything.c12 is None:
        assert np.array_equal(topology.lj_sigma[lj_type], everything.sigma[everything.lj_type])
        assert np.array_equal(topology.lj_epsilon[lj_type], everything.epsilon[everything.lj_type])
    else:
        pairs = np.unique(np.column_stack([lj_type, everything.lj_type]), axis=0).T
        for ours, theirs in ((topology.lj_c12, everything.c12), (topology.lj_c6, everything.c6)):
            assert ours[np.ix_(pairs[0], pairs[0])] == pytest.approx(theirs[np.ix_(pairs[1], pairs[1])], rel=1e-12)
    bonds = np.array([(a.index, b.index) for a, b in judge.bonds()])
    terms["bond"], terms["urey_bradley"] = separate_urey_bradley(terms["bond"], bonds, topology.n_atoms)
    if "cmap" in terms:  # an atom of another chain that stands before makes OpenMM count a map backwards once more
        forward = terms["cmap"]["atoms"][:, 1] < terms["cmap"]["atoms"][:, 3]
        assert forward.all() or force_field == "amber19-analogy"
        terms["cmap"] = {column: values[forward] for column, values in terms["cmap"].items()}
    for term, columns in (("bond", ("k", "r0")), ("angle", ("k", "theta0")), ("urey_bradley", ("k", "r0")),
                          ("dihedral", ("n", "k", "phase")), ("improper", ("k", "psi0")), ("cmap", ())):
        ours, theirs = topology.term(term), terms.get(term)
        if term in ("urey_bradley", "improper") and theirs is not None:  # those without energy are left out
            theirs = {column: values[theirs["k"] != 0] for column, values in theirs.items()}
        assert (len(ours["atoms"]) > 0) == (theirs is not None and len(theirs["atoms"]) > 0), term
        if len(ours["atoms"]):
            a, b = (canonical(t["atoms"], *(t[column] for column in columns)) for t in (ours, theirs))
            assert np.array_equal(a, b), term
    if len(topology.term("cmap")["atoms"]):
        ours, theirs = ({tuple(atoms): energy[k].tolist() for atoms, k in zip(
            term["atoms"].tolist(), term["map"].astype(int).tolist(), strict=True)} for term, energy in (
                (topology.term("cmap"), topology.cmap_energy), (terms["cmap"], everything.cmap_energy)))
        assert ours == theirs
    pairs = terms["pair"]
    assert np.array_equal(canonical(topology.exclusions()), canonical(pairs["atoms"]))
    interacting = (pairs["charge_product"] != 0) | (pairs["epsilon"] != 0)
    columns = ("charge_product", "sigma", "epsilon")
    a = canonical(topology.term("pair14")["atoms"], *(topology.term("pair14")[c] for c in columns))
    b = canonical(pairs["atoms"][interacting], *(pairs[c][interacting] for c in columns))
    assert np.array_equal(a[:, :2], b[:, :2])
    assert a == pytest.approx(b, rel=1e-14)  # over a seam the two atoms of a pair change places
    assert len(a) < len(pairs["atoms"])
    return system


def test_improper_atoms_keep_their_order():
    """The energy of an AMBER improper depends on the order of its atoms, which whole-molecule assignment decides."""
    solute = make_solute([random_protein(30, 8)])
    topology = make_topology(solute, {})
    judge = openmm_topology(solute, {})
    system = app.ForceField(*force_field_files("amber14")).createSystem(judge, removeCMMotion=False)
    terms = read_system(system).terms
    ours = {tuple(row) for row in topology.term("dihedral")["atoms"]}
    theirs = {tuple(row) for row in terms["dihedral"]["atoms"]}
    assert all(row in theirs or row[::-1] in theirs for row in ours)


def test_coulomb_constant_is_openmm_s():
    system = openmm.System()
    force = openmm.NonbondedForce()
    for _ in range(2):
        system.addParticle(1.0)
        force.addParticle(1.0, 1.0, 0.0)
    system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(1.0), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions([[0, 0, 0], [0.1, 0, 0]])
    energy = context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(openmm.unit.kilocalorie_per_mole)
    assert energy == pytest.approx(COULOMB_CONSTANT, rel=1e-14)


def test_water_and_ions():
    """TIP3P: 0.9572 angstrom, 104.52 degree (Jorgensen 1983); run lengths in the order of the bricks."""
    counts = {"water": 1000, "sodium": 5, "potassium": 4, "magnesium": 2, "chloride": 3}
    topology = make_topology(None, counts)
    water = topology.templates[0]
    assert [t.name for t in topology.templates] == ["HOH", "NA", "K", "MG", "CL"]
    assert topology.run_count.tolist() == list(counts.values())
    assert topology.n_atoms == 3014
    assert [float(t.charge.sum()) for t in topology.templates] == pytest.approx([0, 1, 1, 2, -1])
    # Joung and Cheatham (2008) for TIP3P: Rmin/2 of K+ 1.705, Na+ 1.369 angstrom.
    radii = topology.lj_sigma * 2 ** (1 / 6) / 2
    assert [radii[t.lj_type[0]] for t in topology.templates[1:3]] == pytest.approx([1.369, 1.705], abs=1e-3)
    assert water.rigid_water
    assert water.constraint_atoms.tolist() == [[0, 1], [0, 2], [1, 2]]
    hydrogens = 2 * 0.9572 * np.sin(np.radians(104.52 / 2))
    assert water.constraint_distance == pytest.approx([0.9572, 0.9572, hydrogens], abs=1e-7)
    assert water.constraint_distance[2] == pytest.approx(1.5139, abs=1e-4)
    assert water.exclusion.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert len(water.pair14_atoms) == 0


def test_copies_share_a_template_and_constraints_are_the_bonds_to_hydrogen():
    chain = random_protein(20, 1)
    solute = make_solute([strand("ACGT"), chain, random_protein(20, 2), chain])
    topology = make_topology(solute, {"water": 2})
    assert topology.run_template.tolist() == [0, 1, 2, 1, 3]
    template = topology.templates[1]
    elements = np.concatenate([residue_library()[name].elements for name in chain])
    assert len(template.constraint_atoms) == np.sum(elements == "H")
    assert np.all((elements[template.constraint_atoms] == "H").sum(axis=1) == 1)


def test_lennard_jones_matrices():
    topology = make_topology(make_solute([strand("ACGT")]), {"sodium": 1})
    for i, j in itertools.product(range(len(topology.lj_name)), repeat=2):
        sigma = (topology.lj_sigma[i] + topology.lj_sigma[j]) / 2
        epsilon = np.sqrt(topology.lj_epsilon[i] * topology.lj_epsilon[j])
        r = 1.1 * sigma
        energy = topology.lj_c12[i, j] / r**12 - topology.lj_c6[i, j] / r**6
        assert energy == pytest.approx(4 * epsilon * (1.1**-12 - 1.1**-6), rel=1e-12, abs=1e-15)
    assert len(set(topology.lj_name.tolist())) == len(topology.lj_name)


def test_file_round_trip(tmp_path):
    topology = make_topology(make_solute([strand("ACGT"), random_protein(9, 3)]), {"water": 4, "sodium": 3})
    topology.write(tmp_path / "topology.h5")
    again = Topology.read(tmp_path / "topology.h5")
    for a, b in zip(topology.templates, again.templates, strict=True):
        assert {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(a).items()} == \
               {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(b).items()}
    assert again.run_template.tolist() == topology.run_template.tolist()
    assert again.lj_name.tolist() == topology.lj_name.tolist()
    assert again.provenance == topology.provenance
    topology.write(tmp_path / "second.h5")
    assert (tmp_path / "topology.h5").read_bytes() == (tmp_path / "second.h5").read_bytes()


def test_bad_input(tmp_path):
    with pytest.raises(BadInputError, match="run chromabuild topology"):
        Topology.read(tmp_path / "missing.h5")
    (tmp_path / "text.h5").write_text("not HDF5")
    with pytest.raises(BadInputError, match="text.h5"):
        Topology.read(tmp_path / "text.h5")
    with pytest.raises(BadInputError, match="charmm99"):
        make_topology(None, {"water": 1}, force_field="charmm99")
    with pytest.raises(IntegrityError, match="do not belong together"):
        make_topology(make_solute([strand("ACGT")]), {"sodium": 4}, net_charge=0)


def test_charge_of_a_duplex_is_whole():
    """-1 per phosphate: n base pairs with 5'-OH ends carry -2(n-1)."""
    topology = make_topology(make_solute([strand("ACGTACGT"), strand("ACGTACGT")]), {}, net_charge=-14)
    assert topology.net_charge == pytest.approx(-14, abs=1e-3)


@pytest.mark.slow
def test_cost_does_not_grow_with_matching():
    """20,000 nucleotides: only array copies, so seconds, not hours."""
    bases = "".join(np.random.Generator(np.random.Philox(key=1)).choice(list("ACGT"), 20_000))
    start = time.process_time()
    topology = make_topology(make_solute([strand(bases)]), {})
    assert time.process_time() - start < 20
    assert topology.n_atoms > 600_000
