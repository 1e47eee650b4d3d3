"""A polymer of few beads, one for each bin of a contact map, on which contact energies are found.

The chain is Gaussian: the mean square distance of neighbouring beads is that of the fibre's nodes between them
(mesoscale/polymer.py); of a circle the last bead is joined to the first. Beads repel each other softly, for nucleosomes
of one bin keep off those of another, and a sphere as large as the territory confines them; or else neighbours crowd
them, the chain's own images in a periodic cell as large as the territory. Monte Carlo of tens of beads gives thousands
of independent conformations a second; the inner loop is the Fortran kernel polymer_monte_carlo.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mesoscale import _kernels
from mesoscale.contact_energies import FLAT, REACH, closeness
from mesoscale.model import Chain
from mesoscale.polymer import Guide, nodes_of, straight_distance

Array = NDArray[np.float64]
# kBT that it costs two beads to be in each other. 11 nucleosomes each, 11 nm wide, in two coils of 20 nm radius of
# gyration meet 121 v n times, v = 5600 nm^3 and n = 6.5e-6/nm^3 the density of pairs at full overlap: 4; Flory's
# mean field counts too many of them, for chains avoid each other.
REPULSION = 2.0
EVERY = 5  # sweeps between two samples; a sweep is a trial a bead
AT_ONCE = 8  # samples of each walk in a call of the kernel: random numbers take memory
RANDOM_PER_TRIAL = 7
GUIDE_SAMPLES = 100  # before a fibre follows the polymer: one forgets the other within one of them


@dataclass(frozen=True, eq=False)
class BinnedPolymer:
    """n beads at base pairs bp (n,): spring in kBT/nm^2 between neighbours, (n - 1,) or of a ring (n,), energy (n, n)
    of contacts in kBT beyond `repulsion`, symmetric, radius of the confining sphere (nm; None: none) and its stiffness
    in kBT/nm^2, edge of the cubic cell of neighbours (nm; None: none): images of the chain, which cost `repulsion`.
    Raises ValueError for a cell in which two images of a bead could meet another."""

    bp: Array
    spring: Array
    energy: Array
    repulsion: float = REPULSION
    radius: float | None = None
    stiffness: float = 1.0
    cell: float | None = None

    def __post_init__(self) -> None:
        if self.cell is not None and self.cell < 2 * REACH:
            raise ValueError(f"a cell of {self.cell:g} nm is too small for neighbours: contacts reach {REACH:g} nm; "
                             f"make it at least {2 * REACH:g} nm wide")

    @classmethod
    def of(cls, chain: Chain, bp: Array, circle: int | None = None) -> "BinnedPolymer":
        """One with beads at base pairs `bp` (n,) of a fibre, or of a circle of `circle` base pairs, in the sphere that
        confines it; ascending, of a circle from any of them on."""
        nodes = nodes_of(chain)
        ends = nodes[1:] if circle is None else [*nodes[1:], chain.n]
        step = np.array([straight_distance(chain, a, b) for a, b in zip(nodes, ends, strict=False)])
        along = np.concatenate([[0.0], np.cumsum(step**2)])
        if circle is None:
            # Beyond the outermost nodes the chain goes on as it does on average.
            slope = along[-1] / (chain.bp[nodes[-1]] - chain.bp[nodes[0]])
            inside = np.clip(bp, chain.bp[nodes[0]], chain.bp[nodes[-1]])
            square = np.diff(np.interp(bp, chain.bp[nodes], along) + slope * (bp - inside))
        else:
            first = chain.bp[nodes[0]]
            passed = np.append((chain.bp[nodes] - first) % circle, circle)
            at = np.interp((bp - first) % circle, passed, along)
            square = (np.roll(at, -1) - at) % along[-1]
        radius = chain.confinement_radius if chain.confinement_k > 0 else None
        return cls(np.asarray(bp, float), 3 / square, np.zeros((len(bp), len(bp))), radius=radius,
                   stiffness=chain.confinement_k)  # fmt: skip

    def with_energies(self, pair: NDArray[np.int64], energy: Array) -> "BinnedPolymer":
        """The same with energies (c,) of the contacts of pairs of beads (c, 2)."""
        whole = np.zeros_like(self.energy)
        whole[pair[:, 0], pair[:, 1]] = energy
        return replace(self, energy=whole + whole.T)

    def with_neighbours(self) -> "BinnedPolymer":
        """The same with neighbours in place of the sphere, at the same density: a cell of the sphere's volume. Raises
        ValueError without a sphere."""
        if self.radius is None:
            raise ValueError("neighbours take the volume of a confining sphere: give its radius")
        return replace(self, radius=None, cell=float((4 / 3 * np.pi) ** (1 / 3) * self.radius))

    def start(self, walks: int, random: np.random.Generator) -> Array:
        """Conformations (walks, n, 3) of the chain alone, as near to the middle of the sphere as they come to lie."""
        step = random.standard_normal((walks, len(self.spring), 3)) / np.sqrt(self.spring)[:, None]
        place = np.concatenate([np.zeros((walks, 1, 3)), np.cumsum(step, axis=1)], axis=1)
        if len(self.spring) == len(self.bp):  # a ring: the walk is brought back to where it began
            share = np.append(0.0, np.cumsum(1 / self.spring)) / np.sum(1 / self.spring)
            place = (place - share[:, None] * place[:, -1:])[:, :-1]
        return place - place.mean(axis=1, keepdims=True)

    def sample(self, place: Array, samples: int, random: np.random.Generator) -> tuple[Array, float]:
        """Go on from conformations (walks, n, 3), changed in place; returns samples (samples x walks, n, 3), nm, and
        the share of moves that were accepted."""
        n, walks = len(self.bp), len(place)
        every = EVERY * n
        kept, accepted, done = [], 0, 0
        state = np.asfortranarray(np.transpose(place, (2, 1, 0)))
        cost = np.asfortranarray(self.energy + self.repulsion * (1 - np.eye(n)))
        step = 2.0 * float(self.spring.mean()) ** -0.5
        while done < samples:
            now = min(AT_ONCE, samples - done)
            numbers = random.random((walks, now * every, RANDOM_PER_TRIAL)).T
            found, moved = _kernels.polymer_monte_carlo.sample_polymers(
                every=every, samples=now, spring=self._springs(), pair=cost, well=np.array([FLAT, REACH]),
                sphere=self._sphere(), cell=self._cell(), step=step, random=np.asfortranarray(numbers), place=state,
            )  # fmt: skip
            kept.append(np.transpose(found, (2, 3, 1, 0)).reshape(-1, n, 3))
            accepted += int(moved.sum())
            done += now
        place[:] = np.transpose(state, (2, 1, 0))
        return np.concatenate(kept), accepted / (samples * every * walks)

    def kernel_energy(self, place: Array) -> float:
        """Energy (kBT) of one conformation (n, 3)."""
        n = len(self.bp)
        return float(_kernels.polymer_monte_carlo.polymer_energy(
            spring=self._springs(), pair=self.energy + self.repulsion * (1 - np.eye(n)), well=np.array([FLAT, REACH]),
            sphere=self._sphere(), cell=self._cell(), place=np.asfortranarray(place.T)))  # fmt: skip

    def _springs(self) -> Array:
        """(n,) the last of which joins the ends; zero where nothing does."""
        return np.append(self.spring, [0.0] * (len(self.bp) - len(self.spring)))

    def _sphere(self) -> Array:
        return np.array([0.0, 0.0] if self.radius is None else [self.stiffness, self.radius])

    def _cell(self) -> Array:
        return np.array([0.0, 0.0] if self.cell is None else [self.cell, self.repulsion])


def drawn_guide(chain: Chain, random: np.random.Generator) -> Guide:
    """A path for the fibre through the particles that its wells hold, from the polymer with their energies."""
    particle, pair = np.unique(chain.wells.pair, return_inverse=True)
    polymer = BinnedPolymer.of(chain, chain.bp[particle])
    polymer = polymer.with_energies(np.sort(pair.reshape(-1, 2), axis=1), chain.wells.energy)
    place = polymer.start(1, random)
    polymer.sample(place, GUIDE_SAMPLES, random)
    return Guide(particle, place[0])


def contact_frequencies(samples: Array) -> Array:
    """Mean contact (n, n) of each pair of beads over samples (s, n, 3)."""
    n = samples.shape[1]
    total = np.zeros((n, n))
    for k in range(1, n):
        mean = closeness(np.linalg.norm(samples[:, k:] - samples[:, :-k], axis=2)).mean(axis=0)
        total[np.arange(n - k), np.arange(k, n)] = mean
    return total + total.T
