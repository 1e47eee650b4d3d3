"""Ions of several atoms at the phosphates of DNA: hexahydrated magnesium, spermine and spermidine.

They are placed before water is added and belong to the solute from then on: water keeps clear of them, and their charge
counts when ions make the box neutral. A phosphate is chosen by its number and the seed alone, so that the result
depends on nothing else.

Mg(H2O)6 is an octahedron that two neighbouring waters bind to the free oxygens of a phosphate (outer sphere). A
polyamine is stretched out, with an amine group of the chain at the phosphate.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import SolvateSection
from chromabuild.molecule.hydrogens import place_hydrogens
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import CHAIN_LETTERS, MAX_RESIDUES_PER_SEGMENT, Solute, base_36
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.nucleosome.peptide import place
from chromabuild.solvate.ions import slot_priorities

KEYS = {"magnesium_hexahydrates": "MG", "spermine": "SPM", "spermidine": "SPD"}
"""Settings, and the residue that each places."""
MG_O = 2.08
"""Angstrom, Mg-O of hexahydrated magnesium in crystals: 2.06 to 2.10 (Bock, Kaufman & Glusker, Inorg. Chem. 33:419,
1994)."""
MG_OP = 4.5
"""Angstrom from Mg to either free oxygen of the phosphate; each then has a hydrogen bond of 2.85 from a water."""
TILTS = (0.0, 20.0, -20.0, 40.0, -40.0, 60.0, -60.0)
"""Degree about the line of the free oxygens, in which all distances to them stay: tried in this order."""
REACHES, TURNS = (4.0, 5.0, 6.0, 7.0, 9.0, 11.0), 24
"""Angstrom from P to the middle of a polyamine along its way, and orientations tried at each."""
HEAVY, HYDROGEN, NEIGHBOURS = 2.6, 1.6, 2.6
"""Closest distances, angstrom: of heavy atoms, of pairs with a hydrogen, and of atoms of two that are placed."""
C_C, C_N, ANGLE = 1.53, 1.49, 111.0
"""Angstrom and degree, of a polyamine: CGenFF's CG321-CG324 and CG324-NG3P3, angles about its mean."""
_STREAM = 0x626F756E
"""Of random numbers: the first of three."""
_CELL = 24.0
"""Angstrom, at least twice the size of what is placed."""


def wanted_ions(section: SolvateSection, phosphates: int) -> dict[str, int]:
    """How many are placed at so many phosphates, by the key of the setting; none where there are none."""
    counts = {key: round(getattr(section, key) * phosphates) for key in KEYS}
    return {key: count for key, count in counts.items() if count}


def sizes_and_charge(counts: dict[str, int], section: SolvateSection) -> tuple[int, int]:
    """Atoms and charge of ions by the key of the setting, with the waters of hexahydrates."""
    waters = 6 * WATER_MODELS[section.water].n_atoms
    atoms = {"MG": 1 + waters, **{name: len(residue_library()[name].atoms) for name in ("SPM", "SPD")}}
    charge = {"MG": 2, "SPM": 4, "SPD": 3}
    return (sum(count * atoms[KEYS[key]] for key, count in counts.items()),
            sum(count * charge[KEYS[key]] for key, count in counts.items()))


def with_bound_ions(solute: Solute, section: SolvateSection, seed: int) -> tuple[Solute, dict[str, int]]:
    """The solute with the ions that the settings place at its phosphates, and how many of each.

    Polyamines come first, then magnesium, then its waters: each a molecule of its own. Raises BadInputError where not
    all of them find room, and for a solute that has such ions already.
    """
    if not any(getattr(section, key) for key in KEYS):
        return solute, {}
    phosphate = _phosphates(solute)
    counts = wanted_ions(section, len(phosphate))
    if not counts:
        return solute, {}
    names = residue_names()
    if has_bound_ions(solute):
        raise BadInputError("the solute has ions at its phosphates already: set solvate.magnesium_hexahydrates, "
                            "spermine and spermidine to 0, or take the solute that has none")
    position = np.asarray(solute.position[...], dtype=float)
    occupied = _Occupied(position, solute.elements() != "H")
    found: dict[str, list[np.ndarray]] = {}
    free = np.ones(len(phosphate), dtype=bool)
    for stream, (key, count) in enumerate((key, counts[key]) for key in KEYS if key in counts):
        placed: list[np.ndarray] = []
        for k in np.argsort(slot_priorities(seed, 0, len(phosphate), _STREAM + stream), kind="stable").tolist():
            if len(placed) == count:
                break
            if not free[k]:
                continue
            one = next((pose for pose, heavy in _poses(key, position[phosphate[k]], section, seed, k)
                        if occupied.has_room(pose, heavy)), None)
            if one is not None:
                occupied.add(one)
                placed.append(one)
                free[k] = False
        if len(placed) < count:
            raise BadInputError(f"solvate.{key} = {getattr(section, key):g} asks for {count} at {len(phosphate)} "
                                f"phosphates, and {len(placed)} find room: lower it to "
                                f"{int(1000 * len(placed) / len(phosphate)) / 1000:g}")
        found[key] = placed
    water = WATER_MODELS[section.water].residue
    groups = [(residue, found[key]) for key, residue in (("spermine", "SPM"), ("spermidine", "SPD")) if key in found]
    if "magnesium_hexahydrates" in found:
        complexes = found["magnesium_hexahydrates"]
        groups += [("MG", [one[:1] for one in complexes]),
                   (water, [part for one in complexes for part in np.split(one[1:], 6)])]
    return _extended(solute, [(names.index(residue), positions) for residue, positions in groups]), counts


