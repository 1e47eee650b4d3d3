"""`chromabuild import`: CHARMM, AMBER and GROMACS files -> topology file, bricks and state, for the engine.

OpenMM's readers decide what the files mean; what they understand of a format is what can be imported. They read one
molecule of each kind, so that ten million atoms take no longer than their files do (``molecule_kinds``).
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import openmm
from openmm import app

from chromabuild.base.box_vectors import nearest_image, reduced, tilt_of, vectors_from_angles, vectors_of, wrapped
from chromabuild.base.constants import AKMA_VELOCITY, BOLTZMANN
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.in_use import in_use
from chromabuild.forcefield import prmtop_file, psf_file
from chromabuild.forcefield.coordinate_files import Coordinates, read_cell, read_coordinates, read_velocities
from chromabuild.forcefield.foreign_names import amber_names, charmm_names, give_names, gromacs_names
from chromabuild.forcefield.from_openmm import topology_from_system
from chromabuild.forcefield.gromacs_kinds import OneOfEach, bonds_alone
from chromabuild.forcefield.gromacs_top import GromacsTop
from chromabuild.forcefield.local_restraints import add_local_restraints
from chromabuild.forcefield.molecule_kinds import Kinds, Residues, expanded
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.shards.brick_file import BrickFile, packed
from chromabuild.shards.manifest import BRICKS_NAME, Manifest, Shard, file_digest, file_entry

LONGEST_BOND = 3.0
"""Times its own length: longer bonds say that coordinates and topology do not belong together."""
HOTTEST = 20_000
"""K: beyond it velocities are something else, positions say."""
STATE_NAME, CONTROL_NAME = "state.bin", "setup.inp"
_ROWS = 1 << 20
"""Of large arrays that are worked on at once."""

_Result = TypeVar("_Result")


@dataclass
class _Structure:
    """What the files of a format say: the atoms, and the System without and with constraints."""

    atoms: app.Topology
    flexible: openmm.System
    rigid: openmm.System
    force_field: str
    type_names: list[str] | None = None
    copies: tuple[Kinds, Residues] | None = None
    """The molecules of the whole system, where the others are of one molecule of each kind."""


def import_system(structure: str | Path, coordinates: str | Path, parameters: Sequence[str | Path], output: str | Path,
                  box: Sequence[float] | None = None, include: str | Path | None = None, periodic: bool = True,
                  velocities: str | Path | None = None, cell: str | Path | None = None) -> dict:
    """Write ``topology.h5``, ``shards/bricks.txt`` (with its one brick), where there are velocities ``state.bin``, and
    ``setup.inp``, which makes restart files of them, into ``output``; returns a summary.

    ``structure``: CHARMM PSF, AMBER prmtop or GROMACS top, told apart by their first line; ``parameters``: the rtf,
    prm and str files of a PSF; ``include``: where the files that a top includes lie; ``box``: three edges (angstrom)
    where no file has them; ``cell``: an extended system file of NAMD, which has the box. ``velocities``: a file that
    has them where ``coordinates`` does not. Not ``periodic``: any box is ignored and the whole model shifted into one
    that holds it, for [BOUNDARY] type = NOBC. In bricks coordinates are rounded to 0.001 angstrom; a state has all
    their digits. Raises BadInputError for files that cannot be read, do not belong together, or ask for what the
    engine lacks, BusyError while another process writes into ``output``.
    """
    output = Path(output)
    if box is not None and cell is not None:
        raise BadInputError(f"--box and --xsc {cell} both say what the box is: give one of them")
    if not periodic and (box is not None or cell is not None):
        raise BadInputError(f"{'--box' if cell is None else '--xsc'} and --no-box contradict each other: give one of "
                            "them")
    # Coordinates are read first: what is wrong with them is told before the long work.
    start = read_coordinates(coordinates)
    velocity = start.velocity if velocities is None else read_velocities(velocities)
    own_box = start.box if box is None else np.asarray(box, dtype=float)
    if box is not None:
        refuse_angles(start.box, coordinates, "--box")
    if cell is not None:
        own_box = read_cell(cell)
    topology = import_topology(structure, parameters, include,
                               [path for path in (coordinates, velocities) if path is not None])
    if own_box is None and periodic and structure_kind(structure) == "AMBER":
        own_box = prmtop_file.box_of(prmtop_file.Prmtop(structure))
    if velocity is not None:
        temperature = _temperature(topology, velocity, coordinates if velocities is None else velocities)
    with in_use(output, is_lock_kept=False):
        (output / CONTROL_NAME).unlink(missing_ok=True)  # it comes last: where it is, all are
        vectors, shift = write_start(topology, start.position, own_box, coordinates, output / "shards", periodic)
        topology.write(output / "topology.h5")
        outputs = [str(output / "topology.h5"), str(output / "shards" / BRICKS_NAME)]
        (output / STATE_NAME).unlink(missing_ok=True)
        if velocity is not None:
            write_state(output / STATE_NAME, Coordinates(start.position, velocity), vectors if periodic else None,
                        shift)
            outputs.append(str(output / STATE_NAME))
        outputs.append(str(output / CONTROL_NAME))
        _write_control(output / CONTROL_NAME, outputs[:-1], output / "start_().rst", periodic)
    pairs = topology.special_pairs
    molecules: dict[str, int] = {}
    for template, count in _counted(topology):
        name = f"{template.name} ({template.n_atoms} atoms)"
        molecules[name] = molecules.get(name, 0) + count
    return {
        "force_field": topology.force_field, "atoms": topology.n_atoms, "box": np.diag(vectors).tolist(),
        **({"tilt": np.round(tilt_of(vectors), 6).tolist()} if tilt_of(vectors).any() else {}),
        "charge": round(topology.net_charge, 6),
        "velocities": "none: they are drawn" if velocity is None else f"kept, {temperature:.1f} K",
        "molecules": molecules,
        "terms": {name: sum(len(getattr(t, f"{name}_atoms")) * count for t, count in _counted(topology)) for name in
                  ("bond", "angle", "urey_bradley", "dihedral", "improper", "cmap", "pair14", "constraint",
                   "virtual_site")},
        "special_pairs": int(np.triu(pairs).sum()),
        "outputs": outputs,
    }


def _counted(topology: Topology) -> list[tuple[MoleculeTemplate, int]]:
    """Templates and how many molecules there are of each."""
    return [(t, int(topology.run_count[topology.run_template == k].sum())) for k, t in enumerate(topology.templates)]


def import_topology(structure: str | Path, parameters: Sequence[str | Path], include: str | Path | None = None,
                    companions: Sequence[str | Path] = (), local: str | Path | None = None) -> Topology:
    """The topology that a structure file and its parameters describe, as of ``import_system``; ``companions``: files to
    name beside them in its provenance; ``local``: local restraints of GENESIS, which become terms."""
    structure = Path(structure)
    kind = structure_kind(structure)
    read = {"CHARMM": _read_charmm, "AMBER": _read_amber, "GROMACS": _read_gromacs}[kind]
    if parameters and kind != "CHARMM":
        raise BadInputError(f"{structure} is a {kind} file, which needs no parameter files: leave out {parameters[0]}")
    for path in parameters:
        if not Path(path).is_file():
            raise BadInputError(f"{path} does not exist: give the rtf, prm and str files of {structure}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Local restraints bind any atoms to each other, so that no two molecules need be alike.
        content = _guarded(structure, lambda: read(structure, [str(path) for path in parameters], include,
                                                   local is None))
    files = [structure, *map(Path, companions), *map(Path, parameters)]
    if local is not None:
        add_local_restraints(content.flexible, content.atoms, local)
        files.append(Path(local))
    try:
        topology = topology_from_system(
            content.flexible, content.rigid, content.atoms, content.force_field, content.type_names,
            {"files": {path.name: file_digest(path)["blake3"] for path in files}})
    except BadInputError as error:
        raise BadInputError(f"{structure}: {error}") from None
    return topology if content.copies is None else expanded(topology, *content.copies)


def write_start(topology: Topology, position: np.ndarray, box: Sequence[float] | None, path: str | Path, folder: Path,
                periodic: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Write all atoms as one brick into ``folder``; gives the vectors of the box, (3, 3) as rows, and what was added to
    positions, (3,). ``path``: the file they come from, for messages. Raises BadInputError when they do not fit the
    topology."""
    if len(position) != topology.n_atoms:
        raise BadInputError(f"{path} has {len(position)} atoms, the structure file has {topology.n_atoms}: "
                            "give the coordinates of this very system")
    shift = np.zeros(3)
    if periodic:
        vectors = _vectors(box, path)
    else:
        vectors = np.diag(np.ceil(np.ptp(position, axis=0)) + 2.0)
        shift = 1.0 - position.min(axis=0)
    _check_bonds(topology, position, vectors if periodic else None, path)
    _write_brick(folder, position, shift, vectors, topology.residue_of_atom())
    return vectors, shift


