"""Four-point waters for a program that finds the place of their charge itself and knows three atoms (LAMMPS)."""

from dataclasses import dataclass, replace

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.export.amber_terms import site_distances
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.shards import StoredVectors


@dataclass(frozen=True)
class ImplicitSite:
    """Where the charge of the oxygen of a kind of water is."""

    template: int
    """Of the topology: its atoms are oxygen, hydrogen, hydrogen."""
    distance: float
    """Angstrom from the oxygen along the bisector."""


def without_sites(system: BuiltSystem, program: str) -> tuple[BuiltSystem, ImplicitSite | None]:
    """The same system with the charge of a virtual site on its oxygen, and without the site; None where there is none.

    Raises BadInputError for sites of other molecules than one kind of rigid water, and for those off the bisector.
    """
    topology = system.topology
    found = [t for t in np.unique(topology.run_template).tolist() if len(topology.templates[t].virtual_site_atoms)]
    if not found:
        return system, None
    template = topology.templates[found[0]]
    if len(found) > 1 or not template.rigid_water or template.n_atoms != 4:
        raise BadInputError(f"{template.name} has virtual sites of another kind than a four-point water, which the "
                            f"export to {program} does not write: export to gromacs or openmm")
    distance = float(site_distances(template, program)[0])
    templates = list(topology.templates)
    templates[found[0]] = _three_points(template)
    bare = replace(topology, templates=templates)
    velocity = None if system.velocity is None else _RealAtoms(topology, bare, system.velocity)
    return BuiltSystem(bare, _RealAtoms(topology, bare, system.position), system.box, system.solute, velocity), \
        ImplicitSite(found[0], distance)


def _three_points(water: MoleculeTemplate) -> MoleculeTemplate:
    """Without its fourth atom, whose charge is the oxygen's."""
    charge = water.charge[:3].copy()
    charge[0] += water.charge[3]
    columns = ("lj_type", "mass", "atom_name", "atom_class", "atom_residue")
    per_atom = {name: getattr(water, name)[:3] for name in columns}
    return replace(water, charge=charge, exclusion=water.exclusion[(water.exclusion < 3).all(axis=1)],
                   virtual_site_atoms=[], virtual_site_w2=[], virtual_site_w3=[], **per_atom)


class _RealAtoms:
    """Vectors (n, 3) of the atoms that are left, read by slices."""

    def __init__(self, whole: Topology, bare: Topology, values: np.ndarray | StoredVectors) -> None:
        self._whole, self._bare, self._values = whole, bare, values

    def __len__(self) -> int:
        return self._bare.n_atoms

    def __getitem__(self, rows: slice) -> np.ndarray:
        """(k, 3) of a slice without steps."""
        begin, end, _ = rows.indices(len(self))
        parts = [np.zeros((0, 3))]
        runs = zip(self._bare.run_first_atom.tolist(), self._whole.run_first_atom.tolist(),
                   self._bare.run_template.tolist(), self._bare.run_count.tolist(), strict=False)
        for ours, theirs, t, count in runs:
            n, all_atoms = self._bare.templates[t].n_atoms, self._whole.templates[t].n_atoms
            low, high = max(begin, ours), min(end, ours + count * n)
            if low >= high:
                continue
            first, last = (low - ours) // n, -(-(high - ours) // n)
            block = self._values[theirs + first * all_atoms:theirs + last * all_atoms]
            kept = np.asarray(block).reshape(last - first, all_atoms, 3)[:, :n].reshape(-1, 3)
            parts.append(kept[low - ours - first * n:high - ours - first * n])
        return np.concatenate(parts)
