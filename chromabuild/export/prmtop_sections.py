"""Sections of a prmtop: numbers in the columns that its formats declare, terms by types of parameters, maps.

Formats: "AMBER Parameter/Topology File Format" (ambermd.org/FileFormats).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from chromabuild.export.blocks import distinct_rows, molecule_blocks, total
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.groups import HEAVIEST_HYDROGEN

_FORMATS = {"8d": ("10I8", 10, "%8d"), "16.8E": ("5E16.8", 5, "%16.8E"), "4s": ("20a4", 20, "%-4.4s"),
            "2I8": ("2I8", 2, "%8d"), "6I8": ("6I8", 6, "%8d"), "20I4": ("20I4", 20, "%4d"),
            "9.5f": ("8(F9.5)", 8, "%9.5f")}
"""As a section declares it, values a line, and a value."""


def write_section(file: TextIO, title: str, form: str, values: Iterable) -> None:
    """A section, in the columns of its format; ``values``: numbers, or blocks of them."""
    declared, per_line, cell = _FORMATS[form]
    file.write(f"%FLAG {title}\n%FORMAT({declared})\n")
    is_blocks = isinstance(values, Iterator)
    rest, is_empty, block = [], True, per_line * 1000
    for one in values if is_blocks else [np.asarray(values)]:
        flat = rest + one.ravel().tolist()
        whole = len(flat) // per_line * per_line
        for start in range(0, whole, block):
            part = flat[start:min(start + block, whole)]
            file.write((cell * per_line + "\n") * (len(part) // per_line) % tuple(part))
        rest, is_empty = flat[whole:], is_empty and not flat
    if rest or is_empty:
        file.write(cell * len(rest) % tuple(rest) + "\n")


@dataclass(frozen=True)
class TypedTerms:
    """Terms of a kind of every kind of molecule, and the distinct parameters that they have."""

    types: np.ndarray
    """(types, parameters)."""
    atoms: list[np.ndarray]
    """(n, 2..6) from 0; behind four atoms the marks of dihedrals."""
    number: list[np.ndarray]
    """(n,) of the parameters, from 1."""

    @classmethod
    def of(cls, kinds: Sequence[tuple[np.ndarray, np.ndarray]]) -> "TypedTerms":
        """From atoms and parameters of each kind of molecule."""
        types, which = distinct_rows([values for _, values in kinds])
        return cls(types, [atoms.astype(np.int64) for atoms, _ in kinds], [number + 1 for number in which])

    def _chosen(self, topology: Topology, has_hydrogen: bool) -> list[np.ndarray]:
        """Of each kind of molecule the terms with an atom of hydrogen, or those without."""
        hydrogen = [(t.mass < HEAVIEST_HYDROGEN) & (t.mass > 0) for t in topology.templates]
        return [np.flatnonzero(own[atoms[:, :4]].any(axis=1) == has_hydrogen)
                for own, atoms in zip(hydrogen, self.atoms, strict=True)]

    def count(self, topology: Topology, has_hydrogen: bool) -> int:
        """How many the system has."""
        return total(topology, [len(rows) for rows in self._chosen(topology, has_hydrogen)])

    def numbered(self, topology: Topology) -> Iterator[np.ndarray]:
        """All terms: atoms, from 1, and the number of the parameters."""
        for t, first, count in molecule_blocks(topology):
            if len(self.atoms[t]):
                offsets = first + 1 + topology.templates[t].n_atoms * np.arange(count, dtype=np.int64)
                rows = self.atoms[t] + offsets[:, None, None]
                numbers = np.broadcast_to(self.number[t][:, None], (count, len(self.atoms[t]), 1))
                yield np.concatenate([rows, numbers], axis=2)

    def rows(self, topology: Topology, has_hydrogen: bool) -> Iterator[np.ndarray]:
        """AMBER's numbers of the first coordinates of the atoms, with marks, and the number of the parameters."""
        chosen = self._chosen(topology, has_hydrogen)
        for t, first, count in molecule_blocks(topology):
            atoms, number = self.atoms[t][chosen[t]], self.number[t][chosen[t]]
            if len(atoms) == 0:
                continue
            offsets = first + topology.templates[t].n_atoms * np.arange(count, dtype=np.int64)
            rows = 3 * (atoms[None, :, :4] + offsets[:, None, None])
            for column, marks in enumerate(atoms[:, 4:].T, 2):
                rows[:, :, column] *= np.where(marks, -1, 1)
            yield np.concatenate([rows, np.broadcast_to(number[:, None], (count, len(atoms), 1))], axis=2)


def write_maps(file: TextIO, topology: Topology, prefix: str = "") -> None:
    """Correction maps; nothing where there are none. They begin at -180 degrees, psi runs faster.

    ``prefix``: of the names of the sections.
    """
    maps = TypedTerms.of([(template.cmap_atoms, template.cmap_map[:, None]) for template in topology.templates])
    n = total(topology, [len(atoms) for atoms in maps.atoms])
    if not n:
        return
    used = maps.types[:, 0]
    size = round(topology.cmap_energy.shape[1] ** 0.5)
    write_section(file, f"{prefix}CMAP_COUNT", "2I8", [n, len(used)])
    write_section(file, f"{prefix}CMAP_RESOLUTION", "20I4", np.full(len(used), size))
    for k, energy in enumerate(topology.cmap_energy[used], 1):
        write_section(file, f"{prefix}CMAP_PARAMETER_{k:02d}", "9.5f",
                      np.roll(energy.reshape(size, size), size // 2, axis=(0, 1)))
    write_section(file, f"{prefix}CMAP_INDEX", "6I8", maps.numbered(topology))


def write_charmm_terms(file: TextIO, topology: Topology) -> None:
    """Urey-Bradley terms and harmonic impropers, of which CHAMBER files have a list each, also an empty one."""
    urey = TypedTerms.of([(t.urey_bradley_atoms, np.column_stack([t.urey_bradley_k, t.urey_bradley_r0]))
                          for t in topology.templates])
    write_section(file, "CHARMM_UREY_BRADLEY_COUNT", "2I8", [_all(topology, urey), len(urey.types)])
    write_section(file, "CHARMM_UREY_BRADLEY", "8d", urey.numbered(topology))
    for k, name in enumerate(("FORCE_CONSTANT", "EQUIL_VALUE")):
        write_section(file, f"CHARMM_UREY_BRADLEY_{name}", "16.8E", urey.types[:, k])
    impropers = TypedTerms.of([(t.improper_atoms, np.column_stack([t.improper_k, np.radians(t.improper_psi0)]))
                               for t in topology.templates])
    write_section(file, "CHARMM_NUM_IMPROPERS", "8d", [_all(topology, impropers)])
    write_section(file, "CHARMM_IMPROPERS", "8d", impropers.numbered(topology))
    write_section(file, "CHARMM_NUM_IMPR_TYPES", "8d", [len(impropers.types)])
    for k, name in enumerate(("FORCE_CONSTANT", "PHASE")):
        write_section(file, f"CHARMM_IMPROPER_{name}", "16.8E", impropers.types[:, k])


def _all(topology: Topology, terms: TypedTerms) -> int:
    return total(topology, [len(atoms) for atoms in terms.atoms])
