"""The border to the Fortran kernels of a fibre: constants are set once for a chain, then it is placed and moved."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mesoscale import _kernels
from mesoscale.handle import Handle
from mesoscale.model import TERMS, Chain

Array = NDArray[np.float64]


def set_threads(threads: int) -> None:
    """Share the work of the kernels among so many threads from now on; without it OpenMP decides. Results do not depend
    on it."""
    _kernels.thread_count.set_threads(threads)


class Moves(NamedTuple):
    """Settings of Monte Carlo moves: cumulative probability (6,) and largest displacement (6,) of each kind, nm or
    radian, and the number of particles that one crank or pivot moves at most."""

    weight: Array
    step: Array
    longest: int


class Relaxation(NamedTuple):
    """Settings of a relaxation: FIRE minimisation or dynamics with friction, in the kernel's unit of time.

    ``margin`` (nm) widens floors; ``pressure`` (kBT/nm^3) acts on a box that reaches ``rim`` (nm) beyond the walls;
    charges and excluded volume act every ``charge_interval`` steps, never when it is 0.
    """

    steps: int
    minimise: bool
    time_step: float
    margin: float
    pressure: float
    rim: float
    friction: float
    charge_interval: int


def columns(array: NDArray) -> NDArray:
    """(k, 3) points as Fortran has them."""
    return np.asfortranarray(np.asarray(array).T)


def matrices(frame: NDArray) -> NDArray:
    """(k, 3, 3) frames as Fortran has them."""
    return np.asfortranarray(np.transpose(frame, (1, 2, 0)))


class FibreKernel:
    """A chain in the kernels, and the conformation in which it was placed last.

    It is freed with the last reference, or by ``close``; every later use raises ValueError.
    """

    def __init__(self, chain: Chain) -> None:
        """Hand the constants of a chain of two particles or more over."""
        border = _kernels.fibre_handle
        self.n = chain.n
        self._handle = Handle(border.create_fibre(), border.free_fibre, "kernel of a fibre")
        self._fields = chain.fields  # the kernel refers to them
        number = self._handle.number
        border.set_particles(number, core=chain.core, linker=chain.linker, charge=chain.charge)
        border.set_elasticity(number, rest_length=chain.rest_length, stretch_k=chain.stretch_k, bend_k=chain.bend_k,
                              twist_k=chain.twist_k, rest_twist=chain.rest_twist)  # fmt: skip
        border.set_shapes(number, n_shapes=len(chain.shapes), form=chain.forms + 1)
        for which, shape in enumerate(chain.shapes, start=1):
            border.set_joints(number, which, point=columns(shape.joint_point), frame=matrices(shape.joint_frame))
            border.set_sites(number, which, site=columns(shape.site), site_charge=shape.site_charge)
            border.set_spheres(number, which, sphere=columns(shape.sphere), radius=shape.sphere_radius,
                               near=columns(shape.sphere_near))  # fmt: skip
        dna_kappa = chain.kappa if chain.dna_kappa is None else chain.dna_kappa
        border.set_electrostatics(number, bjerrum=chain.bjerrum_length, kappa=chain.kappa, dna_kappa=dna_kappa,
                                  cutoff=chain.cutoff)  # fmt: skip
        bead_bead, bead_site, site_site = chain.sigma
        border.set_excluded_volume(number, strength=chain.excluded_k, bead_bead=bead_bead, bead_site=bead_site,
                                   site_site=site_site)  # fmt: skip
        border.set_floors(number, dna_radius=chain.dna_radius, stiffness=chain.floor_k)
        border.set_confinement(number, stiffness=chain.confinement_k, radius=chain.confinement_radius,
                               wall_stiffness=chain.wall_k, wall=chain.wall)  # fmt: skip
        if len(chain.contact):
            border.set_contacts(number, contact=columns(chain.contact + 1), stiffness=chain.contact_k,
                                distance=chain.contact_distance)  # fmt: skip
        if chain.wells is not None:
            border.set_wells(number, pair=columns(chain.wells.pair + 1), energy=chain.wells.energy,
                             flat=chain.wells.flat, reach=chain.wells.reach)  # fmt: skip
        for which, field in enumerate(chain.fields, start=1):
            if field is not None:
                border.set_field(number, which, field.number)
        limbs = chain.limbs
        if limbs is not None:
            border.set_limbs(number, limb=np.asfortranarray(np.transpose(limbs.place, (2, 1, 0))),
                             charge=columns(limbs.charge), kind=columns(limbs.kind),
                             sigma=np.asfortranarray(limbs.sigma),
                             strength=np.asfortranarray(limbs.strength))  # fmt: skip

    @property
    def number(self) -> int:
        """What the kernel's procedures take. Raises ValueError after ``close``."""
        return self._handle.number

    def close(self) -> None:
        """Free the kernel's memory now."""
        self._handle.close()

    def place(self, position: Array, frame: Array) -> "FibreKernel":
        """Put the fibre into a conformation: positions (n, 3) and frames (n, 3, 3); all other calls begin there."""
        if np.shape(position) != (self.n, 3) or np.shape(frame) != (self.n, 3, 3):
            raise ValueError(f"a fibre of {self.n} particles needs as many positions and frames, not arrays of shapes "
                             f"{np.shape(position)} and {np.shape(frame)}")  # fmt: skip
        _kernels.fibre_handle.place_fibre(self.number, columns(position), matrices(frame))
        return self

    def conformation(self) -> tuple[Array, Array]:
        """Positions (n, 3) and frames (n, 3, 3) now."""
        position, frame = _kernels.fibre_handle.read_fibre(self.number, self.n)
        return np.ascontiguousarray(position.T), np.ascontiguousarray(np.transpose(frame, (2, 0, 1)))

    def energies(self) -> Array:
        """Every term of the energy in kBT, in the order of TERMS."""
        return _kernels.fibre_monte_carlo.total_energy(self.number)

    def run_trials(
        self, moves: Moves, random: Array, strict: bool, energy: Array
    ) -> tuple[Array, NDArray[np.int32], NDArray[np.int32]]:
        """Make one trial for each row of `random` (trials, 11), from a conformation of this energy.

        Returns the running energy of each term (kBT), and trials and acceptances of each kind of move. With `strict` no
        move may deepen an overlap.
        """
        energy = energy.copy()
        tried, accepted = _kernels.fibre_monte_carlo.run_trials(
            self.number, weight=moves.weight, step=moves.step, longest=moves.longest, strict=int(strict),
            random=columns(random), energy=energy,
        )  # fmt: skip
        return energy, tried, accepted

    def relax(self, settings: Relaxation, velocity: Array, wall: Array) -> tuple[Array, float]:
        """Relax from velocities (7, n + 1), with walls at half the edges (3,) of a box.

        Returns the walls at the end and the largest component of the force (kBT/nm).
        """
        wall = np.array(wall, float)
        _, force = _kernels.fibre_relaxation.relax(
            self.number, n_steps=settings.steps, minimise=int(settings.minimise),
            charge_interval=settings.charge_interval, step=settings.time_step, friction=settings.friction,
            margin=settings.margin, pressure=settings.pressure, rim=settings.rim,
            velocity=np.array(velocity, order="F"), wall=wall, n=self.n,
        )  # fmt: skip
        return wall, float(force)

    def forces(self, charges: bool) -> tuple[Array, Array]:
        """Forces (7, n + 1) on every freedom, with or without those of charges, and the energies (6,) of the parts."""
        return _kernels.fibre_relaxation.conformation_forces(self.number, self.n, int(charges))


_kernel_of_chain: "WeakKeyDictionary[Chain, FibreKernel]" = WeakKeyDictionary()


def kernel_of(chain: Chain) -> FibreKernel:
    """The kernel of a chain, made once and freed with the chain."""
    if chain not in _kernel_of_chain:
        _kernel_of_chain[chain] = FibreKernel(chain)
    return _kernel_of_chain[chain]


def kernel_energies(chain: Chain, position: Array, frame: Array) -> Array:
    """Every term of the energy in kBT, in the order of TERMS, by the Fortran kernel."""
    if chain.n == 1:
        return np.zeros(len(TERMS))  # a core alone has no linker to sample
    return kernel_of(chain).place(position, frame).energies()
