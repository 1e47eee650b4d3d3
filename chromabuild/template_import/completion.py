"""Every residue of the octamer: what a structure lacks comes from the model of the nearest known histone.

Where the two meet, a loop is closed anew.
"""

from dataclasses import dataclass

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.histone_tails import TAILS
from chromabuild.nucleosome.homology import (
    Residue,
    build_end,
    build_side_chains,
    octamer_of,
    rebuild_loop,
    renamed,
)
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.template_import.structure import ObservedChain

PEPTIDE_BOND = 2.0  # angstrom, C to N: farther apart, residues are missing between them
SEAM_CANDIDATES = 200
SEAM = 2  # residues of the completed end, counted from the observed one, around which the chain is closed


@dataclass
class Thread:
    """A chain on its way to be complete."""

    residues: list[Residue | None]
    """None where a loop is to be built."""
    letters: str
    numbers: list[int]
    joints: list[tuple[str, int]]
    """Places to close: (``start``, first observed index), (``end``, last observed index), (``loop``, index before)."""


def threads_of(observed: list[ObservedChain], compact: bool) -> tuple[list[Thread], list[dict]]:
    """Every chain with every residue of the known histones, still to be joined, and a report by chain.

    ``compact``: tails lie on the particle as those of the models do, whatever the structure shows.
    """
    threads, reports = [], []
    for place, chain in enumerate(observed):
        thread, report = _threaded(chain, chain.known.copies[place // 4], compact)
        threads.append(thread)
        reports.append({"chain": chain.label, "becomes": "ABCDEFGH"[place]} | report)
    return threads, reports


def completed(observed: list[ObservedChain], threads: list[Thread], dna: np.ndarray, polar: np.ndarray) -> Octamer:
    """The octamer: chains joined, loops and side chains built."""
    for k, thread in enumerate(threads):
        random = np.random.Generator(np.random.Philox(key=np.array([k, 0], dtype=np.uint64)))
        others = [x for other in threads if other is not thread for r in other.residues if r is not None
                  for x in r.atoms.values()]
        try:
            _close(thread, np.concatenate([dna, others]), random)
        except BadInputError as error:
            raise BadInputError(f"chain {observed[k].label}: {error}") from None
    chains = [thread.residues for thread in threads]
    build_side_chains(chains, dna, polar)
    return octamer_of(chains, tuple("ABCDEFGH"), tuple(chain.known.name for chain in observed))


def _threaded(chain: ObservedChain, model: list[Residue], compact: bool
              ) -> tuple[Thread, dict]:
    """Residues of the structure and, at the ends, of the model; and what was done."""
    seen = [(i, j) for i, j in chain.pairs if i is not None and j is not None]
    tails = TAILS[chain.known.name]
    fold = [n for n, (_, j) in enumerate(seen) if not any(a <= model[j].number <= b for a, b in tails)]
    start, end = fold[0], fold[-1]
    if not compact:  # a tail is followed as far as it is there without a break
        while start > 0 and _joined(chain.residues[seen[start - 1][0]], chain.residues[seen[start][0]]):
            start -= 1
        while end < len(seen) - 1 and _joined(chain.residues[seen[end][0]], chain.residues[seen[end + 1][0]]):
            end += 1
    (first_i, first), (last_i, last) = seen[start], seen[end]
    placed: list[Residue | None] = []
    source: list[str] = []  # of each residue: observed, model, or missing
    letters: list[str] = []
    numbers: list[int] = []
    previous, deletions = first_i, 0
    for i, j in chain.pairs:
        if j is None and not first_i < i < last_i:
            continue
        number = max(model[j].number if j is not None else 0, numbers[-1] + 1 if numbers else -9999)
        if j is not None and not first <= j <= last:
            letter = chain.residues[i].letter if i is not None else model[j].letter
            placed.append(renamed(model[j], letter, number))
            source.append("model")
        elif i is None:
            if _joined(chain.residues[previous], chain.residues[previous + 1]):
                deletions += 1
                continue
            letter = model[j].letter
            placed.append(None)
            source.append("missing")
        else:
            residue, letter = chain.residues[i], chain.residues[i].letter
            same_histidine = letter == "H" and j is not None and model[j].letter == "H"
            placed.append(Residue(model[j].name if same_histidine else residue.name, number, dict(residue.atoms),
                                  residue.replaced, residue.replaced_name))
            source.append("observed")
            previous = i
        letters.append(letter)
        numbers.append(number)
    joints = [("start", k) for k in range(1, len(source)) if source[k - 1:k + 1] == ["model", "observed"]]
    joints += [("end", k) for k in range(len(source) - 1) if source[k:k + 2] == ["observed", "model"]]
    joints += [("loop", k) for k in range(len(source) - 1) if source[k:k + 2] == ["observed", "missing"]]
    missing = [numbers[k] for k, what in enumerate(source) if what != "observed"]
    return Thread(placed, "".join(letters), numbers, joints), {
        "histone": f"{chain.known.species} {chain.known.name}", "residues": len(placed),
        "observed": source.count("observed"), "completed": _ranges(missing), "deletions": deletions,
        "side_chains_completed": sum(r is not None and r.replaced is not None and what == "observed"
                                     for r, what in zip(placed, source, strict=True))}


def _joined(residue: Residue, following: Residue) -> bool:
    """Whether two observed residues are bonded neighbours."""
    near = np.linalg.norm(following.atoms["N"] - residue.atoms["C"]) < PEPTIDE_BOND
    return bool(near and following.number == residue.number + 1)


def _ranges(numbers: list[int]) -> str:
    """``1-37, 134`` for people."""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in zip(starts, ends, strict=True))


def _close(thread: Thread, others: np.ndarray, random: np.random.Generator) -> None:
    """Join what was taken from the model with what was observed, and build loops that were not."""
    model, letters = thread.residues, thread.letters
    for kind, k in thread.joints:
        if kind == "loop":
            after = next(i for i in range(k + 1, len(model)) if model[i] is not None)
            rebuild_loop(model, letters, 0, k, after, others, random, reach=1)
            continue
        centre = k - SEAM if kind == "start" else k + SEAM
        try:
            rebuild_loop(model, letters, 0, centre, centre, others, random, SEAM, SEAM_CANDIDATES)
        except BadInputError:  # too few residues for a loop: the end is grown from the observed residue instead
            forward = kind == "end"
            for i in range(k + 1, len(model)) if forward else range(k):
                model[i] = None
            build_end(model, letters, 0, k, forward, others, random)
    for residue, number in zip(model, thread.numbers, strict=True):
        residue.number = number
