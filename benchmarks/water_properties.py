"""Claim: chromamd's TIP3P water has the density and diffusion known of that model, and fluctuates as it should.

    python benchmarks/water_properties.py [--picoseconds 100] [--threads 1] [--work FOLDER]

The bundled water tile at 300 K, 2 fs, rigid waters, 9 angstrom cutoff with the switch from 8 and tail correction:

- constant pressure (Bussi, pistons) at 1 and 301 atm: density, and the variance of the volume beside kT times the
  volume's change with pressure between the two runs; the ratio of the two volume distributions by physical_validation;
- constant temperature: distribution of the kinetic energy by physical_validation; shares of translation and rotation;
- constant energy: diffusion of the oxygens, with Yeh and Hummer's correction for the size of the box.

The first fifth of every run is left out; errors are those of ten block averages. Published for TIP3P: 0.98 to 1.00
g/cm^3, diffusion 5.2 to 6.1e-5 cm^2/s (Mark and Nilsson 2001; Vega and Abascal 2011; with long-range electrostatics).
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import MDAnalysis
import numpy as np
import physical_validation

from chromabuild.simulate.chromamd import executable

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "engine"))
import systems

TEMPERATURE = 300.0
PRESSURES = (1.0, 301.0)
KT = 0.0019872043 * TEMPERATURE  # kcal/mol
ATMOSPHERE = 1.458397e-5  # kcal/mol/angstrom^3
GRAM_PER_DALTON_CUBIC_CM = 1.66053907
VISCOSITY = 0.32e-3  # Pa s, TIP3P at 300 K (Yeh and Hummer 2004)
FRAME = 50  # steps between frames and lines of the log
ENERGY = {"cutoffdist": 9, "switchdist": 8, "pairlistdist": 10.5, "pme_max_spacing": 1.0, "dispersion_corr": "EPRESS"}


def run(folder, name, start, steps, threads, output=None, dynamics=None, ensemble=None):
    """The table of the log of a run that ends in `name`().rst."""
    inp = systems.control(
        folder / f"{name}.inp", INPUT={"topologyfile": folder / "t.h5", "rstfile": folder / f"{start}().rst"},
        OUTPUT={"logfile": folder / f"{name}.log", "rstfile": folder / f"{name}().rst", **(output or {})},
        ENERGY=ENERGY, DYNAMICS={"nsteps": steps, "timestep": 0.002, "eneout_period": FRAME, **(dynamics or {})},
        CONSTRAINTS={"rigid_bond": "YES"}, ENSEMBLE={"temperature": TEMPERATURE, **(ensemble or {})})
    subprocess.run([executable(), "run", inp], check=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    return systems.read_table((folder / f"{name}.log").read_text())


def with_error(values):
    """Mean of a series without its first fifth, and the standard error from ten blocks."""
    values = values[len(values) // 5:]
    blocks = np.array([block.mean() for block in np.array_split(values, 10)])
    return values.mean(), blocks.std(ddof=1) / np.sqrt(10)


def simulation_data(n_atoms, log, ensemble):
    """A run for physical_validation, in the units of the log."""
    keep = slice(len(log["STEP"]) // 5, None)
    observables = {"volume": log["VOLUME"][keep]} if ensemble.ensemble == "NPT" else {}
    return physical_validation.data.SimulationData(
        units=physical_validation.data.UnitData(
            kb=KT / TEMPERATURE, energy_str="kcal/mol", energy_conversion=4.184, length_str="A", length_conversion=0.1,
            volume_str="A^3", volume_conversion=1e-3, temperature_str="K", temperature_conversion=1.0,
            pressure_str="atm", pressure_conversion=1.01325, time_str="ps", time_conversion=1.0),
        ensemble=ensemble,
        system=physical_validation.data.SystemData(
            natoms=n_atoms, nconstraints=n_atoms, ndof_reduction_tra=3, ndof_reduction_rot=0),
        observables=physical_validation.data.ObservableData(
            potential_energy=log["POTENTIAL_ENE"][keep], kinetic_energy=log["KINETIC_ENE"][keep], **observables))


def constant_pressure(folder, n_atoms, steps, threads):
    """Density, fluctuation of the volume."""
    volume, data = [], []
    for pressure in PRESSURES:
        log = run(folder, f"npt{pressure:.0f}", "start", steps, threads,
                  ensemble={"ensemble": "NPT", "tpcontrol": "BUSSI", "tau_t": 1.0, "tau_p": 1.0, "pressure": pressure})
        volume.append(log["VOLUME"])
        data.append(simulation_data(n_atoms, log, physical_validation.data.EnsembleData(
            "NPT", natoms=n_atoms, pressure=pressure, temperature=TEMPERATURE)))
        mean, error = with_error(log["VOLUME"])
        density = n_atoms / 3 * 18.0154 / mean * GRAM_PER_DALTON_CUBIC_CM
        print(f"{pressure:5.0f} atm: density {density:.4f} +- {density * error / mean:.4f} g/cm^3", flush=True)
    (first, first_error), (second, second_error) = map(with_error, volume)
    expected = KT * (first - second) / ((PRESSURES[1] - PRESSURES[0]) * ATMOSPHERE)
    expected_error = expected * np.hypot(first_error, second_error) / (first - second)
    for pressure, series in zip(PRESSURES, volume, strict=True):
        variance, error = with_error((series - with_error(series)[0]) ** 2)
        print(f"{pressure:5.0f} atm: variance of the volume {variance:.3g} +- {error:.2g} angstrom^6, "
              f"kT times -dV/dP between the runs {expected:.3g} +- {expected_error:.2g}")
    try:
        quantiles = physical_validation.ensemble.check(*data, total_energy=False, verbosity=0)
    except physical_validation.util.error.InputError as problem:
        print(f"distributions of volume not compared, the runs are too short: {problem.args[1].splitlines()[0]}")
        return
    print(f"ratio of the two distributions of volume: {np.round(quantiles, 2)} standard errors from theory", flush=True)


def constant_temperature(folder, n_atoms, steps, threads):
    """Distribution of the kinetic energy and its shares."""
    log = run(folder, "nvt", "start", steps, threads, ensemble={"ensemble": "NVT", "tpcontrol": "BUSSI", "tau_t": 0.5})
    data = simulation_data(n_atoms, log, physical_validation.data.EnsembleData(
        "NVT", natoms=n_atoms, volume=float(log["VOLUME"][0]), temperature=TEMPERATURE))
    mean, width = physical_validation.kinetic_energy.distribution(data, strict=False, verbosity=0)
    print(f"kinetic energy: mean {mean:.2f}, width {width:.2f} standard errors from theory")
    velocity = systems.read_restarts(str(folder / "nvt().rst"), 1).velocity.reshape(-1, 3, 3)
    mass = np.array([15.9994, 1.008, 1.008])
    centre = np.einsum("a,mai->mi", mass, velocity) / mass.sum()
    translation = 0.5 * mass.sum() * np.sum(centre**2) / 418.4
    rotation = 0.5 * np.einsum("a,mai->", mass, (velocity - centre[:, None]) ** 2) / 418.4
    share = translation / (translation + rotation)
    print(f"share of translation in the last frame {share:.4f}, theory 0.5 +- {0.5 / np.sqrt(n_atoms):.4f}", flush=True)


def constant_energy(folder, n_atoms, steps, threads):
    """Diffusion of the oxygens: slope of their mean square displacement from 2 to 10 ps (half the run at most)."""
    log = run(folder, "nve", "nvt", steps, threads, output={"dcdfile": folder / "nve.dcd"},
              dynamics={"crdout_period": FRAME})
    frames = np.array([f.positions[::3].astype(float) for f in
                       MDAnalysis.coordinates.DCD.DCDReader(str(folder / "nve.dcd"))])
    edge = log["BOXX"][0]
    hops = np.diff(frames, axis=0)
    path = np.concatenate([np.zeros((1, *frames.shape[1:])), np.cumsum(hops - edge * np.round(hops / edge), axis=0)])
    lags = np.arange(int(2 / (0.002 * FRAME)), min(int(10 / (0.002 * FRAME)), len(path) // 2))
    time = lags * 0.002 * FRAME
    slopes = []
    for atoms in np.array_split(np.arange(path.shape[1]), 10):
        square = [np.mean(np.sum((path[lag:, atoms] - path[:-lag, atoms]) ** 2, axis=2)) for lag in lags]
        slopes.append(np.polyfit(time, square, 1)[0] / 6 * 10)  # angstrom^2/ps to 1e-5 cm^2/s
    found, error = np.mean(slopes), np.std(slopes, ddof=1) / np.sqrt(10)
    kelvin = log["TEMPERATURE"].mean()
    finite = 2.837297 * 1.380649e-23 * kelvin / (6 * np.pi * VISCOSITY * edge * 1e-10) * 1e9  # 1e-5 cm^2/s
    print(f"diffusion at {kelvin:.1f} K in {edge:.1f} angstrom: {found:.2f} +- {error:.2f}, "
          f"with the correction {found + finite:.2f} e-5 cm^2/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picoseconds", type=float, default=100.0, help="length of each run, at least 8")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("water_properties"))
    arguments = parser.parse_args()
    folder = arguments.work.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    position, _ = systems.write_water(folder)
    inp = systems.control(folder / "setup.inp", OUTPUT={"rstfile": folder / "start().rst"}, ENERGY=ENERGY,
                          INPUT={"topologyfile": folder / "t.h5", "shardfile": folder / "bricks.txt"})
    subprocess.run([executable(), "setup", inp], check=True, stdout=subprocess.DEVNULL)
    steps = int(round(arguments.picoseconds / 0.002))
    print(f"{len(position)} atoms, {arguments.picoseconds:g} ps a run")
    constant_temperature(folder, len(position), steps, arguments.threads)
    constant_pressure(folder, len(position), steps, arguments.threads)
    constant_energy(folder, len(position), steps, arguments.threads)


if __name__ == "__main__":
    main()
