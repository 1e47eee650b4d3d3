"""Memory and disk that stages need, bytes.

Memory is the largest that a stage's processes have together, measured with benchmarks/plan_estimates.py,
relax_stage.py, bead_refinement.py, engine_memory.py and export_memory.py. Small loci need what the programs take.
"""

from chromabuild.base.settings import Settings

STAGES = ("scaffold", "build", "refine", "clash", "relax", "solvate", "topology", "run", "report")
OPENMM_BYTES_PER_ATOM = 1900
"""Topology, System and Context of 566,547 atoms in one process, beside its bricks."""
GPU_BYTES_PER_ATOM = {"single": 1250, "mixed": 1250, "double": 1500}
"""By precision, mixed as an H100 has it (benchmarks/gpu_speed.py); single has less, and the buffers of double are 1.2
times as large (benchmarks/gpu_memory.py)."""
GPU_BYTES = 6e8
"""What the driver of a GPU keeps beside them: a context and compiled kernels."""
ENGINE_BYTES_PER_SOLUTE_ATOM = 450
"""Beyond what an atom of water takes: bonded terms and exclusions."""
TABULATED_FROM, FIELD_BYTES = 8, 6.8e7
"""Nucleosomes from which the field of a core is tabulated (mesoscale.field), and the table."""
RELAX_BYTES_PER_ATOM = 550
RELAX_RANK_BYTES, RELAX_PROCESS_BYTES = 4e7, 2.3e8
"""What a rank of the engine takes beside its atoms, and the process that starts it, which has made the topology."""
REFINE_BYTES_PER_ATOM, REFINE_BYTES = 800, 2.5e8
"""Of the solute whose beads move, and what the process and its rank take beside it."""
RUN_PROCESS_BYTES = 1.6e8
"""The process that starts the ranks of the dynamics, and the launcher."""
SHARD_PROCESS_BYTES, SHARD_BYTES_PER_ATOM = 1.31e8, 0.4
BRICK_BYTES_PER_ATOM, POTENTIAL_BYTES = 33, 6e7
"""Of each process that writes shards, for the brick at hand, and for ions by the potential of the solute."""
BRICKS_TO_SHARE = 16
"""Processes are started where each has so many bricks to write."""
REPORT_BYTES, PICTURES, PICTURE_BYTES = 3.75e8, 3, 1.9e8
"""Of a report whose pictures are drawn one after the other, how many it has, and what each takes that is drawn beside
another."""
PICTURE_BYTES_PER_SOLUTE_ATOM, PICTURE_BYTES_PER_WATER, DRAWN_WATERS = 90, 60, 3e6
"""And of the atoms that are drawn: of more waters than so many (report.figures.WATER_LIMIT) a part."""
EXPORT_BYTES = {"gromacs": (2.12e8, 530), "openmm": (2.4e8, 3300), "amber": (2.0e8, 860), "namd": (2.0e8, 860),
                "genesis": (2.0e8, 860), "lammps": (1.93e8, 450), "structure": (1.48e8, 120)}
"""Of an export, and for each atom of the solute; the box is streamed."""
ANALYSIS_BYTES, ANALYSIS_BYTES_PER_ATOM = 1.38e8, 400
"""Of a process that analyses a trajectory, and for each atom of a frame: names and bonds in MDAnalysis."""
TOPOLOGY_FILE_BYTES_PER_ATOM = 209
"""Of the solute, in topology.h5."""
PSF_BYTES_PER_SOLUTE_ATOM, PSF_BYTES_PER_ATOM = 266, 112
"""In topology.psf, with and without angles and dihedrals."""
PAGES_BYTES = 1.9e6
"""report.html and clash_report.html of a locus of some nucleosomes."""
RELAX_DISK_BYTES_PER_ATOM = 600
"""Bricks, force field, restarts and checkpoints, which are removed in the end."""
FRAME_BYTES_PER_ATOM = 12
RESTART_BYTES_PER_ATOM = 56
"""A phase leaves restart files and a checkpoint; there is a start, and a checkpoint that replaces another."""


