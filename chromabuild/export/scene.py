"""Scenes for other viewers: a structure with colours and representations that suit a locus.

ChimeraX commands and VMD's Tcl stand beside an mmCIF file of the same name; MolViewSpec (Mol*) and the manifest of
Mesoscale Explorer are archives with all that they need.
"""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.export.instances import instanced_entities
from chromabuild.export.parts import stretches_of
from chromabuild.export.structure import write_structure
from chromabuild.molecule.colours import hexadecimal, molecule_colours
from chromabuild.molecule.entities import entity_of_molecules
from chromabuild.molecule.solute import Solute

if TYPE_CHECKING:
    from mesoscale.scaffold import Scaffold

SUFFIXES = {".cxc": "ChimeraX", ".tcl": "VMD", ".mvsx": "Mol*", ".zip": "Mesoscale Explorer"}
MANY_ATOMS = 1_500_000
"""From here on ribbons are too much for a desktop: spheres of one atom a residue."""
_A_RESIDUE = ("P", "CA")
_NOON = "2000-01-01T12:00:00.000000+00:00"
"""MolViewSpec wants a time; the same input shall give the same bytes."""
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def write_scene(solute: Solute, path: Path, title: str, scaffold: "Scaffold") -> list[Path]:
    """Write a scene in the form of the file's suffix, and the structure beside it where it needs one; gives the paths.

    ``scaffold``: that of the solute, whose frames place what Mesoscale Explorer repeats. Raises BadInputError for
    another suffix.
    """
    if path.suffix not in SUFFIXES:
        raise BadInputError(f"{path} is no scene that can be written: name it "
                            + ", ".join(f"{suffix} ({program})" for suffix, program in SUFFIXES.items()))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".mvsx":
        _write_molstar(path, solute, title)
        return [path]
    if path.suffix == ".zip":
        write_archive(path, *mesoscale_files(solute, scaffold, title))
        return [path]
    structure = write_structure(solute, path.with_suffix(".cif"), title, solute.provenance)
    text = {".cxc": chimerax_commands, ".tcl": vmd_commands}[path.suffix](solute, structure.name)
    with atomic_path(path) as part:
        part.write_text(text, encoding="ascii")
    return [path, structure]


def chimerax_commands(solute: Solute, structure: str) -> str:
    """Commands of ChimeraX; chains are segments there."""
    lines = ["# chromabuild", f"open {structure}", "hide atoms", "set bgColor white"]
    if solute.n_atoms < MANY_ATOMS:
        lines += ["cartoon", "cartoon style nucleic xsection oval width 2.2 thickness 0.8", "nucleotides ladder"]
    else:
        lines += ["hide cartoons", f"show @{','.join(_A_RESIDUE)} atoms", "style sphere", "size atomRadius 3"]
    segments: dict[str, list[str]] = {}
    first = solute.molecule_first_residue
    for name, a, b in zip(solute.molecule_name, first[:-1], first[1:], strict=True):
        segments.setdefault(name, []).extend(
            dict.fromkeys(solute.segment_name[k] for k in solute.residue_segment[a:b]))
    lines += [f"color /{','.join(segments[name])} {hexadecimal(colour)}"
              for name, colour in molecule_colours(solute).items()]
    return "\n".join([*lines, "lighting soft", "graphics silhouettes true", "view"]) + "\n"


def vmd_commands(solute: Solute, structure: str) -> str:
    """Commands of VMD; molecules are ranges of atoms."""
    lines = ["# chromabuild", "display projection Orthographic", "color Display Background white",
             f"mol new [file join [file dirname [info script]] {structure}] type pdbx waitfor all", "mol delrep 0 top"]
    many = solute.n_atoms >= MANY_ATOMS
    style = {True: "NewCartoon", False: "NewRibbons"}
    first = solute.molecule_first_atom
    for number, (name, colour) in enumerate(molecule_colours(solute).items()):
        numbers = np.flatnonzero(np.array(solute.molecule_name) == name)
        atoms = " or ".join(f"index {first[low]} to {first[high + 1] - 1}" for low, high in stretches_of(numbers))
        identity = number + 1
        lines += [f"color change rgb {identity} " + " ".join(f"{value:.2f}" for value in colour),
                  "mol representation " + ("VDW 2.0 8" if many else style[not name.startswith("DNA")]),
                  f"mol color ColorID {identity}",
                  f"mol selection {{({atoms})" + (f" and name {' '.join(_A_RESIDUE)}}}" if many else "}"),
                  "mol material AOChalky", "mol addrep top"]
    return "\n".join([*lines, "display resetview"]) + "\n"


