"""Force fields and files of other programs: OpenMM's energies of its own systems judge those of chromamd on what
`chromabuild import` made of them."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import openmm
import pytest
from openmm import app, unit
from support.charmm36m import charmm36m, lennard_jones
from support.command_line import chromabuild
from support.engine_energies import (
    TOLERANCES,
    Evaluation,
    energy_section,
    evaluate,
    reference_energy,
    relative_rms,
    write_input,
)
from support.force_field_judge import COLUMNS, assert_terms_agree, judged
from support.foreign_files import assert_same_topology, write_amber, write_charmm, write_gromacs
from support.molecular_systems import DATA, MolecularSystem, make_solute, openmm_topology

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.from_openmm import topology_from_system
from chromabuild.forcefield.import_files import import_system, import_topology
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate import chromamd
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.openmm_engine import NonbondedOptions, energies_by_term, system_from_topology

pytestmark = [pytest.mark.mpi, pytest.mark.release]

OPTIONS = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=(64, 48, 48))
BOX = np.array([58.0, 42.0, 44.0])


@dataclass
class Charmm:
    """A peptide, a DNA duplex, waters and ions in CHARMM36m."""

    system: MolecularSystem
    judge: Evaluation
    types: list[str]


def fixtures(**centres: list[float]) -> tuple[list[list[str]], np.ndarray]:
    """Molecules of the fixtures named, and their atoms (n, 3) about these centres."""
    molecules, position = [], []
    for name, centre in centres.items():
        content = json.loads((DATA / f"{name}.json").read_text())
        molecules += content["molecules"]
        here = np.array(content["position"]).reshape(-1, 3)
        position.append(here - 0.5 * (here.min(axis=0) + here.max(axis=0)) + centre)
    return molecules, np.concatenate(position)


def with_solvent(solute: np.ndarray, near: np.ndarray, n_ions: int, n_waters: int) -> np.ndarray:
    """The solute, waters beside it and ions at the free sites nearest to some of its atoms; to 0.001 angstrom."""
    rng = np.random.default_rng(4)
    axes = [np.arange(1.5, edge - 1.5, 3.1) for edge in BOX]
    sites = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3) + rng.uniform(-0.2, 0.2, 3)
    gap = np.linalg.norm(sites[:, None] - solute[None], axis=2).min(axis=1)
    sites, gap = sites[gap > 2.4], gap[gap > 2.4]
    order = np.argsort(np.linalg.norm(sites[:, None] - near[None], axis=2).min(axis=1), kind="stable")
    ions = sites[order[:n_ions]]
    rest = sites[order[n_ions:]][np.argsort(gap[order[n_ions:]], kind="stable")][:n_waters]
    half = np.radians(104.52 / 2)
    water = 0.9572 * np.array([[0, 0, 0], [np.sin(half), np.cos(half), 0], [-np.sin(half), np.cos(half), 0]])
    return np.round(np.concatenate([solute, (rest[:, None] + water).reshape(-1, 3), ions]), 3)


@pytest.fixture(scope="module")
def charmm() -> Charmm:
    molecules, position = fixtures(duplex=[18.0, 21.0, 22.0], peptide=[44.0, 21.0, 22.0])
    atoms = openmm_topology(make_solute(molecules), {"water": 120, "sodium": 14, "chloride": 3})
    phosphates = position[[a.index for a in atoms.atoms() if a.element is app.element.phosphorus]]
    position = with_solvent(position, phosphates, 17, 120)

    rules = charmm36m()
    atoms.setPeriodicBoxVectors(np.diag(BOX) / 10 * unit.nanometer)
    judge = rules.createSystem(atoms, nonbondedMethod=app.PME, nonbondedCutoff=OPTIONS.cutoff / 10, constraints=None,
                               rigidWater=False, removeCMMotion=False)
    evaluation = judged(judge, position, OPTIONS)
    classes = AtomClasses()
    rules.registerGenerator(classes)
    rigid = rules.createSystem(atoms, constraints=app.HBonds, rigidWater=True, removeCMMotion=False)
    topology = topology_from_system(judge, rigid, atoms, "CHARMM36m", classes.found)
    return Charmm(MolecularSystem(topology, position, BOX), evaluation, classes.found)


class AtomClasses:
    """A part of a ForceField that notes the class of every atom."""

    found: list[str]

    def createForce(self, system, data, *rest) -> None:  # noqa: N802 (OpenMM's name)
        self.found = list(data.atomClasses)


def evaluate_imported(folder: Path, precision: chromamd.Precision) -> Evaluation:
    """chromamd's energies and forces of an imported system."""
    return evaluate({"topologyfile": folder / "topology.h5", "shardfile": folder / "shards" / "bricks.txt"}, folder,
                    precision, OPTIONS)


