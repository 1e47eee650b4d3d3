"""OpenMiChroM's training of pair energies on a contact map, run by hic_peer.py in a Python that has it.

    python openmichrom_fit.py INPUT.npz OUTPUT.npz

Input: `map` (n, n), contact probabilities of which zeros are not used; `iterations`, `frames`, and `steps` between two
of them. Output: `map` (n, n), contact probabilities after the last iteration, of five times as many frames. Forces and
their constants are those of its training tutorial; every bead has a type of its own.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from OpenMiChroM.ChromDynamics import MiChroM
from OpenMiChroM.Optimization import AdamTraining

MU, RC = 2.0, 2.0
RELAXATION = 5000  # steps


def sampled(training: AdamTraining, table: str, sequence: str, frames: int, steps: int) -> None:
    """Add the contacts of a simulation with the energies of a table to the training."""
    simulation = MiChroM(name="fit", temperature=1.0, timeStep=0.01)
    simulation.setup(platform="CPU")
    # It chooses among parallel platforms, which only slow a chain of some ten beads down.
    simulation.platform, simulation.properties = simulation.mm.Platform.getPlatformByName("Reference"), {}
    simulation.saveFolder("fit")
    simulation.loadStructure(simulation.createSpringSpiral(ChromSeq=sequence), center=True)
    simulation.addFENEBonds(kFb=30.0)
    simulation.addAngles(kA=2.0)
    simulation.addRepulsiveSoftCore(eCut=4.0)
    simulation.addCustomTypes(name="pairs", mu=MU, rc=RC, TypesTable=table)
    simulation.addFlatBottomHarmonic(kR=5e-3, nRad=15.0)
    simulation.createSimulation()
    simulation.run(RELAXATION, report=False)
    for _ in range(frames):
        simulation.run(steps, report=False)
        training.probCalc(simulation.getPositions())


def main(given: str, written: str) -> None:
    """Train, and sample once more."""
    task = np.load(given)
    bins = len(task["map"])
    os.chdir(tempfile.mkdtemp())
    np.savetxt("map.txt", task["map"])
    Path("sequence.txt").write_text("".join(f"{k + 1} B{k}\n" for k in range(bins)))
    names = [f"B{k}" for k in range(bins)]
    pd.DataFrame(np.zeros((bins, bins)), columns=names).to_csv("lambda_0.csv", index=False)
    frames, steps = int(task["frames"]), int(task["steps"])
    training = AdamTraining(mu=MU, rc=RC, eta=0.1, it=1)
    training.getHiCexp("map.txt", norm=False)
    iterations = int(task["iterations"])
    for k in range(iterations):
        training.reset_Pi()
        sampled(training, f"lambda_{k}.csv", "sequence.txt", frames, steps)
        training.getLamb(f"lambda_{k}.csv").to_csv(f"lambda_{k + 1}.csv", index=False)
        print(f"iteration {k + 1}, error {training.error:.3f}", flush=True)
    training.reset_Pi()
    sampled(training, f"lambda_{iterations}.csv", "sequence.txt", 5 * frames, steps)
    np.savez(written, map=training.Pi / training.NFrames)


if __name__ == "__main__":
    main(*sys.argv[1:])
