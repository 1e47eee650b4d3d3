"""Correction of steric clashes by turning side chains, phosphates and histone tails.

``paper`` mode does what the source did (Wiley J. Comput. Chem. 2019, Figure 2): a clash that touches the DNA backbone
turns the phosphate group about O3'-C5', any other turns a side chain about chi, and a trial looks at the atoms within
6 A of the clash. ``default`` mode aims further (nothing severe, not only nothing fatal) and tries, from the cheapest to
the most invasive: hydrogens of a rotor, the side chain, the phosphate with re-closure, a small re-adjustment of a
few residues, the histone tail. A move is accepted only when it lowers (fatal pairs, severe pairs).

Work is done in a fixed order; threads share the trials of one move. Positions are rounded to float32 whenever a move
is accepted, so that a second run starts exactly where the first one ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chromabuild.clash import reference
from chromabuild.clash.atoms import DNA_BACKBONE, PROTEIN_BACKBONE, SIDE_CHAIN, SUGAR, Atoms
from chromabuild.clash.audit import NamePlaces, ring_piercings, stereocentres
from chromabuild.clash.backbone import link_torsion, local_topology, propose_link, propose_relaxation
from chromabuild.clash.report import FORMAT, VERSION, ClashReport, findings
from chromabuild.clash.scene import Scene, Score
from chromabuild.clash.sidechain import Proposal, propose_rotor, propose_side_chain
from chromabuild.clash.tails import Tail, find_tails, propose_tail
from chromabuild.clash.torsions import Torsion, library_torsions
from chromabuild.errors import BadInputError
from chromabuild.solute import Solute

MAX_SWEEPS = 20
VICINITY = 6.0  # angstrom, of the source
PAPER_STEP = 5.0  # degree
FAR = 30.0  # angstrom: a move this far away cannot change what another one finds
TAIL_HITS = 4  # severe pairs that send a tail to be grown again before anything else is tried

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Mover:
    """Something that can be tried against a clash; equal keys are the same trial."""

    key: tuple
    propose: Callable[[], Proposal | None]
    centre: int
    """An atom near the middle of what moves."""


class Corrector:
    """One correction run."""

    def __init__(self, solute: Solute, atoms: Atoms, threshold: float, seed: int, threads: int) -> None:
        """Nothing is moved before ``run``."""
        self.solute = solute
        self.scene = Scene(atoms, threshold, threads)
        self.seed = seed
        self.moves: list[dict] = []
        self.move_count = np.zeros(atoms.n_atoms, dtype=np.int32)
        self.adjusted = np.zeros(atoms.n_atoms, dtype=bool)
        self.failed: dict[tuple, int] = {}
        self.fatal_history: list[int] = []
        self.tails = find_tails(self.scene, solute.molecule_name, solute.molecule_first_residue, solute.residue_number)
        self.tail_of = {residue: tail for tail in self.tails for residue in tail.residues}
        self.molecule = np.repeat(np.arange(len(solute.molecule_name)), np.diff(solute.molecule_first_residue))

    def chi(self, residue: int) -> list[Torsion]:
        """Side-chain torsions of a residue, by global atoms."""
        torsions = library_torsions()[self.solute.residue_template[residue]]
        return [t.shifted(int(self.solute.residue_first_atom[residue])) for t in torsions.chi]

    def rotors(self, residue: int) -> list[Torsion]:
        """Hydrogen rotors of a residue, by global atoms."""
        torsions = library_torsions()[self.solute.residue_template[residue]]
        return [t.shifted(int(self.solute.residue_first_atom[residue])) for t in torsions.rotors]

    def same_molecule(self, a: int, b: int) -> bool:
        """Whether both residue numbers exist and belong to one molecule."""
        return 0 <= a < len(self.molecule) and 0 <= b < len(self.molecule) and self.molecule[a] == self.molecule[b]

    def links(self, atom: int) -> list[tuple[int, int]]:
        """Phosphate links whose turning may help an atom of a nucleotide, the nearer one first."""
        residue = int(self.scene.atoms.residue[atom])
        before, after = (residue - 1, residue), (residue, residue + 1)
        three_prime = self.scene.atoms.name[atom] in ("C3'", "O3'", "H3'", "C2'", "H2'", "H2''")
        ordered = [after, before] if three_prime else [before, after]
        return [link for link in ordered if self.same_molecule(*link)]

    def movers(self, a: int, b: int) -> list[Mover]:
        """What can be tried against a pair, cheapest first."""
        scene, part, residue = self.scene, self.scene.atoms.part, self.scene.atoms.residue
        found = []
        for atom in (a, b):
            for rotor in self.rotors(int(residue[atom])):
                if atom in rotor.turned:
                    found.append(Mover(("rotor", rotor.turned[0]),
                                       lambda rotor=rotor: propose_rotor(scene, rotor), atom))
        for atom in (a, b):
            r = int(residue[atom])
            if part[atom] == SIDE_CHAIN and self.chi(r):
                found.append(Mover(("chi", r),
                                   lambda r=r: propose_side_chain(scene, self.chi(r), self.rotors(r)), atom))
        for atom in (a, b):
            if part[atom] in (DNA_BACKBONE, SUGAR):
                for link in self.links(atom):
                    found.append(Mover(("phi", link), lambda link=link: propose_link(scene, *link), atom))
        near = tuple([k for k in (r - 1, r, r + 1) if self.same_molecule(k, r)]
                     for r in (int(residue[a]), int(residue[b])))
        found.append(Mover(("relax", a, b), lambda: propose_relaxation(scene, a, b, near), a))
        tails = [self.tail_of[int(residue[atom])] for atom in (a, b) if int(residue[atom]) in self.tail_of]
        for tail in dict.fromkeys(tails):
            hit = [int(residue[atom]) for atom in (a, b)]
            found.append(self.tail_mover(tail, hit, a))
        return found

    def tail_mover(self, tail: Tail, hit: list[int], atom: int) -> Mover:
        """Grow a tail again so that the given residues come free."""
        side_chain = {r: self.chi(r) for r in tail.residues}
        inside = sorted(r for r in set(hit) if r in tail.residues)
        return Mover(("tail", tail.molecule, tail.outward, *inside),
                     lambda: propose_tail(self.scene, tail, inside, side_chain, self.seed), atom)

    def try_mover(self, mover: Mover, sweep: int) -> bool:
        """Make the move if it improves; a move that failed is tried again only after something near it has moved."""
        scene = self.scene
        since = self.failed.get(mover.key, -1)
        if since >= 0:
            centre = scene.position[mover.centre]
            if all(np.linalg.norm(c - centre) - r > FAR for c, r in scene.commits[since:]):
                return False
        proposal = mover.propose()
        if proposal is None:
            self.failed[mover.key] = len(scene.commits)
            return False
        self.commit(proposal, sweep)
        return True

    def commit(self, proposal: Proposal, sweep: int) -> None:
        """Move the atoms and write it down."""
        scene = self.scene
        scene.commit(proposal.moved, proposal.position)
        self.move_count[proposal.moved] += 1
        if proposal.kind in ("phi", "relax"):
            self.adjusted[proposal.moved] = True
        residues = scene.atoms.residue[proposal.moved]
        label = scene.atoms.residue_label
        detail = dict(proposal.detail)
        if "from_residue" in detail:
            detail["from_residue"] = label[detail["from_residue"]]
        self.moves.append({
            "sweep": sweep, "kind": proposal.kind, "first_residue": label[residues.min()],
            "last_residue": label[residues.max()], "atoms": len(proposal.moved),
            "fatal": [proposal.before.fatal, proposal.after.fatal],
            "severe": [proposal.before.severe, proposal.after.severe], **detail})

    def tails_in_trouble(self, pairs: np.ndarray) -> list[tuple[Tail, list[int]]]:
        """Tails whose backbone is hit from outside, or that are hit in many places: threaded through something."""
        atoms = self.scene.atoms
        hits: dict[Tail, list[int]] = {}
        count: dict[Tail, int] = {}
        for a, b in pairs.tolist():
            for own, other in ((a, b), (b, a)):
                tail = self.tail_of.get(int(atoms.residue[own]))
                if tail is None or self.tail_of.get(int(atoms.residue[other])) is tail:
                    continue
                hits.setdefault(tail, []).append(int(atoms.residue[own]))
                count[tail] = count.get(tail, 0) + (TAIL_HITS if atoms.part[own] == PROTEIN_BACKBONE else 1)
        return [(tail, hits[tail]) for tail in self.tails if count.get(tail, 0) >= TAIL_HITS]

    def run(self, progress: Progress | None) -> None:
        """Sweep over the severe pairs until none is left or nothing helps any more."""
        scene = self.scene
        for sweep in range(1, MAX_SWEEPS + 1):
            pairs, distance = scene.triggers(heavy=True)
            self.fatal_history.append(int((distance < scene.threshold).sum()))
            if len(pairs) == 0:
                return
            moved = False
            for tail, hit in self.tails_in_trouble(pairs):
                moved |= self.try_mover(self.tail_mover(tail, hit, int(scene.residue_first[tail.residues[0]])), sweep)
            if moved:
                scene.rebuild()
                pairs, distance = scene.triggers(heavy=True)
            order = np.argsort(distance >= scene.threshold, kind="stable")  # fatal pairs first
            for done, (a, b) in enumerate(pairs[order].tolist()):
                if progress and done % 20 == 0:
                    progress(f"sweep {sweep}", done / len(pairs))
                for mover in self.movers(a, b):
                    if not scene.is_severe(a, b):
                        break
                    moved |= self.try_mover(mover, sweep)
            scene.rebuild()
            if not moved:
                return
        self.fatal_history.append(len(scene.triggers(heavy=False)[0]))

    def run_paper(self, progress: Progress | None) -> None:
        """The source's flow: for each clash one bare rotation that frees it, until no clash is left."""
        scene = self.scene
        for sweep in range(1, MAX_SWEEPS + 1):
            pairs = scene.triggers(heavy=False)[0]
            self.fatal_history.append(len(pairs))
            if len(pairs) == 0:
                return
            moved = False
            for done, (a, b) in enumerate(pairs.tolist()):
                if progress and done % 20 == 0:
                    progress(f"sweep {sweep}", done / len(pairs))
                moved |= self.paper_move(a, b, sweep)
            scene.rebuild()
            if not moved:
                return
        self.fatal_history.append(len(scene.triggers(heavy=False)[0]))

    def paper_move(self, a: int, b: int, sweep: int) -> bool:
        """One clash of the source's flow: phi when it touches the DNA backbone, chi otherwise."""
        scene, part = self.scene, self.scene.atoms.part
        if np.linalg.norm(scene.position[a] - scene.position[b]) >= scene.threshold:
            return False
        backbone = [atom for atom in (a, b) if part[atom] == DNA_BACKBONE]
        if backbone:
            kind = "phi"
            torsions = [link_torsion(scene, *link) for atom in backbone for link in self.links(atom)[:1]]
        else:
            kind = "chi"
            residues = dict.fromkeys(int(scene.atoms.residue[atom]) for atom in (a, b) if part[atom] == SIDE_CHAIN)
            torsions = [chi for residue in residues for chi in self.chi(residue)[:1]]
        steps = np.arange(PAPER_STEP, 180.0 + PAPER_STEP / 2, PAPER_STEP)
        angle = np.concatenate([[0.0], np.stack([steps, -steps], axis=1).ravel()])  # the smallest turn first
        vicinity = np.union1d(scene.around(scene.position[a], VICINITY), scene.around(scene.position[b], VICINITY))
        for torsion in torsions:
            if torsion is None:
                continue
            moved = np.array(torsion.turned)
            full = scene.rotation_surroundings([torsion], moved)
            seen = np.isin(full.around, vicinity)
            seen_only = replace(full, around=full.around[seen], around_position=full.around_position[seen],
                                contact=full.contact[seen], severe=full.severe[seen])
            fatal, severe, energy = scene.rotation_scores([torsion], np.radians(angle)[:, None], seen_only, moved)
            best = int(np.argmin(fatal))
            if fatal[best] < fatal[0]:
                old = scene.position[moved].copy()
                scene.turn(scene.position, torsion, float(np.radians(angle[best])))
                new = scene.position[moved].copy()
                scene.position[moved] = old
                before, after = (Score(int(fatal[k]), int(severe[k]), float(energy[k])) for k in (0, best))
                names = "-".join(str(scene.atoms.name[q]) for q in torsion.quad)
                # A bare phi turn bends the angles at O3' and C5'; it counts among the moves that may.
                self.commit(Proposal(kind, moved, new, before, after, {"torsions": {names: float(angle[best])}}), sweep)
                return True
        return False

    def reason(self, a: int, b: int) -> str:
        """Why a pair could not be solved."""
        parts = {int(p) for p in self.scene.atoms.part[[a, b]]}
        tails = any(int(self.scene.atoms.residue[atom]) in self.tail_of for atom in (a, b))
        if SIDE_CHAIN in parts:
            return "no rotamer and no re-adjustment of the neighbourhood frees this side chain"
        if tails:
            return "the tail finds no free path from its root"
        if parts <= {DNA_BACKBONE, SUGAR} or (DNA_BACKBONE in parts and PROTEIN_BACKBONE in parts):
            return "the phosphate cannot move aside within 4 sigma of its bonds and angles"
        if parts == {PROTEIN_BACKBONE}:
            return "two ordered protein backbones overlap: the nucleosome cores are too close, change the scaffold"
        return "bases are kept in place: the DNA paths cross, change the scaffold"


