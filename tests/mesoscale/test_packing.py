"""Room for fibres that are given none: as dense as metaphase chromosomes; the walls bend no bare DNA."""

import numpy as np
import pytest

from chromabuild.api import fibre_parameters, fold
from chromabuild.base.settings import Settings
from chromabuild.genome.arrays import array_of
from chromabuild.genome.locus import Locus
from mesoscale.fibre import Fibre
from mesoscale.packing import packed_edge

RISE, PERSISTENCE = 0.334, 50.0  # nm, of DNA
BASE_PAIR = 650 / 6.022e23 / 1e-21
"""Mass of a base pair with its sodium ions over nm^3: g/mL of one in 1 nm^3."""


def array(text):
    made = array_of(text)
    return Fibre(made.sequence, made.dyads)


@pytest.mark.parametrize("repeat", [167, 187, 207])
def test_dna_is_as_dense_as_in_metaphase_chromosomes(repeat):
    """Bennett et al. 1983: 0.141 (man) to 0.182 (plants) g/mL; of any number of nucleosomes."""
    for count in (2, 12, 45):
        fibre = array(f"{count}x601:{repeat}")
        density = BASE_PAIR * len(fibre.sequence) / packed_edge(fibre, RISE, PERSISTENCE) ** 3
        assert 0.141 < density < 0.182


def test_bare_dna_is_not_bent_by_the_walls():
    """Long linkers and ends fit along the diagonal, up to a persistence length; beyond it DNA is a coil by itself."""
    for bare in (100, 400):
        fibre = Fibre("ACGT" * 250, (80, 80 + 147 + bare, 80 + 2 * 147 + bare + 20))
        longest = max(*fibre.linkers, len(fibre.sequence) - 1 - fibre.last_bp[-1])
        edge = packed_edge(fibre, RISE, PERSISTENCE)
        assert np.sqrt(3) * edge >= min(longest * RISE, PERSISTENCE) - 1e-9
    assert packed_edge(Fibre("ACGT" * 500, (500, 700)), RISE, PERSISTENCE) == pytest.approx(PERSISTENCE / np.sqrt(3))


def test_one_nucleosome_and_bare_dna_are_free():
    for fibre in (Fibre("ACGT" * 100, ()), array("1x601:197")):
        assert packed_edge(fibre, RISE, PERSISTENCE) is None


@pytest.mark.parametrize(("key", "value"), [("packing", "free"), ("choose", "smallest-box")])
def test_what_takes_the_place_of_the_walls(key, value):
    fibre, settings = array("4x601:197"), Settings()
    edge = packed_edge(fibre, RISE, PERSISTENCE)
    assert fibre_parameters(settings, fibre).container == pytest.approx((edge,) * 3)
    setattr(settings.scaffold, key, value)
    assert fibre_parameters(settings, fibre).container is None


def test_walls_that_are_given_stay():
    fibre, settings = array("4x601:197"), Settings()
    settings.scaffold.container = (30.0, 20.0, 10.0)
    assert fibre_parameters(settings, fibre).container == (30.0, 20.0, 10.0)
    settings.scaffold.container, settings.scaffold.confinement_radius = None, 12.0
    assert fibre_parameters(settings, fibre).container is None


def test_a_fold_stays_near_its_walls(tmp_path):
    """Few bodies at soft walls of 0.5 kBT/nm^2 bear the pressure of all: here they may be 3 nm beyond, twice what kBT
    lifts one spring by; without walls the fibre is longer."""
    made = array_of("3x601:177")
    (tmp_path / "a.fa").write_text(made.fasta())
    (tmp_path / "a.bed").write_text(made.bed())
    locus = Locus.from_files(tmp_path / "a.fa", tmp_path / "a.bed")
    edge = 10 * packed_edge(locus.fibre(), RISE, PERSISTENCE)
    quick = {"sweeps": 5, "core_charges": "formal", "threads": 1}
    extent = np.ptp(fold(locus, **quick).origin, axis=0)
    assert extent.max() < edge + 60
    assert np.ptp(fold(locus, packing="free", **quick).origin, axis=0).max() > edge + 60
