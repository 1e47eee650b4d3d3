"""A solute as a run left it: a frame of a trajectory, and molecules put together again that the box has parted."""

from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.solute import Solute


def read_frame(path: Path, number: int, n_atoms: int) -> tuple[np.ndarray, np.ndarray]:
    """(atoms, 3) positions in a frame of a DCD file, of which the first ``n_atoms`` are the solute, and (3,) the box;
    angstrom, 0 without a periodic one. ``number``: from 1, or from -1, the last, backwards.

    Raises BadInputError for a file that cannot be read, is of another build, or has no such frame.
    """
    from MDAnalysis.lib.formats.libdcd import DCDFile

    try:
        with DCDFile(str(path)) as file:
            count, atoms = len(file), file.header["natoms"]
            if not 1 <= abs(number) <= count:
                raise BadInputError(f"{path} has no frame {number}: it holds {count}, counted from 1, or from -1, the "
                                    "last, backwards")
            file.seek(number - 1 if number > 0 else count + number)
            frame = file.read()
    except (OSError, EOFError) as error:
        raise BadInputError(f"{path} cannot be read as a trajectory ({error}): run chromabuild run again") from error
    if atoms < n_atoms:
        raise BadInputError(f"{path} holds {atoms:,} atoms and the solute has {n_atoms:,}: they are not of one build, "
                            "run chromabuild run again")
    return frame.xyz.astype(np.float64), np.asarray(frame.unitcell[[0, 2, 5]], dtype=np.float64)


def gathered(position: np.ndarray, solute: Solute, box: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Positions (n, 3) with every molecule in one piece, beside the first one in the image that is nearest to where it
    stands in ``reference`` (n, 3), in which all are together. ``box``: (3,), 0 where there is none.

    Atoms that follow each other in a molecule are closer to each other than half of any box that holds a solute.
    """
    edges = np.asarray(box, dtype=float)
    if not (edges > 0).all():
        return position
    first = solute.residue_first_atom[solute.molecule_first_residue]
    step = np.diff(position, axis=0, prepend=position[:1])
    step -= edges * np.round(step / edges)
    step[first[:-1]] = position[first[:-1]]
    whole = np.empty_like(position)
    for a, b in zip(first[:-1], first[1:], strict=True):
        np.cumsum(step[a:b], axis=0, out=whole[a:b])
    sizes = np.diff(first)

    def centres(of: np.ndarray) -> np.ndarray:
        return np.add.reduceat(of, first[:-1], axis=0) / sizes[:, None]

    now, built = centres(whole), centres(np.asarray(reference, dtype=np.float64))
    apart = (now - now[0]) - (built - built[0])
    return whole - np.repeat(edges * np.round(apart / edges), sizes, axis=0)
