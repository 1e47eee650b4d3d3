# The check that nothing was damaged: Snakemake itself looks at times only.


rule verify:
    input:
        [out(file) for stage in STAGES_HERE for file in stage.outputs],
    output:
        out("verified.json"),
    threads: THREADS
    shell:
        f"{command('verify')} --threads {{threads}} --json > {{output}}"
