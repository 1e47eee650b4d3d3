"""`chromabuild ensemble`: many folds of one locus as independent jobs, their mean, their agreement with a map, and the
choice of those that are built.

Each fold is the stage `scaffold` in a folder of its own, with a seed and a share of the contacts of its own: it can be
made alone, anywhere, with the same bytes.
"""
