"""What files and structures hold, summed up for the terminal and for the report.

Everything heavy is imported inside the function that needs it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary

if TYPE_CHECKING:
    from chromabuild.analysis.duplex import Duplex
    from chromabuild.pipeline.limits import Nodes
    from chromabuild.sterics.atoms import Atoms

AUDITS = {
    "rings": ("ring_piercings",),
    "chirality": ("chirality_errors",),
    "peptides": ("cis_peptides", "twisted_peptides"),
    "geometry": ("bond_outliers", "angle_outliers"),
    "molecules": ("merged_molecules",),
    "strands": ("threaded_strands", "duplexes"),
}
"""Subject of an audit -> the findings that belong to it (docs/reference/file-formats.md)."""


def locus_summary(config: Settings, threads: int | None = None, until: str = "report", nodes: "Nodes | None" = None
                  ) -> Summary:
    """Read the locus and say what it is.

    Raises BadInputError for the first thing that is wrong, with what later stages ``until`` the last one find too
    (``validation``), and ResourceError for what this machine, or ``nodes`` of the dynamics, cannot do (``limits``),
    with so many ``threads``.
    """
    from chromabuild.base.threads import thread_count
    from chromabuild.pipeline.chain import STAGES, is_current
    from chromabuild.pipeline.limits import STAGES_WITH_LIMITS, refuse
    from chromabuild.pipeline.validation import WITH_ENSEMBLE, check_all, records_used

    stages = STAGES_WITH_LIMITS[:STAGES_WITH_LIMITS.index(until) + 1]
    checked = WITH_ENSEMBLE if until in ("run", "report") else stages
    locus, parts = check_all(config, checked, elsewhere=nodes is not None)
    if is_current(STAGES[0], config):  # the scaffold, which later stages read
        stages = stages[1:]
    refuse(config, stages, thread_count(threads), parts, nodes)
    used = locus.records_used | records_used(config, locus)
    return locus.summary() | ({"records_used": used} if used else {}) | ({"note": parts.note} if parts.note else {})


def check_clashes(path: Path, threshold: float, threads: int, page: Path | None = None) -> Summary:
    """The findings of a structure; ``fatal`` counts close pairs, pierced rings and threaded strands.

    ``page`` is where to write the HTML form, when wanted.
    """
    from chromabuild.clash import check

    found = check(_structure(path), threshold, threads)
    if page is not None:
        from chromabuild.report.clash_page import write_clash_page

        write_clash_page(found, page, path.name)
    return {"file": str(path), "fatal": found.fatal, "text": found.to_text(), **found.data}


def audit_structure(path: Path, subjects: list[str], threads: int) -> Summary:
    """What the audits of the given subjects (all when empty) find: subject -> {count, items}."""
    from chromabuild.clash import check

    data = check(_structure(path), threads=threads).data
    found = data["before"]
    return {"file": str(path), "left_out": data["left_out"]} | {
        name: {key: found[key] for key in keys} for name, keys in AUDITS.items() if name in subjects or not subjects}


def duplexes_of_file(path: Path) -> "list[Duplex]":
    """Duplexes of a structure file, or of a folder of shards. Raises BadInputError where there are none."""
    from chromabuild.analysis.duplex import duplexes_in, model_of, read_duplexes

    atoms = _structure(path)
    return read_duplexes(path) if isinstance(atoms, Path) else duplexes_in(model_of(atoms), path)


def _structure(path: Path) -> "Path | Atoms":
    """What ``chromabuild.clash.check`` takes: the path itself, or the atoms of a folder of shards."""
    if not path.is_dir():
        return path
    from chromabuild.solvate.structure import atoms_of_shards

    return atoms_of_shards(path)


def verify_shard_set(folder: Path, threads: int = 1) -> Summary:
    """Read every shard and compare it with the manifest. Raises IntegrityError naming the first that is wrong."""
    from chromabuild.shards import verify_shards

    manifest = verify_shards(folder, threads=threads)
    return {"folder": str(folder), "shards": len(manifest.shards), "atoms": manifest.atoms}
