"""Control files that name files of CHARMM, AMBER or GROMACS, as GENESIS' do, run by ``chromamd run FILE``.

What the files say becomes a topology and bricks in ``.chromamd`` beside the control file, named by the content of the
files, and a note ``FILE.import`` tells the engine where they are (``fortran/engine/input/foreign_files.f90``). The same
files are imported once. Few imports: every rank may start the command.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import edges_and_angles, tilt_of
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path, file_hash, locked

CACHE = ".chromamd"
NOTE_SUFFIX = ".import"
STRUCTURES = ("psffile", "prmtopfile", "grotopfile")
_PARAMETERS = ("topfile", "parfile", "strfile")
_COORDINATES = {"psffile": ("crdfile", "pdbfile"), "prmtopfile": ("ambcrdfile", "pdbfile", "crdfile"),
                "grotopfile": ("grocrdfile", "pdbfile", "crdfile")}
_REFERENCES = {"psffile": ("reffile",), "prmtopfile": ("ambreffile", "reffile"),
               "grotopfile": ("groreffile", "reffile")}
FOREIGN = (*STRUCTURES, *_PARAMETERS, "localresfile", "pdbfile", "crdfile", "ambcrdfile", "grocrdfile", "ambreffile",
           "groreffile")
"""Keys of [INPUT] that make a control file one of these."""
_ALSO = ("rstfile", "reffile")
_BOX = ("box_size_x", "box_size_y", "box_size_z")
_VERSION = "1"
"""Of what is kept in the cache."""
_GENESIS_MAGIC, _MAGIC = b"GD150608", b"CMDRST02"


@dataclass(frozen=True)
class ForeignControl:
    """What a control file says that decides an import: values by key, in the order of the file."""

    path: Path
    files: Mapping[str, str]
    """Of [INPUT]."""
    boundary: Mapping[str, str]
    """``type`` and edges of the box, where given."""

    @property
    def periodic(self) -> bool:
        """Whether there is a periodic box."""
        return self.boundary.get("type", "PBC").upper() != "NOBC"

    @property
    def box(self) -> list[float] | None:
        """Edges (angstrom), if all three are given."""
        try:
            edges = [float(self.boundary.get(key, 0)) for key in _BOX]
        except ValueError:
            return None
        return edges if min(edges) > 0 else None

    def first(self, keys: tuple[str, ...]) -> str | None:
        """The first of some keys that is given."""
        return next((key for key in keys if key in self.files), None)

    def sources(self) -> list[str]:
        """All of it, as the note says it."""
        return [f"{key} = {value}" for part in (self.files, self.boundary) for key, value in part.items()]


def read_foreign_control(path: str | Path) -> ForeignControl | None:
    """The files of other programs that a control file names; None when it names none or cannot be read."""
    wanted: dict[str, dict[str, str]] = {"input": {}, "boundary": {}}
    section, begun = "", ""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        line = line.partition("#")[0]
        if section != "selection":
            line = line.partition("!")[0]
        line = begun + line.replace("\t", " ").strip()
        begun = ""
        if line.endswith("\\"):
            begun = line[:-1]
        elif line.startswith("["):
            section = line.strip("[] ").lower()
        elif "=" in line and section in wanted:
            key, _, value = line.partition("=")
            wanted[section].setdefault(key.strip().lower(), value.strip())
    given = wanted["input"]
    if not any(key in FOREIGN for key in given):
        return None
    return ForeignControl(Path(path), {key: given[key] for key in given if key in (*FOREIGN, *_ALSO)},
                          {key: wanted["boundary"][key] for key in ("type", *_BOX) if key in wanted["boundary"]})


def prepare(path: str | Path) -> list[str]:
    """Import what a control file names, unless that is done, and leave the note for the engine. Gives a line for each
    thing that was made; nothing for a control file without files of other programs.

    Raises BadInputError for files that are missing, cannot be read or do not belong together.
    """
    control = read_foreign_control(path)
    if control is None:
        return []
    if "topologyfile" in _keys(control.path):
        raise BadInputError(f"{path} names a topologyfile beside files of other programs: leave out one of them")
    with locked(control.path.parent / CACHE / "lock"):
        return _Import(control).run()


def set_name(name: str) -> str:
    """The set of restart files of ours for one file of GENESIS: ``a_().rst`` for ``a.rst``."""
    stem, suffix = os.path.splitext(name)
    return name if "()" in name else f"{stem}_(){suffix}"


class _Import:
    """One control file."""

    def __init__(self, control: ForeignControl) -> None:
        self.control = control
        kind = control.first(STRUCTURES)
        if kind is None:
            raise BadInputError(f"{control.path} names {next(iter(control.files))} and no structure: add psffile, "
                                "prmtopfile or grotopfile to [INPUT]")
        self.kind = kind
        self.cache = control.path.parent / CACHE
        self.made: list[str] = []

    def run(self) -> list[str]:
        files, control = self.control.files, self.control
        structure = _existing(control, self.kind, files[self.kind])
        parameters = [_existing(control, key, name) for key in _PARAMETERS if key in files and self.kind == "psffile"
                      for name in files[key].replace(",", " ").split()]
        local = _existing(control, "localresfile", files["localresfile"]) if "localresfile" in files else None
        words = [str(len(parameters)), "local" if local else ""]
        sources = [structure, *parameters, *self._included(structure), *([local] if local else [])]
        folder = self.cache / f"topology-{_digest(*sources, words=words)}"
        if not (folder / "topology.h5").exists():
            self._make_topology(structure, parameters, local, folder / "topology.h5")
        notes = {"topologyfile": folder / "topology.h5", "scratch": self.cache / f"{control.path.stem}_start"}
        restart = self._restart()
        box = control.box
        if restart is not None and "()" in restart:
            notes["rstfile"] = Path(restart)
            box = _box_of_set(restart)
        else:
            key = control.first(_COORDINATES[self.kind])
            if key is None and restart is None:
                raise BadInputError(f"{control.path} names no coordinates: add {_COORDINATES[self.kind][0]} or pdbfile "
                                    "to [INPUT]")
            start = Path(restart) if restart else _existing(control, key, files[key])
            shards, exact, box = self._start(folder / "topology.h5", start, None if restart else box)
            notes["shardfile"] = shards
            if exact is not None:
                notes["exact_state"] = exact
            if restart is not None:
                notes["rstfile"] = Path("-")
        reference = control.first(_REFERENCES[self.kind])
        if reference is not None:
            place = _existing(control, reference, files[reference])
            notes["reffile"], _, _ = self._start(folder / "topology.h5", place, box)
        lines = [f"from: {line}" for line in control.sources()]
        lines += [f"to: {key} = {place}" for key, place in notes.items()]
        note = Path(f"{control.path}{NOTE_SUFFIX}")
        text = "\n".join(["# Made by chromamd; what it imported for the control file beside it.", *lines]) + "\n"
        if not note.exists() or note.read_text(encoding="utf-8") != text:
            with atomic_path(note) as part:
                part.write_text(text, encoding="utf-8")
        return self.made

    def _included(self, structure: Path) -> list[Path]:
        """Files beside a GROMACS top that it may include."""
        return sorted(structure.parent.rglob("*.itp")) if self.kind == "grotopfile" else []

    def _make_topology(self, structure: Path, parameters: list[Path], local: Path | None, target: Path) -> None:
        from chromabuild.forcefield.import_files import import_topology

        topology = import_topology(structure, parameters, local=local)
        topology.write(target)
        self.made.append(f"imported {structure}: {topology.n_atoms} atoms, {topology.force_field}")

    def _restart(self) -> str | None:
        """What rstfile stands for: a file of GENESIS, or a set of ours (with ``()``); None when it is not given."""
        name = self.control.files.get("rstfile")
        if name is None or "()" in name:
            return name
        if _begins_with(name, _GENESIS_MAGIC):
            return name
        if _begins_with(set_name(name).replace("()", "0"), _MAGIC):
            return set_name(name)
        if Path(name).exists():
            raise BadInputError(f"{self.control.path}: rstfile = {name} is neither a binary restart of GENESIS nor "
                                "one of chromamd: make it again, or leave it out to start from the coordinates")
        raise BadInputError(f"{self.control.path}: rstfile = {name} does not exist, nor does "
                            f"{set_name(name).replace('()', '0')}, which chromamd writes for it: run the control file "
                            "that makes it first")

    def _start(self, topology_file: Path, coordinates: Path,
               box: list[float] | None) -> tuple[Path, Path | None, list[float] | None]:
        """Bricks of a coordinate file, what a restart of GENESIS says exactly, and the edges of the box."""
        from_restart = _begins_with(coordinates, _GENESIS_MAGIC)
        periodic = self.control.periodic
        key = _digest(coordinates, words=[topology_file.parent.name, str(box), str(periodic)])
        folder = self.cache / f"coordinates-{key}"
        bricks, exact = folder / "bricks.txt", folder / "exact_state.bin"
        if not bricks.exists():
            self._make_start(topology_file, coordinates, box, folder, exact if from_restart else None)
        edges = [float(word) for word in (folder / "box.txt").read_text(encoding="ascii").split()]
        return bricks, exact if from_restart else None, edges

    def _make_start(self, topology_file: Path, coordinates: Path, box: list[float] | None, folder: Path,
                    exact: Path | None) -> None:
        from chromabuild.forcefield.coordinate_files import read_coordinates
        from chromabuild.forcefield.import_files import refuse_angles, write_start, write_state
        from chromabuild.forcefield.topology_file import Topology

        topology = Topology.read(topology_file)
        start = read_coordinates(coordinates)
        if self.control.periodic and box is None and start.box is None:
            raise BadInputError(f"{coordinates} has no periodic box: give box_size_x, box_size_y and box_size_z in "
                                "[BOUNDARY], or type = NOBC")
        if box is not None and len(box) == 3:
            refuse_angles(start.box, coordinates, "box_size_x, box_size_y and box_size_z")
        vectors, shift = write_start(topology, start.position, start.box if box is None else box, coordinates,
                                   folder / "made", self.control.periodic)
        with atomic_path(folder / "box.txt") as part:
            edges = edges_and_angles(vectors) if tilt_of(vectors).any() else np.diag(vectors)
            part.write_text(" ".join(f"{edge:.9f}" for edge in edges) + "\n", encoding="ascii")
        if exact is not None:
            write_state(exact, start, start.box if self.control.periodic else None, shift)
        for made in sorted((folder / "made").iterdir(), key=lambda place: place.suffix == ".txt"):
            made.replace(folder / made.name)  # the list comes last: where it is, all is
        (folder / "made").rmdir()
        lean = f", angles {', '.join(f'{angle:g}' for angle in edges[3:])}" if len(edges) > 3 else ""
        self.made.append(f"imported {coordinates}: box " + " x ".join(f"{edge:g}" for edge in edges[:3]) + " angstrom" +
                         lean)


def _existing(control: ForeignControl, key: str, name: str) -> Path:
    if not Path(name).is_file():
        raise BadInputError(f"{control.path}: {key} = {name} does not exist: check the name, which is relative to the "
                            "working folder")
    return Path(name)


def _keys(path: Path) -> set[str]:
    """All keys of a control file."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {line.partition("=")[0].strip().lower() for line in lines if "=" in line.partition("#")[0]}


def _digest(*files: Path, words: list[str] | None = None) -> str:
    """16 letters that stand for the content of files."""
    from blake3 import blake3

    text = "\n".join([_VERSION, *(words or []), *(file_hash(file) for file in files)])
    return blake3(text.encode()).hexdigest()[:16]


def _begins_with(path: str | Path, magic: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False


def _box_of_set(pattern: str) -> list[float] | None:
    """Edges (angstrom) of the box in the restart file of rank 0, with angles where these are not right."""
    from chromabuild.simulate.restart_head import box_of_rank

    box = box_of_rank(Path(pattern.replace("()", "0")))
    if box is None:
        return None
    return (box if box.ndim == 1 else edges_and_angles(box)).tolist()
