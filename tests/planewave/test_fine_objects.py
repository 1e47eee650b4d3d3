"""Fine objects that wait for messages: the energies, forces and dynamics of whole states, messages as the map's
geometry has them, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from support.plane_waves import HYDROGEN, MAGNESIUM_WATER, WATER, Case, compute, rows_of_dynamics, run, write_case

from chromabuild.base.errors import BadInputError
from chromabuild.quantum.state_map import write_objects
from chromabuild.scaling.object_messages import mesh_planes, messages_of_objects
from chromabuild.scaling.placement import Decomposition, hybrid_map, prism_map, random_map, write_object_map
from chromabuild.scaling.topology import Torus

SMALL = Case(WATER, 7.5, 25.0, "BLYP", tolerance=1e-4)
PAIRS, PLANES = 2, 24
"""Of the case: four states; its grid."""
FINE = {"layer": "OBJECTS", "sGrainSize": 2, "orthoGrainSize": 2, "numChunks": 2, "rhoRsubplanes": 3,
        "gExpandFact": 0.7, "gExpandFactRho": 1.3}
COARSE = {"layer": "OBJECTS", "orthoGrainSize": 2, "gExpandFact": 1.2}
SPLINES = {"ELECTRONS": {"local_sums": "SPLINE", "nonlocal_sums": "SPLINE", "spline_order": 8}}
ALONE = {"SYSTEM": {"boundary": "CLUSTER"}}
HYDROXIDE = Case(WATER[:2], 9.0, 25.0, "BLYP", -1, 1e-3)


@pytest.fixture(autouse=True)
def awake(monkeypatch):
    """Ranks look for messages between tasks: without what lets ranks that wait sleep (test_machine.c)."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)


@pytest.mark.parametrize(("case", "sections", "plan"), [
    (SMALL, {}, [(1, 1, COARSE), (2, 1, FINE), (3, 1, COARSE), (4, 1, FINE), (4, 1, FINE)]),
    (Case(WATER, 6.5, 25.0, "PZ", tolerance=1e-3), {}, [(2, 1, FINE)]),
    (Case(MAGNESIUM_WATER, 7.0, 25.0, "PZ", tolerance=1e-2), {}, [(3, 1, FINE)]),
    (replace(SMALL, tolerance=1e-3), SPLINES, [(1, 1, COARSE), (4, 1, FINE), (4, 1, FINE)]),
    (Case(MAGNESIUM_WATER, 7.0, 25.0, "PZ", tolerance=1e-2), SPLINES, [(3, 1, FINE)]),
    (HYDROXIDE, ALONE, [(1, 1, COARSE), (3, 1, FINE)]),
    (HYDROXIDE, ALONE | SPLINES, [(2, 1, FINE)]),
], ids=["gradient", "local", "odd", "splines", "odd-splines", "cluster", "cluster-splines"])
def test_energies_are_those_of_whole_states(tmp_path, case, sections, plan):
    """Sums are rounded in another order, nothing else: 1e-10 hartree. Every sum waits for its parts and has one order,
    so that runs on the same map have the same bits. Magnesium has five states, and projectors of both parities."""
    whole = compute(tmp_path, case, **sections)
    assert whole["states"] == (5 if case.atoms is MAGNESIUM_WATER else 4)
    results = []
    for ranks, threads, grain in plan:
        fine = compute(tmp_path, case, ranks, threads, PARALLEL=grain, **sections)
        results.append(fine)
        assert fine["steps"] == whole["steps"]
        for term in ("total", "kinetic", "hartree", "local", "nonlocal", "xc", "ewald"):
            assert fine[term] == pytest.approx(whole[term], abs=1e-10), term
        np.testing.assert_allclose(fine["forces"], whole["forces"], atol=1e-9)
    if plan[-2:-1] == plan[-1:]:
        assert results[-1] == results[-2]


