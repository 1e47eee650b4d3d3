"""CHARMM's parameter file of a system: its terms by the atom types of their atoms, as the topology has them.

Forms: CHARMM's documentation of parameter files (parmfile.doc). Energies are those of the topology: k (x - x0)^2,
and k (1 + cos(n phi - phase)). A topology knows 1-4 parameters by pairs of atoms, not by types: ``pair_parameters.py``
finds those of the types.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.export.blocks import distinct_rows
from chromabuild.export.pair_parameters import HALF_MINIMUM, TypeParameters, parameters_of_types
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology

LONGEST_TYPE = 6
"""Letters of an atom type that GENESIS reads."""
WIDEST_WAVE = 6
"""The highest periodicity of CHARMM's dihedrals; one of 0 means another form of energy."""
_DECIMALS = 9
_MAP_ROW = 5
_VALUE = ".10g"


@dataclass(frozen=True)
class CharmmTerms:
    """Terms of a kind of molecule as a PSF lists them: what follows from bonds is complete."""

    bonds: np.ndarray
    """(b, 2); a rigid water has its third side too."""
    bond_values: np.ndarray
    """(b, 2) k and r0."""
    dihedrals: np.ndarray
    """(d, 4): every chain of four bonded atoms."""
    angle_values: np.ndarray
    """(a, 4) k, theta0, and of the Urey-Bradley term k and r0, 0 where there is none."""


def charmm_terms(template: MoleculeTemplate) -> CharmmTerms:
    """The terms of a kind of molecule. Raises BadInputError where its terms or excluded pairs are not what CHARMM's
    programs make of bonds."""
    bonds, values = template.bond_atoms, np.column_stack([template.bond_k, template.bond_r0])
    chains = chains_of_four(bonds, template.n_atoms)
    n = template.n_atoms
    one, two, three = _pairs(bonds, n), _pairs(template.angle_atoms[:, [0, 2]], n), _pairs(chains[:, [0, 3]], n)
    if len(template.angle_atoms) != len(chains_of_three(bonds, n)):
        raise BadInputError(f"{template.name} has angles without parameters, which CHARMM's programs refuse: export to "
                            "gromacs or openmm")
    found = np.unique(np.concatenate([one, two, three]))
    fourth = np.setdiff1d(three, np.concatenate([one, two]))
    if not (np.array_equal(found, np.sort(_pairs(template.exclusion, n)))
            and np.array_equal(fourth, np.sort(_pairs(template.pair14_atoms, n)))):
        raise BadInputError(f"{template.name} has excluded or 1-4 pairs that do not follow from its bonds, which a PSF "
                            "does not hold: export to gromacs or openmm")
    if template.rigid_water:
        sides = {tuple(sorted(pair)): length for pair, length in zip(
            template.constraint_atoms.tolist(), template.constraint_distance.tolist(), strict=True)}
        bonds, values = np.vstack([bonds, [[1, 2]]]), np.vstack([values, [[0.0, sides[1, 2]]]])
    urey, urey_keys = np.zeros((len(template.angle_atoms), 2)), _pairs(template.urey_bradley_atoms, n)
    ends = _pairs(template.angle_atoms[:, [0, 2]], n)
    order = np.argsort(urey_keys)
    if len(order):
        place = np.minimum(np.searchsorted(urey_keys[order], ends), len(order) - 1)
        has = urey_keys[order][place] == ends
        if has.sum() != len(order):
            raise BadInputError(f"{template.name} has Urey-Bradley terms that are not those of one angle each, which a "
                                "parameter file does not hold: export to gromacs or openmm")
        rows = order[place[has]]
        urey[has] = np.column_stack([template.urey_bradley_k[rows], template.urey_bradley_r0[rows]])
    return CharmmTerms(bonds, values, chains,
                       np.column_stack([template.angle_k, template.angle_theta0, urey]))


