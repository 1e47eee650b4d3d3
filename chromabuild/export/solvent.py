"""Water and ions around a solute, for structure files."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.export.elements import ELEMENTS, nearest_element
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology

_BLOCK = 1 << 14
"""Molecules at once."""


@dataclass(frozen=True)
class SolventKind:
    """Molecules of one kind that stand for themselves: waters, or ions of one element."""

    residue: str
    is_water: bool
    names: list[str]
    elements: list[str]
    """Of the atoms of a molecule; sites without mass are left out."""
    position: np.ndarray
    """(m, atoms, 3) angstrom."""

    @property
    def n_atoms(self) -> int:
        """Of all of them."""
        return self.position.shape[0] * self.position.shape[1]


def solvent_near(topology: Topology, position: np.ndarray, box: np.ndarray, solute: np.ndarray,
                 distance: float) -> list[SolventKind]:
    """Waters and ions whose first atom is within a ``distance`` of one of ``solute`` (n, 3), in the image next to it.

    ``position``: (atoms, 3) of the whole system, angstrom; ``box``: (3,) edges.
    """
    tree = cKDTree(np.mod(solute, box), boxsize=box)
    found: dict[int, list[np.ndarray]] = {}
    for t, count, first in zip(topology.run_template.tolist(), topology.run_count.tolist(),
                               topology.run_first_atom.tolist(), strict=False):
        template = topology.templates[t]
        if not (template.rigid_water or template.n_atoms == 1):
            continue
        molecules = position[first:first + count * template.n_atoms].reshape(count, -1, 3)
        for start in range(0, count, _BLOCK):
            block = molecules[start:start + _BLOCK]
            apart, nearest = tree.query(np.mod(block[:, 0], box), distance_upper_bound=distance)
            near = np.isfinite(apart)
            block = block[near]
            # Whole around the first atom, which stands in the image next to the solute.
            block = block - box * np.round((block - block[:, :1]) / box)
            away = block[:, 0] - solute[nearest[near]]
            found.setdefault(t, []).append(block - (box * np.round(away / box))[:, None])
    kinds = [_kind(topology.templates[t], np.concatenate(pieces)) for t, pieces in found.items()]
    return [kind for kind in kinds if kind.n_atoms]


def _kind(template: MoleculeTemplate, position: np.ndarray) -> SolventKind:
    real = template.mass > 0
    elements = [ELEMENTS[k].symbol.upper() for k in nearest_element(template.mass[real]).tolist()]
    return SolventKind(template.residue_name[0].decode(), template.rigid_water,
                       [name.decode() for name in template.atom_name[real]], elements, position[:, real])


def solvent_lines(kinds: list[SolventKind], first_id: int, entity: int, chains: list[str],
                  quoted: list[list[str]]) -> Iterator[list[str]]:
    """Lines of atom_site, in its order of items: atoms from number ``first_id``, entities from ``entity``; ``chains``:
    one a kind; ``quoted``: names of atoms as CIF writes them."""
    number = first_id
    for k, (kind, chain, names) in enumerate(zip(kinds, chains, quoted, strict=True)):
        heads = [f"{element} {name} . {kind.residue} {chain} {entity + k} . ? "
                 for element, name in zip(kind.elements, names, strict=True)]
        for start in range(0, len(kind.position), _BLOCK):
            lines = []
            for molecule, atoms in enumerate(kind.position[start:start + _BLOCK].tolist(), start + 1):
                for head, (x, y, z) in zip(heads, atoms, strict=True):
                    lines.append(f"HETATM {number} {head}{x:.3f} {y:.3f} {z:.3f} 1.00 0.00 {molecule} {chain} 1\n")
                    number += 1
            yield lines
