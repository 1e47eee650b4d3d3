"""Histone tails and linker histones: flexible chains of beads on rigid cores, in nm, kBT, elementary charges.

The published model (Arya & Schlick, PNAS 103:16236, 2006, and J. Phys. Chem. A 113:4045, 2009; linker histones: Luque,
Collepardo-Guevara, Grigoryev & Schlick, Nucleic Acids Res. 42:7553, 2014) gives a nucleosome 50 tail beads of five
residues in ten chains (two each of H3, H4, H2A, H2B and of H2A's C-terminus):

    bond           k/2 (l - l0)^2                              neighbours in a chain
    bend           k/2 (theta - theta0)^2                      three neighbours
    tether         h/2 |r - anchor|^2                          first bead, to its place on the core
    electrostatic  l_B q_i q_j exp(-kappa r)/r                 with all but first and second neighbours in the chain,
    excluded       k ((sigma/r)^12 - (sigma/r)^6)              and for a first bead the sites of its own core

Both pair terms are shifted to zero at the model's cutoff, as in mesoscale/model.py. A linker histone is a globular
head, rigid on the core at the dyad, and a C-terminal domain of 22 beads that hangs on it. Acetylated tails are the
published "folded" ones: bonds a hundred times and angles ten times stiffer.

What differs from the published model: beads keep out of their own core too, and the first bead is tethered at the
core's envelope where the crystal has it below (with the crystal's places, tails start inside the core and stay there);
the head of the linker histone stands where PDB 4QLC has it, with charges fitted to its own field (mesoscale/disco.py).

`chain_energies` is the plain NumPy statement; sampling uses the Fortran kernel chain_energy, and tests compare the two.
Beads are in the order of TAILS, each chain from the core to the tip.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mesoscale.chain_kernel import ChainKernel, Screening
from mesoscale.core_charges import ANGSTROM, at_salt, tail_charge_scale, tails_of_rigid_sites, template
from mesoscale.cores import missing_tails
from mesoscale.fibre import Fibre, MissingDimer
from mesoscale.model import Chain, Limbs, Parameters

Array = NDArray[np.float64]
Indices = NDArray[np.int32]

TERMS = ("bond", "bend", "tether", "electrostatic", "excluded")
TAILS = ("H3", "H3", "H4", "H4", "H2A", "H2A", "H2B", "H2B", "H2A C", "H2A C")
TAIL_BEADS = 50
GAS_CONSTANT = 0.0019872041  # kcal/mol/K

# Kinds of particles, and sigma (nm) of the excluded volume between them.
DNA, CORE, TAIL, HEAD, LINKER_TAIL = range(1, 6)
SIGMA = np.array([
    # DNA core tail head linker tail
    [3.6, 2.4, 2.7, 3.4, 3.6],
    [2.4, 1.2, 1.8, 2.2, 2.4],
    [2.7, 1.8, 1.8, 1.8, 1.8],
    [3.4, 2.2, 1.8, 2.2, 2.2],
    [3.6, 2.4, 1.8, 2.2, 2.4],
])  # fmt: skip
EXCLUDED_K = 0.001  # kBT
TAIL_TAIL_K = 0.1  # kcal/mol
TETHER_K = 100 / 3.0**2  # kBT/nm^2

# From the core to the tip: bond lengths (nm) and constants (kcal/mol/A^2), angles (degree) and constants
# (kcal/mol/rad^2); bond i joins beads i and i+1, angle i has beads i, i+1, i+2.
SPRINGS = {
    "H3": (
        (1.37, 1.39, 1.48, 1.50, 1.45, 1.34, 1.48),
        (0.11, 0.07, 0.07, 0.07, 0.07, 0.06, 0.09),
        (114.9, 111.8, 123.0, 117.3, 116.7, 115.9),
        (1.5, 1.2, 1.2, 1.7, 1.0, 1.1),
    ),
    "H4": ((1.44, 1.37, 1.39, 1.32), (0.20, 0.06, 0.10, 0.10), (111.6, 116.3, 112.5), (0.5, 1.1, 1.0)),
    "H2A": ((1.10, 1.45, 1.34), (0.03, 0.09, 0.08), (100.1, 121.2), (0.6, 1.1)),
    "H2B": ((1.42, 1.52, 1.27, 1.35), (0.08, 0.08, 0.10, 0.08), (124.5, 118.9, 118.4), (1.6, 0.6, 0.9)),
    "H2A C": ((1.41, 1.26), (0.07, 0.07), (113.8,), (1.0,)),
}
FOLDED_BOND, FOLDED_ANGLE = 100.0, 10.0  # how much stiffer acetylated tails are
# C-terminal domain of the linker histone: 22 beads that share 44 charges.
DOMAIN_BEADS, DOMAIN_CHARGE = 22, 44 * 1.68 * 0.66
DOMAIN_BOND, DOMAIN_BOND_K = 1.5, 0.1  # nm, kcal/mol/A^2
DOMAIN_ANGLE, DOMAIN_ANGLE_K = 110.0, 1.0  # degree, kcal/mol/rad^2

TRIALS = 6  # positions tried for each bead
TRIAL_CUTOFF = 3.0  # nm: pairs that weigh trial positions
BOOKKEEPING = 1e-8  # largest relative difference of the running energy from a full recomputation
HUGE = 1e8  # kBT: what remains when overlaps of more are gone has lost its digits and is computed anew


@dataclass(frozen=True, eq=False)
class FlexibleChains:
    """All flexible chains of a fibre: c chains with b beads.

    Chain k has beads first[k] to first[k+1]-1 and hangs on core `core[k]` (from 0) at `anchor[k]` (core frame, nm).
    bond_length, bond_k (b,) belong to the bond to the bead before, angle, angle_k (b,) to the angle with the two
    before; nm, radian, kBT.
    """

    first: Indices
    core: Indices
    anchor: Array
    tether_k: Array
    charge: Array
    kind: Indices
    bond_length: Array
    bond_k: Array
    angle: Array
    angle_k: Array
    strength: Array  # (5, 5) kBT, of the excluded volume between kinds
    head_core: Indices  # cores that carry a linker histone
    head_site: Array  # (6, 3)
    head_charge: Array

    @property
    def sigma(self) -> Array:
        """Sigma (5, 5) of the excluded volume between kinds, nm."""
        return SIGMA

    def histone_tails(self) -> NDArray[np.bool_]:
        """Which beads (b,) belong to histone tails."""
        return self.kind == TAIL


def _chain_rows(name: str, thermal: float, folded: bool) -> list[tuple[float, float, float, float]]:
    """Bond length, bond constant, angle, angle constant of each bead of a tail; nm, radian, kBT."""
    length, bond_k, angle, angle_k = SPRINGS[name]
    bonds = [(0.0, 0.0)] + [
        (b, k / ANGSTROM**2 / thermal * (FOLDED_BOND if folded else 1)) for b, k in zip(length, bond_k, strict=True)
    ]
    angles = [(0.0, 0.0)] * 2 + [
        (np.radians(a), k / thermal * (FOLDED_ANGLE if folded else 1)) for a, k in zip(angle, angle_k, strict=True)
    ]
    return [(*b, *a) for b, a in zip(bonds, angles, strict=True)]


def build_tails(
    parameters: Parameters, acetylated: NDArray[np.bool_], linker_histone: NDArray[np.bool_],
    charge_change: Array | None = None, cores: Indices | None = None, missing: tuple[MissingDimer, ...] = (),
) -> FlexibleChains:
    """The chains of m nucleosomes: acetylated (m, 10) per tail in the order of TAILS, linker_histone (m,).

    `charge_change` (m, 50) is added to the formal charges of the beads. `cores` (m,) are the nucleosomes' numbers among
    all cores; default from 0. Tails of `missing` dimers (m,) are left out.
    """
    data = template("tail_beads_1kx5.json")
    thermal = GAS_CONSTANT * parameters.temperature
    scale = tail_charge_scale(parameters.salt)
    first, core, anchor, charge, kind = [0], [], [], [], []
    rows: list[tuple[float, float, float, float]] = []

    def add(chain_core: int, place: list[float], charges: list[float], chain_kind: int) -> None:
        core.append(chain_core)
        anchor.append(np.array(place) * ANGSTROM)
        charge.extend(charges)
        kind.extend([chain_kind] * len(charges))
        first.append(len(charge))

    numbers = np.arange(len(acetylated)) if cores is None else cores
    for k in range(len(acetylated)):
        bead, absent = 0, missing_tails(missing[k]) if missing else []
        for number, (tail, folded) in enumerate(zip(data["tails"], acetylated[k], strict=True)):
            formal = tail["charge"]
            if charge_change is not None:
                formal = [q + float(change) for q, change in zip(formal, charge_change[k, bead:], strict=False)]
            bead += len(formal)
            if number in absent:
                continue
            add(int(numbers[k]), tail["anchor"], [scale * q for q in formal], TAIL)
            rows.extend(_chain_rows(tail["tail"], thermal, bool(folded)))
        if linker_histone[k]:
            each = DOMAIN_CHARGE / DOMAIN_BEADS
            add(int(numbers[k]), data["tail_of_linker_histone"], [each] * DOMAIN_BEADS, LINKER_TAIL)
            bond_k, angle_k = DOMAIN_BOND_K / ANGSTROM**2 / thermal, DOMAIN_ANGLE_K / thermal
            whole = (DOMAIN_BOND, bond_k, np.radians(DOMAIN_ANGLE), angle_k)
            rows.extend([(0.0, 0.0, 0.0, 0.0), (DOMAIN_BOND, bond_k, 0.0, 0.0), *[whole] * (DOMAIN_BEADS - 2)])

    strength = np.full((5, 5), EXCLUDED_K)
    strength[TAIL - 1, TAIL - 1] = TAIL_TAIL_K / thermal
    bond_length, bond_k, angle, angle_k = np.array(rows, float).reshape(-1, 4).T.copy()
    return FlexibleChains(
        first=np.array(first, np.int32),
        core=np.array(core, np.int32),
        anchor=np.array(anchor),
        tether_k=np.full(len(core), TETHER_K),
        charge=np.array(charge),
        kind=np.array(kind, np.int32),
        bond_length=bond_length,
        bond_k=bond_k,
        angle=angle,
        angle_k=angle_k,
        strength=strength,
        head_core=numbers[np.flatnonzero(linker_histone)].astype(np.int32),
        head_site=np.array(data["head"]) * ANGSTROM,
        head_charge=at_salt(data["salt"], np.array(data["head_charge"]), parameters.salt),
    )


def tails_of_fibre(fibre: Fibre, parameters: Parameters) -> FlexibleChains:
    """The chains of a fibre's nucleosomes with their marks."""
    none = np.zeros(len(fibre.dyads), bool)
    acetylated = np.array(fibre.acetylated, bool) if fibre.acetylated else none
    linker_histone = np.array(fibre.linker_histone, bool) if fibre.linker_histone else none
    change = np.array(fibre.tail_charge, dtype=float) if fibre.tail_charge else None
    return build_tails(parameters, np.repeat(acetylated[:, None], len(TAILS), axis=1), linker_histone, change,
                       cores_of(fibre), fibre.missing)


