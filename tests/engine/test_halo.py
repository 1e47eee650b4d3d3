"""The halo exchange: every pattern and transport gives the same forces, and sends exactly what the geometry says.

`halo_driver` runs them all in one process a rank; here the counts are found anew from the coordinates alone.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support import systems
from support.build_products import ROOT, newest
from support.chain_in_water import BOX, ENERGY, make_system, minimised, setup

pytestmark = pytest.mark.mpi
TRANSPORTS = ["PERSISTENT", "NEIGHBOURHOOD", "ONE_SIDED", "SHARED"]
EDGE = 30.0


@dataclass
class Plan:
    """One line of the driver."""

    links: int
    messages: int
    partners: int
    bytes: int
    atoms: int
    ghosts: int
    same: bool
    difference: float


@dataclass
class Report:
    """All that the driver printed; plans by (pattern, transport, combined, rank)."""

    plans: dict[tuple[str, str, bool, int], Plan]
    words: dict[str, str]
    dims: np.ndarray
    width: float
    result: np.ndarray


@pytest.fixture(scope="session")
def driver() -> Path:
    """That of the build tree, else built now."""
    built = newest("halo_driver")
    if built is None:
        folder = ROOT / "build" / "halo"
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-DCHROMAMD_BUILD_TESTS=ON"], check=True,
                       capture_output=True)
        subprocess.run(["cmake", "--build", folder, "-j2", "--target", "halo_driver"], check=True, capture_output=True)
        built = next(folder.glob("**/halo_driver"))
    return built


@dataclass
class Box:
    """A chain among waters on a lattice; of its constraint groups the reference atoms and the numbers of atoms."""

    folder: Path
    reference: np.ndarray
    size: np.ndarray


@pytest.fixture(scope="session")
def box(tmp_path_factory) -> Box:
    folder = tmp_path_factory.mktemp("halo")
    molecule, chain = systems.chain(14, np.random.default_rng(4))
    water = systems.water()
    jitter = np.random.default_rng(9).uniform(-0.3, 0.3, (216, 3))  # no two pairs at the same distance
    site = jitter + EDGE / 6 * (np.stack(np.meshgrid(*[np.arange(6)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5)
    chain = chain - chain.mean(axis=0) + EDGE / 2
    site = site[np.linalg.norm(site[:, None] - chain[None], axis=2).min(axis=1) > 3.0]
    shape = np.array([[0, 0, 0], [0.957, 0, 0], [-0.24, 0.927, 0]])
    position = np.concatenate([chain, (site[:, None] + shape).reshape(-1, 3)])
    runs = [(molecule, 1), (water, len(site))]
    systems.write_topology(folder / "t.h5", runs)
    systems.write_bricks(folder, runs, position, np.full(3, EDGE))
    first = np.arange(molecule.n)
    for (i, j), _ in molecule.constraints:
        first[max(i, j)] = min(i, j)
    heavy, size = np.unique(first, return_counts=True)
    reference = np.concatenate([chain[heavy], site])
    return Box(folder, np.round(reference - EDGE * np.floor(reference / EDGE), 3),
               np.concatenate([size, np.full(len(site), 3)]))


@pytest.fixture(scope="session")
def report(driver, box):
    """What the driver says of (ranks, cutoff, domains); asked once."""
    return cache(lambda ranks, cutoff, domains=(0, 0, 0): run_driver(driver, box, ranks, cutoff, domains))


def run_driver(driver: Path, box: Box, ranks: int, cutoff: float, domains: tuple[int, int, int],
               **comm: object) -> Report:
    inp = systems.control(
        box.folder / f"halo_{ranks}_{cutoff}.inp", INPUT={"topologyfile": box.folder / "t.h5",
                                                          "shardfile": box.folder / "bricks.txt"},
        ENERGY={"cutoffdist": cutoff, "switchdist": cutoff, "pairlistdist": cutoff + 0.5, "pme_alpha": 0.4,
                **{f"pme_ngrid_{axis}": 30 for axis in "xyz"}},
        BOUNDARY={f"domain_{axis}": n for axis, n in zip("xyz", domains, strict=True)}, COMM=comm)
    environment = dict(os.environ, OMP_NUM_THREADS="1", OMPI_MCA_mpi_yield_when_idle="1",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_hwloc_base_binding_policy="none",
                       OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(["mpirun", "--oversubscribe", "-n", str(ranks), str(driver), str(inp)], env=environment,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    plans = {}
    words = {}
    for line in done.stdout.splitlines():
        key, _, rest = line.partition(" ")
        if key == "PLAN":
            pattern, transport, combined, *numbers, same, difference = rest.split()
            rank, *counts = map(int, numbers)
            plans[pattern, transport, combined == "T", rank] = Plan(*counts, same == "T", float(difference))
        else:
            words[key] = rest.strip()
    *dims, width = words["DOMAINS"].split()
    return Report(plans, words, np.array(dims, int), float(width), np.array(words["RESULT"].split(), float))


def half_shell(layers: np.ndarray) -> list[tuple[int, int, int]]:
    """Offsets whose last non-zero component is positive."""
    return [o for o in product(*[range(-n, n + 1) for n in layers]) if o[::-1] > (0, 0, 0)]


def rank_of(coordinate: np.ndarray, dims: np.ndarray) -> int:
    x, y, z = np.mod(coordinate, dims)
    return int(x + dims[0] * (y + dims[1] * z))


def direct_counts(box: Box, dims: np.ndarray, width: float, offsets: list) -> list[list[tuple[int, int]]]:
    """Of every rank and link: the rank sent to, and the atoms within the width of the domain that lies at -offset."""
    slices = EDGE / dims
    home = np.minimum((box.reference / slices).astype(int), dims - 1)
    counts = []
    for rank in range(int(np.prod(dims))):
        here = np.array([rank % dims[0], rank // dims[0] % dims[1], rank // (dims[0] * dims[1])])
        mine = (home == here).all(axis=1)
        links = []
        for offset in offsets:
            there = here - np.array(offset)  # not wrapped: the receiver's image seen from here
            outside = np.maximum(0, np.maximum(there * slices - box.reference, box.reference - (there + 1) * slices))
            near = mine & (np.linalg.norm(outside, axis=1) <= width)
            links.append((rank_of(there, dims), int(box.size[near].sum())))
        counts.append(links)
    return counts


def staged_counts(box: Box, dims: np.ndarray, width: float, layers: np.ndarray) -> list[list[tuple[int, int]]]:
    """The same for one axis after the other, each passing on what is within the width along its axis."""
    slices = EDGE / dims
    n_ranks = int(np.prod(dims))
    owner = np.array([rank_of(c, dims) for c in np.minimum((box.reference / slices).astype(int), dims - 1)])
    pool = [(box.reference[owner == rank], box.size[owner == rank]) for rank in range(n_ranks)]
    counts: list[list[tuple[int, int]]] = [[] for _ in range(n_ranks)]
    for axis in range(3):
        arrived: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(n_ranks)]
        for rank in range(n_ranks):
            here = np.array([rank % dims[0], rank // dims[0] % dims[1], rank // (dims[0] * dims[1])])
            reference, size = pool[rank]
            for step in [s for k in range(1, layers[axis] + 1) for s in (k, -k)]:
                there = here.copy()
                there[axis] += step
                low = there[axis] * slices[axis]
                near = np.maximum(low - reference[:, axis], reference[:, axis] - low - slices[axis]) <= width
                shifted = reference[near].copy()
                shifted[:, axis] -= EDGE * (there[axis] // dims[axis])
                counts[rank].append((rank_of(there, dims), int(size[near].sum())))
                arrived[rank_of(there, dims)].append((shifted, size[near]))
        pool = [(np.concatenate([pool[r][0], *[a for a, _ in arrived[r]]]),
                 np.concatenate([pool[r][1], *[b for _, b in arrived[r]]])) for r in range(n_ranks)]
    return counts


def messages_of(links: list[tuple[int, int]], rank: int, rounds: list[int], combined: bool) -> int:
    """Messages that hold something; `rounds`: the round of every link."""
    used = [(r, to) for r, (to, n) in zip(rounds, links, strict=True) if to != rank and n > 0]
    return len(set(used)) if combined else len(used)


@pytest.mark.parametrize(("ranks", "cutoff", "domains"), [
    (1, 7.0, (0, 0, 0)), (2, 7.0, (0, 0, 0)), (3, 7.0, (0, 0, 0)), (4, 7.0, (0, 0, 0)), (5, 7.0, (5, 1, 1)),
    (8, 7.0, (0, 0, 0)), pytest.param(27, 6.5, (3, 3, 3), marks=pytest.mark.slow),
    pytest.param(27, 8.0, (3, 3, 3), marks=pytest.mark.slow),
])
def test_patterns_and_transports_agree_and_send_what_the_geometry_says(report, box, ranks, cutoff, domains):
    """Bits are those of the first plan, except that STAGED sums forces on the way: some ten roundings (1e-16 of the
    largest force each). Against one rank the order of all sums differs (1e-10 relative, sums of 600 forces)."""
    ours = report(ranks, cutoff, domains)
    assert np.prod(ours.dims) == ranks
    layers = np.maximum(1, np.ceil(ours.width / (EDGE / ours.dims) - 1e-9)).astype(int)
    half = half_shell(layers)
    full = half + [tuple(-x for x in o) for o in half]
    links = {"HALF": direct_counts(box, ours.dims, ours.width, half),
             "FULL": direct_counts(box, ours.dims, ours.width, full),
             "STAGED": staged_counts(box, ours.dims, ours.width, layers)}
    ghosts = np.zeros(ranks, int)
    for mine in links["HALF"]:
        for to, n in mine:
            ghosts[to] += n
    assert len(ours.plans) == 16 * ranks
    for where, plan in ours.plans.items():
        pattern, _, combined, rank = where
        mine = links[pattern][rank]
        sent = [(to, n) for to, n in mine if to != rank and n > 0]
        rounds = [0] * len(mine) if pattern != "STAGED" else [a for a in range(3) for _ in range(2 * layers[a])]
        assert plan.links == len(mine), where
        assert plan.atoms == sum(n for _, n in mine), where
        assert plan.bytes == 24 * sum(n for _, n in sent), where
        assert plan.partners == len({to for to, _ in sent}), where
        assert plan.messages == messages_of(mine, rank, rounds, combined), where
        assert plan.ghosts == ghosts[rank], where
        assert plan.same, where
        assert plan.difference <= (1e-14 if pattern == "STAGED" else 0.0), where
    alone = report(1, cutoff).result
    assert ours.result == pytest.approx(alone, rel=1e-10, abs=1e-8)
    assert ours.words["CHOSEN"].split()[1] in TRANSPORTS
    if (ranks, cutoff) == (27, 6.5):
        check_formulas(ours, box)


def check_formulas(ours: Report, box: Box) -> None:
    """Messages and volumes of Li et al. 2023, Table 1, for domains of edge a and a width r; a rank of ours rounds edges
    and corners off in HALF and FULL. Atoms on a lattice of 5 angstrom and a chain: volumes within 15 %."""
    a, r = EDGE / 3, ours.width
    density = box.size.sum() / EDGE**3
    staged = 8 * r**3 + 12 * a * r**2 + 6 * a**2 * r
    square = 4 * r**3 + 6 * a * r**2 + 3 * a**2 * r
    rounded = 2 * np.pi / 3 * r**3 + 1.5 * np.pi * a * r**2 + 3 * a**2 * r
    for pattern, messages, volume in [("STAGED", 6, staged), ("HALF", 13, rounded), ("FULL", 26, 2 * rounded)]:
        plans = [ours.plans[pattern, "PERSISTENT", True, rank] for rank in range(27)]
        assert {p.messages for p in plans} == {messages}
        mean = np.mean([p.bytes for p in plans]) / 24 / density
        assert mean == pytest.approx(volume, rel=0.15), pattern
        if pattern == "HALF":
            assert mean < square


@pytest.mark.release
def test_narrow_domains_have_62_and_124_neighbours(report):
    """Two domains fit within the halo's width along every axis, of three: all ranks are neighbours several times."""
    ours = report(27, 8.0, (3, 3, 3))
    links = {pattern: ours.plans[pattern, "PERSISTENT", True, 13].links for pattern in ("HALF", "FULL", "STAGED")}
    assert links == {"HALF": 62, "FULL": 124, "STAGED": 12}
    assert {ours.plans["HALF", "PERSISTENT", True, rank].messages for rank in range(27)} <= set(range(13, 27))


