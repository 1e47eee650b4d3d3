"""TIP3P water in chromamd: density, diffusion, dielectric constant beside published ones, fluctuations beside theory.

The bundled water tile at 310 K, 2 fs, rigid waters, 9 angstrom cutoff with the switch from 8 and tail correction:

- constant pressure (Bussi, pistons) at 1 and 301 atm: density, and the variance of the volume beside kT times the
  volume's change with pressure between the two runs; the ratio of the two volume distributions by physical_validation;
- the density at 300 K too, at which most are published;
- constant temperature: distribution of the kinetic energy by physical_validation; shares of translation and rotation;
  dielectric constant from the fluctuation of the dipole moment of the box (with Ewald sums in a conducting medium);
- constant energy: diffusion of the oxygens, with Yeh and Hummer's correction for the size of the box, for the viscosity
  at 300 K: at 310 K it is somewhat larger.

The first fifth of every run is left out; errors are those of ten block averages. Published for TIP3P at 298 to 300 K:
0.98 to 1.00 g/cm^3, diffusion 5.2 to 6.1e-5 cm^2/s (Mark and Nilsson 2001; Vega and Abascal 2011; with long-range
electrostatics), dielectric constant 97 +- 7 (Hoechtl and others, J. Chem. Phys. 109, 4927, 1998; with Ewald sums). It
falls with the temperature.
"""

import sys
from pathlib import Path

import MDAnalysis
import numpy as np
from common import engine, peers
from common.command import Benchmark
from common.results import Table

from chromabuild.simulate.energy_log import EnergyLog

try:
    import physical_validation
except ImportError:  # does not come with chromabuild; --help works without it
    physical_validation = None

TEMPERATURE = 310.0
PUBLISHED = 300.0  # K
PRESSURES = (1.0, 301.0)
BOLTZMANN = 0.0019872043  # kcal/mol/K
KT = BOLTZMANN * TEMPERATURE
COULOMB = 332.0637  # kcal angstrom/mol/e^2
HYDROGEN_CHARGE = 0.417  # e, of TIP3P
ATMOSPHERE = 1.458397e-5  # kcal/mol/angstrom^3
GRAM_PER_DALTON_CUBIC_CM = 1.66053907
VISCOSITY = 0.32e-3  # Pa s, TIP3P at 300 K (Yeh and Hummer 2004)
FRAME = 50  # steps between frames and lines of the log
ENERGY = {"cutoffdist": 9, "switchdist": 8, "pairlistdist": 10.5, "pme_max_spacing": 1.0, "dispersion_corr": "EPRESS"}


def run(folder: Path, name: str, start: str, steps: int, threads: int, output: dict | None = None,
        dynamics: dict | None = None, ensemble: dict | None = None) -> EnergyLog:
    """The table of the log of a run that ends in `name`().rst."""
    log = folder / f"{name}.log"
    engine.run(folder, folder / f"{start}().rst", {
        "OUTPUT": {"logfile": log, **(output or {})}, "ENERGY": ENERGY,
        "DYNAMICS": {"nsteps": steps, "timestep": 0.002, "eneout_period": FRAME, **(dynamics or {})},
        "CONSTRAINTS": {"rigid_bond": True}, "ENSEMBLE": {"temperature": TEMPERATURE, **(ensemble or {})}},
        folder / f"{name}().rst", threads=threads, name=name)
    return EnergyLog.read(log)


def with_error(values: np.ndarray) -> tuple[float, float]:
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
            kb=BOLTZMANN, energy_str="kcal/mol", energy_conversion=4.184, length_str="A", length_conversion=0.1,
            volume_str="A^3", volume_conversion=1e-3, temperature_str="K", temperature_conversion=1.0,
            pressure_str="atm", pressure_conversion=1.01325, time_str="ps", time_conversion=1.0),
        ensemble=ensemble,
        system=physical_validation.data.SystemData(
            natoms=n_atoms, nconstraints=n_atoms, ndof_reduction_tra=3, ndof_reduction_rot=0),
        observables=physical_validation.data.ObservableData(
            potential_energy=log["POTENTIAL_ENE"][keep], kinetic_energy=log["KINETIC_ENE"][keep], **observables))


def constant_pressure(folder: Path, n_atoms: int, steps: int, threads: int, table: Table) -> None:
    """Density, fluctuation of the volume."""
    volume, data = [], []
    for kelvin, pressure in ((PUBLISHED, PRESSURES[0]), *((TEMPERATURE, pressure) for pressure in PRESSURES)):
        log = run(folder, f"npt{pressure:.0f}", "start", steps, threads, ensemble={
            "ensemble": "NPT", "tpcontrol": "BUSSI", "tau_t": 1.0, "tau_p": 1.0, "pressure": pressure,
            "temperature": kelvin})
        mean, error = with_error(log["VOLUME"])
        density = n_atoms / 3 * 18.0154 / mean * GRAM_PER_DALTON_CUBIC_CM
        table.row(f"density at {kelvin:.0f} K and {pressure:.0f} atm, g/cm^3",
                  {"value": density, "error": density * error / mean}, "0.98 to 1.00" if kelvin == PUBLISHED else None)
        if kelvin == TEMPERATURE:
            volume.append(log["VOLUME"])
            data.append(simulation_data(n_atoms, log, physical_validation.data.EnsembleData(
                "NPT", natoms=n_atoms, pressure=pressure, temperature=TEMPERATURE)))
    (first, first_error), (second, second_error) = map(with_error, volume)
    expected = KT * (first - second) / ((PRESSURES[1] - PRESSURES[0]) * ATMOSPHERE)
    expected_error = expected * np.hypot(first_error, second_error) / (first - second)
    for pressure, series in zip(PRESSURES, volume, strict=True):
        variance, error = with_error((series - with_error(series)[0]) ** 2)
        table.row(f"variance of the volume at {pressure:.0f} atm, Å^6", {"value": variance, "error": error},
                  f"{expected:.3g} ± {expected_error:.2g} (kT times -dV/dP)")
    try:
        quantiles = physical_validation.ensemble.check(*data, total_energy=False, verbosity=0)
    except physical_validation.util.error.InputError as problem:
        print(f"distributions of volume not compared, the runs are too short: {problem.args[1].splitlines()[0]}")
        return
    table.row("ratio of the two distributions of volume, standard errors from theory",
              ", ".join(f"{value:.2f}" for value in np.atleast_1d(quantiles)), "0")


