"""Control files of GENESIS as they stand: import, run, restart, what is refused, and the table of keys."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import openmm
import pytest
from openmm import app, unit
from scipy.spatial import cKDTree
from support import genesis_files as written
from support import systems
from support.foreign_files import write_amber, write_gromacs
from support.genesis_files import BOX, chromamd_command, write_genesis_restart, write_salt_water
from support.molecular_systems import MolecularSystem, solvated
from support.triclinic_systems import cut_out, rhombic_dodecahedron

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.genesis_restart import read_genesis_restart
from chromabuild.forcefield.import_files import import_system
from chromabuild.simulate.executable import executable
from chromabuild.simulate.foreign_control import FOREIGN, read_foreign_control

pytestmark = pytest.mark.mpi

AKMA = np.sqrt(1.66053906660e-27 * 1e-20 * 6.02214076e23 / 4184) * 1e12
"""ps: the unit of time of angstrom, atomic mass and kcal/mol, from CODATA."""


def ran(done: subprocess.CompletedProcess[str]) -> dict[str, np.ndarray]:
    assert done.returncode == 0, done.stderr
    return systems.read_table(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Minimised, by the first control file."""
    folder = tmp_path_factory.mktemp("genesis")
    write_salt_water(folder)
    for name in ("minimise", "heat", "equilibrate"):
        (folder / f"{name}.inp").write_text(getattr(written, name.upper()))
    done = chromamd_command("run", "minimise.inp", cwd=folder)
    table = ran(done)
    assert np.all(np.diff(table["POTENTIAL_ENE"]) < 0)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("keys of GENESIS")]
    for key in ("[ENERGY] pme_scheme", "[ENERGY] dielec_const", "[MINIMIZE] fix_ring_error"):
        assert key in line
    assert "imported step1.psf: 640 atoms" in done.stderr
    return folder


@pytest.mark.release
def test_first_energy_is_openmms(folder):
    """What OpenMM makes of the same files, whose switch is the quintic one; CHARMM's force switch differs by far more
    than the tolerance, which holds the grids of both."""
    psf = app.CharmmPsfFile(str(folder / "step1.psf"))
    psf.setBox(*[BOX / 10 * unit.nanometer] * 3)
    names = ("water.rtf", "water.prm", "ions.str")
    parameters = app.CharmmParameterSet(*(str(folder / "toppar" / name) for name in names))
    system = psf.createSystem(parameters, nonbondedMethod=app.PME, nonbondedCutoff=0.8, switchDistance=0.7,
                              constraints=None, rigidWater=False, ewaldErrorTolerance=1e-5)
    for force in system.getForces():
        if isinstance(force, openmm.NonbondedForce):
            force.setUseDispersionCorrection(False)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(app.PDBFile(str(folder / "step1.pdb")).positions)
    expected = context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)
    text = written.MINIMISE.replace("= 300", "= 0").replace("step2", "first")
    text = text.replace("vdw_force_switch = YES", "vdw_switch_form = QUINTIC") \
        .replace("pme_max_spacing  = 1.2", "pme_max_spacing = 0.6")
    (folder / "first.inp").write_text(text)
    table = ran(chromamd_command("run", "first.inp", cwd=folder))
    assert table["POTENTIAL_ENE"][0] == pytest.approx(expected, abs=0.05)
    (folder / "first.inp").write_text(text.replace("vdw_switch_form = QUINTIC", "vdw_force_switch = YES"))
    switched = ran(chromamd_command("run", "first.inp", cwd=folder))
    assert abs(switched["POTENTIAL_ENE"][0] - expected) > 1.0


def chosen(folder: Path) -> np.ndarray:
    """(2, n) bool: the groups of the control file that heats, by the psf."""
    rows = [line.split() for line in (folder / "step1.psf").read_text().splitlines()[6:646]]
    return np.array([[row[1] == "IONS" and row[3] == "SOD" for row in rows],
                     [row[1] == "WATB" and int(row[2]) <= 3 and row[4] == "OH2" for row in rows]])


