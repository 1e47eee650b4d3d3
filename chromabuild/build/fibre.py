"""From a scaffold to an all-atom solute: relax linkers, place bases, close backbones, add octamers and hydrogens."""

from collections.abc import Sequence

import numpy as np

from chromabuild import __version__
from chromabuild.base.errors import BadInputError
from chromabuild.base.progress import Progress, silent
from chromabuild.base.settings import BuildSection, Settings
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna, rest_of_pairs
from chromabuild.build.modified_bases import modification_table, modified_bases
from chromabuild.build.octamers import (
    atoms_beside_dna,
    octamer_counts,
    octamer_of_recipe,
    protonation_report,
    with_scaffold_tails,
)
from chromabuild.dna.arms import rows_on_arms, with_arms
from chromabuild.dna.helix import DYAD, RelaxedPath, crystal_path, relax_path, superhelix_path
from chromabuild.dna.sequence import base_index
from chromabuild.genome.chromosomes import Chromosome
from chromabuild.genome.circle import Circle
from chromabuild.genome.wrapping import ARM
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.marks import marked_nucleosomes
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.nucleosome.settling import settle_histones
from chromabuild.nucleosome.template_file import read_template
from chromabuild.proteins.complex import Complex
from chromabuild.proteins.placing import complexes_of, protein_counts
from mesoscale.scaffold import Scaffold


def build_solute(scaffold: Scaffold, config: Settings, threads: int = 1, progress: Progress = silent) -> Solute:
    """All atoms of a fibre: both strands from end to end, and the histones of every nucleosome.

    Args:
        scaffold: of mesoscale, angstrom (docs/reference/file-formats.md).
        config: ``config.build.nucleosome_path`` chooses the path of wrapped DNA, ``config.build.tails`` the
            conformation of the histone tails.
        threads: for the backbone closure; the result does not depend on it.
        progress: called with what is being done and the fraction done.

    Returns:
        The solute; its ``build_report`` holds costs of linkers and the quality of the backbone.

    Raises:
        BadInputError: a base that is not A, C, G, T, or a linker that cannot be built.
    """
    progress("relaxing linkers", 0.0)
    sequence = base_index(scaffold.base)
    chromosome = Chromosome.of_table(scaffold.chromosome, config.locus.chromosome_names)
    circle = Circle.around(scaffold.position, config.locus, scaffold.circular)
    marked = marked_nucleosomes(config.build, chromosome, scaffold.position[scaffold.dyad], config.seed,
                                scaffold.missing, circle)
    recipes, used = marked.recipes, marked.used
    modified = modified_bases(config, chromosome, scaffold.position, bytes(scaffold.base).decode(), used, circle)
    octamers = [octamer_of_recipe(recipe) for recipe in recipes]
    complexes = complexes_of(scaffold.proteins, config)
    proteins = [one.protein for one in complexes]
    tails = {}
    if config.build.tails == "scaffold":
        octamers, tails = with_scaffold_tails(octamers, scaffold, config.seed)
    if scaffold.circular and not (len(scaffold.dyad) or complexes):  # its path closes to the last step, and stays
        path = RelaxedPath(scaffold.origin, scaffold.frame, scaffold.core_origin, scaffold.core_frame, [], np.zeros(0),
                           np.zeros(0), 0)
    else:
        path = relaxed_path(scaffold, sequence, config.build, octamers, threads, complexes)
    progress("closing the backbone", 0.2)
    # The regular superhelix runs through the octamer: no backbone can keep clear of that.
    crosses = config.build.nucleosome_path == "superhelix"
    histones = atoms_beside_dna([] if crosses else octamers, proteins, path)
    dna_position, dna_template, report = build_dna(sequence, path.origin, path.frame, threads, scaffold.circular,
                                                   histones=histones, modified=modified,
                                                   pairs=_pairs(scaffold, sequence, complexes),
                                                   phosphate=config.build.five_prime == "phosphate",
                                                   phosphate_3=config.build.three_prime == "phosphate")
    del histones
    progress("placing histones", 0.8)
    solute = assemble_solute(dna_position, dna_template, octamers, path.core_origin, path.core_frame,
                             scaffold.circular, proteins)
    any_protein = bool(octamers or proteins)
    del dna_position, octamers
    progress("making room for histones", 0.85)
    settled = settle_histones(solute, threads) if any_protein else {}
    solute.provenance = {
        "stage": "build",
        "chromabuild": __version__,
        "locus": scaffold.name,
        "nucleosome_path": config.build.nucleosome_path,
        "tails": config.build.tails,
    }
    solute.build_report = report | path.summary() | {"octamers": octamer_counts(recipes)} | tails | settled
    if modified is not None or any(recipe.modifications for recipe in recipes):
        solute.build_report |= {"modifications": modification_table(recipes, modified)}
    solute.build_report |= protonation_report(recipes)
    if complexes:
        solute.build_report |= {"proteins": protein_counts(scaffold.proteins, complexes,
                                                           bytes(scaffold.base).decode())}
    if used.partly():
        solute.build_report |= {"records_used": used.partly()}
    if marked.conflicts:
        solute.build_report |= {"marks_that_gave_way": marked.conflicts}
    progress("done", 1.0)
    return solute


