"""The distributed FFT against NumPy, for every scheme, layout and transport, and its messages against the formulas.

All cases of one number of ranks run in one mpirun; every rank compares its own share (rank_worker.py).
"""

import numpy as np
import pytest

SCHEMES = ("slab", "pencil", "1d", "2d", "qcdoc", "columns")
TRANSPORTS = ("alltoall", "alltoallv", "alltoallw", "ialltoall", "ialltoallv", "persistent", "one_sided",
              "by_node")
# Errors relative to the rms wave. Rounding grows with log2 of the points: about 10 steps of 6e-8 (single) at most here.
TOLERANCE = {True: 1e-6, False: 1e-12}


def _cases():
    """Lists of cases by number of ranks."""
    cases = {1: [], 2: [], 3: [], 8: [], 27: []}
    # Sizes of factors 2, 3, 5, 7, odd and prime, on one rank, even and prime numbers of ranks.
    for ranks, n in ((1, (7, 6, 5)), (2, (6, 5, 7)), (3, (14, 9, 4)), (8, (10, 9, 7))):
        for k, scheme in enumerate(SCHEMES):
            cases[ranks] += [dict(n=n, scheme=scheme, real=True, single=k % 2 == 0, n_batch=1 + k % 2),
                             dict(n=n, scheme=scheme, real=False, single=k % 2 == 1, n_chunks=1 + k % 3)]
    # Each transport blocked and in chunks, each with another scheme too.
    for k, transport in enumerate(TRANSPORTS):
        cases[8] += [dict(n=(10, 9, 7), scheme="qcdoc", transport=transport, n_chunks=3),
                     dict(n=(9, 8, 6), scheme=SCHEMES[k % 6], transport=transport, n_batch=2, real=k % 2 == 0)]
        cases[3] += [dict(n=(5, 6, 7), scheme=SCHEMES[(k + 3) % 6], transport=transport)]
    # Nodes of one rank, of several, even and uneven, and one that holds them all.
    for k, scheme in enumerate(SCHEMES):
        cases[8] += [dict(n=(10, 9, 7), scheme=scheme, transport="by_node", ranks_a_node=size,
                          n_chunks=1 + (k + size) % 2) for size in (1, 2, 3, 8)]
    cases[8] += [dict(n=(32, 32, 32), scheme="pencil", transport="by_node", real=False)]  # long messages
    # Layouts of the user's at either end.
    for scheme in SCHEMES:
        cases[8] += [dict(n=(8, 9, 10), scheme=scheme, real_layout=layout, real=layout != "planes")
                     for layout in ("slabs", "planes", "pencils", "scattered")]
        cases[8] += [dict(n=(8, 9, 10), scheme=scheme, wave_layout=layout, n_chunks=2)
                     for layout in ("sticks", "sphere", "scattered")]
        cases[3] += [dict(n=(8, 9, 10), scheme=scheme, wave_layout="sphere", real_layout="scattered", real=False,
                          n_batch=2)]
        cases[8] += [dict(n=(8, 9, 10), scheme=scheme, subset=subset) for subset in ("compressed", "expanded")]
    # The same bits for every number of chunks; two axes under way at once only if allowed.
    cases[8] += [dict(n=(12, 10, 14), scheme=scheme, transport="ialltoallv", n_chunks=chunks, overlap_axes=overlap)
                 for scheme in SCHEMES for chunks, overlap in ((1, True), (2, False), (3, True), (7, True))]
    # Planner, many transforms at once.
    cases[8] += [dict(n=(8, 8, 8), scheme="time", n_chunks=0), dict(n=(8, 9, 10), scheme="model")]
    cases[3] += [dict(sizes=[(4 + k % 5, 5, 6 + k % 3) for k in range(24)], scheme="pencil", transport="ialltoallv")]
    # 27 ranks: even blocks, for the formulas; and more ranks than lines.
    cases[27] += [dict(n=(9, 9, 9), scheme=scheme, real=False, grid=(3, 3, 3) if k > 1 else (0, 0, 0))
                  for k, scheme in enumerate(SCHEMES)]
    cases[27] += [dict(n=(3, 3, 3), scheme=scheme, real=False, subset=subset, grid=(3, 3, 3))
                  for scheme in ("1d", "columns") for subset in ("full", "expanded")]
    cases[27] += [dict(n=(8, 7, 6), scheme="model", transport="persistent")]
    cases[27] += [dict(n=(9, 9, 9), scheme="2d", real=False, grid=(3, 3, 3), transport="by_node", ranks_a_node=3)]
    cases[2] += [dict(n=(4, 4, 4), scheme="fastest"), dict(n=(4, 4, 4), scheme="1d", grid=(2, 2, 2)),
                 dict(n=(4, 4, 4), transport="pigeon"),
                 dict(n=(4, 4, 4), scheme="slab", grid=(2, 1, 1)),
                 dict(n=(4, 4, 4), scheme="slab", n_chunks=-1)]
    return cases


