"""The steps from a locus to a simulation as functions; the stages of the chain call them too.

Each takes what the one before gave, ``settings`` of a whole build (None: the defaults) and, by name, keys of its own
section that replace those of the settings; they are checked as those of locus.yaml are. ``seed`` replaces that of the
settings: the same input, settings and seed give the same result on any number of ``threads`` (None: all cores allowed
to this process). ``progress`` is called with what is being done and the fraction that is done.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from chromabuild.base.errors import BadInputError
from chromabuild.base.progress import Progress, silent
from chromabuild.base.settings import Settings, changed
from chromabuild.base.threads import thread_count

if TYPE_CHECKING:
    from chromabuild.base.summary import Summary
    from chromabuild.clash import ClashReport
    from chromabuild.forcefield.topology_file import Topology
    from chromabuild.genome.locus import Locus
    from chromabuild.molecule.solute import Solute
    from chromabuild.shards.shard_set import ShardSet
    from chromabuild.simulate.result import Run
    from chromabuild.solvate import Part
    from mesoscale.fibre import Fibre
    from mesoscale.model import Parameters
    from mesoscale.scaffold import Scaffold

Function = TypeVar("Function", bound=Callable)


def _with_keys_of(*sections: str) -> Callable[[Function], Function]:
    """Show the keys of sections of the settings, with their defaults, in the signature and the help of a function."""

    def decorate(function: Function) -> Function:
        fields = {name: field for section in sections
                  for name, field in Settings.model_fields[section].annotation.model_fields.items()}
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
        keys = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
                                  annotation=field.annotation) for name, field in fields.items()]
        function.__signature__ = signature.replace(parameters=own + keys)
        lines = [f"    {name}: {field.description} (default {field.default!r})" for name, field in fields.items()]
        told = (f"Keys of section {' and '.join(f'``{section}``' for section in sections)} replace those of "
                "``settings``; the defaults hold where neither is given.")
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = "\n".join([text, "", told, "", "Keyword Args:", *lines, ""])
        return function

    return decorate


def fibre_of(locus: "Locus", settings: Settings) -> "Fibre":
    """The mesoscale fibre of a locus, with its proteins, linker histones, marks of tails and share of the contacts.

    Raises BadInputError for marks, proteins, linker arms and energies of contacts that do not fit the locus.
    """

    from chromabuild.dna.curve import relaxed_linking_number
    from chromabuild.genome.circle import Circle
    from chromabuild.genome.contact_energies import read_contact_energies
    from chromabuild.nucleosome.linker_arms import with_linker_arms
    from chromabuild.nucleosome.marks import octamer_recipes, within_stretches
    from chromabuild.nucleosome.tail_charges import tail_charge_changes
    from chromabuild.proteins.placing import fibre_with_proteins
    from mesoscale.restraints import shared_out

    section, fibre = settings.scaffold, fibre_with_proteins(locus, settings)
    if fibre.circular and not fibre.places and fibre.linking_number is None:  # as where it is laid flat
        fibre = replace(fibre, linking_number=relaxed_linking_number(len(fibre.sequence)))
    dyad_position = fibre.position[list(fibre.dyads)]
    # The same recipes as ``build_solute`` finds: they depend on settings, seed and positions on the chromosome alone.
    circle = Circle.around(fibre.position, settings.locus, fibre.circular)
    recipes = octamer_recipes(settings.build, fibre.chromosome, dyad_position, settings.seed, fibre.missing, circle)
    acetylated = (within_stretches(section.acetylated, fibre.chromosome, dyad_position, circle=circle)
                  if section.acetylated else ())
    energies = (read_contact_energies(section.contact_energies, fibre.chromosome, fibre.start, len(fibre.sequence),
                                      circle, fibre.turn) if section.contact_energies else ())
    fibre = replace(fibre, contacts=shared_out(fibre.contacts, section.replica, section.replicas),
                    contact_energies=energies,
                    linker_histone=tuple(bool(recipe.linker_histone) for recipe in recipes),
                    tail_charge=tail_charge_changes(recipes) if section.core_charges == "fitted" else (),
                    acetylated=tuple(bool(one) for one in acetylated))
    return with_linker_arms(fibre, locus.nucleosomes, settings)


def with_core_charges(fibre: "Fibre", settings: Settings, progress: Progress = silent) -> "tuple[Fibre, list[Summary]]":
    """The fibre with the charges of its own histones' cores at the salt of the fold, and where they come from.

    The second is for the report: histones, marks, number of nucleosomes, charge of the atoms (e), mean relative error
    of the field, and source. Nothing changes where all cores are those of 1KX5, or charges are formal.
    """

    from chromabuild.build.surface_charges import core_charges_of, core_recipe
    from chromabuild.genome.circle import Circle
    from chromabuild.nucleosome.marks import octamer_recipes

    if settings.scaffold.core_charges == "formal" or not fibre.dyads:
        return fibre, []
    recipes = octamer_recipes(settings.build, fibre.chromosome, fibre.position[list(fibre.dyads)], settings.seed,
                              fibre.missing, Circle.around(fibre.position, settings.locus, fibre.circular))
    cores = {recipe: core_recipe(recipe) for recipe in sorted(set(recipes))}
    found = {core: core_charges_of(core, settings.scaffold.salt, lambda text: progress(text, None))
             for core in sorted(set(cores.values()))}
    carried = [cores[recipe] for recipe in recipes]
    told = [{"histones": "template" if core.template else core.species, "marks": ", ".join(core.marks) or "none",
             "nucleosomes": carried.count(core), "atomic_charge_e": one.atomic_charge,
             "mean_field_error": one.field_error, "source": one.source} for core, one in found.items()]
    usual = len(found) == 1 and told[0]["source"] == "bundled" and told[0]["histones"] == "xenopus" and (
        told[0]["marks"] == "none")
    charge = () if usual else tuple(found[core].charge for core in carried)
    return replace(fibre, core_charge=charge), told


def fibre_parameters(settings: Settings, fibre: "Fibre") -> "Parameters":
    """Parameters of the mesoscale model for a fibre: those of the settings, and the walls that ``packing`` gives it."""
    from mesoscale.model import Parameters
    from mesoscale.packing import packed_walls

    section = settings.scaffold
    parameters = Parameters(temperature=section.temperature, salt=section.salt, core_charges=section.core_charges,
                            tails=section.tails, magnesium=section.magnesium,
                            confinement_radius=section.confinement_radius, container=section.container)
    if not section.is_packed:
        return parameters
    return replace(parameters, container=packed_walls(fibre, parameters.rise, parameters.persistence_length))


def check_fold(settings: Settings) -> None:
    """Raises BadInputError for settings of the scaffold that exclude each other."""
    section = settings.scaffold
    if section.tails == "flexible" and section.core_charges == "formal":
        raise BadInputError("scaffold.core_charges: formal has rigid tails in its charges: "
                            "set it to fitted, or scaffold.tails to rigid")
    if section.hotter and (section.tails == "flexible" or sorted(set(section.hotter)) != list(section.hotter)):
        raise BadInputError("scaffold.hotter: temperatures must ascend and be different, and scaffold.tails be rigid")
    if section.replica > section.replicas:
        raise BadInputError(f"scaffold.replica: {section.replica} is beyond scaffold.replicas: {section.replicas}: "
                            "count from 1")


@_with_keys_of("scaffold")
def fold(locus: "Locus", settings: Settings | None = None, *, seed: int | None = None, threads: int | None = None,
         progress: Progress = silent, trajectory: str | Path | None = None, **keys: object) -> "Scaffold":
    """Sample the coarse-grained fibre of a locus down to a frame for every base pair and nucleosome.

    ``floor_violations`` of the result counts pairs of DNA and cores that still overlap: 0 where it can be built.
    Sampling is written to the file ``trajectory`` and goes on from there after an interruption.

    Raises BadInputError for settings that exclude each other and marks that do not fit the locus.

    >>> from chromabuild import Locus
    >>> locus = Locus.from_files("demo.fa", "demo.dyads.bed")
    >>> fold(locus, sweeps=0)
    Traceback (most recent call last):
    ...
    chromabuild.base.errors.BadInputError: fold(): scaffold.sweeps = 0 should be greater than or equal to 1
    """
    from chromabuild.dna.curve import circular_path
    from mesoscale.circle import LinkingNumberError
    from mesoscale.closed import closed_scaffold
    from mesoscale.folding import fold as fold_fibre

    settings = changed(settings, "scaffold", keys, seed, "fold()")
    section = settings.scaffold
    check_fold(settings)
    is_bare = locus.circular and not (locus.nucleosomes or locus.proteins)
    if is_bare and not (locus.contacts or section.says_how_to_fold):
        return closed_scaffold(locus.fibre(), *circular_path(len(locus.sequence), locus.linking_number))
    fibre, _ = with_core_charges(fibre_of(locus, settings), settings, progress)
    try:
        return fold_fibre(fibre, fibre_parameters(settings, fibre), section.sweeps, settings.seed, section.choose,
                          lambda share, phase: progress(phase, share), None if trajectory is None else Path(trajectory),
                          section.hotter, thread_count(threads))
    except LinkingNumberError as error:
        raise BadInputError(f"locus.linking_number: {error}") from None


def fit_contact_energies(settings: Settings, contact_map: str | Path, output: str | Path, threads: int | None = None,
                         progress: Progress = silent) -> "Summary":
    """Fit energies of contacts to a contact map, and write the table that ``scaffold.contact_energies`` names.

    ``contact_map``: .cool, .mcool, .hic, or BEDPE of bins with counts. The polymer that the energies are fitted on has
    the fibre's lengths, and lies in the sphere of ``scaffold.confinement_radius``.

    Raises BadInputError for a locus or a map that cannot be used.
    """
    from dataclasses import replace

    from chromabuild.base.files import atomic_path
    from chromabuild.genome.contact_energies import contact_energies_text
    from chromabuild.genome.contact_fit import entries_of, fit_map, polymer_of
    from chromabuild.genome.contact_targets import read_counts
    from chromabuild.genome.locus import load_locus
    from mesoscale.kernels import set_threads
    from mesoscale.model import Parameters, build_chain

    set_threads(thread_count(threads))
    fibre = replace(load_locus(settings.locus, settings.seed).fibre(), contacts=())
    counts = read_counts(contact_map, fibre.chromosome, fibre.start, fibre.start + len(fibre.sequence), fibre.circular)
    parameters = Parameters(confinement_radius=settings.scaffold.confinement_radius, core_charges="formal")
    polymer = polymer_of(build_chain(fibre, parameters), fibre, counts)
    fit = fit_map(polymer, counts, settings.seed, progress=lambda share, phase: progress(phase, share))
    entries = entries_of(*fit, counts, fibre.start)
    with atomic_path(output) as part:
        part.write_text(contact_energies_text(entries, fibre.chromosome, fibre.start))
    _, target, energy = fit
    return {"bins": len(counts.count), "base_pairs_a_bin": counts.size, "contacts": len(entries),
            "frequency_of_a_contact_mean": float(target.mean()), "frequency_of_a_contact_highest": float(target.max()),
            "energy_lowest_kbt": float(energy.min()), "energy_highest_kbt": float(energy.max())}


@_with_keys_of("build")
def build_solute(scaffold: "Scaffold", settings: Settings | None = None, *, seed: int | None = None,
                 threads: int | None = None, progress: Progress = silent, **keys: object) -> "Solute":
    """Build every atom of DNA and histones on a scaffold.

    ``build_report`` of the result holds the costs of linkers and the quality of the backbone.

    Raises BadInputError for a base that is not A, C, G, T, or a linker that cannot be built.
    """
    from chromabuild.build import build_solute as build

    return build(scaffold, changed(settings, "build", keys, seed, "build_solute()"), thread_count(threads), progress)


@_with_keys_of("refine")
def refine_solute(solute: "Solute", folder: str | Path, settings: Settings | None = None, *, seed: int | None = None,
                  threads: int | None = None, progress: Progress = silent, **keys: object) -> "tuple[Solute, Summary]":
    """A new solute after dynamics of its beads, three a nucleotide and one an amino acid, and what happened in numbers.

    Salt is that of section ``solvate``, the temperature that of ``simulate``. What it touches, the solute holds on to;
    ``remove_clashes`` comes next. Work files go to ``folder``, from which an interrupted call goes on; in the end it
    holds the logs.

    Raises BadInputError for a solute with circles of DNA or with residues that are neither DNA nor protein,
    ResourceError when the engine is missing.
    """
    from chromabuild.simulate.bead_refinement import refine

    settings = changed(settings, "refine", keys, seed, "refine_solute()")
    Path(folder).mkdir(parents=True, exist_ok=True)
    return refine(solute, settings, Path(folder), thread_count(threads), progress)


@_with_keys_of("clash")
def remove_clashes(solute: "Solute", settings: Settings | None = None, *, seed: int | None = None,
                   threads: int | None = None, progress: Progress = silent, **keys: object,
                   ) -> "tuple[Solute, ClashReport]":
    """A new solute without steric clashes, and the report of what was found, moved and left.

    ``fatal`` of the report counts what still stands in the way of a simulation: 0 where nothing does.

    Raises BadInputError for coordinates that are not numbers.

    >>> from chromabuild import Solute
    >>> solute, report = remove_clashes(Solute.read("solute.h5"))
    >>> report.fatal
    0
    """
    from chromabuild.clash import correct_clashes

    settings = changed(settings, "clash", keys, seed, "remove_clashes()")
    return correct_clashes(solute, settings.clash.mode, settings.clash.threshold, settings.seed, thread_count(threads),
                           progress)


@_with_keys_of("relax")
def relax_solute(solute: "Solute", folder: str | Path, settings: Settings | None = None, *, seed: int | None = None,
                 threads: int | None = None, progress: Progress = silent, **keys: object) -> "tuple[Solute, Summary]":
    """A new solute after minimisation and short dynamics without water, and what happened in numbers.

    Charges are in implicit solvent with the salt of section ``solvate``; the temperature is that of ``simulate``. Work
    files go to ``folder``, from which an interrupted call goes on; in the end it holds the logs.

    Raises BadInputError for a residue that the force field does not know and for what the engine refuses,
    ResourceError when the engine is missing or memory runs out.
    """
    from chromabuild.simulate.relaxation import relax

    settings = changed(settings, "relax", keys, seed, "relax_solute()")
    return relax(solute, settings, Path(folder), thread_count(threads), progress)


def add_bound_ions(solute: "Solute", settings: Settings | None = None, *, seed: int | None = None,
                   magnesium_hexahydrates: float | None = None, spermine: float | None = None,
                   spermidine: float | None = None) -> "tuple[Solute, Summary]":
    """A new solute with ions at the phosphates of its DNA, and how many of each; the last step before water.

    ``magnesium_hexahydrates``, ``spermine`` and ``spermidine``, for each phosphate, replace those of section
    ``solvate``, whose water model the hexahydrates have.

    Raises BadInputError where not all of them find room.
    """
    from chromabuild.solvate.bound_ions import with_bound_ions

    keys = {"magnesium_hexahydrates": magnesium_hexahydrates, "spermine": spermine, "spermidine": spermidine}
    settings = changed(settings, "solvate", {key: value for key, value in keys.items() if value is not None}, seed,
                       "add_bound_ions()")
    return with_bound_ions(solute, settings.solvate, settings.seed)


@_with_keys_of("solvate")
def add_solvent(solute: "Solute", folder: str | Path, settings: Settings | None = None, *, seed: int | None = None,
                threads: int | None = None, progress: Progress = silent, only: "Iterable[int] | Part | None" = None,
                **keys: object) -> "ShardSet":
    """Put a solute into a box of water and ions, written to ``folder`` as a set of shards.

    Positions are never all in memory: ``Solute.open`` leaves those of a large solute in its file. ``only`` makes these
    shards alone, with the same bytes. Shards of an earlier call with the same input are kept. Ions at phosphates
    (``spermine`` and its like) are those of ``add_bound_ions``, which comes before.

    Raises BadInputError for a box or salt that cannot be met, ResourceError when the disk is full.

    >>> from chromabuild import Solute
    >>> shards = add_solvent(Solute.read("solute.h5"), "shards", padding=5.0, salt=0.2, brick_edge=40.0)
    >>> shards.manifest.counts["solute"], shards.manifest.net_charge
    (2054, 0)
    """
    from chromabuild.shards.shard_set import ShardSet
    from chromabuild.solvate import solvate

    settings = changed(settings, "solvate", keys, seed, "add_solvent()")
    manifest = solvate(solute, settings.solvate, settings.seed, thread_count(threads), folder,
                       lambda done, total: progress("writing shards", done / total), only)
    return ShardSet(Path(folder), manifest)


def assign_force_field(solute: "Solute", shards: "ShardSet", settings: Settings | None = None, *,
                       force_field: str | None = None, progress: Progress = silent) -> "Topology":
    """The energy terms of a solvated solute: ``Topology.write`` makes the file that the engine reads.

    ``force_field`` replaces ``dynamics.force_field`` of the settings.

    Raises BadInputError for a residue that the force field does not know, IntegrityError when solute and shards do not
    belong together.
    """
    from chromabuild.forcefield.assign import make_topology

    keys = {} if force_field is None else {"force_field": force_field}
    settings = changed(settings, "dynamics", keys, None, "assign_force_field()")
    dynamics = settings.dynamics
    return make_topology(solute, shards.manifest.counts, dynamics.force_field, shards.manifest.net_charge, progress,
                         dynamics.force_field_files, shards.manifest.water)


@_with_keys_of("dynamics", "simulate")
def run_dynamics(topology: "Topology | str | Path", shards: "ShardSet", folder: str | Path,
                 settings: Settings | None = None, *, seed: int | None = None, threads: int | None = None,
                 progress: Progress = silent, phase: str | None = None, again: bool = False,
                 extend: str | None = None, replica: int = 1, **keys: object) -> "Run":
    """Minimise and run molecular dynamics; control files, logs, restarts and trajectories go to ``folder``.

    ``topology``: the file, or a Topology, which is then written to ``folder`` first. ``phase``: the one phase to run;
    None: all. Phases that are done there, with the same settings and input, are left out unless ``again``. ``extend``:
    the last phase, which must be done, goes on by so much, e.g. ``10 ns``. ``replica``: which one, with a seed of its
    own; those from the second on lie in ``folder/replica-2`` and so on.

    Raises BadInputError for what the engine refuses and for a phase that cannot go on, IntegrityError for damaged
    files, ResourceError when the engine is missing or memory runs out, BusyError while another process is at work
    in ``folder``.
    """
    from chromabuild.base.in_use import in_use
    from chromabuild.simulate import chromamd
    from chromabuild.simulate.protocol import PlannedPhase, Row, Task, extended, phases_in, run_phases
    from chromabuild.simulate.replicas import chosen_replicas, replica_folder, replica_seed

    for section in ("dynamics", "simulate"):
        fields = Settings.model_fields[section].annotation.model_fields
        own = {key: keys.pop(key) for key in list(keys) if key in fields}
        settings = changed(settings, section, own, seed, "run_dynamics()")
    settings = changed(settings, "dynamics", keys, None, "run_dynamics()")  # what is left is unknown
    chosen_replicas(settings.simulate, replica)
    dynamics, folder = settings.dynamics, Path(folder)
    if not isinstance(topology, (str, Path)):
        topology.write(folder / "topology.h5")
        topology = folder / "topology.h5"
    engine = chromamd
    if dynamics.engine == "openmm":
        from chromabuild.simulate import openmm_engine as engine
    folder = replica_folder(folder, replica)
    task = Task(dynamics, replica_seed(settings.seed, replica), Path(topology), Path(shards.bricks), folder,
                max(1, thread_count(threads) // dynamics.ranks))
    with in_use(folder):
        if dynamics.tune:
            from chromabuild.simulate.tuning import tuned

            task = tuned(task, settings, shards.box, shards.atoms, threads, again, lambda text: progress(text, 0.0))
        if extend is not None:
            extended(settings, task, extend)[0].write(folder)
        phases = phases_in(folder, settings.simulate)
        total = sum(one.steps for one in phases if phase in (None, one.name))

        def advance(one: PlannedPhase, row: Row | None) -> None:
            before = sum(other.steps for other in phases[:one.number - 1] if phase is None)
            done = one.steps if row is None else row["STEP"] - (one.first_step if one.kind == "dynamics" else 0)
            progress(one.name if row is not None else f"{one.name}: done before",
                     min(1.0, (before + done) / max(1, total)))

        return run_phases(settings, task, engine, phase, again, advance)
