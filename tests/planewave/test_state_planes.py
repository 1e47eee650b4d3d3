"""Maps of planes of states: the same energies wherever they are, messages as the map's geometry has them, and what is
refused."""

import numpy as np
import pytest
from support.plane_waves import WATER, Case, compute, run, write_case

from chromabuild.base.errors import BadInputError
from chromabuild.quantum.state_map import write_map
from chromabuild.scaling.placement import Decomposition, hybrid_planes, prism_map, write_state_planes
from chromabuild.scaling.planewave_trace import deal_sticks, sent_by_ranks, stick_lengths
from chromabuild.scaling.topology import Torus

SMALL = Case(WATER, 7.5, 25.0, "BLYP")
PAIRS, PLANES = 2, 24
"""Of the case: four states; its grid."""


def maps(ranks: int):
    """State, plane and hybrid maps, and prisms on a torus."""
    if ranks > 2:
        yield prism_map(Decomposition(PAIRS, PLANES, ranks, 1), Torus((2, 2, 1))).r
    for groups in sorted({1, 2, ranks}):
        yield hybrid_planes(PAIRS, PLANES, ranks, groups)


@pytest.mark.parametrize("ranks", [2, 4])
def test_energies_are_the_same_and_messages_are_the_map_s(tmp_path, ranks):
    """Sums over ranks are rounded in another order, nothing else: 1e-10 hartree. Every message and byte is counted."""
    alone = compute(tmp_path, SMALL)
    assert alone["grid"] == [PLANES] * 3 and alone["states"] == 2 * PAIRS
    assert not any(map(any, alone["sent_by_ranks"].values()))
    sticks = deal_sticks(stick_lengths((SMALL.box,) * 3, SMALL.cutoff), ranks)
    for r, memory in [*((r, 2048) for r in maps(ranks)), (hybrid_planes(PAIRS, PLANES, ranks, 2), 0)]:
        write_state_planes(tmp_path / "planes.map", r, ranks)
        found = compute(tmp_path, SMALL, ranks, ELECTRONS={"mapfile": "planes.map", "memory": memory})
        assert found["total"] == pytest.approx(alone["total"], abs=1e-10)
        np.testing.assert_allclose(found["forces"], alone["forces"], atol=1e-7)
        once = sent_by_ranks(r, sticks, PLANES**2, ranks)
        sent = {name: np.array(values) for name, values in found["sent_by_ranks"].items()}
        if memory:
            times = sent["transposes"].max() // once["transposes"].max()
            for name, values in once.items():
                assert sent[name].tolist() == (times * values).tolist(), name
        else:  # transformed to the grid twice
            times = sent["densities_bytes"].sum() // once["densities_bytes"].sum()
            assert 2 * sent["transposes_bytes"].sum() == 3 * times * once["transposes_bytes"].sum()


def test_without_a_map_planes_are_in_even_shares(tmp_path):
    found = compute(tmp_path, SMALL, 3)
    once = sent_by_ranks(hybrid_planes(PAIRS, PLANES, 3, 1),
                         deal_sticks(stick_lengths((SMALL.box,) * 3, SMALL.cutoff), 3), PLANES**2, 3)
    sent = np.array(found["sent_by_ranks"]["transposes_bytes"])
    times = sent.sum() / once["transposes_bytes"].sum()
    assert times == int(times) > 0 and sent.tolist() == (int(times) * once["transposes_bytes"]).tolist()
    assert not any(found["sent_by_ranks"]["densities"])


@pytest.mark.parametrize("change, complaint", [
    (lambda t: t.replace("2 24 2", "3 24 2", 1), "line 1 must begin with 2 pairs of states, 24 planes"),
    (lambda text: text.replace("\n1 0", "\n1 7", 1), "line 2 is not a pair of states"),
    (lambda text: text.rsplit("\n", 2)[0] + "\n", "line 3 is not a pair of states"),
    (lambda text: text.replace("\n2 ", "\n1 ", 1), "line 3 is not a pair of states"),
])
def test_a_wrong_map_is_refused(tmp_path, change, complaint):
    write_state_planes(tmp_path / "planes.map", hybrid_planes(PAIRS, PLANES, 2, 1), 2)
    (tmp_path / "planes.map").write_text(change((tmp_path / "planes.map").read_text()))
    done = run(tmp_path, write_case(tmp_path, SMALL, ELECTRONS={"mapfile": "planes.map"}), 2)
    assert done.returncode == 3
    assert complaint in done.stderr and "planes.map" in done.stderr


def test_maps_by_command(tmp_path):
    """`chromabuild qm map` writes what the functions give, and refuses numbers that do not fit."""
    write_map(tmp_path / "made.map", 4, PLANES, 4, groups=2)
    write_state_planes(tmp_path / "planes.map", hybrid_planes(PAIRS, PLANES, 4, 2), 4)
    assert (tmp_path / "made.map").read_text() == (tmp_path / "planes.map").read_text()
    write_map(tmp_path / "made.map", 4, PLANES, 4, torus=(2, 2, 1))
    assert len((tmp_path / "made.map").read_text().splitlines()) == 1 + PAIRS
    with pytest.raises(BadInputError, match="--groups 3 does not divide 4 ranks"):
        write_map(tmp_path / "made.map", 4, PLANES, 4, groups=3)
    with pytest.raises(BadInputError, match="--torus 2 2 3 has not the 8 nodes"):
        write_map(tmp_path / "made.map", 4, PLANES, 8, torus=(2, 2, 3))
