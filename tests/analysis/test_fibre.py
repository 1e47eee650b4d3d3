"""Measures of a built fibre's DNA, and their section of the report."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "dna"))
from support.synthetic_scaffold import synthetic_scaffold

from chromabuild.analysis import fibre
from chromabuild.base.settings import Settings
from chromabuild.build import build_solute
from chromabuild.build.fibre import relaxed_path
from chromabuild.dna.linking import twist, writhe
from chromabuild.dna.sequence import base_index
from chromabuild.report.dna import dna_section


@pytest.fixture(scope="module")
def built():
    scaffold = synthetic_scaffold(2, 22, 9)
    return scaffold, build_solute(scaffold, Settings())


def test_atoms_give_back_bases_and_frames(built):
    scaffold, solute = built
    dna = fibre.dna_atoms(solute)
    n = len(scaffold.base)
    assert np.array_equal(dna.bases[:n], base_index(scaffold.base)) and len(dna.bases) == 2 * n
    assert np.isnan(dna.sugar[0, :3]).all() and np.isfinite(dna.sugar[1:n]).all()
    origin, frame = fibre.base_pair_frames(dna)
    path = relaxed_path(scaffold, dna.bases[:n], Settings().build)
    # Bases were moved within their pairs where they overlapped: pairs stay within a few tenths of an angstrom.
    assert np.sqrt(np.mean(np.sum((origin - path.origin) ** 2, axis=1))) < 0.15
    assert np.mean(np.einsum("kij,kij->k", frame, path.frame)) > 3 - 0.02


def test_stretches_cover_the_fibre_and_agree_with_the_builder(built):
    scaffold, solute = built
    found = fibre.stretches(fibre.dna_atoms(solute), scaffold.nucleosome)
    assert [s.name for s in found] == [
        "free end", "nucleosome 1", "linker after nucleosome 1", "nucleosome 2", "free end"]
    assert [(s.first_bp, s.last_bp) for s in found[:2]] == [(0, 8), (9, 155)]
    assert found[-1].last_bp == len(scaffold.base) - 1
    report = solute.build_report
    # Positions in the solute are single precision: 1e-5 angstrom at this size.
    assert min(s.o3_p_shortest for s in found) == pytest.approx(report["o3_p_shortest"], abs=2e-4)
    assert max(s.o3_p_longest for s in found) == pytest.approx(report["o3_p_longest"], abs=2e-4)
    assert sum(s.outliers for s in found) == 0


def test_thinned_axis_keeps_the_linking_number(built):
    origin, frame = fibre.base_pair_frames(fibre.dna_atoms(built[1]))
    exact = twist(origin, frame) + writhe(origin)
    # Whole turns are exact by construction; at the ends an open path's topology is loose by a part of one.
    for every in (4, 14):
        thin = twist(origin, frame, every=every) + writhe(origin[::every])
        dropped = (len(origin) - 1) % every + (every - 1)  # base pairs beyond the first and last whole segment
        assert thin == pytest.approx(exact - dropped * 34.5 / 360, abs=0.25)


def test_report_section_shows_tables_and_plots(built, tmp_path):
    scaffold, solute = built
    path = tmp_path / "solute.h5"
    assert dna_section(tmp_path, None) == "" == dna_section(tmp_path, path)
    solute.write(path)
    scaffold.write(tmp_path / "scaffold.h5")
    section = dna_section(tmp_path, path)
    assert section.count("<svg") == 2 and "linker after nucleosome 1" in section and "Lk = Tw + Wr" in section


def test_solute_without_a_duplex_has_no_section(built):
    solute = built[1]
    names, solute.molecule_name = solute.molecule_name, ["X", *solute.molecule_name[1:]]
    assert fibre.dna_atoms(solute) is None
    solute.molecule_name = names
