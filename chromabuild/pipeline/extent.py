"""How large the solute is, before it is built: from files of the output folder, a fold, walls, or straight linkers.

Walls are soft: those bodies that bear the pressure of all others stand beyond them, the more the denser the fibre is
and the more bodies there are. Arrays of 2 to 45 nucleosomes in cubes of 14 to 39 nm are within 0.5 nm of the law here,
some 4 % of the atoms. A small box has the volume of the fibre at the pressure that makes it: 5.9 nm^3 a base pair of
the solute's own box in arrays of 4 to 45 nucleosomes and in the demo, within 5 %, 2.2 times as long as wide as a rule.
"""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from chromabuild.api import fibre_parameters, fold
from chromabuild.base.errors import BadInputError
from chromabuild.base.progress import Progress, silent
from chromabuild.base.settings import Settings, SolvateSection
from chromabuild.build.fibre import relaxed_path
from chromabuild.dna.curve import circular_path
from chromabuild.dna.sequence import base_index
from chromabuild.genome.locus import load_locus
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.pipeline.relaxing import BUILT, CLEAN, REFINED, RELAXED
from chromabuild.pipeline.speeds import REFERENCE, is_quick
from chromabuild.proteins.complex import Complex
from chromabuild.solvate.ions import POTENTIAL_REACH
from chromabuild.solvate.placement import directions_of, leaning_box
from mesoscale.circle import ring
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
DENSE_SALT = 1.5
"""Mol/L of ions from which there may be no room for them: in water alone from 6.5, beside a solute in a small box from
less."""
OF_FOLD, OF_CIRCLE = "a fold like that of the build", "the circle"
OF_CONTAINER, OF_WALLS = "scaffold.container", "the walls of scaffold.packing"
"""Where an extent was taken from."""
SMALL_BOX, SMALL_BOX_SHAPE = 5.9e3, 2.2
"""Cubic angstrom a base pair of the smallest box, and its length over its width."""


def planned_box(config: Settings, fibre: Fibre, octamers: list[Octamer], complexes: list[Complex],
                folded: Scaffold | None, stale: Collection[str]) -> tuple[np.ndarray, str, np.ndarray]:
    """The box, (3,) edges or (3, 3) vectors where they lean, angstrom, where it was taken from, and (3,) what the
    solute is sure to need along the axes."""
    solvate = config.solvate

    def widths(along: np.ndarray) -> tuple[np.ndarray, str]:
        return _widths(config, fibre, octamers, complexes, folded, stale, along)

    if solvate.edges is not None:
        try:
            extent, source = widths(np.eye(3))
        except BadInputError:  # of a file that is harmed: the box does not follow from it
            extent, source = np.zeros(3), ""
        return np.array(solvate.edges), "the settings", (1 - uncertainty(source)) * extent
    if solvate.shape == "rectangular":
        extent, source = widths(np.eye(3))
        return extent + 2 * solvate.padding, source, (1 - uncertainty(source)) * extent
    directions = directions_of(solvate)
    length = np.linalg.norm(directions, axis=1)
    width, source = widths(directions / length[:, None])
    vectors = leaning_box(solvate.shape, 1000 * float(((width + 2 * solvate.padding) / length).max())) / 1000
    return vectors, source, np.zeros(3)


def _widths(config: Settings, fibre: Fibre, octamers: list[Octamer], complexes: list[Complex], folded: Scaffold | None,
            stale: Collection[str], directions: np.ndarray) -> tuple[np.ndarray, str]:
    """(k,) angstrom that the solute takes along directions (k, 3), and where they were taken from."""
    folder = Path(config.output)
    relaxed, refined = (RELAXED,) * config.relax.enabled, (REFINED,) * config.refine.enabled
    for name in (*relaxed, CLEAN, *refined, BUILT):
        if folded is None and name not in stale and (folder / name).is_file():
            solute = Solute.read(folder / name)
            return np.ptp(solute.position @ directions.T, axis=0).astype(float), name
    is_there = "scaffold.h5" not in stale and (folder / "scaffold.h5").is_file()
    if folded is not None or is_there:
        scaffold = folded or Scaffold.read(folder / "scaffold.h5")
        extent = _widths_of_fold(config, octamers, complexes, scaffold, folded is not None, directions)
        return extent, OF_FOLD if folded else "scaffold.h5"
    if config.is_laid_flat:
        circle, _ = circular_path(len(fibre.sequence), config.locus.linking_number)
        return np.ptp(circle @ directions.T, axis=0) + 2 * DNA_RADIUS, OF_CIRCLE
    extent, source = _extent_by_law(config, fibre)
    power = ROUNDNESS.get(source, OTHER_ROUNDNESS)
    return (np.abs(directions * extent) ** power).sum(axis=1) ** (1 / power), source


