"""Shards: bricks of the solvated box as files (PDB, BinaryCIF, .cbb), the manifest of a set, and its verification."""

from chromabuild.shards.integrity import read_shards, store_shards, verify_shards
from chromabuild.shards.manifest import Manifest, Shard
from chromabuild.shards.stored import StoredPositions, StoredVectors

__all__ = ["Manifest", "Shard", "StoredPositions", "StoredVectors", "read_shards", "store_shards", "verify_shards"]
