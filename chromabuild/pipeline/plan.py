"""What a build will need: atoms, box, ions, memory, disk, shards, jobs and time, before anything is written.

Solute atoms are exact. The box is that of the solute when solute_clean.h5 or solute.h5 is there, or of the settings;
that of scaffold.h5 and of a fold in memory leave atoms right within a tenth, walls and laws (``extent``) within 15 %;
that of straight linkers is a guess. Given the box, waters and ions are right within 1 %. Once shards of these settings
are there, counts are exact. Memory and disk follow from ``needs``, times from ``speeds``. Memory of the dynamics on one
rank is right within a tenth (the law of ``scaling.measured`` and the bonded terms of the solute), on several within a
third.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import SHAPES, vectors_of
from chromabuild.base.duration import span
from chromabuild.base.errors import IntegrityError
from chromabuild.base.machine import nodes_here
from chromabuild.base.settings import Settings
from chromabuild.build.modified_bases import residue_of_code
from chromabuild.forcefield.molecule_runs import MoleculeRuns
from chromabuild.genome.locus import Locus, load_locus
from chromabuild.molecule.residues import PHOSPHATE, PHOSPHATE_3, residue_library, residue_names
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.nucleosome.recipe import build_octamer
from chromabuild.pipeline.extent import planned_box
from chromabuild.pipeline.needs import FRAME_BYTES_PER_ATOM, STAGES, disk_space, stage_memory
from chromabuild.pipeline.parameters import check_fibre
from chromabuild.pipeline.speeds import (
    REFERENCE,
    Speed,
    refine_seconds,
    relax_seconds,
    report_seconds,
    run_seconds,
    stage_seconds,
)
from chromabuild.proteins.complex import Complex
from chromabuild.proteins.placing import complexes_of, fibre_with_proteins
from chromabuild.scaling.layouts import layouts
from chromabuild.scaling.machine import Machine
from chromabuild.scaling.prediction import Job, Prediction, Run, predict
from chromabuild.shards.manifest import Manifest
from chromabuild.simulate.bead_refinement import refinement_phases
from chromabuild.simulate.choice import Choice
from chromabuild.simulate.protocol import PlannedPhase, last_dynamics, plan_phases
from chromabuild.simulate.relaxation import relax_phases
from chromabuild.simulate.replicas import phases_of_replicas
from chromabuild.simulate.tuning import TRIED_LAYOUTS, candidates, cores_of_run, nothing_to_choose, step_settings
from chromabuild.solvate import brick_grid
from chromabuild.solvate.bound_ions import sizes_and_charge, wanted_ions
from chromabuild.solvate.ions import formal_charges, ion_counts
from chromabuild.solvate.water import GAP_AT_FACES, water_tile
from mesoscale.fibre import Fibre
from mesoscale.scaffold import Scaffold

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
SOLUTE_VOLUME = 9.7
"""Cubic angstrom of water that an atom of DNA or protein displaces, with the closest distances of solvate/plan.py."""
JOB_BRICKS = 128
"""Shards a batch job of the workflow makes."""
BOX_TOLERANCE = 0.002
"""Angstrom: files hold thousandths."""


@dataclass(frozen=True)
class Estimate:
    """What a build will need. Lengths in angstrom, disk and memory in gigabytes, times in seconds."""

    base_pairs: int
    nucleosomes: int
    solute_atoms: int
    box: tuple[float, float, float]
    box_from: str
    least_extent: tuple[float, float, float]
    """Edges of the upright box that the solute is sure to need."""
    atoms: int
    counts: dict[str, int]
    """Waters and ions."""
    trajectory_atoms: int
    """Atoms of a frame."""
    shards: int
    jobs: int
    """Batch jobs that make the shards on a cluster."""
    replicas: int
    """Of the dynamics, all of which count in disk and time."""
    memory: dict[str, float]
    """By stage."""
    disk: dict[str, float]
    seconds: dict[str, float]
    shape: str = "rectangular"
    """Of the box, whose diagonal is ``box``."""
    tune: str = ""
    """What `dynamics.tune` would try first, or why nothing, in a sentence; empty without."""

    @property
    def vectors(self) -> np.ndarray:
        """(3,) edges of the box, or (3, 3) vectors where they lean, angstrom."""
        if self.shape == "rectangular":
            return np.array(self.box)
        return SHAPES[self.shape] * self.box[0]

    def as_dict(self) -> dict:
        """Plain data for JSON."""
        return asdict(self)

    def locus_lines(self) -> list[str]:
        """What is built, for people."""
        edges = " x ".join(f"{edge:.0f}" for edge in self.box) + " angstrom"
        if self.shape != "rectangular":
            edges = f"{self.shape} with images {self.box[0]:.0f} angstrom apart"
        solvent = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return [f"locus: {self.base_pairs} base pairs, {self.nucleosomes} nucleosomes",
                f"solute: {self.solute_atoms} atoms", f"box: {edges} (from {self.box_from})",
                f"solvated: about {self.atoms:.4g} atoms with {solvent}",
                f"trajectory: {self.trajectory_atoms} atoms a frame",
                f"shards: {self.shards}, on a cluster in {self.jobs} jobs",
                *([f"replicas: {self.replicas}, all of them in disk and time"] if self.replicas > 1 else [])]

    def lines(self) -> list[str]:
        """For people."""
        return [*self.locus_lines(),
                *([f"tune: {self.tune}"] if self.tune else []),
                *(f"memory, {name}: about {value:.1f} GB" for name, value in self.memory.items()),
                *(f"disk, {name}: about {value:.2f} GB" for name, value in self.disk.items()),
                f"disk in all: about {sum(self.disk.values()):.2f} GB",
                *(f"time, {name}: about {span(value)}" for name, value in self.seconds.items()),
                f"time in all: about {span(sum(self.seconds.values()))}"]


@dataclass(frozen=True)
class Parts:
    """What is built, as ``octamers_of`` gives it, and other proteins on the DNA."""

    fibre: Fibre
    octamers: list[Octamer]
    modified: np.ndarray | None
    note: str
    complexes: list[Complex]

    @classmethod
    def of(cls, config: Settings, locus: Locus | None = None) -> "Parts":
        """Those of the settings; ``locus``: that of them, where it is read already. Raises BadInputError when they
        cannot be read or built."""
        fibre = fibre_with_proteins(locus or load_locus(config.locus, config.seed), config)
        return cls(fibre, *octamers_of(config, fibre), complexes_of(fibre.proteins, config))


def estimate(config: Settings, threads: int, folded: Scaffold | None = None, stale: Collection[str] = (),
             speed: Speed = REFERENCE, parts: "Parts | None" = None) -> Estimate:
    """Estimate a build from its locus and settings. Raises BadInputError when the locus cannot be read.

    ``folded``: the fold that the build will have, where it is known; ``stale``: files of the output folder that the
    build will replace, which tell nothing; ``speed`` of the machine that the times are for; ``parts``: those of the
    settings, where they are known.
    """
    parts = parts or Parts.of(config)
    fibre, octamers, complexes = parts.fibre, parts.octamers, parts.complexes
    proteins = [one.protein for one in complexes]
    solute, charge = _solute_size(fibre, [*octamers, *proteins], parts.modified, config)
    vectors, source, least = planned_box(config, fibre, octamers, complexes, folded, stale)
    box = np.diag(vectors_of(vectors))
    counts = _counts_of_shards(config, vectors, solute, charge) or _solvent_counts(config, box, solute, charge)
    ions = sum(count for key, count in counts.items() if key != "water")
    in_water = WATER_MODELS[config.solvate.water].n_atoms * counts["water"]
    runs = MoleculeRuns(np.array([solute, in_water, ions]), np.array([False, True, False]),
                        np.array([False, False, True]))
    atoms = runs.n_atoms
    written = sum(last - first + 1 for first, last in runs.ranges(config.dynamics.trajectory_selection))
    nucleosomes = len(fibre.dyads)
    shards = brick_grid(np.rint(box * 1000).astype(np.int64), config.solvate).n_bricks
    replicas = _phases_of_replicas(config)
    phases = [phase for one in replicas for phase in one]
    seconds = _seconds(config, nucleosomes, len(fibre.sequence), solute, atoms, phases, threads, speed)
    likely = likely_layouts(config, box, atoms, threads)
    ranks = likely[0].ranks if likely else config.dynamics.ranks
    return Estimate(
        base_pairs=len(fibre.sequence), nucleosomes=nucleosomes, solute_atoms=solute,
        box=tuple(round(float(edge), 1) for edge in box), box_from=source, shape=config.solvate.shape,
        least_extent=tuple(round(float(edge), 3) for edge in least), atoms=atoms, counts=counts,
        trajectory_atoms=written, shards=shards, jobs=-(-shards // JOB_BRICKS),
        replicas=len(replicas),
        memory=_gigabytes(stage_memory(config, nucleosomes, solute, atoms, shards, threads, ranks)),
        # Frames of replicas that exchange are there by replica and by temperature.
        disk=_gigabytes(disk_space(config, nucleosomes, solute, atoms, written, sum(
            phase.frames * (2 * phase.replicas if phase.exchange else 1) for phase in phases),
            2 * (len(replicas) + len(phases)))),
        seconds={name: round(value, 1) for name, value in seconds.items()},
        tune=_sentence(config, likely, threads))


def likely_layouts(config: Settings, box: np.ndarray, atoms: int, threads: int) -> list[Choice]:
    """Ranks and threads of the dynamics with ``dynamics.tune``, fastest first by the model; none where there is nothing
    to choose. Raises BadInputError for more nodes than cores."""
    dynamics, cores = config.dynamics, cores_of_run(threads)
    if not dynamics.tune or nothing_to_choose(dynamics, config.simulate, cores):
        return []
    return [choice for choice, _ in candidates(dynamics, box.tolist(), atoms, cores, nodes_here())]


def _sentence(config: Settings, likely: list[Choice], threads: int) -> str:
    """What ``dynamics.tune`` would do; empty without."""
    if not likely:
        why = nothing_to_choose(config.dynamics, config.simulate, cores_of_run(threads))
        return f"nothing to choose: {why}" if config.dynamics.tune else ""
    first, *others = map(str, likely[:TRIED_LAYOUTS])
    return f"{first} by the model of a step" + (f"; to be measured beside {'; '.join(others)}" if others else "")


def likely_job(machine: Machine, nodes: int, config: Settings, build: Estimate) -> Job:
    """The job that ``dynamics.tune`` would try first on so many whole nodes of a machine."""
    step = step_settings(config.dynamics)
    best, *_ = layouts(build.box, build.atoms, step, nodes * machine.node.cores, nodes,
                       1e9 * nodes * machine.node.memory_gb, machine)
    return Job(machine, nodes, best.ranks // nodes, best.threads)


def _seconds(config: Settings, nucleosomes: int, base_pairs: int, solute: int, atoms: int, phases: list[PlannedPhase],
             threads: int, speed: Speed) -> dict[str, float]:
    """Of the clock, by stage in their order; ``phases`` of all replicas."""
    found = stage_seconds(config, nucleosomes, base_pairs, solute, atoms, threads, speed)
    found["run"] = run_seconds(config, atoms, phases, threads, speed)
    found["report"] = report_seconds(solute, atoms, threads, speed)
    if config.refine.enabled:
        of_beads = plan_phases(refinement_phases(config.refine, config.simulate.temperature))
        found["refine"] = refine_seconds(solute, list(of_beads), threads, speed)
    if config.relax.enabled:
        relaxation = plan_phases(relax_phases(config.relax, config.simulate.temperature))
        found["relax"] = relax_seconds(solute, list(relaxation), threads, speed)
    return {name: found[name] for name in STAGES if name in found}


def cost_on(job: Job, config: Settings, build: Estimate) -> Prediction:
    """What the dynamics of an estimated build costs on a machine. Raises BadInputError when it cannot run there."""
    replicas = _phases_of_replicas(config)
    steps = {kind: sum(phase.steps * phase.replicas for phases in replicas for phase in phases if phase.kind == kind)
             for kind in ("minimise", "dynamics")}
    last = last_dynamics(replicas[0]) or replicas[0][-1]
    return predict(Run(
        edge=build.box, atoms=build.atoms, settings=step_settings(config.dynamics), minimise_steps=steps["minimise"],
        steps=steps["dynamics"], timestep=last.timestep, disk_gb=sum(build.disk.values()),
        frame_gb=FRAME_BYTES_PER_ATOM * build.trajectory_atoms / 1e9,
        frame_period=last.trajectory_period or max(1, last.steps)), job)


def dynamics_seconds(config: Settings, atoms: int, threads: int, speed: Speed = REFERENCE) -> float:
    """Of the clock, for all phases and replicas."""
    return run_seconds(config, atoms, [phase for one in _phases_of_replicas(config) for phase in one], threads, speed)


def _phases_of_replicas(config: Settings) -> list[tuple[PlannedPhase, ...]]:
    """The phases of each replica, as long as they have been made in the output folder."""
    return list(phases_of_replicas(Path(config.output) / "md", config.simulate).values())


def _gigabytes(sizes: dict[str, float]) -> dict[str, float]:
    return {name: round(size / 1e9, 5) for name, size in sizes.items()}


def octamers_of(config: Settings, fibre: Fibre) -> tuple[list[Octamer], np.ndarray | None, str]:
    """The octamer of every nucleosome, equal ones built once, codes (2n,) of modified bases (None: there are none), and
    the note of ``check_modifications``.

    Raises BadInputError for a template, variants, marks or methylation that cannot be built, as the stage `build` does,
    and for a modification that the force field does not describe.
    """
    recipes, modified, note = check_fibre(config, fibre)
    nowhere = np.zeros((0, 3)), np.zeros(0, dtype=bool)
    built = {recipe: build_octamer(recipe, *nowhere) for recipe in set(recipes)}
    return [built[recipe] for recipe in recipes], modified, note


def _solute_size(fibre: Fibre, octamers: list[Octamer], modified: np.ndarray | None,
                 config: Settings) -> tuple[int, int]:
    """Atoms and net formal charge of DNA, histones and other proteins, and of ions at phosphates."""
    names = residue_names()
    index = {name: k for k, name in enumerate(names)}
    sizes = np.array([len(template.atoms) for template in residue_library().values()])
    dna = np.array([index[name] for strand in strands_of(fibre, modified, config) for name in strand])
    residues = np.concatenate([dna, *(octamer.residue_template for octamer in octamers)])
    phosphates = sum("P" in residue_library()[names[k]].index for k in dna.tolist())
    bound = sizes_and_charge(wanted_ions(config.solvate, phosphates), config.solvate)
    return int(sizes[residues].sum()) + bound[0], int(formal_charges()[residues].sum()) + bound[1]


def strands_of(fibre: Fibre, modified: np.ndarray | None, config: Settings) -> list[list[str]]:
    """Residues of the library of both strands, each from its 5' end; ``modified`` as in ``Parts``."""
    partner = "".join(COMPLEMENT[base] for base in reversed(fibre.sequence))
    build = config.build
    five, three = ("", "") if config.locus.circular else (PHOSPHATE if build.five_prime == "phosphate" else "5",
                                                          PHOSPHATE_3 if build.three_prime == "phosphate" else "3")
    found = [[f"D{bases[0]}{five}", *(f"D{base}" for base in bases[1:-1]), f"D{bases[-1]}{three}"]
             for bases in (fibre.sequence, partner)]
    if modified is not None:
        for k in np.flatnonzero(modified):
            strand, place = divmod(int(k), len(fibre.sequence))
            found[strand][place] = residue_of_code(int(modified[k])) + found[strand][place][2:]
    return found


