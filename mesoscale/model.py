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

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mesoscale.contact_energies import Wells, wells_of
from mesoscale.core_charges import FULL_WRAP, core_charges, rigid_tail_sites, template
from mesoscale.fibre import Fibre
from mesoscale.field import WORTH, CoreField, core_field
from mesoscale.restraints import contact_partners

Array = NDArray[np.float64]

TERMS = ("stretch", "bend", "twist", "electrostatic", "excluded", "floor", "restraint", "confinement")
BOLTZMANN = 0.0138064852  # pN nm / K
DNA_BEAD_LENGTH = 3.0  # nm, the published bead spacing
SPHERE_SPACING = 3  # base pairs between the floor spheres along wrapped DNA
# Spheres every 3 bp (1.02 nm) of this excess radius keep two axes apart by at least twice the nominal radius also when
# the spheres of the two are staggered: (2 (1.1 + 0.03))^2 - 0.51^2 >= 2.2^2.
STAGGER = 0.03
OCTAMER_BALL = 2.6  # nm; fits between the two gyres' faces and fills the bore
CORE_BALLS = (4.2, 3.3)  # nm; the radius of the superhelix, and what leaves room for linkers to leave
# Mg2+ (Grigoryev, Arya, Correll, Woodcock & Schlick, PNAS 106:13317, 2009): linkers repel each other through this
# inverse screening length (1/nm), and their persistence length (nm) falls; all else stays as in monovalent salt.
MAGNESIUM_KAPPA, MAGNESIUM_PERSISTENCE = 2.5, 30.0
HALF_TURN = 5  # base pairs
NEAR_JOINT = 12  # base pairs of wrapped DNA that a linker, being their continuation, may come close to


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
class Core:
    """A rigid nucleosome core in its own frame, nm.

    joint_point (2, 3) and joint_frame (2, 3, 3): where DNA leaves (0) and arrives (1); frame columns are the helix axis
    and two normals. site (s, 3) with site_charge (s,). sphere (k, 3) with sphere_radius (k,): what nothing may
    enter; sphere_near (k, 2): wrapped DNA next to the exit and to the entry, and whatever touches it there: the linker
    that continues it ignores these.
    """

    joint_point: Array
    joint_frame: Array
    site: Array
    site_charge: Array
    sphere: Array
    sphere_radius: Array
    sphere_near: NDArray[np.int32]


def crystal_path(wrapped_length: int = FULL_WRAP) -> tuple[Array, Array]:
    """Base-pair origins (n, 3) in nm and frames (n, 3, 3) of the middle `wrapped_length` pairs of 1KX5."""
    data = template("nucleosome_path_1kx5.json")
    off = (FULL_WRAP - wrapped_length) // 2
    inside = slice(off, FULL_WRAP - off)
    return np.array(data["origin"])[inside] / 10.0, np.array(data["frame"]).reshape(-1, 3, 3)[inside]