def test_heat_and_equilibrate_from_one_to_the_next(folder):
    """Restraints at the first step by hand: names, numbers and segments of the psf, `&` and `!`, a line that goes on.
    Then constant pressure goes on from there, with nothing imported again."""
    done = chromamd_command("run", "heat.inp", cwd=folder)
    table = ran(done)
    assert "imported" not in done.stderr
    pdb = np.array([[float(line[30 + 8 * k:38 + 8 * k]) for k in range(3)]
                    for line in (folder / "step1.pdb").read_text().splitlines() if line.startswith("ATOM")])
    away = systems.read_restarts(str(folder / "step2_().rst"), 1).position - pdb
    away -= BOX * np.round(away / BOX)
    groups = chosen(folder)
    assert groups.sum(axis=1).tolist() == [2, 3]
    expected = sum(k * np.sum(away[group] ** 2) for k, group in zip((1.0, 2.0), groups, strict=True))
    # Waters come to their rigid form, 0.02 angstrom away, before the first energy.
    assert table["RESTRAINT_TOTAL"][0] == pytest.approx(expected, rel=0.2)
    assert 0 < table["TEMPERATURE"][0] < 110
    after = ran(chromamd_command("run", "equilibrate.inp", cwd=folder))
    assert after["STEP"][0] == 20 and after["TOTAL_ENE"][0] == pytest.approx(table["TOTAL_ENE"][-1], abs=1e-3)
    assert after["VOLUME"][-1] != pytest.approx(after["VOLUME"][0], rel=1e-7)
    assert (folder / "step4_0.rst").exists() and (folder / "step4.dcd").exists()


@pytest.mark.release
def test_two_ranks_import_once_and_agree(folder, tmp_path):
    write_salt_water(tmp_path)
    (tmp_path / "minimise.inp").write_text(written.MINIMISE.replace("18.9", "18.90"))
    done = chromamd_command("run", "minimise.inp", cwd=tmp_path, ranks=2)
    table = ran(done)
    assert done.stderr.count("imported step1.psf") == 1
    one = ran(chromamd_command("run", "minimise.inp", cwd=folder))
    assert table["POTENTIAL_ENE"] == pytest.approx(one["POTENTIAL_ENE"], rel=1e-4)
    # A set of two ranks is set up anew for one, and goes on from the same energy.
    (tmp_path / "heat.inp").write_text(written.HEAT)
    assert ran(chromamd_command("run", "heat.inp", cwd=tmp_path))["TEMPERATURE"][0] > 0


