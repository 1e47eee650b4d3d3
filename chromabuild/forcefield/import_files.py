"""`chromabuild import`: CHARMM, AMBER and GROMACS files -> topology file and bricks, for the engine.

OpenMM's readers decide what the files mean; what they understand of a format is what can be imported.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import openmm
from MDAnalysis.coordinates.core import reader
from openmm import app, unit

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.forcefield.foreign_names import amber_names, charmm_names, give_names, gromacs_names
from chromabuild.forcefield.from_openmm import topology_from_system
from chromabuild.forcefield.genesis_restart import is_genesis_restart, read_genesis_restart
from chromabuild.forcefield.local_restraints import add_local_restraints
from chromabuild.forcefield.topology_file import Topology
from chromabuild.shards.brick_file import BrickFile, packed
from chromabuild.shards.manifest import BRICKS_NAME, Manifest, Shard, file_digest, file_entry

LONGEST_BOND = 3.0
"""Times its own length: longer bonds say that coordinates and topology do not belong together."""

_Result = TypeVar("_Result")
_COORDINATE_FORMATS = {".pdb": "PDB", ".ent": "PDB", ".gro": "GRO", ".crd": "CRD", ".cor": "CRD"}


@dataclass
class _Structure:
    """What the files of a format say: the atoms, and the System without and with constraints."""

    atoms: app.Topology
    flexible: openmm.System
    rigid: openmm.System
    force_field: str
    type_names: list[str] | None = None


def import_system(structure: str | Path, coordinates: str | Path, parameters: Sequence[str | Path], output: str | Path,
                  box: Sequence[float] | None = None, include: str | Path | None = None,
                  periodic: bool = True) -> dict:
    """Write ``topology.h5`` and ``shards/bricks.txt`` (with its one brick) into ``output``; returns a summary.

    ``structure``: CHARMM PSF, AMBER prmtop or GROMACS top, told apart by their first line; ``parameters``: the rtf,
    prm and str files of a PSF; ``include``: where the files that a top includes lie; ``box``: three edges (angstrom)
    where the coordinate file has none. Not ``periodic``: any box is ignored and the whole model shifted into one that
    holds it, for [BOUNDARY] type = NOBC. Coordinates are rounded to 0.001 angstrom, as in every brick; velocities are
    not read. Raises BadInputError for files that cannot be read, do not belong together, or ask for what the engine
    lacks.
    """
    output = Path(output)
    if not periodic and box is not None:
        raise BadInputError("--box and --no-box contradict each other: give one of them")
    topology = import_topology(structure, parameters, include, [coordinates])
    position, own_box = import_coordinates(coordinates, structure_kind(structure) == "AMBER")
    edges, _ = write_start(topology, position, box if box is not None else own_box, coordinates, output / "shards",
                           periodic)
    topology.write(output / "topology.h5")
    pairs = topology.special_pairs
    return {
        "force_field": topology.force_field, "atoms": topology.n_atoms, "box": [float(edge) for edge in edges],
        "charge": round(topology.net_charge, 6),
        "molecules": {f"{t.name} ({t.n_atoms} atoms)": int(topology.run_count[topology.run_template == k].sum())
                      for k, t in enumerate(topology.templates)},
        "terms": {name: len(topology.term(name)["atoms"]) for name in
                  ("bond", "angle", "urey_bradley", "dihedral", "improper", "cmap", "pair14", "constraint")},
        "special_pairs": int(np.triu(pairs).sum()),
        "outputs": [str(output / "topology.h5"), str(output / "shards" / BRICKS_NAME)],
    }


def import_topology(structure: str | Path, parameters: Sequence[str | Path], include: str | Path | None = None,
                    companions: Sequence[str | Path] = (), local: str | Path | None = None) -> Topology:
    """The topology that a structure file and its parameters describe, as of ``import_system``; ``companions``: files to
    name beside them in its provenance; ``local``: local restraints of GENESIS, which become terms."""
    structure = Path(structure)
    kind = structure_kind(structure)
    read = {"CHARMM": _read_charmm, "AMBER": _read_amber, "GROMACS": _read_gromacs}[kind]
    if parameters and kind != "CHARMM":
        raise BadInputError(f"{structure} is a {kind} file, which needs no parameter files: leave out {parameters[0]}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = _guarded(structure, lambda: read(structure, [str(path) for path in parameters], include))
    files = [structure, *map(Path, companions), *map(Path, parameters)]
    if local is not None:
        add_local_restraints(content.flexible, content.atoms, local)
        files.append(Path(local))
    try:
        return topology_from_system(
            content.flexible, content.rigid, content.atoms, content.force_field, content.type_names,
            {"files": {path.name: file_digest(path)["blake3"] for path in files}})
    except BadInputError as error:
        raise BadInputError(f"{structure}: {error}") from None


def import_coordinates(path: str | Path, amber: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, 3) positions and the box, edges and angles (angstrom, degree), where the file has one; ``amber``: what is no
    pdb or gro is AMBER's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _guarded(path, lambda: _read_coordinates(Path(path), amber))


def write_start(topology: Topology, position: np.ndarray, box: Sequence[float] | None, path: str | Path, folder: Path,
                periodic: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Write all atoms as one brick into ``folder``; gives the edges of the box and what was added to positions, (3,)
    each. ``path``: the file they come from, for messages. Raises BadInputError when they do not fit the topology."""
    if len(position) != topology.n_atoms:
        raise BadInputError(f"{path} has {len(position)} atoms, the structure file has {topology.n_atoms}: "
                            "give the coordinates of this very system")
    shift = np.zeros(3)
    if periodic:
        edges = _orthorhombic(box, path)
    else:
        edges = np.ceil(np.ptp(position, axis=0)) + 2.0
        shift = 1.0 - position.min(axis=0)
    _check_bonds(topology, position, edges if periodic else np.full(3, np.finfo(float).max), path)
    _write_brick(folder, position + shift, edges, topology.residue_of_atom())
    return edges, shift