def correct_clashes(solute: Solute, mode: str = "default", threshold: float = 0.9, seed: int = 1, threads: int = 1,
                    progress: Progress | None = None) -> tuple[Solute, ClashReport]:
    """A new Solute without clashes, and the report of what was found, moved and left.

    ``mode`` is ``default`` or ``paper``; ``threshold`` (angstrom) defines a fatal pair; ``progress`` is called with a
    phase and a fraction. The result depends on solute, mode, threshold and seed only, not on ``threads``.
    Raises BadInputError for an unknown mode, a threshold outside (0, 2] or coordinates that are not numbers.
    """
    if mode not in ("default", "paper"):
        raise BadInputError(f"clash mode {mode!r} is unknown: use default or paper")
    if not 0 < threshold <= reference.SEVERE_HEAVY:
        raise BadInputError(f"clash threshold {threshold} must be above 0 and at most {reference.SEVERE_HEAVY} A")
    if not np.isfinite(solute.position).all():
        raise BadInputError("the solute holds coordinates that are not numbers: run chromabuild build again")
    atoms = Atoms.from_solute(solute)
    before = findings(atoms, threshold, threads)
    corrector = Corrector(solute, atoms, threshold, seed, threads)
    (corrector.run if mode == "default" else corrector.run_paper)(progress)

    position = corrector.scene.position.astype(np.float32)
    corrected = replace(solute, position=position,
                        provenance={**solute.provenance, "clash": {"mode": mode, "threshold": threshold, "seed": seed}})
    moved_atoms = replace(atoms, position=position)
    pairs, distance = corrector.scene.triggers(heavy=mode == "default")
    order = np.lexsort((pairs[:, 1], pairs[:, 0], distance))
    unresolved = [{"atom_a": atoms.identity(a), "atom_b": atoms.identity(b), "distance": round(float(d), 4),
                   "class": atoms.pair_class(a, b), "fatal": bool(d < threshold), "reason": corrector.reason(a, b)}
                  for (a, b), d in zip(pairs[order].tolist(), distance[order], strict=True)]
    report = ClashReport({
        "format": FORMAT, "version": VERSION, "threshold": threshold, "mode": mode, "seed": seed, "before": before,
        "after": findings(moved_atoms, threshold, threads), "moves": corrector.moves, "unresolved": unresolved,
        "invariants": invariants(corrector, atoms, moved_atoms, mode)})
    return corrected, report


