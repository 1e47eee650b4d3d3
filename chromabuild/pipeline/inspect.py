"""What files and structures hold, summed up for the terminal and for the report.

Everything heavy is imported inside the function that needs it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.settings import Config

if TYPE_CHECKING:
    from chromabuild.sterics.atoms import Atoms

AUDITS = {
    "rings": ("ring_piercings",),
    "chirality": ("chirality_errors",),
    "peptides": ("cis_peptides", "twisted_peptides"),
    "geometry": ("bond_outliers", "angle_outliers"),
    "molecules": ("merged_molecules",),
    "strands": ("threaded_strands", "duplexes"),
}
"""Subject of an audit -> the findings that belong to it (docs/formats.md, section 3)."""


def locus_summary(config: Config) -> dict:
    """Read the locus and say what it is. Raises BadInputError for the first thing that is wrong."""
    from chromabuild.genome.locus import load_locus

    locus = load_locus(config.locus)
    fibre = locus.fibre()
    return {"name": fibre.name, "chromosome": fibre.chromosome, "start": fibre.start,
            "end": fibre.start + len(fibre.sequence), "base_pairs": len(fibre.sequence),
            "nucleosomes": len(fibre.dyads), "contacts": len(fibre.contacts),
            "adjusted_dyads": len(fibre.adjustments), "shifts": list(fibre.adjustments),
            "unused_contacts": len(locus.ignored_contacts), "ignored_contacts": list(locus.ignored_contacts)}


def check_clashes(path: Path, threshold: float, threads: int, page: Path | None = None) -> dict:
    """The findings of a structure; ``fatal`` counts close pairs, pierced rings and threaded strands.

    ``page`` is where to write the HTML form, when wanted.
    """
    from chromabuild.clash import check

    found = check(_structure(path), threshold, threads)
    if page is not None:
        from chromabuild.report.clash_page import write_clash_page

        write_clash_page(found, page, path.name)
    return {"file": str(path), "fatal": found.fatal, "text": found.to_text(), **found.data}


def audit_structure(path: Path, subjects: list[str], threads: int) -> dict:
    """What the audits of the given subjects (all when empty) find: subject -> {count, items}."""
    from chromabuild.clash import check

    found = check(_structure(path), threads=threads).data["before"]
    return {"file": str(path)} | {name: {key: found[key] for key in keys} for name, keys in AUDITS.items()
                                  if name in subjects or not subjects}


def _structure(path: Path) -> "Path | Atoms":
    """What ``chromabuild.clash.check`` takes: the path itself, or the atoms of a folder of shards."""
    if not path.is_dir():
        return path
    from chromabuild.solvate.structure import atoms_of_shards

    return atoms_of_shards(path)


def shard_set_summary(folder: Path) -> dict:
    """Box, grid, counts and size of a shard set. Raises IntegrityError when its manifest is damaged or missing."""
    from chromabuild.shards import Manifest

    manifest = Manifest.read(folder)
    size = sum(entry["bytes"] for shard in manifest.shards for entry in shard.files.values())
    return {"atoms": manifest.atoms, "box": [round(float(edge), 3) for edge in manifest.box],
            "grid": [int(n) for n in manifest.grid], "counts": manifest.counts, "net_charge": manifest.net_charge,
            "shards": len(manifest.shards), "megabytes": round(size / 1e6, 1)}


def verify_shard_set(folder: Path, threads: int = 1) -> dict:
    """Read every shard and compare it with the manifest. Raises IntegrityError naming the first that is wrong."""
    from chromabuild.shards import verify_shards

    manifest = verify_shards(folder, threads=threads)
    return {"folder": str(folder), "shards": len(manifest.shards), "atoms": manifest.atoms}
