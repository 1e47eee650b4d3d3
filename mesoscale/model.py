"""The particles of the mesoscale model and its energy, in nm, kBT and elementary charges.

The published model (Beard & Schlick, Structure 9:105, 2001; Sun, Zhang & Schlick, PNAS 102:8180, 2005; Arya & Schlick,
J. Phys. Chem. A 113:4045, 2009) keeps each nucleosome core as a rigid body and each linker as a chain of beads:

    stretch        h/2 (l - l0)^2                              per segment
    bend           g/2 beta^2                                  per bead, and per joint of a core with its linker
    twist          s/2 (alpha + gamma - phi0)^2                per segment
    electrostatic  l_B q_i q_j exp(-kappa r)/r                 particles that are not neighbours in the chain
    excluded       k_ev ((sigma/r)^12 - (sigma/r)^6)           the same pairs

and here additionally:

    floor          K/2 (contact - d)^2 where d < contact       capsules of linker DNA, spheres of cores
    restraint      flat to d0, harmonic to 2 d0, then linear   contacts
                   e f(r), f falls from 1 to 0 (`Wells`)       contacts held at their frequency
    confinement    k/2 (r - R)^2 where r > R                   all particles; likewise outside a container's walls
                                                               for every bead and every sphere of a core

What differs from the published model: rest length and rest twist follow from the exact number of base pairs of each
linker; the stretching constant is the measured stretch modulus of DNA, S/l0, because a softer chain would give
base-pair steps that no atomic model can follow; a core leaves and takes up its linkers where the crystal structure
1KX5 does, along the helix axis of the turn of DNA that ends there.

mesoscale/energy.py is the plain NumPy statement of all this; sampling uses the Fortran kernel fibre_energy, and tests
compare the two.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mesoscale.contact_energies import Wells, wells_of
from mesoscale.cores import Core, core_shapes
from mesoscale.fibre import Fibre
from mesoscale.field import WORTH, CoreField, core_field
from mesoscale.restraints import contact_partners

Array = NDArray[np.float64]

TERMS = ("stretch", "bend", "twist", "electrostatic", "excluded", "floor", "restraint", "confinement")
BOLTZMANN = 0.0138064852  # pN nm / K
DNA_BEAD_LENGTH = 3.0  # nm, the published bead spacing
# Mg2+ (Grigoryev, Arya, Correll, Woodcock & Schlick, PNAS 106:13317, 2009): linkers repel each other through this
# inverse screening length (1/nm), and their persistence length (nm) falls; all else stays as in monovalent salt.
MAGNESIUM_KAPPA, MAGNESIUM_PERSISTENCE = 2.5, 30.0


@dataclass(frozen=True)
class Parameters:
    """Physical constants of the model; the defaults are the published ones but for what the module text says."""

    temperature: float = 293.15  # K
    salt: float = 0.15  # mol/L, monovalent
    tails: Literal["rigid", "flexible"] = "rigid"  # while the fibre moves: at rest on their cores, or sampled with it
    magnesium: bool = False  # the published treatment of some mmol/L of Mg2+: see MAGNESIUM_KAPPA
    rise: float = 0.334  # nm per base pair
    twist_per_bp: float = 34.45  # degree
    persistence_length: float = 50.0  # nm
    stretch_modulus: float = 1000.0  # pN
    twist_rigidity: float = 300.0  # pN nm^2 (3.0e-12 erg nm)
    excluded_k: float = 0.001  # kBT
    sigma: tuple[float, float, float] = (3.6, 2.4, 1.2)  # nm: bead-bead, bead-site, site-site
    core_charges: Literal["fitted", "formal"] = "fitted"  # 350 sites, or 99: see crystal_core
    dna_radius: float = 1.1  # nm; half the smallest distance of two DNA axes
    floor_k: float = 1000.0  # kBT/nm^2
    contact_k: float = 1.0  # kBT/nm^2 for the strongest contact
    contact_distance: float = 12.0  # nm
    confinement_radius: float | None = None  # nm
    confinement_k: float = 1.0  # kBT/nm^2
    container: tuple[float, float, float] | None = None  # nm, full edges of a box with soft walls
    wall_k: float = 0.5  # kBT/nm^2 for every bead and every sphere of a core

    @property
    def thermal_energy(self) -> float:
        """kB T in pN nm."""
        return BOLTZMANN * self.temperature

    @property
    def dielectric(self) -> float:
        """Dielectric constant of water: Malmberg & Maryott 1956."""
        t = self.temperature - 273.15
        return 87.740 - 0.40008 * t + 9.398e-4 * t**2 - 1.410e-6 * t**3

    @property
    def bjerrum_length(self) -> float:
        """Distance (nm) at which two charges interact with kBT."""
        return 16710.0 / (self.dielectric * self.temperature)

    @property
    def kappa(self) -> float:
        """Inverse Debye length, 1/nm."""
        return 0.736 * float(np.sqrt(self.salt / 0.05 * 298.0 / self.temperature))

    @property
    def cutoff(self) -> float:
        """Distance (nm) beyond which pairs are left out: exp(-kappa r) = 1.2e-4."""
        return 9.0 / self.kappa

    @property
    def truncation_bound(self) -> float:
        """What the pairs beyond the cutoff can cost a charge of 1 e at most, kBT, among charges of 1 e/nm^3 in absolute
        value: the integral of l_B exp(-kappa r)/r over the space outside, as if all had one sign.
        """
        x = self.kappa * self.cutoff
        return 4 * np.pi * self.bjerrum_length * float(np.exp(-x)) * (1 + x) / self.kappa**2

    @property
    def linker_charge(self) -> float:
        """Effective charge of linker DNA, e/nm: fit to Stigter's (1977) charged cylinder, salt in mmol/L."""
        c = 1000.0 * self.salt
        return -5.8824 * (1.9019e-8 * c**3 - 8.2111e-6 * c**2 + 7.55404e-3 * c + 0.352429)