def test_too_many_atoms_are_refused_with_a_remedy(report):
    words = report(1, 7.0).words
    assert "3000000000 atoms" in words["LOCAL"] and "use more ranks" in words["LOCAL"]
    assert "3000000000 atoms" in words["SENT"] and "use more ranks" in words["SENT"]
    assert words["REFUSED"] == "F"


@pytest.mark.release
@pytest.mark.parametrize("ranks", [5, 7])
def test_prime_numbers_of_ranks_run(tmp_path, ranks):
    """A few steps in slabs narrower than the halo give the trajectory of one rank (roundings grow over 8 steps)."""
    make_system(tmp_path, neutral=False)
    topology = {"topologyfile": tmp_path / "t.h5"}
    start = minimised(tmp_path)
    ends = []
    for n in (1, ranks):
        inp = systems.control(tmp_path / "split.inp", INPUT={**topology, "rstfile": start}, ENERGY=ENERGY,
                              OUTPUT={"rstfile": tmp_path / f"start{n}_().rst"})
        done = systems.run("setup", inp, n)
        assert done.returncode == 0, done.stderr
        inp = systems.control(
            tmp_path / "run.inp", INPUT={**topology, "rstfile": tmp_path / f"start{n}_().rst"}, ENERGY=ENERGY,
            OUTPUT={"rstfile": tmp_path / f"end{n}_().rst"}, COMM={"transport": "SHARED"},
            DYNAMICS={"nsteps": 8, "timestep": 0.0005, "nbupdate_period": 3}, ENSEMBLE={"temperature": 300})
        done = systems.run("run", inp, n)
        assert done.returncode == 0, done.stderr
        ends.append(systems.read_restarts(str(tmp_path / f"end{n}_().rst"), n))
    difference = ends[0].position - ends[1].position
    assert np.abs(difference - BOX * np.round(difference / BOX)).max() < 1e-8


