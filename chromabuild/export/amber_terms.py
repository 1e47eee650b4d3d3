"""What a prmtop and LAMMPS' styles of AMBER's force fields hold: 1-4 pairs that are scaled, and no terms of CHARMM."""

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology

SCEE, SCNB = 1.2, 2.0
"""What AMBER divides 1-4 charges and Lennard-Jones energies by, where nothing else is said."""


def refuse_charmm_terms(template: MoleculeTemplate, program: str) -> None:
    """Raise BadInputError for Urey-Bradley terms and harmonic impropers: files of a program have them of CHARMM's force
    fields, by CHARMM's atom types, which this system has not."""
    kinds = {"Urey-Bradley terms": template.urey_bradley_atoms, "harmonic impropers": template.improper_atoms}
    found = [kind for kind, atoms in kinds.items() if len(atoms)]
    if found:
        raise BadInputError(f"{template.name} has {' and '.join(found)}, which the export to {program} writes for "
                            "dynamics.force_field charmm36m alone: export to gromacs or openmm")


def pair_keys(pairs: np.ndarray, n: int) -> np.ndarray:
    """(m,) int64 that tell pairs (m, 2) of ``n`` atoms apart, whichever comes first."""
    pairs = pairs.astype(np.int64)
    return pairs.min(axis=1, initial=n) * n + pairs.max(axis=1, initial=-1)


def scales_of_pairs(topology: Topology, template: MoleculeTemplate) -> np.ndarray:
    """(pairs, 2): what charges and Lennard-Jones energy of each 1-4 pair are divided by.

    Raises BadInputError where a pair is not that of its atoms, divided.
    """
    a, b = template.pair14_atoms.T
    kind = template.lj_type
    product = template.charge[a] * template.charge[b]
    sigma = 0.5 * (topology.lj_sigma[kind[a]] + topology.lj_sigma[kind[b]])
    epsilon = np.sqrt(topology.lj_epsilon[kind[a]] * topology.lj_epsilon[kind[b]])
    result = np.empty((len(a), 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        for column, whole, scaled, usual in ((0, product, template.pair14_charge_product, SCEE),
                                             (1, epsilon, template.pair14_epsilon, SCNB)):
            result[:, column] = np.where(np.abs(whole) > 1e-10, whole / scaled, usual)
    other = (np.abs(sigma - template.pair14_sigma) > 1e-5) & (template.pair14_epsilon > 0)
    if other.any() or not np.isfinite(result).all() or (result <= 0).any():
        raise BadInputError(f"{template.name} has 1-4 pairs with parameters of their own, which AMBER's "
                            "force fields have not: export to another program")
    return result.round(6)


def sides_of_water(template: MoleculeTemplate) -> dict[tuple[int, int], float]:
    """Lengths of the sides of a rigid water, angstrom, by their atoms."""
    return {tuple(sorted(pair)): length for pair, length in zip(
        template.constraint_atoms.tolist(), template.constraint_distance.tolist(), strict=True)}


def site_distances(template: MoleculeTemplate, program: str) -> np.ndarray:
    """(sites,) angstrom from the oxygen of a rigid water: programs find sites on the bisector by that.

    Raises BadInputError for another place.
    """
    w2, w3, sides = template.virtual_site_w2, template.virtual_site_w3, sides_of_water(template)
    atoms = template.virtual_site_atoms
    if len(atoms) > 1 or (atoms[:, 1:] != [0, 1, 2]).any() or (np.abs(w2 - w3) > 1e-9).any() or (w2 < 0).any():
        raise BadInputError(f"{template.name} has a virtual site that is not on the bisector before the oxygen, for "
                            f"which {program} has no rule: export to gromacs or openmm")
    return 2 * w2 * np.sqrt(sides[0, 1] ** 2 - sides[1, 2] ** 2 / 4) if len(atoms) else np.zeros(0)
