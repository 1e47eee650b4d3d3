"""Local restraints of GENESIS (localresfile): harmonic bonds, angles and dihedrals between atoms of one molecule.

A line a restraint: ``BOND i j k r``, ``ANGLE i j m k theta`` or ``DIHEDRAL i j m n k phi``, told apart by four letters,
with atoms counted from 1; the energy is k (x - x0)^2, k in kcal/mol/angstrom^2 or /rad^2, x0 in angstrom or degree
(GENESIS 2.1, module fileio_localres). They become terms of the topology.
"""

from pathlib import Path

import numpy as np
import openmm
from openmm import app
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from chromabuild.base.constants import ANGSTROM_PER_NM, KJ_PER_KCAL
from chromabuild.base.errors import BadInputError

_ATOMS = {"BOND": 2, "ANGL": 3, "DIHE": 4}
_DIHEDRAL = "k*min(dtheta, 2*pi-dtheta)^2; dtheta = abs(theta-theta0); pi = 3.14159265358979"


def add_local_restraints(system: openmm.System, atoms: app.Topology, path: str | Path) -> int:
    """Add what a file says to a System; gives the number of restraints. Raises BadInputError, with file and line, for
    lines that are none, atoms that there are not, and atoms of several molecules."""
    bonds, angles = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce()
    dihedrals = openmm.CustomTorsionForce(_DIHEDRAL)
    dihedrals.addPerTorsionParameter("k")
    dihedrals.addPerTorsionParameter("theta0")
    molecule = _molecules(atoms)
    found = 0
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise BadInputError(f"cannot read {path} ({error.strerror}): check localresfile") from None
    for number, line in enumerate(lines, 1):
        words = line.split()
        kind = words[0][:4].upper() if words else ""
        if kind not in _ATOMS:
            continue
        n = _ATOMS[kind]
        try:
            chosen = [int(word) - 1 for word in words[1:n + 1]]
            constant, reference = (float(word.lower().replace("d", "e")) for word in words[n + 1:])
        except ValueError:
            raise BadInputError(f"{path}, line {number}: '{line.strip()}' is not {kind} with {n} atoms, a constant and "
                                "a reference") from None
        if min(chosen) < 0 or max(chosen) >= len(molecule):
            raise BadInputError(f"{path}, line {number}: the system has {len(molecule)} atoms, not those of "
                                f"'{line.strip()}'")
        if len(set(molecule[chosen])) > 1:
            raise BadInputError(f"{path}, line {number}: '{line.strip()}' joins several molecules: use a restraint of "
                                "[RESTRAINTS]")
        found += 1
        if kind == "BOND":
            bonds.addBond(*chosen, reference / ANGSTROM_PER_NM, 2 * constant * KJ_PER_KCAL * ANGSTROM_PER_NM**2)
        elif kind == "ANGL":
            angles.addAngle(*chosen, np.radians(reference), 2 * constant * KJ_PER_KCAL)
        else:
            turned = (np.radians(reference) + np.pi) % (2 * np.pi) - np.pi
            dihedrals.addTorsion(*chosen, [constant * KJ_PER_KCAL, turned])
    for force, terms in ((bonds, bonds.getNumBonds()), (angles, angles.getNumAngles()),
                         (dihedrals, dihedrals.getNumTorsions())):
        if terms:
            system.addForce(force)
    return found


def _molecules(atoms: app.Topology) -> np.ndarray:
    """(n,) number of the molecule of each atom, by bonds."""
    pairs = np.array([(a.index, b.index) for a, b in atoms.bonds()], dtype=np.int64).reshape(-1, 2)
    n = atoms.getNumAtoms()
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[1]