@dataclass(frozen=True)
class Limbs:
    """Points of flexible chains (histone tails, linker histones) that cores carry along, l for each of m cores, nm.

    place (m, l, 3) in the cores' frames, charge (m, l), kind (m, l) of matter, 1 to 5 as in mesoscale/tails.py, 0 for a
    point that is not there; sigma (5, 5) in nm and strength (5, 5) in kBT of the excluded volume between kinds.
    """

    place: Array
    charge: Array
    kind: NDArray[np.int32]
    sigma: Array
    strength: Array


@dataclass(frozen=True, eq=False)
class Chain:
    """The particles of a fibre in chain order and the constants of their energy.

    Cores have the `shape`, or one of the `others`: `form` (m,) says of each which, from 0; None: the first.
    `core` (n,) is 1, 2, ... for cores and 0 for beads; segment s joins particles s and s+1. `bp` (n,) is the base pair
    a bead stands for (fractional) or a core's dyad. `linker` numbers the stretch of free DNA a segment belongs to.
    There are s = n - 1 segments; a circle has one more, which joins its last particle to the first.

    Per segment (s,): rest_length nm, stretch_k kBT/nm^2, bend_k kBT/radian^2, twist_k kBT/radian^2 (0: free to turn),
    rest_twist radian. Per particle (n,): charge e, of beads. Per contact (c,): the two particles (c, 2), contact_k
    kBT/nm^2, contact_distance nm. The rest has the units of `Parameters`.
    """

    shape: Core
    core: NDArray[np.int32]
    bp: Array
    linker: NDArray[np.int32]
    rest_length: Array
    stretch_k: Array
    bend_k: Array
    twist_k: Array
    rest_twist: Array
    charge: Array
    contact: NDArray[np.int32]
    contact_k: Array
    contact_distance: Array
    bjerrum_length: float
    kappa: float
    cutoff: float
    excluded_k: float
    sigma: tuple[float, float, float]
    dna_radius: float
    floor_k: float
    confinement_k: float
    confinement_radius: float
    wall_k: float
    wall: tuple[float, float, float]  # nm, half the container's edges
    limbs: Limbs | None = None
    field: CoreField | None = None  # of the shape's sites; None: they are summed over
    dna_kappa: float | None = None  # 1/nm, between linker beads; None: as everywhere
    others: tuple[Core, ...] = ()
    form: NDArray[np.int32] | None = None
    other_fields: tuple[CoreField | None, ...] = ()
    wells: Wells | None = None  # energies of contacts

    @property
    def n(self) -> int:
        """Number of particles."""
        return len(self.core)

    @property
    def segments(self) -> int:
        """Number of segments."""
        return len(self.linker)

    @property
    def is_circle(self) -> bool:
        """Whether the last particle is joined to the first."""
        return self.segments == self.n

    @cached_property
    def end_of_segment(self) -> NDArray[np.int64]:
        """Particle (s,) that each segment ends at; it starts at the particle of its own number."""
        return np.arange(1, self.segments + 1) % self.n

    @cached_property
    def segment_before(self) -> NDArray[np.int64]:
        """Segment (n,) that ends at each particle, -1 where none does."""
        return np.arange(self.n) - 1 if not self.is_circle else (np.arange(self.n) - 1) % self.n

    @property
    def shapes(self) -> tuple[Core, ...]:
        """All shapes that cores have."""
        return self.shape, *self.others

    @property
    def fields(self) -> tuple[CoreField | None, ...]:
        """Tables of the fields of the shapes, None where sites are summed over."""
        return self.field, *(self.other_fields or (None,) * len(self.others))

    @property
    def forms(self) -> NDArray[np.int32]:
        """Which of the shapes (m,) each core has, from 0."""
        return np.zeros(len(self.cores), np.int32) if self.form is None else self.form

    def shape_of(self, particle: int) -> Core:
        """The shape of a core, by its particle."""
        return self.shapes[self.forms[self.core[particle] - 1]]

    @cached_property
    def joint_point(self) -> Array:
        """Where DNA leaves (n, 0) and arrives (n, 1) at each particle, in its own frame; zero for beads."""
        found = np.zeros((self.n, 2, 3))
        found[self.cores] = np.array([shape.joint_point for shape in self.shapes])[self.forms]
        return found

    @cached_property
    def joint_frame(self) -> Array:
        """Frames (n, 2, 3, 3) with which DNA leaves and arrives at each particle; those of the shape for beads too."""
        found = np.tile(self.shape.joint_frame, (self.n, 1, 1, 1))
        found[self.cores] = np.array([shape.joint_frame for shape in self.shapes])[self.forms]
        return found

    def reshaped(self, change: Callable[[Core], Core]) -> "Chain":
        """The chain with other shapes of its cores, and without tables of their fields."""
        return replace(self, shape=change(self.shape), others=tuple(change(one) for one in self.others), field=None,
                       other_fields=())

    @property
    def cores(self) -> NDArray[np.int32]:
        """Indices of the cores."""
        return np.flatnonzero(self.core).astype(np.int32)

    @property
    def beads(self) -> NDArray[np.int32]:
        """Indices of the linker beads."""
        return np.flatnonzero(self.core == 0).astype(np.int32)


