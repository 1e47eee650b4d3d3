# The report, and the check that nothing was damaged: Snakemake itself looks at times only.


rule report:
    input:
        out("scaffold.h5"),
        out("solute_clean.h5"),
        out("clash_report.json"),
        out("shards/manifest.json"),
        out("topology.h5"),
        out("md/dynamics.log"),
    output:
        report(out("report.html"), caption="../report/result.rst", category="Result"),
    threads: THREADS
    shell:
        f"{command('report')} --threads {{threads}}"


rule verify:
    input:
        out("report.html"),
        out("topology.psf"),
        out("md/trajectory.dcd"),
    output:
        out("verified.json"),
    threads: THREADS
    shell:
        f"{command('verify')} --threads {{threads}} --json > {{output}}"
