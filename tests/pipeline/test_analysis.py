"""`chromabuild analyse` on files: tables, what is kept, what is wrong with input, and the report's section."""

import csv
import json
import shutil
from pathlib import Path

import h5py
import MDAnalysis
import numpy as np
import pytest
from MDAnalysis.lib.formats.libdcd import DCDFile
from support.command_line import chromabuild, result_of
from support.placed_nucleosomes import place_nucleosomes
from support.universes import built_dna, universe_of

from chromabuild.analysis.record import table_states
from chromabuild.analysis.trajectory_file import quiet
from chromabuild.base.errors import BadInputError
from chromabuild.dna.steps import rebuild
from chromabuild.pipeline.analysis import analyse, file_source
from chromabuild.report.analysis import analysis_section

FRAMES = 34


def write_dcd(path, frames, promised=None):
    with DCDFile(str(path), "w") as file:
        file.write_header("", frames.shape[1], 0, 1, 2.0 / 0.04888821, 1)  # 2 ps
        for frame in frames:
            file.write(xyz=frame.astype(np.float32), box=[300, 90, 300, 90, 90, 300])
    if promised is not None:
        data = bytearray(path.read_bytes())
        data[8:12] = np.int32(promised).tobytes()
        path.write_bytes(data)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A nucleosome that shivers, as PDB and DCD."""
    folder = tmp_path_factory.mktemp("analysis")
    solute = place_nucleosomes([(np.eye(3), np.zeros(3))])
    with quiet():
        universe_of(solute).atoms.write(str(folder / "top.pdb"))
    noise = np.random.default_rng(1).normal(0, 0.05, (FRAMES, *solute.position.shape))
    write_dcd(folder / "run.dcd", solute.position + noise)
    return folder


@pytest.fixture(scope="module")
def tables(files):
    out = files / "tables"
    with quiet():
        analyse(file_source(files / "top.pdb", files / "run.dcd"), out, ("dna", "nucleosome", "fibre"))
    return out


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_tables_are_tidy(tables):
    series = rows(tables / "dna_series.csv")
    assert [float(row["time_ps"]) for row in series] == pytest.approx(2.0 * np.arange(FRAMES), rel=1e-4)
    with np.load(tables / "dna_frames.npz") as raw:
        twist = raw["step"][:, :, 5]
    assert [float(row["twist_degree"]) for row in series] == pytest.approx(twist.mean(axis=1), rel=1e-5)
    found = [row for row in rows(tables / "dna_steps.csv") if row["quantity"] == "twist"]
    assert len(found) == 146 and {row["unit"] for row in found} == {"degree"}
    start = round(next(float(r["time_ps"]) for r in series))  # 0: noise is at rest from the first frame on
    assert start == 0 and float(found[70]["mean"]) == pytest.approx(twist[-30:, 70].mean(), abs=1.0)
    assert all(float(row["block_error"]) < float(row["deviation"]) for row in found if row["block_error"])
    averages = {row["quantity"]: row for row in rows(tables / "nucleosome_averages.csv")}
    assert float(averages["detached at the entry"]["mean"]) == 0 and averages["slid"]["unit"] == "bp"
    assert len(rows(tables / "nucleosome_sites.csv")) == 147
    # Noise of 0.05 angstrom on each coordinate is a fluctuation of 0.05 sqrt(3).
    fluctuation = [float(row["rmsf_angstrom"]) for row in rows(tables / "nucleosome_residues.csv")]
    assert np.mean(fluctuation) == pytest.approx(0.05 * np.sqrt(3), rel=0.05)
    whole = [row for row in rows(tables / "nucleosome_chains.csv") if row["quantity"] == "fluctuation of the folds"]
    assert len(whole) == 8 and all(float(row["mean"]) == pytest.approx(0.05 * np.sqrt(3), rel=0.05) for row in whole)


def test_maps_of_the_fibre_are_means_of_a_frame(tables):
    """A neighbour of each base pair is within 5 nm in every frame; one particle alone, the core, has no pair."""
    with h5py.File(tables / "fibre_map_base_pairs.cool") as file:
        one, other, count = (file[f"pixels/{name}"][...] for name in ("bin1_id", "bin2_id", "count"))
    assert (count[other == one + 1] == 1.0).all() and np.sum(other == one + 1) == 146 and count.max() == 1.0
    with h5py.File(tables / "fibre_map_beads.cool") as file:
        assert file.attrs["bin-size"] == 50 and len(file["pixels/count"]) == 0


def test_averages_say_from_when_frames_count(tables):
    started = json.loads((tables / "analysis.json").read_text())["measures"]
    for measure, entry in started.items():
        files = {name: rows(tables / name) for name in entry["files"] if name.endswith(".csv")}
        for name, found in files.items():  # a row of one frame, or an average from when the record says
            assert all("time_ps" in row or float(row["from_ps"]) == pytest.approx(entry["from_ps"], rel=1e-9)
                       for row in found), name
        assert any("from_ps" in row for found in files.values() for row in found), measure


def test_what_is_there_is_kept_and_processes_do_not_matter(files, tables):
    before = {path.name: path.stat().st_mtime_ns for path in tables.iterdir()}
    with quiet():
        source = file_source(files / "top.pdb", files / "run.dcd")
        assert analyse(source, tables, ("dna", "fibre"))["up_to_date"] == "dna, fibre"
        assert {path.name: path.stat().st_mtime_ns for path in tables.iterdir()} == before
        other = analyse(source, files / "two", ("dna", "nucleosome"), threads=2)
        assert other["up_to_date"] == "none"
        for path in (files / "two").glob("*.csv"):
            assert path.read_bytes() == (tables / path.name).read_bytes(), path.name
        for folder, threads in (("two", 2), ("one", 1)):  # findings of frames are no arrays: they are joined otherwise
            analyse(source, files / folder, ("structure",), threads=threads)
        assert (files / "two" / "structure_series.csv").read_bytes() == (
            files / "one" / "structure_series.csv").read_bytes()
        assert len(rows(files / "one" / "structure_series.csv")) == FRAMES
        (files / "two" / "dna_pairs.csv").write_text("gone\n")
        assert analyse(source, files / "two", ("dna", "nucleosome"))["up_to_date"] == "nucleosome"
        assert (files / "two" / "dna_pairs.csv").read_bytes() == (tables / "dna_pairs.csv").read_bytes()
        assert analyse(source, files / "two", ("dna",), every=2)["up_to_date"] == "none"


def test_command(files, tables):
    done = result_of("analyse", "--topology", "top.pdb", "--trajectory", "run.dcd", "-o", "tables", "--measure", "dna",
                     cwd=files)
    assert done["up_to_date"] == "dna" and done["frames"] == FRAMES
    failed = chromabuild("analyse", "nowhere", cwd=files)
    assert failed.returncode == 3 and "nowhere holds no results" in failed.stderr
    assert "Warning" not in failed.stderr and "Traceback" not in failed.stderr


def test_report_shows_the_tables(tables, tmp_path):
    assert analysis_section(tmp_path) == ""
    shutil.copytree(tables, tmp_path / "analysis")
    page = analysis_section(tmp_path)
    for text in ("<h3>DNA</h3>", "<h3>Nucleosomes</h3>", "<h3>Fibre</h3>", f"<b>{FRAMES}</b> frames of run.dcd",
                 "major refined groove", "RMSD of the folds", "Folds of histones (16)"):
        assert text in page
    assert "base pairs detached" not in page and "gone on" not in page  # nothing detaches
    (tmp_path / "md").mkdir()
    (tmp_path / "md" / "phases.json").write_text("{}")
    assert "The run has gone on" in analysis_section(tmp_path)
    assert set(table_states(tmp_path / "analysis").values()) == {"ok"}
    (tmp_path / "analysis" / "dna_pairs.csv").write_text("step\n1\n")
    (tmp_path / "analysis" / "fibre_series.csv").unlink()
    page = analysis_section(tmp_path)
    assert "<h3>DNA</h3>" not in page and "<h3>Nucleosomes</h3>" in page and "left out" in page
    states = table_states(tmp_path / "analysis")
    assert (states["dna_pairs.csv"], states["fibre_series.csv"]) == ("damaged", "missing")
    # Of an earlier version, whose entries were others.
    (tmp_path / "analysis" / "analysis.json").write_text(
        '{"format": "chromabuild-analysis", "version": 1, "measures": {"dna": {"files": ["dna_pairs.csv"]}}}')
    page = analysis_section(tmp_path)
    assert "<h3>" not in page and "of another version" in page
    assert table_states(tmp_path / "analysis") == {"analysis.json": "damaged, or of another version"}


def complaint(topology, trajectory, measures=("dna",), every=1):
    with quiet(), pytest.raises(BadInputError) as caught:
        analyse(file_source(topology, trajectory), topology.parent / "none", measures, every)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_bad_trajectories_get_their_sentence(files, tmp_path):
    top, data = tmp_path / "top.pdb", (files / "run.dcd").read_bytes()
    shutil.copy(files / "top.pdb", top)
    (tmp_path / "cut.dcd").write_bytes(data[:len(data) // 3])
    assert "cut.dcd ends within frame 12: it is cut short" in complaint(top, tmp_path / "cut.dcd")
    (tmp_path / "fewer.dcd").write_bytes(data[:8] + np.int32(500).tobytes() + data[12:])
    assert f"holds {FRAMES} frames and its header says 500" in complaint(top, tmp_path / "fewer.dcd")
    (tmp_path / "begun.dcd").write_bytes(data + data[-500:])  # a frame that a stopped run was writing
    assert len(file_source(top, tmp_path / "begun.dcd").time) == FRAMES
    write_dcd(tmp_path / "other.dcd", np.zeros((1, 12, 3)))
    assert "is of another topology (it holds frames of another number of atoms than the " in complaint(
        top, tmp_path / "other.dcd")
    write_dcd(tmp_path / "empty.dcd", np.zeros((0, 25172, 3)))
    assert "holds no frames" in complaint(top, tmp_path / "empty.dcd")
    (tmp_path / "words.dcd").write_text("hello " * 50)
    assert "cannot be read as a trajectory" in complaint(top, tmp_path / "words.dcd")
    assert "does not exist" in complaint(top, tmp_path / "none.dcd")
    assert "cannot be read as a topology" in complaint(tmp_path / "words.dcd", None)
    assert "no names of atoms and residues" in complaint(tmp_path / "other.dcd", None)
    assert "every = 99 is more than the 34 frames of run.dcd" in complaint(top, files / "run.dcd", every=99)
    assert "helix is no measure: choose from dna, nucleosome, fibre, solvent" in complaint(
        top, files / "run.dcd", ("helix",))
    assert "run.dcd holds no ions" in complaint(top, files / "run.dcd", ("solvent",))
    (tmp_path / "harmed.dcd").write_bytes(data[:-8] + b"\xff" * 4 + data[-4:])  # z of the last frame's last atom
    assert f"frame {FRAMES} of " in complaint(top, tmp_path / "harmed.dcd")


def test_missing_molecules_get_their_sentence(files, tmp_path):
    with quiet():
        whole = MDAnalysis.Universe(str(files / "top.pdb"))
        whole.select_atoms("segid A000 B000").write(str(tmp_path / "protein.pdb"))
        steps = np.tile([0.0, 0.0, 3.4, 0.0, 0.0, 36.0], (11, 1))
        universe_of(built_dna("GATTACAGCCTG", *rebuild(steps))).atoms.write(str(tmp_path / "dna.pdb"))
    assert "protein.pdb holds no DNA" in complaint(tmp_path / "protein.pdb", None)
    assert "dna.pdb holds no nucleosome" in complaint(tmp_path / "dna.pdb", None, ("nucleosome",))
    with quiet():
        alone = analyse(file_source(tmp_path / "dna.pdb", None), tmp_path / "alone")
    assert {Path(name).name[:4] for name in alone["files"]} == {"dna_"}