def cores_of(fibre: Fibre) -> Indices:
    """Numbers (m,) of the nucleosomes among all cores of a fibre, from 0."""
    return np.array([k for k, place in enumerate(fibre.places) if place.nucleosome >= 0], np.int32)


def beads_of_nucleosomes(tails: FlexibleChains, fibre: Fibre, beads: Array) -> Array:
    """Beads (m, 50, 3) of the histone tails of every nucleosome from all beads (b, 3); NaN where a dimer is missing."""
    found = np.full((len(fibre.dyads), TAIL_BEADS, 3), np.nan)
    there = np.ones(found.shape[:2], bool)
    for k, missing in enumerate(fibre.missing):
        there[k] = ~np.isin(tails_of_rigid_sites(), missing_tails(missing))
    found[there] = beads[tails.histone_tails()]
    return found


@dataclass(frozen=True)
class FixedPoints:
    """What the chains feel of the rest of the fibre: points (p, 3), charges, kinds and cores (p,), from 0, or -1."""

    position: Array
    charge: Array
    kind: Indices
    core: Indices

    @classmethod
    def of(cls, tails: FlexibleChains, chain: Chain, position: Array, frame: Array) -> "FixedPoints":
        """The fibre's charge sites, linker beads and linker-histone heads; the core's shape must be without tails."""
        at, turn = position[chain.cores], frame[chain.cores]
        heads, shapes = len(tails.head_core), [chain.shape_of(p) for p in chain.cores]
        sites = [len(shape.site) for shape in shapes]
        head = heads_of(tails, chain, position, frame).reshape(-1, 3)
        site = np.concatenate([np.zeros((0, 3)), *(
            at[c] + shape.site @ turn[c].T for c, shape in enumerate(shapes))])
        beads = len(chain.beads)
        return cls(
            position=np.concatenate([site, position[chain.beads], head]),
            charge=np.concatenate(
                [np.zeros(0), *(shape.site_charge for shape in shapes), chain.charge[chain.beads],
                 np.tile(tails.head_charge, heads)]
            ),
            kind=np.repeat([CORE, DNA, HEAD], [len(site), beads, len(head)]).astype(np.int32),
            core=np.concatenate(
                [
                    np.repeat(np.arange(len(shapes)), sites),
                    np.full(beads, -1),
                    np.repeat(tails.head_core, len(tails.head_site)),
                ]
            ).astype(np.int32),
        )


