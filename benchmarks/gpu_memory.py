"""Device memory of OpenMM's code of GPUs, an atom of a box of water, counted on OpenCL for processors.

gpu_memory.c is compiled with gcc and loaded before OpenMM; it adds up the buffers that OpenMM asks OpenCL for. CUDA and
HIP have the same arrays; what their drivers take beside them, some hundred MB, is not in it. Dynamics of the engine
openmm: the settings' cutoff and mesh, rigid water, constant pressure, a few steps.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common.command import Benchmark

from chromabuild.base.settings import DynamicsSection
from chromabuild.forcefield.assign import make_topology

SOURCE = Path(__file__).with_suffix(".c")
SPACING = 3.104
"""Angstrom between waters on a cubic lattice: 1 g/cm^3."""
STEPS = 2


def waters(edge: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) angstrom of edge^3 waters, turned at random, and the box (3,)."""
    random = np.random.Generator(np.random.Philox(key=1))
    n = edge**3
    oxygen = SPACING * np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    half = np.radians(104.52) / 2
    first, second = np.linalg.qr(random.normal(size=(n, 3, 3)))[0][:, :2].swapaxes(0, 1)
    arms = [0.9572 * (np.cos(half) * first + sign * np.sin(half) * second) for sign in (1, -1)]
    places = np.concatenate([oxygen, oxygen + arms[0][:, None], oxygen + arms[1][:, None]], axis=1)
    return places.reshape(-1, 3), np.full(3, edge * SPACING)


def run(edge: int, precision: str) -> None:
    """A few steps, in a process that is counted."""
    import openmm

    from chromabuild.simulate.openmm_engine import nonbonded_options, system_from_topology
    from chromabuild.simulate.openmm_platform import ChosenPlatform, context_on

    position, box = waters(edge)
    system = system_from_topology(make_topology(None, {"water": edge**3}), box,
                                  nonbonded_options(DynamicsSection(), box), rigid=True, by_term=False)
    system.addForce(openmm.MonteCarloBarostat(1.0, 300.0))
    integrator = openmm.LangevinMiddleIntegrator(300.0, 1.0, 0.0002)
    context = context_on(ChosenPlatform("OpenCL", {"Precision": precision}), system, integrator)
    context.setPositions(position / 10)
    context.applyConstraints(1e-6)
    integrator.step(STEPS)
    context.getState(getEnergy=True)


def main() -> None:
    """Compile, run, keep the table."""
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--edges", type=int, nargs="+", default=[22, 34], help="waters along an edge")
    benchmark.parser.add_argument("--precision", nargs="+", default=["mixed", "double"])
    given = benchmark.start(quick={"edges": [12], "precision": ["mixed"]}, packages=("openmm",))
    table = benchmark.table("buffers", "Device memory of OpenMM in OpenCL, boxes of water", precision="",
                            **{"atoms": ",", "memory, MB": ",.1f", "bytes an atom": ",.0f"})
    with tempfile.TemporaryDirectory() as folder:
        library, told = Path(folder) / "counter.so", Path(folder) / "most"
        done = subprocess.run(["gcc", "-O2", "-shared", "-fPIC", SOURCE, "-o", library, "-ldl"], capture_output=True,
                              text=True)
        if done.returncode:
            sys.exit(f"{SOURCE} does not compile (Debian: apt install gcc):\n{done.stderr}")
        for precision in given.precision:
            for edge in given.edges:
                code = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r})\n" \
                       f"from gpu_memory import run; run({edge}, {precision!r})"
                subprocess.run([sys.executable, "-c", code], check=True,
                               env={**os.environ, "LD_PRELOAD": str(library), "GPU_MEMORY_FILE": str(told)})
                most = int(told.read_text())
                table.row(precision, 3 * edge**3, most / 1e6, most / (3 * edge**3))
    benchmark.finish()


if __name__ == "__main__":
    main()
