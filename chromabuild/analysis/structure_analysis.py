"""What no force field mends, along a trajectory: pierced rings, threaded strands, mirrored centres, cis and twisted
peptides, as an analysis of MDAnalysis."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from MDAnalysis.analysis.results import ResultsGroup

from chromabuild.analysis.frame_analysis import FrameAnalysis
from chromabuild.analysis.nucleotides import has_box, nearest_image
from chromabuild.base.box_vectors import box_from_angles
from chromabuild.base.errors import BadInputError
from chromabuild.molecule.structure_file import StructureFile
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import chirality_errors, near_pairs, peptides, ring_piercings
from chromabuild.sterics.chains import NamePlaces, find_duplexes, threaded_strands

if TYPE_CHECKING:
    import MDAnalysis

KINDS = ("ring pierced by a bond", "strands with a backbone between them", "centre of wrong chirality", "cis peptide",
         "twisted peptide")
"""What is looked for, as in `chromabuild clash check`."""


class StructureAnalysis(FrameAnalysis):
    """Faults of protein and DNA in every frame, by the rules of `chromabuild clash check`.

    Hydrogens take part where the topology has them. Results with f frames: ``counts`` (f, 5): how many of each of
    ``KINDS``; ``findings``: for each frame a list of (place in ``KINDS``, atoms), atoms as numbers of the universe.

    Raises BadInputError where the universe has neither protein nor DNA.
    """

    MEASURES: ClassVar[dict[str, type]] = {"counts": np.int32}

    def __init__(self, universe: "MDAnalysis.Universe", whose: str = "the topology", verbose: bool = False) -> None:
        super().__init__(universe, verbose)
        self._universe = universe
        self.chosen = _polymers(universe)
        """Atoms of protein and DNA."""
        if not len(self.chosen):
            raise BadInputError(f"{whose} holds neither protein nor DNA: leave out the measure structure")
        residue, self._first = np.unique(universe.atoms.resindices[self.chosen], return_index=True)
        self._owner = np.searchsorted(residue, universe.atoms.resindices[self.chosen])
        self.atoms = self._atoms(universe, residue)
        self._place = NamePlaces(self.atoms)

    def identity(self, atom: int) -> str:
        """``segid:resname:resid:atom`` of an atom of the universe."""
        return self.atoms.identity(int(np.searchsorted(self.chosen, atom)))

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What is kept of one frame, from all atoms (n, 3) and the box of the universe."""
        found = self._found(position, box)
        self._findings.append(found)
        return {"counts": np.bincount([kind for kind, _ in found], minlength=len(KINDS))}

    def _found(self, position: np.ndarray, box: np.ndarray | None) -> list[tuple[int, tuple[int, ...]]]:
        atoms = self.atoms.at(self._whole(position, box))
        if has_box(box):
            atoms.box = box_from_angles(*np.split(np.asarray(box, float), 2))
        pierced = ring_piercings(atoms, near_pairs(atoms))
        threaded = threaded_strands(atoms, self._place, find_duplexes(atoms, self._place))
        found = [(kind, (*one.ring, *one.bond)) for kind, several in enumerate((pierced, threaded)) for one in several]
        single = (chirality_errors(atoms, self._place), *peptides(atoms, self._place))
        found += [(kind, (atom,)) for kind, several in enumerate(single, 2) for atom in several]
        return [(kind, tuple(self.chosen[list(numbers)].tolist())) for kind, numbers in found]

    def _prepare(self) -> None:
        super()._prepare()
        self.results.findings = self._findings = []

    def _get_aggregator(self) -> ResultsGroup:
        return ResultsGroup({"counts": ResultsGroup.flatten_sequence, "findings": ResultsGroup.flatten_sequence})

    def _whole(self, position: np.ndarray, box: np.ndarray | None) -> np.ndarray:
        """(a, 3) float32 of the chosen atoms, each residue in one piece and beside the residue before it."""
        own = position[self.chosen].astype(float)
        if not has_box(box):
            return own.astype(np.float32)
        anchor = own[self._first]
        inside = nearest_image(own - anchor[self._owner], box)
        steps = nearest_image(np.diff(anchor, axis=0), box)
        anchor = anchor[0] + np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
        return (anchor[self._owner] + inside).astype(np.float32)

    def _atoms(self, universe: "MDAnalysis.Universe", residue: np.ndarray) -> Atoms:
        """The chosen atoms as the clash check sees those of a file."""
        residues = universe.residues[residue]
        segment, number = residues.segindices, residues.resids
        piece = np.concatenate([[0], np.cumsum((np.diff(segment) != 0) | (np.diff(number) != 1))])
        label = [f"{one}:{name}:{k}" for one, name, k in zip(residues.segids, residues.resnames, number, strict=True)]
        chosen = universe.atoms[self.chosen]
        whole = self._whole(universe.atoms.positions, universe.dimensions).astype(float)
        return Atoms.from_structure(StructureFile(
            whole, _elements(chosen), chosen.names.astype(str).tolist(), self._owner.astype(np.int32),
            residues.resnames.astype(str).tolist(), label, piece.astype(np.int32), None, 0, 0))


def _polymers(universe: "MDAnalysis.Universe") -> np.ndarray:
    """Atoms of residues that have the backbone of a protein or the sugar of DNA."""
    owner, name = universe.atoms.resindices, universe.atoms.names.astype(str)
    has = {wanted: np.isin(np.arange(len(universe.residues)), owner[name == wanted])
           for wanted in ("N", "CA", "C", "C1'", "C3'", "C4'")}
    protein, dna = has["N"] & has["CA"] & has["C"], has["C1'"] & has["C3'"] & has["C4'"]
    return np.flatnonzero((protein | dna)[owner])


def _elements(chosen: "MDAnalysis.AtomGroup") -> np.ndarray:
    """(a,) atomic numbers: of protein and DNA the first letter of a name is the element."""
    import gemmi

    letter = np.array([name.lstrip("0123456789")[:1] for name in chosen.names.astype(str)])
    number = {one: gemmi.Element(one).atomic_number for one in set(letter.tolist())}
    return np.array([number[one] for one in letter.tolist()], dtype=np.uint8)
