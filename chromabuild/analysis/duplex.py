"""Base-pair and step parameters of every DNA duplex in a PDB or mmCIF file (Olson et al. 2001, Lu & Olson 2003).

A base's frame is fitted to its ring atoms. Two complementary bases pair when their frames nearly coincide after one of
them is turned over; pairs that follow each other on both strands make a duplex. ``rebuild_duplex`` is the inverse.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import gemmi
import numpy as np
from scipy.spatial import cKDTree

from chromabuild.base.errors import BadInputError
from chromabuild.dna.steps import COMPLEMENT, FLIP, analyse, dna_parameters, fit_frames, midframe, rebuild, split_pair
from chromabuild.molecule.residues import residue_library
from chromabuild.sterics.atoms import Atoms

PAIR_NAMES = ("shear", "stretch", "stagger", "buckle", "propeller", "opening")
STEP_NAMES = ("shift", "slide", "rise", "tilt", "roll", "twist")
NUCLEOTIDES = {f"D{letter}{end}": letter for letter in "ACGT" for end in ("", "5", "3")}
NUCLEOTIDES |= dict(zip(("ADE", "CYT", "GUA", "THY"), "ACGT", strict=True))
NUCLEOTIDES |= {name: template.base for name, template in residue_library().items()
                if template.kind == "nucleotide" and template.modification}
FARTHEST_ORIGINS = 3.0  # angstrom between the frames of a pair: shear, stretch and stagger together
LARGEST_TILT = 60.0  # degree between the normals of a pair
LONGEST_LINK = 2.5  # angstrom, O3'-P: beyond it a strand is broken


@dataclass(frozen=True)
class Strand:
    """Nucleotides of one chain in order."""

    name: list[str]
    """Chain and residue, such as ``I-73``."""
    letter: list[str]
    origin: np.ndarray
    """(n, 3) of the bases, angstrom."""
    frame: np.ndarray
    """(n, 3, 3) in the strand's own sense."""
    joined: np.ndarray
    """(n,) whether the next nucleotide is bonded to this one."""


