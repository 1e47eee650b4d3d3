"""Drift of the energy of TIP3P water in chromamd without a thermostat, kT/ns/atom, in mixed and double precision.

The bundled water tile, 1 ps at 300 K first; then 6 ps of 2 fs with SETTLE, cutoff 9 angstrom, switch from 7.5,
erfc(alpha r) = 4e-7 at the cutoff, PME of order 5 on a grid of 0.75 angstrom, with other velocities in each run. The
slope is that of the quantity which velocity Verlet keeps to fourth order (Hairer, Lubich and Wanner, Geometric
Numerical Integration, IX.3): the total energy plus a third of the kinetic energy of a half kick plus a twelfth of the
second difference of the potential energy. The drift of a solvated peptide is measured by
tests/engine/test_energy_conservation.py.
"""

import tempfile
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.engine import run, set_up, smooth_size, tiled_water

from chromabuild.simulate.energy_log import EnergyLog

KT = 0.0019872043 * 300  # kcal/mol
BLOCKS = 20
ENERGY = {"cutoffdist": 9, "switchdist": 7.5, "pairlistdist": 10.5, "pme_alpha": 0.40, "pme_nspline": 5}


def slope_of_shadow_energy(log: EnergyLog) -> tuple[float, float]:
    """Slope (kcal/mol/ps) and its standard error; every step must be logged.

    A line in time and in the half kick, which stands for what is left of fast modes, is fitted to block averages.
    """
    potential, half_kick = log["POTENTIAL_ENE"], log["HALF_KICK_ENE"]
    energy = (log["TOTAL_ENE"] + half_kick / 3)[1:-1] + (potential[2:] - 2 * potential[1:-1] + potential[:-2]) / 12
    length = (len(energy) - 1) // BLOCKS  # the first row is of before any kick
    time, half_kick, energy = (column[-length * BLOCKS:].reshape(BLOCKS, length).mean(axis=1)
                               for column in (log["TIME"][1:-1], half_kick[1:-1], energy))
    model = np.column_stack([time, half_kick, np.ones(BLOCKS)])
    fit = np.linalg.lstsq(model, energy, rcond=None)[0]
    variance = np.sum((energy - model @ fit) ** 2) / (BLOCKS - 3)
    return fit[0], float(np.sqrt(variance * np.linalg.inv(model.T @ model)[0, 0]))


def main() -> None:
    """Run every precision and seed."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--precisions", nargs="+", choices=("mixed", "double"), default=["mixed", "double"])
    add("--seeds", nargs="+", type=int, default=[11, 12, 13])
    add("--steps", type=int, default=3000)
    given = benchmark.start(quick={"precisions": ["mixed"], "seeds": [11], "steps": 200})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        position, box = tiled_water(folder, 1)
        grid = {f"pme_ngrid_{axis}": smooth_size(edge, 0.75) for axis, edge in zip("xyz", box, strict=True)}
        settings = {"ENERGY": ENERGY | grid, "CONSTRAINTS": {"rigid_bond": True, "shake_tolerance": 1e-10}}
        set_up(folder, folder / "built().rst", energy=ENERGY)
        run(folder, folder / "built().rst", settings | {
            "DYNAMICS": {"nsteps": 1000, "timestep": 0.001},
            "ENSEMBLE": {"ensemble": "NVT", "tpcontrol": "BUSSI", "temperature": 300, "tau_t": 0.1}},
            folder / "warm().rst")
        table = benchmark.table("drift", "Drift of the total energy (kT/ns per atom) with the standard error of the "
                                "fit", system="", precision="", seed="", drift="+.4f")
        for precision in given.precisions:
            for seed in given.seeds:
                log = folder / f"{precision}{seed}.log"
                # From set-up, so that velocities are drawn anew; the first quarter lets them settle.
                run(folder, folder / "warm().rst", settings | {
                    "OUTPUT": {"logfile": log}, "ENSEMBLE": {"ensemble": "NVE", "temperature": 300},
                    "DYNAMICS": {"nsteps": given.steps, "timestep": 0.002, "eneout_period": 1, "iseed": seed}},
                    precision=precision)
                slope, error = slope_of_shadow_energy(EnergyLog.read(log))
                unit = 1000 / (len(position) * KT)
                table.row(f"water, {len(position):,} atoms", precision, seed,
                          {"value": unit * slope, "error": unit * error})
    benchmark.finish()


if __name__ == "__main__":
    main()