@pytest.mark.release
@pytest.mark.parametrize("transport", ["PERSISTENT", "SHARED"])
def test_a_rank_that_dies_ends_the_job(tmp_path, transport):
    """kill -9 of one of three ranks: the others end within 30 s, with a message, however they wait for it."""
    make_system(tmp_path, neutral=False)
    start = setup(tmp_path, 3)
    # The clashes of this start would tear it apart within seconds if its atoms moved.
    inp = systems.control(
        tmp_path / "long.inp", INPUT={"topologyfile": tmp_path / "t.h5", "rstfile": start},
        ENERGY=ENERGY, COMM={"transport": transport},
        OUTPUT={"logfile": tmp_path / "long.log"},
        DYNAMICS={"nsteps": 100_000_000, "timestep": 1e-9, "eneout_period": 500}, ENSEMBLE={"temperature": 10},
        HEALTH={"max_force": 0})
    environment = dict(os.environ, OMP_NUM_THREADS="1", OMPI_MCA_mpi_yield_when_idle="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_hwloc_base_binding_policy="none")
    # Each rank tells its process id.
    script = f'echo $$ > {tmp_path}/pid$OMPI_COMM_WORLD_RANK; exec {systems.BIN / "chromamd-double"} run {inp}'
    job = subprocess.Popen(["mpirun", "--oversubscribe", "-n", "3", "bash", "-c", script], env=environment,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and "INFO:" not in _text(tmp_path / "long.log"):
            assert job.poll() is None, job.communicate()[0]
            time.sleep(0.1)
        os.kill(int(_text(tmp_path / "pid1")), signal.SIGKILL)
        output, _ = job.communicate(timeout=30)
    finally:
        if job.poll() is None:
            job.kill()
    assert job.returncode != 0
    assert "killed" in output.lower() or "signal 9" in output.lower()
    for rank in (0, 2):
        assert not Path(f"/proc/{_text(tmp_path / f'pid{rank}').strip()}/exe").exists()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
