"""Correction of steric clashes by turning side chains, phosphates and histone tails.

``paper`` mode does what the source did (Wiley J. Comput. Chem. 2019, Figure 2): a clash that touches the DNA backbone
turns the phosphate group about O3'-C5', any other turns a side chain about chi, and a trial looks at the atoms within
6 A of the clash. ``default`` mode aims further (nothing severe, not only nothing fatal) and tries, from the cheapest to
the most invasive: hydrogens of a rotor, the side chain, the phosphate with re-closure, all of these around the clash
together, a small re-adjustment of a few residues, the histone tail. A move is accepted only when it lowers
(fatal pairs, severe pairs).

Each round finds the severe pairs, groups those within 6 A of each other into clusters and solves every cluster against
the same state of the structure; so clusters are independent tasks for any number of processes. Their moves are then
made in the order of their lowest atoms: one that an earlier move has come near to is counted again where things stand
now, and dropped when it no longer helps; its cluster comes again in the next round. So the result depends neither on
the number of processes nor on what lies far away. Positions are rounded to float32 whenever a move is accepted, so that
a second run starts exactly where the first one ended.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.base.forks import can_fork, map_in_forks
from chromabuild.clash.backbone import (
    SUGAR_AND_C1,
    geometry_change,
    link_torsion,
    propose_link,
    propose_relaxation,
)
from chromabuild.clash.invariants import Course, invariants
from chromabuild.clash.joint import propose_joint
from chromabuild.clash.report import (
    FORMAT,
    VERSION,
    ClashReport,
    findings,
    limited,
    near_contacts,
    neighbourhoods_of,
)
from chromabuild.clash.rigid import REASON, REMEDY, rigid_overlaps
from chromabuild.clash.tails import Growth, Tail, find_tails, propose_tail
from chromabuild.molecule.solute import Solute
from chromabuild.sterics import reference
from chromabuild.sterics.atoms import (
    BASE,
    DNA_BACKBONE,
    PROTEIN_BACKBONE,
    SIDE_CHAIN,
    SUGAR,
    Atoms,
)
from chromabuild.sterics.chains import STEP_REACH
from chromabuild.sterics.passages import GIVE, Passages
from chromabuild.sterics.scene import Scene, Score
from chromabuild.sterics.sidechain import Proposal, propose_rotor, propose_side_chain
from chromabuild.sterics.torsions import Torsion, hydrogen_rotors, side_chain_torsions

MAX_SWEEPS = 20
VICINITY = 6.0  # angstrom, of the source
PAPER_STEP = 5.0  # degree
FAR = 30.0  # angstrom: a move this far away cannot change what another one finds
REDRAWS = 4  # rounds in which tails that have failed are drawn again
CROWD = 400  # severe pairs of one cluster: whole molecules lie in each other, and only turns are tried
FEW = 8  # tasks that are not worth starting processes for
TAIL_HITS = 4  # severe pairs that send a tail to be grown again before anything else is tried

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Task:
    """What one process solves at a time."""

    key: tuple
    """Equal keys are the same task."""
    pairs: tuple[tuple[int, int], ...]
    """Severe pairs of a cluster, fatal ones first; none for a tail."""
    tail: Tail | None = None
    hit: tuple[int, ...] = ()
    """Residues of the tail that are hit."""
    number: int = 1
    """Round: tails draw anew in each."""


@dataclass(frozen=True)
class Mover:
    """Something that can be tried against a clash; equal keys are the same trial."""

    key: tuple
    propose: Callable[[], Proposal | None]


class Corrector:
    """One correction run."""

    def __init__(self, solute: Solute, atoms: Atoms, threshold: float, seed: int, threads: int) -> None:
        """Nothing is moved before ``run``."""
        self.solute = solute
        self.scene = Scene(atoms, threshold, threads)
        self.passages = Passages(self.scene)
        self.seed = seed
        self.moves: list[dict] = []
        self.move_count = np.zeros(atoms.n_atoms, dtype=np.int32)
        self.adjusted = np.zeros(atoms.n_atoms, dtype=bool)
        self.turn_change = np.zeros(2)
        """Largest change of a bond (angstrom) and an angle (degree) by a turn, before it is rounded to float32."""
        self.failed: dict[tuple, int] = {}
        self.commit_centre: list[np.ndarray] = []
        self.commit_radius: list[float] = []
        self.fatal_history: list[int] = []
        self.first = (np.zeros((0, 2), dtype=np.int32), np.zeros(0))
        """Pairs to be solved, and their distances."""
        self.left = self.first
        """Pairs that could not be solved, and their distances."""
        self.tails = find_tails(self.scene, solute.molecule_name, solute.molecule_first_residue, solute.residue_number,
                                solute.links)
        self.tail_of = {residue: tail for tail in self.tails for residue in tail.residues}
        self.growths: dict[Tail, Growth] = {}
        self.molecule = np.repeat(np.arange(len(solute.molecule_name)), np.diff(solute.molecule_first_residue))

    def chi(self, residue: int) -> list[Torsion]:
        """Side-chain torsions of a residue, by global atoms."""
        return side_chain_torsions(self.solute, residue)

    def rotors(self, residue: int) -> list[Torsion]:
        """Hydrogen rotors of a residue, by global atoms."""
        return hydrogen_rotors(self.solute, residue)

    def same_molecule(self, a: int, b: int) -> bool:
        """Whether both residue numbers exist and belong to one molecule."""
        return 0 <= a < len(self.molecule) and 0 <= b < len(self.molecule) and self.molecule[a] == self.molecule[b]

    def consecutive_nucleotides(self, a: int, b: int) -> bool:
        """Whether two atoms belong to neighbours in one DNA strand."""
        residue, part = self.scene.atoms.residue, self.scene.atoms.part
        left, right = sorted((int(residue[a]), int(residue[b])))
        return right - left == 1 and self.same_molecule(left, right) and bool(
            np.isin(part[[a, b]], (DNA_BACKBONE, SUGAR, BASE)).all())

    def links(self, atom: int) -> list[tuple[int, int]]:
        """Phosphate links whose turning may help an atom of a nucleotide, the nearer one first."""
        residue = int(self.scene.atoms.residue[atom])
        before, after = (residue - 1, residue), (residue, residue + 1)
        three_prime = self.scene.atoms.name_of(atom) in ("C3'", "O3'", "H3'", "C2'", "H2'", "H2''")
        ordered = [after, before] if three_prime else [before, after]
        return [link for link in ordered if self.same_molecule(*link)]

    def movers(self, a: int, b: int, task: Task) -> list[Mover]:
        """What can be tried against a pair of a task, cheapest first; in a hopeless crowd only turns."""
        scene, part, residue = self.scene, self.scene.atoms.part, self.scene.atoms.residue
        found = []
        for atom in (a, b):
            for rotor in self.rotors(int(residue[atom])):
                if atom in rotor.turned:
                    found.append(Mover(("rotor", rotor.turned[0]),
                                       lambda rotor=rotor: propose_rotor(scene, rotor)))
        for atom in (a, b):
            r = int(residue[atom])
            if part[atom] == SIDE_CHAIN and self.chi(r):
                found.append(Mover(("chi", r),
                                   lambda r=r: propose_side_chain(scene, self.chi(r), self.rotors(r))))
        for atom in (a, b):
            if part[atom] in (DNA_BACKBONE, SUGAR):
                for link in self.links(atom):
                    found.append(Mover(("phi", link), lambda link=link: propose_link(scene, *link)))
        near = tuple([k for k in (r - 1, r, r + 1) if self.same_molecule(k, r)]
                     for r in (int(residue[a]), int(residue[b])))
        if len(task.pairs) > CROWD:
            return found
        found.append(Mover(("joint", a, b), lambda: self.propose_joint(a, b)))
        found.append(Mover(("relax", a, b), lambda: propose_relaxation(scene, a, b, near)))
        if np.isin(part[[a, b]], (DNA_BACKBONE, SUGAR, BASE)).any():
            found.append(Mover(("relax with C1'", a, b),
                               lambda: propose_relaxation(scene, a, b, near, SUGAR_AND_C1)))
        tails = [self.tail_of[int(residue[atom])] for atom in (a, b) if int(residue[atom]) in self.tail_of]
        for tail in dict.fromkeys(tails):
            hit = [int(residue[atom]) for atom in (a, b)]
            found.append(self.tail_mover(tail, hit, task.number))
        return found

    def tail_mover(self, tail: Tail, hit: list[int], number: int) -> Mover:
        """Grow a tail again so that the given residues come free."""
        if tail not in self.growths:
            self.growths[tail] = Growth(self.scene, tail, self.chi)
        growth = self.growths[tail]
        inside = sorted(r for r in set(hit) if r in tail.residues)
        return Mover(("tail", tail.molecule, tail.outward, *inside),
                     lambda: propose_tail(self.passages, growth, inside, self.seed, number))

    def propose_joint(self, a: int, b: int) -> Proposal | None:
        """Side chains and phosphates around a pair, together."""
        scene = self.scene
        middle = (scene.position[a] + scene.position[b]) / 2
        near = scene.around(middle, VICINITY)
        near = near[np.argsort(((scene.position[near] - middle) ** 2).sum(axis=1), kind="stable")]
        near = np.concatenate([[a, b], near])
        residues = dict.fromkeys(scene.atoms.residue[near[scene.atoms.part[near] == SIDE_CHAIN]].tolist())
        chi = [(self.chi(r), self.rotors(r)) for r in residues if self.chi(r)]
        links = dict.fromkeys(link for atom in (a, b) if scene.atoms.part[atom] in (DNA_BACKBONE, SUGAR)
                              for link in self.links(atom)[:1])
        return propose_joint(scene, chi, list(links))

    def solve(self, task: Task) -> list[tuple[Proposal, np.ndarray]]:
        """The moves that solve a task, in order, each with the positions it starts from; nothing is moved yet."""
        scene, found = self.scene, []
        tried: dict[tuple, int] = {}

        def attempt(mover: Mover) -> None:
            # What failed is tried again only after something else has moved.
            if tried.get(mover.key) == len(found):
                return
            proposal = mover.propose()
            # A tail has been looked at where it was chosen.
            if proposal is None or (proposal.kind != "tail"
                                    and self.passages.opened(proposal.moved, proposal.position)):
                tried[mover.key] = len(found)
                return
            found.append((proposal, scene.position[proposal.moved]))
            scene.commit(proposal.moved, proposal.position)

        with scene.trial():
            if task.tail is not None:
                attempt(self.tail_mover(task.tail, list(task.hit), task.number))
            for a, b in task.pairs:
                for mover in self.movers(a, b, task):
                    if not scene.is_severe(a, b):
                        break
                    attempt(mover)
        return found

    def solve_all(self, tasks: list[Task], progress: Callable[[float], None]) -> Iterator[list]:
        """``solve`` of every task against the present state, in order, by as many processes as the scene has threads;
        the state may be changed while results still come."""
        def solve_alone(task: Task) -> list[tuple[Proposal, np.ndarray]]:
            self.scene.threads = 1
            return self.solve(task)

        if self.scene.threads == 1 or len(tasks) < FEW or not can_fork():
            found = []
            for k, task in enumerate(tasks):
                progress(k / len(tasks))
                found.append(self.solve(task))
            yield from found
            return
        for k, moves in enumerate(map_in_forks(solve_alone, tasks, self.scene.threads)):
            progress(k / len(tasks))
            yield moves

    def clusters(self, pairs: np.ndarray, distance: np.ndarray) -> list[Task]:
        """Severe pairs within 6 angstrom of each other, as tasks in the order of their lowest atoms."""
        if len(pairs) == 0:
            return []
        order = np.argsort(distance >= self.scene.threshold, kind="stable")  # fatal pairs first
        pairs = pairs[order]
        near = cKDTree(self.scene.position[pairs.ravel()]).query_pairs(VICINITY, output_type="ndarray") // 2
        label = connected_components(coo_array((np.ones(len(near), dtype=np.int8), tuple(near.T)),
                                               shape=(len(pairs), len(pairs))), directed=False)[1]
        members: dict[int, list[tuple[int, int]]] = {}
        for k, pair in zip(label.tolist(), pairs.tolist(), strict=True):
            members.setdefault(k, []).append(tuple(pair))
        tasks = sorted(members.values(), key=min)
        return [Task(("cluster", *sorted(task)), tuple(task)) for task in tasks]

    def round(self, tasks: list[Task], number: int, progress: Progress | None) -> np.ndarray:
        """Solve all tasks against the present state, then make their moves in order; returns the moved atoms."""
        tasks = [replace(task, number=number) for task in tasks if self.worth_trying(task, number)]
        made: list[np.ndarray] = []
        first = len(self.commit_centre)
        spheres, owner = np.empty((64, 4)), np.empty(64, dtype=np.int64)
        results = self.solve_all(tasks, lambda share: progress and progress(f"round {number}", share))
        for k, (task, moves) in enumerate(zip(tasks, results, strict=True)):
            if not moves:
                self.failed[task.key] = first
            for proposal, start in moves:
                count = len(made)
                others = spheres[:count][owner[:count] != k]
                if not self.still_good(proposal, start, others) or self.opened_together(proposal, others):
                    break
                self.commit(proposal, number)
                if count == len(owner):
                    spheres, owner = np.resize(spheres, (2 * count, 4)), np.resize(owner, 2 * count)
                spheres[count, :3], spheres[count, 3] = self.commit_centre[-1], self.commit_radius[-1]
                owner[count] = k
                made.append(proposal.moved)
        return np.unique(np.concatenate(made)) if made else np.zeros(0, dtype=np.int64)

    def worth_trying(self, task: Task, number: int) -> bool:
        """Whether a task is new, draws anew, or something near it has moved since it failed."""
        since = self.failed.get(task.key)
        draws = task.tail is not None or any(int(self.scene.atoms.residue[a]) in self.tail_of
                                             for pair in task.pairs for a in pair)
        if since is None or (draws and number <= REDRAWS):
            return True
        if since == len(self.commit_centre):
            return False
        atoms = [a for pair in task.pairs for a in pair] or \
            [int(self.scene.residue_first[r]) for r in task.tail.residues]
        gap = np.linalg.norm(np.array(self.commit_centre[since:])[:, None] - self.scene.position[atoms], axis=2)
        return bool((gap - np.array(self.commit_radius[since:])[:, None] < FAR).any())

    def still_good(self, proposal: Proposal, start: np.ndarray, others: np.ndarray) -> bool:
        """Whether a move still helps after the moves of other tasks in this round, each in a sphere (x, y, z, r)."""
        scene = self.scene
        centre, radius = sphere_of(start, proposal.position)
        gap = np.linalg.norm(others[:, :3] - centre, axis=1)
        if (gap - others[:, 3] - radius > reference.LARGEST_CONTACT).all():
            return True
        if not np.array_equal(scene.position[proposal.moved], start):
            return False
        before = scene.count_severe(proposal.moved)
        with scene.trial():
            scene.commit(proposal.moved, proposal.position)
            after = scene.count_severe(proposal.moved)
        return after.better_than(before)

    def opened_together(self, proposal: Proposal, others: np.ndarray) -> bool:
        """Whether a move, with those of other tasks near it, puts a bond through a ring or between strands."""
        centre, radius = sphere_of(self.scene.position[proposal.moved], proposal.position)
        gap = np.linalg.norm(others[:, :3] - centre, axis=1) - others[:, 3] - radius
        return bool((gap < STEP_REACH + GIVE).any()) and self.passages.opened(proposal.moved, proposal.position)

    def commit(self, proposal: Proposal, sweep: int) -> None:
        """Move the atoms and write it down."""
        scene = self.scene
        centre, radius = sphere_of(scene.position[proposal.moved], proposal.position)
        self.commit_centre.append(centre)
        self.commit_radius.append(radius)
        if proposal.kind in ("phi", "relax") or "phi_start" in proposal.detail:
            self.adjusted[proposal.moved] = True
        else:
            change = geometry_change(scene, proposal.moved, proposal.position)
            self.turn_change = np.maximum(self.turn_change, change)
        scene.commit(proposal.moved, proposal.position)
        self.move_count[proposal.moved] += 1
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

    def tails_in_trouble(self, pairs: np.ndarray) -> list[Task]:
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
        return [Task(("tail", tail.molecule, tail.outward, *sorted(set(hits[tail]))), (), tail, tuple(hits[tail]))
                for tail in self.tails if count.get(tail, 0) >= TAIL_HITS]

    def run(self, progress: Progress | None) -> None:
        """Rounds of tails, then of clusters, until nothing is severe or nothing helps any more."""
        scene = self.scene
        self.passages.find_steps()
        pairs, distance = self.first
        for number in range(1, MAX_SWEEPS + 1):
            self.left = pairs, distance
            self.fatal_history.append(int((distance < scene.threshold).sum()))
            if len(pairs) == 0:
                return
            moved_any = False
            for tails in (True, False):
                tasks = self.tails_in_trouble(pairs) if tails else self.clusters(pairs, distance)
                moved = self.round(tasks, number, progress)
                if len(moved):
                    moved_any = True
                    scene.rebuild()
                    pairs, distance = scene.update_severe(pairs, distance, moved)
            if not moved_any and number >= REDRAWS:
                return
        self.left = pairs, distance
        self.fatal_history.append(int((distance < scene.threshold).sum()))

    def run_paper(self, progress: Progress | None) -> None:
        """The source's flow: for each clash one bare rotation that frees it, until no clash is left."""
        scene = self.scene
        for sweep in range(1, MAX_SWEEPS + 1):
            self.left = scene.fatal_pairs()
            pairs = self.left[0]
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
        self.left = scene.fatal_pairs()
        self.fatal_history.append(len(self.left[0]))

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
                names = "-".join(map(scene.atoms.name_of, torsion.quad))
                # A bare phi turn bends the angles at O3' and C5'; it counts among the moves that may.
                self.commit(Proposal(kind, moved, new, before, after, {"torsions": {names: float(angle[best])}}), sweep)
                return True
        return False

    def reason(self, a: int, b: int) -> str:
        """Why a pair could not be solved."""
        parts = {int(p) for p in self.scene.atoms.part[[a, b]]}
        tails = any(int(self.scene.atoms.residue[atom]) in self.tail_of for atom in (a, b))
        if self.consecutive_nucleotides(a, b):
            return ("neighbours in one strand at a sharply bent step: bases are kept in place, and the sugars find no "
                    "room within 4 sigma of bonds and angles")
        if SIDE_CHAIN in parts:
            return "no rotamer and no re-adjustment of the neighbourhood frees this side chain"
        if tails:
            return "the tail finds no free path from its root"
        if parts <= {DNA_BACKBONE, SUGAR} or (DNA_BACKBONE in parts and PROTEIN_BACKBONE in parts):
            return "the phosphate cannot move aside within 4 sigma of its bonds and angles"
        if parts == {PROTEIN_BACKBONE}:
            return "two ordered protein backbones overlap: the nucleosome cores are too close, change the scaffold"
        return "bases are kept in place: the DNA paths cross, change the scaffold"


