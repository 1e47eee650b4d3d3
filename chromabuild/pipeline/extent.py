"""How large the solute is, before it is built: from files of the output folder, a fold, walls, or straight linkers.

Walls are soft: those bodies that bear the pressure of all others stand beyond them, the more the denser the fibre is
and the more bodies there are. Arrays of 2 to 45 nucleosomes in cubes of 14 to 39 nm are within 0.5 nm of the law here,
some 4 % of the atoms. A small box has the volume of the fibre at the pressure that makes it: 5.9 nm^3 a base pair of
the solute's own box in arrays of 4 to 45 nucleosomes and in the demo, within 5 %, 2.2 times as long as wide as a rule.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from chromabuild.api import fibre_parameters
from chromabuild.base.settings import Settings
from chromabuild.build.fibre import relaxed_path
from chromabuild.dna.curve import circular_path
from chromabuild.dna.sequence import base_index
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.pipeline.relaxing import CLEAN, RELAXED
from chromabuild.proteins.complex import Complex
from chromabuild.solvate.placement import directions_of, leaning_box
from mesoscale.cores import crystal_path
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, body_points, build_chain, straight_conformation
from mesoscale.scaffold import NM, Scaffold, box_axes

DNA_RADIUS = 10.4
"""Angstrom from the axis of the double helix to its outermost hydrogens."""
BASE_PAIR_HALF = 3.0
"""Angstrom from the middle plane of a base pair to the outermost hydrogens of its sugars, along the axis."""
TAIL_MARGIN = 20.0
"""Angstrom that histone tails reach beyond the path of the DNA, where octamers are not placed yet."""
CORE_REACH = 40.0
"""Angstrom that nucleosomes reach out of the sphere in which their centres are kept: 148 of them in one of 36 nm are
799 x 780 x 774 angstrom."""
BEYOND_WALLS = (7.5, 245.0)
"""Angstrom by which a fibre of 12 nucleosomes is longer than its walls, and how much more a base pair in a nm^3."""
BY_NUMBER = (0.25, 0.27)
"""The same of other numbers of nucleosomes, as a multiple: at one, and with its logarithm."""
ROUNDNESS = {"scaffold.confinement_radius": 1.5}
"""Of the solute in its upright box, by what shaped it: 1 for one that fills it to the corners, 2 for an ellipsoid."""
OTHER_ROUNDNESS = 1.3
"""Of fibres between walls, which take most of the corners: 1.2 to 1.4 in arrays of 4 and 12 nucleosomes. Those in a
sphere, of 14 nm, are not balls either: histones and ends of DNA stick out."""
SMALL_BOX, SMALL_BOX_SHAPE = 5.9e3, 2.2
"""Cubic angstrom a base pair of the smallest box, and its length over its width."""


def planned_box(config: Settings, fibre: Fibre, octamers: list[Octamer], complexes: list[Complex],
                folded: Scaffold | None, stale: Collection[str]) -> tuple[np.ndarray, str]:
    """The box, (3,) edges or (3, 3) vectors where they lean, angstrom, and where it was taken from."""
    solvate = config.solvate
    if solvate.edges is not None:
        return np.array(solvate.edges), "the settings"
    if solvate.shape == "rectangular":
        extent, source = _widths(config, fibre, octamers, complexes, folded, stale, np.eye(3))
        return extent + 2 * solvate.padding, source
    directions = directions_of(solvate)
    length = np.linalg.norm(directions, axis=1)
    width, source = _widths(config, fibre, octamers, complexes, folded, stale, directions / length[:, None])
    return leaning_box(solvate.shape, 1000 * float(((width + 2 * solvate.padding) / length).max())) / 1000, source


def _widths(config: Settings, fibre: Fibre, octamers: list[Octamer], complexes: list[Complex], folded: Scaffold | None,
            stale: Collection[str], directions: np.ndarray) -> tuple[np.ndarray, str]:
    """(k,) angstrom that the solute takes along directions (k, 3), and where they were taken from."""
    folder = Path(config.output)
    for name in ((RELAXED,) if config.relax.enabled else ()) + (CLEAN, "solute.h5"):
        if folded is None and name not in stale and (folder / name).is_file():
            solute = Solute.read(folder / name)
            return np.ptp(solute.position @ directions.T, axis=0).astype(float), name
    is_there = "scaffold.h5" not in stale and (folder / "scaffold.h5").is_file()
    if folded is not None or is_there:
        scaffold = folded or Scaffold.read(folder / "scaffold.h5")
        extent = _widths_of_fold(config, octamers, complexes, scaffold, folded is not None, directions)
        return extent, "a fold like that of the build" if folded else "scaffold.h5"
    if config.locus.circular:
        circle, _ = circular_path(len(fibre.sequence), config.locus.linking_number)
        return np.ptp(circle @ directions.T, axis=0) + 2 * DNA_RADIUS, "the circle"
    extent, source = _extent_by_law(config, fibre)
    power = ROUNDNESS.get(source, OTHER_ROUNDNESS)
    return (np.abs(directions * extent) ** power).sum(axis=1) ** (1 / power), source


def size_is_known(config: Settings, scaffold_changes: bool, nucleosomes: int) -> bool:
    """Whether the box follows from the settings or from files, rather than from a guess at the fibre."""
    scaffold = config.scaffold
    packed = scaffold.is_packed and nucleosomes > 1
    if config.solvate.edges or scaffold.container or packed or config.locus.circular:
        return True
    names = ("scaffold.h5", "solute.h5", "solute_clean.h5")
    return not scaffold_changes and any((Path(config.output) / name).is_file() for name in names)


def _widths_of_fold(config: Settings, octamers: list[Octamer], complexes: list[Complex], scaffold: Scaffold,
                    is_new: bool, directions: np.ndarray) -> np.ndarray:
    placed = scaffold
    if is_new and not scaffold.circular:
        placed = relaxed_path(scaffold, base_index(scaffold.base), config.build, octamers, complexes=complexes)
        octamers = [*octamers, *(one.protein for one in complexes)]
    dna, along = placed.origin @ directions.T, np.abs(placed.frame[:, :, 2] @ directions.T)  # a base pair is a disc
    reach = DNA_RADIUS * np.sqrt(np.maximum(0.0, 1 - along**2)) + BASE_PAIR_HALF * along
    bodies = np.concatenate([dna - reach, dna + reach, *(
        (origin + octamer.position @ frame.T) @ directions.T for octamer, origin, frame
        in zip(octamers, placed.core_origin, placed.core_frame, strict=True))])
    return np.ptp(bodies, axis=0)


def _extent_by_law(config: Settings, fibre: Fibre) -> tuple[np.ndarray, str]:
    """Of walls, of the smallest box, or of straight linkers."""
    straight = _straight(config, fibre)
    parameters = fibre_parameters(config, fibre)
    base_pairs, nucleosomes = len(fibre.sequence), len(fibre.dyads)
    if parameters.container is not None:
        walls = NM * np.array(parameters.container)
        number = BY_NUMBER[0] + BY_NUMBER[1] * np.log(max(1, nucleosomes))
        density = base_pairs / float(np.prod(parameters.container))
        beyond = (BEYOND_WALLS[0] + BEYOND_WALLS[1] * density) * number
        source = "scaffold.container" if config.scaffold.container else "the walls of scaffold.packing"
        return (walls + beyond if nucleosomes else np.minimum(walls + 2 * TAIL_MARGIN, straight)), source
    if config.scaffold.choose == "smallest-box" and nucleosomes > 1:
        width = (SMALL_BOX * base_pairs / SMALL_BOX_SHAPE) ** (1 / 3)
        return np.array([SMALL_BOX_SHAPE * width, width, width]), "the rule for smallest boxes"
    radius = config.scaffold.confinement_radius
    sphere = 20 * radius + 2 * CORE_REACH if radius else np.inf
    if straight.max() <= sphere:
        return straight, "the fibre with straight linkers"
    return np.minimum(straight, sphere), "scaffold.confinement_radius"


def _straight(config: Settings, fibre: Fibre) -> np.ndarray:
    """With straight linkers."""
    chain = build_chain(fibre, Parameters(temperature=config.scaffold.temperature, salt=config.scaffold.salt))
    position, frame = straight_conformation(chain)
    path, _ = crystal_path(fibre.wrapped_length)
    dna = np.concatenate([position[chain.beads], *(
        position[p] + path @ frame[p].T for p in chain.cores if chain.shape_of(p).is_nucleosome)])
    turn = box_axes(np.concatenate([dna, body_points(chain, position, frame)]))
    return np.ptp(dna @ turn, axis=0) * NM + 2 * TAIL_MARGIN