def joint_frames(wrapped_length: int = FULL_WRAP) -> Array:
    """Frames (2, 3, 3) with which DNA leaves (0) and arrives (1): helix axis and two normals.

    A linker continues the helix axis, from which the normal of a single base pair stands off by 10 degrees: the axis is
    the mean of the normals over a turn around the joint, of the crystal's last turn where it ends there. The base
    pair's own frame is turned onto it by the shortest way. In 1KX5 the axes cross at 43 degrees; the ten base pairs
    beyond them that PDB 4QLC has, with a linker histone, cross at 42, the normals of the last base pairs at 60.
    """
    _, frame = crystal_path()
    joints = []
    for end in ((FULL_WRAP + wrapped_length) // 2 - 1, (FULL_WRAP - wrapped_length) // 2):
        first = min(max(end - HALF_TURN, 0), FULL_WRAP - 1 - 2 * HALF_TURN)
        x, normal = frame[end, :, 0], frame[end, :, 2]
        axis = frame[first : first + 2 * HALF_TURN + 1, :, 2].sum(axis=0)
        axis /= np.linalg.norm(axis)
        across = transported(x, normal, axis)
        joints.append(np.stack([axis, across, np.cross(axis, across)], axis=1))
    return np.array(joints)


def crystal_core(
    wrapped_length: int = FULL_WRAP, dna_radius: float = 1.1, salt: float = 0.15, rigid_tails: bool = True,
    charges: Literal["fitted", "formal"] = "fitted",
) -> Core:
    """The core of PDB 1KX5 with `wrapped_length` base pairs in a salt (mol/L).

    Fitted charges: those whose Debye-Hueckel field is the Poisson-Boltzmann field of the core without tails (about 300
    sites on its envelope, mesoscale/disco.py); with `rigid_tails` also the 50 beads of tails that lie on their own
    core, for a model in which tails do not move. Formal charges, a third as many sites: -2 e a wrapped base pair,
    gathered on the DNA axis every 3 bp (-294 e for 147 bp), and those of histones and tails (+148 e). Spheres: wrapped
    DNA, the octamer in 32 balls, those tails in balls of three residues. Raises ValueError for a salt beyond that of
    the fits.
    """
    origin, _ = crystal_path(wrapped_length)
    data = template("nucleosome_core_1kx5.json")
    # From the dyad outwards, so that the set is symmetric whatever the wrapped length.
    dyad = (wrapped_length - 1) // 2
    index = np.arange(dyad % SPHERE_SPACING, wrapped_length, SPHERE_SPACING)
    octamer, tails = np.array(data["octamer_spheres"]), np.array(data["tail_spheres"])
    joint = origin[[-1, 0]]
    sphere = np.concatenate([origin[index], octamer[:, :3] / 10.0, tails[:, :3] / 10.0])
    radius = np.concatenate([np.full(len(index), dna_radius + STAGGER), octamer[:, 3] / 10.0, tails[:, 3] / 10.0])
    # Some tails lie against the DNA's ends in the crystal: no linker can leave without touching them.
    near = np.linalg.norm(sphere[:, None] - joint, axis=2) < dna_radius + radius[:, None]
    near[: len(index), 0] |= index >= wrapped_length - NEAR_JOINT
    near[: len(index), 1] |= index < NEAR_JOINT
    if charges == "formal":
        histone = np.array(data["charge_sites"])
        site = np.concatenate([origin[index], histone[:, :3] / 10.0])
        charge = np.concatenate([np.full(len(index), -2.0 * wrapped_length / len(index)), histone[:, 3]])
    else:
        site, charge = core_charges(salt, wrapped_length)
    if rigid_tails and charges == "fitted":
        tail_site, tail_charge = rigid_tail_sites(salt)
        site, charge = np.concatenate([site, tail_site]), np.concatenate([charge, tail_charge])
    return Core(
        joint_point=joint,
        joint_frame=joint_frames(wrapped_length),
        site=site,
        site_charge=charge,
        sphere=sphere,
        sphere_radius=radius,
        sphere_near=near.astype(np.int32),
    )


def coarse_core(core: Core) -> Core:
    """The same core with few spheres, for folding: every second one of wrapped DNA, and one ball for the octamer."""
    dna = np.flatnonzero(core.sphere_radius == core.sphere_radius[0])[::2]
    # The rule of STAGGER at twice the spacing.
    wide = 0.5 * float(np.hypot(2 * (core.sphere_radius[0] - STAGGER), 0.34 * SPHERE_SPACING))
    return replace(
        core,
        sphere=np.concatenate([core.sphere[dna], np.zeros((1, 3))]),
        sphere_radius=np.append(np.full(len(dna), wide), OCTAMER_BALL),
        sphere_near=np.concatenate([core.sphere_near[dna], np.zeros((1, 2), np.int32)]),
    )


def ball_core(core: Core) -> Core:
    """The same core as a ball around its centre, smaller for its own linkers: nothing can be trapped in it."""
    return replace(core, sphere=np.zeros((2, 3)), sphere_radius=np.array(CORE_BALLS),
                   sphere_near=np.array([[1, 1], [0, 0]], np.int32))  # fmt: skip


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

    `core` (n,) is 1, 2, ... for cores and 0 for beads; segment s joins particles s and s+1. `bp` (n,) is the base pair
    a bead stands for (fractional) or a core's dyad. `linker` numbers the stretch of free DNA a segment belongs to.

    Per segment (n-1,): rest_length nm, stretch_k kBT/nm^2, bend_k kBT/radian^2, twist_k kBT/radian^2 (0: free to turn),
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
    field: CoreField | None = None  # of the cores' sites; None: they are summed over
    dna_kappa: float | None = None  # 1/nm, between linker beads; None: as everywhere
    wells: Wells | None = None  # energies of contacts

    @property
    def n(self) -> int:
        """Number of particles."""
        return len(self.core)

    @property
    def cores(self) -> NDArray[np.int32]:
        """Indices of the cores."""
        return np.flatnonzero(self.core).astype(np.int32)

    @property
    def beads(self) -> NDArray[np.int32]:
        """Indices of the linker beads."""
        return np.flatnonzero(self.core == 0).astype(np.int32)


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
            bp.append(start + steps * (k + skip) / segments)
            charge.append(parameters.linker_charge * parameters.rise * steps / beads)
        segment.extend((number, length, twist, k < twisted) for k in range(segments))

    def spacing(steps: int) -> int:
        return max(1, round(parameters.rise * steps / DNA_BEAD_LENGTH))

    first, last = fibre.first_bp, fibre.last_bp
    if not first:  # DNA alone: beads from end to end
        steps = len(fibre.sequence) - 1
        add_stretch(0, 0, steps, spacing(steps) + 1, spacing(steps), 0, spacing(steps) - 1)
    elif first[0] > 0:
        beads = spacing(first[0])
        add_stretch(0, 0, first[0], beads, beads, 0, beads)
    for k in range(len(fibre.dyads)):
        core.append(k + 1)
        bp.append(fibre.dyads[k])
        charge.append(0.0)
        if k + 1 < len(fibre.dyads):
            steps = first[k + 1] - last[k]
            beads = max(1, spacing(steps) - 1)
            add_stretch(k + 1, last[k], steps, beads, beads + 1, 1, beads + 1)
    steps = len(fibre.sequence) - 1 - last[-1] if last else 0
    if steps > 0:
        beads = spacing(steps)
        add_stretch(len(fibre.dyads), last[-1], steps, beads, beads, 1, beads - 1)

    length = np.array([s[1] for s in segment])
    thermal = parameters.thermal_energy
    partners = contact_partners(fibre.contacts, np.array(bp))
    strongest = max((c.weight for c, *_ in partners), default=1.0)
    contact_k = 0.0 if fibre.contact_energies else parameters.contact_k
    return Chain(
        shape=crystal_core(fibre.wrapped_length, parameters.dna_radius, parameters.salt,
                           charges=parameters.core_charges),
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
        wells=wells_of(fibre.contact_energies, np.array(bp)),
    )


def with_field(chain: Chain) -> Chain:
    """The chain with a table of its cores' field, where there are enough cores for it to pay."""
    if len(chain.cores) < WORTH:
        return chain
    shape = chain.shape
    return replace(chain, field=core_field(shape.site, shape.site_charge, chain.kappa, chain.cutoff))


def transported(v: Array, a: Array, b: Array) -> Array:
    """Vectors v (..., 3) turned by the smallest rotation that takes the unit vectors a to the unit vectors b."""
    axis = np.cross(a, b)
    cosine = np.sum(a * b, axis=-1, keepdims=True)
    return cosine * v + np.cross(axis, v) + axis * np.sum(axis * v, axis=-1, keepdims=True) / (1 + cosine)


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
    shape = chain.shape
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
                best = None
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
    """Start (n-1, 3) and end (n-1, 3) of every segment."""
    is_core = (chain.core > 0)[:, None]
    leaves = np.where(is_core, position + frame @ chain.shape.joint_point[0], position)
    arrives = np.where(is_core, position + frame @ chain.shape.joint_point[1], position)
    return leaves[:-1], arrives[1:]


def over_stretch(chain: Chain, position: Array, frame: Array) -> Array:
    """Nanometres (n-1,) by which every segment is longer than at rest; negative where it is shorter."""
    start, end = segment_ends(chain, position, frame)
    return np.linalg.norm(end - start, axis=1) - chain.rest_length


def body_points(chain: Chain, position: Array, frame: Array) -> Array:
    """Points (k, 3) that span the fibre: its beads and the floor spheres of its cores."""
    cores = [position[p] + chain.shape.sphere @ frame[p].T for p in chain.cores]
    return np.concatenate([position[chain.beads], *cores])
