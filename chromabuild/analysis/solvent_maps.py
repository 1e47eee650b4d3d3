"""Maps of ions, water and the electrostatic potential about DNA or a nucleosome, as an analysis of MDAnalysis."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.constants import Avogadro
from scipy.ndimage import convolve
from scipy.spatial import cKDTree

from chromabuild.analysis.frame_analysis import FrameAnalysis
from chromabuild.analysis.histones import superposition
from chromabuild.analysis.nucleotides import PLACE, find_nucleotides, has_box, nearest_image
from chromabuild.analysis.potential_mesh import PotentialMesh
from chromabuild.analysis.solvent import BOUND, IONS, WATERS, find_solvent, nearest_atoms
from chromabuild.analysis.whole_nucleosomes import WholeNucleosomes, core_of
from chromabuild.base.constants import BOLTZMANN, COULOMB_CONSTANT
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path

if TYPE_CHECKING:
    import MDAnalysis

MARGIN = 12.0
"""Angstrom of solvent about the solute that a map shows."""
VOXELS = 4_000_000
"""At most so many: a larger map gets wider voxels."""
PEAKS = 20
"""Places of each kind of ion that are listed."""
CLOSE = 2.0
"""Angstrom within which an ion is at such a place."""
APART = 4.0
"""Angstrom between two of them."""
STRUCTURE = "map_structure.pdb"
POTENTIALS = ("explicit", "continuum")
MOLAR = 1e27 / Avogadro
"""Mol/L of one particle in a cubic angstrom."""
DIELECTRIC = 78.5
"""Of water at 298 K, for the continuum."""
VALENCE = {"Na+": 1, "K+": 1, "Mg2+": 2, "Ca2+": 2, "Cl-": -1}
RADIUS = 90.0
"""Angstrom from the centre of a nucleosome within which its map shows residues: linkers end there."""
_THERMAL = BOLTZMANN * 298.15
"""kcal/mol, at the temperature of ``DIELECTRIC``."""
_NEUTRAL = 0.01
"""Net charge in e, from rounded charges, of a system that counts as neutral."""


@dataclass(frozen=True)
class Grid:
    """Voxels that stand still with respect to the solute."""

    first: np.ndarray
    """(3,) middle of the first voxel, angstrom."""
    spacing: float
    shape: tuple[int, int, int]

    @classmethod
    def around(cls, position: np.ndarray) -> "Grid":
        """Voxels of one angstrom, or of more where there would be too many, about points (n, 3)."""
        low, high = position.min(axis=0) - MARGIN, position.max(axis=0) + MARGIN
        spacing = max(1.0, float(np.prod(high - low) / VOXELS) ** (1 / 3))
        first = np.floor(low / spacing)  # files hold whole numbers of voxels from the origin
        shape = np.ceil(high / spacing - first).astype(int) + 1
        return cls(spacing * first, spacing, tuple(shape.tolist()))

    @property
    def middle(self) -> np.ndarray:
        """(3,) of the whole grid."""
        return self.first + self.spacing * (np.array(self.shape) - 1) / 2

    @property
    def reach(self) -> float:
        """Angstrom from the middle to a corner."""
        return float(np.linalg.norm(np.array(self.shape) * self.spacing / 2))

    def points(self) -> np.ndarray:
        """(v, 3) middles of all voxels."""
        axes = [first + self.spacing * np.arange(n) for first, n in zip(self.first, self.shape, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)

    def count(self, position: np.ndarray) -> np.ndarray:
        """How many of points (p, 3) lie in each voxel."""
        place = np.floor((position - self.first) / self.spacing + 0.5).astype(np.int64)
        inside = ((place >= 0) & (place < self.shape)).all(axis=1)
        flat = np.ravel_multi_index(tuple(place[inside].T), self.shape)
        return np.bincount(flat, minlength=int(np.prod(self.shape))).reshape(self.shape)

    def peaks(self, counts: np.ndarray, frames: int) -> list[tuple[np.ndarray, float]]:
        """Places (3,) that most ions were near, and how many within ``CLOSE`` angstrom on average, of ``counts``.

        The highest first, ``APART`` angstrom from each other; places that were taken once are none.
        """
        reach = int(CLOSE / self.spacing)
        offset = np.mgrid[-reach:reach + 1, -reach:reach + 1, -reach:reach + 1] * self.spacing
        ball = (offset**2).sum(axis=0) <= CLOSE**2
        near = convolve(counts.astype(float), ball.astype(float), mode="constant")
        found = np.argwhere(near > 1.5)
        order = np.argsort(-near[tuple(found.T)], kind="stable")
        taken = np.argwhere(counts)
        tree, number = cKDTree(taken), counts[tuple(taken.T)]
        kept: list[tuple[np.ndarray, float]] = []
        for voxel in found[order]:
            close = tree.query_ball_point(voxel, CLOSE / self.spacing)
            place = self.first + self.spacing * np.average(taken[close], axis=0, weights=number[close])
            if all(np.linalg.norm(place - other) >= APART for other, _ in kept):
                kept.append((place, float(near[tuple(voxel)]) / frames))
            if len(kept) == PEAKS:
                break
        return kept

    def write(self, value: np.ndarray, path: Path) -> None:
        """An MRC file, which ChimeraX, VMD, PyMOL and Mol* open beside the structure."""
        from gridData import Grid as GridFile

        with atomic_path(path) as part:
            GridFile(value.astype(np.float32), origin=self.first, delta=[self.spacing] * 3).export(
                str(part), file_format="MRC")


class SolventMaps(FrameAnalysis):
    """Sums over frames of what stands in each voxel of a grid that moves with the solute.

    The solute is the octamer of one nucleosome (its folds are superposed on 1KX5), or DNA (N1 of all bases, on the
    first frame). Results, each of the shape of ``grid``:

    - ``ions`` (k, nx, ny, nz) and ``water``: numbers of ions of k kinds (``solvent.kinds``) and of oxygens of water,
      summed over frames;
    - ``explicit``: the potential of all charges, and ``continuum``: that of the charges of everything but ions and
      water, screened by the salt of the frame (Debye and Hueckel) in ``DIELECTRIC``; kcal/(mol e), summed over frames.
      Both are of charges smeared as ``PotentialMesh`` does; only of a whole system with water and charges.

    ``run(start=...)`` leaves out frames before; ``settling`` tells from which on they count.

    ``solute_atoms`` (an AtomGroup of s atoms) stand at ``structure`` (s, 3) on the grid in the first frame. ``molar``
    and ``potential`` make means of the sums.

    Raises BadInputError where the universe has no DNA, no ions, no box, or no such nucleosome.
    """

    def __init__(self, universe: "MDAnalysis.Universe", nucleosome: int | None = None, whose: str = "the topology",
                 verbose: bool = False) -> None:
        super().__init__(universe, verbose)
        self._whole = None if nucleosome is None else WholeNucleosomes(universe, whose)
        self._dna = self._whole.nucleotides if self._whole else find_nucleotides(universe, whose)
        if self._whole and not 1 <= nucleosome <= len(self._whole.nucleosomes):
            raise BadInputError(f"{whose} has no nucleosome {nucleosome}: choose from 1 to "
                                f"{len(self._whole.nucleosomes)}")
        self._octamer = self._whole.nucleosomes[nucleosome - 1].octamer if self._whole else None
        self.solvent = find_solvent(universe)
        if not len(self.solvent.ions):
            raise BadInputError(f"{whose} holds no ions (residues such as NA, K, MG, CL): leave out the measure map, "
                                "or write them to the trajectory (dynamics.trajectory_selection)")
        position, box = universe.atoms.positions.astype(float), universe.dimensions
        if not has_box(box):
            raise BadInputError(f"{whose} has no periodic box: leave out the measure map, or give frames with a box")
        self._reference = self._anchors(position, box)
        around, turned = self._place(position, box)
        self._at_first = (self._reference - around) @ turned
        near = np.linalg.norm(self._at_first, axis=1) < RADIUS
        self._watched = near if self._whole and near.any() else np.ones(len(near), dtype=bool)
        shown, self.structure = self._shown(universe, around, turned)
        self.solute_atoms = universe.atoms[shown]
        self.grid = Grid.around(self.structure)
        self._charge = self._charges(universe)
        self._charged = np.flatnonzero(~_is_solvent(universe))
        self._points = self.grid.points()
        self.TOTALS = ("ions", *(["water"] if len(self.solvent.water) else []),
                       *(POTENTIALS if self._charge is not None else []))

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What one frame adds to the sums, from all atoms (n, 3) and the box of the universe."""
        position = position.astype(float)
        around, turned = self._place(position, box)
        images = _Images(box, around + turned @ self.grid.middle, self.grid.reach)

        def count(atoms: np.ndarray) -> np.ndarray:
            return self.grid.count((images.of(position[atoms]) - around) @ turned)

        solvent = self.solvent
        found = {"ions": np.array([count(solvent.ions[solvent.kind == kind]) for kind in solvent.kinds])}
        if "water" in self.TOTALS:
            found["water"] = count(solvent.water)
        if self._charge is not None:
            points, cell = around + self._points @ turned.T, images.cell
            whole = PotentialMesh(position, self._charge, cell).potential(COULOMB_CONSTANT)
            found["explicit"] = whole.at(points).reshape(self.grid.shape)
            fixed = PotentialMesh(position[self._charged], self._charge[self._charged], cell)
            continuum = fixed.potential(COULOMB_CONSTANT, DIELECTRIC, self._screening(cell))
            found["continuum"] = continuum.at(points).reshape(self.grid.shape)
        return found

    def molar(self, name: str) -> np.ndarray:
        """Mean concentration in each voxel, mol/L, of a kind of ion or of ``water``; ``run`` first."""
        seen = self.results.water if name == "water" else self.results.ions[self.solvent.kinds.index(name)]
        return seen * (MOLAR / (self.n_frames * self.grid.spacing**3))

    def potential(self, name: str) -> np.ndarray:
        """Mean potential in each voxel, kcal/(mol e), one of ``POTENTIALS``; ``run`` first."""
        return self.results[name] / self.n_frames

    def settling(self) -> "Settling":
        """Series of frames that tell from when on the maps count."""
        return Settling(self)

    def moved(self, position: np.ndarray, box: np.ndarray) -> float:
        """Root mean square distance (angstrom) of N1 of the bases of the map from where they are in the first frame."""
        around, turned = self._place(position, box)
        here = (self._anchors(position, box) - around) @ turned
        return float(np.sqrt(((here - self._at_first)[self._watched] ** 2).sum(axis=1).mean()))

    def bound(self, position: np.ndarray, box: np.ndarray) -> np.ndarray:
        """(k,) ions of each kind within ``BOUND`` of a heavy atom of DNA."""
        atoms = self._dna.atoms[self._dna.atoms >= 0]
        distance, _ = nearest_atoms(position[self.solvent.ions], position[atoms], box, BOUND)
        return np.array([np.isfinite(distance[self.solvent.kind == kind]).sum() for kind in self.solvent.kinds])

    def _anchors(self, position: np.ndarray, box: np.ndarray) -> np.ndarray:
        """(r, 3) N1 of all bases, whole."""
        return self._dna.positions(position, box)[:, PLACE["N1"]]

    def _place(self, position: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Origin (3,) and frame (3, 3) of the solute: a point x of the map stands at origin + frame @ x."""
        if self._whole is None:
            return superposition(self._reference, self._anchors(position, box))[:2]
        chains = self._whole.chains(position, self._dna.positions(position, box), box)
        core = core_of(self._octamer, chains)
        return core.origin, core.frame

    def _shown(self, universe: "MDAnalysis.Universe", around: np.ndarray,
               turned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Atoms of the solute that the map shows, and where they stand on it (s, 3).

        All of the solute; of a nucleosome, residues with their first atom within ``RADIUS`` of its centre. Residues are
        put together about their first atoms, and beside the centre.
        """
        position, box = universe.atoms.positions.astype(float), universe.dimensions
        owner = universe.atoms.resindices
        first = position[np.unique(owner, return_index=True)[1]]
        centre = around if self._whole else self._anchors(position, box).mean(axis=0)
        beside = centre + nearest_image(first - centre, box)
        shown = ~_is_solvent(universe)
        if self._whole:
            shown &= (np.linalg.norm(beside - centre, axis=1) < RADIUS)[owner]
        atoms = np.flatnonzero(shown)
        whole = beside[owner[atoms]] + nearest_image(position[atoms] - first[owner[atoms]], box)
        return atoms, (whole - around) @ turned

    def _charges(self, universe: "MDAnalysis.Universe") -> np.ndarray | None:
        """(n,) of a neutral system with its water; None of any other, whose potential would mean nothing."""
        charge = getattr(universe.atoms, "charges", None)
        if charge is None or not len(self.solvent.water) or abs(charge.sum()) > _NEUTRAL:
            return None
        return np.asarray(charge, dtype=float)

    def _screening(self, cell: np.ndarray) -> float:
        """1/angstrom, of all ions in the box."""
        strength = sum(VALENCE[kind] ** 2 for kind in self.solvent.kind.tolist()) / abs(np.linalg.det(cell))
        return float(np.sqrt(4 * np.pi * COULOMB_CONSTANT / (DIELECTRIC * _THERMAL) * strength))


    def write(self, folder: Path) -> list[str]:
        """Write all maps as MRC files and the first frame's solute as PDB; the names of the files."""
        import MDAnalysis

        means = {name: self.molar(name) for name in (*self.solvent.kinds, "water")
                 if name != "water" or name in self.TOTALS}
        means |= {f"potential_{name}": self.potential(name) for name in POTENTIALS if name in self.TOTALS}
        for name, value in means.items():
            self.grid.write(value, folder / f"map_{name}.mrc")
        solute = MDAnalysis.Merge(self.solute_atoms)
        solute.atoms.positions = self.structure
        with atomic_path(folder / STRUCTURE) as part, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a topology leaves out: altLocs, occupancies, ...
            with MDAnalysis.coordinates.PDB.PDBWriter(str(part), bonds=None) as writer:
                writer.write(solute.atoms)
        return [*(f"map_{name}.mrc" for name in means), STRUCTURE]


class Settling(FrameAnalysis):
    """What tells from when a solute and its ions are at rest, of the frames of ``SolventMaps``.

    Results with f frames and k kinds of ions (``maps.solvent.kinds``):

    - ``moved`` (f,): root mean square distance of N1 of the map's bases from the first frame, on the map, angstrom;
    - ``bound`` (f, k): ions within 6 angstrom of DNA.
    """

    MEASURES: ClassVar[dict[str, type]] = {"moved": np.float32, "bound": np.int32}

    def __init__(self, maps: SolventMaps, verbose: bool = False) -> None:
        super().__init__(maps.solute_atoms.universe, verbose)
        self.maps = maps

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What is kept of one frame, from all atoms (n, 3) and the box of the universe."""
        position = position.astype(float)
        return {"moved": self.maps.moved(position, box), "bound": self.maps.bound(position, box)}


class _Images:
    """Periodic images of points, as many as come near a centre."""

    def __init__(self, box: np.ndarray, centre: np.ndarray, reach: float) -> None:
        from MDAnalysis.lib.mdamath import triclinic_vectors

        self.cell = triclinic_vectors(np.asarray(box, dtype=np.float32)).astype(float)
        self._inverse = np.linalg.inv(self.cell)
        self._middle = centre @ self._inverse
        self._margin = reach * np.linalg.norm(self._inverse, axis=0)  # in units of the cell: one over the heights

    def of(self, points: np.ndarray) -> np.ndarray:
        """(q, 3) images of points (p, 3) in the parallelepiped about the sphere of the reach."""
        inside = points @ self._inverse - self._middle
        for axis in range(3):
            margin = self._margin[axis]
            start = inside.copy()
            start[:, axis] -= np.floor(start[:, axis] + margin)  # the first image from -margin on
            copies = [start + shift * np.eye(3)[axis] for shift in range(int(np.ceil(2 * margin)))]
            inside = np.concatenate([copy[copy[:, axis] < margin] for copy in copies])
        return (inside + self._middle) @ self.cell


def _is_solvent(universe: "MDAnalysis.Universe") -> np.ndarray:
    """(n,) whether an atom is of water or of an ion, with hydrogens and virtual sites."""
    names = np.char.upper(universe.residues.resnames.astype(str))
    return np.isin(names, [*WATERS, *IONS])[universe.atoms.resindices]
