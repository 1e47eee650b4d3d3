"""PDB text of a brick: fixed columns, filled by a Fortran kernel.

Rules (so that MDAnalysis, Biopython, gemmi and OpenMM all keep every atom): serial = global atom number modulo 100,000;
decimal residue numbers up to 9,999, unique within a chain letter of the shard; the segment id, unique in the whole
system, in columns 73-76; ATOM for standard residues of polymers, HETATM for modified ones, water and ions; TER behind
the last residue that a shard has of a polymer.
"""

from functools import cache

import numpy as np
import zstandard

from chromabuild._kernels import pdb_format
from chromabuild.base.box_vectors import edges_and_angles
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import residue_library
from chromabuild.shards.brick import Brick

COMPRESSION_LEVEL = 1
LINE_LENGTH = 81
"""With the line feed."""


@cache
def _template_lines() -> tuple[np.ndarray, np.ndarray]:
    """(lines, 81) int8 lines of every atom of the library without their numbers, and each residue's first line."""
    lines, first = [], []
    for template in residue_library().values():
        first.append(len(lines))
        record = "ATOM  " if template.is_standard else "HETATM"
        for name, element in zip(template.atoms, template.elements, strict=True):
            # A one-letter element stands in column 14 unless the name needs all four columns.
            shown = name if len(name) == 4 or len(element) == 2 else f" {name}"
            lines.append(f"{record}{'':5} {shown:<4} {template.pdb_name:>3}  {'':4}    {'   0.000' * 3}"
                         f"{1:6.2f}{0:6.2f}{'':10}{element.upper():>2}  \n")
    text = np.frombuffer("".join(lines).encode("ascii"), dtype=np.int8).reshape(len(lines), 81)
    return text, np.array(first, dtype=np.int32)


def format_brick(brick: Brick, text: np.ndarray) -> None:
    """Fill ``text`` (n, 81) int8, one line an atom. Raises BadInputError for a coordinate that does not fit."""
    if brick.n_atoms == 0:
        return
    lines, first_line = _template_lines()
    tag = np.concatenate([brick.chain_letters[:, None], brick.residue_segment], axis=1).astype(np.int8)
    bad_atom = pdb_format.format_atoms(
        lines.T, first_line[brick.residue_template], brick.residue_size, brick.residue_first_id,
        brick.residue_number, tag.T, brick.position.T, text.T)
    if bad_atom:
        x, y, z = brick.position[bad_atom - 1] / 1000
        raise BadInputError(f"atom {brick.global_id[bad_atom - 1]} at ({x:.3f}, {y:.3f}, {z:.3f}) does not fit the "
                            "columns of a PDB file (-999.999 to 9999.999 angstrom): use a smaller box")


def polymer_ends(is_polymer: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """(k,) of n residues or atoms in order those behind which a polymer does not go on.

    ``is_polymer`` (n,) bool, ``segment`` (n, 4) uint8 names.
    """
    code = np.ascontiguousarray(segment).view("<u4").ravel()
    goes_on = np.append(is_polymer[1:] & (code[1:] == code[:-1]), False)
    return np.flatnonzero(is_polymer & ~goes_on)


def with_ter(lines: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The lines (n + k, 81) with TER behind those of the rows ``ends`` (k,)."""
    if not len(ends):
        return lines
    ter = np.full((len(ends), LINE_LENGTH), ord(" "), dtype=lines.dtype)
    ter[:, :3] = np.frombuffer(b"TER", dtype=lines.dtype)
    ter[:, 17:26] = lines[ends, 17:26]
    ter[:, 72:76] = lines[ends, 72:76]
    ter[:, -1] = ord("\n")
    return np.insert(lines, ends + 1, ter, axis=0)


@cache
def _is_polymer() -> np.ndarray:
    """(library,) bool."""
    return np.array([one.kind in ("amino acid", "nucleotide") for one in residue_library().values()])


def header_line(box: np.ndarray) -> bytes:
    """CRYST1 of a box, (3,) edges or (3, 3) vectors, angstrom, as long as all lines."""
    x, y, z, alpha, beta, gamma = edges_and_angles(box)
    text = f"CRYST1{x:9.3f}{y:9.3f}{z:9.3f}{alpha:7.2f}{beta:7.2f}{gamma:7.2f} P 1           1"
    return f"{text:80}\n".encode()


def pdb_bytes(brick: Brick, compress: bool) -> bytes | memoryview:
    """The whole file, zstd-compressed if asked for."""
    header = header_line(brick.vectors)
    end = f"{'END':80}\n".encode()
    content = np.empty(len(header) + 81 * brick.n_atoms + len(end), dtype=np.int8)
    content[:len(header)] = np.frombuffer(header, dtype=np.int8)
    content[-len(end):] = np.frombuffer(end, dtype=np.int8)
    lines = content[len(header):-len(end)].reshape(brick.n_atoms, 81)
    format_brick(brick, lines)
    last = polymer_ends(_is_polymer()[brick.residue_template], brick.residue_segment)
    if len(last):
        ends = np.cumsum(brick.residue_size)[last] - 1
        content = np.concatenate([content[:len(header)], with_ter(lines, ends).ravel(), content[-len(end):]])
    plain = content.data.cast("B")
    return zstandard.ZstdCompressor(level=COMPRESSION_LEVEL).compress(plain) if compress else plain
