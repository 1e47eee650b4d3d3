"""Which histones a nucleosome is made of - species, variants, mutations - and the octamer that follows from it."""

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import h5py
import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import template_path
from chromabuild.molecule.residues import heavy_atoms, modifications
from chromabuild.nucleosome.homology import (
    Residue,
    build_side_chains,
    chains_of,
    histone_table,
    modify,
    octamer_of,
    substitute,
)
from chromabuild.nucleosome.mark_names import HistoneMark, nearest_name, parse_mark
from chromabuild.nucleosome.octamer import FAMILIES, LINKER_CHAIN, Octamer, octamer, without_chains
from chromabuild.nucleosome.protonation import pka_values, protonate, unusual
from chromabuild.nucleosome.template_file import read_template
from chromabuild.nucleosome.ubiquitin import NAME, attach_ubiquitin, ubiquitin

Link = tuple[tuple[int, int], tuple[int, int]]
UBIQUITINATED, UBIQUITIN_CHAINS = "KUB", "MNOPQRSTUVWXYZ"
SPECIES = ("xenopus", "human", "mouse", "fly", "yeast")
COMMON_MARKS = ("H3K4me1", "H3K4me2", "H3K4me3", "H3K9ac", "H3K9me2", "H3K9me3", "H3K27ac", "H3K27me3", "H3K36me3",
                "H3K79me2", "H4K16ac", "H4K20me1", "H4K20me3", "H3S10ph")  # offered for a name that is not known
MUTATION = re.compile(r"^(?P<histone>H3|H4|H2A|H2B):(?P<old>[A-Z])(?P<number>\d+)(?P<new>[ACDEFGHIKLMNPQRSTVWY])$")