def first_in_alphabet(sequence: str) -> int:
    """Where a circular sequence begins that comes before all others in the alphabet; of equal ones the first."""
    n, twice = len(sequence), 2 * sequence
    least = min(twice[k : k + 64] for k in range(n))  # which few places begin with
    return min((k for k in range(n) if twice.startswith(least, k)), key=lambda k: (twice[k : k + n], k))


def wrapped(angle: Array | float) -> Array | float:
    """An angle (radian) from -pi to pi."""
    return angle - 2 * np.pi * np.round(np.asarray(angle) / (2 * np.pi))


def build_chain(fibre: Fibre, parameters: Parameters) -> Chain:
    """Lay the fibre out as particles: linker beads about 3 nm apart, each linker exactly as long as its base pairs."""
    core: list[int] = []
    bp: list[float] = []
    charge: list[float] = []
    segment: list[tuple[int, float, float, bool]] = []  # linker number, rest length, rest twist, has twist

    def add_stretch(number: int, start: int, steps: int, beads: int, segments: int, skip: int, twisted: int) -> None:
        """Free DNA of `steps` base-pair steps from base pair `start`: its beads and segments."""
        twist = float(wrapped(np.radians(steps * parameters.twist_per_bp))) / segments
        length = parameters.rise * steps / segments
        for k in range(beads):
            core.append(0)
            bp.append((start + steps * (k + skip) / segments) % len(fibre.sequence))
            charge.append(parameters.linker_charge * parameters.rise * steps / beads)
        segment.extend((number, length, twist, k < twisted) for k in range(segments))

    def spacing(steps: int) -> int:
        return max(1, round(parameters.rise * steps / DNA_BEAD_LENGTH))

    places = fibre.places
    first, last = [place.first_bp for place in places], [place.last_bp for place in places]
    if not first and fibre.circular:  # a bare circle, which begins at the same base pair however it is numbered
        steps = len(fibre.sequence)
        add_stretch(0, first_in_alphabet(fibre.sequence), steps, spacing(steps), spacing(steps), 0, spacing(steps))
    elif not first:  # DNA alone: beads from end to end
        steps = len(fibre.sequence) - 1
        add_stretch(0, 0, steps, spacing(steps) + 1, spacing(steps), 0, spacing(steps) - 1)
    elif first[0] > 0 and not fibre.circular:
        beads = spacing(first[0])
        add_stretch(0, 0, first[0], beads, beads, 0, beads)
    for k, place in enumerate(places):
        core.append(k + 1)
        bp.append(place.middle)
        charge.append(0.0)
        if k + 1 < len(places) or fibre.circular:
            behind = first[k + 1] if k + 1 < len(places) else first[0] + len(fibre.sequence)
            steps = behind - last[k]
            beads = max(1, spacing(steps) - 1)
            add_stretch(k + 1, last[k], steps, beads, beads + 1, 1, beads + 1)
    steps = len(fibre.sequence) - 1 - last[-1] if last and not fibre.circular else 0
    if steps > 0:
        beads = spacing(steps)
        add_stretch(len(places), last[-1], steps, beads, beads, 1, beads - 1)

    length = np.array([s[1] for s in segment])
    thermal = parameters.thermal_energy
    circle = len(fibre.sequence) if fibre.circular else None
    partners = contact_partners(fibre.contacts, np.array(bp), circle)
    strongest = max((c.weight for c, *_ in partners), default=1.0)
    shapes, form = shapes_of(fibre, parameters)
    contact_k = 0.0 if fibre.contact_energies else parameters.contact_k
    return Chain(
        shape=shapes[0],
        others=shapes[1:],
        form=form,
        core=np.array(core, np.int32),
        bp=np.array(bp),
        linker=np.array([s[0] for s in segment], np.int32),
        rest_length=length,
        stretch_k=parameters.stretch_modulus / length / thermal,
        bend_k=(MAGNESIUM_PERSISTENCE if parameters.magnesium else parameters.persistence_length) / length,
        twist_k=np.where([s[3] for s in segment], parameters.twist_rigidity / length / thermal, 0.0),
        rest_twist=np.array([s[2] for s in segment]),
        charge=np.array(charge),
        contact=np.array([pair for _, *pair in partners], np.int32).reshape(-1, 2),
        contact_k=np.array([contact_k * c.weight / strongest for c, *_ in partners]),
        contact_distance=np.full(len(partners), parameters.contact_distance),
        bjerrum_length=parameters.bjerrum_length,
        kappa=parameters.kappa,
        cutoff=parameters.cutoff,
        excluded_k=parameters.excluded_k,
        sigma=parameters.sigma,
        dna_radius=parameters.dna_radius,
        floor_k=parameters.floor_k,
        confinement_k=0.0 if parameters.confinement_radius is None else parameters.confinement_k,
        confinement_radius=parameters.confinement_radius or 0.0,
        wall_k=0.0 if parameters.container is None else parameters.wall_k,
        wall=tuple(edge / 2 for edge in parameters.container or (0.0, 0.0, 0.0)),
        dna_kappa=MAGNESIUM_KAPPA if parameters.magnesium else None,
        wells=wells_of(fibre.contact_energies, np.array(bp), circle),
    )


