"""What files and structures hold, summed up for the terminal and for the report.

Everything heavy is imported inside the function that needs it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError
from chromabuild.base.phases import NUCLEOSOME_GROUPS
from chromabuild.base.settings import Settings, input_files
from chromabuild.base.summary import Summary

if TYPE_CHECKING:
    from chromabuild.nucleosome.octamer import Octamer
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


def locus_summary(config: Settings) -> Summary:
    """Read the locus and say what it is.

    Raises BadInputError for the first thing that is wrong, with what later stages find too: templates, variants and
    marks of histones, an ensemble that cannot be, restraints on groups, a water that the force field lacks, a box that
    no water or no cutoff fits into.
    """
    from chromabuild.genome.contact_energies import read_contact_energies
    from chromabuild.genome.locus import load_locus
    from chromabuild.pipeline.ensemble.design import check_ensemble
    from chromabuild.pipeline.parameters import check_before_work
    from chromabuild.pipeline.plan import octamers_of
    from chromabuild.proteins.placing import complexes_of, fibre_with_proteins

    locus = load_locus(config.locus, config.seed)
    for key, paths in input_files(config).items():
        for path in paths:
            if not Path(path).is_file():
                raise BadInputError(f"{path} does not exist: correct `{key}` in the settings")
    fibre = fibre_with_proteins(locus, config)
    check_ensemble(config)
    if config.scaffold.contact_energies:
        read_contact_energies(config.scaffold.contact_energies, fibre.chromosome, fibre.start, len(fibre.sequence))
    check_restraints(config, len(fibre.dyads))
    proteins = [one.protein for one in complexes_of(fibre.proteins, config)]
    check_force_field(config, [*octamers_of(config, fibre)[0], *proteins])
    if config.solvate.box:
        check_box(config)
    note = check_before_work(config)
    return locus.summary() | ({"note": note} if note else {})


def check_force_field(config: Settings, octamers: "list[Octamer]") -> None:
    """Raises BadInputError where the force field of the settings does not know a residue or the water of the build."""
    import numpy as np

    from chromabuild.forcefield.rules import check_residues
    from chromabuild.molecule.residues import SOLVENT, residue_library, residue_names
    from chromabuild.molecule.water_models import WATER_MODELS

    protein = np.unique(np.concatenate([np.zeros(0, dtype=int), *(one.residue_template for one in octamers)]))
    nucleotides = [name for name, one in residue_library().items() if one.pdb_name in ("DA", "DC", "DG", "DT")]
    solvent = SOLVENT | {"water": WATER_MODELS[config.solvate.water].residue}
    check_residues([*nucleotides, *(residue_names()[k] for k in protein.tolist()), *solvent.values()],
                   config.dynamics.force_field, config.dynamics.force_field_files, config.solvate.water)


def check_box(config: Settings) -> None:
    """Raises BadInputError for a `solvate.box` that is too small or too large for whatever is put into it."""
    import numpy as np

    from chromabuild.pipeline.limits import box_below_cutoff
    from chromabuild.solvate.placement import check_edges

    check_edges(np.rint(np.array(config.solvate.box) * 1000))
    problem = box_below_cutoff(config.solvate.box, config.dynamics)
    if problem:
        raise BadInputError(problem)


def check_restraints(config: Settings, nucleosomes: int) -> None:
    """Raises BadInputError for a restraint on a group that a locus of so many nucleosomes has no atom of."""
    for phase in config.simulate.chosen():
        for restraint in phase.restraints:
            if restraint.group in NUCLEOSOME_GROUPS and nucleosomes == 0:
                raise BadInputError(f"phase {phase.name} of simulate restrains {restraint.group}, and the locus has no "
                                    "nucleosome: remove the restraint")


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
