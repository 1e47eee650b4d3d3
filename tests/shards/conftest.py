from support.solvated_example import shards, solute, system  # noqa: F401 - fixtures