def _guarded(path: str | Path, read: Callable[[], _Result]) -> _Result:
    """What ``read`` returns; whatever a reader of another project makes of a bad file becomes one sentence."""
    try:
        return read()
    except BadInputError:
        raise
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise BadInputError(f"cannot read {path} ({said}): check that it is whole and that all files it needs are "
                            "given") from error


def structure_kind(structure: str | Path) -> str:
    """CHARMM, AMBER or GROMACS, by its first line. Raises BadInputError for a file that is none of them."""
    try:
        with open(structure, encoding="utf-8", errors="replace") as file:
            first = file.readline(200)
    except OSError as error:
        raise BadInputError(f"cannot read {structure} ({error.strerror}): give a PSF, prmtop or top file") from None
    if first.startswith("GD150608"):
        raise BadInputError(f"{structure} is a restart file of GENESIS, which holds no structure: give the psf, prmtop "
                            "or top file, and the restart file as the coordinates")
    if first.startswith("PSF"):
        return "CHARMM"
    return "AMBER" if first.startswith("%VERSION") else "GROMACS"


_FLEXIBLE = {"nonbondedMethod": app.NoCutoff, "constraints": None, "rigidWater": False, "removeCMMotion": False}
_RIGID = {**_FLEXIBLE, "constraints": app.HBonds, "rigidWater": True}


def _read_charmm(path: Path, parameters: list[str], include: str | Path | None) -> _Structure:
    if not parameters:
        raise BadInputError(f"{path} holds no parameters: name its rtf, prm and str files too")
    psf = app.CharmmPsfFile(str(path))
    values = app.CharmmParameterSet(*parameters)
    content = _Structure(psf.topology, psf.createSystem(values, **_FLEXIBLE), psf.createSystem(values, **_RIGID),
                         "CHARMM", [str(atom.attype) for atom in psf.atom_list])
    give_names(content.atoms, charmm_names(path))
    return content


def _read_amber(path: Path, parameters: list[str], include: str | Path | None) -> _Structure:
    prmtop = app.AmberPrmtopFile(str(path))
    content = _Structure(prmtop.topology, prmtop.createSystem(**_FLEXIBLE), prmtop.createSystem(**_RIGID), "AMBER")
    give_names(content.atoms, amber_names(prmtop))
    return content


