"""A system in the files of other programs."""