def _write_molstar(path: Path, solute: Solute, title: str) -> None:
    """An archive of MolViewSpec (molstar.org/mol-view-spec): the view, and the structure as BinaryCIF."""
    structure = path.with_name(f".{path.name}.bcif")
    try:
        write_structure(solute, structure, title, solute.provenance)
        write_archive(path, {"index.mvsj": json.dumps(molstar_view(solute, "locus.bcif", title), indent=1).encode()},
                      {"locus.bcif": structure.read_bytes()})
    finally:
        structure.unlink(missing_ok=True)


def molstar_view(solute: Solute, url: str, title: str) -> dict:
    """The view of MolViewSpec: every kind of molecule a component with its colour."""
    members: dict[str, list[int]] = {}
    for name, entity in zip(solute.molecule_name, entity_of_molecules(solute), strict=True):
        if entity not in members.setdefault(name, []):
            members[name].append(entity)
    kind = "cartoon" if solute.n_atoms < MANY_ATOMS else "spacefill"
    components = [
        _node("component", {"selector": [{"label_entity_id": str(entity)} for entity in members[name]]}, [
            _node("representation", {"type": kind}, [_node("color", {"color": hexadecimal(colour)})])])
        for name, colour in molecule_colours(solute).items()]
    parsed = _node("parse", {"format": "bcif"}, [_node("structure", {"type": "model"}, components)])
    root = _node("root", {}, [_node("download", {"url": url}, [parsed]),
                              _node("canvas", {"background_color": "#ffffff"})])
    return {"kind": "single", "metadata": {"version": "1", "timestamp": _NOON, "title": title}, "root": root}


def _node(kind: str, params: Mapping[str, object], children: list[dict] | None = None) -> dict:
    node = {"kind": kind, "params": dict(params), "children": children}
    return {key: value for key, value in node.items() if value}


def mesoscale_files(solute: Solute, scaffold: "Scaffold", title: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The manifest of Mesoscale Explorer with its transforms, and the structures that are repeated."""
    groups = [{"id": name, "root": "molecules", "label": label} for name, label in (("dna", "DNA"),
                                                                                  ("protein", "proteins"))]
    entities, transforms, structures = [], b"", {}
    for entity in instanced_entities(solute, scaffold):
        places = {}
        for name, values in (("positions", entity.origin), ("rotations", entity.quaternion)):
            data = np.ascontiguousarray(values, dtype="<f4").tobytes()
            places[name] = {"data": {"file": "transforms.bin", "view": {"byteOffset": len(transforms),
                                                                         "byteLength": len(data)}}}
            transforms += data
        places["rotations"]["variant"] = "quaternion"
        entities.append({"file": f"{entity.name}.bcif", "label": entity.label, "description": entity.description,
                         "color": [round(255 * value) for value in entity.colour],
                         "groups": [{"id": entity.group, "root": "molecules"}], "instances": places})
        structures[f"{entity.name}.bcif"] = entity.structure
    manifest = {"label": title, "description": "chromabuild",
                "roots": [{"id": "molecules", "label": title, "children": groups}], "entities": entities}
    return {"manifest.json": json.dumps(manifest, indent=1).encode(), "transforms.bin": transforms}, structures


def write_archive(path: Path, *files: Mapping[str, bytes]) -> None:
    """Write a zip archive whose bytes depend on its contents alone."""
    with atomic_path(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for group in files:
            for name, data in group.items():
                archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), data, zipfile.ZIP_DEFLATED)
