# With `brick_jobs` > 1 the bricks are made by that many jobs side by side, on any machines that share the folder:
# 65,536 shards are 256 to 512 jobs of 128 to 256 shards, never one job a shard. Within a job a pool of `threads`
# processes on one node writes, or, with `brick_ranks` > 1, that many ranks on any nodes, each with such a pool.

BRICK_JOBS = int(config.get("brick_jobs") or 1)
BRICK_RANKS = int(config.get("brick_ranks") or 1)
if not 1 <= BRICK_JOBS <= 980:
    raise WorkflowError(f"brick_jobs is {BRICK_JOBS}: choose 1 to 980, so that the graph has at most 1,000 jobs")

SOLVATE = next(stage for stage in STAGES if stage.name == "solvate")
BRICK_INPUT = [str(path) for path in SOLVATE.input_paths(SETTINGS).values()]
BRICK_MARKS = [out(f"shards/jobs/{part}.done") for part in range(BRICK_JOBS) if BRICK_JOBS > 1]

if BRICK_JOBS > 1:

    rule solvation_plan:
        input:
            BRICK_INPUT,
        output:
            out("shards/placed.h5"),
            out("shards/plan.h5"),
        params:
            settings=settings(*SOLVATE.settings),
        threads: THREADS
        shell:
            f"{command('shards')} --plan --threads {{threads}}"

    rule bricks:
        input:
            BRICK_INPUT,
            out("shards/placed.h5"),
            out("shards/plan.h5"),
        output:
            touch(out("shards/jobs/{part}.done")),
        params:
            settings=settings(*SOLVATE.settings),
        threads: min(THREADS, 4) if BRICK_RANKS == 1 else 1
        resources:
            **({"tasks": BRICK_RANKS, "mpi": "mpirun"} if BRICK_RANKS > 1 else {}),
        shell:
            ("{resources.mpi} -n {resources.tasks} " if BRICK_RANKS > 1 else "")
            + f"{command('shards')} --part {{wildcards.part}}/{BRICK_JOBS} --threads {{threads}}"
            + (" --mpi" if BRICK_RANKS > 1 else "")
