"""Which waters become ions, and the formal charges that decide how many."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.box_vectors import folded, vectors_of, with_images
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.residues import POLYAMINES, SOLVENT, ResidueTemplate, modifications, residue_library

WATER_MOLARITY = 55.5
"""mol/L of pure water: c mol/L of a salt is one formula unit for every 55.5 / c waters of the box before ions."""

MINIMUM_DISTANCE = 5000
"""Between an ion and the solute, and between ions (0.001 angstrom)."""


@dataclass(frozen=True)
class Ion:
    """A species of ion."""

    residue: str
    """Its name in the residue library."""
    segment_letter: str
    charge: int


SPECIES = {key: Ion(SOLVENT[key], letter, charge) for key, letter, charge in
           (("sodium", "N", 1), ("potassium", "K", 1), ("magnesium", "M", 2), ("chloride", "C", -1),
            ("calcium", "A", 2))}
"""By their key in the counts of a manifest, in global atom order. Counts have no calcium where none is asked for."""

IONS_PER_VOLUME = 0.0039
"""Ions a cubic angstrom of water where no further one finds a place MINIMUM_DISTANCE from all others."""
KEPT_FREE, SHELL = 13.3, 103.0
"""Cubic angstrom that an atom of a large solute keeps free of ions, and how much more at its surface: the share of
atoms there falls with the cube root of their number."""
_STREAM = 0x696F6E73
"""Second half of the Philox key: separates the choice of ions from every other use of the seed."""

_SIDE_CHAIN = {"ASP": -1, "GLU": -1, "LYS": 1, "ARG": 1, "HIP": 1, "CYM": -1}
_ION = {ion.residue: ion.charge for ion in SPECIES.values()} | {"ZN": 2} | POLYAMINES
_CANDIDATES_A_SLAB = 1 << 17


@cache
def formal_charges() -> np.ndarray:
    """(t,) int64 charge of every residue of the library, elementary charges.

    Nucleotides carry their 5' phosphate, so a strand of n with a 5'-OH end has n - 1 charges. Summed over a molecule
    these are the AMBER charges (a single terminal nucleotide of AMBER has a fraction, its strand has not).
    """
    return np.array([_formal_charge(name) for name in residue_library()], dtype=np.int64)


def _formal_charge(name: str) -> int:
    template = residue_library()[name]
    if template.kind == "ion":
        return _ION[name]
    if template.kind == "water":
        return 0
    if template.kind == "nucleotide":
        return -len(_phosphorus(template))
    terminal = {"N": 1, "C": -1}[name[0]] if len(name) == 4 else 0
    return _side_chain(template)[0] + terminal


def _phosphorus(template: ResidueTemplate) -> list[int]:
    """The phosphorus atoms of a nucleotide: its own, and that of a phosphate at a 3' end."""
    return [i for i, element in enumerate(template.elements) if element == "P"]


def _side_chain(template: ResidueTemplate) -> tuple[int, str | None]:
    """Charge of an amino acid's side chain, and the atom that stands for it."""
    change = modifications().get(template.modification)
    if change is not None:
        return change.charge, change.charged_atom
    return _SIDE_CHAIN.get(template.inner_name, 0), _CHARGED_ATOM.get(template.inner_name)


