"""OpenMM on the GPU of this machine, run by chromabuild's own engine openmm: ns a day, memory, and forces.

Systems: a box of TIP3P water, a nucleosome (1x601:177), an array of twelve (12x601:197, folded into its smallest box)
and the demo, built by the command line in WORK unless they are there. Settings are the defaults (ff14SB, OL15, cutoff
9 angstrom, grid of 1.2 angstrom), constant pressure, hydrogens of the solute three times as heavy. Each system is
minimised, then runs at 2 fs and at 4 fs; a step costs what the engine notes in the record of the phase,
output included. Memory is what the driver has given away at most while the system runs, over what it had before;
"busy" is the largest share of a second in which the driver saw a kernel at work: where it is low, the processor does
not start kernels fast enough. What is measured is kept after each row, and forces come last, since a GPU may be lent
for minutes.

Forces are those at the end, of the whole system, beside those of chromamd in double precision with the same cutoffs,
alpha and grid: root mean square of the difference over that of the force. Where chromamd cannot be started, there is no
such table.
"""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import openmm
from common.command import Benchmark
from common.engine import tiled_water, write_system
from openmm import unit

from chromabuild.base.errors import ResourceError
from chromabuild.base.settings import DynamicsSection, Settings, SimulateSection
from chromabuild.forcefield.topology_file import Topology
from chromabuild.pipeline.needs import gpu_bytes
from chromabuild.shards import read_shards
from chromabuild.simulate import chromamd, openmm_engine
from chromabuild.simulate.openmm_engine import SPLINE_ORDER, nonbonded_options, system_from_topology
from chromabuild.simulate.openmm_platform import ChosenPlatform, chosen_platform, context_on, device_of
from chromabuild.simulate.protocol import Task, plan_phases, run_phases

LOCI = {"nucleosome": ["--array", "1x601:177"],
        "12-mer": ["--array", "12x601:197", "--set", "scaffold.choose=smallest-box"],
        "demo": ["--example", "demo"]}
TILES = {"water": 4, "water of one tile": 1}
SECONDS_A_DAY = 86400
FORCE_UNIT = unit.kilocalorie_per_mole / unit.angstrom


def built(work: Path, name: str) -> Path:
    """A folder with ``topology.h5`` and ``shards/bricks.txt``."""
    folder = work / name.replace(" ", "_")
    if name in TILES:
        tiled_water(folder, TILES[name])
        (folder / "shards").mkdir(exist_ok=True)
        for file in [folder / "bricks.txt", *folder.glob("brick_*")]:
            file.rename(folder / "shards" / file.name)
        return folder
    if not (folder / "results" / "topology.h5").exists():
        for command in (["init", folder, *LOCI[name]], ["all", "-c", folder / "locus.yaml", "--until", "topology"]):
            subprocess.run([sys.executable, "-m", "chromabuild.cli", *map(str, command)], check=True,
                           stdout=subprocess.DEVNULL)
    return folder / "results"


class Driver:
    """What the driver of an NVIDIA GPU tells during the block; None where no driver tells."""

    def __enter__(self) -> "Driver":
        self._before, self._most, self._over = _told(), np.zeros(2), threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        while self._before is not None and not self._over.wait(1.0):
            told = _told()
            self._most = self._most if told is None else np.maximum(self._most, told)

    @property
    def memory(self) -> float | None:
        """The most that it has given away, over what it had before, GB."""
        return None if self._before is None else self._most[0] - self._before[0]

    @property
    def busy(self) -> float | None:
        """The largest share of a second with a kernel at work, per cent."""
        return None if self._before is None else self._most[1]


