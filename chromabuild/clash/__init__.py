"""Steric clashes of a whole structure: checked, corrected and reported.

``check`` looks at any file, ``correct`` turns side chains, phosphates and histone tails until pairs that are too close
are gone, ``report`` writes what was found and done. What a clash is, and how a group sits in its place, is said in
``chromabuild.sterics``.
"""

from chromabuild.clash.check import check
from chromabuild.clash.correct import correct_clashes
from chromabuild.clash.report import ClashReport
from chromabuild.sterics.detect import close_pairs, find_clashes

__all__ = ["ClashReport", "check", "close_pairs", "correct_clashes", "find_clashes"]
