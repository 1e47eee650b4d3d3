"""Any nucleosome structure becomes a template: its octamer completed, the frames of its DNA, in the own frame.

Chains are told by alignment with the known histones; the fold is superposed on 1KX5, so that the own frame, the dyad
and both halves are where scaffolds expect them. Residues that the structure lacks come from the model of the nearest
known histone, joined by a loop that is closed anew.
"""

import re
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import gemmi
import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices
from Bio.PDB import PDBList

from chromabuild.analysis.duplex import Duplex, duplexes_of, first_model
from chromabuild.base.errors import BadInputError
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.clash import correct_clashes
from chromabuild.clash.tails import TAILS
from chromabuild.dna.helix import DYAD, crystal_path
from chromabuild.dna.steps import FLIP
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.homology import (
    BACKBONE,
    Residue,
    build_end,
    build_side_chains,
    chains_of,
    histone_table,
    octamer_of,
    rebuild_loop,
    renamed,
)
from chromabuild.nucleosome.octamer import FAMILIES, Octamer, octamer
from chromabuild.nucleosome.peptide import plain_name, superposition, three_letters
from chromabuild.nucleosome.recipe import heavy_atoms, stored_histone
from chromabuild.nucleosome.template_file import NucleosomeTemplate

SHORTEST_CHAIN = 40  # residues with a complete backbone
LEAST_IDENTITY = 0.4  # of the aligned residues; unrelated histones share a quarter
LARGEST_DEVIATION = 3.0  # angstrom rms of CA atoms of the fold
LARGEST_PATH_DEVIATION = 6.0  # angstrom rms of base-pair origins around the dyad
SAME_ORDER = 0.3  # angstrom by which the chains in the order of the file may fit worse than the other way round
COMPARED_HALF = 40  # base pairs on either side of the dyad that find it
LEAST_HALF = 50  # base pairs that must be there on either side
BRIDGED = 3  # consecutive base pairs of poor geometry that do not end a duplex
PEPTIDE_BOND = 2.0  # angstrom, C to N: farther apart, residues are missing between them
SEAM_CANDIDATES = 200
SEAM = 2  # residues of the completed end, counted from the observed one, around which the chain is closed


@dataclass(frozen=True)
class KnownHistone:
    """A histone whose model lies in the own frame, tails compact."""

    species: str
    name: str
    family: str
    sequence: str
    copies: tuple[list[Residue], list[Residue]]


@dataclass
class ObservedChain:
    """A histone of the structure."""

    label: str
    residues: list[Residue]
    """Those with a complete backbone; their numbers are those of the file."""
    known: KnownHistone
    pairs: list[tuple[int | None, int | None]]
    """(observed index, index in ``known``) along the alignment, None for a gap."""


@dataclass
class Thread:
    """A chain on its way to be complete."""

    residues: list[Residue | None]
    """None where a loop is to be built."""
    letters: str
    numbers: list[int]
    joints: list[tuple[str, int]]
    """Places to close: (``start``, first observed index), (``end``, last observed index), (``loop``, index before)."""


@cache
def known_histones() -> tuple[KnownHistone, ...]:
    """The histones of 1KX5 and of the tables, in that order."""
    chains, found = chains_of(octamer("compact")), []

    def add(species: str, name: str, family: str, copies: tuple[list[Residue], list[Residue]]) -> None:
        found.append(KnownHistone(species, name, family, "".join(r.letter for r in copies[0]), copies))

    for k, family in enumerate(FAMILIES[:4]):
        add("xenopus", family, family, (chains[k], chains[k + 4]))
    for species, table in histone_table().items():
        for name, entry in table.items():
            add(species, name, entry["family"], tuple(stored_histone(species, name).copies))
    return tuple(found)


