"""Correction maps (CMAP) for GROMACS, which finds the map of five atoms by their bonded types.

The bonded types here say no more than which atom of a map one is: C, N, or the C-alpha of map k. GROMACS reference
manual, "Topology file formats" and "Correction maps".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from chromabuild.base.constants import KJ_PER_KCAL
from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology

_FIRST_OF_MAP = 3
"""Role of the C-alpha of map 0; 0: in no map, 1: C, 2: N."""


@dataclass(frozen=True)
class AtomKinds:
    """GROMACS' atom types: Lennard-Jones types, where there are correction maps by the atoms' roles in them."""

    names: list[str]
    lj_type: np.ndarray
    """(k,) Lennard-Jones type of each."""
    bonded: list[str]
    """Bonded type of each; empty where there are no maps."""
    of_template: list[np.ndarray]
    """By kind of molecule, the kind of each atom."""

    @classmethod
    def of(cls, topology: Topology, names: Sequence[str]) -> "AtomKinds":
        """Those of a topology; ``names``: of its Lennard-Jones types. Raises BadInputError for an atom in two roles."""
        if len(topology.cmap_energy) == 0:
            return cls(list(names), np.arange(len(names)), [], [t.lj_type for t in topology.templates])
        roles = [_roles(template) for template in topology.templates]
        keys = np.concatenate([np.column_stack([t.lj_type, role])
                               for t, role in zip(topology.templates, roles, strict=True)])
        kinds, member = np.unique(keys, axis=0, return_inverse=True)
        ends = np.cumsum([t.n_atoms for t in topology.templates])[:-1]
        return cls([names[t] if role == 0 else f"{names[t]}_{_bonded(role)}" for t, role in kinds.tolist()],
                   kinds[:, 0], [_bonded(role) for role in kinds[:, 1].tolist()], np.split(member.ravel(), ends))


def _bonded(role: int) -> str:
    return ("X", "mC", "mN")[role] if role < _FIRST_OF_MAP else f"mA{role - _FIRST_OF_MAP}"


def _roles(template: MoleculeTemplate) -> np.ndarray:
    role = np.zeros(template.n_atoms, dtype=np.int64)
    columns = (np.full(len(template.cmap_map), 1), np.full(len(template.cmap_map), 2),
               template.cmap_map + _FIRST_OF_MAP)
    for column, wanted in zip((0, 3, 1, 4, 2), (0, 0, 1, 1, 2), strict=True):
        atoms = template.cmap_atoms[:, column]
        if ((role[atoms] != 0) & (role[atoms] != columns[wanted])).any():
            raise BadInputError(f"{template.name} has correction maps (CMAP) that share atoms otherwise than along a "
                                "protein, which the export to GROMACS does not translate: export to OpenMM")
        role[atoms] = columns[wanted]
    return role


def write_maps(file: TextIO, topology: Topology) -> None:
    """The section of the maps; nothing where there are none. GROMACS' maps begin at -180 degrees, psi runs faster."""
    if len(topology.cmap_energy) == 0:
        return
    size = round(topology.cmap_energy.shape[1] ** 0.5)
    file.write("\n[ cmaptypes ]\n")
    for k, energy in enumerate(topology.cmap_energy):
        rows = np.roll(energy.reshape(size, size), size // 2, axis=(0, 1)).ravel() * KJ_PER_KCAL
        lines = [" ".join(f"{value:.9g}" for value in rows[i:i + 8].tolist()) for i in range(0, len(rows), 8)]
        file.write(f"mC mN mA{k} mC mN 1 {size} {size}\\\n" + "\\\n".join(lines) + "\n\n")
