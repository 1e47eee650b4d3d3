"""Borders between domains that follow the work.

A droplet fills one corner of the box, so that evenly spaced domains share the work badly. In the deterministic mode the
trajectory must have the same bits with borders that move and with borders that do not, and on one rank.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from support import systems

pytestmark = pytest.mark.mpi

BOX = np.full(3, 48.0)
ENERGY = {"cutoffdist": 6, "switchdist": 5, "pairlistdist": 6.5, "deterministic": "YES"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """512 waters on a lattice of 3.1 angstrom in the lowest eighth of the box, with the input of a run."""
    folder = tmp_path_factory.mktemp("balance")
    water = systems.water()
    site = 3.1 * (np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.3)
    shape = np.array([[0, 0, 0], [0.957, 0, 0], [-0.24, 0.927, 0]])
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(len(site), 3, 3)))[0]
    position = (site[:, None] + np.einsum("nij,kj->nki", turn, shape)).reshape(-1, 3)
    systems.write_topology(folder / "t.h5", [(water, len(site))])
    systems.write_bricks(folder, [(water, len(site))], position, BOX)
    return folder


def run(folder: Path, ranks: int, balance: str, domains: tuple[int, int, int],
        comm: dict | None = None) -> tuple[systems.Restart, str]:
    boundary = {f"domain_{axis}": n for axis, n in zip("xyz", domains, strict=True)} | {"load_balance": balance}
    start = str(folder / f"start{ranks}_().rst")
    inp = systems.control(folder / "setup.inp", INPUT={"topologyfile": folder / "t.h5",
                                                       "shardfile": folder / "bricks.txt"},
                          OUTPUT={"rstfile": start}, ENERGY=ENERGY, BOUNDARY=boundary)
    done = systems.run("setup", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr
    inp = systems.control(
        folder / "run.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": start},
        OUTPUT={"rstfile": folder / "end_().rst"}, ENERGY=ENERGY, BOUNDARY=boundary,
        CONSTRAINTS={"rigid_bond": "YES"}, ENSEMBLE={"temperature": 300, "ensemble": "NVT", "tpcontrol": "BUSSI"},
        DYNAMICS={"nsteps": 60, "eneout_period": 20, "timestep": 0.001, "iseed": 5, "rstout_period": 30,
                  "nbupdate_period": 10}, COMM=comm or {})
    done = systems.run("run", inp, ranks, "chromamd")
    assert done.returncode == 0, done.stderr
    return systems.read_restarts(str(folder / "end_().rst"), ranks), done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("domains", [(3, 1, 1), (2, 2, 2)])
def test_work_is_shared_and_bits_stay(folder, domains):
    """The largest work of a rank over the mean falls below half of what it was above one."""
    ranks = int(np.prod(domains))
    one, _ = run(folder, 1, "NO", (1, 1, 1))
    even, log = run(folder, ranks, "NO", domains)
    assert "load balance" not in log
    moved, log = run(folder, ranks, "YES", domains)
    assert np.array_equal(even.position, one.position)
    assert np.array_equal(moved.position, one.position)
    assert np.array_equal(moved.velocity, one.velocity)
    before, after = map(float, re.search(r"load balance.* ([\d.]+) with even borders, now ([\d.]+)", log).groups())
    assert before > 1.8
    assert after - 1 < 0.5 * (before - 1)
