"""Which octamer every nucleosome of a locus carries: one setting for all, and marks by place from BED or bigWig."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import BuildSection
from chromabuild.dna.helix import DYAD
from chromabuild.genome.bed import bed_interval, bed_records
from chromabuild.genome.bigwig import SUFFIXES, read_signal
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.nucleosome.recipe import OctamerRecipe


def read_marks(path: str | Path, chromosome: str) -> list[tuple[int, int, str, int]]:
    """(start, end, variant or mutation, line) of every record on ``chromosome``; BED, column 4 names the mark.

    Raises BadInputError, with the line, for a malformed record.
    """
    return [(start, end, fields[3].strip(), line)
            for start, end, fields, line in _stretches(path, chromosome, 4, "BED with names")]


def within_stretches(path: str | Path, chromosome: str, dyad_position: np.ndarray) -> np.ndarray:
    """(m,) bool: nucleosomes whose dyad, on the chromosome, lies in a stretch of a BED or narrowPeak file.

    Raises BadInputError, with the line, for a malformed record, and for a file that meets no nucleosome.
    """
    inside = np.zeros(len(dyad_position), bool)
    for start, end, _, _ in _stretches(path, chromosome, 3, "BED"):
        inside |= (dyad_position >= start) & (dyad_position < end)
    if not inside.any():
        raise BadInputError(f"{path} holds no nucleosome of {chromosome}: check chromosome names and positions")
    return inside


def _stretches(path: str | Path, chromosome: str, columns: int, form: str
               ) -> Iterator[tuple[int, int, list[str], int]]:
    """(start, end, columns, line) of every record on ``chromosome``; those on others must be sound, too."""
    for line, fields in bed_records(path, columns, form):
        start, end = bed_interval(path, line, fields[1], fields[2])
        if same_chromosome(fields[0], chromosome):
            yield start, end, fields, line


def _draws(dyad_position: np.ndarray, seed: int) -> list[float]:
    """One number in [0, 1) a nucleosome; its neighbours do not matter."""
    return [np.random.Generator(np.random.Philox(key=np.array([seed, position], dtype=np.uint64))).random()
            for position in np.asarray(dyad_position).tolist()]


def octamer_recipes(section: BuildSection, chromosome: str, dyad_position: np.ndarray, seed: int = 1
                    ) -> list[OctamerRecipe]:
    """The recipe of every nucleosome.

    Args:
        section: the settings.
        chromosome: records of the file of marks on others are left out.
        dyad_position: (m,) positions on the chromosome, 0-based.
        seed: decides, with the position, which nucleosomes carry a linker histone when not all do.

    Raises BadInputError for a variant or mutation that cannot be built, with the line where it came from a file, and
    for a file of marks that meets no nucleosome.
    """
    tails = "compact" if section.tails == "scaffold" else section.tails
    common = OctamerRecipe(section.histones, tails, template=section.template or "").checked()
    for mark in section.variants:
        common = common.with_mark(mark)
    recipes = [common] * len(dyad_position)
    if section.linker_histone != "none":
        recipes = [common.with_mark(section.linker_histone) if share < section.linker_histone_share else common
                   for share in _draws(dyad_position, seed)]
    if section.marks is None:
        return recipes
    if section.marks.lower().endswith(SUFFIXES):
        carries = _carried_by_signal(section, chromosome, np.asarray(dyad_position))
        return [recipe.with_mark(section.track_mark) if here else recipe
                for recipe, here in zip(recipes, carries, strict=True)]
    carried = 0
    for start, end, mark, line in read_marks(section.marks, chromosome):
        for k in np.flatnonzero((dyad_position >= start) & (dyad_position < end)):
            try:
                recipes[k] = recipes[k].with_mark(mark)
            except BadInputError as error:
                raise BadInputError(f"{section.marks}, line {line}: {error}") from None
            carried += 1
    if not carried:
        raise BadInputError(f"{section.marks} marks no nucleosome of {chromosome}: "
                            "check chromosome names and positions")
    return recipes


def _carried_by_signal(section: BuildSection, chromosome: str, dyad_position: np.ndarray) -> np.ndarray:
    """(m,) bool: nucleosomes over whose base pairs the mean of a bigWig signal reaches the threshold.

    ``dyad_position``: (m,) chromosome positions.
    """
    if section.track_mark is None or section.track_threshold is None:
        raise BadInputError(f"{section.marks} is a signal: set build.track_mark to what nucleosomes carry where it is "
                            "high, and build.track_threshold to the mean from which on they do")
    if len(dyad_position) == 0:
        return np.zeros(0, dtype=bool)
    begin = max(int(dyad_position.min()) - DYAD, 0)
    signal = np.nan_to_num(read_signal(section.marks, chromosome, begin, int(dyad_position.max()) + DYAD + 1))
    mean = np.array([signal[max(dyad - DYAD - begin, 0):dyad + DYAD + 1 - begin].mean()
                     for dyad in dyad_position.tolist()])
    if mean.max() < section.track_threshold:
        raise BadInputError(f"{section.marks} reaches {section.track_threshold} on no nucleosome of {chromosome}: "
                            f"lower build.track_threshold, its highest mean is {mean.max():.3g}")
    return mean >= section.track_threshold
