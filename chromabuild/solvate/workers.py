"""Bricks written by a pool of processes: each opens placed.h5 and plan.h5 for itself and makes bricks by number."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from chromabuild.base.errors import ResourceError
from chromabuild.base.force_fields import WaterName
from chromabuild.base.stop_signals import follow_parent
from chromabuild.shards.manifest import Shard
from chromabuild.solvate.bricks import BrickGrid, SolvatedSystem, finished_shard, remove_leftovers, write_brick
from chromabuild.solvate.layout_file import LAYOUT_NAME, StoredLayout
from chromabuild.solvate.placement import PLACED_NAME, PlacedSolute

_BRICKS_TO_SHARE = 16
"""A process takes as long to start as that many bricks to write."""

_system: SolvatedSystem
_folder: Path


def write_bricks(system: SolvatedSystem, bricks: list[int], folder: Path, workers: int,
                 finished: Callable[[int, Shard], None]) -> None:
    """Write ``bricks``, or keep those that verify, in up to ``workers`` processes; ``finished`` gets each of them.

    The processes are started afresh, so a script that calls this needs ``if __name__ == "__main__"``.

    Raises what making a brick raises, and ResourceError when a process was killed.
    """
    remove_leftovers(bricks, folder)
    workers = min(workers, len(bricks) // _BRICKS_TO_SHARE)
    if workers <= 1:
        for k in bricks:
            finished(k, finished_shard(system.inputs, k, folder) or write_brick(system, k, folder))
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy locks and OpenMP threads in unknown states
    arguments = (os.getpid(), folder, system.grid, system.compress, system.inputs, system.water)
    pool = ProcessPoolExecutor(workers, context, initializer=_start, initargs=arguments)
    try:
        # A few at a time: a queue of a million futures would be the largest thing in memory.
        waiting, running = iter(bricks), {}
        for k in waiting:
            running[pool.submit(_write, k)] = k
            if len(running) >= 4 * workers:
                _collect(running, finished)
        while running:
            _collect(running, finished)
    except BrokenProcessPool:
        raise ResourceError("a process that wrote shards was killed, perhaps for want of memory: the same command "
                            "continues; use fewer --threads") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _collect(running: dict, finished: Callable[[int, Shard], None]) -> None:
    """Wait for one future and hand its shard over."""
    future = next(as_completed(running))
    finished(running.pop(future), future.result())


def _start(parent: int, folder: Path, grid: BrickGrid, compress: bool, inputs: dict[str, str],
           water: WaterName) -> None:
    global _system, _folder
    follow_parent(parent)
    placed = PlacedSolute(folder / PLACED_NAME)
    layout = StoredLayout(folder / LAYOUT_NAME, placed.vectors, water)
    _folder, _system = folder, SolvatedSystem(placed, layout, grid, compress, inputs)


def _write(k: int) -> Shard:
    return finished_shard(_system.inputs, k, _folder) or write_brick(_system, k, _folder)
