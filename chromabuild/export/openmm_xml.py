"""A System and a State of OpenMM as it serialises them, molecule by molecule: water takes disk and no memory.

OpenMM itself would hold a System, its tree and its text, 2 kB an atom. Rows of its XML are those of one molecule of
each kind, which OpenMM serialises, with the numbers of atoms moved.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TextIO

import numpy as np
import openmm

from chromabuild.base.box_vectors import vectors_of
from chromabuild.base.constants import ANGSTROM_PER_NM
from chromabuild.export.blocks import molecule_blocks, row_blocks
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.simulate.openmm_engine import NonbondedOptions, system_from_topology, tail_energy

_LISTS = {"Particles", "Constraints", "Bonds", "Angles", "Torsions", "Exceptions", "Exclusions"}
"""Elements whose children belong to atoms: the same in every copy of a molecule but for the numbers of these."""
_ATOM = re.compile(r'(?<= )([pab]\d)="(\d+)"')


@dataclass(frozen=True)
class _Rows:
    """Rows of one list, of one molecule: text with ``%d`` for the numbers of atoms, and these, from 0."""

    text: str
    atoms: np.ndarray

    def copies(self, first: int, size: int, count: int) -> str:
        """Of ``count`` molecules of ``size`` atoms from atom ``first`` on."""
        if not len(self.atoms):
            return self.text * count
        starts = first + size * np.arange(count)
        return (self.text * count) % tuple((starts[:, None] + self.atoms).ravel().tolist())


def write_system(file: TextIO, topology: Topology, box: np.ndarray, options: NonbondedOptions) -> None:
    """Write what ``XmlSerializer`` makes of ``system_from_topology`` with rigid bonds, rows in the order of molecules.

    ``box``: (3,) edges or (3, 3) vectors, angstrom.
    """
    kinds = np.unique(topology.run_template)
    one_of_each = replace(topology, templates=[topology.templates[k] for k in kinds.tolist()],
                          run_template=np.arange(len(kinds), dtype=np.int32), run_count=np.ones(len(kinds), dtype=int),
                          run_residue=None, run_segid=None)
    made = system_from_topology(one_of_each, box, options, rigid=True, by_term=False)
    for force in made.getForces():
        if isinstance(force, openmm.CustomVolumeForce):
            force.setEnergyFunction(tail_energy(topology, options))
    lines = openmm.XmlSerializer.serialize(made).splitlines(keepends=True)
    del made
    place = dict(zip(kinds.tolist(), range(len(kinds)), strict=True))
    rest = iter(lines)
    for line in rest:
        file.write(line)
        name = re.match(r"\s*<(\w+)>", line)
        if name and name[1] in _LISTS:
            rows = _rows_of(rest, f"</{name[1]}>", one_of_each)
            for t, first, count in molecule_blocks(topology):
                file.write(rows[place[t]].copies(first, topology.templates[t].n_atoms, count))
            file.write(line.replace("<", "</"))


def _rows_of(lines: Iterator[str], end: str, one_of_each: Topology) -> list[_Rows]:
    """The rows up to the end of a list, by molecule."""
    starts = one_of_each.run_first_atom
    texts: list[list[str]] = [[] for _ in one_of_each.templates]
    atoms: list[list[int]] = [[] for _ in one_of_each.templates]
    number, depth, row = 0, 0, ""
    for line in lines:
        if line.strip() == end:
            break
        row += line
        opened = 1 - line.count("/>") - 2 * line.count("</")  # an element a line: it opens, closes, or does both
        depth += opened
        if depth:
            continue
        found = [int(value) for _, value in _ATOM.findall(row)]
        atom = number if "<Particle " in row else found[0]
        t = int(np.searchsorted(starts, atom, side="right")) - 1
        texts[t].append(_ATOM.sub(r'\1="%d"', row.replace("%", "%%")))
        atoms[t] += [value - int(starts[t]) for value in found]
        number, row = number + 1, ""
    return [_Rows("".join(text) if own else "".join(text).replace("%%", "%"), np.array(own, dtype=np.int64))
            for text, own in zip(texts, atoms, strict=True)]


def write_state(file: TextIO, system: BuiltSystem) -> None:
    """Write positions, with virtual sites where they belong, velocities, 0 where there are none, and the box."""
    file.write(f'<?xml version="1.0" ?>\n<State openmmVersion="{openmm.Platform.getOpenMMVersion()}" stepCount="0" '
               'time="0" type="State" version="1">\n\t<PeriodicBoxVectors>\n')
    for name, vector in zip("ABC", (vectors_of(system.box) / ANGSTROM_PER_NM).tolist(), strict=True):
        file.write(f'\t\t<{name} x="{vector[0]!r}" y="{vector[1]!r}" z="{vector[2]!r}"/>\n')
    file.write("\t</PeriodicBoxVectors>\n\t<Positions>\n")
    for t, first, count in molecule_blocks(system.topology):
        template = system.topology.templates[t]
        block = np.array(system.position[first:first + count * template.n_atoms]).reshape(count, -1, 3)
        _write_vectors(file, "Position", _with_sites(block, template).reshape(-1, 3))
    file.write("\t</Positions>\n\t<Velocities>\n")
    for rows in row_blocks(system.topology.n_atoms):
        if system.velocity is None:
            file.write('\t\t<Velocity x="0" y="0" z="0"/>\n' * (rows.stop - rows.start))
        else:
            _write_vectors(file, "Velocity", system.velocity[rows])
    file.write("\t</Velocities>\n</State>\n")


def _with_sites(position: np.ndarray, template: MoleculeTemplate) -> np.ndarray:
    """Positions (count, atoms, 3) of whole molecules, virtual sites placed anew."""
    if len(template.virtual_site_atoms):
        site, *parents = template.virtual_site_atoms.T
        first, second, third = (position[:, parent] for parent in parents)
        w2, w3 = template.virtual_site_w2[:, None], template.virtual_site_w3[:, None]
        position[:, site] = first + w2 * (second - first) + w3 * (third - first)
    return position


def _write_vectors(file: TextIO, name: str, values: np.ndarray) -> None:
    """(n, 3) angstrom, or angstrom/ps."""
    file.writelines(f'\t\t<{name} x="{x!r}" y="{y!r}" z="{z!r}"/>\n'
                    for x, y, z in (values / ANGSTROM_PER_NM).tolist())
