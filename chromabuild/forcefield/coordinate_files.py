"""Coordinate files of other programs: positions, velocities and box.

What a file is, its content tells, never its suffix. Units in the files: GROMACS nm and nm/ps; AMBER angstrom and
angstrom in 1/20.455 ps (amber.org, "File formats"; NetCDF restarts name the factor); NAMD angstrom and angstrom in
48.888 fs (user's guide, "Output files"); OpenMM nm and nm/ps.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import edges_and_angles
from chromabuild.base.constants import AKMA_VELOCITY, ANGSTROM_PER_NM
from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.genesis_restart import is_genesis_restart, read_genesis_restart

_AMBER_VELOCITY = 20.455
"""Angstrom/ps, of formatted restart files."""
_LINES = 1 << 17
"""Of text that are turned to numbers at once."""
_PDB_RECORDS = (b"ATOM  ", b"HETATM", b"CRYST1", b"HEADER", b"TITLE ", b"REMARK", b"MODEL ", b"COMPND", b"EXPDTA",
                b"AUTHOR", b"SEQRES", b"CONECT")
_INPCRD_LINE = re.compile(rb"[ \-\d]{3}\d\.\d{7}")
_REFUSED = {
    b"\x1f\x8b": "is compressed: unpack it with gunzip",
    b"\x89HDF": "is a NetCDF file of version 4: write it as a classic one, with nccopy -k classic",
    b"\x00\x00\x07\xc9": "is a trr file of GROMACS: write a gro file, with gmx trjconv -s topol.tpr -ndec 6",
    b"\x00\x00\x07\xcb": "is an xtc file of GROMACS: write a gro file, with gmx trjconv -s topol.tpr -ndec 6",
    b"\x00\x02\x9f\x29": "is a checkpoint of GROMACS: write a gro file, with gmx trjconv -s topol.tpr -ndec 6",
    b"data_": "is a CIF file: write its atoms as PDB, with gemmi convert",
}
"""First bytes of files that are known and not read, and what to do with them."""


@dataclass(frozen=True)
class Coordinates:
    """What a file says of all atoms, in its own order."""

    position: np.ndarray
    """(n, 3) angstrom."""
    velocity: np.ndarray | None = None
    """(n, 3) angstrom/ps; None where the file has none."""
    box: np.ndarray | None = None
    """Edges (3,), or edges and angles (6,), angstrom and degree; None where the file has none."""


def read_coordinates(path: str | Path) -> Coordinates:
    """Read pdb, gro, crd (CHARMM), inpcrd and rst7 (AMBER, text and NetCDF), binary coordinates of NAMD, States of
    OpenMM and restart files of GENESIS. Raises BadInputError for another file, and one that is cut short."""
    return _READERS[_kind_of(path)](Path(path))


def read_velocities(path: str | Path) -> np.ndarray:
    """(n, 3) angstrom/ps: the velocities of a file that ``read_coordinates`` reads, or binary ones of NAMD. Raises
    BadInputError for a file without any."""
    kind = _kind_of(path)
    if kind == "namd":
        return _read_namd(Path(path)).position * AKMA_VELOCITY
    velocity = _READERS[kind](Path(path)).velocity
    if velocity is None:
        raise BadInputError(f"{path} holds no velocities: leave it out to draw them, or give the file that has them")
    return velocity


def read_cell(path: str | Path) -> np.ndarray:
    """(6,) edges and angles of the last line of an extended system file of NAMD. Raises BadInputError for another."""
    try:
        lines = [line for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
                 if line.strip() and not line.startswith("#")]
        numbers = np.array(lines[-1].split()[1:10], dtype=float)
        if len(numbers) != 9 or not np.isfinite(numbers).all():
            raise ValueError
    except OSError as error:
        raise BadInputError(f"cannot read {path} ({error.strerror}): give an extended system file of NAMD") from None
    except (ValueError, IndexError):
        raise BadInputError(f"{path} is no extended system file of NAMD, whose lines have a step and three vectors: "
                            "give the xsc file of this run, or --box") from None
    return edges_and_angles(_upright(numbers.reshape(3, 3), path))


def _upright(vectors: np.ndarray, path: str | Path) -> np.ndarray:
    """Vectors as rows, if the first lies along x and the second in the xy plane. Raises BadInputError otherwise: edges
    and angles would not tell how they lie."""
    if not (np.diag(vectors) > 0).all() or np.abs(np.triu(vectors, 1)).max() > 1e-3:
        raise BadInputError(f"{path} has box vectors of which the first is not along x or the second not in the xy "
                            "plane: rotate the system so that they are")
    return vectors


def _kind_of(path: str | Path) -> str:
    """The reader of a file. Raises BadInputError where there is none."""
    if is_genesis_restart(path):
        return "genesis"
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
            size = file.seek(0, 2)
    except OSError as error:
        raise BadInputError(f"cannot read {path} ({error.strerror}): give a coordinate file") from None
    for first, advice in _REFUSED.items():
        if head.startswith(first):
            raise BadInputError(f"{path} {advice}")
    if head.startswith(b"CDF"):
        return "netcdf"
    if head[4:8] == b"CORD":
        raise BadInputError(f"{path} is a DCD trajectory: write one frame as PDB or restart file")
    if head.lstrip().startswith(b"<"):
        return "openmm"
    if b"\0" in head:
        # The count of atoms is its only mark: whole, or of a size that a file cut short has.
        if len(head) >= 4 and size <= 4 + 24 * int(np.frombuffer(head[:4], "<i4")[0]):
            return "namd"
        raise BadInputError(f"{path} is a binary file of a kind that is not known: give pdb, gro, crd, inpcrd, rst7, "
                            "coor, a State of OpenMM or a restart of GENESIS")
    lines = head.splitlines()
    is_counted = len(lines) > 2 and lines[1].split()[:1] and lines[1].split()[0].isdigit()
    if is_counted and _INPCRD_LINE.match(lines[2]):
        return "inpcrd"  # whatever its title
    if any(line.startswith(_PDB_RECORDS) for line in lines):
        return "pdb"
    if lines and lines[0].startswith(b"*"):
        return "crd"
    if is_counted:
        return "gro"
    raise BadInputError(f"{path} is no coordinate file that can be read: give pdb, gro, crd, inpcrd, rst7, coor, a "
                        "State of OpenMM or a restart of GENESIS")


def _table(path: Path, lines: Iterator[bytes], n: int, first: int, width: int, columns: int,
           number: int) -> np.ndarray:
    """(n, columns): numbers of ``width`` characters from column ``first`` of each of ``n`` lines; ``number``: of the
    line before, from 1, for messages. Raises BadInputError for a line that is short or holds something else."""
    table, done = np.empty((n, columns)), 0
    last = first + width * columns
    while done < n:
        block = [line[first:last] for line in islice(lines, min(_LINES, n - done))]
        if not block:
            raise BadInputError(f"{path} ends after {done:,} of {n:,} atoms: it is cut short, copy it again")
        try:
            table[done:done + len(block)] = _numbers(b"".join(block), width).reshape(len(block), columns)
        except ValueError:
            for k, text in enumerate(block):
                try:
                    whole = len(_numbers(text, width)) == columns
                except ValueError:
                    whole = False
                if not whole:
                    raise BadInputError(f"{path}, line {number + done + k + 1}: {_shown(text)!r} is not {columns} "
                                        f"numbers of {width} characters: it is cut short or damaged, copy it again"
                                        ) from None
        done += len(block)
    return table


def _shown(text: bytes) -> str:
    """For messages."""
    return text.decode("ascii", "replace").strip()


def _numbers(text: bytes, width: int) -> np.ndarray:
    """Numbers of ``width`` characters each. Raises ValueError for others."""
    if len(text) % width:
        raise ValueError
    return np.frombuffer(text, f"S{width}").astype(float)


def _read_pdb(path: Path) -> Coordinates:
    """Of the first model."""
    box = None
    pieces: list[np.ndarray] = []
    with open(path, "rb") as file:
        number = 0
        for lines in iter(lambda: list(islice(file, _LINES)), []):
            ends = next((k for k, line in enumerate(lines) if line.startswith(b"ENDMDL")), len(lines))
            for line in lines[:ends]:
                if line.startswith(b"CRYST1"):
                    box = _crystal(line)
            atoms = [k for k, line in enumerate(lines[:ends]) if line.startswith((b"ATOM  ", b"HETATM"))]
            try:
                pieces.append(_numbers(b"".join([lines[k][30:54] for k in atoms]), 8).reshape(-1, 3))
                if len(pieces[-1]) != len(atoms):
                    raise ValueError
            except ValueError:
                for k in atoms:
                    _table(path, iter([lines[k]]), 1, 30, 8, 3, number + k)
                raise
            number += len(lines)
            if ends < len(lines):
                break
    position = np.concatenate(pieces) if pieces else np.empty((0, 3))
    if not len(position):
        raise BadInputError(f"{path} holds no atoms: give a coordinate file of the system")
    return Coordinates(position, None, box)


def _crystal(line: bytes) -> np.ndarray | None:
    """Edges and angles of a CRYST1 record; None for the cube of 1 angstrom that stands for no box."""
    try:
        box = np.array([float(line[a:b]) for a, b in ((6, 15), (15, 24), (24, 33), (33, 40), (40, 47), (47, 54))])
    except ValueError:
        return None
    return box if (box[:3] > 1).all() else None


def _read_crd(path: Path) -> Coordinates:
    with open(path, "rb") as file:
        number, line = 1, file.readline()
        while line.startswith(b"*"):
            number, line = number + 1, file.readline()
        n = _count(path, line, number)
        extended = b"EXT" in line.upper() or n >= 100_000
        first, width = (40, 20) if extended else (20, 10)
        return Coordinates(_table(path, file, n, first, width, 3, number))


def _read_gro(path: Path) -> Coordinates:
    with open(path, "rb") as file:
        file.readline()
        n = _count(path, file.readline(), 2)
        start = file.tell()
        line = file.readline()
        points = [k for k, letter in enumerate(line) if letter == ord(".") and k >= 20]
        if len(points) < 3:
            raise BadInputError(f"{path}, line 3: there are no coordinates behind column 20: give a gro file")
        width = points[1] - points[0]
        moves = len(line.rstrip(b"\r\n")) >= 20 + 6 * width
        file.seek(start)
        table = _table(path, file, n, 20, width, 6 if moves else 3, 2)
        table *= ANGSTROM_PER_NM
        words = file.readline().split()
    try:
        edges = np.array(words, dtype=float) * ANGSTROM_PER_NM
        if len(edges) not in (3, 9):
            raise ValueError
    except ValueError:
        raise BadInputError(f"{path}, line {n + 3}: the line of the box has {len(words)} words and not 3 or 9 numbers: "
                            "it is cut short or has another number of atoms, copy it again") from None
    if not (edges[:3] > 0).all():
        box = None
    elif len(edges) == 3 or not edges[3:].any():
        box = edges[:3]
    else:
        box = edges_and_angles(_upright(edges[[0, 3, 4, 5, 1, 6, 7, 8, 2]].reshape(3, 3), path))
    return Coordinates(table[:, :3], table[:, 3:] if moves else None, box)


def _read_inpcrd(path: Path) -> Coordinates:
    """Six numbers of twelve characters a line: positions, then velocities, then the box, each where there is one."""
    with open(path, "rb") as file:
        file.readline()
        n = _count(path, file.readline(), 2)
        values, found = np.empty(min(6 * n + 6, path.stat().st_size // 12)), 0
        number = 2
        for lines in iter(lambda: list(islice(file, _LINES)), []):
            kept = [line.rstrip() for line in lines]
            try:
                block = _numbers(b"".join(kept), 12)
            except ValueError:
                for k, line in enumerate(kept):
                    _table(path, iter([line]), 1, 0, 12, len(line) // 12 or 1, number + k)
                    if len(line) % 12:
                        raise BadInputError(f"{path}, line {number + k + 1}: its last number is cut short: copy the "
                                            "file again") from None
                raise
            values[found:found + len(block)] = block[:max(0, len(values) - found)]
            found += len(block)
            number += len(lines)
    more = found - 3 * n
    # Behind the positions of one or two atoms there is a box: velocities alone could not be told from it.
    kinds = {0: (False, 0), 3: (False, 3), 6: (False, 6), **({} if n < 3 else {3 * n: (True, 0)}),
             3 * n + 3: (True, 3), 3 * n + 6: (True, 6)}
    if more not in kinds:
        raise BadInputError(f"{path} has {found:,} numbers, and {n:,} atoms have {3 * n:,}, or twice as many "
                            "with velocities, and 6 of the box: it is cut short, copy it again")
    moves, edges = kinds[more]
    values = values[:found]
    box = values[len(values) - edges:] if edges and (values[len(values) - edges:][:3] > 0).all() else None
    velocity = values[3 * n:6 * n].reshape(n, 3) if moves else None
    if velocity is not None:
        velocity *= _AMBER_VELOCITY
    return Coordinates(values[:3 * n].reshape(n, 3), velocity, box)


def _read_netcdf(path: Path) -> Coordinates:
    from scipy.io import netcdf_file

    found: dict[str, np.ndarray] = {}
    try:
        with netcdf_file(path, "r", mmap=False) as file:
            for name, rank in (("coordinates", 2), ("velocities", 2), ("cell_lengths", 1), ("cell_angles", 1)):
                if name in file.variables:
                    values = np.array(file.variables[name][:], dtype=float)
                    values *= getattr(file.variables[name], "scale_factor", 1.0)
                    if values.ndim > rank and len(values) != 1:
                        raise BadInputError(f"{path} is a trajectory of {len(values)} frames: write one of them as a "
                                            "restart, with cpptraj")
                    found[name] = values.reshape(values.shape[-rank:])
    except (OSError, ValueError, TypeError, IndexError, KeyError) as error:
        raise BadInputError(f"cannot read {path} as a NetCDF restart ({error}): it is cut short or damaged, copy it "
                            "again") from None
    if "coordinates" not in found:
        raise BadInputError(f"{path} is a NetCDF file without coordinates: give a restart file of AMBER")
    box = None
    if "cell_lengths" in found and (found["cell_lengths"] > 0).all():
        box = np.concatenate([found["cell_lengths"], found.get("cell_angles", np.full(3, 90.0))])
    return Coordinates(found["coordinates"], found.get("velocities"), box)


def _read_namd(path: Path) -> Coordinates:
    data = np.fromfile(path, dtype=np.uint8)
    n = int(data[:4].view("<i4")[0])
    if len(data) != 4 + 24 * n:
        raise BadInputError(f"{path} has {n:,} atoms by its first number and room for {max(0, len(data) - 4) // 24:,}: "
                            "it is cut short, copy it again")
    return Coordinates(data[4:].view("<f8").reshape(n, 3).astype(float, copy=False))


def _read_openmm(path: Path) -> Coordinates:
    import openmm
    from openmm import unit

    try:
        state = openmm.XmlSerializer.deserialize(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, openmm.OpenMMException) as error:
        raise BadInputError(f"cannot read {path} as a State of OpenMM ({error}): it is cut short or damaged, write it "
                            "again") from None
    if not isinstance(state, openmm.State):
        raise BadInputError(f"{path} is a {type(state).__name__} of OpenMM and no State: give what "
                            "simulation.saveState wrote")
    try:
        position = np.array(state.getPositions(asNumpy=True).value_in_unit(unit.angstrom))
    except openmm.OpenMMException:
        raise BadInputError(f"{path} is a State without positions: write it with getPositions=True") from None
    try:
        velocity = np.array(state.getVelocities(asNumpy=True).value_in_unit(unit.angstrom / unit.picosecond))
    except openmm.OpenMMException:
        velocity = None
    vectors = np.array(state.getPeriodicBoxVectors(asNumpy=True).value_in_unit(unit.angstrom))
    return Coordinates(position, velocity, edges_and_angles(vectors))


def _read_genesis(path: Path) -> Coordinates:
    restart = read_genesis_restart(path)
    return Coordinates(restart.position, restart.velocity, restart.box if (restart.box > 0).all() else None)


def _count(path: Path, line: bytes, number: int) -> int:
    """The number of atoms at the beginning of a line. Raises BadInputError where it is none."""
    words: Sequence[bytes] = line.split()
    if not words or not words[0].isdigit() or not int(words[0]):
        raise BadInputError(f"{path}, line {number}: the number of atoms is missing: it is cut short, or of another "
                            "kind")
    return int(words[0])


_READERS = {"pdb": _read_pdb, "crd": _read_crd, "gro": _read_gro, "inpcrd": _read_inpcrd, "netcdf": _read_netcdf,
            "namd": _read_namd, "openmm": _read_openmm, "genesis": _read_genesis}
