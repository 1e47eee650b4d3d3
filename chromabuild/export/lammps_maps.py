"""Correction maps (CMAP) for LAMMPS, whose ``fix cmap`` knows six maps of 24 x 24 points: one fix for each six."""

from dataclasses import dataclass

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.export.blocks import total
from chromabuild.forcefield.topology_file import Topology

MAPS_A_FIX, POINTS = 6, 24
_DIGITS = 10


@dataclass(frozen=True)
class CorrectionMaps:
    """Maps that a system uses, and terms by the fix that has their map."""

    files: list[np.ndarray]
    """(6 or fewer,) maps of the topology in the file of each fix."""
    rows: list[list[np.ndarray]]
    """By fix and kind of molecule: map, from 1, and five atoms, from 0."""

    @classmethod
    def of(cls, topology: Topology) -> "CorrectionMaps":
        """Raises BadInputError for maps of another size."""
        used = np.unique(np.concatenate([topology.templates[t].cmap_map for t in np.unique(topology.run_template)]))
        if len(used) and topology.cmap_energy.shape[1] != POINTS**2:
            raise BadInputError(f"correction maps (CMAP) of this force field have not {POINTS} x {POINTS} points, as "
                                "LAMMPS' have: export to gromacs or openmm")
        files = [used[k:k + MAPS_A_FIX] for k in range(0, len(used), MAPS_A_FIX)]
        rows = []
        for numbers in files:
            own = [np.isin(template.cmap_map, numbers) for template in topology.templates]
            rows.append([np.column_stack([np.searchsorted(numbers, template.cmap_map[here]) + 1,
                                          template.cmap_atoms[here]])
                         for template, here in zip(topology.templates, own, strict=True)])
        return cls(files, rows)

    def headers(self, topology: Topology) -> list[str]:
        """The line at the head of a data file that counts the terms of each fix.

        LAMMPS takes a line for that of the first fix whose own stands in it: leading zeros, fewer in each, tell them
        apart.
        """
        counts = [total(topology, [len(own) for own in rows]) for rows in self.rows]
        return [f"{count:0{_DIGITS + len(counts) - k}d} crossterms" for k, count in enumerate(counts)]
