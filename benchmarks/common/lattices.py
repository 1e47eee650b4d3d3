"""Crystals of one kind of atoms as the engine starts from them: positions, velocities, restart files."""

import struct
from pathlib import Path

import numpy as np

BOLTZMANN = 8.31446261815324 / 4184  # kcal/mol/K
ACCELERATION = 418.4  # (angstrom/ps)^2 in one kcal/mol/u
ATMOSPHERE = 101325 * 6.02214076e23 / 4184 * 1e-30  # kcal/mol/angstrom^3
ELECTRON_VOLT = 1.602176634e-19 * 6.02214076e23 / 4184  # kcal/mol
ARGON = {"mass": 39.948, "sigma": 3.405, "epsilon": 0.238}
"""What the reduced units of Lennard-Jones systems are here: u, angstrom, kcal/mol."""


def reduced_time(mass: float, sigma: float, epsilon: float) -> float:
    """The unit of time, sigma (m/epsilon)^(1/2), in ps."""
    return sigma * (mass / (epsilon * ACCELERATION)) ** 0.5


def fcc(cells: tuple[int, int, int], constant: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 3) and box (3,) of a face-centred cubic crystal."""
    corner = np.stack(np.meshgrid(*[np.arange(n) for n in cells], indexing="ij"), axis=-1).reshape(-1, 1, 3)
    base = np.array([[0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    return constant * (corner + base).reshape(-1, 3), constant * np.array(cells, float)


def thermal_velocities(n: int, mass: float, kt: float, seed: int) -> np.ndarray:
    """Maxwell velocities (n, 3), angstrom/ps, with the centre of mass at rest and exactly 3 (n - 1) kt/2 (kcal/mol)."""
    velocity = np.random.default_rng(seed).normal(size=(n, 3))
    velocity -= velocity.mean(axis=0)
    return velocity * np.sqrt(3 * (n - 1) * kt * ACCELERATION / (mass * (velocity**2).sum()))


def write_restart(path: Path, position: np.ndarray, velocity: np.ndarray, box: np.ndarray) -> None:
    """One restart file, of one domain, from which dynamics continues: these velocities are kept."""
    n = len(position)
    inside = position - box * np.floor(position / box)
    words = b"CMDRST02" + struct.pack("<10q4d2q", 2, 0, 1, 1, 1, 1, n, n, 0, 1, 0.0, *box, 0, 0) + bytes(8 * 48)
    words += np.arange(n, dtype="<i8").tobytes() + inside.astype("<f8").tobytes() + velocity.astype("<f8").tobytes()
    path.write_bytes(words + struct.pack("<Q", _checksum(words)))


def _checksum(data: bytes) -> int:
    """The reflected CRC of ECMA-182 from all ones, as in fortran/engine/checksum.f90, a word at a time."""
    table = [[0] * 256 for _ in range(8)]
    for byte in range(256):
        entry = byte
        for _ in range(8):
            entry = entry >> 1 ^ (0xC96C5795D7870F42 if entry & 1 else 0)
        table[0][byte] = entry
    for k in range(1, 8):
        for byte in range(256):
            table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255]
    t7, t6, t5, t4, t3, t2, t1, t0 = table[::-1]
    crc = (1 << 64) - 1
    for word in np.frombuffer(data, "<u8").tolist():
        x = crc ^ word
        crc = (t7[x & 255] ^ t6[x >> 8 & 255] ^ t5[x >> 16 & 255] ^ t4[x >> 24 & 255] ^ t3[x >> 32 & 255]
               ^ t2[x >> 40 & 255] ^ t1[x >> 48 & 255] ^ t0[x >> 56])
    return crc
