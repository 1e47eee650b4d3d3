# From the locus to a solute without clashes.


rule scaffold:
    input:
        [path for path in (SETTINGS.locus.fasta, SETTINGS.locus.nucleosomes, SETTINGS.locus.contacts,
                          SETTINGS.scaffold.acetylated, SETTINGS.build.marks) if path],
    output:
        out("scaffold.h5"),
        out("contact_map.npz"),
        out("contact_map.cool"),
    params:
        settings=settings("locus", "scaffold", "build.linker_histone", "build.linker_histone_share", "build.marks"),
    threads: THREADS
    shell:
        f"{command('scaffold')} --threads {{threads}}"


rule build:
    input:
        [out("scaffold.h5"), *([SETTINGS.build.marks] if SETTINGS.build.marks else [])],
    output:
        out("solute.h5"),
    params:
        settings=settings("build"),
    threads: THREADS
    shell:
        f"{command('build')} --threads {{threads}}"


rule clash:
    input:
        out("solute.h5"),
    output:
        out("solute_clean.h5"),
        out("clash_report.json"),
        out("clash_report.tsv"),
        out("clash_report.txt"),
    params:
        settings=settings("clash"),
    threads: THREADS
    shell:
        f"{command('clash')} --threads {{threads}}"
