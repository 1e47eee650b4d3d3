# Water, ions and force field. The bricks themselves are vouched for by the manifest (rule verify).


rule solvate:
    input:
        out("solute_clean.h5"),
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