@pytest.mark.parametrize("method", ["RATTLE", "NONORTHOGONAL", "BORN_OPPENHEIMER"])
def test_dynamics_are_those_of_whole_states(tmp_path, method):
    """Three steps, with states made orthonormal again where they may overlap; to the last digit of the log."""
    keys = {"method": method, "nsteps": 3} | ({"overlap_tolerance": 1e-6} if method == "NONORTHOGONAL" else {})
    case = Case(WATER, 6.5, 25.0, "PZ", tolerance=1e-6)
    rows = []
    for ranks, parallel in ((1, {}), (2, FINE)):
        done = run(tmp_path, write_case(tmp_path, case, DYNAMICS=keys, PARALLEL=parallel), ranks)
        assert done.returncode == 0, done.stderr
        rows.append(rows_of_dynamics(done.stdout))
    np.testing.assert_allclose(rows[1], rows[0], rtol=0, atol=2.1e-9)
    assert rows[0][-1, 3] > 1e-5


def test_a_restart_goes_on_bit_for_bit_with_the_same_sets(tmp_path):
    case = Case(HYDROGEN, 6.0, 30.0, "PZ", tolerance=1e-6)
    keys = {"method": "NONORTHOGONAL", "overlap_tolerance": 1e-6}

    def on_two_ranks(steps, grain=FINE, **sections):
        sections |= {"PARALLEL": grain, "DYNAMICS": keys | {"nsteps": steps}}
        return run(tmp_path, write_case(tmp_path, case, **sections), 2)

    assert on_two_ranks(2, OUTPUT={"restartfile": "whole().rst"}).returncode == 0
    assert on_two_ranks(1, OUTPUT={"restartfile": "half().rst"}).returncode == 0
    assert on_two_ranks(1, INPUT={"restartfile": "half().rst"}, OUTPUT={"restartfile": "end().rst"}).returncode == 0
    for rank in range(2):
        assert (tmp_path / f"whole{rank}.rst").read_bytes() == (tmp_path / f"end{rank}.rst").read_bytes()
    for grain in (FINE | {"gExpandFact": 1.3}, {}):
        other = on_two_ranks(1, grain, INPUT={"restartfile": "half().rst"})
        assert other.returncode == 3
        assert "layer of states" in other.stderr


def maps(ranks: int):
    """Hybrid, random and prism maps of several grains."""
    yield (d := Decomposition(PAIRS, PLANES, 5, 1, 1, 2, 2, 7)), random_map(d, ranks, 3)
    yield (d := Decomposition(PAIRS, PLANES, ranks, 2, 1, 1, 1, 6)), hybrid_map(d, ranks, 2)
    if ranks == 4:
        yield (d := Decomposition(PAIRS, PLANES, 2, 2, 1, 3, 3, 6)), prism_map(d, Torus((2, 2, 1)))


