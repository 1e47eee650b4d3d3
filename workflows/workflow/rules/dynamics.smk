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
    threads: THREADS
    shell:
        f"{command('run')} --threads {{threads}}"
