"""RMSD of histone folds and of DNA from the structure that was built, along the trajectories of a run."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.analysis.rmsd import followed, superposed_rmsd
from chromabuild.base.box_vectors import box_of, box_of_frame, vectors_of
from chromabuild.molecule.histone_tails import TAILS
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.simulate.result import PhaseFiles, Run

Series = dict[str, tuple[np.ndarray, np.ndarray]]
"""Name to time (ps) and RMSD (angstrom)."""
MOST_FRAMES = 100
"""Of a phase; of more every second, third, ... is looked at."""
_MOST_BYTES = 1 << 30
"""Of frames that are read of a phase."""
_MOST_NUCLEOSOMES, _MOST_PHOSPHATES = 24, 4000


@dataclass(frozen=True)
class _Part:
    """Atoms that are superposed together: their numbers in the solute, ascending."""

    name: str
    atoms: np.ndarray


def deviations(folder: Path, run: Run) -> Series:
    """RMSD of what the solute of an output folder has: the fold of its nucleosomes, each superposed by itself (C-alpha
    atoms without tails), and all its DNA (P atoms).

    Reads DCD files that hold the whole solute; empty where there are none, or where the solute was not built here.
    """
    path, manifest = folder / "solute_clean.h5", folder / "shards" / "manifest.json"
    phases = [phase for phase in run.dynamics if phase.trajectory and phase.trajectory.suffix == ".dcd"
              and phase.trajectory.is_file()]
    if not (path.is_file() and manifest.is_file() and phases):
        return {}
    solute = Solute.read(path)
    parts = list(_parts(solute))
    if not parts:
        return {}
    atoms = np.unique(np.concatenate([part.atoms for part in parts]))
    written = json.loads(manifest.read_text(encoding="utf-8"))
    start = _placed(solute, box_of(np.array(written["box"]), np.array(written.get("tilt", 0))))[atoms]
    rows = [np.searchsorted(atoms, part.atoms) for part in parts]
    time, values, before = [], [], start
    for phase in phases:
        read = _frames(phase, atoms, solute.n_atoms)
        if read is None:
            return {}
        when, frames, boxes = read
        if not len(when):
            continue
        path_of_atoms = followed(frames, boxes, before)
        before = path_of_atoms[-1]
        time.append(when)
        values.append(np.array([superposed_rmsd(path_of_atoms[:, row], start[row]) for row in rows]))
    if not time:
        return {}
    return _series(parts, np.concatenate(time), np.concatenate(values, axis=1))


def _series(parts: list[_Part], time: np.ndarray, values: np.ndarray) -> Series:
    """What is shown of the RMSD (parts, frames): nucleosomes by their mean and the worst of them."""
    found: Series = {}
    folds = values[[part.name == "fold" for part in parts]]
    if len(folds):
        found["histone fold" + (", mean" if len(folds) > 1 else "")] = (time, folds.mean(axis=0))
    if len(folds) > 1:
        found["farthest"] = (time, folds.max(axis=0))
    for part, value in zip(parts, values, strict=True):
        if part.name == "DNA":
            found["DNA"] = (time, value)
    return found


def _parts(solute: Solute) -> Iterator[_Part]:
    """C-alpha atoms of the ordered core of nucleosomes, and P atoms of all DNA; of many some, evenly spread."""
    library = list(residue_library().values())
    first = solute.residue_first_atom[:-1]
    molecule = np.searchsorted(solute.molecule_first_residue, np.arange(solute.n_residues), side="right") - 1

    def atoms_named(name: str, residues: np.ndarray) -> np.ndarray:
        place = np.array([residue.index.get(name, -1) for residue in library])[solute.residue_template[residues]]
        return first[residues[place >= 0]] + place[place >= 0]

    core = np.zeros(solute.n_residues, dtype=bool)
    for k, name in enumerate(solute.molecule_name):
        residues = slice(*solute.molecule_first_residue[k:k + 2])
        if name in TAILS and solute.molecule_nucleosome[k] >= 0 and not name.startswith(("H5", "H1.")):
            number = solute.residue_number[residues]
            core[residues] = ~np.any([(number >= low) & (number <= high) for low, high in TAILS[name]], axis=0)
    owner = solute.molecule_nucleosome[molecule]
    nucleosomes = np.unique(owner[core])
    for nucleosome in nucleosomes[::max(1, -(-len(nucleosomes) // _MOST_NUCLEOSOMES))]:
        yield _Part("fold", atoms_named("CA", np.flatnonzero(core & (owner == nucleosome))))
    strands = [k for k, name in enumerate(solute.molecule_name) if name.startswith("DNA")]
    phosphates = atoms_named("P", np.flatnonzero(np.isin(molecule, strands)))
    if len(phosphates) > 2:
        yield _Part("DNA", phosphates[::max(1, -(-len(phosphates) // _MOST_PHOSPHATES))])


def _placed(solute: Solute, box: np.ndarray) -> np.ndarray:
    """(n, 3) positions in the box, (3,) or (3, 3), angstrom: the middle of the solute's extent stands in the middle of
    the box."""
    position = np.asarray(solute.position, float)
    return position + (vectors_of(box).sum(axis=0) - position.max(axis=0) - position.min(axis=0)) / 2


def _frames(phase: PhaseFiles, atoms: np.ndarray,
            solute_atoms: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray | None]] | None:
    """Times (f,) in ps, positions (f, n, 3) of the atoms and boxes, (3,) or (3, 3), of some frames of a phase; None
    where the trajectory does not hold the solute."""
    from MDAnalysis.lib.formats.libdcd import DCDFile

    with DCDFile(str(phase.trajectory)) as file:
        n_atoms = file.header["natoms"]
        if n_atoms < solute_atoms:
            return None
        most = int(min(MOST_FRAMES, max(2, _MOST_BYTES // (12 * n_atoms))))
        stride = max(1, -(-len(file) // most))
        chosen = np.arange(len(file))[::-1][::stride][::-1]  # the last one among them
        if not len(chosen):
            return np.zeros(0), np.zeros((0, len(atoms), 3)), []
        read = file.readframes(int(chosen[0]), None, stride, order="fac", indices=atoms.astype(np.int64))
        n_frames = len(file)
    boxes = [box_of_frame(cell) for cell in np.asarray(read.unitcell, float)]
    return phase.frame_times(n_frames)[chosen], np.asarray(read.xyz, float), boxes