def chains_of_three(bonds: np.ndarray, n_atoms: int) -> np.ndarray:
    """(a, 3): every pair of bonds of an atom, which is in the middle."""
    partner = _partners(bonds, n_atoms)
    i, j = np.triu_indices(partner.shape[1], 1)
    rows = np.stack([partner[:, i], np.broadcast_to(np.arange(n_atoms)[:, None], (n_atoms, len(i))), partner[:, j]],
                    axis=2).reshape(-1, 3)
    return rows[(rows >= 0).all(axis=1)]


def chains_of_four(bonds: np.ndarray, n_atoms: int) -> np.ndarray:
    """(d, 4): every chain of four bonded atoms, once, from the end with the lower number, sorted."""
    partner = _partners(bonds, n_atoms)
    width = partner.shape[1]
    j, k = bonds.astype(np.int64).T
    first, last = np.repeat(partner[j], width, axis=1), np.tile(partner[k], (1, width))
    rows = np.stack(np.broadcast_arrays(first, j[:, None], k[:, None], last), axis=2).reshape(-1, 4)
    i, j, k, last = rows.T
    rows = rows[(i >= 0) & (last >= 0) & (i != k) & (last != j) & (i != last)]
    rows = np.where((rows[:, 0] < rows[:, 3])[:, None], rows, rows[:, ::-1])
    return rows[np.lexsort(rows.T[::-1])]


def _partners(bonds: np.ndarray, n_atoms: int) -> np.ndarray:
    """(n, most) partners of each atom, ascending, then -1."""
    both = np.concatenate([bonds, bonds[:, ::-1]]).astype(np.int64)
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    count = np.bincount(both[:, 0], minlength=n_atoms)
    result = np.full((n_atoms, max(1, int(count.max(initial=0)))), -1, dtype=np.int64)
    result[both[:, 0], np.arange(len(both)) - (np.cumsum(count) - count)[both[:, 0]]] = both[:, 1]
    return result


def _pairs(pairs: np.ndarray, n: int) -> np.ndarray:
    pairs = pairs.astype(np.int64)
    return pairs.min(axis=1, initial=n) * n + pairs.max(axis=1, initial=-1)


