"""Lennard-Jones parameters of CHARMM's atom types, their 1-4 parameters among them, from those of pairs of atoms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology

HALF_MINIMUM = 2 ** (1 / 6) / 2
"""Rmin/2 of a sigma of 1."""
_REMEDY = "CHARMM parameter file does not hold: export to gromacs or openmm"
_SAME = 1e-7
"""Relative: parameters that differ by less are the same one, read by way of several units."""
_Pair = tuple[int, int]
_Values = tuple[float, float]


@dataclass(frozen=True)
class TypeParameters:
    """Sigma in angstrom, epsilon in kcal/mol."""

    single: np.ndarray
    """(t, 4) sigma, epsilon, and both of 1-4 pairs."""
    special: dict[_Pair, _Values]
    """Sigma and epsilon of pairs of types that do not follow the Lorentz-Berthelot rule (NBFIX)."""


def parameters_of_types(topology: Topology, templates: Sequence[MoleculeTemplate], kinds: Sequence[np.ndarray],
                        types: list[str]) -> TypeParameters:
    """Of the types that ``kinds`` number, (n,) of the atoms of each of ``templates``.

    A pair of 1-4 atoms has sigma (s_a + s_b)/2 and epsilon sqrt(e_a e_b) of its types. From one type with a known
    value follow those of all that it is paired with. A pair of like atoms makes its type known. Where there is none,
    one choice is as good as another for all pairs of the system: the one with the most types like their ordinary
    parameters. Raises BadInputError where no parameters of types give those of all pairs.
    """
    lj_type = _only(topology, np.concatenate(kinds), np.concatenate([t.lj_type for t in templates]), types)
    ordinary = np.column_stack([topology.lj_sigma[lj_type], topology.lj_epsilon[lj_type]])
    special = _special(topology, lj_type, types)
    pairs = _pairs14(templates, kinds, types)
    for pair in sorted(set(pairs) & set(special)):
        if not np.allclose(pairs.pop(pair), special[pair], rtol=_SAME, atol=0):
            raise _own(pair, types)
    scaled = _solved({pair: values for pair, values in pairs.items() if values[1] != 0}, ordinary)
    same = np.isclose(scaled, ordinary, rtol=_SAME, atol=0).all(axis=1)
    scaled[same] = ordinary[same]
    for (a, b), (sigma, epsilon) in pairs.items():
        found = 0.5 * (scaled[a, 0] + scaled[b, 0]), np.sqrt(scaled[a, 1] * scaled[b, 1])
        if not (scaled[[a, b], 0] > 0).all() or not np.isclose(found[1], epsilon, rtol=10 * _SAME, atol=0) or (
                epsilon != 0 and not np.isclose(found[0], sigma, rtol=10 * _SAME, atol=0)):
            raise _own((a, b), types)
    return TypeParameters(np.hstack([ordinary, scaled]), special)


def _own(pair: _Pair, types: list[str]) -> BadInputError:
    return BadInputError(f"1-4 pairs of atom types {types[pair[0]]} and {types[pair[1]]} have parameters that are not "
                         f"those of their types, which a {_REMEDY}")


def _only(topology: Topology, kind: np.ndarray, lj_type: np.ndarray, types: list[str]) -> np.ndarray:
    """(t,) a Lennard-Jones type of each atom type; others of it must be equal."""
    kind, lj_type = np.unique(np.column_stack([kind, lj_type]), axis=0).T
    first = np.searchsorted(kind, kind)
    used = np.unique(lj_type)
    for table in (topology.lj_c12, topology.lj_c6):
        rows = table[np.ix_(lj_type, used)]
        other = np.flatnonzero(~np.isclose(rows, rows[first], rtol=_SAME, atol=0).all(axis=1))
        if len(other):
            raise BadInputError(f"atoms of type {types[kind[other[0]]]} have several Lennard-Jones parameters, which a "
                                f"{_REMEDY}")
    return lj_type[np.unique(first)]


def _special(topology: Topology, lj_type: np.ndarray, types: list[str]) -> dict[_Pair, _Values]:
    result = {}
    is_special = topology.special_pairs[np.ix_(lj_type, lj_type)]
    for a, b in zip(*np.nonzero(np.triu(is_special)), strict=True):
        c12, c6 = (float(table[lj_type[a], lj_type[b]]) for table in (topology.lj_c12, topology.lj_c6))
        if c6 <= 0 or c12 <= 0:
            raise BadInputError(f"atom types {types[a]} and {types[b]} attract or repel each other only, which a "
                                f"{_REMEDY}")
        result[int(a), int(b)] = (c12 / c6) ** (1 / 6), c6**2 / (4 * c12)
    return result


def _pairs14(templates: Sequence[MoleculeTemplate], kinds: Sequence[np.ndarray],
             types: list[str]) -> dict[_Pair, _Values]:
    """Sigma and epsilon of 1-4 pairs by their types. Raises BadInputError where charges of pairs are scaled too."""
    result: dict[_Pair, _Values] = {}
    for template, kind in zip(templates, kinds, strict=True):
        i, j = template.pair14_atoms.T
        product = template.charge[i] * template.charge[j]
        if not np.allclose(template.pair14_charge_product, product, rtol=1e-6, atol=1e-9):
            raise BadInputError(f"{template.name} has 1-4 pairs with scaled charges, which CHARMM's force fields have "
                                "not: export to gromacs or openmm")
        rows = np.column_stack([np.minimum(kind[i], kind[j]), np.maximum(kind[i], kind[j]), template.pair14_sigma,
                                template.pair14_epsilon])
        for a, b, sigma, epsilon in np.unique(rows.round(12), axis=0).tolist():
            pair = int(a), int(b)
            known = result.setdefault(pair, (sigma, epsilon))
            if not np.allclose(known, (sigma, epsilon), rtol=_SAME, atol=0):
                raise _own(pair, types)
    return result


def _solved(pairs: dict[_Pair, _Values], ordinary: np.ndarray) -> np.ndarray:
    """(t, 2) sigma and epsilon of 1-4 pairs by type, ``ordinary`` where no pair says otherwise."""
    partners: dict[int, list[int]] = {}
    for a, b in pairs:
        partners.setdefault(a, []).append(b)
        partners.setdefault(b, []).append(a)
    result, left = ordinary.copy(), dict.fromkeys(sorted(partners))
    while left:
        start = next(iter(left))
        group = sorted(_spread(start, (0.0, 0.0), partners, {}))
        like = [a for a in group if (a, a) in pairs]
        if like:
            best = _spread(like[0], pairs[like[0], like[0]], partners, pairs)
        else:
            best = max((_spread(a, (ordinary[a, 0], ordinary[a, 1]), partners, pairs) for a in group),
                       key=lambda found: sum(np.allclose(values, ordinary[a], rtol=_SAME, atol=0)
                                             for a, values in found.items()))
        for a, values in best.items():
            result[a] = values
            del left[a]
    return result


def _spread(start: int, values: _Values, partners: dict[int, list[int]],
            pairs: dict[_Pair, _Values]) -> dict[int, _Values]:
    """Values of all types that pairs connect with the first; without ``pairs`` these types alone."""
    found, waiting = {start: values}, [start]
    while waiting:
        a = waiting.pop(0)
        for b in sorted(partners[a]):
            if b not in found:
                sigma, epsilon = pairs.get((min(a, b), max(a, b)), (0.0, 0.0))
                known = found[a]
                found[b] = 2 * sigma - known[0], epsilon**2 / known[1] if known[1] else 0.0
                waiting.append(b)
    return found