def uncertainty(source: str) -> float:
    """By what share an extent from that source may be too large; 1 where it is no more than an upper bound."""
    if source in (RELAXED, CLEAN, REFINED, BUILT):
        return 0.0
    return {OF_FOLD: 0.1, "scaffold.h5": 0.1, OF_CIRCLE: 0.1, OF_WALLS: 0.4, OF_CONTAINER: 0.4}.get(source, 1.0)


def fold_in_doubt(config: Settings, fibre: Fibre, threads: int) -> Scaffold | None:
    """The fold that the build will have, of DNA that is folded in a moment and whose box may turn out too small for
    water, ions or the cutoff; None where there is no doubt or it takes longer."""
    dynamics, solvate = config.dynamics, config.solvate
    if solvate.edges is not None:
        is_safe = not config.locus.circular and bool((_extent_by_law(config, fibre)[0] < np.array(solvate.edges)).all())
    else:
        by_potential = solvate.ion_placement == "debye-hueckel"
        least = 2 * max(dynamics.cutoffs.cutoff + dynamics.pairlist_buffer, by_potential * POTENTIAL_REACH / 1000)
        is_safe = 2 * (DNA_RADIUS + solvate.padding) > least and all_ions(solvate) < DENSE_SALT
    if is_safe or not is_quick(config, len(fibre.dyads), len(fibre.sequence), REFERENCE):
        return None
    return folded(config, threads)


def all_ions(solvate: SolvateSection) -> float:
    """Of all salts, mol/L."""
    return 2 * (solvate.salt + solvate.potassium_chloride) + 3 * (solvate.magnesium_chloride + solvate.calcium_chloride)


def folded(config: Settings, threads: int | None, progress: Progress = silent) -> Scaffold:
    """The fold that the stage `scaffold` will make, in memory."""
    return fold(load_locus(config.locus, config.seed), config, threads=threads, progress=progress)


def size_is_known(config: Settings, scaffold_changes: bool, nucleosomes: int) -> bool:
    """Whether the box follows from the settings or from files, rather than from a guess at the fibre."""
    scaffold = config.scaffold
    packed = scaffold.is_packed and nucleosomes > 1
    if config.solvate.edges or scaffold.container or packed or config.is_laid_flat:
        return True
    names = ("scaffold.h5", BUILT, CLEAN)
    return not scaffold_changes and any((Path(config.output) / name).is_file() for name in names)


def _widths_of_fold(config: Settings, octamers: list[Octamer], complexes: list[Complex], scaffold: Scaffold,
                    is_new: bool, directions: np.ndarray) -> np.ndarray:
    placed = scaffold
    if is_new and not config.locus.is_bare_circle:
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
        source = OF_CONTAINER if config.scaffold.container else OF_WALLS
        return (walls + beyond if nucleosomes else np.minimum(walls + 2 * TAIL_MARGIN, straight)), source
    if config.scaffold.choose == "smallest-box" and nucleosomes > 1:
        width = (SMALL_BOX * base_pairs / SMALL_BOX_SHAPE) ** (1 / 3)
        return np.array([SMALL_BOX_SHAPE * width, width, width]), "the rule for smallest boxes"
    radius = config.scaffold.confinement_radius
    sphere = 20 * radius + 2 * CORE_REACH if radius else np.inf
    if straight.max() <= sphere:
        return straight, "the ring that it begins as" if fibre.circular else "the fibre with straight linkers"
    return np.minimum(straight, sphere), "scaffold.confinement_radius"


def _straight(config: Settings, fibre: Fibre) -> np.ndarray:
    """With straight linkers, of a circle on a ring."""
    chain = build_chain(fibre, Parameters(temperature=config.scaffold.temperature, salt=config.scaffold.salt))
    position, frame = ring(chain) if chain.is_circle else straight_conformation(chain)
    path, _ = crystal_path(fibre.wrapped_length)
    dna = np.concatenate([position[chain.beads], *(
        position[p] + path @ frame[p].T for p in chain.cores if chain.shape_of(p).is_nucleosome)])
    turn = box_axes(np.concatenate([dna, body_points(chain, position, frame)]))
    return np.ptp(dna @ turn, axis=0) * NM + 2 * TAIL_MARGIN