CASES = _cases()


@pytest.fixture(scope="module")
def outcome(run_cases):
    """outcome(ranks): [(case, [what each rank found])]."""
    known = {}

    def run(ranks):
        if ranks not in known:
            found = run_cases(ranks, CASES[ranks])
            known[ranks] = list(zip(CASES[ranks], zip(*found, strict=True), strict=True))
        return known[ranks]

    return run


def select(outcomes, **wanted):
    return [(case, found) for case, found in outcomes if all(case.get(key) == value for key, value in wanted.items())]


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [pytest.param(n, marks=pytest.mark.slow) if n > 3 else n for n in CASES])
def test_every_case_matches_numpy(outcome, ranks):
    for case, found in outcome(ranks):
        if "error" in found[0]:
            continue
        tolerance = TOLERANCE[case.get("single", False)]
        assert max(rank["forward"] for rank in found) < tolerance, case
        if "sizes" in case:
            continue
        assert max(rank["backward"] for rank in found) < tolerance, case
        assert all(rank["input_kept"] for rank in found), case
        on_grid, in_waves = np.sum([rank["energy"] for rank in found], axis=0)
        if case.get("wave_layout") == "sphere":
            assert 0 < in_waves < on_grid
        else:  # Parseval
            assert on_grid == pytest.approx(in_waves, rel=tolerance), case
    refused = sum("error" in found[0] for _, found in outcome(ranks))
    assert refused == (5 if ranks == 2 else 0)


def share_sizes(n, parts):
    return np.array([len(part) for part in np.array_split(np.arange(n), parts)])


