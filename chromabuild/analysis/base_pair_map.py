"""Contacts between base pairs along a duplex, of folds and of frames alike, as a sparse map."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

CONTACT = 5.0
"""nm between the axes of two base pairs that count as a contact: two duplexes that touch are 2 nm apart."""
FINEST_BINS = 10_000
"""Bins that a map of base pairs may have; of a longer locus each bin is 2, 5, 10, ... base pairs."""


def base_pair_bin(length: int) -> int:
    """Base pairs a bin of the finest map of a locus.

    >>> base_pair_bin(9000), base_pair_bin(83000)
    (1, 10)
    """
    size = 1
    for size in (factor * 10**power for power in range(9) for factor in (1, 2, 5)):
        if length <= FINEST_BINS * size:
            break
    return size


def base_pair_contacts(origin: np.ndarray, position: np.ndarray) -> csr_matrix:
    """(b, b) pairs of base pairs within ``CONTACT`` of each other in bins of ``base_pair_bin``, upper triangle.

    ``origin`` (n, 3), nm, and ``position`` (n,) on the chromosome; bins begin at multiples of their size there, the
    first one at or before the lowest position.
    """
    size = base_pair_bin(len(origin))
    first = int(position.min()) // size
    near = (position[cKDTree(origin).query_pairs(CONTACT, output_type="ndarray")] // size - first).T
    bins = int(position.max()) // size - first + 1
    return csr_matrix((np.ones(near.shape[1]), (near.min(axis=0), near.max(axis=0))), (bins, bins))