def _solvent_counts(config: Settings, box: np.ndarray, solute: int, charge: int) -> dict[str, int]:
    """Waters and ions of a box (3,) angstrom."""
    tile = water_tile()
    free = float((box - GAP_AT_FACES).prod()) - SOLUTE_VOLUME * solute
    waters = max(0, round(free * tile.n_molecules / (tile.edge / 1000) ** 3))
    ions = ion_counts(charge, waters, config.solvate)
    return {"water": max(0, waters - sum(ions.values())), **ions}


def _counts_of_shards(config: Settings, box: np.ndarray, solute: int, charge: int) -> dict[str, int] | None:
    """Waters and ions of the shards in the output folder; None where they are not those of this box, (3,) or (3, 3),
    and salt."""
    try:
        manifest = Manifest.read(Path(config.output) / "shards")
    except IntegrityError:
        return None
    counts = {key: count for key, count in manifest.counts.items() if key != "solute"}
    ions = ion_counts(charge, sum(counts.values()), config.solvate)
    fits = manifest.water == config.solvate.water and manifest.counts["solute"] == solute and \
        bool((np.abs(vectors_of(manifest.vectors) - vectors_of(box)) < BOX_TOLERANCE).all())
    return counts if fits and all(counts[key] == count for key, count in ions.items()) else None