def sphere_of(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre and radius of a sphere around (m, 3) positions before and after a move."""
    both = np.concatenate([before, after])
    centre = both.mean(axis=0)
    return centre, float(np.linalg.norm(both - centre, axis=1).max())


def check_settings(mode: str, threshold: float) -> None:
    """Raises BadInputError for a mode or a threshold (angstrom) that there is none of."""
    if mode not in ("default", "paper"):
        raise BadInputError(f"clash mode {mode!r} is unknown: use default or paper")
    if not 0 < threshold <= reference.LARGEST_THRESHOLD:
        raise BadInputError(f"clash threshold {threshold} must be above 0 and at most {reference.LARGEST_THRESHOLD} A")


def correct_clashes(solute: Solute, mode: str = "default", threshold: float = 0.9, seed: int = 1, threads: int = 1,
                    progress: Progress | None = None) -> tuple[Solute, ClashReport]:
    """A new Solute without clashes, and the report of what was found, moved and left.

    ``mode`` is ``default`` or ``paper``; ``threshold`` (angstrom) defines a fatal pair; ``progress`` is called with a
    phase and a fraction. The result depends on solute, mode, threshold and seed only, not on ``threads``.
    Raises BadInputError for an unknown mode, a threshold outside (0, 2] or coordinates that are not numbers.
    """
    check_settings(mode, threshold)
    if not np.isfinite(solute.position).all():
        raise BadInputError("the solute holds coordinates that are not numbers: run chromabuild build again")
    started = time.perf_counter()
    atoms = Atoms.from_solute(solute)
    contacts = near_contacts(atoms, threshold, threads)
    before = findings(atoms, threshold, threads, contacts=contacts)
    corrector = Corrector(solute, atoms, threshold, seed, threads)
    corrector.first = corrector.scene.severe_among(*contacts)
    del contacts
    (corrector.run if mode == "default" else corrector.run_paper)(progress)

    position = corrector.scene.close()
    corrected = replace(solute, position=position,
                        provenance={**solute.provenance, "clash": {"mode": mode, "threshold": threshold, "seed": seed}})
    moved_atoms = atoms.at(position)
    after = findings(moved_atoms, threshold, threads, corrector.reason)
    pairs, distance = corrector.left
    order = np.lexsort((pairs[:, 1], pairs[:, 0], distance))
    pairs, distance = pairs[order], distance[order]
    overlaps = rigid_overlaps(atoms, corrector.molecule, set(corrector.tail_of), *corrector.first,
                              position[pairs].astype(np.float64).mean(axis=1))
    rigid = np.zeros(len(pairs), dtype=bool)
    for overlap in overlaps:
        rigid[overlap.left] = True
    unresolved = [{"atom_a": atoms.identity(a), "atom_b": atoms.identity(b), "distance": round(float(d), 4),
                   "class": atoms.pair_class(a, b), "fatal": bool(d < threshold),
                   "reason": REASON if at_rigid else corrector.reason(a, b)}
                  for (a, b), d, at_rigid in zip(pairs.tolist(), distance, rigid.tolist(), strict=True)]
    fatal = distance < threshold
    solved = {"fatal_before": before["pairs_below_threshold"]["count"], "fatal_after": int(fatal.sum()),
              "fatal_at_overlapping_cores": int((fatal & rigid).sum())}
    cores = [{"atom_a": atoms.identity(o.pair[0]), "atom_b": atoms.identity(o.pair[1]),
              "distance": round(o.distance, 4), "rigid_pairs": o.rigid_pairs, "pairs": len(o.left),
              "fatal": int(fatal[o.left].sum()), "reason": REASON, "remedy": REMEDY} for o in overlaps]
    course = Course(corrector.move_count, corrector.adjusted, corrector.turn_change, corrector.fatal_history)
    kept = invariants(course, corrector.passages.place, atoms, moved_atoms, (before, after))
    report = ClashReport({
        "format": FORMAT, "version": VERSION, "threshold": threshold, "mode": mode, "seed": seed, "before": before,
        "after": after, "moves": corrector.moves, "solved": solved, "overlapping_cores": limited(cores),
        "unresolved": unresolved, "invariants": kept},
        neighbourhoods_of(before, atoms, moved_atoms), {"seconds": time.perf_counter() - started})
    return corrected, report
