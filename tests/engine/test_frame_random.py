"""The velocities of setup, recomputed here with an independent Philox."""

import numpy as np
from support import systems
from support.chain_in_water import make_system, setup


def philox(counter: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Philox 4x32-10 (Salmon et al. 2011) for one counter, in Python integers."""
    x, k = [int(c) for c in counter], [int(c) for c in key]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.array(x, dtype=np.uint32)


def test_philox_known_answer():
    """First line of the authors' known-answer file (Random123, kat_vectors)."""
    known = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(np.zeros(4), np.zeros(2)).tolist() == known


def test_velocities_are_box_muller_of_philox(tmp_path):
    runs = make_system(tmp_path)
    state = systems.read_restarts(setup(tmp_path, 1, iseed=77), 1)
    mass = np.concatenate([np.tile(m.mass, c) for m, c in runs])
    for atom in (0, 1, 5, len(mass) - 1):
        u = (philox(np.array([atom, 0, 0, 0]), np.array([77, 0])).astype(float) + 0.5) / 2**32
        scale = np.sqrt(8.31446261815324 / 4184 * 298.15 * 418.4 / mass[atom])
        radius = np.sqrt(-2 * np.log(u[[0, 2]]))
        expected = scale * np.array([radius[0] * np.cos(2 * np.pi * u[1]), radius[0] * np.sin(2 * np.pi * u[1]),
                                     radius[1] * np.cos(2 * np.pi * u[3])])
        assert np.allclose(state.velocity[atom], expected, rtol=1e-13)
