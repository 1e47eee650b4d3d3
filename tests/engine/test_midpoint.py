"""The midpoint method: who computes a pair is decided by its middle, and nothing else changes.

In the deterministic mode forces, energies, virial and trajectories must have the bits of the half shell on one rank: a
pair, term or exclusion that is missed or taken twice changes them. Imported atoms are counted from coordinates alone.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import systems
from test_deterministic import assert_same, trajectory
from test_deterministic import folder as solution  # noqa: F401
from test_halo import EDGE, box, direct_counts, driver, half_shell, run_driver, staged_counts  # noqa: F401
from test_load_balance import folder as droplet  # noqa: F401
from test_load_balance import run as run_droplet

pytestmark = pytest.mark.mpi

MIDPOINT = {"method": "MIDPOINT"}


def write_system(folder: Path, edge: float, n_units: int, spacing: float, empty: tuple[float, float]) -> None:
    """A charged chain among waters on a lattice, all in a cube; nothing where `empty` says along x."""
    molecule, chain = systems.chain(n_units, np.random.default_rng(4))
    water = systems.water()
    n = round(edge / spacing)
    jitter = np.random.default_rng(9).uniform(-0.3, 0.3, (n**3, 3))
    site = jitter + edge / n * (np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5)
    # Across a face of the box, along y.
    chain = chain[:, [1, 0, 2]]
    chain = chain - chain.mean(axis=0) + np.array([4.0, 1.0, edge / 2])
    apart = site[:, None] - chain[None]
    apart -= edge * np.round(apart / edge)
    site = site[np.linalg.norm(apart, axis=2).min(axis=1) > 2.5]
    site = site[(site[:, 0] < empty[0]) | (site[:, 0] >= empty[1])]
    shape = np.array([[0, 0, 0], [0.957, 0, 0], [-0.24, 0.927, 0]])
    runs = [(molecule, 1), (water, len(site))]
    systems.write_topology(folder / "t.h5", runs)
    systems.write_bricks(folder, runs, np.concatenate([chain, (site[:, None] + shape).reshape(-1, 3)]),
                         np.full(3, edge))


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory) -> Callable:
    """Forces and the lines of `chromamd energy`, by system, ranks, threads, program, domains and [COMM] (and
    save_memory)."""
    folders = {}
    for name, edge, n_units, spacing, cutoff, empty in [
            ("crowded", 24.0, 12, 3.0, 8.0, (0.0, 0.0)), ("small", 12.0, 4, 3.0, 5.5, (0.0, 0.0)),
            ("gap", 30.0, 5, 3.3, 8.0, (11.9, 18.1))]:
        folders[name] = (tmp_path_factory.mktemp(name), cutoff)
        write_system(folders[name][0], edge, n_units, spacing, empty)

    @cache
    def of(name: str, ranks: int = 1, threads: int = 1, program: str = "chromamd",
           domains: tuple[int, int, int] = (0, 0, 0), comm: tuple[tuple[str, str], ...] = ()) -> tuple[np.ndarray, str]:
        folder, cutoff = folders[name]
        keys = dict(comm)
        inp = systems.control(
            folder / "energy.inp", INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"},
            ENERGY={"cutoffdist": cutoff, "switchdist": cutoff - 1, "pairlistdist": cutoff + 0.5,
                    "deterministic": "YES", "save_memory": keys.pop("save_memory", "NO")},
            OUTPUT={"forcefile": folder / "force.bin"}, COMM=keys,
            BOUNDARY={f"domain_{axis}": n for axis, n in zip("xyz", domains, strict=True)})
        done = systems.run("energy", inp, ranks, program, threads)
        assert done.returncode == 0, done.stderr
        return systems.read_forces(folder / "force.bin"), done.stdout

    return of


@pytest.mark.parametrize(("name", "ranks", "threads", "program", "domains", "comm"), [
    ("crowded", 1, 1, "chromamd", (0, 0, 0), {}),
    ("crowded", 2, 2, "chromamd", (0, 0, 0), {}),
    ("crowded", 3, 1, "chromamd", (0, 0, 0), {"pattern": "STAGED", "save_memory": "YES"}),
    ("crowded", 8, 1, "chromamd", (0, 0, 0), {"pattern": "STAGED", "overlap": "YES"}),
    ("crowded", 5, 1, "chromamd", (0, 0, 0), {"pme_ranks": "1", "overlap": "YES", "transport": "SHARED"}),
    ("crowded", 7, 1, "chromamd-double", (7, 1, 1), {"pattern": "FULL"}),
    ("small", 27, 1, "chromamd", (3, 3, 3), {"pattern": "FULL"}),
    ("gap", 5, 1, "chromamd", (5, 1, 1), {}),
])
def test_forces_energies_and_virial_have_the_bits_of_the_half_shell(evaluate, name, ranks, threads, program, domains,
                                                                    comm):
    """Domains of 3.4 angstrom (7) and 4.0 (27: each has 124 neighbours) are narrower than the halo, half of the list's
    reach and the extent of a group: 5.3 and 4.0x. One domain of the gap has no atoms, but the middles of pairs."""
    expected_force, expected = evaluate(name, program=program)
    force, printed = evaluate(name, ranks, threads, program, domains, tuple((MIDPOINT | comm).items()))
    assert np.array_equal(force, expected_force)
    assert printed == expected


@pytest.fixture(scope="module")
def expected(solution) -> Callable:  # noqa: F811
    """The trajectory of the half shell on one rank, by program."""
    return cache(lambda program: trajectory(solution, 1, 1, program, "langevin-mtk"))


@pytest.mark.parametrize(("ranks", "threads", "program"), [(1, 1, "chromamd"), (2, 2, "chromamd"), (8, 1, "chromamd"),
                                                           (3, 1, "chromamd-double")])
def test_trajectories_have_the_bits_of_the_half_shell(solution, expected, ranks, threads, program):  # noqa: F811
    """40 steps at constant pressure: atoms change owners, lists are renewed with old places, the box is scaled."""
    assert_same(trajectory(solution, ranks, threads, program, "langevin-mtk", comm=MIDPOINT), expected(program))


@pytest.mark.release
def test_borders_may_move(droplet):  # noqa: F811
    one, _ = run_droplet(droplet, 1, "NO", (1, 1, 1))
    moved, log = run_droplet(droplet, 4, "YES", (2, 1, 2), MIDPOINT)
    assert "load balance" in log
    assert "whole shell" in log
    assert np.array_equal(moved.position, one.position)
    assert np.array_equal(moved.velocity, one.velocity)


@pytest.mark.parametrize(("ranks", "domains"), [(1, (1, 1, 1)), (4, (4, 1, 1))])
def test_ghosts_come_from_half_as_far_from_all_around(driver, box, ranks, domains):  # noqa: F811
    """Every atom within half the reach of a domain is imported once for every image, by all patterns and transports,
    and these are fewer than the half shell of twice the width holds."""
    ours = run_driver(driver, box, ranks, 7.0, domains, **MIDPOINT)
    layers = np.maximum(1, np.ceil(ours.width / (EDGE / ours.dims) - 1e-9)).astype(int)
    half = half_shell(layers)
    full = half + [tuple(-x for x in o) for o in half]
    direct = direct_counts(box, ours.dims, ours.width, full)
    links = {"HALF": direct, "FULL": direct, "STAGED": staged_counts(box, ours.dims, ours.width, layers)}
    ghosts = np.zeros(ranks, int)
    for mine in direct:
        for to, n in mine:
            ghosts[to] += n
    for (pattern, _, _, rank), plan in ours.plans.items():
        sent = [(to, n) for to, n in links[pattern][rank] if to != rank and n > 0]
        assert plan.ghosts == ghosts[rank]
        assert plan.bytes == 24 * sum(n for _, n in sent)
        assert plan.atoms == sum(n for _, n in links[pattern][rank])
        assert plan.same
        # STAGED sums forces on the way: ten roundings.
        assert plan.difference <= (1e-14 if pattern == "STAGED" else 0.0)
    wide = np.maximum(1, np.ceil(2 * ours.width / (EDGE / ours.dims) - 1e-9)).astype(int)
    wider = direct_counts(box, ours.dims, 2 * ours.width, half_shell(wide))
    assert ghosts.sum() < sum(n for mine in wider for _, n in mine)


@pytest.mark.parametrize(("comm", "energy", "told"), [
    ({}, {"forcefield": "LJ"}, "method = MIDPOINT needs forcefield = TOPOLOGY"),
    ({"pattern": "HALF"}, {}, "pattern = HALF does not go with method = MIDPOINT"),
])
def test_what_does_not_go_together_is_refused(tmp_path, comm, energy, told):
    inp = systems.control(tmp_path / "refused.inp", INPUT={"topologyfile": "t.h5", "shardfile": "bricks.txt"},
                          ENERGY=energy, COMM=MIDPOINT | comm)
    done = systems.run("energy", inp)
    assert done.returncode == 3, done.stderr
    assert told in done.stderr