@pytest.fixture(scope="module")
def charmm_files(charmm, tmp_path_factory) -> tuple[Path, Path, Path]:
    parameters, special = lennard_jones()
    return write_charmm(tmp_path_factory.mktemp("charmm"), charmm.system.topology, charmm.types, parameters, special,
                        charmm.system.position)


@pytest.mark.parametrize(("precision", "energy_tolerance", "force_tolerance"), TOLERANCES)
def test_charmm36m_files_against_openmm(charmm, charmm_files, tmp_path, precision, energy_tolerance, force_tolerance):
    """ForceField's system -> PSF, parameters, CRD -> import -> chromamd, against ForceField's system."""
    psf, parameters, crd = charmm_files
    summary = import_system(psf, crd, [parameters], tmp_path, BOX)
    assert summary["special_pairs"] > 0 and summary["terms"]["cmap"] == 9 and summary["terms"]["urey_bradley"] > 100
    ours = evaluate_imported(tmp_path, precision)
    assert_terms_agree(ours, charmm.judge, energy_tolerance, force_tolerance)
    assert min(abs(sum(ours[0][c] for c in columns)) for columns in COLUMNS.values()) > 1.0


def test_one_molecule_of_each_kind_is_enough(charmm_files, tmp_path):
    """It gives what OpenMM makes of the whole psf; an empty file of local restraints asks for that."""
    psf, parameters, _ = charmm_files
    (tmp_path / "none.txt").write_text("")
    assert_same_topology(import_topology(psf, [parameters]),
                         import_topology(psf, [parameters], local=tmp_path / "none.txt"))


def test_special_pairs_make_a_difference(charmm):
    """Without NBFIX the Lennard-Jones energy of ions at phosphates is another one, by far more than any tolerance."""
    system = charmm.system
    plain = replace(system.topology, lj_c12=None, lj_c6=None)
    assert system.topology.special_pairs.any() and not plain.special_pairs.any()
    energy = [energies_by_term(system_from_topology(t, BOX, OPTIONS), system.position)[0]["lennard_jones"]
              for t in (system.topology, plain)]
    assert energy[0] == pytest.approx(charmm.judge[0]["lennard_jones"], rel=1e-9)
    assert abs(energy[1] - energy[0]) > 1e-3 * abs(energy[0])


@pytest.mark.parametrize("force_switch", [False, True])
def test_both_switches_with_special_pairs(charmm, tmp_path, force_switch):
    """CHARMM's potential switch and force switch over the pair matrix, against the same formulas in OpenMM."""
    options = replace(OPTIONS, switch_distance=7.0, force_switch=force_switch)
    system = charmm.system
    ours = evaluate(write_input(system, tmp_path), tmp_path, "double", options)
    theirs = reference_energy(system, options)
    assert ours[0]["VDWAALS"] + ours[0]["PAIR14_VDW"] == pytest.approx(theirs[0]["lennard_jones"], rel=1e-6)
    assert relative_rms(ours[1], theirs[1]) < 1e-6