def heads_of(tails: FlexibleChains, chain: Chain, position: Array, frame: Array) -> Array:
    """Beads (k, 6, 3) of the globular heads of linker histones in a conformation."""
    at = chain.cores[tails.head_core]
    return position[at][:, None] + tails.head_site @ frame[at].transpose(0, 2, 1)


def anchors(tails: FlexibleChains, chain: Chain, position: Array, frame: Array) -> Array:
    """Where the first beads are tethered (c, 3) in a conformation."""
    at = chain.cores[tails.core]
    return position[at] + np.einsum("cij,cj->ci", frame[at], tails.anchor)


def straight_tails(tails: FlexibleChains, chain: Chain, position: Array, frame: Array) -> Array:
    """Beads (b, 3) of chains that stick straight out from the centres of their cores."""
    start = anchors(tails, chain, position, frame)
    outward = start - position[chain.cores[tails.core]]
    outward /= np.linalg.norm(outward, axis=1)[:, None]
    beads = np.empty((tails.first[-1], 3))
    for k, (a, b) in enumerate(zip(tails.first, tails.first[1:], strict=False)):
        beads[a:b] = start[k] + np.cumsum(tails.bond_length[a:b])[:, None] * outward[k]
    return beads


def chain_energies(
    tails: FlexibleChains, points: FixedPoints, anchor: Array, beads: Array, bjerrum: float, kappa: float, cutoff: float
) -> dict[str, float]:
    """Every term in kBT, from scratch: beads (b, 3), anchors (c, 3)."""
    result = dict.fromkeys(TERMS, 0.0)
    chain_of = np.repeat(np.arange(len(tails.core)), np.diff(tails.first))
    for k, a in enumerate(tails.first[:-1]):
        b = tails.first[k + 1]
        result["tether"] += 0.5 * tails.tether_k[k] * float(((beads[a] - anchor[k]) ** 2).sum())
        back = beads[a : b - 1] - beads[a + 1 : b]
        length = np.linalg.norm(back, axis=1)
        result["bond"] += 0.5 * float((tails.bond_k[a + 1 : b] * (length - tails.bond_length[a + 1 : b]) ** 2).sum())
        cosine = -(back[:-1] * back[1:]).sum(axis=1) / length[:-1] / length[1:]
        theta = np.arccos(np.clip(cosine, -1, 1))
        result["bend"] += 0.5 * float((tails.angle_k[a + 2 : b] * (theta - tails.angle[a + 2 : b]) ** 2).sum())

    def add_pairs(i: int, others: Array, charge: Array, kind: Indices) -> None:
        r = np.linalg.norm(others - beads[i], axis=1)
        near = r < cutoff
        r, sigma = r[near], SIGMA[tails.kind[i] - 1, kind[near] - 1]
        screened = np.exp(-kappa * r) / r - np.exp(-kappa * cutoff) / cutoff
        result["electrostatic"] += bjerrum * tails.charge[i] * float(charge[near] @ screened)
        s6, s6_cut = (sigma / r) ** 6, (sigma / cutoff) ** 6
        strength = tails.strength[tails.kind[i] - 1, kind[near] - 1]
        result["excluded"] += float(strength @ (s6 * (s6 - 1) - s6_cut * (s6_cut - 1)))

    for i in range(len(beads)):
        k = chain_of[i]
        seen = np.ones(len(points.core), bool) if i != tails.first[k] else points.core != tails.core[k]
        add_pairs(i, points.position[seen], points.charge[seen], points.kind[seen])
        later = np.arange(i + 1, len(beads))
        later = later[(chain_of[later] != k) | (later > i + 2)]
        add_pairs(i, beads[later], tails.charge[later], tails.kind[later])
    return result


