"""A part of a solute: a stretch of the chromosome, or neighbouring nucleosomes, with the DNA and the proteins of it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.genome.chromosomes import same_chromosome
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.octamer import protein_of_molecules

if TYPE_CHECKING:
    from mesoscale.scaffold import Scaffold

_REGION = re.compile(r"(?:(?P<chromosome>[^:]+):)?(?P<first>[\d,]+)-(?P<last>[\d,]+)")
_RANGE = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?")


def base_pairs_of_region(text: str, scaffold: "Scaffold") -> tuple[int, int]:
    """First and last base pair, from 0, of a region as genome browsers write it: ``chrXIII:40,000-45,000``, from 1.

    Of a circle the last may be before the first: the region then runs across the end. What lies outside the locus is
    left out. Raises BadInputError for another form, another chromosome, or a region beside the locus.
    """
    found = _REGION.fullmatch(text.strip())
    if found is None:
        raise BadInputError(f"--region {text} is no region: write it as {scaffold.chromosome}:1000-2000")
    first, last = (int(found[name].replace(",", "")) - 1 for name in ("first", "last"))
    start, end = int(scaffold.position.min()), int(scaffold.position.max())
    where = f"{scaffold.chromosome}:{start + 1}-{end + 1}"
    if found["chromosome"] is not None and not same_chromosome(found["chromosome"], scaffold.chromosome):
        raise BadInputError(f"--region {text} is on another chromosome than the locus, {where}")
    if first > last or last < start or first > end:
        raise BadInputError(f"--region {text} holds no base pair of the locus, {where}")
    ends = (int(np.flatnonzero(scaffold.position == place)[0]) for place in (max(first, start), min(last, end)))
    return next(ends), next(ends)


def base_pairs_of_nucleosomes(text: str, scaffold: "Scaffold") -> tuple[int, int]:
    """First and last base pair, from 0, wrapped on the nucleosomes ``3-7`` or ``5``, counted from 1 along the locus.

    Raises BadInputError for another form, and for nucleosomes that are not there.
    """
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise BadInputError(f"--nucleosomes {text} is no range: write it as 3-7")
    first, last = int(found["first"]), int(found["last"] or found["first"])
    if not 1 <= first <= last <= len(scaffold.dyad):
        raise BadInputError(f"--nucleosomes {text} are not there: the locus has 1-{len(scaffold.dyad)}")
    return int(scaffold.first_bp[first - 1]), int(scaffold.last_bp[last - 1])


def part_of_solute(solute: Solute, scaffold: "Scaffold", first_bp: int, last_bp: int) -> Solute:
    """Base pairs ``first_bp`` to ``last_bp``, of a circle also across its end, the histones of nucleosomes whose dyad
    is one of them, and other proteins that hold none but these."""
    first = solute.molecule_first_residue
    n = len(scaffold.base)
    pairs = np.arange(first_bp, last_bp + 1 + (n if last_bp < first_bp else 0)) % n
    there = set(np.flatnonzero(np.isin(scaffold.dyad, pairs)).tolist())
    bound, site = scaffold.proteins, protein_of_molecules(solute)
    held = set() if bound is None else {k for k, (first_held, last_held) in enumerate(
        zip(bound.first_bp.tolist(), bound.last_bp.tolist(), strict=True))
        if np.isin(np.arange(first_held, last_held + 1), pairs).all()}
    chosen: list[tuple[int, np.ndarray]] = []
    for molecule, name in enumerate(solute.molecule_name):
        if name == "DNA-I":
            rows = pairs
        elif name == "DNA-J":
            rows = n - 1 - pairs[::-1]
        elif int(solute.molecule_nucleosome[molecule]) in there or site[molecule] in held:
            rows = np.arange(int(first[molecule + 1] - first[molecule]))
        else:
            continue
        chosen.append((molecule, int(first[molecule]) + rows))
    part = residues_of(solute, chosen)
    if len(pairs) < n:
        return part
    molecules = [molecule for molecule, _ in chosen]
    return replace(part, circular=tuple(molecules.index(k) for k in solute.circular))


def residues_of(solute: Solute, chosen: Sequence[tuple[int, np.ndarray]]) -> Solute:
    """Some residues, (k,) indices in the solute, of each of some molecules; circles and links to others are cut."""
    molecules = [molecule for molecule, _ in chosen]
    residues = np.concatenate([rows for _, rows in chosen])
    starts = solute.residue_first_atom
    sizes = starts[residues + 1] - starts[residues]
    place = {int(residue): k for k, residue in enumerate(residues)} if solute.links else {}
    atoms = np.repeat(starts[residues] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(sizes.sum())
    return replace(
        solute, position=np.asarray(solute.position)[atoms], residue_template=solute.residue_template[residues],
        residue_number=solute.residue_number[residues], residue_segment=solute.residue_segment[residues],
        molecule_first_residue=np.cumsum([0, *(len(rows) for _, rows in chosen)]).astype(np.int64),
        molecule_name=[solute.molecule_name[k] for k in molecules],
        molecule_nucleosome=solute.molecule_nucleosome[molecules], circular=(), build_report={},
        links=tuple((place[a], place[b]) for a, b in solute.links if a in place and b in place))
