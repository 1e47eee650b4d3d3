"""Shards: bricks of the solvated box as files (PDB, BinaryCIF, .cbb), the manifest of a set, and its verification."""

from chromabuild.shards.integrity import StoredPositions, read_shards, store_shards, verify_shards
from chromabuild.shards.manifest import Manifest, Shard

__all__ = ["Manifest", "Shard", "StoredPositions", "read_shards", "store_shards", "verify_shards"]