def has_bound_ions(solute: Solute) -> bool:
    """Whether ions of this module are among the molecules of a solute."""
    names = residue_names()
    return bool(np.isin(solute.residue_template, [names.index(name) for name in KEYS.values()]).any())


def check_bound_ions(solute: Solute, section: SolvateSection) -> None:
    """Raises BadInputError for a solute that lacks the ions which the settings ask for."""
    if any(getattr(section, key) for key in KEYS) and not has_bound_ions(solute) and wanted_ions(
            section, len(_phosphates(solute))):
        raise BadInputError("solvate.magnesium_hexahydrates, spermine and spermidine are placed before water, and the "
                            "solute has none of them: run chromabuild clash, or call add_bound_ions, first")


def _phosphates(solute: Solute) -> np.ndarray:
    """(k, 3) atoms P, OP1 and OP2 of the phosphates that nucleotides bear at their 5' side."""
    rows = []
    for number, template in enumerate(residue_library().values()):
        if template.kind == "nucleotide" and "P" in template.index:
            first = solute.residue_first_atom[:-1][solute.residue_template == number]
            rows.append(first[:, None] + [template.index[name] for name in ("P", "OP1", "OP2")])
    found = np.concatenate([np.zeros((0, 3), dtype=np.int64), *rows])
    return found[np.argsort(found[:, 0])]


@dataclass(frozen=True)
class _Model:
    """Atoms of what is placed, about its middle."""

    position: np.ndarray
    is_heavy: np.ndarray