def test_tail_of_the_pair_matrix_against_openmm(charmm, tmp_path):
    """dispersion_corr with NBFIX, against the correction that OpenMM integrates for the same force.

    OpenMM averages c6 and c12 over the n (n + 1)/2 pairs of atoms, an atom with itself included, where we sum over all
    ordered pairs: the ratio of both sums is known.
    """
    system = charmm.system
    topology = system.topology
    energies = {}
    for corrected in (False, True):
        judge = system_from_topology(topology, BOX, OPTIONS)
        for force in judge.getForces():
            if isinstance(force, openmm.CustomNonbondedForce):
                force.setUseLongRangeCorrection(corrected)
        energies[corrected] = energies_by_term(judge, system.position)[0]["lennard_jones"]
    count = np.bincount(topology.per_atom("lj_type"))
    n = topology.n_atoms
    ordered = np.outer(count, count)
    pairs = np.triu(ordered - np.diag(np.diag(ordered))) + np.diag(count * (count + 1) / 2)
    repulsion, attraction = topology.lj_c12 * OPTIONS.cutoff**-9 / 9, -topology.lj_c6 * OPTIONS.cutoff**-3 / 3
    tail = repulsion + attraction
    expected = (energies[True] - energies[False]) * np.sum(ordered * tail) / (2 * n / (n + 1) * np.sum(pairs * tail))

    virial = {}
    for kind in ("ENERGY", "EPRESS"):
        control = tmp_path / f"{kind}.inp"
        chromamd.write_control(control, {"INPUT": write_input(system, tmp_path),
                                         "ENERGY": {**energy_section(OPTIONS), "dispersion_corr": kind}})
        chromamd.launch("energy", control, 1, "double")
        text = control.with_suffix(".out").read_text()
        virial[kind] = np.array([float(x) for x in text.split("VIRIAL =")[1].split()[:9]]).reshape(3, 3)
        # OpenMM integrates to 1e-5.
        assert chromamd.read_energies(control)["DISPERSION"] == pytest.approx(expected, rel=2e-5)
    # A third of the trace of the virial of r^-n beyond the cutoff is n/3 of its energy: 4 and 2 times it.
    lost = expected * np.sum(ordered * (4 * repulsion + 2 * attraction)) / np.sum(ordered * tail)
    np.testing.assert_allclose(virial["EPRESS"] - virial["ENERGY"], lost * np.eye(3), atol=2e-5 * abs(lost))


@pytest.mark.parametrize("write", [write_amber, write_gromacs])
def test_amber_and_gromacs_files(tmp_path, write):
    """Files of a peptide in water: the energies of our own topology, which OpenMM's ForceField judges elsewhere."""
    molecules, position = fixtures(peptide=[20.0, 21.0, 22.0])
    solute, counts = make_solute(molecules), {"water": 200, "sodium": 2, "chloride": 5}
    system = MolecularSystem(make_topology(solute, counts), with_solvent(position, position[:1], 7, 200), BOX)
    structure, coordinates = write(tmp_path, system.topology, system.position, system.box)
    summary = import_system(structure, coordinates, [], tmp_path)
    assert summary["atoms"] == system.topology.n_atoms and summary["special_pairs"] == 0
    imported = Topology.read(tmp_path / "topology.h5")
    assert imported.templates[imported.run_template[1]].rigid_water
    assert len(imported.templates) == 4  # peptide, water, sodium, chloride
    ours = evaluate_imported(tmp_path, "double")
    assert_terms_agree(ours, reference_energy(system, OPTIONS), 1e-6, 1e-6)


