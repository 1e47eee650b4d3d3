"""Steric clashes: found, corrected, and what else makes a simulation blow up at its start.

``detect`` finds close pairs, ``correct`` turns side chains, phosphates and histone tails until they are gone, ``audit``
looks for pierced rings, wrong chirality, cis peptides and strained bonds, ``report`` writes what was found and done.
"""

from chromabuild.clash.check import check
from chromabuild.clash.correct import correct_clashes
from chromabuild.clash.detect import close_pairs, find_clashes
from chromabuild.clash.report import ClashReport

__all__ = ["ClashReport", "check", "close_pairs", "correct_clashes", "find_clashes"]
