"""What every nucleosome of a locus carries: one setting for all, and marks by place from BED, peaks or bigWig files.

Two marks that change one residue of a nucleosome exclude each other: the one with the higher score stays, and
``MarkedNucleosomes.conflicts`` lists what gave way. The score is column 5 of BED and of peaks, the mean of a bigWig
signal; what `build.variants` puts on every nucleosome gives way to anything by place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import file_names
from chromabuild.base.settings import BuildSection
from chromabuild.dna.helix import DYAD
from chromabuild.genome.bed import bed_interval, bed_records, finite_score
from chromabuild.genome.bigwig import SUFFIXES, read_signal
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.genome.circle import Circle, pieces_of
from chromabuild.genome.records_used import RecordsUsed
from chromabuild.molecule.residues import modifications
from chromabuild.nucleosome.mark_names import family_of, parse_mark
from chromabuild.nucleosome.octamer import FAMILIES
from chromabuild.nucleosome.recipe import (
    OctamerRecipe,
    lies_on,
    linker_histone_table,
    meet,
    missing_copies,
    residue_of,
)
from mesoscale.fibre import MissingDimer

PEAKS = (".narrowpeak", ".broadpeak", ".gappedpeak")


@dataclass(frozen=True)
class Claim:
    """A mark that a file puts on a nucleosome."""

    mark: str
    score: float
    where: str
    """File and line; a bigWig has no line."""


@dataclass(frozen=True)
class MarkedNucleosomes:
    """What the nucleosomes of a locus carry."""

    recipes: list[OctamerRecipe]
    conflicts: list[dict]
    """Marks that gave way to another on the same residue: ``nucleosome`` (from 0), ``dyad`` (on the chromosome, from
    0), ``kept``, ``dropped`` and ``because``."""
    used: RecordsUsed
    """Records of each file of marks that lie on a nucleosome."""


def within_stretches(path: str | Path, chromosome: str, dyad_position: np.ndarray, used: RecordsUsed | None = None,
                     circle: Circle | None = None) -> np.ndarray:
    """(m,) bool: nucleosomes whose dyad, on the chromosome, lies in a stretch of a BED or narrowPeak file.

    Stretches of a ``circle`` may end beyond it. ``used`` counts the records that meet a nucleosome. Raises
    BadInputError, with the line, for a malformed record, and for a file that meets no nucleosome.
    """
    inside, meeting = np.zeros(len(dyad_position), bool), 0
    stretches, held = _stretches(path, chromosome, 3, "BED")
    for start, end, _, _ in stretches:
        here = np.any([(dyad_position >= a) & (dyad_position < b) for a, b in pieces_of(circle, start, end)], axis=0)
        meeting += bool(here.any())
        inside |= here
    if not inside.any():
        raise BadInputError(f"{path} holds no nucleosome of {chromosome}: check chromosome names and positions")
    if used is not None:
        used.count(path, meeting, held)
    return inside


def _stretches(path: str | Path, chromosome: str, columns: int, form: str
               ) -> tuple[list[tuple[int, int, list[str], int]], int]:
    """(start, end, columns, line) of every record on ``chromosome``, and the number of all; those on others must be
    sound, too."""
    records, here = bed_records(path, columns, form), []
    for line, fields in records:
        start, end = bed_interval(path, line, fields[1], fields[2])
        if same_chromosome(fields[0], chromosome):
            here.append((start, end, fields, line))
    return here, len(records)


def _draws(dyad_position: np.ndarray, seed: int) -> list[float]:
    """One number in [0, 1) a nucleosome; its neighbours do not matter."""
    return [np.random.Generator(np.random.Philox(key=np.array([seed, position], dtype=np.uint64))).random()
            for position in np.asarray(dyad_position).tolist()]


def octamer_recipes(section: BuildSection, chromosome: str, dyad_position: np.ndarray, seed: int = 1,
                    missing: Sequence[MissingDimer] = (), circle: Circle | None = None) -> list[OctamerRecipe]:
    """The recipe of every nucleosome; arguments and errors are those of ``marked_nucleosomes``."""
    return marked_nucleosomes(section, chromosome, dyad_position, seed, missing, circle).recipes


def marked_nucleosomes(section: BuildSection, chromosome: str, dyad_position: np.ndarray, seed: int = 1,
                       missing: Sequence[MissingDimer] = (), circle: Circle | None = None) -> MarkedNucleosomes:
    """The recipe of every nucleosome, and marks that exclude each other.

    Args:
        section: the settings.
        chromosome: records of the files of marks on others are left out.
        dyad_position: (m,) positions on the chromosome, 0-based.
        seed: decides, with the position, which nucleosomes carry a linker histone when not all do.
        missing: (m,) dimers that they lack; empty: none. Those nucleosomes carry no linker histone, and of
            `build.variants` what is left of it.
        circle: of closed DNA, on which intervals may end beyond base pair 1, and nucleosomes lie across it.

    Raises BadInputError for a variant, modification or mutation that cannot be built, with the line where it came from
    a file, for a file of marks that meets no nucleosome, and for one that marks a histone which is missing.
    """
    if any(missing) and section.tails == "scaffold":
        raise BadInputError("build.tails: scaffold needs whole octamers, and locus.missing_dimers takes some apart: "
                            "set build.tails to compact")
    tails = "compact" if section.tails == "scaffold" else section.tails
    common = OctamerRecipe(section.histones, tails, template=section.template or "", ph=section.ph).checked()
    for mark in section.variants:
        common = common.with_mark(mark)
    recipes = [common] * len(dyad_position)
    if section.linker_histone != "none":
        recipes = [common.with_mark(section.linker_histone) if share < section.linker_histone_share else common
                   for share in _draws(dyad_position, seed)]
    claims: list[list[Claim]] = [[] for _ in recipes]
    used = RecordsUsed()
    for path in file_names(section.marks):
        met = False
        for k, claim in _claims(section, path, chromosome, np.asarray(dyad_position), used, circle):
            claims[k].append(claim)
            met = True
        if not met:
            raise BadInputError(f"{path} marks no nucleosome of {chromosome}: check chromosome names and positions")
    conflicts: list[dict] = []
    known: dict[tuple[OctamerRecipe, str], OctamerRecipe] = {}
    for k, of_nucleosome in enumerate(claims):
        if any(missing) and missing[k]:
            _refuse_missing(of_nucleosome, missing[k], k)
            recipes[k] = recipes[k].lacking(missing[k])
        if of_nucleosome:
            recipes[k], dropped = _with_claims(recipes[k], of_nucleosome, known)
            conflicts += [{"nucleosome": k, "dyad": int(dyad_position[k])} | one for one in dropped]
    if section.tails == "scaffold":
        _refuse_linked_tails(recipes)
    return MarkedNucleosomes(recipes, conflicts, used)


def _refuse_linked_tails(recipes: list[OctamerRecipe]) -> None:
    """Raises BadInputError for ubiquitin on a tail that would be grown anew along the beads of the scaffold."""
    for recipe in set(recipes):
        for mark in map(parse_mark, recipe.modifications):
            if modifications()[mark.residue_name].mark == "ub" and mark.family == "H2A":
                raise BadInputError(f"build.tails: scaffold grows the tails of H2A anew, and {mark.name} holds one: "
                                    "set build.tails to compact, or leave out the mark")


def _refuse_missing(claims: list[Claim], missing: MissingDimer, nucleosome: int) -> None:
    """Raises BadInputError for a mark on a histone that is not there, and for a linker histone without both dimers."""
    gone = missing_copies(missing)
    for claim in claims:
        families = {family_of().get(claim.mark, claim.mark)} if _residue_of(claim) is None else set()
        if claim.mark in linker_histone_table():
            why = "a linker histone needs both H2A-H2B dimers"
        elif lies_on(claim.mark, gone) or any(gone.get(family) == (1, 2) for family in families):
            why = "the histone is not there"
        else:
            continue
        raise BadInputError(f"{claim.where}: {claim.mark} on nucleosome {nucleosome}, which lacks "
                            f"{'both dimers' if missing == 'both' else 'the dimer at its ' + missing}: {why}; leave "
                            "out the mark, or the record in locus.missing_dimers")


def _with_claims(recipe: OctamerRecipe, claims: list[Claim], known: dict[tuple[OctamerRecipe, str], OctamerRecipe]
                 ) -> tuple[OctamerRecipe, list[dict]]:
    """The recipe with all claims that do not exclude each other, and those that gave way; ``known`` saves work."""
    def add(claim: Claim) -> None:
        nonlocal recipe
        if (recipe, claim.mark) not in known:
            try:
                known[recipe, claim.mark] = recipe.with_mark(claim.mark)
            except BadInputError as error:
                raise BadInputError(f"{claim.where}: {error}") from None
        recipe = known[recipe, claim.mark]

    placed = [(claim, residue) for claim in claims for residue in [_residue_of(claim)]]
    for claim in (claim for claim, residue in placed if residue is None):  # a variant decides which residues there are
        add(claim)
    conflicts, kept = [], []
    for claim, residue in sorted((one for one in placed if one[1] is not None), key=lambda one: -one[0].score):
        rival = next((other for other, taken in kept if meet(taken, residue)), None)
        if rival is None:
            kept.append((claim, residue))
        elif rival.mark != claim.mark:
            conflicts.append({"kept": rival.mark, "dropped": claim.mark, "because":
                              f"score {rival.score:g} of {rival.where} against {claim.score:g} of {claim.where}"})
    for claim, residue in kept:
        for mark, taken in recipe.claims().items():
            if meet(taken, residue) and all(one.mark != mark for one, _ in kept):
                recipe = recipe.without(mark)
                conflicts.append({"kept": claim.mark, "dropped": mark,
                                  "because": f"{claim.where} goes before build.variants"})
        add(claim)
    return recipe, conflicts


def _residue_of(claim: Claim) -> tuple[str, int, int] | None:
    """Which residue a claim changes. Raises BadInputError, with file and line, for a misspelt modification."""
    try:
        return residue_of(claim.mark)
    except BadInputError as error:
        raise BadInputError(f"{claim.where}: {error}") from None


def _claims(section: BuildSection, path: str, chromosome: str, dyad_position: np.ndarray, used: RecordsUsed,
            circle: Circle | None) -> Iterator[tuple[int, Claim]]:
    """Nucleosome and claim for everything that one file of marks says of this chromosome."""
    if path.lower().endswith(SUFFIXES):
        yield from _claims_of_signal(section, path, chromosome, dyad_position, circle)
        return
    of_file = mark_of_name(path)
    is_peaks = path.lower().removesuffix(".gz").endswith(PEAKS)
    if is_peaks and not (of_file or section.track_mark):
        raise BadInputError(f"{path} holds peaks, and neither its name begins with a mark, as in H3K27ac.narrowPeak, "
                            "nor is build.track_mark set: set it to what nucleosomes carry there")
    columns, form = (3, "BED") if is_peaks or of_file else (4, "BED with names")
    order = np.argsort(dyad_position, kind="stable")
    ascending = dyad_position[order]
    stretches, held = _stretches(path, chromosome, columns, form)
    there = [np.concatenate([order[np.searchsorted(ascending, a):np.searchsorted(ascending, b)]
                             for a, b in pieces_of(circle, start, end)]).tolist() for start, end, *_ in stretches]
    used.count(path, sum(map(bool, there)), held)
    for (_, _, fields, line), nucleosomes in zip(stretches, there, strict=True):
        mark = (of_file or section.track_mark) if is_peaks else fields[3].strip() if len(fields) > 3 else of_file
        if of_file and not is_peaks and not is_mark(mark):
            mark = of_file  # column 4 is the name of a peak
        score = finite_score(path, line, fields[4]) if len(fields) > 4 and fields[4].strip() not in (".", "") else 0.0
        claim = Claim(mark, score, f"{path}, line {line}")
        for k in nucleosomes:
            yield k, claim


def is_mark(text: str) -> bool:
    """Whether a text names a modification, a mutation, a variant or a linker histone that is known."""
    try:
        return (residue_of(text) is not None or text in linker_histone_table()
                or (text in family_of() and text not in FAMILIES))
    except BadInputError:
        return False


def mark_of_name(path: str | Path) -> str | None:
    """The mark that a file is named for: the longest that its name begins with, up to a dot, dash or underscore.

    >>> mark_of_name("peaks/H3K27ac.narrowPeak"), mark_of_name("H2A.Z_rep1.bed"), mark_of_name("marks.bed")
    ('H3K27ac', 'H2A.Z', None)
    """
    name = Path(path).name
    ends = [k for k, letter in enumerate(name) if letter in "._-"]
    return next((name[:k] for k in reversed(ends) if is_mark(name[:k])), None)


def _claims_of_signal(section: BuildSection, path: str, chromosome: str, dyad_position: np.ndarray,
                      circle: Circle | None) -> Iterator[tuple[int, Claim]]:
    """Nucleosomes over whose base pairs the mean of a bigWig signal reaches the threshold."""
    mark = mark_of_name(path) or section.track_mark
    if mark is None or section.track_threshold is None:
        raise BadInputError(f"{path} is a signal: set build.track_mark to what nucleosomes carry where it is "
                            "high, and build.track_threshold to the mean from which on they do")
    if len(dyad_position) == 0:
        return
    if circle is None:
        begin = max(int(dyad_position.min()) - DYAD, 0)
        signal = np.nan_to_num(read_signal(path, chromosome, begin, int(dyad_position.max()) + DYAD + 1))
        mean = np.array([signal[max(dyad - DYAD - begin, 0):dyad + DYAD + 1 - begin].mean()
                         for dyad in dyad_position.tolist()])
    else:
        signal = np.nan_to_num(read_signal(path, chromosome, circle.start, circle.start + circle.length))
        around = dyad_position[:, None] - circle.start + np.arange(-DYAD, DYAD + 1)
        mean = signal[around % circle.length].mean(axis=1)
    if mean.max() < section.track_threshold:
        raise BadInputError(f"{path} reaches {section.track_threshold} on no nucleosome of {chromosome}: "
                            f"lower build.track_threshold, its highest mean is {mean.max():.3g}")
    for k in np.flatnonzero(mean >= section.track_threshold).tolist():
        yield k, Claim(mark, float(mean[k]), path)
