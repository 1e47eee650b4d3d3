"""A topology file with a changed byte is refused or reads the same: checksums of HDF5 over arrays and metadata."""

import dataclasses
import subprocess
import sys

import numpy as np
from test_assign import make_solute, strand

from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import Topology

SCRIPT = """
import random, sys
from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.topology_file import Topology
from test_damage import same
path, seed, trials = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
content = open(path, "rb").read()
whole, rng, refused = Topology.read(path), random.Random(seed), 0
for _ in range(trials):
    damaged = bytearray(content)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    open(path, "wb").write(damaged)
    try:
        assert same(Topology.read(path), whole)
    except BadInputError:
        refused += 1
print(refused)
"""


def same(one, other):
    """Field by field."""
    def equal(a, b):
        return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b

    fields = [f.name for f in dataclasses.fields(Topology) if f.name != "templates"]
    return all(equal(getattr(one, name), getattr(other, name)) for name in fields) and all(
        equal(getattr(a, f.name), getattr(b, f.name))
        for a, b in zip(one.templates, other.templates, strict=True) for f in dataclasses.fields(a))


def test_changed_bits_are_refused_or_harmless(tmp_path):
    """250 flips; read in a process of its own, since a damaged HDF5 file could take its reader down with it."""
    path = tmp_path / "topology.h5"
    make_topology(make_solute([strand("ACGT")]), {"water": 10, "sodium": 6}).write(path)
    done = subprocess.run([sys.executable, "-c", "import sys; sys.path[:0] = " + repr(sys.path) + "\n" + SCRIPT,
                           str(path), "5", "250"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    # The rest fell on gaps in the file, and on the pieces, which the engine alone reads (test_pieces).
    assert int(done.stdout) > 75
