"""Random numbers of atoms, recomputed here with an independent Philox."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support import systems
from support.chain_in_water import make_system, setup

SOURCE = Path(__file__).resolve().parents[2] / "fortran" / "base" / "base_normals.c"
SETS = {"baseline": ["-DONE_INSTRUCTION_SET"], "avx2": ["-DONE_INSTRUCTION_SET", "-mavx2", "-mfma"],
        "avx512f": ["-DONE_INSTRUCTION_SET", "-mavx512f", "-mprefer-vector-width=512"], "chosen when it runs": []}


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


def normals(library: Path, seed: int, purpose: int, step: int, atoms: np.ndarray) -> np.ndarray:
    """(n, 3) numbers of the engine's own code."""
    found = np.empty((3, len(atoms)))
    numbers = [ctypes.c_int64(n) for n in (seed, purpose, step, len(atoms))]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (atoms, found)]
    ctypes.CDLL(str(library)).chroma_atom_normals(*numbers, *pointers)
    return found.T


@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler makes the variants")
def test_normals_have_the_same_bits_on_all_instruction_sets(tmp_path):
    """And are those of NumPy to rounding, Gaussian by the test of Kolmogorov and Smirnov, and the same whoever asks."""
    seed, purpose, step = 2**40 + 12345, 2, 2**33 + 17
    atoms = np.concatenate([np.arange(1, 100_003), 2**47 + np.arange(5)]).astype(np.int64)
    here = Path("/proc/cpuinfo").read_text()
    found = {}
    for name, flags in SETS.items():
        if name.startswith("avx") and f" {name} " not in here:
            continue
        library = tmp_path / f"{name.split()[0]}.so"
        subprocess.run(["cc", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-shared", "-fPIC",
                        *flags, SOURCE, "-o", library], check=True)
        found[name] = normals(library, seed, purpose, step, atoms)
        assert np.array_equal(found[name], found["baseline"]), name
        assert np.array_equal(normals(library, seed, purpose, step, atoms[70:71]), found[name][70:71])
    numbers = found["baseline"]
    for k in (0, 1, 77, 100_002, len(atoms) - 1):
        atom = int(atoms[k])
        counter = np.array([atom & 0xFFFFFFFF, atom >> 32 | purpose << 16, step & 0xFFFFFFFF, step >> 32])
        u = (philox(counter, np.array([seed & 0xFFFFFFFF, seed >> 32])).astype(float) + 0.5) / 2**32
        radius = np.sqrt(-2 * np.log(u[[0, 2]]))
        expected = [radius[0] * np.cos(2 * np.pi * u[1]), radius[0] * np.sin(2 * np.pi * u[1]),
                    radius[1] * np.cos(2 * np.pi * u[3])]
        # A few units in the last place of a radius of 6.8 at most.
        assert np.allclose(numbers[k], expected, rtol=0, atol=1e-14)
    assert stats.kstest(numbers.ravel(), "norm").pvalue > 1e-4
    # Correlations of 100,000 pairs have a standard deviation of 0.0032.
    pairs = np.column_stack([numbers[:-1], numbers[1:]])
    assert np.abs(np.corrcoef(pairs.T) - np.eye(6)).max() < 5 * 0.0032
    assert np.abs(np.corrcoef((pairs**2).T) - np.eye(6)).max() < 5 * 0.0032