def shapes_of(fibre: Fibre, parameters: Parameters, rigid_tails: bool = True
              ) -> tuple[tuple[Core, ...], NDArray[np.int32]]:
    """The different cores of a fibre, at least one, and which of them each place has; tails on them or not.

    Without tails charges are the fitted ones.
    """
    return core_shapes(fibre, parameters.dna_radius, parameters.salt, parameters.linker_charge * parameters.rise,
                       parameters.core_charges if rigid_tails else "fitted", rigid_tails)


def with_field(chain: Chain, least: int = WORTH) -> Chain:
    """The chain with a table of the field of each shape that enough cores have for it to pay."""
    count = np.bincount(chain.forms, minlength=len(chain.shapes))
    fields = [core_field(shape.site, shape.site_charge, chain.kappa, chain.cutoff) if cores >= least else None
              for shape, cores in zip(chain.shapes, count, strict=True)]
    return replace(chain, field=fields[0], other_fields=tuple(fields[1:]))


# Extra twist (degree) tried in turn when a straight linker would put the next core into what is there already.
EXTRA_TWIST = (0, 20, -20, 40, -40, 60, -60, 80, -80, 100, -100, 120, -120, 140, -140, 160, -160, 180)
REACH = 25.0  # nm: bodies of cores and segments whose middles are farther apart are not compared


