"""Room for fibres that are given none: as dense as metaphase chromosomes; the walls bend no bare DNA."""

import numpy as np
import pytest

from chromabuild.api import fibre_parameters, fold
from chromabuild.base.settings import Settings
from chromabuild.genome.arrays import array_of
from chromabuild.genome.locus import Locus
from mesoscale.fibre import Contact, Fibre
from mesoscale.folding import fold as folded
from mesoscale.model import Parameters
from mesoscale.packing import packed_walls

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
        density = BASE_PAIR * len(fibre.sequence) / np.prod(packed_walls(fibre, RISE, PERSISTENCE))
        assert 0.141 < density < 0.182


def test_bare_dna_is_not_bent_by_the_walls():
    """Long linkers and ends fit along the diagonal, up to a persistence length; beyond it DNA is a coil by itself."""
    for bare in (100, 400):
        fibre = Fibre("ACGT" * 250, (80, 80 + 147 + bare, 80 + 2 * 147 + bare + 20))
        longest = max(*fibre.linkers, len(fibre.sequence) - 1 - fibre.last_bp[-1])
        edge = packed_walls(fibre, RISE, PERSISTENCE)[0]
        assert np.sqrt(3) * edge >= min(longest * RISE, PERSISTENCE) - 1e-9
    edge = packed_walls(Fibre("ACGT" * 500, (500, 700)), RISE, PERSISTENCE)[0]
    assert edge == pytest.approx(PERSISTENCE / np.sqrt(3))


def test_one_nucleosome_and_short_or_tied_dna_are_free():
    tied = Fibre("ACGT" * 100, (), contacts=(Contact((0, 20), (300, 320)),))
    for fibre in (Fibre("ACGT" * 37, ()), tied, array("1x601:197")):
        assert packed_walls(fibre, RISE, PERSISTENCE) is None


def test_dna_alone_stays_in_its_channel():
    """A rod that bends between walls: nearly as long as at rest, its axis near the line, where a coil is far from it.

    The end-to-end distance of a free worm-like chain of 1,200 base pairs, or 8 persistence lengths P, is
    sqrt(2 P L (1 - P/L (1 - exp(-L/P)))) = 0.47 L; the soft walls let the axis out by a nm or so.
    """
    fibre = Fibre("ACGT" * 300, ())
    length = RISE * 1199
    found = folded(fibre, fibre_parameters(Settings(), fibre), 200, 1).origin / 10
    assert np.linalg.norm(found[-1] - found[0]) > 0.97 * length
    assert (np.ptp(found, axis=0)[1:] < 2.0 + 2 * 2.0).all()
    free = folded(fibre, Parameters(), 200, 1).origin / 10
    assert np.ptp(free, axis=0)[1] > 10


def test_walls_too_short_for_dna_alone_fold_it():
    found = folded(Fibre("ACGT" * 100, ()), Parameters(container=(20.0, 20.0, 20.0)), 20, 1)
    assert found.floor_violations == 0 and np.ptp(found.origin, axis=0).max() / 10 < 30


@pytest.mark.parametrize(("key", "value"), [("packing", "free"), ("choose", "smallest-box")])
def test_what_takes_the_place_of_the_walls(key, value):
    fibre, settings = array("4x601:197"), Settings()
    walls = packed_walls(fibre, RISE, PERSISTENCE)
    assert fibre_parameters(settings, fibre).container == pytest.approx(walls)
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
    edge = 10 * packed_walls(locus.fibre(), RISE, PERSISTENCE)[0]
    quick = {"sweeps": 5, "core_charges": "formal", "threads": 1}
    extent = np.ptp(fold(locus, **quick).origin, axis=0)
    assert extent.max() < edge + 60
    assert np.ptp(fold(locus, packing="free", **quick).origin, axis=0).max() > edge + 60
