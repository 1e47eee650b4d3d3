"""Write water_tip3p.npz: a periodic cube of equilibrated TIP3P water, the tile with which boxes are filled.

OpenMM's Modeller fills the cube; constant-pressure dynamics (300 K, 1 atm, PME) finds the mean volume; the cube is
scaled to it and equilibrated at that volume. Positions are stored as int16 in units of 0.001 angstrom, molecule by
molecule (O, H1, H2) with the oxygen in [0, edge); every molecule has the exact TIP3P shape before rounding.

    python templates/tools/make_water.py        (a few minutes on one core)
"""

import sys
from pathlib import Path

import numpy as np
import openmm
import openmm.app as app
from openmm import unit

EDGE = 25.0  # angstrom, before equilibration: more than twice the cutoff after it
CUTOFF = 9.0
TEMPERATURE = 300.0
BOND = 0.9572  # angstrom, TIP3P (Jorgensen et al. 1983)
ANGLE = 104.52  # degree
PRESSURE_STEPS = 60_000  # of 2 fs; the second half is averaged
VOLUME_STEPS = 20_000
WATER_MASS = 18.01528  # g/mol
AVOGADRO = 0.602214076  # molecules of 1 mol in 1e24 cubic angstrom, times 1e-24


def density(n_waters: int, volume: float) -> float:
    """Density of ``n_waters`` in ``volume`` cubic angstrom, g/cm^3."""
    return n_waters * WATER_MASS / (AVOGADRO * volume)


def simulation(topology: app.Topology, barostat: bool) -> app.Simulation:
    """A TIP3P simulation on the CPU platform at ``TEMPERATURE``."""
    system = app.ForceField("amber14/tip3p.xml").createSystem(
        topology, nonbondedMethod=app.PME, nonbondedCutoff=CUTOFF * unit.angstrom, rigidWater=True)
    if barostat:
        force = openmm.MonteCarloBarostat(1 * unit.atmosphere, TEMPERATURE * unit.kelvin, 25)
        force.setRandomNumberSeed(1)
        system.addForce(force)
    integrator = openmm.LangevinMiddleIntegrator(TEMPERATURE * unit.kelvin, 1 / unit.picosecond, 2 * unit.femtosecond)
    integrator.setRandomNumberSeed(1)
    return app.Simulation(topology, system, integrator, openmm.Platform.getPlatformByName("CPU"))


def exact_shape(position: np.ndarray) -> np.ndarray:
    """(m, 3, 3) O, H1, H2 with the H-O-H plane and bisector kept and the TIP3P bond length and angle imposed."""
    oxygen = position[:, 0]
    first, second = position[:, 1] - oxygen, position[:, 2] - oxygen
    bisector = first + second
    bisector /= np.linalg.norm(bisector, axis=1, keepdims=True)
    across = first - second
    across -= (across * bisector).sum(1, keepdims=True) * bisector
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    half = np.radians(ANGLE / 2)
    along, aside = BOND * np.cos(half) * bisector, BOND * np.sin(half) * across
    return np.stack([oxygen, oxygen + along + aside, oxygen + along - aside], axis=1)


def morton_code(position: np.ndarray, edge: int) -> np.ndarray:
    """(m,) place on the Z-order curve of ``position`` (m, 3) in [0, edge).

    Neighbours on it are neighbours in space, so that a brick which cuts a tile holds long runs of its molecules; and
    the order does not depend on how the cube was filled.
    """
    cell = position * 1024 // edge
    code = np.zeros(len(position), dtype=np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    return code


def main() -> None:
    """Equilibrate and write the tile beside this script."""
    modeller = app.Modeller(app.Topology(), [] * unit.nanometer)
    modeller.addSolvent(app.ForceField("amber14/tip3p.xml"), model="tip3p",
                        boxSize=openmm.Vec3(EDGE, EDGE, EDGE) * unit.angstrom, neutralize=False)
    n_waters = modeller.topology.getNumResidues()

    pressure = simulation(modeller.topology, barostat=True)
    pressure.context.setPositions(modeller.positions)
    pressure.minimizeEnergy(maxIterations=200)
    pressure.context.setVelocitiesToTemperature(TEMPERATURE * unit.kelvin, 1)
    volumes = []
    for step in range(0, PRESSURE_STEPS, 100):
        pressure.step(100)
        state = pressure.context.getState()
        volumes.append(state.getPeriodicBoxVolume().value_in_unit(unit.angstrom**3))
        if step % 10_000 == 0:
            print(f"{step} steps: {density(n_waters, volumes[-1]):.4f} g/cm^3", file=sys.stderr, flush=True)
    volumes = np.array(volumes[len(volumes) // 2:])
    blocks = volumes.reshape(10, -1).mean(1)
    error = blocks.std(ddof=1) / np.sqrt(len(blocks)) / blocks.mean()
    edge = round(float(volumes.mean()) ** (1 / 3), 3)
    print(f"{n_waters} waters, edge {edge} A, {density(n_waters, edge**3):.4f} g/cm^3 (relative error {error:.1e})")

    state = pressure.context.getState(positions=True, velocities=True)
    position = state.getPositions(asNumpy=True).value_in_unit(unit.angstrom).reshape(n_waters, 3, 3)
    current = state.getPeriodicBoxVolume().value_in_unit(unit.angstrom**3) ** (1 / 3)
    position = position + position[:, :1] * (edge / current - 1)  # molecules move, their shapes stay
    vectors = np.eye(3) * edge / 10
    modeller.topology.setPeriodicBoxVectors(vectors)
    constant = simulation(modeller.topology, barostat=False)
    constant.context.setPositions(position.reshape(-1, 3) / 10)
    constant.context.setVelocities(state.getVelocities())
    constant.step(VOLUME_STEPS)
    state = constant.context.getState(positions=True)
    position = exact_shape(state.getPositions(asNumpy=True).value_in_unit(unit.angstrom).reshape(n_waters, 3, 3))

    thousandths = round(edge * 1000)
    stored = np.rint(position * 1000).astype(np.int64)
    stored -= (stored[:, :1] // thousandths) * thousandths
    stored = stored[np.lexsort((*stored[:, 0, ::-1].T, morton_code(stored[:, 0], thousandths)))]
    np.savez_compressed(Path(__file__).resolve().parents[1] / "water_tip3p.npz",
                        position=stored.astype(np.int16), edge=np.int32(thousandths))


if __name__ == "__main__":
    main()