def test_engine_alone_needs_an_import_that_fits(folder, tmp_path):
    """Started by mpirun without the command, it says what is missing; a changed control file needs an import too."""
    write_salt_water(tmp_path)
    (tmp_path / "a.inp").write_text(written.MINIMISE.replace("= 300", "= 0"))

    def alone() -> subprocess.CompletedProcess[str]:
        return subprocess.run([executable(), "run", "a.inp"], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = alone()
    assert done.returncode == 3 and "line 2" in done.stderr and "chromamd import a.inp" in done.stderr
    done = chromamd_command("import", "a.inp", cwd=tmp_path)
    assert done.returncode == 0 and "ready to run" in done.stdout
    first = ran(alone())
    text = (tmp_path / "a.inp").read_text()
    (tmp_path / "a.inp").write_text(text.replace("box_size_z       = 18.9", "box_size_z = 19.9"))
    assert alone().returncode == 3
    second = ran(chromamd_command("run", "a.inp", cwd=tmp_path))
    assert second["BOXZ"][0] == 19.9 and second["POTENTIAL_ENE"][0] != first["POTENTIAL_ENE"][0]


def test_restart_of_genesis(folder, tmp_path):
    """Positions and box to the last digit and velocities in ps, in what a run on one rank and on two starts from."""
    position = write_salt_water(tmp_path)
    rng = np.random.default_rng(3)
    velocity = rng.normal(size=position.shape) * 0.1
    box = np.array([18.9123456789, 19.0, 19.1])
    exact = position + rng.uniform(-4e-4, 4e-4, position.shape)
    write_genesis_restart(tmp_path / "step3.rst", exact, velocity, box)
    again = read_genesis_restart(tmp_path / "step3.rst")
    assert np.array_equal(again.position, exact) and again.velocity == pytest.approx(velocity / AKMA, rel=1e-7)
    (tmp_path / "go.inp").write_text(written.EQUILIBRATE.replace("nsteps           = 20", "nsteps = 0"))
    for ranks in (1, 2):
        done = chromamd_command("run", "go.inp", cwd=tmp_path, ranks=ranks)
        assert done.returncode == 0, done.stderr
        found = systems.read_restarts(str(tmp_path / f".chromamd/go_start_{ranks}_().rst"), ranks)
        apart = found.position - exact
        assert np.abs(apart - box * np.round(apart / box)).max() < 1e-10
        np.testing.assert_allclose(found.velocity, velocity / AKMA, rtol=1e-7)
        np.testing.assert_array_equal(found.box, box)
    assert systems.read_table(done.stdout)["STEP"].tolist() == [0]


def test_restart_of_genesis_as_coordinates(tmp_path):
    position = write_salt_water(tmp_path)
    write_genesis_restart(tmp_path / "min.rst", position, None, np.full(3, BOX))
    parameters = [tmp_path / "toppar" / name for name in ("water.rtf", "water.prm", "ions.str")]
    summary = import_system(tmp_path / "step1.psf", tmp_path / "min.rst", parameters, tmp_path / "out")
    assert summary["box"] == [BOX] * 3 and summary["molecules"]["TIP3 (3 atoms)"] == 212
    with pytest.raises(BadInputError, match="restart file of GENESIS"):
        import_system(tmp_path / "min.rst", tmp_path / "step1.pdb", [], tmp_path / "no", [BOX] * 3)
    (tmp_path / "cut.rst").write_bytes((tmp_path / "min.rst").read_bytes()[:-100])
    with pytest.raises(BadInputError, match="cut.rst"):
        import_system(tmp_path / "step1.psf", tmp_path / "cut.rst", parameters, tmp_path / "no")


@pytest.mark.parametrize(("change", "words"), [
    (("psffile = step1.psf", "psffile = no.psf"), ["psffile = no.psf", "does not exist"]),
    (("pdbfile = step1.pdb", "rstfile = none.rst"), ["none.rst", "none_0.rst", "run the control file"]),
    (("psffile = step1.psf", ""), ["no structure", "prmtopfile"]),
    (("box_size_x       = 18.9", ""), ["step1.pdb", "box_size_x", "NOBC"]),
    (("[OUTPUT]", "topologyfile = a.h5\n[OUTPUT]"), ["topologyfile", "leave out"]),
])
def test_control_files_that_cannot_be_imported(folder, tmp_path, change, words):
    shutil.copytree(folder / "toppar", tmp_path / "toppar")
    for name in ("step1.psf", "step1.pdb"):
        shutil.copy(folder / name, tmp_path)
    shutil.copytree(folder / ".chromamd", tmp_path / ".chromamd")
    (tmp_path / "a.inp").write_text(written.MINIMISE.replace(*change))
    done = chromamd_command("run", "a.inp", cwd=tmp_path)
    assert done.returncode == 3 and len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words), done.stderr


# The table of keys ----------------------------------------------------------------------------------------------------

ROW = re.compile(r"(same|other|ignored|imported|missing) +\[(\w+)\] (\S+?)(?: = (\S+))?(?: \((.*?)\))?: ?(.*)")


def rows() -> list[tuple[str, ...]]:
    """Class, section, key, word, harmless values, meaning of every line of `chromamd help genesis`."""
    text = subprocess.run([executable(), "help", "genesis"], capture_output=True, text=True, check=True).stdout
    found = [ROW.fullmatch(line) for line in text.splitlines()]
    assert all(found)
    return [tuple(part or "" for part in match.groups()) for match in found]


