"""The box before there is a fold: laws against folds, and what a change of the settings would save."""

import numpy as np
import pytest

from chromabuild.api import fold
from chromabuild.base.settings import load_config
from chromabuild.genome.arrays import array_of
from chromabuild.genome.locus import load_locus
from chromabuild.pipeline.needs import TABULATED_FROM
from chromabuild.pipeline.plan import Parts, estimate
from chromabuild.pipeline.savings import savings
from chromabuild.pipeline.speeds import REFERENCE, Speed, stage_seconds
from mesoscale.field import WORTH


@pytest.fixture(scope="module")
def array(tmp_path_factory):
    """Settings of three nucleosomes, with few sweeps."""
    folder, made = tmp_path_factory.mktemp("array"), array_of("3x601:187")
    (folder / "locus.fa").write_text(made.fasta())
    (folder / "nucleosomes.bed").write_text(made.bed())
    (folder / "locus.yaml").write_text("scaffold: {sweeps: 20, core_charges: formal}\n")
    return folder / "locus.yaml"


def test_walls_tell_the_size(array):
    """Within the 15 % that `plan` promises, of a fold by the fold's own geometry."""
    config = load_config(array)
    parts = Parts.of(config)
    by_law = estimate(config, 1, parts=parts)
    folded = estimate(config, 1, fold(load_locus(config.locus), config, threads=1), parts=parts)
    assert by_law.box_from == "the walls of scaffold.packing"
    assert by_law.atoms == pytest.approx(folded.atoms, rel=0.15)


def test_savings_are_what_the_change_makes(array):
    """The named settings, taken, give the named number of atoms; what saves nothing is not named."""
    config = load_config(array, {"solvate.padding": 40})
    parts = Parts.of(config)
    before = estimate(config, 1, parts=parts)
    found = savings(config, 1, before, REFERENCE, parts)
    assert {key for one in found for key in one.settings} == {"solvate.padding", "scaffold.choose"}
    assert [one.build.atoms for one in found] == sorted(one.build.atoms for one in found)
    for one in found:
        changed = estimate(load_config(array, {"solvate.padding": 40} | one.settings), 1)
        assert changed.atoms == one.build.atoms < 0.9 * before.atoms
        (key, value), = one.settings.items()
        assert f"{key}: {value} makes it about {changed.atoms:.3g} atoms" in one.line(before)
    free = load_config(array, {"scaffold.packing": "free"})
    best = savings(free, 1, estimate(free, 1, parts=parts), REFERENCE, parts)
    assert {"scaffold.packing": "compact"} in [one.settings for one in best]


def test_a_dodecahedron_is_named_where_it_saves(array):
    """Around a fibre with much water, of which it is a small part; else the upright box is smaller."""
    wide = load_config(array, {"scaffold.confinement_radius": 3, "solvate.padding": 200})
    parts = Parts.of(wide)
    before = estimate(wide, 1, parts=parts)
    one, = [one for one in savings(wide, 1, before, REFERENCE, parts) if "solvate.box" in one.settings]
    assert one.settings == {"solvate.box": "dodecahedron"}
    distance = one.build.box[0]
    assert np.prod(one.build.box) == pytest.approx(np.sqrt(0.5) * distance**3, rel=0.001)
    assert one.build.atoms < 0.9 * before.atoms and distance > before.box[0]
    assert one.build.locus_lines()[2] == (f"box: dodecahedron with images {distance:.0f} angstrom apart (from "
                                          "scaffold.confinement_radius)")
    leaning = load_config(array, {"solvate.box": "dodecahedron"})
    found = savings(leaning, 1, estimate(leaning, 1, parts=parts), REFERENCE, parts)
    assert {"solvate.box": None} in [one.settings for one in found]


def test_estimates_know_from_when_on_the_fold_tabulates():
    assert TABULATED_FROM == WORTH


def test_a_machine_twice_as_slow_takes_twice_as_long(array):
    config = load_config(array)
    slow = Speed(2 * REFERENCE.factor, 2 * REFERENCE.start)
    times = [np.array([*stage_seconds(config, 3, 561, 90_000, 900_000, 2, speed).values()])
             for speed in (REFERENCE, slow)]
    assert times[1] == pytest.approx(2 * times[0])
