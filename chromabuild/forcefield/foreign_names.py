"""Names of atoms and residues as CHARMM, AMBER and GROMACS files have them.

OpenMM's readers rename waters and ions to those of the PDB (TIP3 and OH2 become HOH and O). A selection is written with
the names of the files.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from openmm import app


def give_names(atoms: app.Topology, names: Iterable[tuple[str, str]]) -> None:
    """Give every atom its name and its residue that of the residue."""
    for atom, (name, residue) in zip(atoms.atoms(), names, strict=True):
        atom.name, atom.residue.name = name, residue


def charmm_names(psf: Path) -> Iterator[tuple[str, str]]:
    """Atom and residue of each line of the atoms of a psf: number, segment, residue's number and name, atom, type."""
    left = 0
    with open(psf, encoding="utf-8", errors="replace") as file:
        for line in file:
            if left:
                words = line.split()
                yield words[4], words[3]
                left -= 1
                if not left:
                    return
            elif "!NATOM" in line:
                left = int(line.split()[0])


def amber_names(prmtop: app.AmberPrmtopFile) -> Iterator[tuple[str, str]]:
    """The same of a prmtop."""
    content = prmtop._prmtop
    for k in range(content.getNumAtoms()):
        yield content.getAtomName(k).strip(), content.getResidueLabel(iAtom=k).strip()


def gromacs_names(top: app.GromacsTopFile) -> Iterator[tuple[str, str]]:
    """The same of a top: of the molecules in their order."""
    for name, count in top._molecules:
        for _ in range(count):
            for fields in top._moleculeTypes[name].atoms:
                yield fields[4], fields[3]
