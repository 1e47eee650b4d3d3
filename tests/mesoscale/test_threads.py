"""Dynamics, regrowth and trials of a fibre with flexible tails come out the same to the last bit, whatever the threads.

One thread makes its trials one after the other, more weigh them ahead of their turn: the two are different programs.
"""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mesoscale.contact_energies import Wells
from mesoscale.cores import crystal_core
from mesoscale.dynamics import STAGES, advance_with_tails, regrown, shortened
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain, straight_conformation
from mesoscale.montecarlo import RANDOM_PER_TRIAL, CoupledTails, Walk
from mesoscale.relaxation import Conformation
from mesoscale.tails import TailWalk, tails_of_fibre

pytestmark = pytest.mark.release

NUCLEOSOMES, REPEAT = 36, 208
PARAMETERS = Parameters(tails="flexible", confinement_radius=40.0, core_charges="fitted")


def digests() -> list[str]:
    """Hashes of positions, frames, beads and energies after each kind of work on one fibre."""
    found = []

    def note(*arrays: np.ndarray) -> None:
        found.append(hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest())

    fibre = Fibre("ACGT" * (NUCLEOSOMES * REPEAT // 4), tuple(104 + REPEAT * k for k in range(NUCLEOSOMES)))
    chain = shortened(replace(build_chain(fibre, PARAMETERS), shape=crystal_core(rigid_tails=False)))
    held = chain.cores[np.stack(np.triu_indices(NUCLEOSOMES, 2), axis=1)][::7]
    chain = replace(chain, wells=Wells(held, np.full(len(held), -3.0), 10.0, 150.0))
    tails = tails_of_fibre(fibre, PARAMETERS)
    random = np.random.Generator(np.random.Philox(key=5))
    position, frame = straight_conformation(chain)
    now = Conformation(position, frame, np.zeros(3))
    beads = regrown(tails, chain, now, random, None)
    note(beads)
    now, beads, energy = advance_with_tails(chain, tails, now, beads, STAGES[0], random)
    note(now.position, now.frame, beads, energy)
    walk = Walk.begin(chain, now.position, now.frame)
    coupled = CoupledTails.begin(TailWalk.begin(tails, chain, now.position, now.frame, beads), NUCLEOSOMES)
    coupled.attach(walk)
    note(walk.energy, coupled.energy)
    _, accepted = walk.advance(random.random((2 * chain.n, RANDOM_PER_TRIAL)), strict=True)
    note(walk.position, walk.frame, walk.energy, accepted)
    coupled.regrow(walk, random, share=0.3)
    note(coupled.beads, coupled.energy)
    assert chain.n >= 200 and (accepted[:4] > 0).all(), (chain.n, accepted)  # few particles are left to one thread
    return found


def test_the_same_bytes_from_one_thread_and_three():
    """Three threads where there may be two cores: the order in which they come to their trials is not ours."""

    def run(threads: int) -> list[str]:
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), PYTHONPATH=os.pathsep.join(sys.path))
        done = subprocess.run([sys.executable, str(Path(__file__))], env=environment, capture_output=True, text=True,
                              check=True)  # fmt: skip
        return done.stdout.split()

    one = run(1)
    assert len(one) == 5 and run(3) == one


if __name__ == "__main__":
    print(*digests())
