"""Atoms and terms of a system some molecules at a time, so that water takes disk and no memory.

A large molecule is a block of its own: memory is bounded by the solute.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from chromabuild.forcefield.topology_file import Topology

ATOMS_AT_ONCE = 1 << 16


def molecule_blocks(topology: Topology, at_once: int = ATOMS_AT_ONCE) -> Iterator[tuple[int, int, int]]:
    """Template, first atom, and number of molecules, of blocks of equal molecules in global order; about ``at_once``
    atoms each."""
    for t, count, first in zip(topology.run_template.tolist(), topology.run_count.tolist(),
                               topology.run_first_atom.tolist(), strict=False):
        n = topology.templates[t].n_atoms
        step = max(1, at_once // n)
        for start in range(0, count, step):
            yield t, first + start * n, min(step, count - start)


def atom_blocks(topology: Topology, of_template: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """What ``Topology.of_atoms`` gives, in blocks."""
    for t, _, count in molecule_blocks(topology):
        yield np.tile(of_template[t], count)


def term_blocks(topology: Topology, of_template: Sequence[np.ndarray], base: int = 0) -> Iterator[np.ndarray]:
    """(k, m) int64 atoms of all terms, counted from ``base``; ``of_template``: (k, m) of each kind of molecule, from
    0."""
    for t, first, count in molecule_blocks(topology):
        rows = of_template[t].astype(np.int64)
        if len(rows):
            offset = first + base + topology.templates[t].n_atoms * np.arange(count, dtype=np.int64)
            yield (rows + offset[:, None, None]).reshape(-1, rows.shape[1])


def distinct_rows(of_template: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """(k, m) distinct rows, ascending, of tables (n, m) of each kind of molecule, and of each table which (n,) its rows
    are, from 0; or the same of lists (n,)."""
    every = np.concatenate(of_template)
    rows, which = np.unique(every, axis=0 if every.ndim > 1 else None, return_inverse=True)
    return rows, np.split(which.ravel(), np.cumsum([len(one) for one in of_template])[:-1])


def total(topology: Topology, of_template: Sequence[int]) -> int:
    """The sum over all molecules of a number that each kind of molecule has."""
    return int(np.sum(np.array(of_template, dtype=np.int64)[topology.run_template] * topology.run_count))


def row_blocks(n: int, at_once: int = ATOMS_AT_ONCE) -> Iterator[slice]:
    """``n`` rows in blocks."""
    return (slice(start, min(start + at_once, n)) for start in range(0, n, at_once))