def write_state(path: Path, state: Coordinates, box: np.ndarray | None, shift: np.ndarray) -> None:
    """Write what bricks round or lack: ``statefile`` of the engine. ``box``: (3,) edges or (3, 3) vectors, angstrom,
    None without one; ``shift``: (3,) what is added to positions. Without velocities they are to be drawn."""
    with atomic_path(path) as part, open(part, "wb") as file:
        file.write(b"CMSTATE0" if state.velocity is None else b"CMSTATE1")
        np.asarray(np.zeros(3) if box is None else np.diag(vectors_of(box)), dtype="<f8").tofile(file)
        for start in range(0, len(state.position), _ROWS):
            rows = np.zeros((min(_ROWS, len(state.position) - start), 6), dtype="<f8")
            rows[:, :3] = state.position[start:start + _ROWS] + shift
            if state.velocity is not None:
                rows[:, 3:] = state.velocity[start:start + _ROWS]
            rows.tofile(file)


def _write_control(path: Path, files: list[str], restart: Path, periodic: bool) -> None:
    """Write the control file of ``chromamd setup``; ``files``: topology, bricks and, where there is one, state."""
    lines = ["[INPUT]", *(f"{key:<12s} = {file}" for key, file in
                          zip(("topologyfile", "shardfile", "statefile"), files, strict=False)),
             "", "[OUTPUT]", f"rstfile      = {restart}", "", "[BOUNDARY]",
             f"type         = {'PBC' if periodic else 'NOBC'}"]
    with atomic_path(path) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _temperature(topology: Topology, velocity: np.ndarray, path: str | Path) -> float:
    """K. Raises BadInputError for velocities of another system, and for what are none."""
    if len(velocity) != topology.n_atoms:
        raise BadInputError(f"{path} has velocities of {len(velocity)} atoms, the structure file has "
                            f"{topology.n_atoms}: give the velocities of this very system")
    if not np.isfinite(velocity).all():
        raise BadInputError(f"{path} has velocities that are not numbers: give those of a run that is sound")
    mass = topology.masses()
    twice = float(np.sum(mass * np.einsum("ij,ij->i", velocity, velocity))) / AKMA_VELOCITY**2
    held = sum(len(t.constraint_atoms) * count for t, count in _counted(topology))
    temperature = twice / (max(1, 3 * int((mass > 0).sum()) - held - 3) * BOLTZMANN)
    if temperature > HOTTEST:
        raise BadInputError(f"{path} has velocities of {temperature:.3g} K: are they velocities, and of this system? "
                            "Leave them out to draw new ones")
    return temperature


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
_BOTH = {**_RIGID, "flexibleConstraints": True}
"""Of readers that keep the terms of what is constrained."""


