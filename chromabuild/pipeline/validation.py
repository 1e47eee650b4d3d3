"""What settings and input files alone decide, checked before the work by the checks of the stages themselves."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import check_folder
from chromabuild.base.phases import NUCLEOSOME_GROUPS
from chromabuild.base.settings import Settings, input_files

if TYPE_CHECKING:
    from chromabuild.genome.locus import Locus
    from chromabuild.pipeline.plan import Parts

WITH_ENSEMBLE = ("ensemble", "scaffold", "build", "refine", "clash", "relax", "solvate", "topology",
                 "run")
"""Stages whose settings and inputs can be wrong, and the ensemble."""


def check_all(config: Settings, stages: Collection[str] = WITH_ENSEMBLE, elsewhere: bool = False
              ) -> "tuple[Locus, Parts]":
    """The locus of the settings and what is built on it. Raises BadInputError for the first thing that one of some
    ``stages`` refuses, ResourceError for what is not installed; ``elsewhere``: the dynamics runs on another machine."""
    from chromabuild.genome.locus import load_locus
    from chromabuild.pipeline.ensemble.design import check_ensemble
    from chromabuild.pipeline.limits import check_box
    from chromabuild.pipeline.plan import Parts

    locus = load_locus(config.locus, config.seed)
    for key, paths in input_files(config).items():
        for path in paths:
            if not Path(path).is_file():
                raise BadInputError(f"{path} does not exist: correct `{key}` in the settings")
    check_fibre_and_fold(config, locus)
    check_settings(config, stages, elsewhere)
    if "ensemble" in stages:
        check_ensemble(config)
    parts = Parts.of(config, locus)
    if config.refine.enabled and "refine" in stages:
        check_beads(parts)
    if "run" in stages:
        check_restraints(config, len(locus.nucleosomes), len(parts.complexes))
    if {"relax", "topology", "run"} & set(stages):
        check_force_field(config, parts)
    if config.solvate.edges:
        check_box(config.solvate.edges, config, stages)
    return locus, parts


def check_beads(parts: "Parts") -> None:
    """Raises BadInputError for proteins with residues that have no beads."""
    from chromabuild.molecule.residues import residue_library

    library = list(residue_library().values())
    for name in {library[k].name for one in parts.complexes for k in one.protein.residue_template.tolist()
                 if library[k].kind != "amino acid"}:
        raise BadInputError(f"refine.enabled does not go with {name} in a protein on DNA, which has no bead: set it to "
                            "false")


def records_used(config: Settings, locus: "Locus") -> dict[str, str]:
    """Of files of marks, acetylated stretches and methylation of which some records are left out: ``n of m``."""
    import numpy as np

    from chromabuild.build.modified_bases import modified_bases
    from chromabuild.genome.circle import Circle
    from chromabuild.nucleosome.marks import marked_nucleosomes, within_stretches

    dyads = locus.position[np.array([one.dyad for one in locus.nucleosomes], dtype=int)]
    circle = Circle.around(locus.position, config.locus)
    used = marked_nucleosomes(config.build, locus.chromosome, dyads, config.seed, circle=circle).used
    if config.scaffold.acetylated:
        within_stretches(config.scaffold.acetylated, locus.chromosome, dyads, used, circle)
    modified_bases(config, locus.chromosome, locus.position, locus.sequence, used, circle)
    return used.partly()


def check_settings(config: Settings, stages: Collection[str] = WITH_ENSEMBLE, elsewhere: bool = False) -> None:
    """Raises BadInputError for settings that contradict each other, or that the engine does not take, ResourceError for
    an output folder that cannot be written and an engine that is not there. ``stages``, ``elsewhere``: as for
    ``check_all``."""
    from chromabuild.api import check_fold
    from chromabuild.clash.correct import check_settings as check_clash_settings
    from chromabuild.simulate.control_check import check_controls

    check_folder(config.output)
    check_fold(config)
    check_clash_settings(config.clash.mode, config.clash.threshold)
    check_controls(config)
    if config.relax.enabled and "relax" in stages or config.refine.enabled and "refine" in stages:
        check_engine(1, "auto")
    if "run" not in stages or elsewhere:
        return
    if config.dynamics.engine == "openmm":
        from chromabuild.simulate.openmm_platform import check_platform

        check_platform(config.dynamics)
    else:
        check_engine(config.dynamics.ranks, config.dynamics.launcher)


def check_engine(ranks: int, launcher: str) -> None:
    """Raises ResourceError where the engine, or what starts it on so many ranks, is not installed."""
    from chromabuild.simulate.executable import executable
    from chromabuild.simulate.launcher import check_launcher

    executable()
    check_launcher(launcher, ranks)


def check_fibre_and_fold(config: Settings, locus: "Locus") -> None:
    """Raises BadInputError for a locus that cannot be folded or built: marks, acetylated stretches, circles, more
    nucleosomes than there are names."""
    from chromabuild.api import fibre_of, fibre_parameters
    from chromabuild.build.duplex import check_circle
    from chromabuild.dna.curve import circular_path
    from chromabuild.nucleosome.octamer import histone_segid
    from mesoscale.circle import LinkingNumberError, check_linking_number
    from mesoscale.model import build_chain

    fibre = fibre_of(locus, config)
    histone_segid(len(locus.nucleosomes) - 1, "A")
    if locus.circular:
        check_circle(len(locus.sequence))
    if config.locus.is_bare_circle:
        circular_path(len(locus.sequence), locus.linking_number)
    elif locus.circular:
        parameters = fibre_parameters(config, fibre)
        try:
            check_linking_number(fibre, build_chain(fibre, parameters), parameters)
        except LinkingNumberError as error:
            raise BadInputError(f"locus.linking_number: {error}") from None


def check_force_field(config: Settings, parts: "Parts") -> None:
    """Raises BadInputError where the force field of the settings does not know a residue or the water of the build, or
    files of the user's have terms that a topology cannot hold."""
    from itertools import pairwise

    import numpy as np

    from chromabuild.forcefield.rules import check_residues
    from chromabuild.molecule.residues import SOLVENT, residue_names
    from chromabuild.molecule.water_models import WATER_MODELS
    from chromabuild.pipeline.plan import strands_of

    dynamics, water, names = config.dynamics, config.solvate.water, residue_names()
    chains = strands_of(parts.fibre, parts.modified, config)
    for one in {id(one): one for one in (*parts.octamers, *(each.protein for each in parts.complexes))}.values():
        ends = np.flatnonzero(np.diff(one.residue_chain)) + 1
        chains += [[names[k] for k in one.residue_template[first:last].tolist()]
                   for first, last in pairwise([0, *ends.tolist(), len(one.residue_chain)])]
    solvent = SOLVENT | {"water": WATER_MODELS[water].residue}
    check_residues([*(name for chain in chains for name in chain), *solvent.values()], dynamics.force_field,
                   dynamics.force_field_files, water)
    if dynamics.force_field_files:
        from chromabuild.forcefield.assign import check_assignment

        check_assignment(chains, dynamics.force_field, dynamics.force_field_files, water)


def check_restraints(config: Settings, nucleosomes: int, proteins: int = 0) -> None:
    """Raises BadInputError for a restraint or an exchange of a group that a locus of so many nucleosomes and other
    proteins has no atom of."""
    lacking = () if nucleosomes else tuple(group for group in NUCLEOSOME_GROUPS if group != "protein" or not proteins)
    for phase in config.simulate.chosen():
        solute = phase.exchange.solute if phase.exchange else None
        if solute in lacking:
            raise BadInputError(f"phase {phase.name} of simulate exchanges temperatures of {solute}, and the locus has "
                                "no nucleosome: remove exchange.solute")
        for restraint in phase.restraints:
            if restraint.group in lacking:
                raise BadInputError(f"phase {phase.name} of simulate restrains {restraint.group}, and the locus has no "
                                    "nucleosome: remove the restraint")
