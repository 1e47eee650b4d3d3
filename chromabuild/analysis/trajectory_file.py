"""Trajectories as users hand them over: opened with a sentence for whatever is wrong with them."""

import os
import re
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import gemmi
import numpy as np

from chromabuild.base.box_vectors import edges_and_angles
from chromabuild.base.errors import BadInputError
from chromabuild.sterics.atoms import Atoms

if TYPE_CHECKING:
    import MDAnalysis


@contextmanager
def quiet() -> Iterator[None]:
    """Without MDAnalysis' remarks on what a file leaves out or a later version will change; for child processes too."""
    import MDAnalysis  # noqa: F401  (its import puts filters of its own before ours)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="MDAnalysis")
        warnings.filterwarnings("ignore", message="Reader has no dt information")
        yield


def open_universe(topology: Path, trajectory: Path | None) -> "MDAnalysis.Universe":
    """A topology and the frames of a trajectory, in any format of MDAnalysis; without one, those of the topology file.

    mmCIF, BinaryCIF, packed files and solutes (.h5) serve as topologies too.

    Raises BadInputError for files that are missing, damaged, cut short, empty or do not belong together.
    """
    import MDAnalysis

    for path in (topology, trajectory):
        if path is not None and not path.is_file():
            raise BadInputError(f"{path} does not exist: give the path of a topology and of a trajectory")
    try:
        ours = re.search(r"\.(cif|bcif|h5|cbb)$|\.zst$|\.(cif|bcif)\.gz$", str(topology).lower())
        universe = _universe_of(Atoms.from_file(topology)) if ours else MDAnalysis.Universe(str(topology))
    except (ValueError, OSError, TypeError, EOFError, IndexError, KeyError) as error:
        raise BadInputError(f"{topology} cannot be read as a topology ({_line(error)}): give PSF, PDB, PRMTOP, GRO or "
                            "another format of MDAnalysis") from None
    if not (hasattr(universe.atoms, "names") and hasattr(universe.atoms, "resnames")):
        raise BadInputError(f"{topology} has no names of atoms and residues: give a topology (PSF, PDB, PRMTOP)")
    if trajectory is not None:
        load(universe, trajectory, str(topology))
    elif not hasattr(universe, "trajectory"):
        raise BadInputError(f"{topology} holds no coordinates: give a trajectory too")
    return universe


def _universe_of(atoms: Atoms) -> "MDAnalysis.Universe":
    """Atoms with their names, bonds and one frame."""
    import MDAnalysis

    words = [str(label).rsplit(":", 2) for label in atoms.residue_label]
    segments = list(dict.fromkeys(word[0] for word in words))
    place = {segment: k for k, segment in enumerate(segments)}
    universe = MDAnalysis.Universe.empty(
        atoms.n_atoms, n_residues=len(words), n_segments=len(segments), atom_resindex=atoms.residue,
        residue_segindex=[place[word[0]] for word in words], trajectory=True)
    symbols = np.array(["", *(gemmi.Element(number).name for number in range(1, 119))])
    for name, values in {
            "names": atoms.name.astype(object), "elements": symbols[atoms.element].astype(object),
            "resnames": np.array([word[1] for word in words], dtype=object),
            "resids": [int(re.match(r"-?\d+", word[2])[0]) for word in words], "segids": segments}.items():
        universe.add_TopologyAttr(name, values)
    universe.add_TopologyAttr("masses", [gemmi.Element(int(number)).weight for number in atoms.element])
    universe.add_TopologyAttr("bonds", [tuple(pair) for pair in atoms.graph.bonds.tolist()])
    universe.atoms.positions = np.asarray(atoms.position, dtype=np.float32)
    if atoms.box is not None:
        universe.dimensions = edges_and_angles(atoms.box)
    return universe


def load(universe: "MDAnalysis.Universe", trajectory: Path, whose: str) -> None:
    """Put the frames of a file into a universe. Raises BadInputError as ``open_universe`` does."""
    if not trajectory.is_file():
        raise BadInputError(f"{trajectory} is missing: run the phase again, or choose another with --phase")
    check_length(trajectory)
    try:
        universe.load_new(str(trajectory))
    except (ValueError, OSError, TypeError, EOFError) as error:
        said = _line(error)
        if "number of atoms" in said or "n_atoms" in said:
            said = f"it holds frames of another number of atoms than the {universe.atoms.n_atoms} of {whose}"
            raise BadInputError(f"{trajectory} is of another topology ({said}): give the topology that it was written "
                                "with") from None
        raise BadInputError(f"{trajectory} cannot be read as a trajectory ({said}): give DCD, XTC or another format of "
                            "MDAnalysis") from None
    if not len(universe.trajectory):
        raise BadInputError(f"{trajectory} holds no frames: give one with frames")


def check_length(path: Path) -> None:
    """Raise BadInputError for a DCD file that ends within a frame, holds fewer than its header says, none, or is none.

    MDAnalysis passes over the first two, and complains of the others with a traceback. What lies behind the frames
    that the header counts is one that chromamd was writing when it was stopped. Files with fixed atoms, and other
    formats, are not judged.
    """
    if path.suffix.lower() != ".dcd":
        return
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(92)
        for order in "<>":
            if len(head) == 92 and struct.unpack(f"{order}i", head[:4])[0] == 84 and head[4:8] == b"CORD":
                break
        else:
            if head[8:12] == b"CORD":  # marks of eight bytes
                return
            raise BadInputError(f"{path} cannot be read as a trajectory (it has no header of a DCD file): give DCD, "
                                "XTC or another format of MDAnalysis")
        numbers = struct.unpack(f"{order}20i", head[8:88])
        promised, fixed, cell, fourth = numbers[0], numbers[8], numbers[10], numbers[11]
        (titles,) = struct.unpack(f"{order}i", file.read(4))
        file.seek(titles + 4, os.SEEK_CUR)
        record = file.read(12)
        if len(record) < 12 or fixed:
            return
        _, atoms, _ = struct.unpack(f"{order}3i", record)
        begun = file.tell()
    frame = (56 if cell else 0) + (3 + bool(fourth)) * (8 + 4 * atoms)
    whole, rest = divmod(size - begun, frame)
    if rest and not 0 < promised <= whole:
        raise BadInputError(f"{path} ends within frame {whole + 1}: it is cut short; copy it again, or cut it back to "
                            f"its {whole} whole frames")
    if not whole:
        raise BadInputError(f"{path} holds no frames: give one with frames")
    if whole < promised:
        raise BadInputError(f"{path} holds {whole} frames and its header says {promised}: frames are missing; copy it "
                            "again, or write it anew with the frames that are there")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]
