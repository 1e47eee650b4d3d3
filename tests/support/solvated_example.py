"""A small solute and its shards: fixtures of the solvation and of the shard tests."""

from pathlib import Path

import pytest

from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.solute import Solute
from chromabuild.shards import read_shards
from chromabuild.solvate import prepare, solvate

SOLUTE = Path(__file__).parent / "data" / "solute.h5"


@pytest.fixture(scope="session")
def solute():
    """Histone H4 24-102 and 12 bp of DNA: 2,054 atoms, made by data/make_solute.py."""
    return Solute.read(SOLUTE)


@pytest.fixture(scope="session")
def shards(solute, tmp_path_factory):
    """Folder, manifest, box and positions of the solvated solute in 3 x 3 x 2 bricks."""
    folder = tmp_path_factory.mktemp("shards")
    section = SolvateSection(brick_edge=30.0)
    manifest = solvate(solute, section, 1, 1, folder)
    return folder, manifest, *read_shards(folder)


@pytest.fixture(scope="session")
def system(solute, shards):
    """What the shards were written from."""
    return prepare(solute, SolvateSection(brick_edge=30.0), 1, 1, shards[0])
