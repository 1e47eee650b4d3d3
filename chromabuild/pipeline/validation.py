"""What settings and input files alone decide, checked before the work by the checks of the stages themselves."""

from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import check_folder
from chromabuild.base.phases import NUCLEOSOME_GROUPS
from chromabuild.base.settings import Settings, input_files

if TYPE_CHECKING:
    from chromabuild.genome.locus import Locus
    from chromabuild.nucleosome.octamer import Octamer
    from chromabuild.pipeline.plan import Parts


def check_all(config: Settings) -> "tuple[Locus, Parts]":
    """The locus of the settings and what is built on it. Raises BadInputError for the first thing that this or a later
    stage refuses."""
    from chromabuild.genome.locus import load_locus
    from chromabuild.pipeline.ensemble.design import check_ensemble
    from chromabuild.pipeline.plan import Parts

    locus = load_locus(config.locus, config.seed)
    for key, paths in input_files(config).items():
        for path in paths:
            if not Path(path).is_file():
                raise BadInputError(f"{path} does not exist: correct `{key}` in the settings")
    check_restraints(config, len(locus.nucleosomes))
    check_fibre_and_fold(config, locus)
    check_settings(config)
    check_ensemble(config)
    parts = Parts.of(config, locus)
    check_force_field(config, [*parts.octamers, *(one.protein for one in parts.complexes)])
    if config.solvate.box:
        check_box(config)
    return locus, parts


def records_used(config: Settings, locus: "Locus") -> dict[str, str]:
    """Of files of marks, acetylated stretches and methylation of which some records are left out: ``n of m``."""
    import numpy as np

    from chromabuild.build.modified_bases import modified_bases
    from chromabuild.nucleosome.marks import marked_nucleosomes, within_stretches

    dyads = locus.start + np.array([one.dyad for one in locus.nucleosomes], dtype=int)
    used = marked_nucleosomes(config.build, locus.chromosome, dyads, config.seed).used
    if config.scaffold.acetylated:
        within_stretches(config.scaffold.acetylated, locus.chromosome, dyads, used)
    modified_bases(config, locus.chromosome, locus.start, locus.sequence, used)
    return used.partly()


def check_settings(config: Settings) -> None:
    """Raises BadInputError for settings that contradict each other, or that the engine does not take, ResourceError for
    an output folder that cannot be written."""
    from chromabuild.api import check_fold
    from chromabuild.clash.correct import check_settings as check_clash_settings
    from chromabuild.simulate.control_check import check_controls

    check_folder(config.output)
    check_fold(config)
    check_clash_settings(config.clash.mode, config.clash.threshold)
    check_controls(config)
    if config.dynamics.engine == "openmm":
        from chromabuild.simulate.openmm_platform import chosen_platform

        chosen_platform(config.dynamics)


def check_fibre_and_fold(config: Settings, locus: "Locus") -> None:
    """Raises BadInputError for a locus that cannot be folded or built: marks, acetylated stretches, circles, more
    nucleosomes than there are names."""
    from chromabuild.api import fibre_of
    from chromabuild.build.duplex import check_circle
    from chromabuild.dna.curve import circular_path
    from chromabuild.nucleosome.octamer import histone_segid

    fibre_of(locus, config)
    histone_segid(len(locus.nucleosomes) - 1, "A")
    if locus.circular:
        circular_path(len(locus.sequence), locus.linking_number)
        check_circle(len(locus.sequence))


def check_force_field(config: Settings, octamers: "list[Octamer]") -> None:
    """Raises BadInputError where the force field of the settings does not know a residue or the water of the build."""
    import numpy as np

    from chromabuild.forcefield.rules import check_residues
    from chromabuild.molecule.residues import PHOSPHATE, PHOSPHATE_3, SOLVENT, residue_library, residue_names
    from chromabuild.molecule.water_models import WATER_MODELS

    protein = np.unique(np.concatenate([np.zeros(0, dtype=int), *(one.residue_template for one in octamers)]))
    nucleotides = [name for name, one in residue_library().items() if one.pdb_name in ("DA", "DC", "DG", "DT")
                   and not name.endswith((PHOSPHATE, PHOSPHATE_3))]
    solvent = SOLVENT | {"water": WATER_MODELS[config.solvate.water].residue}
    check_residues([*nucleotides, *(residue_names()[k] for k in protein.tolist()), *solvent.values()],
                   config.dynamics.force_field, config.dynamics.force_field_files, config.solvate.water)


def check_box(config: Settings) -> None:
    """Raises BadInputError for a `solvate.box` that is too small or too large for whatever is put into it."""
    import numpy as np

    from chromabuild.pipeline.limits import box_below_cutoff
    from chromabuild.solvate.ions import check_potential
    from chromabuild.solvate.placement import check_edges

    edges = np.rint(np.array(config.solvate.box) * 1000)
    check_edges(edges)
    if config.solvate.ion_placement == "debye-hueckel":
        check_potential(edges)
    problem = box_below_cutoff(config.solvate.box, config.dynamics)
    if problem:
        raise BadInputError(problem)


def check_restraints(config: Settings, nucleosomes: int) -> None:
    """Raises BadInputError for a restraint or an exchange of a group that a locus of so many nucleosomes has no atom
    of."""
    for phase in config.simulate.chosen():
        solute = phase.exchange.solute if phase.exchange else None
        if solute in NUCLEOSOME_GROUPS and nucleosomes == 0:
            raise BadInputError(f"phase {phase.name} of simulate exchanges temperatures of {solute}, and the locus has "
                                "no nucleosome: remove exchange.solute")
        for restraint in phase.restraints:
            if restraint.group in NUCLEOSOME_GROUPS and nucleosomes == 0:
                raise BadInputError(f"phase {phase.name} of simulate restrains {restraint.group}, and the locus has no "
                                    "nucleosome: remove the restraint")
