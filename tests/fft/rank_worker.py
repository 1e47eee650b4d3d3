"""One rank of the FFT tests: runs the cases of a JSON file and writes what it found.

    mpirun -n P python -P rank_worker.py CASES RESULTS     (RESULTS.RANK.json is written)

Every rank knows the whole (tiny) grid and its NumPy transform and compares its own share.
"""

import json
import sys
import zlib

import numpy as np
from chromafft import Fft, Layout, start_mpi, stop_mpi

OPTIONS = ("scheme", "transport", "subset", "grid", "n_chunks", "overlap_axes", "n_batch", "real", "single",
           "wave_order", "ranks_a_node")


def user_layout(kind, n, length, rank, ranks, seed):
    """A layout that is not a scheme's own, of a grid (or waves) of `n` points; `length`: grid points along x."""
    rng = np.random.default_rng(seed)
    if kind == "slabs":  # of random thickness, cut along y, some empty
        cuts = np.sort(np.concatenate([[0, n[1]], rng.integers(0, n[1] + 1, ranks - 1)]))
        return Layout([0, cuts[rank], 0, n[0] - 1, cuts[rank + 1] - 1, n[2] - 1], (2, 0, 1))
    if kind == "planes":  # whole x-y planes, random thickness along z: what the slab scheme can take as it is
        cuts = np.sort(np.concatenate([[0, n[2]], rng.integers(0, n[2] + 1, ranks - 1)]))
        return Layout([0, 0, cuts[rank], n[0] - 1, n[1] - 1, cuts[rank + 1] - 1])
    if kind == "pencils":  # lines along x to random ranks
        owner = rng.integers(0, ranks, (n[1], n[2]))
        return Layout([[0, y, z, n[0] - 1, y, z] for y, z in np.argwhere(owner == rank)])
    if kind == "scattered":  # small blocks to random ranks, axes in another order
        edge = 2
        shape = [-(-m // edge) for m in n]
        owner = rng.integers(0, ranks, shape)
        corner = np.argwhere(owner == rank) * edge
        return Layout(np.hstack([corner, np.minimum(corner + edge, n) - 1]), (1, 2, 0))
    if kind in ("sticks", "sphere"):  # lines along z to random ranks; all, or those through a sphere of waves
        kx, ky = np.meshgrid(np.arange(n[0]), np.arange(n[1]), indexing="ij")
        keep = np.ones(kx.shape, dtype=bool)
        if kind == "sphere":
            keep = np.minimum(kx, length - kx) ** 2 + np.minimum(ky, n[1] - ky) ** 2 <= (n[1] // 4) ** 2
        owner = np.where(keep, rng.integers(0, ranks, kx.shape), -1)
        return Layout([[x, y, 0, x, y, n[2] - 1] for x, y in rng.permutation(np.argwhere(owner == rank))], (2, 0, 1))
    raise ValueError(kind)


def run(case, rank, ranks):
    n = case["n"]
    real, single, batch = case.get("real", True), case.get("single", False), case.get("n_batch", 1)
    options = {key: case[key] for key in OPTIONS if key in case}
    seed = zlib.crc32(json.dumps([n, real, batch]).encode())
    rng = np.random.default_rng(seed)
    grid = rng.normal(size=(batch, *n))
    if not real:
        grid = grid + 1j * rng.normal(size=grid.shape)
    if single:
        grid = grid.astype("f4" if real else "c8")
    waves = np.fft.fftn(grid.astype(complex), axes=(1, 2, 3))
    half = n[0] // 2 + 1 if real else n[0]
    for side, shape in (("real_layout", n), ("wave_layout", (half, *n[1:]))):
        if side in case:
            options[side] = user_layout(case[side], shape, n[0], rank, ranks, seed)
    fft = Fft(tuple(n), **options)
    mine = fft.real_layout.take(grid)
    before = mine.copy()
    found = fft.forward(mine)
    expected = fft.wave_layout.take(waves)
    scale = np.sqrt(np.mean(np.abs(waves) ** 2))
    result = {"forward": float(np.max(np.abs(found - expected), initial=0) / scale),
              "input_kept": bool(np.array_equal(mine, before)), "counts": fft.counts(), "choice": fft.choice(),
              "points": [fft.real_layout.size, fft.wave_layout.size], "bits": zlib.crc32(found.tobytes()),
              "estimate": fft.estimate()}
    # Waves that nobody holds count as zero.
    kept = np.zeros(n, dtype=bool)
    if case.get("wave_layout") == "sphere":
        full = user_layout("sphere", (half, *n[1:]), n[0], 0, 1, seed).indices()
        kept[tuple(full.T)] = True
        if real:
            kept[tuple((-full % n).T)] = True
    else:
        kept[:] = True
    filtered = np.fft.ifftn(waves * kept, axes=(1, 2, 3)) * np.prod(n)
    back = fft.backward(found)
    reference = fft.real_layout.take(filtered if not real else filtered.real)
    result["backward"] = float(np.max(np.abs(back - reference), initial=0)
                               / (np.sqrt(np.mean(np.abs(filtered) ** 2))))
    # This rank's share of both sides of Parseval's theorem; half of the waves stand for two.
    kx = fft.wave_layout.indices()[:, 0]
    weight = np.where((kx == 0) | (2 * kx == n[0]), 1, 2) if real else 1
    result["energy"] = [float(np.sum(np.abs(mine.astype(complex)) ** 2)),
                        float(np.sum(weight * np.abs(found.astype(complex)) ** 2) / np.prod(n))]
    fft.close()
    return result


def run_together(case, rank, ranks):
    """Several live plans, more transforms than plans, all under way at once and pushed on in turn."""
    plans, arrays, errors = [], [], []
    for k, n in enumerate(case["sizes"]):
        fft = Fft(tuple(n), scheme=case["scheme"], transport=case["transport"], n_chunks=1 + k % 3, real=k % 2 == 0)
        grid = np.random.default_rng(k).normal(size=n).astype(fft.grid_type)
        plans.append(fft)
        arrays.append((fft.real_layout.take(grid), np.empty(fft.wave_layout.size, dtype=fft.wave_type),
                       fft.wave_layout.take(np.fft.fftn(grid))))
    for fft, (mine, found, _) in zip(plans, arrays, strict=True):
        fft.start(1, mine, found)
    waiting = list(plans)
    while waiting:
        waiting = [fft for fft in waiting if not fft.progress()]
    for fft, (_, found, expected) in zip(plans, arrays, strict=True):
        errors.append(float(np.max(np.abs(found - expected), initial=0) / np.sqrt(np.prod(fft.n))))
        fft.close()
    return {"forward": max(errors)}


def main():
    rank, ranks = start_mpi()
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    results = []
    for case in cases:
        try:
            results.append((run_together if "sizes" in case else run)(case, rank, ranks))
        except ValueError as error:  # from the library, agreed by all ranks
            results.append({"error": str(error)})
    with open(f"{sys.argv[2]}.{rank}.json", "w") as file:
        json.dump(results, file)
    stop_mpi()


main()