def invariants(corrector: Corrector, before: Atoms, after: Atoms, mode: str) -> dict:
    """What a correction must keep, measured: name -> {holds, value, limit}."""
    old, new = (np.asarray(a.position, dtype=np.float64) for a in (before, after))
    touched = corrector.move_count > 0
    # Bonds that only rigid turns have touched change by the rounding of their ends to float32 at each move.
    a, b = before.graph.bonds.T
    bent = corrector.adjusted
    rigid = (touched[a] | touched[b]) & ~bent[a] & ~bent[b]
    moves = int(corrector.move_count.max()) + 1
    rounding = float(np.sqrt(3) * np.spacing(np.abs(before.position).astype(np.float32).max()) * moves)

    def lengths(position: np.ndarray) -> np.ndarray:
        return np.linalg.norm(position[a[rigid]] - position[b[rigid]], axis=1)

    bond_change = float(np.abs(lengths(new) - lengths(old)).max(initial=0.0))
    place = NamePlaces(before)
    centres = stereocentres(before, place)

    def volume(position: np.ndarray) -> np.ndarray:
        u, v, w = (position[centres[:, k]] - position[centres[:, 0]] for k in (1, 2, 3))
        return (np.cross(u, v) * w).sum(axis=1)

    flipped = int((volume(old) * volume(new) <= 0).sum())
    c, n = place.peptide_bonds.T
    quads = np.stack([place("CA")[before.residue[c]], c, n, place("CA")[before.residue[n]]], axis=1)
    quads = quads[(quads >= 0).all(axis=1) & ~bent[quads].any(axis=1)]
    turn = reference.dihedrals(new, quads) - reference.dihedrals(old, quads)
    omega = float(np.abs((turn + 180.0) % 360.0 - 180.0).max(initial=0.0))
    omega_limit = float(np.degrees(4 * rounding / 1.3)) + 1e-6
    history = corrector.fatal_history
    rises = max((after_ - before_ for before_, after_ in zip(history, history[1:], strict=False)), default=0)
    pierced_before = {(p.ring, p.bond) for p in ring_piercings(before)}
    pierced_new = len({(p.ring, p.bond) for p in ring_piercings(after)} - pierced_before)
    worst_z = worst_backbone_z(corrector, old, new)
    checks = {
        "untouched_atoms_unchanged": (int((before.position[~touched] != after.position[~touched]).sum()), 0),
        "bond_change_of_rigid_turns": (bond_change, max(rounding, 1e-6)),
        "backbone_z_of_phi_moves": (worst_z, reference.MAX_Z),
        "chirality_flips": (flipped, 0),
        "omega_change_of_rigid_turns": (omega, omega_limit),
        "rise_of_fatal_pairs": (max(rises, 0), 0),
        "new_ring_piercings": (pierced_new, 0),
    }
    return {name: {"holds": bool(value <= limit), "value": value, "limit": limit}
            for name, (value, limit) in checks.items()}


def worst_backbone_z(corrector: Corrector, old: np.ndarray, new: np.ndarray) -> float:
    """Largest |z| of a DNA backbone bond or angle among those that phi moves touched and that did not start worse."""
    group = np.flatnonzero(corrector.adjusted)
    nucleic = np.isin(corrector.scene.atoms.part, (DNA_BACKBONE, SUGAR))
    moved_by_phi = corrector.move_count > 0
    group = group[nucleic[group] & moved_by_phi[group]]
    if len(group) == 0:
        return 0.0
    scene = corrector.scene
    topology = local_topology(scene, group)

    def z(position: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(position[topology.bonds[:, 0]] - position[topology.bonds[:, 1]], axis=1)
        return np.abs(np.concatenate([
            (length - topology.bond_reference) / topology.bond_deviation,
            (reference.angles(position, topology.triples) - topology.angle_reference) / topology.angle_deviation]))

    before, after = z(old), z(new)
    return float(after[after > before].max(initial=0.0))