def template_from_structure(path: str | Path, chains: list[str] | None = None) -> NucleosomeTemplate:
    """The template of a PDB or mmCIF file (plain or gz) with one nucleosome.

    Args:
        path: the file; its first model counts.
        chains: the chains to look at, where the file holds more than one nucleosome.

    Raises BadInputError when the file cannot be read, or holds no nucleosome, or more than one.
    """
    model = read_model(path, chains)
    observed = octamer_chains(path, model)
    matrix, shift, deviation, order = own_frame(path, observed)
    observed = [observed[k] for k in order]
    for chain in observed:
        for residue in chain.residues:
            residue.atoms = {a: matrix @ x + shift for a, x in residue.atoms.items()}
    origin, frame, dna_report = _dna_path(path, model, matrix, shift)
    position, kinds, _ = build_dna(np.arange(len(origin)) % 4, origin, frame)
    library = list(residue_library().values())
    element = np.concatenate([library[kind].elements for kind in kinds])
    dna, polar = position[element != "H"], np.isin(element[element != "H"], ("N", "O"))
    octamers, contacts, chain_report = {}, {}, None
    for tails in ("compact", "crystal"):
        threads, now = _threads(observed, tails == "compact")
        if now == chain_report:  # no tail is there: both are the same
            octamers[tails], contacts[tails] = octamers["compact"], contacts["compact"]
            break
        octamers[tails], contacts[tails] = _corrected(_completed(observed, threads, dna, polar), position, kinds)
        chain_report = now
    report = {"source": Path(path).name, "fold_deviation": round(deviation, 3), **dna_report,
              "heavy_pairs_below_2": contacts, "chains": chain_report}
    return NucleosomeTemplate(origin, frame, octamers, report)


def add_template(path: str | Path, output: str | Path | None = None, chains: list[str] | None = None) -> dict:
    """Write the template of a structure file, by default as NAME.nucleosome.h5 here, and report what was done.

    Raises BadInputError as ``template_from_structure`` does.
    """
    made = template_from_structure(path, chains)
    target = Path(output or f"{Path(path).name.split('.')[0]}.nucleosome.h5")
    made.write(target)
    return {"file": str(target)} | made.report


def fetch_template(entry: str, output: str | Path | None = None, chains: list[str] | None = None) -> dict:
    """The same for an entry of the Protein Data Bank, e.g. ``1KX5``.

    Raises BadInputError for a name that is none, or when the entry cannot be downloaded.
    """
    if not re.fullmatch("[0-9][A-Za-z0-9]{3}", entry):
        raise BadInputError(f"{entry!r} is no name of a PDB entry: give four characters such as 1KX5")
    with TemporaryDirectory() as folder:
        said = StringIO()
        with redirect_stdout(said):  # PDBList prints its errors
            file = PDBList(verbose=False).retrieve_pdb_file(entry, pdir=folder, file_format="mmCif")
        if file is None:
            reason = said.getvalue().strip().rpartition("': ")[2]
            raise BadInputError(f"PDB entry {entry} cannot be downloaded ({reason}): check its name and the network, "
                                "or take the file from elsewhere and use `chromabuild template add`")
        return add_template(file, output or f"{entry.lower()}.nucleosome.h5", chains)


def lines(report: dict) -> list[str]:
    """A report for people."""
    before, after = report["heavy_pairs_below_2"]["compact"]
    found = [f"{report['source']}: fold {report['fold_deviation']:.2f} angstrom, DNA {report['dna_deviation']:.2f} "
             f"angstrom rms from 1KX5",
             f"dyad at base {report['dyad']}; {report['base_pairs']} base pairs, {report['base_pairs_completed']} more "
             "completed as in 1KX5",
             f"close contacts of heavy atoms (below 2 angstrom): {before}, after correction {after}"]
    for chain in report["chains"]:
        done = [f"{chain['residues']} residues, {chain['observed']} of them in the file"]
        done += [f"completed {chain['completed']}"] if chain["completed"] else []
        done += [f"{chain['side_chains_completed']} side chains completed"] if chain["side_chains_completed"] else []
        done += [f"{chain['deletions']} fewer than there"] if chain["deletions"] else []
        found.append(f"chain {chain['chain']}: nearest to {chain['histone']}, {'; '.join(done)}")
    return [*found, f"wrote {report['file']}", f"next: build.template: {report['file']} in locus.yaml"]


def read_model(path: str | Path, chains: list[str] | None = None) -> gemmi.Model:
    """The first model of a PDB or mmCIF file, or some of its chains. Raises BadInputError when it cannot be read."""
    model = first_model(path, "of a nucleosome")
    if chains is None:
        return model
    missing = [name for name in chains if name not in [chain.name for chain in model]]
    if missing:
        raise BadInputError(f"{path} has no chain {missing[0]}; it has {', '.join(chain.name for chain in model)}")
    chosen = gemmi.Model(1)
    for chain in model:
        if chain.name in chains:
            chosen.add_chain(chain)
    return chosen