GEOMETRIC_TOP = """
[ defaults ]
1 3 yes 0.5 0.5
[ atomtypes ]
CA 6 12.011 0.0 A 0.35 0.29
OB 8 15.999 0.0 A 0.30 0.71
HC 1 1.008 0.0 A 0.25 0.12
[ moleculetype ]
BUT 3
[ atoms ]
1 CA 1 BUT C1 1 0.12 12.011
2 CA 1 BUT C2 2 -0.05 12.011
3 CA 1 BUT C3 3 0.21 12.011
4 OB 1 BUT O4 4 -0.38 15.999
5 HC 1 BUT H5 5 0.10 1.008
[ bonds ]
1 2 1 0.153 224262.4
2 3 1 0.153 224262.4
3 4 1 0.143 267776.0
3 5 1 0.109 284512.0
[ pairs ]
1 4 1
1 5 1
[ angles ]
1 2 3 1 112.7 488.3
2 3 4 1 109.5 418.4
2 3 5 1 110.7 313.8
4 3 5 1 109.5 292.9
[ dihedrals ]
1 2 3 4 3 2.92880 -1.46440 0.20920 -1.67360 0.5 -0.3
1 2 3 5 3 0.62760 1.88280 0.0 -2.51040 0.0 0.0
[ dihedrals ]
3 2 4 5 2 35.3 100.0
[ system ]
butanal-like
[ molecules ]
BUT 24
"""
BUTANE = np.array([[0, 0, 0], [1.5, 0.2, 0], [2.1, 1.6, 0.2], [3.4, 1.7, 0.9], [1.5, 2.3, 0.8]])


def test_geometric_rule_and_ryckaert_bellemans(tmp_path):
    """A GROMACS top as OPLS needs it: all pairs are special, and dihedrals are powers of cosines."""
    sites = np.stack(np.meshgrid(np.arange(4), np.arange(3), np.arange(2), indexing="ij"), -1).reshape(-1, 1, 3)
    bend = np.random.default_rng(3).normal(scale=0.08, size=(24, 5, 3))
    position = np.round((5.5 * sites + 12 + BUTANE + bend).reshape(-1, 3), 3)
    (tmp_path / "a.top").write_text(GEOMETRIC_TOP)
    lines = ["test", str(len(position))]
    lines += [f"{k // 5 + 1:5d}BUT  {'X':>5s}{k + 1:5d}" + "".join(f"{x / 10:9.4f}" for x in position[k])
              for k in range(len(position))]
    (tmp_path / "a.gro").write_text("\n".join([*lines, " ".join(f"{x / 10:.5f}" for x in BOX)]) + "\n")
    top = app.GromacsTopFile(str(tmp_path / "a.top"), unitCellDimensions=BOX / 10)
    system = top.createSystem(nonbondedMethod=app.PME, nonbondedCutoff=OPTIONS.cutoff / 10, constraints=None,
                              rigidWater=False, removeCMMotion=False)
    summary = import_system(tmp_path / "a.top", tmp_path / "a.gro", [], tmp_path)
    # Three types; of the pairs of different ones none follows the Lorentz-Berthelot rule.
    assert summary["special_pairs"] == 3 and summary["molecules"] == {"BUT (5 atoms)": 24}
    assert_terms_agree(evaluate_imported(tmp_path, "double"), judged(system, position, OPTIONS), 1e-6, 1e-6)


