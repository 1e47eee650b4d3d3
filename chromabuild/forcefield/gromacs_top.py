"""GROMACS topologies by OpenMM's reader, with parameters of dihedrals as GROMACS finds them."""

from pathlib import Path

from openmm import app

_PARAMETERS = {"1": 3, "2": 2, "3": 6, "4": 3, "5": 3, "9": 3}
"""Fewest numbers behind the atoms of a dihedral of each function that make it one with parameters of its own."""
_SAME = {"9": "1"}
"""Functions that differ only in how many sets of parameters a dihedral may have."""


class GromacsTop(app.GromacsTopFile):
    """OpenMM's reader takes of dihedral types with wildcards the last one that fits, and joins blocks of function 9
    that other lines part. GROMACS (toppush.cpp) takes the one with the fewest wildcards, of equals the first, and the
    first block.
    """

    def __init__(self, path: str | Path, include: str | Path | None = None) -> None:
        self._latest: tuple[str, ...] = ()
        super().__init__(str(path), **({} if include is None else {"includeDir": str(include)}))
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