def _pairs(scaffold: Scaffold, sequence: np.ndarray, complexes: Sequence[Complex]) -> np.ndarray | None:
    """(n, 6) shear ... opening of the base pairs: at rest, and as in the structures of proteins; None without these."""
    if not complexes:
        return None
    pairs, bound = rest_of_pairs(sequence), scaffold.proteins
    for k, one in enumerate(complexes):
        pairs[bound.first_bp[k]:bound.last_bp[k] + 1] = one.within_pairs(bool(bound.reverse[k]))
    return pairs


def relaxed_path(
    scaffold: Scaffold, sequence: np.ndarray, settings: BuildSection, octamers: Sequence[Octamer] = (),
    threads: int = 1, complexes: Sequence[Complex] = (),
) -> RelaxedPath:
    """Base pairs and cores of the scaffold with relaxed linkers, wrapped and joined as the settings say.

    ``sequence`` (n,) is 0..3 for A, C, G, T of strand I. Linkers keep clear of the ``octamers`` that the cores will
    carry, and of the proteins of ``complexes``, whose base pairs stay as their structures have them. Cores of proteins
    follow those of nucleosomes.
    """
    path = crystal_path()
    if settings.template is not None:
        template = read_template(settings.template)
        path = template.origin, template.frame
    if settings.nucleosome_path == "superhelix":
        path = superhelix_path(settings.superhelix_outer_diameter, settings.superhelix_pitch, settings.superhelix_rise)
    core_of_bp = np.asarray(scaffold.nucleosome)
    position_on_core = np.zeros(len(core_of_bp), dtype=int)
    wrapped = core_of_bp >= 0
    position_on_core[wrapped] = np.flatnonzero(wrapped) - np.asarray(scaffold.dyad)[core_of_bp[wrapped]]
    if np.abs(position_on_core).max(initial=0) > DYAD + ARM:
        far = int(np.argmax(np.abs(position_on_core)))
        raise BadInputError(
            f"base pair {far} lies {abs(position_on_core[far])} bp from the dyad of nucleosome {core_of_bp[far]} "
            f"that it is wrapped on, beyond the {DYAD + ARM} of a core with its arms: make the scaffold again"
        )
    if np.abs(position_on_core).max(initial=0) > DYAD:
        path = with_arms(path)
        position_on_core[wrapped] = rows_on_arms(position_on_core[wrapped]) - DYAD
    bound, core_origin, core_frame = scaffold.proteins, scaffold.core_origin, scaffold.core_frame
    if complexes:
        core_of_bp = core_of_bp.copy()
        core_origin, core_frame = (np.concatenate(part) for part in ((core_origin, bound.origin),
                                                                     (core_frame, bound.frame)))
    for k, one in enumerate(complexes):
        own = slice(bound.first_bp[k], bound.last_bp[k] + 1)
        core_of_bp[own] = len(scaffold.dyad) + k
        position_on_core[own] = len(path[0]) - DYAD + np.arange(len(one.sequence))
        path = tuple(np.concatenate(part) for part in zip(path, one.pairs(bool(bound.reverse[k])), strict=True))
    return relax_path(
        sequence, scaffold.origin, scaffold.frame, core_origin, core_frame, core_of_bp, position_on_core, path,
        [one.alpha_carbons for one in (*octamers, *(one.protein for one in complexes))], settings.steps,
        settings.linker_phase_limit, threads, len(scaffold.dyad), scaffold.circular)