def ion_counts(solute_charge: int, n_waters: int, section: SolvateSection) -> dict[str, int]:
    """How many of each species give the salts asked for and a neutral box.

    A negative solute is neutralised with ``section.counterion``, a positive one with chloride. Where magnesium or
    calcium overshoots by one, a chloride makes up for it.
    """
    def units(molarity: float) -> int:
        return round(molarity * n_waters / WATER_MOLARITY)

    counts = {"sodium": units(section.salt), "potassium": units(section.potassium_chloride),
              "magnesium": units(section.magnesium_chloride)}
    if section.calcium_chloride or section.counterion == "calcium":
        counts["calcium"] = units(section.calcium_chloride)
    valence = SPECIES[section.counterion].charge
    counts[section.counterion] += -(min(solute_charge, 0) // valence)
    counts["chloride"] = solute_charge + sum(SPECIES[key].charge * count for key, count in counts.items())
    return {key: counts[key] for key in SPECIES if key in counts}


def slot_priorities(seed: int, first: int, count: int, stream: int = 0) -> np.ndarray:
    """(count,) uint64: random numbers of slots first .. first+count-1, functions of seed, stream and slot alone."""
    skipped = first % 4  # Philox makes four numbers a counter value
    generator = np.random.Philox(key=[seed % 2**64, _STREAM + stream], counter=first // 4)
    return generator.random_raw(count + skipped)[skipped:]


def no_room(found: int | str, wanted: int) -> BadInputError:
    """What is wrong where fewer ions find a place than are needed."""
    return BadInputError(f"there is room for {found} ions {MINIMUM_DISTANCE / 1000:g} A from the solute "
                         f"and from each other, {wanted} are needed: use a larger padding or box, or less salt")


def check_room_for_ions(volume: float, solute: int, counts: Mapping[str, int]) -> None:
    """Raises BadInputError where a box of so many cubic angstrom has no room for the ions (``counts`` by species, water
    among them) beside a solute of so many atoms.

    An estimate: ions that are placed at random keep free so much around each, and the solute its own volume and a shell
    of MINIMUM_DISTANCE. Boxes around 14 and 32 base pairs and a nucleosome with 6 to 20 A of padding hold as many
    within 3 %; thinner ones within a quarter.
    """
    wanted = sum(count for key, count in counts.items() if key != "water")
    room = int(IONS_PER_VOLUME * max(0.0, volume - (KEPT_FREE + SHELL * solute ** (-1 / 3)) * solute))
    if wanted > room:
        raise no_room(f"about {room}", wanted)


def choose_slots(priority: np.ndarray, position: np.ndarray, box: np.ndarray, wanted: int,
                 occupied: np.ndarray | None = None) -> np.ndarray:
    """Indices of at most ``wanted`` candidates, lowest priority number first, none within 5 A of an earlier one.

    ``position`` (c, 3), ``occupied`` (o, 3: places that candidates must keep away from, too), both in the upright block
    of the box, and ``box``, (3,) edges or (3, 3) vectors, are whole numbers of 0.001 angstrom, so distances compare
    exactly. Adding candidates of higher numbers never changes earlier choices.
    """
    shortest = np.diag(vectors_of(box)).min()
    if MINIMUM_DISTANCE >= shortest / 2:
        raise BadInputError(f"a box edge of {shortest / 1000:.1f} A is too short for ions: "
                            "use a larger padding or box")
    order = np.argsort(priority, kind="stable")
    first = 0 if occupied is None else len(occupied)
    placed = position[order] if occupied is None else np.concatenate([occupied, position[order]])
    pairs = np.concatenate(list(_close_pairs(placed, box)))
    earlier, later = pairs.min(axis=1), pairs.max(axis=1)
    blocked = np.zeros(len(placed), dtype=bool)
    for i in np.lexsort((earlier, later)):  # a candidate is decided before its later neighbours ask for it
        if not blocked[earlier[i]]:
            blocked[later[i]] = True
    return order[~blocked[first:]][:wanted]


def _close_pairs(position: np.ndarray, box: np.ndarray) -> Iterator[np.ndarray]:
    """(p, 2) pairs within the minimum distance, periodic, a slab at a time: trees of all would need 200 bytes each."""
    by_height = np.argsort(position[:, 2], kind="stable")
    height = position[by_height, 2].astype(np.int64)
    vectors = vectors_of(box).astype(np.int64)
    for start in range(0, max(len(position), 1), _CANDIDATES_A_SLAB):
        slab = by_height[start:start + _CANDIDATES_A_SLAB]
        if len(slab) == 0:
            break
        top = height[start + len(slab) - 1] + MINIMUM_DISTANCE
        above = by_height[start + len(slab):np.searchsorted(height, top, side="right")]
        # Beyond the upper face the box begins again.
        above_face = by_height[:np.searchsorted(height, top - vectors[2, 2], side="right")]
        image = folded(position[above_face].astype(np.int64) + vectors[2], vectors, (1, 0))
        index = np.concatenate([slab, above, above_face])
        points, source = with_images(np.concatenate([position[slab], position[above], image]).astype(np.int64),
                                     vectors, MINIMUM_DISTANCE + 1, (1, 0))
        pairs = cKDTree(points.astype(np.float64)).query_pairs(MINIMUM_DISTANCE, output_type="ndarray")
        # One of the two is of the slab itself, no image of it.
        yield index[source[pairs[(pairs < len(slab)).any(axis=1)]]]
    yield np.empty((0, 2), dtype=np.int64)


# --- Debye and Hueckel: ions where the solute's charges attract them --------------------------------------------------

BJERRUM_LENGTH = 7130.0
"""Of water at 300 K, 0.001 angstrom: e^2 / (4 pi eps0 78 kT)."""
POTENTIAL_REACH = 40_000
"""Charges farther away (0.001 angstrom) are left out: beyond five Debye lengths at 0.15 mol/L."""
LARGEST_WEIGHT = 20.0
"""3 kT: linear theory overestimates what is nearer to the DNA than that."""

_CHARGED_ATOM = {"ASP": "CG", "GLU": "CD", "LYS": "NZ", "ARG": "CZ", "HIP": "CE1", "CYM": "SG"}


@cache
def charge_sites() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Library residue, atom in it, and charge of every charged group: phosphates, side chains, ends of chains, ions.

    A polyamine is charged on its nitrogens.
    """
    sites = []
    for k, (name, template) in enumerate(residue_library().items()):
        if template.kind == "nucleotide":
            sites += [(k, atom, -1) for atom in _phosphorus(template)]
        elif template.kind == "ion":
            atoms = [i for i, element in enumerate(template.elements) if element == "N"] or [0]
            sites += [(k, atom, _ION[name] // len(atoms)) for atom in atoms]
        elif template.kind == "amino acid":
            charge, atom = _side_chain(template)
            if charge:
                sites.append((k, template.index[atom], charge))
            if len(name) == 4:
                sites.append((k, template.index["N" if name[0] == "N" else "C"], 1 if name[0] == "N" else -1))
    return tuple(np.array(column) for column in zip(*sites, strict=True))


def ionic_strength(section: SolvateSection) -> float:
    """mol/L, of the salts; without any 1 mmol/L is taken."""
    return max(section.salt + section.potassium_chloride + 3 * (section.magnesium_chloride + section.calcium_chloride),
               1e-3)


def debye_length(section: SolvateSection) -> float:
    """0.001 angstrom, from the ionic strength of the salts (Debye and Hueckel 1923); without salt 1 mmol/L is taken."""
    per_cubic_unit = ionic_strength(section) * 6.02214076e23 / 1e27 / 1e9
    return float(1 / np.sqrt(8 * np.pi * BJERRUM_LENGTH * per_cubic_unit))


def check_potential(box: np.ndarray) -> None:
    """Raises BadInputError for a box, (3,) edges or (3, 3) vectors, 0.001 angstrom, of which an edge of the diagonal is
    below twice the reach of the potential."""
    shortest = np.diag(vectors_of(box)).min()
    if POTENTIAL_REACH >= shortest / 2:
        raise BadInputError(f"a box edge of {shortest / 1000:.1f} A is too short for ions by the potential of the "
                            "solute: use a larger padding or box, or solvate.ion_placement=uniform")


def potential(position: np.ndarray, site: np.ndarray, charge: np.ndarray, box: np.ndarray,
              screening: float) -> np.ndarray:
    """(n,) potential in kT/e at ``position`` (n, 3), wrapped along x and y, of screened charges at ``site`` (s, 3),
    periodic along these axes by ``box``, (3,) or (3, 3)."""
    result = np.zeros(len(position))
    if len(site) == 0 or len(position) == 0:
        return result
    check_potential(box)
    around, source = with_images(folded(site, box, (1, 0)), box, POTENTIAL_REACH, (1, 0))
    tree = cKDTree(around.astype(np.float64))
    for start in range(0, len(position), 1 << 13):
        part = cKDTree(position[start:start + (1 << 13)].astype(np.float64))
        pairs = part.sparse_distance_matrix(tree, POTENTIAL_REACH, output_type="ndarray")
        value = charge[source[pairs["j"]]] * BJERRUM_LENGTH * np.exp(-pairs["v"] / screening) / pairs["v"]
        result[start:start + part.n] = np.bincount(pairs["i"], value, part.n)
    return result