def check(folder: Path, texts: list[str]) -> list[str]:
    """What `chromamd check` says of control files."""
    names = []
    for k, text in enumerate(texts):
        names.append(f"{k}.inp")
        kind = "MINIMIZE" if "[MINIMIZE]" in text else "DYNAMICS"
        head = f"[{kind}]\nnsteps = 1\n[INPUT]\ntopologyfile = t\nrstfile = r_().rst\n"
        (folder / names[-1]).write_text(f"{head}{text}\n")
    done = subprocess.run([executable(), "check", *names], cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == len(names), done.stderr
    return lines


def test_program_does_what_the_table_of_keys_says(tmp_path):
    """Every key of GENESIS that is not ours, alone in a file: accepted and named, or refused with what it does."""
    expected, texts = [], []
    # What a section cannot do without.
    needed = {"REMD": "\nnreplica1 = 2\nparameters1 = 1 2\n[ENSEMBLE]\nensemble = NVT\ntpcontrol = BUSSI\n"
                      "[OUTPUT]\nlogfile = {}.log"}
    for kind, section, name, word, harmless, about in rows():
        key = name.replace("#", "1")
        if kind == "ignored":
            texts.append(f"[{section}]\n{key} = 3")
            expected.append(f"ok; keys of GENESIS without effect here: [{section}] {key}")
        elif kind == "missing" and word:
            texts.append(f"[{section}]\n{key} = {word}")
            expected.append(about)
        elif kind == "missing" and name == "*":
            texts.append(f"[{section}]\nanything = 3")
            expected.append(f"lacks section [{section}] of GENESIS, which {about}")
        elif kind == "missing":
            texts.append(f"[{section}]\n{key} = 3.14159")
            expected.append(f"lacks '{key}' of GENESIS, which {about}")
            for value in harmless.split():
                texts.append(f"[{section}]\n{key} = {value}{needed.get(section, '')}")
                expected.append(f"ok; keys of GENESIS without effect here: [{section}] {key}")
    said = check(tmp_path, texts)
    for k, (line, words) in enumerate(zip(said, expected, strict=True)):
        assert words in line, (texts[k], line)
    assert len(texts) > 150


def test_shared_keys_are_keys_and_no_key_stands_twice():
    text = subprocess.run([executable(), "help"], capture_output=True, text=True, check=True).stdout
    ours, section = set(), ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif match := re.match(r"(?:# )?(\w+) *=", line):
            ours.add((section, re.sub(r"^(\w+?)1$", r"\1#", match[1]) if line.startswith("# ") else match[1]))
    table = rows()
    shared = {(section, name) for kind, section, name, *_ in table if kind in ("same", "other")}
    assert shared <= ours
    foreign = [(section, name) for kind, section, name, word, *_ in table if kind not in ("same", "other") and not word]
    assert len(set(foreign)) == len(foreign) and not set(foreign) & ours
    assert {name for kind, section, name, *_ in table if kind == "imported"} == set(FOREIGN)


def test_suggestions_make_sense_or_are_absent(tmp_path):
    texts = ["[ENERGY]\ncutofdist = 9", "[ENERGY]\nxyzzy = 9", "[WHATEVER]\na = 1"]
    near, far, section = check(tmp_path, texts)
    assert near.endswith("nearest is 'cutoffdist'")
    assert far.endswith("key 'xyzzy' does not exist in [ENERGY]")
    assert section.endswith("section [WHATEVER] does not exist")


def test_same_lines_for_program_and_command(tmp_path):
    """Comments, tabulators, lines that go on: what the command reads decides what the engine compares."""
    text = ("[INPUT]\nPsfFile\t= a.psf # structure\nparfile = one.prm, \\\n  two.prm\n[boundary]\nTYPE = NOBC ! none\n"
            "[SELECTION]\ngroup1 = !an:CA\n")
    (tmp_path / "a.inp").write_text(text)
    control = read_foreign_control(tmp_path / "a.inp")
    assert control.sources() == ["psffile = a.psf", "parfile = one.prm, two.prm", "type = NOBC"]
    assert not control.periodic


# AMBER and GROMACS ----------------------------------------------------------------------------------------------------

COMMON = """[OUTPUT]
rstfile = min.rst

[ENERGY]
forcefield       = {forcefield}
electrostatic    = PME
switchdist       = {switch}
cutoffdist       = 8.0
pairlistdist     = 9.0
pme_alpha        = 0.5
pme_nspline      = 6
pme_max_spacing  = 0.7
{more}

[MINIMIZE]
nsteps           = 0

[CONSTRAINTS]
rigid_bond       = NO
water_model      = WAT

[BOUNDARY]
type             = PBC
"""


@pytest.mark.parametrize(("kind", "files", "forcefield", "switch", "more", "form"), [
    ("amber", "prmtopfile = system.prmtop\nambcrdfile = system.rst7", "AMBER", 8.0, "dispersion_corr = NONE", "cut"),
    ("gromacs", "grotopfile = system.top\ngrocrdfile = system.gro", "GROAMBER", 6.5, "", "quintic"),
    ("gromacs", "grotopfile = system.top\ngrocrdfile = system.gro", "GROAMBER", 6.5, "vdw_shift = YES", "shift"),
])
@pytest.mark.release
def test_amber_and_gromacs(tmp_path, kind, files, forcefield, switch, more, form):
    """Files of a peptide in water; van der Waals energies in GENESIS' meaning of the key, by a direct sum."""
    system = solvated("peptide", 30.0)
    write = {"amber": write_amber, "gromacs": write_gromacs}[kind]
    paths = write(tmp_path, system.topology, system.position, system.box)
    assert {path.name for path in paths} == {line.split(" = ")[1] for line in files.splitlines()}
    text = COMMON.format(forcefield=forcefield, switch=switch, more=more)
    (tmp_path / "min.inp").write_text(f"[INPUT]\n{files}\n\n{text}")
    table = ran(chromamd_command("run", "min.inp", cwd=tmp_path))
    expected = lennard_jones(system, 8.0, switch, form)
    assert table["VDWAALS"][0] == pytest.approx(expected, rel=2e-4)
    others = [lennard_jones(system, 8.0, 6.5, other) for other in ("quintic", "shift", "cubic") if other != form]
    assert min(abs(other - expected) for other in others) > 4 * 2e-4 * abs(expected)


def test_triclinic_box(tmp_path):
    """A gro file with nine numbers runs as it stands, goes on from its restart files, restrains to its own places."""
    box = rhombic_dodecahedron(21.2)
    system = cut_out("peptide", 30.0, box)
    _, gro = write_gromacs(tmp_path, system.topology, system.position, np.diag(box))
    lines = gro.read_text().splitlines()
    lines[-1] = " ".join(f"{number / 10:.5f}" for number in [*np.diag(box), 0, 0, 0, 0, *box[2, :2]])
    gro.write_text("\n".join(lines) + "\n")
    text = COMMON.format(forcefield="GROAMBER", switch=6.5, more="")
    files = "grotopfile = system.top\n"
    (tmp_path / "min.inp").write_text(f"[INPUT]\n{files}grocrdfile = system.gro\n\n{text}")
    done = chromamd_command("run", "min.inp", cwd=tmp_path)
    first = ran(done)
    assert "triclinic" in done.stdout
    restraint = ("[SELECTION]\ngroup1 = ai:1-20\n\n[RESTRAINTS]\nnfunctions = 1\nfunction1 = POSI\n"
                 "constant1 = 1.0\nselect_index1 = 1\n")
    more = text.replace("min.rst", "more.rst")
    files += "groreffile = system.gro\nrstfile = min.rst\n"
    (tmp_path / "more.inp").write_text(f"[INPUT]\n{files}\n{restraint}\n{more}")
    table = ran(chromamd_command("run", "more.inp", cwd=tmp_path))
    for column in ("VDWAALS", "ELECT", "RECIPROCAL"):
        assert table[column][0] == pytest.approx(first[column][0], rel=1e-5)
    assert table["RESTRAINT_TOTAL"][0] < 1e-3
    (tmp_path / "edges.inp").write_text(
        f"[INPUT]\ngrotopfile = system.top\ngrocrdfile = system.gro\n\n{text}"
        "box_size_x = 21.2\nbox_size_y = 21.2\nbox_size_z = 15.0\n")
    done = chromamd_command("run", "edges.inp", cwd=tmp_path)
    assert done.returncode != 0 and "of which box_size_x, box_size_y and box_size_z says nothing" in done.stderr


@pytest.mark.release
def test_local_restraints(tmp_path):
    """Bonds, angles and dihedrals of a localresfile, by hand: what they add to the columns of the log."""
    system = solvated("peptide", 30.0)
    write_amber(tmp_path, system.topology, system.position, system.box)
    files = "prmtopfile = system.prmtop\nambcrdfile = system.rst7\n"
    quads = system.topology.term("dihedral")["atoms"]
    chosen = quads[[0, len(quads) // 2, -1]]
    lines = [f"BOND {a + 1} {d + 1} 1.5 4.0" for a, _, _, d in chosen[:1].tolist()]
    lines += [f"ANGLE {b + 1} {c + 1} {d + 1} 2.0 100.0" for _, b, c, d in chosen[1:2].tolist()]
    lines += ["DIHEDRAL " + " ".join(str(atom + 1) for atom in quad) + " 3.0d0 170.0" for quad in chosen.tolist()]
    (tmp_path / "a.dihe").write_text("\n".join(lines) + "\n")
    text = COMMON.format(forcefield="AMBER", switch=8.0, more="")
    tables = []
    for name, extra in (("without", ""), ("with", "localresfile = a.dihe\n")):
        (tmp_path / f"{name}.inp").write_text(f"[INPUT]\n{files}{extra}\n{text}")
        tables.append(ran(chromamd_command("run", f"{name}.inp", cwd=tmp_path)))
    columns = ("UREY-BRADLEY", "ANGLE", "IMPROPER", "POTENTIAL_ENE")
    added = {key: tables[1][key][0] - tables[0][key][0] for key in columns}
    a, b, c, d = (system.position[chosen[:, k]] for k in range(4))
    one, two = b[1] - c[1], d[1] - c[1]
    theta = np.arccos(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
    first, second = np.cross(b - a, c - b), np.cross(c - b, d - c)
    axis = (c - b) / np.linalg.norm(c - b, axis=1)[:, None]
    phi = np.arctan2(np.sum(np.cross(first, second) * axis, axis=1), np.sum(first * second, axis=1))
    away = np.abs(phi - np.radians(170))
    expected = {"UREY-BRADLEY": 1.5 * (np.linalg.norm(d[0] - a[0]) - 4.0) ** 2,
                "ANGLE": 2.0 * (theta - np.radians(100)) ** 2,
                "IMPROPER": 3.0 * np.sum(np.minimum(away, 2 * np.pi - away) ** 2)}
    assert min(expected.values()) > 0.01
    for key, value in expected.items():
        assert added[key] == pytest.approx(value, rel=1e-4, abs=2e-3), key
    assert added["POTENTIAL_ENE"] == pytest.approx(sum(expected.values()), abs=0.02)
    (tmp_path / "a.dihe").write_text("BOND 1 99999 1.0 2.0\n")
    done = chromamd_command("run", "with.inp", cwd=tmp_path)
    assert done.returncode == 3 and "a.dihe, line 1" in done.stderr


def lennard_jones(system: MolecularSystem, cutoff: float, switch: float, form: str) -> float:
    """Energy (kcal/mol) of all pairs within the cutoff that are not excluded."""
    position, box, kind = system.position, system.box, system.topology.per_atom("lj_type")
    excluded = {tuple(pair) for pair in np.sort(system.topology.exclusions(), axis=1).tolist()}
    first, second = cKDTree(np.mod(position, box), boxsize=box).query_pairs(cutoff, output_type="ndarray").T
    keep = [tuple(pair) not in excluded for pair in np.sort(np.stack([first, second], 1), axis=1).tolist()]
    first, second = first[keep], second[keep]
    d = position[first] - position[second]
    r = np.linalg.norm(d - box * np.round(d / box), axis=1)
    c12, c6 = system.topology.lj_c12[kind[first], kind[second]], system.topology.lj_c6[kind[first], kind[second]]
    u = np.clip((r - switch) / (cutoff - switch), 0, 1) if switch < cutoff else np.zeros_like(r)
    if form == "shift":
        width, x, energy = cutoff - switch, np.clip(r - switch, 0, None), 0.0
        for p, coefficient in ((12, c12), (6, -c6)):
            a, b = np.linalg.solve([[width**2, width**3], [2 * width, 3 * width**2]],
                                   [-p * cutoff ** -(p + 1.0), p * (p + 1) * cutoff ** -(p + 2.0)])
            shift = cutoff**-float(p) - a * width**3 / 3 - b * width**4 / 4
            energy += np.sum(coefficient * (r**-float(p) - a * x**3 / 3 - b * x**4 / 4 - shift))
        return energy
    if form == "cubic":
        u = np.clip((r**2 - switch**2) / (cutoff**2 - switch**2), 0, 1)
    weight = {"cut": 1.0, "quintic": 1 - 10 * u**3 + 15 * u**4 - 6 * u**5, "cubic": 1 - 3 * u**2 + 2 * u**3}[form]
    return np.sum(weight * (c12 / r**12 - c6 / r**6))