def _read_gromacs(path: Path, parameters: list[str], include: str | Path | None) -> _Structure:
    options = {} if include is None else {"includeDir": str(include)}
    top = app.GromacsTopFile(str(path), **options)
    content = _Structure(top.topology, top.createSystem(**_FLEXIBLE), top.createSystem(**_RIGID), "GROMACS")
    give_names(content.atoms, gromacs_names(top))
    return content


def _read_coordinates(path: Path, amber: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, 3) positions and the box, edges and angles (angstrom, degree), where the file has one."""
    if is_genesis_restart(path):
        restart = read_genesis_restart(path)
        return restart.position, restart.box if (restart.box > 0).all() else None
    kind = _COORDINATE_FORMATS.get(path.suffix.lower())
    if kind is None or (amber and kind == "CRD"):
        content = app.AmberInpcrdFile(str(path))
        position = np.array(content.getPositions(asNumpy=True).value_in_unit(unit.angstrom))
        if content.boxVectors is None:
            return position, None
        vectors = np.array(content.boxVectors.value_in_unit(unit.angstrom))
        length = np.linalg.norm(vectors, axis=1)
        cosine = (vectors[[1, 0, 0]] * vectors[[2, 2, 1]]).sum(axis=1) / (length[[1, 0, 0]] * length[[2, 2, 1]])
        return position, np.concatenate([length, np.degrees(np.arccos(cosine))])
    frame = reader(str(path), format=kind).ts
    dimensions = frame.dimensions
    return frame.positions.astype(float), None if dimensions is None else np.asarray(dimensions, dtype=float)


def _orthorhombic(box: Sequence[float] | None, path: str | Path) -> np.ndarray:
    """(3,) edges in multiples of 0.001 angstrom."""
    if box is None or not np.all(np.asarray(box)[:3] > 0):
        raise BadInputError(f"{path} has no periodic box: give its edges with --box, or --no-box for "
                            "type = NOBC")
    if len(box) > 3 and not np.allclose(box[3:], 90, atol=1e-3):
        raise BadInputError(f"{path} has a box with angles of " + ", ".join(f"{angle:g}" for angle in box[3:]) +
                            " degrees: the engine needs a rectangular one")
    return np.round(np.asarray(box, dtype=float)[:3], 3)


def _check_bonds(topology: Topology, position: np.ndarray, box: np.ndarray, path: str | Path) -> None:
    """Raise BadInputError when atoms that are bound to each other lie far apart."""
    if not np.isfinite(position).all():
        raise BadInputError(f"{path} has coordinates that are not numbers: give a complete frame")
    bond = topology.term("bond")
    apart = position[bond["atoms"][:, 0]] - position[bond["atoms"][:, 1]]
    length = np.linalg.norm(apart - box * np.round(apart / box), axis=1)
    worst = int(np.argmax(length / bond["r0"])) if len(length) else 0
    if len(length) and length[worst] > LONGEST_BOND * bond["r0"][worst]:
        first, second = (int(i) + 1 for i in bond["atoms"][worst])
        raise BadInputError(f"atoms {first} and {second} of {path} are {length[worst]:.2f} angstrom apart, their bond "
                            f"is {bond['r0'][worst]:.2f} long: are atoms in the order of the topology, and is the box "
                            "right?")


def _write_brick(folder: Path, position: np.ndarray, box: np.ndarray, residue: np.ndarray) -> None:
    """All atoms as one brick. Residues are put whole around their first atom, which is put into the box."""
    start = np.searchsorted(residue, residue)  # first atom of the residue of each atom
    apart = position - position[start]
    apart -= box * np.round(apart / box)
    thousandths = np.round((np.mod(position[start], box) + apart) * 1000).astype(np.int32)
    content = packed(BrickFile(box, np.zeros(3), box, np.arange(len(position)), thousandths))
    edges = tuple(float(edge) for edge in box)
    shard = Shard(name="brick_00000", atoms=len(position), charge=0, lower=(0.0, 0.0, 0.0), upper=edges,
                  files={"cbb": file_entry(content)})
    manifest = Manifest(box=edges, grid=(1, 1, 1), atoms=len(position), counts={}, net_charge=0, inputs={},
                        shards=[shard])
    for name, data in (("brick_00000.cbb", content), (BRICKS_NAME, manifest.bricks_text().encode())):
        with atomic_path(folder / name) as part:
            part.write_bytes(data)
