"""Waters other than TIP3P through shards and topology, and geometries against their papers."""

import gemmi
import MDAnalysis
import numpy as np
import pytest
from support.command_line import chromabuild, result_of
from support.solvated_example import SOLUTE

from chromabuild.base.settings import SolvateSection
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.shards import read_shards
from chromabuild.shards.integrity import verify_shards
from chromabuild.solvate import solvate
from chromabuild.solvate.water import water_tile

GEOMETRY = {"spce": (1.0, 109.47, None), "opc": (0.8724, 103.6, 0.1594), "tip4pew": (0.9572, 104.52, 0.125)}
"""O-H (angstrom), H-O-H (degree), O-charge (angstrom) as published; OPC's angle is 103.6."""


@pytest.mark.parametrize("name", GEOMETRY)
def test_tile_has_the_geometry_of_the_model(name):
    """Coordinates are rounded to 0.001 angstrom, as in test_water; the site follows from the rounded direction."""
    bond, angle, site = GEOMETRY[name]
    tile, plain = water_tile(name), water_tile()
    assert np.array_equal(tile.position[:, 0], plain.position[:, 0]) and tile.edge == plain.edge
    bonds = (tile.position[:, 1:3] - tile.position[:, :1]) / 1000
    length = np.linalg.norm(bonds, axis=2)
    assert np.abs(length - bond).max() < 0.0018
    cosine = (bonds[:, 0] * bonds[:, 1]).sum(1) / length.prod(1)
    assert np.abs(np.degrees(np.arccos(cosine)) - angle).max() < 0.3
    # Hydrogens point where those of TIP3P do.
    old = (plain.position[:, 1:] - plain.position[:, :1]) / 1000
    turned = (bonds * old).sum(2) / length / np.linalg.norm(old, axis=2)
    assert turned.min() > np.cos(np.radians(3))
    if site:
        away = (tile.position[:, 3] - tile.position[:, 0]) / 1000
        assert np.abs(np.linalg.norm(away, axis=1) - site).max() < 0.0011
        assert (np.linalg.norm(np.cross(away, bonds.sum(1)), axis=1) < 0.003).all()
    assert WATER_MODELS[name].n_atoms == tile.position.shape[1]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A small solute in OPC water: shards and topology by the command line."""
    folder = tmp_path_factory.mktemp("opc")
    (folder / "results").mkdir()
    (folder / "results" / "solute_clean.h5").write_bytes(SOLUTE.read_bytes())
    (folder / "locus.yaml").write_text("solvate: {water: opc, padding: 3.0, brick_edge: 40.0, compress: false}\n")
    for stage in ("solvate", "topology"):
        result_of(stage, cwd=folder)
    return folder


def test_shards_and_topology_hold_the_sites(project):
    """Atoms of all files agree; a water of a PDB has its site last."""
    folder = project / "results"
    manifest = verify_shards(folder / "shards")
    assert manifest.water == "opc"
    box, position = read_shards(folder / "shards" / "bricks.txt")
    topology = Topology.read(folder / "topology.h5")
    counts = manifest.counts
    assert topology.n_atoms == manifest.atoms == len(position) == \
        counts["solute"] + 4 * counts["water"] + counts["sodium"] + counts["chloride"]
    assert abs(topology.net_charge) < 0.01
    waters = position[counts["solute"]:counts["solute"] + 4 * counts["water"]].reshape(-1, 4, 3)
    np.testing.assert_allclose(np.linalg.norm(waters[:, 3] - waters[:, 0], axis=1), 0.15939833, atol=0.0011)
    names = {template.name: template for template in topology.templates}
    assert names["HOH"].rigid_water and names["HOH"].virtual_site_atoms.tolist() == [[3, 0, 1, 2]]
    brick = manifest.shards[0].name
    found = [r for c in gemmi.read_structure(str(folder / "shards" / f"{brick}.pdb"))[0] for r in c if r.name == "HOH"]
    assert found and all([atom.name for atom in r] == ["O", "H1", "H2", "M"] for r in found)
    universe = MDAnalysis.Universe(str(folder / "shards" / f"{brick}.pdb"))
    assert len(universe.atoms) == manifest.shards[0].atoms


def test_ions_belong_to_the_water(project):
    """Sodium and chloride of Joung and Cheatham differ between water models; OpenMM's opc.xml has those for OPC."""
    topology = Topology.read(project / "results" / "topology.h5")
    sodium = next(t for t in topology.templates if t.name == "NA")
    # sigma of opc.xml: 0.2613896839 nm.
    assert topology.lj_sigma[sodium.lj_type[0]] == pytest.approx(2.613896839, rel=1e-8)


def test_default_is_tip3p_and_names_it_nowhere(tmp_path):
    manifest = solvate(Solute.read(SOLUTE), SolvateSection(padding=2.0, brick_edge=60.0), 1, 1, tmp_path)
    assert manifest.water == "tip3p" and '"water": "' not in (tmp_path / "manifest.json").read_text().split("inputs")[0]
    assert '"water": "tip3p"' not in (tmp_path / "manifest.json").read_text()


def test_unknown_water_is_refused(tmp_path):
    (tmp_path / "locus.yaml").write_text("solvate: {water: tip5p}\n")
    done = chromabuild("solvate", cwd=tmp_path)
    assert done.returncode != 0 and "tip3p" in done.stderr and "opc" in done.stderr