def stage_memory(config: Settings, nucleosomes: int, solute: int, atoms: int, bricks: int, threads: int,
                 ranks: int) -> dict[str, float]:
    """By stage; ``solute`` and ``atoms`` count those of the solute and of the system. ``ranks``: of the dynamics."""
    from chromabuild.scaling.measured import rank_memory

    dynamics = config.dynamics
    writers = min(threads, bricks // BRICKS_TO_SHARE)
    found = preparation_memory(nucleosomes, solute, atoms, 1 + (writers if writers > 1 else 0),
                               shard_process_memory(config, atoms / max(1, bricks)))
    if config.refine.enabled:
        found["refine"] = REFINE_BYTES_PER_ATOM * solute + REFINE_BYTES
    if config.relax.enabled:
        found["relax"] = relax_memory(solute, dynamics.ranks)
    found["run"] = (OPENMM_BYTES_PER_ATOM * atoms if dynamics.engine == "openmm" else RUN_PROCESS_BYTES
                    + ENGINE_BYTES_PER_SOLUTE_ATOM * solute + ranks * rank_memory(atoms / ranks))
    found["report"] = report_memory(solute, (atoms - solute) / 3, threads)
    return {name: found[name] for name in STAGES if name in found}


def report_memory(solute: float, waters: float, threads: int) -> float:
    """Of the report, whose pictures are drawn on ``threads``."""
    return (REPORT_BYTES + PICTURE_BYTES * (min(threads, PICTURES) - 1) + PICTURE_BYTES_PER_SOLUTE_ATOM * solute
            + PICTURE_BYTES_PER_WATER * min(waters, DRAWN_WATERS))


def export_memory(kind: str, solute: int) -> float:
    """Of an export to a program, or of a structure file."""
    base, each = EXPORT_BYTES[kind]
    return base + each * solute


def analysis_memory(atoms: int, processes: int) -> float:
    """Of the analysis of a trajectory whose frames have so many atoms, by so many processes beside the first."""
    return (ANALYSIS_BYTES + ANALYSIS_BYTES_PER_ATOM * atoms) * (1 + processes)


def gpu_bytes(atoms: int, precision: str) -> float:
    """Memory of a GPU that OpenMM takes."""
    return GPU_BYTES + GPU_BYTES_PER_ATOM[precision] * atoms


def shard_process_memory(config: Settings, atoms: float) -> float:
    """Of a process that writes shards of so many atoms."""
    by_potential = config.solvate.ion_placement == "debye-hueckel"
    return SHARD_PROCESS_BYTES + BRICK_BYTES_PER_ATOM * atoms + POTENTIAL_BYTES * by_potential


def preparation_memory(nucleosomes: int, solute: int, atoms: int, processes: int, each: float) -> dict[str, float]:
    """Of the stages before the dynamics; ``processes``: those of the stage `solvate`, which take ``each`` so much."""
    return {
        "scaffold": 1.32e8 + 4e5 * nucleosomes + FIELD_BYTES * (nucleosomes >= TABULATED_FROM),
        "build": max(2.15e8 + 90 * solute, 1.35e8 + 130 * solute),
        "clash": max(1.26e8 + 110 * solute, 1.0e8 + 200 * solute),
        "solvate": each * processes + SHARD_BYTES_PER_ATOM * atoms,
        "topology": max(2.87e8, 2.45e8 + 400 * solute) if nucleosomes else 2.06e8 + 400 * solute}


def relax_memory(atoms: int, ranks: int) -> float:
    """Bytes that the processes of a relaxation of a solute without its water take together."""
    return RELAX_BYTES_PER_ATOM * atoms + RELAX_RANK_BYTES * ranks + RELAX_PROCESS_BYTES


def disk_space(config: Settings, nucleosomes: int, solute: int, atoms: int, trajectory_atoms: int, frames: int,
               restarts: int) -> dict[str, float]:
    """By what lies there. ``frames`` of all phases; ``restarts``: how often the state of all atoms is kept."""
    from chromabuild.solvate import disk_needed

    is_relaxed = config.relax.enabled
    solutes = 2 + config.refine.enabled + is_relaxed
    solute_in_psf = min(solute, trajectory_atoms)
    return {
        "solute": solutes * 12.4 * solute,
        **({"relax": RELAX_DISK_BYTES_PER_ATOM * solute} if is_relaxed else {}),
        "shards": disk_needed(atoms, solute, config.solvate.compress),
        "topology": (6.2e6 if nucleosomes else 3.5e6) + TOPOLOGY_FILE_BYTES_PER_ATOM * solute
        + PSF_BYTES_PER_SOLUTE_ATOM * solute_in_psf + PSF_BYTES_PER_ATOM * (trajectory_atoms - solute_in_psf),
        "pages": PAGES_BYTES,
        "trajectory": FRAME_BYTES_PER_ATOM * trajectory_atoms * frames,
        "restarts": RESTART_BYTES_PER_ATOM * atoms * restarts}