def complete_residues(chain: gemmi.Chain) -> list[Residue]:
    """Amino acids with a complete backbone; a side chain that is not complete waits to be built."""
    found = []
    for residue in chain:
        table = gemmi.find_tabulated_residue(residue.name)
        letter = table.one_letter_code.upper()
        if not table.is_amino_acid() or letter not in "ACDEFGHIKLMNPQRSTVWY":
            continue
        name = three_letters(letter)
        atoms = {}
        for wanted in heavy_atoms(name):
            atom = residue.find_atom(wanted, "*")
            if atom:
                atoms[wanted] = np.array(atom.pos.tolist())
        if not all(a in atoms for a in BACKBONE):
            continue
        if set(atoms) == set(heavy_atoms(name)):
            found.append(Residue(name, residue.seqid.num, atoms))
        else:
            found.append(Residue(name, residue.seqid.num, {a: atoms[a] for a in BACKBONE}, atoms, plain_name(name)))
    return found


def _aligner() -> PairwiseAligner:
    aligner = PairwiseAligner(mode="global", open_gap_score=-12.0, extend_gap_score=-0.5, end_gap_score=0.0)
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    return aligner


def octamer_chains(path: str | Path, model: gemmi.Model) -> list[ObservedChain]:
    """The eight histones of the file: H3, H4, H2A, H2B, H3, H4, H2A, H2B, each pair in the order of the file."""
    aligner, found = _aligner(), []
    for chain in model:
        residues = complete_residues(chain)
        if len(residues) < SHORTEST_CHAIN:
            continue
        sequence = "".join(r.letter for r in residues)
        known = max(known_histones(), key=lambda k: aligner.score(sequence, k.sequence))
        blocks = aligner.align(sequence, known.sequence)[0].aligned
        partner = {i: c + i - a for (a, b), (c, _) in zip(*blocks, strict=True) for i in range(a, b)}
        same = sum(sequence[i] == known.sequence[j] for i, j in partner.items())
        if len(partner) >= SHORTEST_CHAIN and same >= LEAST_IDENTITY * len(partner):
            found.append(ObservedChain(chain.name, residues, known, _columns(partner, known)))
    families = {family: [c for c in found if c.known.family == family] for family in FAMILIES[:4]}
    if any(len(copies) != 2 for copies in families.values()):
        counts = ", ".join(f"{len(copies)} {family}" for family, copies in families.items())
        more = any(len(copies) > 2 for copies in families.values())
        raise BadInputError(f"{path} holds {counts}, a nucleosome has two of each: " + (
            "name the chains of one nucleosome with --chains" if more else "give a structure with a whole octamer"))
    return [families[family][copy] for copy in range(2) for family in FAMILIES[:4]]


def _columns(partner: dict[int, int], known: KnownHistone) -> list[tuple[int | None, int | None]]:
    """Alignment columns from the first residue of ``known`` to its last; what is observed beyond is left out."""
    columns: list[tuple[int | None, int | None]] = []
    i, j, last = min(partner), 0, max(partner)
    while j < len(known.sequence):
        if partner.get(i) == j:
            columns.append((i, j))
            i, j = i + 1, j + 1
        elif i < last and i not in partner:
            columns.append((i, None))
            i += 1
        else:
            columns.append((None, j))
            j += 1
    return columns