@dataclass(frozen=True)
class Places:
    """Where beads and heads stand in the lists of limbs of their cores: core and index (b + 6 h,), beads first."""

    core: Indices
    index: Indices
    most: int  # points that one core carries at most

    @classmethod
    def of(cls, tails: FlexibleChains, cores: int) -> "Places":
        """Numbered in the order of beads, then of heads."""
        core = np.concatenate([np.repeat(tails.core, np.diff(tails.first)),
                               np.repeat(tails.head_core, len(tails.head_site))])  # fmt: skip
        order = np.argsort(core, kind="stable")
        count = np.bincount(core, minlength=cores)
        index = np.empty(len(core), np.int64)
        index[order] = np.arange(len(core)) - np.repeat(np.cumsum(count) - count, count)
        return cls(core, index, int(count.max()))


def limbs_of(
    tails: FlexibleChains, places: Places, chain: Chain, position: Array, frame: Array, beads: Array
) -> Limbs:
    """What the cores carry while the fibre moves: the chains with beads (b, 3), and heads of linker histones."""
    cores, at = len(chain.cores), chain.cores[places.core[: len(beads)]]
    place = np.zeros((cores, places.most, 3))
    charge, kind = np.zeros((cores, places.most)), np.zeros((cores, places.most), np.int32)
    slot = (places.core, places.index)
    heads = len(tails.head_core)
    carried = np.einsum("bji,bj->bi", frame[at], beads - position[at])
    place[slot] = np.concatenate([carried, np.tile(tails.head_site, (heads, 1))])
    charge[slot] = np.concatenate([tails.charge, np.tile(tails.head_charge, heads)])
    kind[slot] = np.concatenate([tails.kind, np.full(heads * len(tails.head_site), HEAD)])
    return Limbs(place, charge, kind, SIGMA, tails.strength)