@pytest.mark.slow
def test_imported_system_runs(charmm, charmm_files, tmp_path):
    """Command line, then setup, minimisation and dynamics with rigid bonds on two ranks; energy is conserved."""
    psf, parameters, crd = charmm_files
    done = chromabuild("import", psf, crd, parameters, "-o", tmp_path, "--box", *BOX, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    topology, bricks, _ = json.loads(done.stdout)["outputs"]
    energy = energy_section(replace(OPTIONS, switch_distance=7.5)) | {"vdw_force_switch": True}
    section = {"ENERGY": energy, "CONSTRAINTS": {"rigid_bond": True}}
    stages = [("setup", {"shardfile": bricks}, {}, "start"),
              ("run", {"rstfile": tmp_path / "start_().rst"}, {"MINIMIZE": {"nsteps": 60}}, "minimised"),
              ("run", {"rstfile": tmp_path / "minimised_().rst"},
               {"DYNAMICS": {"nsteps": 40, "timestep": 0.001, "eneout_period": 10}}, "moved")]
    for command, entries, more, name in stages:
        control = tmp_path / f"{name}.inp"
        chromamd.write_control(control, {"INPUT": {"topologyfile": topology, **entries},
                                         "OUTPUT": {"rstfile": tmp_path / f"{name}_().rst",
                                                    "logfile": tmp_path / f"{name}.log"}, **section, **more})
        chromamd.launch(command, control, 2)
    log = EnergyLog.read(tmp_path / "moved.log")
    assert log["STEP"].tolist() == [0, 10, 20, 30, 40]
    assert np.ptp(log["TOTAL_ENE"]) < 0.01 * log["KINETIC_ENE"].mean()


def write_pdb(path: Path, position: np.ndarray, angle: float = 90.0) -> Path:
    lines = ["CRYST1" + "".join(f"{x:9.3f}" for x in BOX) + 3 * f"{angle:7.2f}" + " P 1           1"]
    lines += [f"ATOM  {k + 1:5d}  X   RES A{k // 10 + 1:4d}    " + "".join(f"{x:8.3f}" for x in row) + "  1.00  0.00"
              for k, row in enumerate(position)]
    path.write_text("\n".join([*lines, "END"]) + "\n")
    return path


def test_pdb_gives_the_same_brick_as_crd(charmm, charmm_files, tmp_path):
    psf, parameters, crd = charmm_files
    import_system(psf, crd, [parameters], tmp_path / "crd", BOX)
    import_system(psf, write_pdb(tmp_path / "a.pdb", charmm.system.position), [parameters], tmp_path / "pdb")
    for name in ("bricks.txt", "brick_00000.cbb"):
        assert (tmp_path / "pdb/shards" / name).read_bytes() == (tmp_path / "crd/shards" / name).read_bytes()


def test_model_without_a_box(charmm, charmm_files, tmp_path):
    """Wherever the model stands it is shifted into the same box, which holds it; a given box contradicts that."""
    psf, parameters, _ = charmm_files
    extent = np.ptp(charmm.system.position, axis=0)
    for name, shift in (("here", 0.0), ("there", -62.5)):
        pdb = write_pdb(tmp_path / f"{name}.pdb", charmm.system.position + shift)
        summary = import_system(psf, pdb, [parameters], tmp_path / name, periodic=False)
        assert np.all((summary["box"] > extent + 1.0) & (summary["box"] < extent + 3.0))
    for name in ("bricks.txt", "brick_00000.cbb"):
        assert (tmp_path / "here/shards" / name).read_bytes() == (tmp_path / "there/shards" / name).read_bytes()
    with pytest.raises(BadInputError, match="contradict"):
        import_system(psf, pdb, [parameters], tmp_path / "both", BOX, periodic=False)


@pytest.mark.parametrize(("change", "words"), [
    ("box", "--box"), ("atoms", "has 2 atoms"), ("parameters", "holds no parameters"), ("order", "angstrom apart"),
    ("missing", "no.psf"), ("damaged", "cut.psf ends after"),
])
def test_bad_files_are_refused(charmm_files, tmp_path, change, words):
    psf, parameters, crd = charmm_files
    box, given = BOX, [parameters]
    text = crd.read_text().splitlines()
    if change == "box":
        box = None
    elif change == "atoms":
        crd = tmp_path / "few.crd"
        crd.write_text("\n".join([*text[:2], f"{2:10d}  EXT", *text[3:5]]) + "\n")
    elif change == "parameters":
        given = []
    elif change == "order":
        crd = tmp_path / "order.crd"
        crd.write_text("\n".join([*text[:3], text[400], *text[4:400], text[3], *text[401:]]) + "\n")
    elif change == "missing":
        psf = tmp_path / "no.psf"
    elif change == "damaged":
        cut = tmp_path / "cut.psf"
        cut.write_text(psf.read_text()[:20000])
        psf = cut
    with pytest.raises(BadInputError, match=words):
        import_system(psf, crd, given, tmp_path / "out", box)
    assert not (tmp_path / "out").exists()
