"""Circles of DNA alone with contacts: folded, closed, with the linking number that they have where they lie flat."""

import numpy as np
import pytest

from chromabuild.api import fibre_of, fold
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.pipeline.ensemble.design import make_design
from chromabuild.pipeline.stages.scaffold import _linking
from mesoscale.model import first_in_alphabet

LENGTH = 600


def bare(folder, by=0, **locus):
    """Settings of a plasmid whose opposite places are in contact, numbered from ``by`` base pairs further on."""
    text = "".join(np.random.default_rng(1).choice(list("ACGT"), LENGTH))
    folder.mkdir(exist_ok=True)
    (folder / "c.fa").write_text(f">c\n{text[by:]}{text[:by]}\n")
    places = [(first - by) % LENGTH for first in (590, 290)]
    (folder / "k.bedpe").write_text("\t".join(f"c\t{first}\t{first + 20}" for first in places) + "\t.\t1\n")
    return Settings.model_validate({
        "locus": {"fasta": str(folder / "c.fa"), "nucleosomes": None, "circular": True,
                  "contacts": str(folder / "k.bedpe")} | locus,
        "scaffold": {"sweeps": 20}, "output": str(folder / "results"), "ensemble": {"folds": 2, "bin": 60}})


def folded(settings):
    return fold(make_design(settings).locus, settings, threads=1)


def apart(scaffold, by):
    """Distance (nm) of the two places."""
    return np.linalg.norm(scaffold.origin[-by % LENGTH] - scaffold.origin[(300 - by) % LENGTH]) / 10


def test_a_contact_of_a_bare_circle_brings_its_places_together(tmp_path):
    """To less than half of their distance on the flat circle, 600/9.2 nm, and in a fold with room alone; base pairs go
    round without a gap, and the strands turn about each other as often as on the flat circle: 600/10.5. Numbered from
    elsewhere, within a stretch of the contact too, it is the same circle."""
    one, other = (folded(bare(tmp_path / str(by), by)) for by in (0, 597))
    settings = bare(tmp_path / "0", contacts=None)
    room = settings.scaffold.model_copy(update={"confinement_radius": 60.0})
    free = folded(settings.model_copy(update={"scaffold": room}))
    assert one.contacts[0]["kept"] and other.contacts[0]["kept"]
    assert apart(one, 0) < 20 < LENGTH / 9.2 / 2 and one.floor_violations == 0
    steps = np.linalg.norm(np.roll(one.origin, -1, axis=0) - one.origin, axis=1)
    assert steps.min() > 3.2 and steps.max() < 3.6
    assert np.roll(other.origin, 597, axis=0) == pytest.approx(one.origin, abs=1e-6)
    assert other.position.tolist() == list(range(LENGTH))
    told = _linking(one, 57, 1)
    assert (told["linking_number"], told["relaxed_turns"]) == (57, 57.14)
    assert apart(one, 0) < apart(free, 0) / 2


def test_a_bare_circle_keeps_the_linking_number_that_is_asked_for(tmp_path):
    settings = bare(tmp_path, linking_number=55)
    assert fibre_of(make_design(settings).locus, settings).linking_number == 55
    told = _linking(folded(settings), 55, 1)
    assert told["linking_number"] == 55 and told["superhelical_density"] == pytest.approx(55 / 57.14 - 1, abs=1e-3)


def test_a_bare_circle_lies_flat_where_nothing_asks_for_a_fold(tmp_path):
    settings = bare(tmp_path, contacts=None)
    assert settings.is_laid_flat and not bare(tmp_path).is_laid_flat
    with pytest.raises(BadInputError, match="a circle of DNA alone is laid flat, and all its folds are the same"):
        make_design(settings)
    for key, value in (("confinement_radius", 30.0), ("choose", "smallest-box"), ("contact_energies", "x.bedpe")):
        scaffold = settings.scaffold.model_copy(update={key: value})
        assert not settings.model_copy(update={"scaffold": scaffold}).is_laid_flat


def test_a_circle_begins_where_its_sequence_comes_first():
    """Against all rotations."""
    text = "".join(np.random.default_rng(2).choice(list("AC"), 200))
    for sequence in (text, "ACGT" * 40, "A" * 70, "CA" + "A" * 100 + "G" + "A" * 100):
        rotations = [sequence[k:] + sequence[:k] for k in range(len(sequence))]
        assert first_in_alphabet(sequence) == rotations.index(min(rotations))
