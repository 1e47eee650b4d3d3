"""A fibre with every kind of core: a nucleosome that is partly unwrapped, a hexasome, and a protein on bent DNA."""

import numpy as np
from scipy.spatial.transform import Rotation

from mesoscale.fibre import Body, BoundProtein, Contact, Fibre


def bent_protein(n: int = 12) -> Body:
    """Base pairs on an arc of 60 degrees, and charged balls beside it."""
    random = np.random.Generator(np.random.Philox(key=3))
    turn = Rotation.from_rotvec(np.linspace(0.0, np.pi / 3, n)[:, None] * [1.0, 0.0, 0.0])
    frame = turn.as_matrix() @ Rotation.from_rotvec(np.radians(34.0) * np.arange(n)[:, None] * [0, 0, 1.0]).as_matrix()
    origin = np.concatenate([np.zeros((1, 3)), np.cumsum(0.33 * turn.as_matrix()[:-1, :, 2], axis=0)])
    origin -= origin.mean(axis=0)
    ball = np.array([0.0, 2.2, 0.0]) + 0.8 * random.standard_normal((8, 3))
    return Body(origin, frame, ball, np.array([1.0, 2.0, -1.0, 0.0, 3.0, 1.0, -2.0, 1.0]), ball, np.full(8, 0.5))


def mixed_fibre() -> Fibre:
    """Three cores of three shapes on 510 base pairs."""
    return Fibre("ACGT" * 135, (95, 440), linker_histone=(True, False), ends=((52, 70), (73, 38)), missing=("", "exit"),
                 proteins=(BoundProtein("bent", 240, bent_protein()),),
                 contacts=(Contact((0, 20), (5, 30)), Contact((30, 60), (500, 540))))