def straight_conformation(chain: Chain) -> tuple[Array, Array]:
    """Positions (n, 3) and frames (n, 3, 3, columns) with every linker straight and of its rest length.

    A linker has its rest twist unless the core behind it would overlap with what is laid already; then it has the
    smallest extra twist, from a list, that avoids this (or overlaps least). A bead's frame is its segment's tangent
    and two normals. Centred on the origin.
    """
    position, frame = np.zeros((chain.n, 3)), np.tile(np.eye(3), (chain.n, 1, 1))
    point, walking = np.zeros(3), np.eye(3)  # end of the DNA laid so far and its frame there
    laid: list[tuple[Array, Array]] = []  # spheres (k, 3), radii (k,) of each core and of each finished linker
    around: list[Array] = []  # centre and radius (4,) of a sphere around it

    def lay(spheres: Array, radius: Array) -> None:
        laid.append((spheres, radius))
        around.append(_sphere_around(spheres, radius))

    def turned(by: Array, angle: float) -> Array:
        c, s = np.cos(angle), np.sin(angle)
        return by @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])

    for number in np.unique(chain.linker) if chain.n > 1 else [0]:
        segments = np.flatnonzero(chain.linker == number)
        first, last = (segments[0], segments[-1] + 1) if len(segments) else (0, 0)
        for p in range(first, last + 1):
            if p > first:
                point = point + chain.rest_length[p - 1] * walking[:, 0]
                walking = turned(walking, chain.rest_twist[p - 1])
            if chain.core[p] == 0:
                position[p], frame[p] = point, walking
            elif p == first and p > 0:
                continue  # laid as the end of the linker before
            else:
                best, shape = None, chain.shape_of(p)
                hulls = np.array(around).reshape(-1, 4)
                for extra in np.radians(EXTRA_TWIST) if p > 0 else [0.0]:
                    trial = turned(walking, extra) @ shape.joint_frame[1].T
                    centre = point - trial @ shape.joint_point[1]
                    spheres = centre + shape.sphere @ trial.T
                    own = _sphere_around(spheres, shape.sphere_radius)
                    apart = np.linalg.norm(hulls[:, :3] - own[:3], axis=1)
                    touching = apart < np.minimum(hulls[:, 3] + own[3], REACH)
                    overlap = _overlap(spheres, shape.sphere_radius, [laid[k] for k in np.flatnonzero(touching)])
                    if best is None or overlap < best[0]:
                        best = (overlap, extra, trial, centre)
                    if overlap == 0:
                        break
                _, extra, frame[p], position[p] = best
                for k, bead in enumerate(range(first, p)):  # the beads share the extra twist
                    if chain.core[bead] == 0:
                        frame[bead] = turned(frame[bead], extra * k / len(segments))
                lay(position[p] + shape.sphere @ frame[p].T, shape.sphere_radius)
                point = position[p] + frame[p] @ shape.joint_point[0]
                walking = frame[p] @ shape.joint_frame[0]
        beads = [p for p in range(first, last) if chain.core[p] == 0]
        if beads:
            lay(position[beads], np.full(len(beads), chain.dna_radius))
    return position - position.mean(axis=0), frame


def _sphere_around(spheres: Array, radius: Array) -> Array:
    """Centre and radius (4,) of a sphere that encloses all."""
    centre = spheres.mean(axis=0)
    return np.array([*centre, (np.linalg.norm(spheres - centre, axis=1) + radius).max()])


def _overlap(spheres: Array, radius: Array, others: list[tuple[Array, Array]]) -> float:
    """Sum of the squared depths to which spheres enter others."""
    total = 0.0
    for centres, radii in others:
        depth = radius[:, None] + radii[None] - cdist(spheres, centres)
        total += float((np.maximum(depth, 0.0) ** 2).sum())
    return total


def segment_ends(chain: Chain, position: Array, frame: Array) -> tuple[Array, Array]:
    """Start (s, 3) and end (s, 3) of every segment."""
    is_core = (chain.core > 0)[:, None]
    leaves, arrives = (np.where(is_core, position + (frame @ chain.joint_point[:, end, :, None])[:, :, 0], position)
                       for end in (0, 1))
    return leaves[:chain.segments], arrives[chain.end_of_segment]


def over_stretch(chain: Chain, position: Array, frame: Array) -> Array:
    """Nanometres (s,) by which every segment is longer than at rest; negative where it is shorter."""
    start, end = segment_ends(chain, position, frame)
    return np.linalg.norm(end - start, axis=1) - chain.rest_length


def body_points(chain: Chain, position: Array, frame: Array) -> Array:
    """Points (k, 3) that span the fibre: its beads and the floor spheres of its cores."""
    cores = [position[p] + chain.shape_of(p).sphere @ frame[p].T for p in chain.cores]
    return np.concatenate([position[chain.beads], *cores])
