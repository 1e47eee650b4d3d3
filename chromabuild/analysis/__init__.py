"""Analysis of structures and results."""
