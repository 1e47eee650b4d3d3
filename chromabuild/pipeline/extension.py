"""Dynamics that go on beyond the end that the settings give."""

from contextlib import ExitStack
from pathlib import Path

from chromabuild.base.in_use import in_use
from chromabuild.base.settings import Settings
from chromabuild.pipeline import chain, provenance


def extend_run(config: Settings, length: str, replica: int | None = None) -> None:
    """Note that the last phase is to go on by ``length`` (``10 ns``) in all replicas or in one of them, for
    ``chromabuild run`` to do so.

    Where an extension was stopped in some replicas, these alone are to go on. The record of the stage is taken out: its
    files are about to change. Raises BadInputError where a replica cannot go on; nothing is noted then.
    """
    from chromabuild.shards.shard_set import ShardSet
    from chromabuild.simulate.protocol import Task, extended
    from chromabuild.simulate.replicas import chosen_replicas, replica_seed
    from chromabuild.simulate.tuning import kept

    stage, output = chain.stage_named("run"), Path(config.output)
    chain.describe(stage, config)
    bricks = Path(ShardSet.read(output / "shards").bricks)
    numbers = chosen_replicas(config.simulate, replica)
    with ExitStack() as stack:
        found = []
        for number, folder in zip(numbers, chain.run_folders(config, replica), strict=True):
            stack.enter_context(in_use(folder))
            task = Task(config.dynamics, replica_seed(config.seed, number), output / "topology.h5", bricks, folder)
            found.append((folder, *extended(config, kept(task), length)))
        provenance.record(output, stage.name, None)
        stopped = any(unfinished for *_, unfinished in found)
        for folder, extension, unfinished in found:
            if unfinished or not stopped:
                extension.write(folder)