def own_frame(path: str | Path, observed: list[ObservedChain]) -> tuple[np.ndarray, np.ndarray, float, list[int]]:
    """Rotation, shift and rms deviation (angstrom) of the superposition on 1KX5, and which chain is which of A..H."""
    best = None
    for swap in product((0, 1), repeat=4):
        order = [family + 4 * (half ^ swap[family]) for half in range(2) for family in range(4)]
        here, there = [], []
        for place, k in enumerate(order):
            chain = observed[k]
            model = chain.known.copies[place // 4]
            tail = TAILS[chain.known.name]
            for i, j in chain.pairs:
                if i is not None and j is not None and not any(a <= model[j].number <= b for a, b in tail):
                    here.append(chain.residues[i].atoms["CA"])
                    there.append(model[j].atoms["CA"])
        here, there = np.array(here), np.array(there)
        kept = np.ones(len(here), dtype=bool)
        for _ in range(3):  # loops that differ do not count
            matrix, shift = superposition(here[kept], there[kept])
            apart = np.linalg.norm(here @ matrix.T + shift - there, axis=1)
            deviation = float(np.sqrt(np.mean(apart[kept] ** 2)))
            kept = apart < max(3.0, 2.0 * deviation)
        if best is None or deviation < best[2] - SAME_ORDER:
            best = matrix, shift, deviation, order
    if best[2] > LARGEST_DEVIATION:
        raise BadInputError(f"the histones of {path} do not lie as in a nucleosome (CA atoms {best[2]:.1f} angstrom "
                            "rms from 1KX5): name the chains of one nucleosome with --chains")
    return best


def _dna_path(path: str | Path, model: gemmi.Model, matrix: np.ndarray, shift: np.ndarray
              ) -> tuple[np.ndarray, np.ndarray, dict]:
    """Origins (147, 3) and frames (147, 3, 3) around the dyad, ends completed as in 1KX5, and what was found."""
    crystal_origin, crystal_frame = crystal_path()
    best, longest = None, 0
    for duplex in duplexes_of(model, BRIDGED):
        longest = max(longest, len(duplex.sequence))
        for turned in (False, True):
            origin, frame = _pair_frames(duplex, turned)
            origin, frame = origin @ matrix.T + shift, matrix @ frame
            for dyad in range(LEAST_HALF, len(origin) - LEAST_HALF):
                part = slice(dyad - COMPARED_HALF, dyad + COMPARED_HALF + 1)
                middle = crystal_origin[DYAD - COMPARED_HALF:DYAD + COMPARED_HALF + 1]
                deviation = float(np.sqrt(np.mean(np.sum((origin[part] - middle) ** 2, axis=1))))
                if best is None or deviation < best[0]:
                    best = deviation, dyad, origin, frame, duplex, turned
    if best is None:
        raise BadInputError(f"the longest DNA duplex of {path} has {longest} base pairs without a break, a template "
                            f"needs {2 * LEAST_HALF + 1} around its dyad: give a structure with complete DNA")
    deviation, dyad, origin, frame, duplex, turned = best
    if deviation > LARGEST_PATH_DEVIATION:
        raise BadInputError(f"the DNA of {path} is not wrapped as on a nucleosome ({deviation:.1f} angstrom rms from "
                            "1KX5 around the dyad): give another structure")
    before, after = min(dyad, DYAD), min(len(origin) - 1 - dyad, DYAD)
    origins, frames = np.empty((2 * DYAD + 1, 3)), np.empty((2 * DYAD + 1, 3, 3))
    observed = slice(DYAD - before, DYAD + after + 1)
    origins[observed], frames[observed] = (x[dyad - before:dyad + after + 1] for x in (origin, frame))
    for here, neighbour in [*((k, k + 1) for k in range(DYAD - before - 1, -1, -1)),
                            *((k, k - 1) for k in range(DYAD + after + 1, 2 * DYAD + 1))]:
        turn = frames[neighbour] @ crystal_frame[neighbour].T
        origins[here] = origins[neighbour] + turn @ (crystal_origin[here] - crystal_origin[neighbour])
        frames[here] = turn @ crystal_frame[here]
    names = duplex.second if turned else duplex.first
    names = names[::-1] if turned else names
    return origins, frames, {"dna_deviation": round(deviation, 3), "dyad": names[dyad],
                             "base_pairs": before + after + 1, "base_pairs_completed": 2 * DYAD - before - after}


def _pair_frames(duplex: Duplex, turned: bool) -> tuple[np.ndarray, np.ndarray]:
    """Origins and frames of the base pairs along strand I or, turned over, along strand II."""
    origin, frame = duplex.pair_frames
    return (origin[::-1], frame[::-1] @ FLIP) if turned else (origin, frame)


def _threads(observed: list[ObservedChain], compact: bool) -> tuple[list[Thread], list[dict]]:
    """Every chain with every residue of the known histones, still to be joined, and a report by chain.

    ``compact``: tails lie on the particle as those of the models do, whatever the structure shows.
    """
    threads, reports = [], []
    for place, chain in enumerate(observed):
        thread, report = _threaded(chain, chain.known.copies[place // 4], compact)
        threads.append(thread)
        reports.append({"chain": chain.label, "becomes": "ABCDEFGH"[place]} | report)
    return threads, reports


def _completed(observed: list[ObservedChain], threads: list[Thread], dna: np.ndarray, polar: np.ndarray) -> Octamer:
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


def _corrected(core: Octamer, dna: np.ndarray, kinds: np.ndarray) -> tuple[Octamer, list[int]]:
    """The octamer after clash correction on its DNA, and its heavy pairs below 2 angstrom before and after."""
    solute = assemble_solute(dna, kinds, [core], np.zeros((1, 3)), np.eye(3)[None])
    corrected, found = correct_clashes(solute)
    position = corrected.position[corrected.molecule_first_atom[2]:].astype(float)
    return replace(core, position=position), [
        int(found.data[when]["heavy_pairs_below_2"]) for when in ("before", "after")]


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