def _poses(key: str, phosphate: np.ndarray, section: SolvateSection, seed: int, number: int
           ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Places of all atoms (n, 3) at a phosphate (3, 3), in the order in which they are tried; which are heavy."""
    middle = phosphate[1:].mean(axis=0)
    out, across = _unit(middle - phosphate[0]), _unit(phosphate[2] - phosphate[1])
    out = _unit(out - across * (out @ across))
    if KEYS[key] == "MG":
        model = _hexahydrate(section.water)
        half = np.linalg.norm(phosphate[2] - phosphate[1]) / 2
        for tilt in np.radians(TILTS):
            axis = np.cos(tilt) * out + np.sin(tilt) * np.cross(across, out)
            frame = np.stack([-axis, across, np.cross(-axis, across)], axis=1)
            yield middle + np.sqrt(MG_OP**2 - half**2) * axis + model.position @ frame.T, model.is_heavy
        return
    model = _polyamine(KEYS[key])
    generator = np.random.Generator(np.random.Philox(key=[seed % 2**64, _STREAM + 16 + list(KEYS).index(key)],
                                                     counter=number << 32))
    for reach in REACHES:
        for _ in range(TURNS):
            quaternion = _unit(generator.standard_normal(4))
            anchor = model.position[generator.choice(np.flatnonzero(model.is_heavy))]
            yield phosphate[0] + reach * out + (model.position - anchor) @ _rotation(quaternion).T, model.is_heavy


@cache
def _hexahydrate(water: str) -> _Model:
    """Mg at the origin, then six waters; x points to the phosphate, y along the line of its free oxygens.

    Two waters lie in the plane of the phosphate at 45 degrees from x, each with a hydrogen towards an oxygen.
    """
    model, near = WATER_MODELS[water], np.sqrt(0.5)
    half = np.radians(model.angle / 2)
    x, y, z = np.eye(3)
    atoms = [np.zeros(3)]
    for along, beside in ((near * (x + y), near * (x - y)), (near * (x - y), near * (x + y)),
                          (near * (y - x), near * (x + y)), (-near * (x + y), near * (x - y)), (z, x), (-z, x)):
        oxygen = MG_O * along
        atoms += [oxygen, *(oxygen + model.bond * (np.cos(half) * along + sign * np.sin(half) * beside)
                            for sign in (1, -1))]
        if model.site_distance:
            atoms.append(oxygen + model.site_distance * along)
    kind = ["O", "H", "H", "H"][:model.n_atoms]  # a site is in nobody's way
    return _Model(np.array(atoms), np.array(["Mg", *kind * 6]) != "H")


@cache
def _polyamine(name: str) -> _Model:
    """All bonds of the chain trans."""
    template = residue_library()[name]
    heavy = [k for k, element in enumerate(template.elements) if element != "H"]
    position = np.zeros((len(template.atoms), 3))
    before = [np.array([-1.0, 1.5, 0.0]), np.array([-1.4, 0.1, 0.0]), np.zeros(3)]
    for one, other in zip(heavy, heavy[1:], strict=False):
        length = C_N if "N" in (template.elements[one], template.elements[other]) else C_C
        before = [*before[1:], place(*before, length, ANGLE, 180.0)]
        position[other] = before[-1]
    place_hydrogens(position, np.array([residue_names().index(name)]), np.array([0, len(template.atoms)]))
    return _Model(position - position[heavy].mean(axis=0), np.array(template.elements) != "H")


class _Occupied:
    """Where atoms are: those of the solute, and those of what was placed."""

    def __init__(self, position: np.ndarray, is_heavy: np.ndarray) -> None:
        self._heavy, self._hydrogen = cKDTree(position[is_heavy]), cKDTree(position[~is_heavy])
        self._placed: dict[tuple[int, ...], list[np.ndarray]] = {}

    def has_room(self, atoms: np.ndarray, is_heavy: np.ndarray) -> bool:
        """Whether atoms (n, 3) keep their distances from all others."""
        heavy, light = atoms[is_heavy], atoms[~is_heavy]
        if (self._heavy.query(heavy, distance_upper_bound=HEAVY)[0] < HEAVY).any():
            return False
        for tree, some in ((self._heavy, light), (self._hydrogen, atoms)):
            if tree.n and (tree.query(some, distance_upper_bound=HYDROGEN)[0] < HYDROGEN).any():
                return False
        cell = np.floor(atoms.mean(axis=0) / _CELL).astype(int)
        near = [other for step in np.ndindex(3, 3, 3) for other in self._placed.get(tuple(cell + step - 1), ())]
        return not near or cKDTree(np.concatenate(near)).query(atoms)[0].min() >= NEIGHBOURS

    def add(self, atoms: np.ndarray) -> None:
        """Take note of what was placed."""
        self._placed.setdefault(tuple(np.floor(atoms.mean(axis=0) / _CELL).astype(int)), []).append(atoms)


def _extended(solute: Solute, groups: list[tuple[int, list[np.ndarray]]]) -> Solute:
    """A solute with further molecules of one residue each, by kind."""
    kinds = np.concatenate([np.full(len(positions), kind) for kind, positions in groups])
    number, segment, names = [], [], []
    for kind, positions in groups:
        piece, within = np.divmod(np.arange(len(positions)), MAX_RESIDUES_PER_SEGMENT)
        segment.append(len(solute.segment_name) + len(names) + piece)
        number.append(within + 1)
        letter = {"MG": "M", "SPM": "S", "SPD": "D"}.get(residue_names()[kind], "W")
        names += [f"X{letter}{base_36(k, 2)}" for k in range(int(piece[-1]) + 1)]
    first = solute.molecule_first_residue
    known = len(solute.segment_name)
    return replace(
        solute,
        position=np.concatenate([np.asarray(solute.position[...]),
                                 *(one for _, positions in groups for one in positions)]).astype(np.float32),
        residue_template=np.concatenate([solute.residue_template, kinds]).astype(np.uint16),
        residue_number=np.concatenate([solute.residue_number, *number]).astype(np.int32),
        residue_segment=np.concatenate([solute.residue_segment, *segment]).astype(np.uint16),
        segment_name=[*solute.segment_name, *names],
        segment_chain=[*solute.segment_chain, *(CHAIN_LETTERS[(known + k) % len(CHAIN_LETTERS)]
                                                for k in range(len(names)))],
        molecule_first_residue=np.concatenate([first, first[-1] + 1 + np.arange(len(kinds))]).astype(np.int64),
        molecule_name=[*solute.molecule_name, *(residue_library()[residue_names()[kind]].pdb_name
                                                for kind in kinds.tolist())],
        molecule_nucleosome=np.concatenate([solute.molecule_nucleosome, np.full(len(kinds), -1)]).astype(np.int32))


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def _rotation(q: np.ndarray) -> np.ndarray:
    """(3, 3) of a unit quaternion."""
    w, x, y, z = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])