def _read_charmm(path: Path, parameters: list[str], include: str | Path | None, by_kinds: bool) -> _Structure:
    if not parameters:
        raise BadInputError(f"{path} holds no parameters: name its rtf, prm and str files too")
    values = app.CharmmParameterSet(*parameters)
    with TemporaryDirectory() as folder:
        source, copies = path, None
        if by_kinds:
            whole = psf_file.Psf(path)
            kinds, source = psf_file.kinds_of(whole), Path(folder) / "kinds.psf"
            psf_file.write_examples(whole, kinds, source)
            copies = kinds, whole.residues
        psf = app.CharmmPsfFile(str(source))
        system = psf.createSystem(values, **_BOTH)
        content = _Structure(psf.topology, system, system, "CHARMM", [str(atom.attype) for atom in psf.atom_list],
                             copies)
        give_names(content.atoms, charmm_names(source))
    return _with_numbers(content)


def _read_amber(path: Path, parameters: list[str], include: str | Path | None, by_kinds: bool) -> _Structure:
    with TemporaryDirectory() as folder:
        source, copies = path, None
        if by_kinds:
            whole = prmtop_file.Prmtop(path)
            kinds, residues = prmtop_file.kinds_of(whole)
            source, copies = Path(folder) / "kinds.prmtop", (kinds, residues)
            prmtop_file.write_examples(whole, kinds, residues, source)
        prmtop = app.AmberPrmtopFile(str(source))
        system = prmtop.createSystem(**_BOTH)
        content = _Structure(prmtop.topology, system, system, "AMBER", copies=copies)
        give_names(content.atoms, amber_names(prmtop))
    return _with_numbers(content)


def _read_gromacs(path: Path, parameters: list[str], include: str | Path | None, by_kinds: bool) -> _Structure:
    top = (OneOfEach if by_kinds else GromacsTop)(path, include)
    flexible = top.createSystem(**_FLEXIBLE)
    content = _Structure(top.topology, flexible, bonds_alone(top).createSystem(**_RIGID), "GROMACS",
                         copies=top.kinds() if by_kinds else None)
    give_names(content.atoms, gromacs_names(top))
    return _with_numbers(content)


def _with_numbers(content: _Structure) -> _Structure:
    """The same with residues numbered as in the whole system."""
    if content.copies is not None:
        kinds, residues = content.copies
        own = np.flatnonzero(kinds.chosen[residues.first_atom[:-1]])
        for residue, k in zip(content.atoms.residues(), own.tolist(), strict=True):
            residue.id = str(residues.number[k])
    return content


