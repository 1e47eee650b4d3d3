"""RMSD in the report: of folds by themselves and of DNA, from frames whose atoms stand in the box in any image."""

import json
from pathlib import Path

import numpy as np
import pytest
from MDAnalysis.lib.formats.libdcd import DCDFile
from scipy.spatial.transform import Rotation

from chromabuild.molecule.residues import residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.report.deviation import MOST_FRAMES, deviations
from chromabuild.simulate.result import PhaseFiles, Run

BOX = np.array([80.0, 60.0, 60.0])


def solute() -> Solute:
    """Twelve nucleotides, and two nucleosomes of one H3 each: 40 alanines of the tail and of the fold."""
    kinds = [residue_names().index("DT")] * 12 + [residue_names().index("ALA")] * 80
    made = Solute(position=np.zeros((0, 3), np.float32), residue_template=np.array(kinds, np.uint16),
                  residue_number=np.r_[1:13, 20:60, 20:60].astype(np.int32),
                  residue_segment=np.repeat([0, 1, 2], [12, 40, 40]).astype(np.uint16),
                  segment_name=["DNAI", "H3A", "H3B"], segment_chain=["A", "B", "C"],
                  molecule_first_residue=np.array([0, 12, 52, 92]), molecule_name=["DNA-I", "H3", "H3"],
                  molecule_nucleosome=np.array([-1, 0, 1], np.int32))
    n = int(made.residue_first_atom[-1])
    made.position = np.random.default_rng(2).normal(0, 6, (n, 3)).astype(np.float32)
    return made


def write_frames(path: Path, frames: np.ndarray) -> None:
    with DCDFile(str(path), "w") as file:
        file.write_header("", frames.shape[1], 10, 10, 0.04, 1)
        for frame in frames:
            file.write(xyz=frame.astype(np.float32), box=[BOX[0], 90, BOX[1], 90, 90, BOX[2]])


def test_folds_and_dna(tmp_path):
    """The second nucleosome turns as a whole, its tail comes loose; DNA is stretched. There are two phases."""
    built = solute()
    built.write(tmp_path / "solute_clean.h5")
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "manifest.json").write_text(json.dumps({"box": BOX.tolist()}))
    start = built.position + (BOX - built.position.max(0) - built.position.min(0)) / 2
    of_residue = built.atom_residue
    second = (of_residue >= 52) & (built.residue_number[of_residue] > 38)
    tail = (of_residue >= 52) & ~second
    frames = []
    for k in range(2 * MOST_FRAMES):
        frame = start.astype(float) + 0.2 * k
        centre = frame[second].mean(axis=0)
        frame[second] = Rotation.from_rotvec([0.004 * k, 0, 0]).apply(frame[second] - centre) + centre
        frame[tail] += [0, 0.05 * k, 0]
        frame[of_residue < 12] *= [1 + 0.001 * k, 1, 1]
        frames.append(frame % BOX)
    phases = []
    for name, chosen, first in (("heat", frames[:MOST_FRAMES], 0.0), ("produce", frames[MOST_FRAMES:], 10.0)):
        write_frames(tmp_path / f"{name}.dcd", np.array(chosen))
        (tmp_path / f"{name}.log").write_text(f"INFO: STEP TIME\nINFO: 0 {first}\nINFO: 100 {first + 10}\n")
        phases.append(PhaseFiles(name, "dynamics", tmp_path / f"{name}.log", tmp_path / f"{name}.dcd", "()"))
    found = deviations(tmp_path, Run(tmp_path, tuple(phases)))
    assert set(found) == {"histone fold, mean", "farthest", "DNA"}
    time, fold = found["histone fold, mean"]
    assert time[0] == pytest.approx(0.1) and time[-1] == pytest.approx(20) and len(time) == 2 * MOST_FRAMES
    # Rigid motion and the tail do not count; what is left is the rounding of coordinates.
    assert fold.max() < 1e-4 and found["farthest"][1].max() < 1e-4
    stretched = start[of_residue < 12][built.atom_names()[of_residue < 12] == "P"]
    assert found["DNA"][1][-1] == pytest.approx(np.std(0.001 * 199 * (stretched + 0.2 * 199)[:, 0]), rel=0.3)
    assert np.all(np.diff(found["DNA"][1]) > -1e-4)


def test_without_frames_there_is_nothing_to_tell(tmp_path):
    built = solute()
    built.write(tmp_path / "solute_clean.h5")
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "manifest.json").write_text(json.dumps({"box": BOX.tolist()}))
    log = tmp_path / "a.log"
    log.write_text("INFO: STEP TIME\nINFO: 0 0\nINFO: 100 10\n")
    assert deviations(tmp_path, Run(tmp_path, (PhaseFiles("a", "dynamics", log, None, "()"),))) == {}
    write_frames(tmp_path / "few.dcd", np.zeros((2, 5, 3)))  # a selection that leaves the solute out
    assert deviations(tmp_path, Run(tmp_path, (PhaseFiles("a", "dynamics", log, tmp_path / "few.dcd", "()"),))) == {}
