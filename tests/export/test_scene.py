"""Scenes for viewers: what they name is in the structure beside them, and instances stand where the atoms are."""

import io
import json
import re
import warnings
import zipfile

import gemmi
import numpy as np
import pytest
from Bio.PDB.binary_cif import BinaryCIFParser
from scipy.spatial.transform import Rotation

from chromabuild.base.errors import BadInputError
from chromabuild.export import scene
from chromabuild.export.instances import instanced_entities
from chromabuild.export.scene import chimerax_commands, vmd_commands, write_scene
from chromabuild.molecule.colours import hexadecimal, molecule_colours


def read_binary(data: bytes, folder) -> list:
    """Atoms of a BinaryCIF file."""
    path = folder / "part.bcif"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(BinaryCIFParser().get_structure("x", str(path)).get_atoms())


def test_chimerax_colours_every_chain_once(solute, scaffold, tmp_path):
    script, structure = write_scene(solute, tmp_path / "two.cxc", "two nucleosomes", scaffold)
    chains = [chain.name for chain in gemmi.read_structure(str(structure))[0]]
    lines = script.read_text().splitlines()
    assert f"open {structure.name}" in lines
    coloured = [re.fullmatch(r"color /(\S+) (#[0-9a-f]{6})", line) for line in lines if line.startswith("color")]
    assert sorted(name for found in coloured for name in found[1].split(",")) == sorted(chains)
    assert [found[2] for found in coloured] == [hexadecimal(one) for one in molecule_colours(solute).values()]


def test_vmd_draws_every_atom_once(solute, scaffold, tmp_path):
    script, structure = write_scene(solute, tmp_path / "two.tcl", "two nucleosomes", scaffold)
    text = script.read_text()
    assert structure.name in text and text.count("mol addrep top") == len(set(solute.molecule_name))
    drawn = np.zeros(solute.n_atoms, dtype=int)
    for first, last in re.findall(r"index (\d+) to (\d+)", text):
        drawn[int(first):int(last) + 1] += 1
    assert (drawn == 1).all()
    # A representation is of one kind of molecule.
    names = np.repeat(solute.molecule_name, np.diff(solute.molecule_first_atom))
    for selection in re.findall(r"mol selection \{(.*)\}", text):
        ranges = re.findall(r"index (\d+) to (\d+)", selection)
        assert len({name for first, last in ranges for name in names[int(first):int(last) + 1]}) == 1


def test_many_atoms_are_spheres(solute, monkeypatch):
    monkeypatch.setattr(scene, "MANY_ATOMS", 1000)
    chimerax, vmd = chimerax_commands(solute, "x.cif"), vmd_commands(solute, "x.cif")
    assert "show @P,CA atoms" in chimerax and "ladder" not in chimerax
    assert "and name P CA" in vmd and "Ribbons" not in vmd


def test_molstar_archive(solute, scaffold, tmp_path):
    """Components are all entities, each once; the structure is that of the solute."""
    path, = write_scene(solute, tmp_path / "two.mvsx", "two nucleosomes", scaffold)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["two.mvsx"]
    archive = zipfile.ZipFile(path)
    view = json.loads(archive.read("index.mvsj"))
    download, canvas = view["root"]["children"]
    parse, = download["children"]
    structure, = parse["children"]
    assert (canvas["kind"], parse["params"], structure["params"]) == ("canvas", {"format": "bcif"}, {"type": "model"})
    atoms = read_binary(archive.read(download["params"]["url"]), tmp_path)
    assert np.abs(np.array([atom.get_coord() for atom in atoms]) - solute.position).max() < 0.00051
    entities = [one["label_entity_id"] for part in structure["children"] for one in part["params"]["selector"]]
    assert sorted(entities) == ["1", "2", "3", "4", "5", "6"]
    assert view["metadata"] == {"version": "1", "timestamp": view["metadata"]["timestamp"], "title": "two nucleosomes"}
    again, = write_scene(solute, tmp_path / "again.mvsx", "two nucleosomes", scaffold)
    assert again.read_bytes() == path.read_bytes()


def test_instances_stand_where_the_atoms_are(solute, scaffold, tmp_path):
    """As Mesoscale Explorer moves them, by quaternions (x, y, z, w) and then by positions: the builder moves
    cores by half an angstrom and base pairs by one; an axis that is mistaken moves them by ten."""
    path, = write_scene(solute, tmp_path / "two.zip", "two nucleosomes", scaffold)
    archive = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
    manifest = json.loads(archive.read("manifest.json"))
    data = archive.read("transforms.bin")
    used = np.zeros(len(data), dtype=int)

    def values(place: dict, width: int) -> np.ndarray:
        view = place["data"]["view"]
        used[view["byteOffset"]:view["byteOffset"] + view["byteLength"]] += 1
        return np.frombuffer(data[view["byteOffset"]:][:view["byteLength"]], "<f4").reshape(-1, width)

    first = solute.molecule_first_residue
    names = solute.atom_names()
    n_bp, copies = 0, {}
    for entity in manifest["entities"]:
        atoms = read_binary(archive.read(entity["file"]), tmp_path)
        local = np.array([atom.get_coord() for atom in atoms], dtype=float)
        places = entity["instances"]
        origin = values(places["positions"], 3)
        assert places["rotations"]["variant"] == "quaternion"
        frames = Rotation.from_quat(values(places["rotations"], 4)).as_matrix()
        if entity["groups"] == [{"id": "dna", "root": "molecules"}]:
            rows = np.flatnonzero(scaffold.base == ord(entity["file"][-6]))
            n_bp += len(rows)
            assert origin == pytest.approx(scaffold.origin[rows], abs=1e-3)
            assert frames == pytest.approx(scaffold.frame[rows], abs=1e-6)
            chosen = [k for k, atom in enumerate(atoms) if atom.get_name() == "C1'"]
            ends = np.einsum("nij,kj->nki", frames, local[chosen]) + origin[:, None]
            there = np.stack([solute.position[[np.flatnonzero(
                (solute.atom_residue == residue) & (names == "C1'"))[0] for residue in residues]]
                for residues in (first[0] + rows, first[1] + len(scaffold.base) - 1 - rows)], axis=1)
            assert np.sqrt(np.mean(np.sum((ends - there) ** 2, axis=2))) < 1.5
        else:
            name = entity["label"]
            copy = copies[name] = copies.get(name, -1) + 1
            for core, (place, frame) in enumerate(zip(origin, frames, strict=True)):
                molecule = [k for k, one in enumerate(solute.molecule_name)
                            if one == name and solute.molecule_nucleosome[k] == core][copy]
                span = slice(*solute.molecule_first_atom[molecule:molecule + 2])
                moved = local @ frame.T + place
                apart = np.linalg.norm(moved - solute.position[span], axis=1)
                assert np.median(apart) < 1.0
    assert n_bp == len(scaffold.base) and (used == 1).all()
    assert copies == {"H3": 1, "H4": 1, "H2A": 1, "H2B": 1}
    assert {group["id"] for group in manifest["roots"][0]["children"]} == {"dna", "protein"}
    assert sum(len(entity.origin) for entity in instanced_entities(solute, scaffold)) == n_bp + 16


def test_another_suffix_is_refused(solute, scaffold, tmp_path):
    with pytest.raises(BadInputError, match=r"scene.pse is no scene that can be written: name it .cxc \(ChimeraX\)"):
        write_scene(solute, tmp_path / "scene.pse", "x", scaffold)
    assert not list(tmp_path.iterdir())
