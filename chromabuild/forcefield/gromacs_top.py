"""GROMACS topologies by OpenMM's reader, with parameters of dihedrals and excluded pairs as GROMACS finds them."""

from pathlib import Path

import numpy as np
from openmm import app
from scipy import sparse

from chromabuild.base.errors import BadInputError

_PARAMETERS = {"1": 3, "2": 2, "3": 6, "4": 3, "5": 3, "9": 3}
"""Fewest numbers behind the atoms of a dihedral of each function that make it one with parameters of its own."""
_SAME = {"9": "1"}
"""Functions that differ only in how many sets of parameters a dihedral may have."""


class GromacsTop(app.GromacsTopFile):
    """What OpenMM's reader takes otherwise than GROMACS:

    - Of dihedral types with wildcards it takes the last one that fits, and it joins blocks of function 9 that other
      lines part. GROMACS (toppush.cpp) takes the one with the fewest wildcards, of equals the first, and the first
      block.
    - It scales all pairs at three bonds and excludes those nearer. GROMACS excludes pairs within `nrexcl` bonds, and
      scales those in [ pairs ].

    Raises BadInputError for bonds and angles of GROMOS, which the engine lacks, and where neighbours in a molecule are
    neither excluded nor in [ pairs ], or both in [ pairs ] and not excluded: a System of OpenMM, and the engine, have
    one interaction for a pair.
    """

    def __init__(self, path: str | Path, include: str | Path | None = None) -> None:
        self._latest: tuple[str, ...] = ()
        super().__init__(str(path), **({} if include is None else {"includeDir": str(include)}))
        self._find_dihedrals()
        for name in dict.fromkeys(name for name, _ in self._molecules):
            kind = self._moleculeTypes[name]
            if any(fields[2] == "2" for fields in kind.bonds) or any(fields[3] == "2" for fields in kind.angles):
                raise BadInputError(f"{path}: molecule {name} has bonds or angles of function 2, as GROMOS force "
                                    "fields have, and the engine harmonic ones alone: take a force field of AMBER, "
                                    "CHARMM or OPLS-AA")
            _exclude(kind, name, path)

    def _find_dihedrals(self) -> None:
        """Give dihedrals the parameters of their types."""
        found: dict[tuple[str, ...], list[list[str]]] = {}
        for kind in self._moleculeTypes.values():
            bonded = [self._atomTypes[atom[1]][1] or atom[1] if atom[1] in self._atomTypes else atom[1]
                      for atom in kind.atoms]
            dihedrals = []
            for fields in kind.dihedrals:
                atoms, function, own = fields[:4], fields[4], fields[5:]
                if len(own) >= _PARAMETERS[function]:
                    dihedrals.append(fields)
                    continue
                wanted = (*(bonded[int(atom) - 1] for atom in atoms), _SAME.get(function, function))
                if wanted not in found:
                    found[wanted] = self._best(wanted)
                dihedrals += [[*atoms, function, *own] for own in found[wanted]] or [fields]
            kind.dihedrals = dihedrals

    def _processDihedralType(self, line: str) -> None:  # noqa: N802 (OpenMM's name)
        fields = line.split()
        if len(fields) > 2 and len(fields[2]) == 1 and fields[2].isdigit():  # two inner atoms
            fields = ["X", *fields[:2], "X", *fields[2:]]
        key = tuple(fields[:5])
        parted = key in self._dihedralTypes and key != self._latest
        super()._processDihedralType(line)
        if parted and key[4] == "9":
            self._dihedralTypes[key].pop()
        else:
            self._latest = key

    def _best(self, wanted: tuple[str, ...]) -> list[list[str]]:
        """Sets of parameters for bonded types and a function; empty where no type fits."""
        best, most = [], -1
        *types, function = wanted
        for key, lines in self._dihedralTypes.items():
            *own, kind = key
            if _SAME.get(kind, kind) == function:
                for order in (types, types[::-1]):
                    alike = sum(a == b for a, b in zip(own, order, strict=True))
                    if alike > most and all(a in (b, "X") for a, b in zip(own, order, strict=True)):
                        best, most = lines, alike
        return [line[5:] for line in best]


def _exclude(kind: app.GromacsTopFile._MoleculeType, name: str, path: str | Path) -> None:
    """Add the exclusions that OpenMM's reader does not make of the bonds of a molecule."""
    n = len(kind.atoms)
    joined = [fields[:2] for fields in kind.bonds] + [fields[:2] for fields in kind.constraints if fields[2] == "1"]
    bonds = np.array(joined, dtype=np.int64).reshape(-1, 2) - 1
    near, scaled, excluded = _within(bonds, n, (2, 3, kind.nrexcl))
    told = _keys([(int(fields[0]), int(other)) for fields in kind.exclusions for other in fields[1:]], n)
    pairs = _keys([(int(fields[0]), int(fields[1])) for fields in kind.pairs], n)
    rest = f"nrexcl = {kind.nrexcl} and [ exclusions ] do not exclude them"
    for wrong, words in ((np.setdiff1d(scaled, np.concatenate([excluded, told, pairs])),
                          f"within three bonds are not in [ pairs ], and {rest}"),
                         (np.setdiff1d(pairs, np.concatenate([excluded, told])), f"are in [ pairs ], and {rest}")):
        if len(wrong):
            a, b = divmod(int(wrong[0]), n)
            raise BadInputError(f"{path}: atoms {a + 1} and {b + 1} of molecule {name} {words}: exclude neighbours "
                                "within three bonds, and give those that interact in [ pairs ]")
    for key in np.setdiff1d(excluded, np.concatenate([near, told, pairs])).tolist():
        kind.exclusions.append([str(atom + 1) for atom in divmod(key, n)])


def _keys(pairs: list[tuple[int, int]], n: int) -> np.ndarray:
    """Pairs of atoms, from 1, as numbers: the lower atom, from 0, times ``n`` and the higher one."""
    rows = np.sort(np.array(pairs, dtype=np.int64).reshape(-1, 2) - 1, axis=1)
    return np.unique(rows[:, 0] * n + rows[:, 1])


def _within(bonds: np.ndarray, n: int, counts: tuple[int, ...]) -> list[np.ndarray]:
    """For each count the numbers, as of ``_keys``, of pairs that so many bonds or fewer join; ``bonds``: (b, 2), from
    0."""
    step = sparse.csr_array((np.ones(len(bonds)), bonds.T), shape=(n, n))
    step = step + step.T + sparse.eye_array(n, format="csr")
    reached, found = sparse.eye_array(n, format="csr"), {}
    for count in range(max(counts) + 1):
        if count in counts:
            rows, columns = sparse.triu(reached, 1).nonzero()
            found[count] = np.unique(rows.astype(np.int64) * n + columns)
        if count < max(counts):
            reached = reached @ step
            reached.data[:] = 1.0
    return [found[count] for count in counts]
