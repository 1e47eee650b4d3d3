# One rule a stage: name, files and settings are those of the stage itself (chromabuild/pipeline/stages).

# What a rule needs beside the files that its stage reads.
FURTHER_INPUT = {"solvate": BRICK_MARKS, "run": PHASE_RECORDS}
FLAGGED_OUTPUT = {"report.html": report(out("report.html"), caption="../report/result.rst", category="Result")}


for stage in STAGES_HERE:

    rule:
        name:
            stage.name
        input:
            [str(path) for path in stage.input_paths(SETTINGS).values()],
            FURTHER_INPUT.get(stage.name, []),
        output:
            [FLAGGED_OUTPUT.get(file, out(file)) for file in stage.outputs],
        params:
            settings=settings(*stage.settings),
        threads: THREADS
        shell:
            # Evaluated when the job runs, after the loop: the name cannot come from its variable.
            f"{command('{rule}')} --threads {{threads}}"
