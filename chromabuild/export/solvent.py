"""Water and ions around a solute, for structure files."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.box_vectors import folded, nearest_image, with_images
from chromabuild.export.blocks import molecule_blocks
from chromabuild.export.elements import ELEMENTS, nearest_element
from chromabuild.forcefield.topology_file import Topology
from chromabuild.shards import StoredVectors


@dataclass(frozen=True)
class SolventKind:
    """Molecules of one kind that stand for themselves: waters, or ions of one element."""

    residue: str
    is_water: bool
    names: list[str]
    elements: list[str]
    """Of the atoms of a molecule; sites without mass are left out."""
    count: int
    """Molecules."""
    blocks: Callable[[], Iterable[np.ndarray]]
    """(m, atoms, 3) angstrom, some molecules at a time."""

    @property
    def n_atoms(self) -> int:
        """Of all of them."""
        return self.count * len(self.names)

    @property
    def position(self) -> np.ndarray:
        """(count, atoms, 3) of all, in memory."""
        return np.concatenate([np.zeros((0, len(self.names), 3)), *self.blocks()])


def solvent_near(topology: Topology, position: np.ndarray | StoredVectors, box: np.ndarray, solute: np.ndarray,
                 distance: float, behind: int = 0) -> list[SolventKind]:
    """Waters and ions whose first atom is within a ``distance`` of one of ``solute`` (n, 3), in the image next to it.

    ``position``: (atoms, 3) of the whole system, angstrom; ``box``: (3,) edges or (3, 3) vectors. ``behind``: atoms of
    the system that belong to its solute, and are none of these. One block of molecules is in memory.
    """
    around, whose = with_images(folded(solute, box), box, distance)
    tree = cKDTree(around)

    def near(wanted: int) -> Iterator[np.ndarray]:
        real = topology.templates[wanted].mass > 0
        for t, first, count in molecule_blocks(topology):
            if t != wanted or first < behind:
                continue
            block = position[first:first + count * len(real)].reshape(count, -1, 3)
            apart, nearest = tree.query(folded(block[:, 0], box), distance_upper_bound=distance)
            there = np.isfinite(apart)
            block, nearest = block[there], nearest[there]
            # Whole around the first atom, which stands in the image next to the solute.
            block = block[:, :1] + nearest_image(block - block[:, :1], box)
            moved = folded(block[:, 0], box) - block[:, 0] + solute[whose[nearest]] - around[nearest]
            yield (block + moved[:, None])[:, real]

    found = []
    for t in dict.fromkeys(topology.run_template.tolist()):
        template = topology.templates[t]
        if not (template.rigid_water or template.n_atoms == 1):
            continue
        real = template.mass > 0
        elements = [ELEMENTS[k].symbol.upper() for k in nearest_element(template.mass[real]).tolist()]
        found.append(SolventKind(template.residue_name[0].decode(), template.rigid_water,
                                 [name.decode() for name in template.atom_name[real]], elements,
                                 sum(len(block) for block in near(t)), partial(near, t)))
    return [kind for kind in found if kind.count]


def solvent_lines(kinds: list[SolventKind], first_id: int, entity: int, chains: list[str],
                  quoted: list[list[str]]) -> Iterator[list[str]]:
    """Lines of atom_site, in its order of items: atoms from number ``first_id``, entities from ``entity``; ``chains``:
    one a kind; ``quoted``: names of atoms as CIF writes them."""
    number = first_id
    for k, (kind, chain, names) in enumerate(zip(kinds, chains, quoted, strict=True)):
        heads = [f"{element} {name} . {kind.residue} {chain} {entity + k} . ? "
                 for element, name in zip(kind.elements, names, strict=True)]
        start = 0
        for block in kind.blocks():
            lines = []
            for molecule, atoms in enumerate(block.tolist(), start + 1):
                for head, (x, y, z) in zip(heads, atoms, strict=True):
                    lines.append(f"HETATM {number} {head}{x:.3f} {y:.3f} {z:.3f} 1.00 0.00 {molecule} {chain} 1\n")
                    number += 1
            start += len(block)
            yield lines
