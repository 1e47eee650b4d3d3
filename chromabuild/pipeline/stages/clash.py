"""solute.h5 to solute_clean.h5 and the clash report."""

from chromabuild.base.errors import ClashesRemainError
from chromabuild.base.summary import Summary
from chromabuild.pipeline.relaxing import bound_ion_settings
from chromabuild.pipeline.stages.stage import Job, Stage


def run(job: Job) -> Summary:
    """solute.h5 to solute_clean.h5 and the clash report. Raises ClashesRemainError when some remain."""
    from chromabuild.api import add_bound_ions, remove_clashes
    from chromabuild.molecule.solute import Solute
    from chromabuild.report.clash_page import write_clash_page

    settings = job.config.clash
    solute, report = remove_clashes(Solute.read(job.folder / "solute.h5"), job.config, threads=job.threads,
                                    progress=job.progress)
    solute.provenance = job.provenance
    bound: Summary = {}
    if bound_ion_settings(job.config, relaxed=False):
        solute, bound = add_bound_ions(solute, job.config)
    report.write(job.folder / "clash_report")
    write_clash_page(report, job.folder / "clash_report.html", job.config.locus.name)
    solute.write(job.folder / "solute_clean.h5")
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
              ("solute_clean.h5", "clash_report.json", "clash_report.tsv", "clash_report.txt"), run,
              reads={"solute": "solute.h5"}, companions=("clash_report.html",),
              settings_of=lambda config: bound_ion_settings(config, relaxed=False))