@dataclass(frozen=True, order=True)
class OctamerRecipe:
    """What the histones of a nucleosome are; both copies of each are alike but for modifications of one copy."""

    species: str = "xenopus"
    tails: str = "compact"
    variants: tuple[str, ...] = ()
    """Such as ``H2A.Z``, ``CENP-A``, ``Cse4``, ``H3.3``, ``macroH2A``."""
    mutations: tuple[str, ...] = ()
    """Such as ``H3:K56Q``, in the usual numbering of the histone that is there."""
    linker_histone: str = ""
    """``H5``, ``H1.0`` or ``H1.4``."""
    template: str = ""
    """File of a user's template whose octamer it is; empty: that of 1KX5, or modelled on it."""
    modifications: tuple[str, ...] = ()
    """Such as ``H3K27ac``."""
    ph: float | None = None
    """At which histidines are protonated by their pKa; None: neutral but for those of the template."""
    missing: str = ""
    """H2A-H2B dimers that are not there: ``entry``, ``exit`` or ``both`` (``mesoscale.fibre.MissingDimer``)."""

    def with_mark(self, mark: str) -> "OctamerRecipe":
        """The recipe with one more variant, modification or mutation, or with a linker histone.

        Raises BadInputError for others.
        """
        if mark in linker_histone_table():
            return replace(self, linker_histone=mark)
        modification = parse_mark(mark)
        if modification is not None:
            key, mark = "modifications", modification.name
        else:
            key = "mutations" if ":" in mark else "variants"
        return replace(self, **{key: tuple(sorted({*getattr(self, key), mark}))}).checked()

    def lacking(self, missing: str) -> "OctamerRecipe":
        """The recipe without dimers, and without what only they could carry; a linker histone needs both."""
        if not missing:
            return self
        gone = missing_copies(missing)
        kept = {key: tuple(mark for mark in getattr(self, key) if not lies_on(mark, gone))
                for key in ("mutations", "modifications")}
        return replace(self, missing=missing, linker_histone="", **kept)

    def without(self, mark: str) -> "OctamerRecipe":
        """The recipe without a mutation or modification."""
        return replace(self, **{key: tuple(one for one in getattr(self, key) if one != mark)
                                for key in ("mutations", "modifications")})

    @property
    def marks(self) -> tuple[str, ...]:
        """Variants, mutations and modifications."""
        return (*self.variants, *self.mutations, *self.modifications)

    def claims(self) -> dict[str, tuple[str, int, int]]:
        """Family, number and copy (0: both) of the residue that each mutation and modification changes."""
        found = {mutation: residue_of(mutation) for mutation in self.mutations}
        return found | {mark: residue_of(mark) for mark in self.modifications}

    def checked(self) -> "OctamerRecipe":
        """This recipe. Raises BadInputError, with the choices, for what cannot be built."""
        if self.species not in SPECIES:
            raise BadInputError(f"histones of {self.species} are not known: choose one of {', '.join(SPECIES)}")
        if self.template and (self.species != "xenopus" or self.variants):
            raise BadInputError("build.template brings its own histones: leave out build.histones and variants")
        if self.tails == "crystal" and (self.species != "xenopus" or self.variants):
            raise BadInputError("tails as in the crystal are known for the Xenopus histones of 1KX5 only: "
                                "set build.tails to compact")
        families = [self.entry(variant)["family"] for variant in self.variants]
        if len(set(families)) < len(families):
            raise BadInputError(f"variants {' and '.join(self.variants)} replace the same histone: keep one of them")
        for mutation in self.mutations:
            if not MUTATION.match(mutation):
                raise BadInputError(f"mutation {mutation!r} is not of the form H3:K56Q: histone, residue that is "
                                    "there, its number, new residue in one-letter code")
        for (one, claim), (other, rival) in combinations(self.claims().items(), 2):
            if meet(claim, rival):
                raise BadInputError(f"{one} and {other} both change residue {claim[1]} of {claim[0]}: keep one of them")
        for mutation in self.mutations:
            self._check_mutated(mutation)
        for text in self.modifications:
            self._check_residue(parse_mark(text))
        return self

    def _check_mutated(self, mutation: str) -> None:
        """Raises BadInputError where the residue that is replaced is not there."""
        parts = MUTATION.match(mutation)
        there = self.histone(parts["histone"])[1].get(int(parts["number"]))
        if there != parts["old"]:
            found = f"no residue {parts['number']}" if there is None else there + parts["number"]
            raise BadInputError(f"mutation {mutation}: {parts['histone']} has {found} there: correct the residue or "
                                "its number")

    def _check_residue(self, mark: HistoneMark) -> None:
        """Raises BadInputError where this histone, or the residue that is modified, is not there."""
        name, residues = self.histone(mark.family)
        if mark.histone not in (mark.family, name):
            raise BadInputError(f"{mark.name}: the nucleosome carries {name}, not {mark.histone}: add the variant, or "
                                f"write {mark.family}{mark.residue}{mark.number}{mark.kind}")
        there, first = residues.get(mark.number), min(residues)
        if there == mark.residue and modifications()[mark.residue_name].begins_chain and mark.number != first:
            raise BadInputError(f"{mark.name}: only the first residue of {name}, {residues[first]}{first}, has a free "
                                "amino end: correct the mark, or leave it out")
        if there != mark.residue:
            found = f"no residue {mark.number}" if there is None else f"{there}{mark.number}"
            near = [k for k in sorted(residues, key=lambda k: (abs(k - mark.number), k)) if residues[k] == mark.residue]
            owner = "the template" if self.template else self.species
            raise BadInputError(f"{mark.name}: {name} of {owner} has {found} there: the nearest "
                                f"{mark.residue} is {mark.residue}{near[0]}; correct the mark, or leave it out")

    def histone(self, family: str) -> tuple[str, dict[int, str]]:
        """Name of a family's histone in this nucleosome, and its residues: number to one-letter code."""
        variant = next((v for v in self.variants if self.entry(v)["family"] == family), None)
        if self.template or (variant is None and self.species == "xenopus"):
            return family, _numbered_letters(self.tails, self.template)[FAMILIES.index(family)]
        entry = self.entry(variant) if variant else histone_table()[self._source][family]
        return variant or family, dict(enumerate(entry["sequence"], entry["first"]))

    def entry(self, variant: str) -> dict:
        """The table's entry of a variant: of the species, or the human one on a Xenopus octamer."""
        known = {name: entry for name, entry in histone_table()[self._source].items() if name != entry["family"]}
        if variant not in known:
            raise BadInputError(f"{self.species} histones have no variant {variant!r} here: "
                                f"choose one of {', '.join(sorted(known))}; the nearest name is "
                                f"{nearest_name(variant, [*known, *linker_histone_table(), *COMMON_MARKS])}")
        return known[variant]

    @property
    def _source(self) -> str:
        """The species whose variants are used."""
        return "human" if self.species == "xenopus" else self.species


