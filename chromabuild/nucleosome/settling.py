"""Histones that make room: side chains and tails turned where they run into DNA or another nucleosome.

Octamers are placed as they come, with tails and side chains chosen for one nucleosome alone. Linkers that leave at
another angle, other sequences and neighbours in the fibre come too near to some of them: to within an angstrom, where
a minimiser meets forces without bounds. Every such side chain takes the torsions that leave it free. A tail that still
runs through something grows again around everything that is there: that takes as long as a hundred side chains, so it
is done for atoms within each other only, and the rest is left to the clash stage, whose moves these are
(``chromabuild.clash``). DNA, ordered backbones and everything that is free stay as they are.
"""

from collections.abc import Callable

import numpy as np

from chromabuild.clash.atoms import SIDE_CHAIN, Atoms
from chromabuild.clash.passages import Passages
from chromabuild.clash.scene import Scene
from chromabuild.clash.sidechain import Proposal, propose_rotor, propose_side_chain
from chromabuild.clash.tails import Growth, Tail, find_tails, propose_tail
from chromabuild.clash.torsions import Torsion, library_torsions
from chromabuild.solute import Solute

FATAL = 0.9  # angstrom: pairs nearer than this count before all others, and make a tail grow again
ROUNDS = 2

Progress = Callable[[float], None]


class Settling:
    """One pass over all histones."""

    def __init__(self, solute: Solute, seed: int, threads: int, regrow: bool) -> None:
        """``threads`` search for close pairs, the result does not depend on it; ``regrow``: whether tails may grow."""
        atoms = Atoms.from_solute(solute)
        self.scene = Scene(atoms, FATAL, threads)
        self.passages = Passages(self.scene)
        self.seed = seed
        self.template = solute.residue_template
        self.molecule = np.repeat(np.arange(len(solute.molecule_name)), np.diff(solute.molecule_first_residue))
        self.protein = solute.molecule_nucleosome[self.molecule] >= 0
        tails = find_tails(self.scene, solute.molecule_name, solute.molecule_first_residue,
                           solute.residue_number) if regrow else []
        self.tail_of = {residue: tail for tail in tails for residue in tail.residues}
        self.growths: dict[Tail, Growth] = {}
        self.moves = {"rotor": 0, "chi": 0, "tail": 0}

    def torsions(self, residue: int) -> tuple[list[Torsion], list[Torsion]]:
        """Side-chain torsions and hydrogen rotors of a residue, by global atoms."""
        found, first = library_torsions()[self.template[residue]], int(self.scene.residue_first[residue])
        return [t.shifted(first) for t in found.chi], [t.shifted(first) for t in found.rotors]

    def pairs(self) -> np.ndarray:
        """(p, 2) severe pairs with an atom of a histone, ascending."""
        scene = self.scene
        pairs, _ = scene.cells.pairs(float(scene.severe_table.max()), scene.graph, scene.kind, scene.severe_table)
        return pairs[self.protein[scene.atoms.residue[pairs]].any(axis=1)]

    def between_molecules(self) -> np.ndarray:
        """Those of ``pairs`` that do not lie within one chain."""
        pairs = self.pairs()
        molecule = self.molecule[self.scene.atoms.residue[pairs]]
        return pairs[molecule[:, 0] != molecule[:, 1]]

    def run(self, progress: Progress | None) -> None:
        """Rounds until nothing is near or nothing helps."""
        for number in range(1, ROUNDS + 1):
            pairs, before, stuck = self.pairs(), sum(self.moves.values()), {}
            for k, (a, b) in enumerate(pairs.tolist()):
                if progress is not None and k % 50 == 0:
                    progress((number - 1 + k / len(pairs)) / ROUNDS)
                self.free(a, b, stuck)
            for tail, hit in stuck.items():
                growth = self.growths.setdefault(tail, Growth(self.scene, tail, lambda r: self.torsions(r)[0]))
                self.take(propose_tail(self.passages, growth, sorted(hit), self.seed, number))
            if sum(self.moves.values()) == before:
                break
            self.scene.rebuild()

    def free(self, a: int, b: int, stuck: dict[Tail, set[int]]) -> None:
        """Make room between two atoms by hydrogens, then side chains; adds tails within something to ``stuck``."""
        scene, residue = self.scene, self.scene.atoms.residue
        own = [atom for atom in (a, b) if self.protein[residue[atom]]]
        for atom in own:
            if not scene.is_severe(a, b):
                return
            chi, rotors = self.torsions(int(residue[atom]))
            for rotor in rotors:
                if atom in rotor.turned:
                    self.take(propose_rotor(scene, rotor))
            if scene.is_severe(a, b) and chi and scene.atoms.part[atom] == SIDE_CHAIN:
                self.take(propose_side_chain(scene, chi, rotors))
        if np.linalg.norm(scene.position[a] - scene.position[b]) < FATAL:
            for atom in own:
                tail = self.tail_of.get(int(residue[atom]))
                if tail is not None:
                    stuck.setdefault(tail, set()).add(int(residue[atom]))

    def take(self, proposal: Proposal | None) -> None:
        """Make a move that helps and puts no bond through a ring."""
        if proposal is None or (proposal.kind != "tail" and self.passages.opened(proposal.moved, proposal.position)):
            return
        self.scene.commit(proposal.moved, proposal.position)
        self.moves[proposal.kind] += 1


def settle_histones(solute: Solute, seed: int, threads: int = 1, regrow: bool = True,
                    progress: Progress | None = None) -> dict:
    """Turn side chains and tails of a solute's histones, in place, away from DNA and from each other.

    Args:
        solute: its positions change.
        seed: of the tails that grow again.
        threads: of the search for close pairs; the result does not depend on it.
        regrow: whether tails may grow again; false for those that follow beads, which they would leave.
        progress: called with the fraction done.

    Returns:
        Turned side chains, rotors and tails, and the close pairs between molecules that are left, for the build report.
    """
    settling = Settling(solute, seed, threads, regrow)
    settling.run(progress)
    solute.position = settling.scene.position.astype(np.float32)
    return {"turned_hydrogens": settling.moves["rotor"], "turned_side_chains": settling.moves["chi"],
            "regrown_tails": settling.moves["tail"], "close_histone_pairs_left": len(settling.between_molecules())}