@dataclass(frozen=True)
class Duplex:
    """Base pairs in the 5'-3' order of strand I, and the base frames that they were computed from."""

    first: list[str]
    """Chain and residue of the bases of strand I."""
    second: list[str]
    """Their partners on strand II."""
    sequence: str
    """Strand I."""
    base_origin: np.ndarray
    """(2, n, 3) of the bases of strand I and of their partners, angstrom."""
    base_frame: np.ndarray
    """(2, n, 3, 3), each in its own strand's sense."""

    @property
    def pair_frames(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins (n, 3) and frames (n, 3, 3) of the base pairs."""
        return midframe(self.base_origin[1], self.base_frame[1] @ FLIP, self.base_origin[0], self.base_frame[0])

    @property
    def pair_parameters(self) -> np.ndarray:
        """(n, 6) in the order of ``PAIR_NAMES``, angstrom and degree."""
        return analyse(self.base_origin[1], self.base_frame[1] @ FLIP, self.base_origin[0], self.base_frame[0])

    @property
    def step_parameters(self) -> np.ndarray:
        """(n - 1, 6) in the order of ``STEP_NAMES``, angstrom and degree."""
        origin, frame = self.pair_frames
        return analyse(origin[:-1], frame[:-1], origin[1:], frame[1:])


def rebuild_duplex(
    pair_parameters: np.ndarray, step_parameters: np.ndarray, origin: np.ndarray | None = None,
    frame: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Base origins (2, n, 3) and frames (2, n, 3, 3) from pair (n, 6) and step (n - 1, 6) parameters.

    ``origin`` (3,) and ``frame`` (3, 3) are those of the first base pair; default zero and the unit matrix.
    """
    origins, frames = rebuild(step_parameters, origin, frame)
    (origin_1, frame_1), (origin_2, frame_2) = split_pair(origins, frames, np.asarray(pair_parameters))
    return np.stack([origin_1, origin_2]), np.stack([frame_1, frame_2])


def read_duplexes(path: str | Path) -> list[Duplex]:
    """All duplexes of at least two base pairs in the first model of a file (those that ``first_model`` reads).

    Bases need all their ring atoms; of alternative positions the first counts. Only Watson-Crick partners pair.

    Raises BadInputError when the file cannot be read or holds no duplex.
    """
    return duplexes_in(first_model(path, "with DNA"), path)


def duplexes_in(model: gemmi.Model, path: str | Path) -> list[Duplex]:
    """The same of a model; ``path`` is what it was read from. Raises BadInputError when it holds no duplex."""
    duplexes = duplexes_of(model)
    if not duplexes:
        bases = sum(len(_strand(chain).name) for chain in model)
        raise BadInputError(f"{path} holds no DNA duplex ({bases} DNA bases with all ring atoms): "
                            "give a structure with Watson-Crick base pairs")
    return duplexes


def first_model(path: str | Path, wanted: str) -> gemmi.Model:
    """The first model of a PDB, mmCIF or BinaryCIF file, packed or plain, or of a solute (.h5).

    ``wanted`` ends the advice of the BadInputError where there is none.
    """
    if not re.search(r"\.(pdb|ent|cif|mmcif)(\.gz)?$", str(path).lower()) and Path(path).is_file():
        return model_of(Atoms.from_file(path))
    try:
        structure = gemmi.read_structure(str(path))
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInputError(f"{path} cannot be read as PDB or mmCIF ({error}): give a structure file") from None
    if len(structure) == 0:
        raise BadInputError(f"{path} holds no atoms: give a structure file {wanted}")
    return structure[0]


def model_of(atoms: Atoms) -> gemmi.Model:
    """Atoms as a model; segments are its chains."""
    model, first, names = gemmi.Model(1), atoms.residue_first, atoms.name
    for k, label in enumerate(atoms.residue_label):
        segment, name, number = str(label).rsplit(":", 2)
        if not len(model) or model[-1].name != segment:
            model.add_chain(gemmi.Chain(segment))
        residue = gemmi.Residue()
        residue.name, residue.seqid = name, gemmi.SeqId(number)
        for i in range(first[k], first[k + 1]):
            atom = gemmi.Atom()
            atom.name, atom.element = str(names[i]), gemmi.Element(int(atoms.element[i]))
            atom.pos = gemmi.Position(*atoms.position[i].tolist())
            residue.add_atom(atom)
        model[-1].add_residue(residue)
    return model


def duplexes_of(model: gemmi.Model, bridged: int = 0) -> list[Duplex]:
    """All duplexes of at least two base pairs in a model that was read already.

    Up to ``bridged`` consecutive bases that do not pair, equally many on both strands, do not end a duplex: they count
    as pairs too.
    """
    strands = [strand for chain in model if len((strand := _strand(chain)).name)]
    return _duplexes(strands, bridged) if strands else []


def _strand(chain: gemmi.Chain) -> Strand:
    """The DNA nucleotides of a chain that have all ring atoms."""
    parameters, names, letters, origins, frames, ends = dna_parameters(), [], [], [], [], []
    for residue in chain:
        letter = NUCLEOTIDES.get(residue.name)
        if letter is None:
            continue
        base = parameters.base[letter]
        atoms = [residue.find_atom(name, "*") for name in base.ring]
        if not all(atoms):
            continue
        origin, frame = fit_frames(np.array([atom.pos.tolist() for atom in atoms]), base.ring_position)
        names.append(f"{chain.name}{residue.seqid}")
        letters.append(letter)
        origins.append(origin)
        frames.append(frame)
        ends.append([atom.pos.tolist() if atom else [np.nan] * 3
                     for atom in (residue.find_atom("P", "*"), residue.find_atom("O3'", "*"))])
    ends = np.array(ends).reshape(-1, 2, 3)
    link = np.linalg.norm(ends[1:, 0] - ends[:-1, 1], axis=1)
    joined = np.append(~(link > LONGEST_LINK), False)  # unknown where an atom is missing: taken as joined
    return Strand(names, letters, np.array(origins), np.array(frames), joined[: len(names)])


def partners(frame: np.ndarray, letter: np.ndarray, close: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """(n,) the Watson-Crick partner of every base, or -1; the nearest ones pair first.

    Args:
        frame: (n, 3, 3) of the bases, each in its own strand's sense.
        letter: (n,) A, C, G, T.
        close: (k, 2) bases whose origins lie within ``FARTHEST_ORIGINS``.
        apart: (k,) the distances of these origins, angstrom.
    """
    a, b = close.T
    facing = -np.einsum("ki,ki->k", frame[a, :, 2], frame[b, :, 2]) > np.cos(np.radians(LARGEST_TILT))
    along = np.einsum("ki,ki->k", frame[a, :, 0], frame[b, :, 0]) > np.cos(np.radians(LARGEST_TILT))
    fitting = letter[a] == np.array([COMPLEMENT[other] for other in letter[b]], dtype=letter.dtype)
    chosen = np.flatnonzero(facing & along & fitting)
    partner = np.full(len(letter), -1)
    for a, b in close[chosen[np.argsort(apart[chosen], kind="stable")]]:
        if partner[a] < 0 and partner[b] < 0:
            partner[a], partner[b] = b, a
    return partner


def _bridge(partner: np.ndarray, joined: np.ndarray, longest: int) -> None:
    """Pair the bases between two pairs that are up to ``longest`` + 1 apart on both strands, in place."""
    for k in np.flatnonzero(partner >= 0):
        for gap in range(2, longest + 2):
            here, there = np.arange(k + 1, k + gap), partner[k] - np.arange(1, gap)
            if not (k + gap < len(partner) and partner[k] >= gap and partner[k + gap] == partner[k] - gap):
                continue
            whole = joined[k:k + gap].all() and joined[partner[k] - gap:partner[k]].all()
            # A base there that pairs with the wrong one there may be put right.
            if whole and np.isin(partner[here], [-1, *there]).all() and np.isin(partner[there], [-1, *here]).all():
                partner[here], partner[there] = there, here


def _duplexes(strands: list[Strand], bridged: int = 0) -> list[Duplex]:
    """Runs of base pairs that follow each other on both strands, in the order of strand I in the file."""
    name, letter = ([entry for strand in strands for entry in getattr(strand, key)] for key in ("name", "letter"))
    origin, frame, joined = (
        np.concatenate([getattr(strand, key) for strand in strands]) for key in ("origin", "frame", "joined"))
    close = cKDTree(origin).query_pairs(FARTHEST_ORIGINS, output_type="ndarray")
    apart = np.linalg.norm(origin[close[:, 0]] - origin[close[:, 1]], axis=1)
    partner = partners(frame, np.array(letter), close, apart)
    _bridge(partner, joined, bridged)
    following = np.where(joined, np.arange(1, len(name) + 1), -1)
    return [
        Duplex([name[k] for k in run], [name[k] for k in second], "".join(letter[k] for k in run),
               np.stack([origin[run], origin[second]]), np.stack([frame[run], frame[second]]))
        for run, second, _ in pair_runs(partner, following)
    ]  # fmt: skip


def pair_runs(partner: np.ndarray, following: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, bool]]:
    """Runs of at least two base pairs that follow each other on both strands, by their first base.

    Args:
        partner: (n,) the base that each one pairs with, or -1.
        following: (n,) the base that comes next on the same strand, 5' to 3', or -1.

    Returns:
        For each run the bases of strand I in 5'-3' order, their partners, and whether the last pair is followed by the
        first one.
    """
    before = np.full(len(partner), -1)
    before[following[following >= 0]] = np.flatnonzero(following >= 0)

    def next_pair(k: int, ahead: np.ndarray, behind: np.ndarray) -> int:
        here, other = ahead[k], behind[partner[k]]
        return int(here) if here >= 0 and other >= 0 and here != other and partner[here] == other else -1

    done, found = np.zeros(len(partner), dtype=bool), []
    for base in range(len(partner)):
        if partner[base] < 0 or done[base]:
            continue
        start = base
        while (earlier := next_pair(start, before, following)) not in (-1, base, partner[base]) and not done[earlier]:
            start = earlier
        start = base if earlier == base else start  # a circle begins at its first base in the file
        run = [start]
        while (later := next_pair(run[-1], following, before)) not in (-1, start, partner[start]):
            run.append(later)
        run, second = np.array(run), partner[run]
        done[run] = done[second] = True
        if len(run) > 1:
            found.append((run, second, later == start))
    return found


def round_trip_error(duplex: Duplex) -> float:
    """Largest difference of any parameter, angstrom or degree, after rebuilding the duplex and analysing it again."""
    pair, step = duplex.pair_parameters, duplex.step_parameters
    origin, frame = rebuild_duplex(pair, step)
    again = Duplex(duplex.first, duplex.second, duplex.sequence, origin, frame)
    return float(max(np.abs(again.pair_parameters - pair).max(), np.abs(again.step_parameters - step).max()))


def summary(duplexes: list[Duplex]) -> dict:
    """Everything as plain lists and numbers, for JSON."""

    def rows(names: tuple[str, ...], values: np.ndarray) -> list[dict]:
        return [dict(zip(names, map(float, row.round(6)), strict=True)) for row in values]

    return {"duplexes": [
        {"sequence": duplex.sequence,
         "pairs": [{"first": a, "second": b} | row for a, b, row in
                   zip(duplex.first, duplex.second, rows(PAIR_NAMES, duplex.pair_parameters), strict=True)],
         "steps": [{"step": duplex.sequence[k : k + 2]} | row
                   for k, row in enumerate(rows(STEP_NAMES, duplex.step_parameters))],
         "round_trip_error": round_trip_error(duplex)}
        for duplex in duplexes
    ]}  # fmt: skip


def table(duplexes: list[Duplex]) -> list[str]:
    """The same as lines for people: a row a base pair, with the step to the next one."""
    lines = []
    for number, duplex in enumerate(duplexes, 1):
        pair, step = duplex.pair_parameters, duplex.step_parameters
        lines += [
            f"duplex {number}: {duplex.first[0]}..{duplex.first[-1]} with {duplex.second[0]}..{duplex.second[-1]}, "
            f"{len(duplex.sequence)} base pairs; angstrom and degree",
            f"{'pair':>14} " + "".join(f"{name:>10}" for name in PAIR_NAMES + STEP_NAMES),
        ]
        for k, letter in enumerate(duplex.sequence):
            values = np.concatenate([pair[k], step[k] if k < len(step) else []])
            label = f"{duplex.first[k]}-{duplex.second[k]} {letter}{COMPLEMENT[letter]}"
            lines.append(f"{label:>14} " + "".join(f"{value:10.2f}" for value in values))
        for what, of in (("mean", np.mean), ("deviation", np.std)):
            lines.append(f"{what:>14} " + "".join(f"{of(v):10.2f}" for v in (*pair.T, *step.T)))
    return lines
