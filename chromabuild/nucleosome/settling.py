"""Histones and other proteins that make room: side chains turned where they run into DNA or another nucleosome.

Octamers are placed as they come, with side chains chosen for one nucleosome alone. Linkers that leave at another angle,
other sequences and neighbours in the fibre come too near to some of them: to within an angstrom, where a minimiser
meets forces without bounds. Every such side chain takes the torsions that leave it free. Main chains and DNA stay:
tails that run through each other in a dense fold are the clash stage's (``chromabuild.clash``).
"""

import numpy as np

from chromabuild.molecule.solute import Solute
from chromabuild.sterics.atoms import SIDE_CHAIN, Atoms
from chromabuild.sterics.passages import Passages
from chromabuild.sterics.scene import Scene
from chromabuild.sterics.sidechain import Proposal, propose_rotor, propose_side_chain
from chromabuild.sterics.torsions import hydrogen_rotors, side_chain_torsions

STRANDS = ("DNA-I", "DNA-J")
FATAL = 0.9  # angstrom: pairs nearer than this count before all others


class Settling:
    """One pass over all histones."""

    def __init__(self, solute: Solute, threads: int) -> None:
        """``threads`` search for close pairs; the result does not depend on it."""
        atoms = Atoms.from_solute(solute)
        self.scene = Scene(atoms, FATAL, threads)
        self.passages = Passages(self.scene)
        self.solute = solute
        self.molecule = np.repeat(np.arange(len(solute.molecule_name)), np.diff(solute.molecule_first_residue))
        self.protein = ~np.isin(solute.molecule_name, STRANDS)[self.molecule]
        self.moves = {"rotor": 0, "chi": 0}

    def of_histones(self, pairs: np.ndarray) -> np.ndarray:
        """Those of the pairs (p, 2) that have an atom of a histone."""
        return pairs[self.protein[self.scene.atoms.residue[pairs]].any(axis=1)]

    def run(self) -> np.ndarray:
        """One round over all severe pairs, in their order; returns those between two chains that are left, (p, 2)."""
        scene = self.scene
        pairs, distance = scene.cells.pairs(
            float(scene.severe_table.max()), scene.graph, scene.kind, scene.severe_table)
        for a, b in self.of_histones(pairs).tolist():
            self.free(a, b)
        if scene.moved_since:
            moved = np.unique(np.concatenate(scene.moved_since))
            scene.rebuild()
            pairs, _ = scene.update_severe(pairs, distance, moved)
        left = self.of_histones(pairs)
        molecule = self.molecule[scene.atoms.residue[left]]
        return left[molecule[:, 0] != molecule[:, 1]]

    def free(self, a: int, b: int) -> None:
        """Make room between two atoms by hydrogens, then side chains."""
        scene, residue = self.scene, self.scene.atoms.residue
        own = [atom for atom in (a, b) if self.protein[residue[atom]]]
        for atom in own:
            if not scene.is_severe(a, b):
                return
            chi = side_chain_torsions(self.solute, int(residue[atom]))
            rotors = hydrogen_rotors(self.solute, int(residue[atom]))
            for rotor in rotors:
                if atom in rotor.turned:
                    self.take(propose_rotor(scene, rotor))
            if scene.is_severe(a, b) and chi and scene.atoms.part[atom] == SIDE_CHAIN:
                self.take(propose_side_chain(scene, chi, rotors))

    def take(self, proposal: Proposal | None) -> None:
        """Make a move that helps and puts no bond through a ring."""
        if proposal is None or self.passages.opened(proposal.moved, proposal.position):
            return
        self.scene.commit(proposal.moved, proposal.position)
        self.moves[proposal.kind] += 1


def settle_histones(solute: Solute, threads: int = 1) -> dict:
    """Turn side chains of a solute's histones, in place, away from DNA and from each other.

    Args:
        solute: its positions change.
        threads: of the search for close pairs; the result does not depend on it.

    Returns:
        Turned hydrogens and side chains, and the close pairs between molecules that are left, for the build report.
    """
    settling = Settling(solute, threads)
    left = settling.run()
    solute.position = settling.scene.position.astype(np.float32)
    return {"turned_hydrogens": settling.moves["rotor"], "turned_side_chains": settling.moves["chi"],
            "close_histone_pairs_left": len(left)}
