# Water, ions and force field. The bricks themselves are vouched for by the manifest (rule verify).
#
# With `brick_jobs` > 1 the bricks are made by that many jobs side by side, on any machines that share the folder:
# 65,536 shards are 256 to 512 jobs of 128 to 256 shards, never one job a shard. Within a job a pool of `threads`
# processes on one node writes, or, with `brick_ranks` > 1, that many ranks on any nodes, each with such a pool.

BRICK_JOBS = int(config.get("brick_jobs") or 1)
BRICK_RANKS = int(config.get("brick_ranks") or 1)
if not 1 <= BRICK_JOBS <= 980:
    raise WorkflowError(f"brick_jobs is {BRICK_JOBS}: choose 1 to 980, so that the graph has at most 1,000 jobs")


if BRICK_JOBS > 1:

    rule solvation_plan:
        input:
            out("solute_clean.h5"),
        output:
            out("shards/placed.h5"),
            out("shards/plan.h5"),
        params:
            settings=settings("solvate"),
        threads: THREADS
        shell:
            f"{command('shards')} --plan --threads {{threads}}"

    rule bricks:
        input:
            out("solute_clean.h5"),
            out("shards/placed.h5"),
            out("shards/plan.h5"),
        output:
            touch(out("shards/jobs/{part}.done")),
        params:
            settings=settings("solvate"),
        threads: min(THREADS, 4) if BRICK_RANKS == 1 else 1
        resources:
            **({"tasks": BRICK_RANKS, "mpi": "mpirun"} if BRICK_RANKS > 1 else {}),
        shell:
            ("{resources.mpi} -n {resources.tasks} " if BRICK_RANKS > 1 else "")
            + f"{command('shards')} --part {{wildcards.part}}/{BRICK_JOBS} --threads {{threads}}"
            + (" --mpi" if BRICK_RANKS > 1 else "")


rule solvate:
    input:
        out("solute_clean.h5"),
        [out(f"shards/jobs/{part}.done") for part in range(BRICK_JOBS) if BRICK_JOBS > 1],
    output:
        out("shards/manifest.json"),
        out("shards/bricks.txt"),
    params:
        settings=settings("solvate"),
    threads: THREADS
    shell:
        f"{command('solvate')} --threads {{threads}}"


rule topology:
    input:
        out("solute_clean.h5"),
        out("shards/manifest.json"),
    output:
        out("topology.h5"),
        out("topology.psf"),
    params:
        settings=settings("dynamics.force_field"),
    threads: THREADS
    shell:
        f"{command('topology')} --threads {{threads}}"
