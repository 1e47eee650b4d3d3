# One job a phase of the simulation and replica, each from the restart of the one before it; names and records are those
# of chromabuild/simulate/protocol.py. The rule `run` then writes the list of phases. On a cluster a job that comes to its
# time limit writes a checkpoint and fails, and the next goes on from there: `phase_jobs` is how many a phase may take.
from chromabuild.simulate.protocol import FREE_SETTINGS, plan_phases

RUN = next(stage for stage in STAGES if stage.name == "run")
PHASES = {phase.stem: phase for phase in plan_phases(SETTINGS.simulate)}
REPLICAS = {f"replica-{k}/" if k > 1 else "": k for k in range(1, SETTINGS.simulate.replicas + 1)}
RANKS = SETTINGS.dynamics.ranks
# In a job of its own each task, which is an MPI rank, has `threads` of them; on this machine the ranks share them.
TASKS = RANKS if jobs_run_elsewhere() else 1
PHASE_JOBS = int(config.get("phase_jobs") or (20 if jobs_run_elsewhere() else 1))
if workflow.remote_exec:
    PHASE_JOBS = 1  # within the job itself nothing is repeated: its time is over


def phase_records(replica):
    return [out(f"md/{replica}{phase.record}") for phase in PHASES.values()]


PHASE_RECORDS = [record for replica in REPLICAS for record in phase_records(replica)]


def before_phase(wildcards):
    """What a phase reads: input of the stage, and the record of the phase before it."""
    number = PHASES[wildcards.stem].number
    return [str(path) for path in RUN.input_paths(SETTINGS).values()] + phase_records(wildcards.replica)[
        number - 2 : number - 1
    ]


def part_of_run(wildcards):
    """The options that choose a phase and a replica."""
    replica = f" --replica {REPLICAS[wildcards.replica]}" if len(REPLICAS) > 1 else ""
    return f"--phase {PHASES[wildcards.stem].name}{replica}"


def deciding_settings(wildcards):
    """What decides the course of a phase, apart from those before it."""
    dynamics = settings("dynamics")
    kept = {key: value for key, value in dynamics["dynamics"].items() if key not in FREE_SETTINGS}
    return [{**dynamics, "dynamics": kept}, repr(PHASES[wildcards.stem])]


rule phase:
    input:
        before_phase,
    output:
        out("md/{replica}{stem}.json"),
    wildcard_constraints:
        stem="|".join(PHASES),
        replica="(replica-[0-9]+/)?",
    params:
        settings=deciding_settings,
        part=part_of_run,
    threads: THREADS
    retries: PHASE_JOBS - 1
    resources:
        # For Slurm: so many tasks, and a job script in which chromabuild starts the engine as a step of its own.
        tasks=RANKS,
        mpi="srun",
        attempt=lambda wildcards, attempt: attempt,
    shell:
        # What is repeated is a job whose time was over: exit code 7, or a signal. Other failures end all attempts.
        f"""
        failed={out('md/{wildcards.replica}.{wildcards.stem}.failed')}
        if [ {{resources.attempt}} -gt 1 ] && [ -e "$failed" ]; then exit "$(cat "$failed")"; fi
        mkdir -p "$(dirname "$failed")"
        rm -f "$failed"
        {command('run')} {{params.part}} --threads $(({{threads}} * {TASKS})) || {{{{
          code=$?
          if [ "$code" -ne 7 ] && [ "$code" -lt 128 ]; then echo "$code" > "$failed"; fi
          exit "$code"
        }}}}
        """
