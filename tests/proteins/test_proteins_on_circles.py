"""Proteins that are no nucleosomes on circles, also across base pair 1, from inputs to atoms without clashes."""

from pathlib import Path

import numpy as np
import pytest

from chromabuild import Locus
from chromabuild.analysis.duplex import read_duplexes
from chromabuild.api import build_solute, fold, remove_clashes
from chromabuild.base.settings import changed
from chromabuild.export.region import part_of_solute
from chromabuild.export.structure import write_structure
from chromabuild.proteins.complex import read_complex

STRUCTURE = Path(__file__).parent / "data" / "lac.pdb.gz"
OPERATOR = "AATTGTGAGCG"


def operator_circle(folder: Path, by: int, length: int = 300, sites: tuple[int, ...] = (295,), dyad: int | None = 140
                    ) -> Locus:
    """A circle with the lac repressor (PDB 1LCD) and a nucleosome, numbered from ``by`` base pairs further on."""
    text = np.random.default_rng(2).choice(list("ACGT"), length)
    for first in sites:
        text[(first + np.arange(len(OPERATOR))) % length] = list(OPERATOR)
    folder = folder / str(by)
    folder.mkdir()
    (folder / "c.fa").write_text(f">c\n{''.join(np.roll(text, -by))}\n")
    places = [(first - by) % length for first in sites]
    (folder / "p.bed").write_text("".join(f"c\t{first}\t{first + len(OPERATOR)}\tlac\n" for first in places))
    nucleosomes = None
    if dyad is not None:
        nucleosomes = folder / "n.bed"
        nucleosomes.write_text(f"c\t{(dyad - by) % length}\t{(dyad - by) % length + 1}\n")
    return Locus.from_files(folder / "c.fa", nucleosomes, circular=True, proteins=str(folder / "p.bed"))


def built_circle(locus: Locus):
    settings = changed(None, "build", {"structures": str(STRUCTURE)}, None, "test")
    scaffold = fold(locus, settings, sweeps=20, seed=3, core_charges="formal", threads=1)
    solute = build_solute(scaffold, settings, threads=1)
    return scaffold, solute, *remove_clashes(solute, settings, threads=1)


@pytest.mark.parametrize(("length", "sites", "dyad"), [(300, (295,), 140), (400, (395, 190), None)])
def test_the_lac_repressor_sits_on_a_circle(tmp_path, length, sites, dyad):
    """With a nucleosome, and alone; base pairs within 0.3 angstrom and 4 degrees of those of the PDB file, of which
    outer bases yield to their neighbours. Another numbering gives the same bytes."""
    scaffold, solute, clean, report = built_circle(operator_circle(tmp_path, 0, length, sites, dyad))
    assert sorted(scaffold.position[scaffold.proteins.first_bp]) == sorted(sites)
    assert [row["base_pairs_differing"] for row in solute.build_report["proteins"]] == [0]
    assert solute.build_report["bond_outliers"] == solute.build_report["angle_outliers"] == 0
    assert report.fatal == 0 and clean.circular == (0, 1)
    duplex = read_duplexes(write_structure(solute, tmp_path / "solute.cif", "test"))[0]
    judge = read_duplexes(STRUCTURE)[0]
    for first in scaffold.proteins.first_bp:
        apart = np.abs(duplex.step_parameters[first:first + len(OPERATOR) - 1] - judge.step_parameters)
        assert apart[:, :3].max() < 0.3 and apart[:, 3:].max() < 4.0
    again, _, other, _ = built_circle(operator_circle(tmp_path, 143, length, sites, dyad))
    assert (again.position == (scaffold.position - 143) % length).all()
    assert np.array_equal(again.origin, scaffold.origin) and np.array_equal(other.position, clean.position)
    # A region that runs across the end of the circle has the protein; one without its last base pair has not.
    first, last = int(scaffold.proteins.first_bp[0]), int(scaffold.proteins.last_bp[0])
    part, less = (part_of_solute(solute, scaffold, (last + 20) % length, end) for end in (last, last - 1))
    chains = len(read_complex(str(STRUCTURE)).protein.histone)
    assert first > 0 and len(part.molecule_name) - len(less.molecule_name) == chains