@pytest.mark.mpi
@pytest.mark.release
def test_nodes_exchange_one_message_for_all_of_their_ranks(outcome):
    """Rows of three ranks along x are nodes: no message for lines along x; of each plane of 3 nodes every node sends 2
    for lines along y, and each rank one to 2 others for lines along z, where every rank has a node of its own."""
    (_, found), = select(outcome(27), transport="by_node", ranks_a_node=3)
    counts = np.array([rank["counts"] for rank in found])
    assert counts[:, :, 1].sum(axis=0).tolist() == [0, 9 * 2, 27 * 2]
    assert counts[:, 1, 1].max() == 1  # the ranks of a node share them
    points = 9**3 * 16
    assert counts[:, :, 2].sum(axis=0).tolist() == [0, points * 2 // 3, points * 2 // 3]
    # 32^3 * 16 / 8 / 4 = 16 kB are long: each rank sends its own.
    (_, found), = select(outcome(8), n=(32, 32, 32))
    assert sorted(np.array(found[0]["counts"])[:, 1].tolist()) == [1, 3]


@pytest.mark.mpi
@pytest.mark.release
def test_messages_and_bytes_follow_the_formulas(outcome):
    """9^3 complex double on 3 x 3 x 3 ranks: 27 points a rank, of which each exchange among p ranks sends 1 - 1/p."""
    groups = {"slab": [27], "pencil": [3, 9], "1d": [3] * 5, "2d": [3, 9, 3], "qcdoc": [3] * 6}
    messages = {"1d": 2 * 2 + 2 * 2 + 2, "2d": 2 + (3 * 3 - 1) + 2, "qcdoc": 6 * 2, "pencil": 2 + 8}
    for scheme, ranks in groups.items():
        (_, found), = select(outcome(27), n=(9, 9, 9), scheme=scheme, transport=None)
        for rank, result in enumerate(found):
            counts = np.array(result["counts"])
            assert counts[:, 0].tolist() == ranks
            if scheme in messages:
                assert counts[:, 1].sum() == messages[scheme]
                assert counts[:, 2].tolist() == [27 * (p - 1) // p * 16 for p in ranks]
            else:  # 9 slabs: the others are idle; each sends a row of its plane to 8 others
                assert counts[0, 1:].tolist() == ([8, 8 * 9 * 16] if rank < 9 else [0, 0])


@pytest.mark.mpi
@pytest.mark.release
def test_uneven_pencils_move_what_changes_owner(outcome):
    """Points whose owner differs between two stages, counted from the shares; chunks cut messages, not bytes."""
    for chunks in (1, 3, 7):
        (_, found), = select(outcome(8), n=(12, 10, 14), scheme="pencil", n_chunks=chunks, overlap_axes=True)
        total = np.sum([[count[2] for count in rank["counts"]] for rank in found], axis=0)
        waves, y, z = 7, 10, 14
        stay_xy = np.sum(share_sizes(waves, 2) * share_sizes(y, 2)) * z
        stay_yz = np.sum(share_sizes(y, 4) * share_sizes(z, 4)) * waves
        assert total.tolist() == [16 * (waves * y * z - stay_xy), 16 * (waves * y * z - stay_yz)]
        if chunks == 1:
            assert {tuple(count[1] for count in rank["counts"]) for rank in found} == {(1, 3)}


@pytest.mark.mpi
def test_chunks_change_no_bit_and_overlap_axes(outcome):
    for scheme in SCHEMES:
        cases = [(case, found) for case, found in select(outcome(8), n=(12, 10, 14), scheme=scheme)]
        assert len(cases) == 4
        assert len({tuple(rank["bits"] for rank in found) for _, found in cases}) == 1
        for case, found in cases:
            under_way, axes = np.max([rank["choice"][1] for rank in found], axis=0)
            several = case["n_chunks"] > 1 and case["overlap_axes"]
            if scheme in ("1d", "qcdoc", "2d", "columns"):
                assert (axes >= 2) == several, case
            assert under_way == 1 or several


@pytest.mark.mpi
@pytest.mark.release
def test_more_ranks_than_lines(outcome):
    """3^3 on 27 ranks: 9 lines an axis, so that 9 ranks transform and 18 have nothing to send at those stages."""
    for scheme in ("1d", "columns"):
        for subset in ("full", "expanded"):
            (_, found), = select(outcome(27), n=(3, 3, 3), scheme=scheme, subset=subset)
            owners = [rank for rank, result in enumerate(found) if result["points"][1] > 0]
            assert [found[rank]["points"][1] for rank in owners] == [3] * 9
            sends = np.array([[count[1] > 0 for count in result["counts"]] for result in found])
            assert sends[:, 0].sum() == 18  # all that do not own the x line they lie on
            assert sends[:, 1].sum() == 9  # its owners alone send it on
            if subset == "expanded":  # one owner in every row along every axis
                x, y, z = np.array(owners) % 3, np.array(owners) // 3 % 3, np.array(owners) // 9
                for first, second in ((x, y), (y, z), (x, z)):
                    assert len(set(zip(first, second, strict=True))) == 9


@pytest.mark.mpi
def test_checkerboard_halves_the_senders(outcome):
    (_, found), = select(outcome(8), scheme="columns", subset="compressed")
    assert sum(result["points"][1] > 0 for result in found) == 4
    assert sum(result["counts"][1][1] > 0 for result in found) == 4


@pytest.mark.mpi
def test_sphere_skips_communication(outcome):
    """n = 8, 9, 10 real: sticks with kx^2 + ky^2 <= 4 have kx = 0..2, so that 3 of 5 kx travel to the y lines."""
    (_, found), = select(outcome(8), scheme="pencil", wave_layout="sphere")
    total = np.sum([[count[2] for count in rank["counts"]] for rank in found], axis=0)
    assert total[0] == 16 * 10 * (3 * 9 - np.sum(share_sizes(3, 2) * share_sizes(9, 2)))
    sticks = sum(min(kx, 8 - kx) ** 2 + min(ky, 9 - ky) ** 2 <= 4 for kx in range(5) for ky in range(9))
    assert sum(rank["points"][1] for rank in found) == 10 * sticks
    assert 0 < total[1] <= 16 * 10 * sticks


@pytest.mark.mpi
def test_planner_takes_the_cheapest(outcome):
    (_, found), = select(outcome(8), scheme="model")
    chosen = found[0]["choice"][0].split()
    assert chosen[0] in SCHEMES
    others = [result[0]["estimate"] for case, result in select(outcome(8), n=(8, 9, 10), subset="compressed")]
    assert all(found[0]["estimate"] <= 1.001 * estimate for estimate in others)
    assert {rank["choice"][0] for rank in found} == {found[0]["choice"][0]}
    (_, timed), = select(outcome(8), scheme="time")
    assert len({rank["choice"][0] for rank in timed}) == 1


@pytest.mark.mpi
def test_bad_options_are_one_sentence(outcome):
    sentences = [found[0]["error"] for _, found in outcome(2) if "error" in found[0]]
    for word in ("fastest", "2 2 2", "pigeon", "1 x 1 x P", "-1 chunks"):
        assert any(word in sentence for sentence in sentences), word
