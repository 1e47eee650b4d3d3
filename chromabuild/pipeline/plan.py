"""What a build will need: atoms, box, ions, memory, disk, shards, jobs and time, before anything is written.

Solute atoms are exact. The box is that of the solute when solute_clean.h5 or solute.h5 is there, or of the settings;
from scaffold.h5, and from a fold in memory as that of the build, atoms are right within a tenth; before that the box is
a guess. Given the box, waters and ions are right within 1 %, disk within 8 %. Once shards of these settings are there,
counts are exact. Memory of the dynamics on one rank is right within a tenth (the law of ``scaling.measured`` and the
bonded terms of the solute), on several within a third; that of `build`, `clash` and `topology` within 15 %. Times were
measured on two cores of one machine.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.errors import IntegrityError
from chromabuild.base.settings import Settings
from chromabuild.build.fibre import relaxed_path
from chromabuild.build.modified_bases import residue_of_code
from chromabuild.dna.curve import circular_path
from chromabuild.dna.sequence import base_index
from chromabuild.forcefield.molecule_runs import MoleculeRuns
from chromabuild.genome.locus import load_locus
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.nucleosome.recipe import build_octamer
from chromabuild.pipeline.parameters import check_fibre
from chromabuild.pipeline.relaxing import CLEAN, RELAXED
from chromabuild.proteins.complex import Complex
from chromabuild.proteins.placing import complexes_of, fibre_with_proteins
from chromabuild.scaling.measured import StepSettings, rank_memory
from chromabuild.scaling.prediction import Job, Prediction, Run, predict
from chromabuild.shards.manifest import Manifest
from chromabuild.simulate.protocol import PlannedPhase, last_dynamics, plan_phases
from chromabuild.simulate.relaxation import relax_phases
from chromabuild.simulate.replicas import phases_of_replicas
from chromabuild.solvate import brick_grid, disk_needed
from chromabuild.solvate.ions import formal_charges, ion_counts
from chromabuild.solvate.water import GAP_AT_FACES, water_tile
from mesoscale.cores import crystal_path
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, body_points, build_chain, straight_conformation
from mesoscale.scaffold import NM, Scaffold, box_axes

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
DNA_RADIUS = 10.4
"""Angstrom from the axis of the double helix to its outermost hydrogens."""
BASE_PAIR_HALF = 3.0
"""Angstrom from the middle plane of a base pair to the outermost hydrogens of its sugars, along the axis."""
TAIL_MARGIN = 20.0
"""Angstrom that histone tails reach beyond the path of the DNA, where octamers are not placed yet."""
CORE_REACH = 40.0
"""Angstrom that nucleosomes reach out of the sphere in which their centres are kept: 148 of them in one of 36 nm are
799 x 780 x 774 angstrom."""
SOLUTE_VOLUME = 9.7
"""Cubic angstrom of water that an atom of DNA or protein displaces, with the closest distances of solvate/plan.py."""
JOB_BRICKS = 128
"""Shards a batch job of the workflow makes."""
FRAME_BYTES_PER_ATOM = 12
RESTART_BYTES_PER_ATOM = 56
"""A phase leaves restart files and a checkpoint; there is a start, and a checkpoint that replaces another."""
BOX_TOLERANCE = 0.002
"""Angstrom: files hold thousandths."""

# Measured on the demo and on benchmarks/billion.py with two threads.
PROCESS_BYTES = 1.35e8
"""Of a stage before any atom."""
BUILD_BYTES_PER_ATOM = 130
"""1 to 468 nucleosomes, 26,000 to 12.6 million atoms of solute: within 5 %."""
CLASH_BYTES_PER_ATOM = 200
"""1, 4 and 12 nucleosomes: within 11 %."""
FORCE_FIELD_BYTES = 2.35e8
TOPOLOGY_BYTES_PER_ATOM = 365
"""Of the solute; 1 to 148 nucleosomes, within 9 %."""
TOPOLOGY_FILE_BYTES, TOPOLOGY_FILE_BYTES_PER_ATOM = 6.6e6, 183
"""Of the solute, in topology.h5."""
PSF_BYTES_PER_ATOM = 142
"""Of the trajectory, in topology.psf."""
PAGES_BYTES = 1.9e6
"""report.html and clash_report.html of a locus of some nucleosomes."""
ENGINE_BYTES_PER_SOLUTE_ATOM = 450
"""Beyond what an atom of water takes: bonded terms and exclusions."""
OPENMM_BYTES_PER_ATOM = 1900
"""Topology, System and Context of 566,547 atoms in one process, beside its bricks."""
RELAX_BYTES_PER_ATOM = 500
RELAX_RANK_BYTES, RELAX_PROCESS_BYTES = 4e7, 1.6e8
"""What a rank of the engine takes beside its atoms, and the process that starts it."""
RELAX_DISK_BYTES_PER_ATOM = 600
"""Bricks, force field, restarts and checkpoints, which are removed in the end."""
SHARD_PROCESS_BYTES = 1.5e8
SECONDS_PER_SWEEP_AND_NUCLEOSOME = 1.2e-3
FOLDING_SECONDS_PER_NUCLEOSOME = 0.2
SQUEEZING_SECONDS_PER_NUCLEOSOME = 2.0
BUILD_SECONDS, BUILD_SECONDS_PER_ATOM = 0.37, 3.5e-6
CLASH_SECONDS, CLASH_ATOMS, CLASH_POWER = 0.33, 26_000, 0.8
"""One nucleosome, and how many take longer: 1, 4 and 468 within a third."""
SOLVATE_SECONDS, SOLVATE_SECONDS_PER_ATOM = 0.22, 6.9e-7
TOPOLOGY_SECONDS, TOPOLOGY_SECONDS_PER_ATOM = 4.9, 1.1e-5
"""The force field is read first."""
STEP_SECONDS_PER_ATOM = 1.5e-6
RELAX_STEP_SECONDS_PER_ATOM = 1e-6


@dataclass(frozen=True)
class Estimate:
    """What a build will need. Lengths in angstrom, disk and memory in gigabytes, times in seconds."""

    base_pairs: int
    nucleosomes: int
    solute_atoms: int
    box: tuple[float, float, float]
    box_from: str
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

    def as_dict(self) -> dict:
        """Plain data for JSON."""
        return asdict(self)

    def locus_lines(self) -> list[str]:
        """What is built, for people."""
        edges = " x ".join(f"{edge:.0f}" for edge in self.box)
        solvent = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return [f"locus: {self.base_pairs} base pairs, {self.nucleosomes} nucleosomes",
                f"solute: {self.solute_atoms} atoms", f"box: {edges} angstrom (from {self.box_from})",
                f"solvated: about {self.atoms:.4g} atoms with {solvent}",
                f"trajectory: {self.trajectory_atoms} atoms a frame",
                f"shards: {self.shards}, on a cluster in {self.jobs} jobs",
                *([f"replicas: {self.replicas}, all of them in disk and time"] if self.replicas > 1 else [])]

    def lines(self) -> list[str]:
        """For people."""
        return [*self.locus_lines(),
                *(f"memory, {name}: about {value:.1f} GB" for name, value in self.memory.items()),
                *(f"disk, {name}: about {value:.2f} GB" for name, value in self.disk.items()),
                f"disk in all: about {sum(self.disk.values()):.2f} GB",
                *(f"time, {name}: about {_span(value)}" for name, value in self.seconds.items()),
                f"time in all: about {_span(sum(self.seconds.values()))}"]


def estimate(config: Settings, threads: int, folded: Scaffold | None = None, stale: Collection[str] = ()) -> Estimate:
    """Estimate a build from its locus and settings. Raises BadInputError when the locus cannot be read.

    ``folded``: the fold that the build will have, where it is known; ``stale``: files of the output folder that the
    build will replace, which tell nothing.
    """
    fibre = fibre_with_proteins(load_locus(config.locus, config.seed), config)
    octamers, modified = octamers_of(config, fibre)
    complexes = complexes_of(fibre.proteins, config)
    proteins = [one.protein for one in complexes]
    solute, charge = _solute_size(fibre, [*octamers, *proteins], modified, config.locus.circular)
    if config.solvate.box:
        box, source = np.array(config.solvate.box), "the settings"
    else:
        extent, source = _extent(config, fibre, octamers, complexes, folded, stale)
        box = extent + 2 * config.solvate.padding
    counts = _counts_of_shards(config, box, solute, charge) or _solvent_counts(config, box, solute, charge)
    ions = sum(count for key, count in counts.items() if key != "water")
    in_water = WATER_MODELS[config.solvate.water].n_atoms * counts["water"]
    runs = MoleculeRuns(np.array([solute, in_water, ions]), np.array([False, True, False]),
                        np.array([False, False, True]))
    atoms = runs.n_atoms
    written = sum(last - first + 1 for first, last in runs.ranges(config.dynamics.trajectory_selection))
    dynamics = config.dynamics
    shards = brick_grid(np.rint(box * 1000).astype(np.int64), config.solvate).n_bricks
    share = 2 / threads
    replicas = _phases_of_replicas(config)
    phases = [phase for one in replicas for phase in one]
    is_relaxed = config.relax.enabled
    relaxation = plan_phases(relax_phases(config.relax, config.simulate.temperature)) if is_relaxed else ()
    return Estimate(
        base_pairs=len(fibre.sequence), nucleosomes=len(fibre.dyads), solute_atoms=solute,
        box=tuple(round(float(edge), 1) for edge in box), box_from=source,
        atoms=atoms, counts=counts, trajectory_atoms=written, shards=shards, jobs=-(-shards // JOB_BRICKS),
        replicas=len(replicas),
        memory=_gigabytes({
            "build": PROCESS_BYTES + BUILD_BYTES_PER_ATOM * solute,
            "clash": PROCESS_BYTES + CLASH_BYTES_PER_ATOM * solute,
            **({"relax": relax_memory(solute, dynamics.ranks)} if is_relaxed else {}),
            "solvate": SHARD_PROCESS_BYTES * threads + 0.25 * atoms,
            "topology": FORCE_FIELD_BYTES + TOPOLOGY_BYTES_PER_ATOM * solute,
            "run": OPENMM_BYTES_PER_ATOM * atoms if dynamics.engine == "openmm" else
            ENGINE_BYTES_PER_SOLUTE_ATOM * solute + dynamics.ranks * rank_memory(atoms / dynamics.ranks)}),
        disk=_gigabytes({
            "solute": (3 if is_relaxed else 2) * 12.2 * solute,
            **({"relax": RELAX_DISK_BYTES_PER_ATOM * solute} if is_relaxed else {}),
            "shards": disk_needed(atoms, solute, config.solvate.compress),
            "topology": TOPOLOGY_FILE_BYTES + TOPOLOGY_FILE_BYTES_PER_ATOM * solute + PSF_BYTES_PER_ATOM * written,
            "pages": PAGES_BYTES,
            # Frames of replicas that exchange are there by replica and by temperature.
            "trajectory": FRAME_BYTES_PER_ATOM * written * sum(
                phase.frames * (2 * phase.replicas if phase.exchange else 1) for phase in phases),
            "restarts": RESTART_BYTES_PER_ATOM * atoms * 2 * (len(replicas) + len(phases))}),
        seconds={name: round(value, 1) for name, value in {
            "scaffold": _folding_seconds(config, len(fibre.dyads)),
            "build": BUILD_SECONDS + BUILD_SECONDS_PER_ATOM * solute * share,
            "clash": CLASH_SECONDS * (solute / CLASH_ATOMS) ** CLASH_POWER * share,
            **({"relax": RELAX_STEP_SECONDS_PER_ATOM * solute * sum(phase.steps for phase in relaxation) * share}
               if is_relaxed else {}),
            "solvate": SOLVATE_SECONDS + SOLVATE_SECONDS_PER_ATOM * atoms * share,
            "topology": TOPOLOGY_SECONDS + TOPOLOGY_SECONDS_PER_ATOM * solute,
            "run": STEP_SECONDS_PER_ATOM * atoms * share * sum(
                phase.steps * phase.replicas for phase in phases)}.items()})


def _folding_seconds(config: Settings, nucleosomes: int) -> float:
    """Of the stage `scaffold`; one nucleosome has nothing to fold."""
    each = SECONDS_PER_SWEEP_AND_NUCLEOSOME * config.scaffold.sweeps
    if nucleosomes > 1:
        squeezed = config.scaffold.choose == "smallest-box"
        each += FOLDING_SECONDS_PER_NUCLEOSOME + SQUEEZING_SECONDS_PER_NUCLEOSOME * squeezed
    return nucleosomes * each


def cost_on(job: Job, config: Settings, build: Estimate) -> Prediction:
    """What the dynamics of an estimated build costs on a machine. Raises BadInputError when it cannot run there."""
    dynamics = config.dynamics
    settings = StepSettings(dynamics.cutoffs.cutoff, dynamics.cutoffs.cutoff + dynamics.pairlist_buffer,
                            dynamics.pme_spline_order, dynamics.pme_spacing)
    replicas = _phases_of_replicas(config)
    steps = {kind: sum(phase.steps * phase.replicas for phases in replicas for phase in phases if phase.kind == kind)
             for kind in ("minimise", "dynamics")}
    last = last_dynamics(replicas[0]) or replicas[0][-1]
    return predict(Run(
        edge=build.box, atoms=build.atoms, settings=settings, minimise_steps=steps["minimise"],
        steps=steps["dynamics"], timestep=last.timestep, disk_gb=sum(build.disk.values()),
        frame_gb=FRAME_BYTES_PER_ATOM * build.trajectory_atoms / 1e9,
        frame_period=last.trajectory_period or max(1, last.steps)), job)


def relax_memory(atoms: int, ranks: int) -> float:
    """Bytes that the processes of a relaxation of a solute without its water take together."""
    return RELAX_BYTES_PER_ATOM * atoms + RELAX_RANK_BYTES * ranks + RELAX_PROCESS_BYTES


def _phases_of_replicas(config: Settings) -> list[tuple[PlannedPhase, ...]]:
    """The phases of each replica, as long as they have been made in the output folder."""
    return list(phases_of_replicas(Path(config.output) / "md", config.simulate).values())


def _gigabytes(sizes: dict[str, float]) -> dict[str, float]:
    return {name: round(size / 1e9, 3) for name, size in sizes.items()}


def octamers_of(config: Settings, fibre: Fibre) -> tuple[list[Octamer], np.ndarray | None]:
    """The octamer of every nucleosome, equal ones built once, and codes (2n,) of modified bases (None: there are none).

    Raises BadInputError for a template, variants, marks or methylation that cannot be built, as the stage `build` does,
    and for a modification that the force field does not describe.
    """
    recipes, modified, _ = check_fibre(config, fibre)
    nowhere = np.zeros((0, 3)), np.zeros(0, dtype=bool)
    built = {recipe: build_octamer(recipe, *nowhere) for recipe in set(recipes)}
    return [built[recipe] for recipe in recipes], modified


def _solute_size(fibre: Fibre, octamers: list[Octamer], modified: np.ndarray | None,
                 is_circular: bool = False) -> tuple[int, int]:
    """Atoms and net formal charge of DNA, histones and other proteins."""
    names = residue_names()
    strand = fibre.sequence
    partner = "".join(COMPLEMENT[base] for base in reversed(strand))
    five, three = ("", "") if is_circular else ("5", "3")
    residues = [name for bases in (strand, partner)
                for name in (f"D{bases[0]}{five}", *(f"D{base}" for base in bases[1:-1]), f"D{bases[-1]}{three}")]
    if modified is not None:
        for k in np.flatnonzero(modified):
            residues[k] = residue_of_code(int(modified[k])) + residues[k][2:]
    index = {name: k for k, name in enumerate(names)}
    sizes = np.array([len(template.atoms) for template in residue_library().values()])
    dna = np.array([index[name] for name in residues])
    residues = np.concatenate([dna, *(octamer.residue_template for octamer in octamers)])
    return int(sizes[residues].sum()), int(formal_charges()[residues].sum())


def _solvent_counts(config: Settings, box: np.ndarray, solute: int, charge: int) -> dict[str, int]:
    """Waters and ions of a box (3,) angstrom."""
    tile = water_tile()
    free = float((box - GAP_AT_FACES).prod()) - SOLUTE_VOLUME * solute
    waters = max(0, round(free * tile.n_molecules / (tile.edge / 1000) ** 3))
    ions = ion_counts(charge, waters, config.solvate)
    return {"water": max(0, waters - sum(ions.values())), **ions}


def _counts_of_shards(config: Settings, box: np.ndarray, solute: int, charge: int) -> dict[str, int] | None:
    """Waters and ions of the shards in the output folder; None where they are not those of this box and salt."""
    try:
        manifest = Manifest.read(Path(config.output) / "shards")
    except IntegrityError:
        return None
    counts = {key: count for key, count in manifest.counts.items() if key != "solute"}
    ions = ion_counts(charge, sum(counts.values()), config.solvate)
    fits = manifest.water == config.solvate.water and manifest.counts["solute"] == solute and \
        bool((np.abs(np.array(manifest.box) - box) < BOX_TOLERANCE).all())
    return counts if fits and all(counts[key] == count for key, count in ions.items()) else None


def size_is_known(config: Settings, scaffold_changes: bool) -> bool:
    """Whether the box follows from the settings or from files, rather than from a guess at the fibre."""
    if config.solvate.box or config.scaffold.container:
        return True
    names = ("scaffold.h5", "solute.h5", "solute_clean.h5")
    return not scaffold_changes and any((Path(config.output) / name).is_file() for name in names)


def _extent(config: Settings, fibre: Fibre, octamers: list[Octamer], complexes: list[Complex],
            folded: Scaffold | None, stale: Collection[str]) -> tuple[np.ndarray, str]:
    """Edges (3,) of the smallest upright box around the solute, angstrom, and where they were taken from."""
    folder = Path(config.output)
    for name in ((RELAXED,) if config.relax.enabled else ()) + (CLEAN, "solute.h5"):
        if folded is None and name not in stale and (folder / name).is_file():
            solute = Solute.read(folder / name)
            return np.ptp(solute.position, axis=0).astype(float), name
    is_there = "scaffold.h5" not in stale and (folder / "scaffold.h5").is_file()
    if folded is not None or is_there:
        scaffold = folded or Scaffold.read(folder / "scaffold.h5")
        placed = scaffold
        if folded is not None and not folded.circular:
            placed = relaxed_path(folded, base_index(folded.base), config.build, octamers, complexes=complexes)
            octamers = [*octamers, *(one.protein for one in complexes)]
        dna, along = placed.origin, np.abs(placed.frame[:, :, 2])  # a base pair is a disc
        reach = DNA_RADIUS * np.sqrt(np.maximum(0.0, 1 - along**2)) + BASE_PAIR_HALF * along
        bodies = np.concatenate([dna - reach, dna + reach, *(
            origin + octamer.position @ frame.T for octamer, origin, frame
            in zip(octamers, placed.core_origin, placed.core_frame, strict=True))])
        return np.ptp(bodies, axis=0), "a fold like that of the build" if folded else "scaffold.h5"
    if config.locus.circular:
        circle, _ = circular_path(len(fibre.sequence), config.locus.linking_number)
        return np.ptp(circle, axis=0) + 2 * DNA_RADIUS, "the circle"
    if config.scaffold.container:
        return 10 * np.array(config.scaffold.container) + 2 * TAIL_MARGIN, "scaffold.container"
    parameters = Parameters(temperature=config.scaffold.temperature, salt=config.scaffold.salt)
    chain = build_chain(fibre, parameters)
    position, frame = straight_conformation(chain)
    path, _ = crystal_path(fibre.wrapped_length)
    dna = np.concatenate([position[chain.beads], *(
        position[p] + path @ frame[p].T for p in chain.cores if chain.shape_of(p).is_nucleosome)])
    turn = box_axes(np.concatenate([dna, body_points(chain, position, frame)]))
    straight = np.ptp(dna @ turn, axis=0) * NM + 2 * TAIL_MARGIN
    radius = config.scaffold.confinement_radius
    sphere = 20 * radius + 2 * CORE_REACH if radius else np.inf
    if straight.max() <= sphere:
        return straight, "the fibre with straight linkers"
    return np.minimum(straight, sphere), "scaffold.confinement_radius"


def _span(seconds: float) -> str:
    """A time with the unit that suits it."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
