"""Files of structures that we write are read again, by our readers and by those of others."""

import contextlib
import gzip

import numpy as np
import pytest
import zstandard
from Bio.PDB.binary_cif import BinaryCIFParser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chromabuild.analysis.duplex import read_duplexes
from chromabuild.analysis.trajectory_file import open_universe
from chromabuild.base.errors import BadInputError
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.dna.steps import rotation_about_z
from chromabuild.export.structure import write_structure
from chromabuild.molecule.structure_file import StructureFile
from chromabuild.sterics.atoms import Atoms


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """12 base pairs of straight DNA in every format of structures."""
    folder = tmp_path_factory.mktemp("written")
    frame = np.array([rotation_about_z(np.radians(34.3 * k)) for k in range(12)])
    origin = np.stack([np.zeros(12), np.zeros(12), 3.4 * np.arange(12)], axis=1)
    atoms, kinds, _ = build_dna(np.arange(12) % 4, origin, frame)
    solute = assemble_solute(atoms, kinds, [], np.zeros((0, 3)), np.zeros((0, 3, 3)))
    solute.write(folder / "solute.h5")
    for suffix in ("cif", "bcif", "pdb"):
        write_structure(solute, folder / f"solute.{suffix}", "duplex")
    return folder


@pytest.mark.parametrize("suffix", [".bcif", ".bcif.gz", ".cif.zst", ".pdb.gz"])
def test_every_format_that_we_write_is_read(written, tmp_path, suffix):
    """The same atoms, names and places; Biopython's own reader of BinaryCIF agrees on the file."""
    kind, _, packing = suffix[1:].partition(".")
    content = (written / f"solute.{kind}").read_bytes()
    packed = {"": bytes, "gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}[packing](content)
    (tmp_path / f"solute{suffix}").write_bytes(packed)
    found, solute = Atoms.from_file(tmp_path / f"solute{suffix}"), Atoms.from_file(written / "solute.h5")
    assert np.abs(found.position - solute.position).max() < 1e-3
    assert list(found.name) == list(solute.name) and (found.element == solute.element).all()
    assert (found.residue_first == solute.residue_first).all()
    assert len(read_duplexes(tmp_path / f"solute{suffix}")[0].sequence) == 12
    if suffix == ".bcif":
        theirs = list(BinaryCIFParser().get_structure("", str(tmp_path / "solute.bcif")).get_atoms())
        assert np.abs(np.array([atom.coord for atom in theirs]) - found.position).max() < 1e-3
    universe = open_universe(tmp_path / f"solute{suffix}", None) if suffix != ".pdb.gz" else None
    assert universe is None or np.abs(universe.atoms.positions - solute.position).max() < 1e-3


@given(at=st.integers(0, 10**6), value=st.integers(0, 255))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_damaged_binary_cif_is_refused_or_read(written, tmp_path, at, value):
    content = bytearray((written / "solute.bcif").read_bytes())
    content[at % len(content)] = value
    (tmp_path / "x.bcif").write_bytes(content)
    with contextlib.suppress(BadInputError):
        StructureFile.read(tmp_path / "x.bcif")


def test_bricks_of_coordinates_alone_are_refused(tmp_path):
    (tmp_path / "x.cbb").write_bytes(b"")
    with pytest.raises(BadInputError, match="holds coordinates alone: name the .bcif"):
        Atoms.from_file(tmp_path / "x.cbb")
