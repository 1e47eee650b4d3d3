"""Topologies that GROMACS' pdb2gmx makes, imported: dihedrals have the parameters that grompp finds for them, and the
same pairs are excluded and scaled.

These force fields have what OpenMM's reader takes otherwise: OPLS-AA dihedral types with wildcards of which several
fit, CHARMM27 the same types in two files, AMBER impropers by wildcards.
"""

import os
import re
import shutil
import subprocess
from collections import defaultdict

import numpy as np
import pytest
from support.solvated_example import SOLUTE

from chromabuild.base.errors import BadInputError
from chromabuild.export.region import residues_of
from chromabuild.export.structure import write_structure
from chromabuild.forcefield.gromacs_top import GromacsTop
from chromabuild.forcefield.import_files import import_system
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute

GMX = shutil.which("gmx")
ANGLE = np.linspace(-np.pi, np.pi, 25)
KCAL = 4.184
SETTINGS = "integrator = steep\nnsteps = 1\nrcoulomb = 0.9\nrvdw = 0.9\n"


def gmx(folder, *words: object) -> str:
    done = subprocess.run([GMX, "-quiet", *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300,
                          env=os.environ | {"GMX_MAXBACKUP": "-1"})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def found_by_grompp(text: str) -> dict[tuple[int, ...], np.ndarray]:
    """Energy, kJ/mol, as a function of the angle for four atoms, from 0, the lower end first, of a tpr's dump."""
    kinds = {int(number): (name, values) for number, name, values in
             re.findall(r"functype\[(\d+)\]=(\w+),([^\n]*)", text)}
    found: dict[tuple[int, ...], np.ndarray] = defaultdict(lambda: np.zeros(len(ANGLE)))
    first = 0
    for molecule in re.split(r"moltype \(\d+\)", text)[1:]:
        for line in re.findall(r"type=(\d+) \((?:PDIHS|PIDIHS|RBDIHS)\)((?: +\d+){4})", molecule):
            name, values = kinds[int(line[0])]
            atoms = tuple(first + int(atom) for atom in line[1].split())
            number = dict(re.findall(r"(\w+(?:\[\d\])?)= *([-+.\deE]+)", values))
            if name == "RBDIHS":
                energy = sum(float(number[f"rbcA[{k}]"]) * np.cos(ANGLE - np.pi) ** k for k in range(6))
            else:
                energy = float(number["cpA"]) * (1 + np.cos(int(number["mult"]) * ANGLE
                                                            - np.radians(float(number["phiA"]))))
            found[min(atoms, atoms[::-1])] += energy
        first += len(re.findall(r"atom\[ *\d+\]=\{type", molecule))
    return found


def pairs_by_grompp(text: str) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Excluded pairs of atoms, from 0, and those of [ pairs ]."""
    excluded, scaled, first = set(), set(), 0
    for molecule in re.split(r"moltype \(\d+\)", text)[1:]:
        for atom, others in re.findall(r"excls\[(\d+)\]\[num=\d+\]=\{([^}]*)\}", molecule):
            behind = [int(other) for other in others.split(",") if int(other) > int(atom)]
            excluded |= {(first + int(atom), first + other) for other in behind}
        scaled |= {(first + min(int(a), int(b)), first + max(int(a), int(b))) for a, b in
                   re.findall(r"\(LJ14\) +(\d+) +(\d+)", molecule)}
        first += len(re.findall(r"atom\[ *\d+\]=\{type", molecule))
    return excluded, scaled


@pytest.mark.skipif(GMX is None, reason="GROMACS is not installed")
@pytest.mark.parametrize(("force_field", "molecules"), [
    ("oplsaa", [2]), ("charmm27", [2]), ("amber99sb-ildn", [2]), ("amber99sb-ildn", [0, 1])])
def test_dihedrals(tmp_path, force_field, molecules):
    solute = Solute.read(SOLUTE)
    first = solute.molecule_first_residue
    part = residues_of(solute, [(k, np.arange(first[k], first[k + 1])) for k in molecules])
    write_structure(part, tmp_path / "part.pdb", "part")
    gmx(tmp_path, "pdb2gmx", "-f", "part.pdb", "-o", "made.gro", "-p", "topol.top", "-ff", force_field, "-water",
        "none", "-ignh")
    gmx(tmp_path, "editconf", "-f", "made.gro", "-o", "boxed.gro", "-d", 2)
    (tmp_path / "run.mdp").write_text(SETTINGS)
    gmx(tmp_path, "grompp", "-f", "run.mdp", "-c", "boxed.gro", "-p", "topol.top", "-o", "run.tpr", "-maxwarn", 2)
    text = gmx(tmp_path, "dump", "-s", "run.tpr")
    wanted = found_by_grompp(text)
    import_system(tmp_path / "topol.top", tmp_path / "boxed.gro", [], tmp_path / "imported",
                  include=os.environ.get("GMXLIB", "/usr/share/gromacs/top"))
    topology = Topology.read(tmp_path / "imported" / "topology.h5")
    assert pairs_by_grompp(text) == tuple(
        {tuple(sorted(pair)) for pair in rows.tolist()} for rows in (topology.exclusions(),
                                                                     topology.term("pair14")["atoms"]))
    term = topology.term("dihedral")
    ours: dict[tuple[int, ...], np.ndarray] = defaultdict(lambda: np.zeros(len(ANGLE)))
    for atoms, k, n, phase in zip(map(tuple, term["atoms"].tolist()), term["k"], term["n"], term["phase"], strict=True):
        ours[min(atoms, atoms[::-1])] += KCAL * k * (1 + np.cos(n * ANGLE - np.radians(phase)))
    for atoms in wanted.keys() | ours.keys():
        one, other = (found.get(atoms, np.zeros(len(ANGLE))) for found in (wanted, ours))
        assert one - one.mean() == pytest.approx(other - other.mean(), abs=2e-5), atoms


TOP = """[ defaults ]
1 2 yes 0.5 0.5
[ atomtypes ]
A 6 12.0 0 A 0.3 0.1
B 6 12.0 0 A 0.3 0.1
C 6 12.0 0 A 0.3 0.1
[ dihedraltypes ]
{types}
[ moleculetype ]
M {nrexcl}
[ atoms ]
1 A 1 MOL A1 1 0 12
2 B 1 MOL B2 1 0 12
3 B 1 MOL B3 1 0 12
4 C 1 MOL C4 1 0 12
[ bonds ]
1 2 1 0.15 1000
2 3 1 0.15 1000
3 4 1 0.15 1000
[ dihedrals ]
1 2 3 4 {function}
{more}
[ system ]
one
[ molecules ]
M 1
"""


@pytest.mark.parametrize(("function", "types", "wanted"), [
    ("9", "X B B X 9 0 1 1\nA B B X 9 0 2 2\nX B B C 9 0 3 3", [("2", "2")]),  # fewest wildcards, of equals the first
    ("9", "X B B X 9 0 1 1\nC B B A 9 0 4 1\nX X B C 9 0 3 3", [("4", "1")]),  # backwards
    ("9", "A B B C 9 0 5 1\nA B B C 9 0 6 2\nX B B X 9 0 1 1", [("5", "1"), ("6", "2")]),
    ("9", "A B B C 9 0 5 1\nX B B X 9 0 1 1\nA B B C 9 0 5 1", [("5", "1")]),  # a second block
    ("9", "B B 9 0 7 1", [("7", "1")]),  # inner atoms alone
    ("4", "X X B C 4 180 1 2\nX B B C 4 180 2 2\nA B B C 9 0 5 1", [("2", "2")]),  # of its own kind
    ("1", "A B B C 9 0 5 1", [("5", "1")])])
def test_rules(tmp_path, function, types, wanted):
    (tmp_path / "a.top").write_text(TOP.format(types=types, function=function, nrexcl=3, more=""))
    (kind,) = GromacsTop(tmp_path / "a.top")._moleculeTypes.values()
    assert [(fields[6], fields[7]) for fields in kind.dihedrals] == wanted


def test_bonds_of_gromos_are_refused(tmp_path):
    text = TOP.format(types="", function="9 0 1 1", nrexcl=3, more="")
    (tmp_path / "a.top").write_text(text.replace("3 4 1 0.15", "3 4 2 0.15"))
    atoms = "".join(f"{1:5d}{'MOL':<5s}{f'A{k}':>5s}{k:5d}{0.15 * k:8.3f}{0:8.3f}{0:8.3f}\n" for k in range(1, 5))
    (tmp_path / "a.gro").write_text(f"one\n4\n{atoms}   3.0   3.0   3.0\n")
    with pytest.raises(BadInputError, match="a.top: molecule M has bonds or angles of function 2, as GROMOS"):
        import_system(tmp_path / "a.top", tmp_path / "a.gro", [], tmp_path / "imported")
    assert not (tmp_path / "imported" / "topology.h5").exists()


@pytest.mark.parametrize(("nrexcl", "more", "excluded"), [
    (3, "", [(1, 4)]), (3, "[ pairs ]\n1 4 1", []), (3, "[ exclusions ]\n1 4", [(1, 4)]), (4, "", [(1, 4)]),
    (2, "[ exclusions ]\n1 4", [(1, 4)]), (2, "[ exclusions ]\n1 4\n[ pairs ]\n1 4 1", [(1, 4)])])
def test_pairs_at_three_bonds(tmp_path, nrexcl, more, excluded):
    """Those of [ pairs ] interact, the others do not; what [ exclusions ] says stays, and [ pairs ] goes before it."""
    (tmp_path / "a.top").write_text(TOP.format(types="", function="9 0 1 1", nrexcl=nrexcl, more=more))
    (kind,) = GromacsTop(tmp_path / "a.top")._moleculeTypes.values()
    assert [tuple(map(int, fields)) for fields in kind.exclusions] == excluded


@pytest.mark.parametrize(("nrexcl", "more", "words"), [
    (2, "", r"atoms 1 and 4 of molecule M within three bonds are not in \[ pairs \], and nrexcl = 2 and"),
    (1, "", r"atoms 1 and 3 of molecule M within three bonds are not in \[ pairs \], and nrexcl = 1 and"),
    (2, "[ pairs ]\n1 4 1", r"atoms 1 and 4 of molecule M are in \[ pairs \], and nrexcl = 2 and")])
def test_pairs_that_interact_otherwise_are_refused(tmp_path, nrexcl, more, words):
    (tmp_path / "a.top").write_text(TOP.format(types="", function="9 0 1 1", nrexcl=nrexcl, more=more))
    with pytest.raises(BadInputError, match=words):
        GromacsTop(tmp_path / "a.top")
