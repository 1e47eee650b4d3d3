"""A solute as a run left it: a frame of a trajectory, and molecules put together again that the box has parted."""

from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import box_of_frame, nearest_image, vectors_of
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.solute import Solute


class FrameOnDisk:
    """(n, 3) positions, angstrom, in a frame of a DCD file: slices of them are read, the rest takes no memory."""

    def __init__(self, path: Path, n: int, begin: int, order: str) -> None:
        """``begin``: where the record of x begins; ``order`` of bytes: ``<`` or ``>``."""
        self._path, self._n, self._begin, self._kind = path, n, begin, f"{order}f4"

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, rows: slice) -> np.ndarray:
        """(k, 3) float64 of a slice without steps."""
        first, end, _ = rows.indices(self._n)
        axes = [np.fromfile(self._path, self._kind, max(end - first, 0), offset=self._begin + 4 * first + 4
                            + axis * (4 * self._n + 8)) for axis in range(3)]
        return np.stack(axes, axis=1).astype(np.float64)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        """All of them in memory."""
        return self[:]


def read_frame(path: Path, number: int, n_atoms: int) -> tuple[FrameOnDisk, np.ndarray]:
    """Positions in a frame of a DCD file, of which the first ``n_atoms`` are the solute, and the box, (3,) edges or
    (3, 3) vectors where they lean; angstrom, 0 without a periodic one. ``number``: from 1, or from -1, the last,
    backwards.

    Raises BadInputError for a file that cannot be read, is of another build, or has no such frame.
    """
    from MDAnalysis.lib.formats.libdcd import DCDFile

    try:
        with DCDFile(str(path)) as file:
            count, atoms = len(file), file.header["natoms"]
            if not 1 <= abs(number) <= count:
                raise BadInputError(f"{path} has no frame {number}: it holds {count}, counted from 1, or from -1, the "
                                    "last, backwards")
            place = number - 1 if number > 0 else count + number
            begin = file._header_size + (place and file._firstframesize + (place - 1) * file._framesize)
            has_cell = file.is_periodic
        with open(path, "rb") as raw:
            raw.seek(begin)
            head = raw.read(56)
    except (OSError, EOFError) as error:
        raise BadInputError(f"{path} cannot be read as a trajectory ({error}): run chromabuild run again") from error
    if atoms < n_atoms:
        raise BadInputError(f"{path} holds {atoms:,} atoms and the solute has {n_atoms:,}: they are not of one build, "
                            "run chromabuild run again")
    order = "<" if int.from_bytes(head[:4], "little") in (48, 4 * atoms) else ">"
    box = box_of_frame(np.frombuffer(head, f"{order}f8", 6, 4)) if has_cell else None
    return FrameOnDisk(path, atoms, begin + (56 if has_cell else 0), order), np.zeros(3) if box is None else box


def gathered(position: np.ndarray, solute: Solute, box: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Positions (n, 3) with every molecule in one piece, beside the first one in the image that is nearest to where it
    stands in ``reference`` (n, 3), in which all are together. ``box``: (3,), 0 where there is none, or (3, 3).

    Atoms that follow each other in a molecule are closer to each other than half of any box that holds a solute.
    """
    vectors = vectors_of(box)
    if not (np.diag(vectors) > 0).all():
        return position
    first = solute.residue_first_atom[solute.molecule_first_residue]
    step = np.diff(position, axis=0, prepend=position[:1])
    step = nearest_image(step, vectors)
    step[first[:-1]] = position[first[:-1]]
    whole = np.empty_like(position)
    for a, b in zip(first[:-1], first[1:], strict=True):
        np.cumsum(step[a:b], axis=0, out=whole[a:b])
    sizes = np.diff(first)

    def centres(of: np.ndarray) -> np.ndarray:
        return np.add.reduceat(of, first[:-1], axis=0) / sizes[:, None]

    now, built = centres(whole), centres(np.asarray(reference, dtype=np.float64))
    apart = (now - now[0]) - (built - built[0])
    return whole - np.repeat(apart - nearest_image(apart, vectors), sizes, axis=0)