def _told() -> np.ndarray | None:
    """Memory in use, GB, and share of time at work, per cent."""
    query = ["nvidia-smi", "--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20).stdout
        memory, busy = map(float, told.splitlines()[0].split(","))
        return np.array([memory * 2**20 / 1e9, busy])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def phases_of(steps: int) -> list[dict]:
    """Minimisation, and the two that are timed."""
    common = {"steps": steps, "ensemble": "NPT", "hydrogen_mass_factor": 3.0, "output_period": max(1, steps // 5)}
    return [{"name": "minimise", "kind": "minimise", "steps": 200},
            {**common, "name": "two", "timestep": 2.0}, {**common, "name": "four", "timestep": 4.0}]


def planned(work: Path, name: str, atom_steps: float) -> tuple[Path, Path, int, SimulateSection]:
    """Where a system is and where it runs, its atoms, and its phases."""
    results = built(work, name)
    atoms = len(read_shards(results / "shards" / "bricks.txt")[1])
    simulate = SimulateSection(protocol=None, phases=phases_of(max(50, round(atom_steps / atoms))))
    return results, work / "runs" / name.replace(" ", "_"), atoms, simulate


def forces(context: openmm.Context, position: np.ndarray) -> np.ndarray:
    """(n, 3) kcal/mol/angstrom at ``position`` (n, 3), angstrom."""
    context.setPositions(position / 10)
    return context.getState(getForces=True).getForces(asNumpy=True).value_in_unit(FORCE_UNIT)


def compare(folder: Path, results: Path, state: Path, dynamics: DynamicsSection, threads: int) -> dict[str, float]:
    """By precision the rms difference of OpenMM's forces from chromamd's over the rms force, at a saved state."""
    saved = openmm.XmlSerializer.deserialize(state.read_text())
    box = saved.getPeriodicBoxVectors(asNumpy=True).value_in_unit(unit.angstrom).diagonal()
    position = saved.getPositions(asNumpy=True).value_in_unit(unit.angstrom).round(3)
    topology = Topology.read(results / "topology.h5")
    options = nonbonded_options(dynamics, box)
    write_system(folder, topology, position, box)
    control = folder / "energy.inp"
    grid = {f"pme_ngrid_{axis}": n for axis, n in zip("xyz", options.grid, strict=True)}
    chromamd.write_control(control, {
        "INPUT": {"topologyfile": folder / "topology.h5", "shardfile": folder / "bricks.txt"},
        "OUTPUT": {"forcefile": folder / "energy.force"},
        "ENERGY": chromamd.energy_section(dynamics) | grid | {"pme_alpha": options.alpha, "pme_nspline": SPLINE_ORDER}})
    chromamd.launch("energy", control, 1, "double", threads=threads)
    ours = chromamd.read_forces(folder / "energy.force")
    system = system_from_topology(topology, box, options, rigid=False, by_term=False)
    found = {}
    for precision in ("mixed", "double"):
        platform = chosen_platform(dynamics.model_copy(update={"platform_precision": precision}))
        context = context_on(platform, system, openmm.VerletIntegrator(0.001))
        apart = forces(context, position) - ours
        found[precision] = float(np.sqrt((apart**2).mean() / (ours**2).mean()))
        worst = int((apart**2).sum(axis=1).argmax())
        print(f"{precision}: farthest apart at atom {worst + 1}, at {position[worst]}: {ours[worst]} and "
              f"{ours[worst] + apart[worst]} kcal/mol/angstrom", flush=True)
        del context
    return found


def main() -> None:
    """Build, run and compare every system."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--systems", nargs="+", choices=(*TILES, *LOCI), default=["water", "nucleosome", "demo", "12-mer"])
    add("--platform", choices=("auto", "CUDA", "HIP", "OpenCL", "CPU"), default="auto")
    add("--atom-steps", type=float, default=1.5e9, help="atoms times steps of each timed phase (1.5e9)")
    add("--threads", type=int, default=4, help="of chromamd, for its forces (4)")
    add("--work", type=Path, default=Path("build/gpu_speed"), help="folder of the systems (build/gpu_speed)")
    given = benchmark.start(quick={"systems": ["water of one tile"], "atom_steps": 1e6}, packages=("openmm",))
    dynamics = DynamicsSection(engine="openmm", platform=given.platform)
    platform: ChosenPlatform = chosen_platform(dynamics)
    small = openmm.System()
    small.addParticle(1.0)
    benchmark.machine["device"] = device_of(context_on(platform, small, openmm.VerletIntegrator(0.001)))
    print(benchmark.machine["device"], flush=True)
    speed = benchmark.table("speed", "OpenMM on a GPU", system="", atoms=",.0f", ms_a_step_at_2_fs=".2f",
                            ns_a_day_at_2_fs=".1f", ns_a_day_at_4_fs=".1f", busy="", GPU_memory_GB=".2f",
                            planned_GB=".2f")
    agreement = benchmark.table("forces", "Forces of OpenMM on a GPU beside those of chromamd in double precision: rms "
                                "difference over rms force", system="", atoms=",.0f", mixed=".1e", double=".1e")
    work = given.work.resolve()
    systems = {}
    for name in given.systems:
        systems[name] = results, folder, atoms, simulate = planned(work, name, given.atom_steps)
        task = Task(dynamics, 1, results / "topology.h5", results / "shards" / "bricks.txt", folder)
        with Driver() as driver:
            run = run_phases(Settings(dynamics=dynamics, simulate=simulate), task, openmm_engine, again=True)
        two, four = (phase.seconds_per_step for phase in run.phases[-2:])
        busy = None if driver.busy is None else f"{driver.busy:.0f} %"
        speed.row(name, atoms, 1000 * two, 2e-6 * SECONDS_A_DAY / two, 4e-6 * SECONDS_A_DAY / four, busy,
                  driver.memory, gpu_bytes(atoms, dynamics.platform_precision) / 1e9)
        benchmark.keep()
    for name, (results, folder, atoms, simulate) in systems.items():
        state = folder / openmm_engine.restart_name(plan_phases(simulate)[-1])
        try:
            agreement.row(name, atoms, *compare(folder / "forces", results, state, dynamics, given.threads).values())
        except ResourceError as error:
            print(f"no forces of chromamd: {error}", flush=True)
        benchmark.keep()
    benchmark.finish()


if __name__ == "__main__":
    main()