def heads_alone(limbs: Limbs) -> Limbs:
    """The heads of linker histones, whose pairs with cores and linkers are no part of the energy of chains."""
    return replace(limbs, kind=np.where(limbs.kind == HEAD, HEAD, 0).astype(np.int32))


def carried_beads(limbs: Limbs, places: Places, chain: Chain, position: Array, frame: Array, beads: int) -> Array:
    """Where the beads (beads, 3) of the chains are when the cores have moved."""
    core, index = places.core[:beads], places.index[:beads]
    at = chain.cores[core]
    return position[at] + np.einsum("bij,bj->bi", frame[at], limbs.place[core, index])


@dataclass
class TailWalk:
    """The chains of a fibre under Monte Carlo, in the field of a conformation that stands still meanwhile.

    beads (b, 3), energy (5,) in the order of TERMS; counts per chain.
    """

    tails: FlexibleChains
    points: FixedPoints
    anchor: Array
    beads: Array
    screening: Screening
    energy: Array
    tried: NDArray[np.int64]
    accepted: NDArray[np.int64]
    kernel: ChainKernel = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.kernel = ChainKernel(self.tails)
        self.kernel.surround(self.points, self.anchor, self.screening)

    @classmethod
    def begin(
        cls, tails: FlexibleChains, chain: Chain, position: Array, frame: Array, beads: Array | None = None,
        energy: Array | None = None,
    ) -> "TailWalk":
        """Chains on a conformation; `beads` default to straight ones, `energy` to what it is."""
        if beads is None:
            beads = straight_tails(tails, chain, position, frame)
        points = FixedPoints.of(tails, chain, position, frame)
        screening = Screening(chain.bjerrum_length, chain.kappa, chain.cutoff)
        counts = np.zeros(len(tails.core), np.int64)
        anchor = anchors(tails, chain, position, frame)
        walk = cls(tails, points, anchor, beads, screening, np.zeros(len(TERMS)), counts, counts.copy())
        walk.energy = walk.kernel_energy() if energy is None else energy
        return walk

    def kernel_energy(self) -> Array:
        """Every term (5,) from scratch, by the Fortran kernel."""
        return self.kernel.place(self.beads).energies()

    def sweep(self, random: np.random.Generator, check: bool = True) -> None:
        """Try to regrow every chain once, in random order, from a random bead to the tip.

        With `check` raises ArithmeticError when the running energy has drifted from the energy computed from scratch.
        """
        self.regrow(random.permutation(len(self.tails.core)), random, check)

    def regrow(self, chains: NDArray[np.int64], random: np.random.Generator, check: bool = True) -> None:
        """Try to regrow the chains (k,) one after the other; with `check` raises ArithmeticError as `sweep` does."""
        length = np.diff(self.tails.first)[chains]
        numbers = random.random(int((2 + length * (8 * TRIALS - 3)).sum()))
        before = self.energy
        energy, accepted = self.kernel.place(self.beads).regrow(chains, numbers, before, TRIALS, TRIAL_CUTOFF)
        self.beads = self.kernel.places()
        np.add.at(self.tried, chains, 1)
        np.add.at(self.accepted, chains, accepted)
        if not check and np.abs(before).sum() < HUGE:
            self.energy = energy
            return
        self.energy = self.kernel_energy()
        scale = max(np.abs(self.energy).sum(), np.abs(before).sum(), 1.0)
        if np.abs(energy - self.energy).max() > BOOKKEEPING * scale:
            raise ArithmeticError(f"running energy {energy} kBT of the tails differs from the full sum {self.energy}")
