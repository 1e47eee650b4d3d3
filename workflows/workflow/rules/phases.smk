# One job a phase of the simulation, each from the restart of the one before it; names and records are those of
# chromabuild/simulate/protocol.py. The rule `run` then writes the list of phases.
from chromabuild.simulate.protocol import plan_phases

RUN = next(stage for stage in STAGES if stage.name == "run")
PHASES = {phase.stem: phase for phase in plan_phases(SETTINGS.simulate)}
PHASE_RECORDS = [out(f"md/{phase.record}") for phase in PHASES.values()]


def before_phase(wildcards):
    """What a phase reads: input of the stage, and the record of the phase before it."""
    number = PHASES[wildcards.stem].number
    return [str(path) for path in RUN.input_paths(SETTINGS).values()] + PHASE_RECORDS[number - 2 : number - 1]


rule phase:
    input:
        before_phase,
    output:
        out("md/{stem}.json"),
    wildcard_constraints:
        stem="|".join(PHASES),
    params:
        settings=lambda wildcards: [settings("dynamics"), repr(PHASES[wildcards.stem])],
        name=lambda wildcards: PHASES[wildcards.stem].name,
    threads: THREADS
    shell:
        f"{command('run')} --phase {{params.name}} --threads {{threads}}"