@pytest.mark.parametrize(("ranks", "keys"), [(2, {}), (4, {}), (4, SPLINES["ELECTRONS"])])
def test_messages_are_those_of_the_map(tmp_path, ranks, keys):
    """Every kind of message is sent by the ranks, and as often, as geometry has it: in each evaluation, product of
    states, factor of a matrix and sum over atoms by splines; the transposes of states in buckets of five."""
    of_evaluation = ["states_to_planes", "planes_to_states", "density_sums", "projection_sums", "projections",
                     "potentials", "density_to_waves", "density_to_planes", "rows_to_columns", "columns_to_rows",
                     "states_to_mesh", "mesh_to_states"]
    total = None
    for d, m in maps(ranks):
        write_object_map(tmp_path / "fine.map", d, m)
        found = compute(tmp_path, SMALL, ranks, ELECTRONS=keys | {"mapfile": "fine.map"}, PARALLEL={"layer": "OBJECTS"})
        total = total or found["total"]
        assert found["total"] == pytest.approx(total, abs=1e-10)
        if keys:
            order = keys["spline_order"]
            d = replace(d, hartree_planes=mesh_planes(PLANES, order), nonlocal_planes=mesh_planes(PLANES // 2, order))
        once = messages_of_objects(d, m, (SMALL.box,) * 3, SMALL.cutoff, gradient=True)
        sent = {name: np.array(values) for name, values in found["sent_by_ranks"].items()}
        assert {name for name in sent if not name.endswith("_bytes")} <= once.keys()
        times = {}
        for name, values in once.items():
            if not values.any():
                assert not sent[name].any(), name
                continue
            times[name] = sent[name].max() // values.max()
            assert sent[name].tolist() == (times[name] * values).tolist(), name
        evaluations = {times[name] for name in times if name.removesuffix("_bytes") in of_evaluation}
        assert len(evaluations) == 1 and evaluations.pop() > 3
        assert times["states_to_pairs"] == times["pairs_to_states"]
        assert not keys or times["atoms_to_waves"] == times["waves_to_atoms"] == 1


@pytest.mark.parametrize(("sections", "words"), [
    ({"PARALLEL": {"sGrainSize": 3}}, ["sgrainsize = 3", "even", "4 states"]),
    ({"PARALLEL": {"sGrainSize": 4, "orthoGrainSize": 6}}, ["orthograinsize = 6", "divide sgrainsize = 4"]),
    ({"PARALLEL": {"gExpandFact": 1000}}, ["gexpandfact", "more sets than there are lines"]),
    ({"PARALLEL": {"rhoRsubplanes": 50}}, ["rhorsubplanes = 50", "24 rows"]),
    ({"PARALLEL": {"layer": "STATES", "numChunks": 2}}, ["numchunks = 2 has no effect without layer = OBJECTS"]),
    ({"ELECTRONS": {"memory": 0}}, ["planes of states take", "memory"]),
    ({"ELECTRONS": {"mapfile": "none.map"}}, ["none.map", "cannot be read"]),
    ({"ELECTRONS": {"mapfile": "wrong.map"}}, ["wrong.map", "2 pairs of states, 24 planes and 1 ranks"]),
    ({"ELECTRONS": {"mapfile": "broken.map"}}, ["broken.map", "table 'pair'"]),
])
def test_what_objects_cannot_do_is_refused(tmp_path, sections, words):
    write_objects(tmp_path / "wrong.map", 8, PLANES, 1, GRAIN)
    write_objects(tmp_path / "broken.map", 4, PLANES, 1, GRAIN)
    text = (tmp_path / "broken.map").read_text()
    (tmp_path / "broken.map").write_text(text.replace("pair\n0", "pair\n1"))
    sections = sections | {"PARALLEL": {"layer": "OBJECTS"} | sections.get("PARALLEL", {})}
    done = run(tmp_path, write_case(tmp_path, SMALL, **sections))
    assert done.returncode == 3
    lines = [line for line in done.stderr.splitlines() if line.startswith("chromaqm: ")]
    assert len(lines) == 1
    assert all(word in lines[0] for word in words), lines[0]


GRAIN = {"g_sets": 0, "rho_sets": 0, "s_grain": 0, "ortho_grain": 0, "chunks": 1, "subplanes": 1}


def test_maps_of_objects_by_command(tmp_path):
    """They hold what the functions give; numbers that do not fit are refused."""
    write_objects(tmp_path / "made.map", 4, PLANES, 4, GRAIN | {"s_grain": 2}, torus=(2, 2, 1))
    d = Decomposition(PAIRS, PLANES, 2, 1, 0, 1, 1, PLANES // 2)
    write_object_map(tmp_path / "same.map", d, prism_map(d, Torus((2, 2, 1))))
    assert (tmp_path / "made.map").read_text() == (tmp_path / "same.map").read_text()
    with pytest.raises(BadInputError, match="--s-grain 3"):
        write_objects(tmp_path / "made.map", 4, PLANES, 4, GRAIN | {"s_grain": 3})
    with pytest.raises(BadInputError, match="does not divide 2 states"):
        write_objects(tmp_path / "made.map", 4, PLANES, 4, GRAIN | {"s_grain": 8})
    with pytest.raises(BadInputError, match="--groups 3"):
        write_objects(tmp_path / "made.map", 4, PLANES, 4, GRAIN, groups=3)