def constant_temperature(folder: Path, n_atoms: int, steps: int, threads: int, table: Table) -> None:
    """Distribution of the kinetic energy and its shares; dielectric constant."""
    log = run(folder, "nvt", "start", steps, threads, output={"dcdfile": folder / "nvt.dcd"},
              dynamics={"crdout_period": FRAME}, ensemble={"ensemble": "NVT", "tpcontrol": "BUSSI", "tau_t": 0.5})
    data = simulation_data(n_atoms, log, physical_validation.data.EnsembleData(
        "NVT", natoms=n_atoms, volume=float(log["VOLUME"][0]), temperature=TEMPERATURE))
    mean, width = physical_validation.kinetic_energy.distribution(data, strict=False, verbosity=0)
    table.row("kinetic energy: mean and width, standard errors from theory", f"{mean:.2f}, {width:.2f}", "0, 0")
    velocity = engine.restart_velocities(folder / "nvt().rst").reshape(-1, 3, 3)
    mass = np.array([15.9994, 1.008, 1.008])
    centre = np.einsum("a,mai->mi", mass, velocity) / mass.sum()
    translation = 0.5 * mass.sum() * np.sum(centre**2) / 418.4
    rotation = 0.5 * np.einsum("a,mai->", mass, (velocity - centre[:, None]) ** 2) / 418.4
    share = translation / (translation + rotation)
    table.row("share of translation in the kinetic energy of the last frame", share,
              f"0.5 ± {0.5 / np.sqrt(n_atoms):.4f}")
    table.row(f"dielectric constant at {TEMPERATURE:.0f} K", dielectric_constant(folder / "nvt.dcd", log["BOXX"][0]),
              f"97 ± 7 at {PUBLISHED:.0f} K")


def dielectric_constant(frames: Path, edge: float) -> dict[str, float]:
    """1 + 4 pi (<M^2> - <M>^2) / (3 V kT) of the dipole moments M of the box, and its standard error by leaving out one
    of ten blocks after the other."""
    moments = []
    for frame in MDAnalysis.coordinates.DCD.DCDReader(str(frames)):
        molecules = frame.positions.reshape(-1, 3, 3).astype(float)
        bonds = molecules[:, 1:] - molecules[:, :1]
        moments.append(HYDROGEN_CHARGE * (bonds - edge * np.round(bonds / edge)).sum(axis=(0, 1)))
    moments = np.array(moments[len(moments) // 5:])

    def constant(chosen: np.ndarray) -> float:
        return 1 + 4 * np.pi * COULOMB * chosen.var(axis=0).sum() / (3 * edge**3 * KT)

    blocks = np.array_split(np.arange(len(moments)), 10)
    without = np.array([constant(np.delete(moments, block, axis=0)) for block in blocks])
    return {"value": constant(moments), "error": float(np.sqrt(9 / 10 * ((without - without.mean()) ** 2).sum()))}


def constant_energy(folder: Path, n_atoms: int, steps: int, threads: int, table: Table) -> None:
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
    table.row(f"diffusion at {kelvin:.1f} K in {edge:.1f} Å, 1e-5 cm^2/s", {"value": found, "error": error}, None)
    table.row("diffusion with the correction for the box, 1e-5 cm^2/s", found + finite,
              f"5.2 to 6.1 at {PUBLISHED:.0f} K")


def main() -> None:
    """Run all ensembles."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--picoseconds", type=float, default=100.0, help="length of each run, at least 5")
    add("--dielectric-picoseconds", type=float, default=400.0, help="of the one at constant temperature")
    add("--threads", type=int, default=1)
    add("--work", type=Path, default=Path("water_properties"))
    given = benchmark.start(quick={"picoseconds": 5.0, "dielectric_picoseconds": 5.0},
                            packages=("physical-validation", "MDAnalysis"))
    if physical_validation is None:
        sys.exit(peers.missing("physical_validation"))
    folder = given.work.resolve()
    position, _ = engine.tiled_water(folder, 1)
    engine.set_up(folder, folder / "start().rst", energy=ENERGY)
    steps = round(given.picoseconds / 0.002)
    table = benchmark.table("properties", f"Properties of TIP3P water: {len(position):,} atoms, runs of "
                            f"{given.picoseconds:g} ps, of {given.dielectric_picoseconds:g} ps for the dielectric",
                            property="", value=".4g", published_or_theory="")
    constant_temperature(folder, len(position), round(given.dielectric_picoseconds / 0.002), given.threads, table)
    constant_pressure(folder, len(position), steps, given.threads, table)
    constant_energy(folder, len(position), steps, given.threads, table)
    benchmark.finish()


if __name__ == "__main__":
    main()