def refuse_angles(box: np.ndarray | None, path: str | Path, key: str) -> None:
    """Raise BadInputError where the box of a file has angles that are not right and ``key`` gives edges alone."""
    if box is not None and len(box) > 3 and not np.allclose(box[3:], 90, atol=1e-3):
        raise BadInputError(f"{path} has a box with angles of " + ", ".join(f"{angle:g}" for angle in box[3:]) +
                            f" degrees, of which {key} says nothing: leave that out")


def _vectors(box: Sequence[float] | None, path: str | Path) -> np.ndarray:
    """(3, 3) vectors, the diagonal in multiples of 0.001 angstrom and the shape as it is."""
    if box is None or not np.all(np.asarray(box)[:3] > 0):
        raise BadInputError(f"{path} has no periodic box: give its edges with --box, or --no-box for "
                            "type = NOBC")
    box = np.asarray(box, dtype=float)
    if len(box) == 3 or np.allclose(box[3:], 90, atol=1e-3):
        return np.diag(np.round(box[:3], 3))
    try:
        vectors = reduced(vectors_from_angles(box[:3], box[3:]))
    except BadInputError as error:
        raise BadInputError(f"{path}: {error}") from None
    return vectors * (np.round(np.diag(vectors), 3) / np.diag(vectors))[:, None]


def _check_bonds(topology: Topology, position: np.ndarray, box: np.ndarray | None, path: str | Path) -> None:
    """Raise BadInputError when atoms that are bound to each other lie far apart. ``box``: None without images."""
    if not np.isfinite(position).all():
        raise BadInputError(f"{path} has coordinates that are not numbers: give a complete frame")
    worst, told = LONGEST_BOND, ""
    for t, count, start in zip(topology.run_template.tolist(), topology.run_count.tolist(),
                               topology.run_first_atom.tolist(), strict=False):
        template = topology.templates[t]
        n = template.n_atoms
        if not len(template.bond_atoms):
            continue
        copies = max(1, _ROWS // len(template.bond_atoms))
        for first in range(0, count, copies):
            begin = start + first * n
            molecules = position[begin:begin + min(copies, count - first) * n].reshape(-1, n, 3)
            apart = molecules[:, template.bond_atoms[:, 0]] - molecules[:, template.bond_atoms[:, 1]]
            length = np.linalg.norm(apart if box is None else nearest_image(apart, box), axis=2)
            ratio = length / template.bond_r0
            if ratio.max() > worst:
                worst = ratio.max()
                molecule, bond = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
                i, j = (begin + int(molecule) * n + int(k) + 1 for k in template.bond_atoms[bond])
                told = (f"atoms {i} and {j} of {path} are {length[molecule, bond]:.2f} angstrom apart, their bond is "
                        f"{template.bond_r0[bond]:.2f} long: are atoms in the order of the topology, and is the box "
                        "right?")
    if told:
        raise BadInputError(told)


def _write_brick(folder: Path, position: np.ndarray, shift: np.ndarray, vectors: np.ndarray,
                 residue: np.ndarray) -> None:
    """All atoms, moved by ``shift``, as one brick. Residues are put whole around their first atom, which is put into
    the box."""
    first = np.append(np.flatnonzero(np.diff(residue, prepend=-1)), len(residue))  # atoms of residues
    thousandths = np.empty(position.shape, dtype=np.int32)
    for k in range(0, len(first) - 1, _ROWS // 4):
        bounds = first[k:k + _ROWS // 4 + 1]
        rows = slice(bounds[0], bounds[-1])
        here = position[rows] + shift
        start = np.repeat(here[bounds[:-1] - bounds[0]], np.diff(bounds), axis=0)
        thousandths[rows] = np.round((wrapped(start, vectors) + nearest_image(here - start, vectors)) * 1000)
    box = np.diag(vectors)
    content = packed(BrickFile(box, np.zeros(3), box, np.arange(len(position)), thousandths))
    edges = tuple(float(edge) for edge in box)
    shard = Shard(name="brick_00000", atoms=len(position), charge=0, lower=(0.0, 0.0, 0.0), upper=edges,
                  files={"cbb": file_entry(content)})
    manifest = Manifest(box=edges, grid=(1, 1, 1), atoms=len(position), counts={}, net_charge=0, inputs={},
                        shards=[shard], tilt=tuple(tilt_of(vectors).tolist()))
    for name, data in (("brick_00000.cbb", content), (BRICKS_NAME, manifest.bricks_text().encode())):
        with atomic_path(folder / name) as part:
            part.write_bytes(data)