def missing_copies(missing: str) -> dict[str, tuple[int, ...]]:
    """Family to copies, from 1, that are not there: the first lies beside the DNA that arrives."""
    copies = {"": (), "entry": (1,), "exit": (2,), "both": (1, 2)}[missing]
    return {"H2A": copies, "H2B": copies} if copies else {}


def lies_on(mark: str, gone: dict[str, tuple[int, ...]]) -> bool:
    """Whether a mutation or modification changes nothing but copies that are ``gone``."""
    family, _, copy = residue_of(mark) or ("", 0, 0)
    copies = gone.get(family, ())
    return copies == (1, 2) or copy in copies


def residue_of(mark: str) -> tuple[str, int, int] | None:
    """Family, number and copy (0: both) of the residue that a mutation or modification changes; None for others."""
    modification = parse_mark(mark)
    if modification is not None:
        return modification.family, modification.number, modification.copy
    mutation = MUTATION.match(mark)
    return (mutation["histone"], int(mutation["number"]), 0) if mutation else None


def meet(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    """Whether two marks, as ``residue_of`` places them, change the same residue of the same copy."""
    return one[:2] == other[:2] and (0 in (one[2], other[2]) or one[2] == other[2])


@cache
def linker_histone_table() -> dict[str, dict]:
    """Sequences of the linker histones (templates/linker_histones.json)."""
    table = json.loads(template_path("linker_histones.json").read_text())
    return {name: table[name] for name in table if name != "source"}


@cache
def stored_linker_histone(name: str) -> list[Residue]:
    """A modelled linker histone (templates/linker_histones.h5)."""
    with h5py.File(template_path("linker_histones.h5")) as file:
        group = file[name]
        names = [residue.decode() for residue in group["residue_name"][...]]
        first = int(group.attrs["first_number"])
        rows = iter(0.001 * group["heavy_atom_position"][...])
    ends = ["N", *[""] * (len(names) - 2), "C"]
    return [Residue(residue, first + k, {a: next(rows) for a in heavy_atoms(residue, end)})
            for k, (residue, end) in enumerate(zip(names, ends, strict=True))]


@dataclass(frozen=True)
class StoredHistone:
    """A modelled histone (templates/histones.h5), compact tails."""

    copies: list[list[Residue]]
    """Both copies."""
    moved: list[tuple[int, int, Residue]]
    """(chain, index, residue) of other histones that gave way to a variant."""


@cache
def stored_histone(species: str, histone: str) -> StoredHistone:
    """Read one histone from the templates."""
    with h5py.File(template_path("histones.h5")) as file:
        group = file[f"{species}/{histone}"]
        names = [name.decode() for name in group["residue_name"][...]]
        first = int(group.attrs["first_number"])
        position = 0.001 * group["heavy_atom_position"][...]
        moved_name = [name.decode() for name in group["moved_residue_name"][...]]
        moved_place = group["moved_chain_and_index"][...].tolist()
        moved_position = 0.001 * group["moved_position"][...]
    rows = iter(position)
    ends = ["N", *[""] * (len(names) - 2), "C"]
    copies = [[Residue(name, first + k, {a: next(rows) for a in heavy_atoms(name, end)})
               for k, (name, end) in enumerate(zip(names, ends, strict=True))] for _ in range(2)]
    rows = iter(moved_position)
    moved = [(chain, index, Residue(name, 0, {a: next(rows) for a in heavy_atoms(name)}))
             for (chain, index), name in zip(moved_place, moved_name, strict=True)]
    return StoredHistone(copies, moved)


def build_octamer(recipe: OctamerRecipe, dna: np.ndarray, dna_polar: np.ndarray) -> Octamer:
    """The octamer of a recipe, with all hydrogens, in the nucleosome's own frame.

    Args:
        recipe: what it is made of.
        dna: (m, 3) heavy atoms of wrapped DNA in that frame, which new side chains keep clear of.
        dna_polar: (m,) bool, nitrogen and oxygen.

    Raises BadInputError for a recipe that cannot be built, or a mutation that names another residue than is there.
    """
    recipe.checked()
    if recipe.missing:
        chains = [k for k, family in enumerate(FAMILIES)
                  if k // 4 + 1 in missing_copies(recipe.missing).get(family, ())]
        whole = build_octamer(replace(recipe, missing=""), dna, dna_polar)
        chains += [int(whole.residue_chain[ubiquitin_end]) for lysine, ubiquitin_end in whole.links
                   if whole.residue_chain[lysine] in chains]
        return without_chains(whole, chains)
    template = read_template(recipe.template).octamers[recipe.tails] if recipe.template else octamer(recipe.tails)
    if recipe == OctamerRecipe(tails=recipe.tails, template=recipe.template):
        return template
    chains, letters, names, links = _chains(recipe, template, dna, dna_polar)
    if recipe.ph is not None:
        protonate(chains, pka_values(chains), recipe.ph)
    return octamer_of(chains, letters, names, links)


def unusual_protonation(recipe: OctamerRecipe, core: Octamer) -> list[str]:
    """Side chains of an octamer, but histidines, that a recipe's pH finds in another state than they are built in."""
    return [] if recipe.ph is None else unusual(pka_values(chains_of(core)), recipe.ph, core.histone)


def _chains(recipe: OctamerRecipe, template: Octamer, dna: np.ndarray, dna_polar: np.ndarray
            ) -> tuple[list[list[Residue]], tuple[str, ...], tuple[str, ...], list[Link]]:
    """Heavy atoms of every chain, its letter and the name of its histone, and links; arguments: ``build_octamer``."""
    chains, names, moved = chains_of(template), list(template.histone), []
    for family in () if recipe.template else FAMILIES[:4]:
        variant = next((v for v in recipe.variants if recipe.entry(v)["family"] == family), None)
        if variant is None and recipe.species == "xenopus":
            continue
        stored = stored_histone(recipe._source, variant or family)
        moved += stored.moved
        for copy, k in enumerate(k for k, name in enumerate(template.histone) if name == family):
            chains[k] = [Residue(r.name, r.number, dict(r.atoms)) for r in stored.copies[copy]]
            names[k] = variant or family
    for chain, index, residue in moved:
        there = chains[chain][index] if index < len(chains[chain]) else None
        # Another variant, or another species' histone, keeps its own residue.
        if there is not None and names[chain] == template.histone[chain] and there.name == residue.name:
            there.atoms = dict(residue.atoms)
    for mutation in recipe.mutations:
        _mutate(chains, FAMILIES, mutation)
    for mark in recipe.modifications:
        _modify(chains, parse_mark(mark))
    if recipe.mutations or recipe.modifications:
        build_side_chains(chains, dna, dna_polar)
    letters = template.chain
    if recipe.linker_histone:
        chains, names = [*chains, stored_linker_histone(recipe.linker_histone)], [*names, recipe.linker_histone]
        letters = (*letters, LINKER_CHAIN)
    links: list[Link] = []
    for c, k in [(c, k) for c, chain in enumerate(chains) for k, one in enumerate(chain) if one.name == UBIQUITINATED]:
        links.append(((c, k), (len(chains), len(ubiquitin()[0]) - 1)))
        letters = (*letters, UBIQUITIN_CHAINS[len(links) - 1])
        chains, names = [*chains, attach_ubiquitin(chains, c, k, dna, dna_polar)], [*names, NAME]
    return chains, letters, tuple(names), links


def _mutate(chains: list[list[Residue]], families: tuple[str, ...], mutation: str) -> None:
    """Put another residue where ``checked`` has found the one that the mutation names."""
    parts = MUTATION.match(mutation)
    for chain, family in zip(chains, families, strict=True):
        if family != parts["histone"]:
            continue
        substitute(chain, next(k for k, r in enumerate(chain) if r.number == int(parts["number"])), parts["new"])


@cache
def _numbered_letters(tails: str, template: str) -> tuple[dict[int, str], ...]:
    """Of every chain of an octamer, number to one-letter code."""
    core = read_template(template).octamers[tails] if template else octamer(tails)
    return tuple({residue.number: residue.letter for residue in chain} for chain in chains_of(core))


def _modify(chains: list[list[Residue]], mark: HistoneMark) -> None:
    """Put a modified residue where ``checked`` has found its parent."""
    copies = [k for k, family in enumerate(FAMILIES) if family == mark.family]
    for k in copies if mark.copy == 0 else copies[mark.copy - 1:mark.copy]:
        chain = chains[k]
        modify(chain, next(i for i, r in enumerate(chain) if r.number == mark.number), mark.residue_name)
