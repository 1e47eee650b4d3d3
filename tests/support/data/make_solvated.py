"""Put the fixtures of make_fixtures.py into boxes of TIP3P water with salt, minimise them, and equilibrate two of them.

    python tests/support/data/make_solvated.py

OpenMM takes half a minute of each process of the tests to do so. solvated.npz has for each system the positions of all
atoms (solute, waters, sodium, chloride) in 0.001 angstrom from the middle of the box, and the numbers of waters,
sodium, chloride.
"""

import random
import sys
from pathlib import Path

import numpy as np
import openmm
from openmm import app, unit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from support.molecular_systems import IN_WATER, SOLVENT, fixture, judge_of, name_of_solvated, openmm_topology

from chromabuild.base.force_fields import force_field_files

FOLDER = Path(__file__).parent


def solvate(name: str | None, edge: float, equilibration_steps: int) -> tuple[np.ndarray, list[int]]:
    """OpenMM's pre-equilibrated water in a cube, minimised; then steps of 2 fs at 300 K."""
    rules = app.ForceField(*force_field_files("amber14"))
    solute, position = None, np.empty((0, 3))
    start = app.Topology()
    if name is not None:
        solute, position = fixture(name)
        position = position + edge / 2
        start = openmm_topology(solute, {})
    random.seed(2)  # where OpenMM puts the ions
    modeller = app.Modeller(start, unit.Quantity(position, unit.angstrom))
    modeller.addSolvent(rules, boxSize=openmm.Vec3(edge, edge, edge) * unit.angstrom,
                        ionicStrength=(0.15 if name else 0.0) * unit.molar)
    everything = np.array(modeller.positions.value_in_unit(unit.angstrom))
    pieces, counts = [position], {}
    for key, residue_name in SOLVENT.items():
        index = [a.index for r in modeller.topology.residues() if r.name == residue_name for a in r.atoms()]
        pieces.append(everything[index])
        counts[key] = len(index) // (3 if key == "water" else 1)
    position = relax(rules, judge_of(solute, counts, edge), np.concatenate(pieces), equilibration_steps)
    return np.round(1000 * (position - edge / 2)).astype(np.int32), list(counts.values())


def relax(rules: app.ForceField, judge: app.Topology, position: np.ndarray, steps: int) -> np.ndarray:
    system = rules.createSystem(judge, nonbondedMethod=app.PME, nonbondedCutoff=0.8 * unit.nanometer,
                                constraints=app.HBonds, rigidWater=True)
    integrator = openmm.LangevinMiddleIntegrator(300, 5, 0.002)
    integrator.setRandomNumberSeed(1)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("CPU"), {"Threads": "1"})
    context.setPositions(position / 10)
    openmm.LocalEnergyMinimizer.minimize(context, 10.0, 100)
    if steps:
        context.setVelocitiesToTemperature(300, 1)
        integrator.step(steps)
    return context.getState(getPositions=True).getPositions(asNumpy=True).value_in_unit(unit.angstrom)


def main() -> None:
    content = {}
    for system in IN_WATER:
        position, counts = solvate(*system)
        content[name_of_solvated(*system)] = position
        content[name_of_solvated(*system) + " counts"] = np.array(counts)
    np.savez_compressed(FOLDER / "solvated.npz", **content)


if __name__ == "__main__":
    main()
