"""Which residues of histones belong to their tails."""

TAILS = {"H3": [(1, 38)], "H3.1": [(1, 38)], "H3.3": [(1, 38)], "CENP-A": [(1, 40)], "Cse4": [(1, 129)],
         "H4": [(1, 23)], "H2A": [(1, 13), (119, 140)], "H2A.Z": [(1, 15), (121, 140)],
         "macroH2A": [(1, 10), (116, 130)], "H2B": [(-2, 27)],
         "H5": [(1, 23), (98, 189)], "H1.0": [(1, 23), (98, 194)], "H1.4": [(1, 35), (110, 220)]}
"""Residues outside the ordered core, (first, last), in the usual numbering; histones of other species are longer by a
few residues at the tips."""
