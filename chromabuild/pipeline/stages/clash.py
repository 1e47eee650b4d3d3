"""The built or the refined solute to solute_clean.h5 and the clash report."""

from chromabuild.base.errors import ClashesRemainError
from chromabuild.base.summary import Summary
from chromabuild.pipeline.relaxing import CLEAN, REFINED, bound_ion_settings, clashing_file
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """The solute to solute_clean.h5 and the clash report. Raises ClashesRemainError when some remain."""
    from chromabuild.api import add_bound_ions, remove_clashes
    from chromabuild.molecule.solute import Solute
    from chromabuild.report.clash_page import write_clash_page

    settings = job.config.clash
    solute, report = remove_clashes(Solute.read(job.folder / clashing_file(job.config)["solute"]), job.config,
                                    threads=job.threads, progress=job.progress)
    solute.provenance = job.provenance
    bound: Summary = {}
    if bound_ion_settings(job.config, relaxed=False):
        solute, bound = add_bound_ions(solute, job.config)
    report.write(job.folder / "clash_report")
    write_clash_page(report, job.folder / "clash_report.html", job.config.locus.name)
    solute.write(job.folder / CLEAN)
    before, after = report.data["before"], report.data["after"]
    if report.fatal:
        raise ClashesRemainError(f"{after['pairs_below_threshold']['count']} pairs closer than {settings.threshold} "
                                 f"angstrom and {after['ring_piercings']['count']} pierced rings remain: see "
                                 f"{job.folder / 'clash_report.txt'}, or try another --seed")
    return {"mode": settings.mode, "threshold": settings.threshold,
            "pairs_before": before["pairs_below_threshold"]["count"],
            "pairs_after": after["pairs_below_threshold"]["count"], "moves": len(report.data["moves"]),
            "clashscore_before": before["clashscore"], "clashscore_after": after["clashscore"], **bound}


STAGE = Stage("clash", "clash correction", ("clash",),
              (CLEAN, "clash_report.json", "clash_report.tsv", "clash_report.txt"), run,
              reads={"solute": REFINED}, reads_of=clashing_file, companions=("clash_report.html",),
              settings_of=lambda config: bound_ion_settings(config, relaxed=False))