def parameter_text(topology: Topology, terms: Sequence[CharmmTerms]) -> str:
    """A file with all parameters that a system uses; ``terms``: of each kind of molecule.

    Raises BadInputError where the same atom types have different parameters, and for what such a file cannot hold.
    """
    used = np.unique(topology.run_template)
    templates, terms = [topology.templates[t] for t in used], [terms[t] for t in used]
    names, kinds = distinct_rows([t.atom_class for t in templates])
    types = [name.decode() for name in names]
    for name in types:
        if len(name) > LONGEST_TYPE or not name or name != name.upper():
            raise BadInputError(f"atom type {name!r} is not of one to {LONGEST_TYPE} capital letters and digits, as "
                                "CHARMM's programs want it: export to gromacs or openmm")
    of_types = parameters_of_types(topology, templates, kinds, types)
    lines = [f"* chromabuild, force field {topology.force_field}", "*", "", "ATOMS",
             *(f"MASS -1 {name} {mass:.6f}" for name, mass in zip(types, _masses(templates, kinds, types),
                                                                  strict=True))]

    def table(title: str, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[str]:
        """A line for each tuple of types; ``parts``: atoms and values of every kind of molecule."""
        rows, values = _by_types(parts, kinds)
        return [_line(row, value, types) for row, value in zip(*_single(title, rows, values, types), strict=True)]

    lines += ["", "BONDS", *table("bonds", [(one.bonds, one.bond_values) for one in terms])]
    angles = table("angles", [(t.angle_atoms, one.angle_values) for t, one in zip(templates, terms, strict=True)])
    lines += ["", "ANGLES", *(line.removesuffix(" 0 0") for line in angles)]
    lines += ["", "DIHEDRALS", *_dihedral_lines(templates, terms, kinds, types)]
    lines += ["", "IMPROPER", *table("impropers", [
        (t.improper_atoms, np.column_stack([t.improper_k, np.zeros(len(t.improper_k)), t.improper_psi0]))
        for t in templates])]
    if any(len(t.cmap_atoms) for t in templates):
        lines += ["", "CMAP", *_map_lines(topology, templates, kinds, types)]
    lines += ["", *_nonbonded_lines(types, of_types), "", "END"]
    return "\n".join(lines) + "\n"


def _by_types(parts: Sequence[tuple[np.ndarray, np.ndarray]],
              kinds: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(k, m) types in the direction that has the lower ones first, and (k, v) values."""
    rows = np.concatenate([kind[atoms] for (atoms, _), kind in zip(parts, kinds, strict=True)])
    return _directed(rows), np.concatenate([values for _, values in parts]).round(_DECIMALS)


def _directed(rows: np.ndarray) -> np.ndarray:
    """Each row in the direction that is lower in lexical order."""
    step = rows - rows[:, ::-1]
    first = np.take_along_axis(step, (step != 0).argmax(axis=1)[:, None], axis=1)
    return np.where(first > 0, rows[:, ::-1], rows)


def _single(what: str, rows: np.ndarray, values: np.ndarray, types: list[str],
            n_types: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Each row of types once, with its values; the first ``n_types`` (all) of it are types. Raises BadInputError where
    one has several."""
    width = rows.shape[1]
    both = np.unique(np.hstack([rows, values]), axis=0)
    rows = both[:, :width].astype(np.int64)
    again = np.flatnonzero((rows[1:] == rows[:-1]).all(axis=1))
    if len(again):
        _refuse(what, rows[again[0], :n_types], types)
    return rows, both[:, width:]


def _refuse(what: str, row: np.ndarray, types: list[str]) -> None:
    raise BadInputError(f"{what} of atom types {'-'.join(types[k] for k in row)} have different parameters in several "
                        "places, which a CHARMM parameter file does not hold: export to gromacs or openmm")


def _line(row: np.ndarray, values: np.ndarray, types: list[str]) -> str:
    return " ".join([*(f"{types[k]:<6s}" for k in row), *(f"{value:{_VALUE}}" for value in values)])


def _dihedral_lines(templates: Sequence[MoleculeTemplate], terms: Sequence[CharmmTerms], kinds: Sequence[np.ndarray],
                    types: list[str]) -> list[str]:
    """The waves of each four types, and one without energy where there is none: programs want a line for every chain of
    atoms."""
    rows, waves = _by_types([(t.dihedral_atoms, np.column_stack([t.dihedral_n, t.dihedral_k, t.dihedral_phase]))
                             for t in templates], kinds)
    if ((waves[:, 0] < 1) | (waves[:, 0] > WIDEST_WAVE)).any():
        bad = int(np.flatnonzero((waves[:, 0] < 1) | (waves[:, 0] > WIDEST_WAVE))[0])
        raise BadInputError(f"the dihedral of atom types {'-'.join(types[k] for k in rows[bad])} has periodicity "
                            f"{waves[bad, 0]:g}, and CHARMM's are 1 to {WIDEST_WAVE}: export to gromacs or openmm")
    both = np.hstack([rows, waves[:, :1]])
    single, values = _single("dihedrals", both.astype(np.int64), waves[:, 1:], types, 4)
    per_types: dict[tuple[int, ...], list[str]] = {}
    for row, (k, phase) in zip(single.tolist(), values.tolist(), strict=True):
        per_types.setdefault(tuple(row[:4]), []).append(f"{k:{_VALUE}} {row[4]} {phase:{_VALUE}}")
    for template, own, kind in zip(templates, terms, kinds, strict=True):
        chains, given = _directed(own.dihedrals), _directed(template.dihedral_atoms.astype(np.int64))
        for row in np.unique(_directed(kind[chains]), axis=0).tolist():
            per_types.setdefault(tuple(row), [])
        _check_waves(template.name, chains, given, kind, per_types, types)
    return [" ".join([*(f"{types[k]:<6s}" for k in row), text])
            for row, texts in sorted(per_types.items()) for text in texts or ["0 1 0"]]


def _check_waves(name: str, chains: np.ndarray, given: np.ndarray, kind: np.ndarray,
                 per_types: dict[tuple[int, ...], list[str]], types: list[str]) -> None:
    """Raise BadInputError unless every chain of a molecule has all waves of its types, and nothing else has any."""
    found, first, place, count = np.unique(np.concatenate([chains, given]), axis=0, return_index=True,
                                           return_inverse=True, return_counts=True)
    if (first >= len(chains)).any():
        row = found[np.flatnonzero(first >= len(chains))[0]]
        raise BadInputError(f"{name} has a dihedral of atom types {'-'.join(types[kind[k]] for k in row)} that is not "
                            "along bonds, which a CHARMM parameter file does not hold: export to gromacs or openmm")
    wanted, member = np.unique(_directed(kind[found]), axis=0, return_inverse=True)
    waves = np.array([len(per_types[tuple(row)]) for row in wanted.tolist()], dtype=np.int64)
    other = np.flatnonzero(waves[member.ravel()] != count - 1)
    if len(other):
        _refuse("dihedrals", kind[found[other[0]]], types)


def _map_lines(topology: Topology, templates: Sequence[MoleculeTemplate], kinds: Sequence[np.ndarray],
               types: list[str]) -> list[str]:
    """Maps from -180 degrees on, psi the faster, five numbers a line."""
    rows = np.concatenate([kind[t.cmap_atoms] for t, kind in zip(templates, kinds, strict=True)])
    single, number = _single("correction maps", rows, np.concatenate([t.cmap_map for t in templates])[:, None], types)
    size = round(topology.cmap_energy.shape[1] ** 0.5)
    lines = []
    for row, (k,) in zip(single, number.astype(int).tolist(), strict=True):
        eight = [*row[:4], *row[1:]]
        lines.append(" ".join([*(types[atom] for atom in eight), str(size)]))
        energy = np.roll(topology.cmap_energy[k].reshape(size, size), size // 2, axis=(0, 1))
        lines += [" ".join(f"{value:.9f}" for value in line[start:start + _MAP_ROW])
                  for line in energy for start in range(0, size, _MAP_ROW)]
    return lines


def _masses(templates: Sequence[MoleculeTemplate], kinds: Sequence[np.ndarray], types: list[str]) -> np.ndarray:
    """(t,) of the types; programs take those of the PSF."""
    mass = np.zeros(len(types))
    for template, kind in zip(templates, kinds, strict=True):
        mass[kind] = template.mass
    return mass


def _nonbonded_lines(types: list[str], of_types: TypeParameters) -> list[str]:
    lines = ["NONBONDED nbxmod 5 atom cdiel fshift vatom vdistance vfswitch -",
             "cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac 1.0 wmin 1.5"]
    for name, (sigma, epsilon, sigma14, epsilon14) in zip(types, of_types.single.tolist(), strict=True):
        text = f"{name:<6s} 0.0 {-epsilon:.10g} {sigma * HALF_MINIMUM:.10g}"
        if (sigma, epsilon) != (sigma14, epsilon14):
            text += f" 0.0 {-epsilon14:.10g} {sigma14 * HALF_MINIMUM:.10g}"
        lines.append(text)
    if of_types.special:
        lines += ["", "NBFIX"]
        lines += [f"{types[i]:<6s} {types[j]:<6s} {-epsilon:.10g} {2 * sigma * HALF_MINIMUM:.10g}"
                  for (i, j), (sigma, epsilon) in sorted(of_types.special.items())]
    return lines
