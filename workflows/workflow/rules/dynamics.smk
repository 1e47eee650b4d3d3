# Minimisation and molecular dynamics.


rule run:
    input:
        out("shards/manifest.json"),
        out("topology.h5"),
    output:
        out("md/dynamics.log"),
        out("md/trajectory.dcd"),
    params:
        settings=settings("dynamics"),
        command=command("run"),
    threads: THREADS
    shell:
        "{params.command} --threads {threads}"
