"""The border to the Fortran kernels of flexible chains: constants are set once, then beads are placed and moved."""

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mesoscale import _kernels
from mesoscale.handle import Handle
from mesoscale.kernels import FibreKernel, columns

if TYPE_CHECKING:
    from mesoscale.tails import FixedPoints, FlexibleChains

Array = NDArray[np.float64]


class Screening(NamedTuple):
    """Bjerrum length (nm), inverse screening length (1/nm) and cutoff (nm) of charges."""

    bjerrum_length: float
    kappa: float
    cutoff: float


class Dynamics(NamedTuple):
    """Settings of dynamics, in the kernel's unit of time.

    Charges act every ``charge_interval`` steps; nearer than ``closest`` of sigma they do not, and excluded volume
    pushes no harder. ``margin`` (nm) widens floors.
    """

    steps: int
    time_step: float
    charge_interval: int
    closest: float
    margin: float


class ChainKernel:
    """Flexible chains in the kernels, and the beads as they were placed last.

    It is freed with the last reference, or by ``close``; every later use raises ValueError.
    """

    def __init__(self, tails: "FlexibleChains") -> None:
        """Hand the constants of one chain or more over."""
        border = _kernels.chain_handle
        self.beads = int(tails.first[-1])
        self._handle = Handle(border.create_chains(), border.free_chains, "kernel of flexible chains")
        number = self._handle.number
        border.set_tethers(number, first=tails.first + 1, core=tails.core + 1, anchor=columns(tails.anchor),
                           stiffness=tails.tether_k)  # fmt: skip
        border.set_springs(number, bond_length=tails.bond_length, bond_k=tails.bond_k, angle=tails.angle,
                           angle_k=tails.angle_k)  # fmt: skip
        border.set_charges(number, charge=tails.charge, kind=tails.kind)
        border.set_excluded_volume(number, sigma=np.asfortranarray(tails.sigma),
                                   strength=np.asfortranarray(tails.strength))  # fmt: skip
        if len(tails.head_core):
            border.set_heads(number, core=tails.head_core + 1, site=columns(tails.head_site), charge=tails.head_charge)

    @property
    def number(self) -> int:
        """What the kernel's procedures take. Raises ValueError after ``close``."""
        return self._handle.number

    def close(self) -> None:
        """Free the kernel's memory now."""
        self._handle.close()

    def surround(self, points: "FixedPoints", anchor: Array, screening: Screening) -> None:
        """Set a fibre that stands still: its points, the places of the tethers (c, 3), and how charges are screened."""
        _kernels.chain_handle.set_surroundings(
            self.number, point=columns(points.position), point_charge=points.charge, point_kind=points.kind,
            point_core=points.core + 1, tether_place=columns(anchor), bjerrum=screening.bjerrum_length,
            kappa=screening.kappa, cutoff=screening.cutoff,
        )  # fmt: skip

    def place(self, beads: Array) -> "ChainKernel":
        """Put the beads (b, 3) there; all other calls begin there."""
        if np.shape(beads) != (self.beads, 3):
            raise ValueError(f"flexible chains of {self.beads} beads cannot have places of shape {np.shape(beads)}")
        _kernels.chain_handle.place_beads(self.number, columns(beads))
        return self

    def places(self) -> Array:
        """Where the beads (b, 3) are now."""
        return np.ascontiguousarray(_kernels.chain_handle.read_beads(self.number, self.beads).T)

    def energies(self) -> Array:
        """Every term (5,) of the chains among fixed points: bond, bend, tether, electrostatic, excluded volume; kBT."""
        return _kernels.tail_regrowth.total_energy(self.number)

    def regrow(
        self, chains: NDArray[np.int64], random: Array, energy: Array, trials: int, trial_cutoff: float
    ) -> tuple[Array, NDArray[np.int32]]:
        """Try to regrow the chains (k,) one after the other, with so many trial positions for each bead.

        Returns the running energy of each term (kBT) and which chains were (k,).
        """
        energy = energy.copy()
        accepted = _kernels.tail_regrowth.regrow_chains(
            self.number, n_trials=trials, trial_cutoff=trial_cutoff, chain=(chains + 1).astype(np.int32),
            random=random, energy=energy,
        )  # fmt: skip
        return energy, accepted

    def advance(self, fibre: FibreKernel, settings: Dynamics, velocity: Array, bead_velocity: Array) -> Array:
        """Dynamics together with a placed fibre that has a table of its cores' field.

        From velocities (7, n + 1) of the fibre and (3, b) of the beads; returns the energies (7,) of the parts.
        """
        return _kernels.fibre_dynamics.run_dynamics(
            fibre.number, self.number, n_steps=settings.steps, charge_interval=settings.charge_interval,
            step=settings.time_step, margin=settings.margin, closest=settings.closest,
            velocity=np.array(velocity, order="F"), bead_velocity=np.array(bead_velocity, order="F"), n=fibre.n,
        )  # fmt: skip

    def forces(self, fibre: FibreKernel) -> tuple[Array, Array, Array]:
        """Forces on the fibre (7, n + 1) and on the beads (3, b), and the energies (7,) of the parts."""
        return _kernels.fibre_dynamics.dynamics_forces(fibre.number, self.number, fibre.n, self.beads)


_kernel_of_chains: "WeakKeyDictionary[FlexibleChains, ChainKernel]" = WeakKeyDictionary()


def chain_kernel_of(tails: "FlexibleChains") -> ChainKernel:
    """The kernel of flexible chains that move with their fibre, made once and freed with them."""
    if tails not in _kernel_of_chains:
        _kernel_of_chains[tails] = ChainKernel(tails)
    return _kernel_of_chains[tails]
