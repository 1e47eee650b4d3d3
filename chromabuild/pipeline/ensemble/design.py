"""What an ensemble consists of: folders, settings and contacts of every fold, all known before any is made."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chromabuild.analysis.agreement import held_out_pixels
from chromabuild.analysis.ensemble import comparison_bin, whole_bins
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.files import atomic_path
from chromabuild.base.settings import EnsembleSection, Settings
from chromabuild.genome.circle import Circle
from chromabuild.genome.contact_energies import MOST, contact_energies_text, read_contact_energies
from chromabuild.genome.contact_matrix import is_matrix, read_map
from chromabuild.genome.locus import Locus, load_locus
from chromabuild.simulate.replicas import replica_seed
from mesoscale.contact_energies import ContactEnergy
from mesoscale.fibre import Contact
from mesoscale.restraints import shared_out

FOLDER = "ensemble"
CONTACTS_FILE, ENERGIES_FILE = "contacts.bedpe", "contact_energies.bedpe"
SEEDS_A_ROUND = 10_000
"""Fold k of round r has the seed of replica k + SEEDS_A_ROUND (r - 1)."""


@dataclass(frozen=True)
class Design:
    """An ensemble of some settings."""

    config: Settings
    locus: Locus
    contacts: tuple[Contact, ...]
    """Those that may restrain folds."""
    withheld: int
    """Contacts that restrain none, because their pixels are held out."""

    @property
    def folder(self) -> Path:
        """Where everything lies."""
        return Path(self.config.output) / FOLDER

    @property
    def folds(self) -> int:
        """Folds, or the most of them."""
        return self.config.ensemble.folds

    @property
    def rounds(self) -> int:
        """Rounds of folds."""
        return self.config.ensemble.rounds

    @property
    def bin_size(self) -> int:
        """Base pairs a bin of the comparison."""
        return self.config.ensemble.bin or comparison_bin(len(self.locus.sequence))

    @property
    def edges(self) -> NDArray[np.int64]:
        """(b + 1,) borders, on the chromosome, of the whole bins of the comparison."""
        return whole_bins(self.locus.start, len(self.locus.sequence), self.bin_size)

    @property
    def circle(self) -> Circle | None:
        """The numbering of a circle."""
        return Circle.of(self.locus.start, len(self.locus.sequence), self.config.locus)

    @property
    def around(self) -> float | None:
        """Of a circle, in bins of the comparison."""
        return len(self.locus.sequence) / self.bin_size if self.locus.circular else None

    @property
    def map_file(self) -> str | None:
        """The measured map."""
        return map_file(self.config)

    def held_out(self) -> NDArray[np.bool_] | None:
        """(b, b) pixels whose contacts restrain no fold; None where none are held out."""
        share = self.config.ensemble.hold_out
        return held_out_pixels(len(self.edges) - 1, share, self.config.seed) if share > 0 else None

    def fold_folder(self, number: int, of_round: int | None = None) -> Path:
        """The output folder of a fold, of the last round or another one."""
        return self.round_folder(of_round) / fold_name(number)

    def round_folder(self, of_round: int | None = None) -> Path:
        """Where the folds of a round lie: those of the last one in the folder of the ensemble itself."""
        return self.folder if of_round in (None, self.rounds) else self.folder / f"round_{of_round:02d}"

    def energies_file(self, of_round: int) -> Path:
        """The energies of contacts in a round."""
        return self.round_folder(of_round) / ENERGIES_FILE

    def fold_settings(self, number: int, of_round: int | None = None) -> Settings:
        """Settings of a fold, whose stage `scaffold` is to be run."""
        config, this = self.config, of_round or self.rounds
        scaffold: dict[str, object] = {"replicas": 1, "replica": 1}
        locus: dict[str, object] = {}
        if self.rounds > 1:
            scaffold["contact_energies"] = str(self.energies_file(this))
            locus["contacts"] = None
        elif self.contacts and config.scaffold.contact_energies is None:
            scaffold |= {"replicas": self.folds, "replica": number}
        if self.rounds == 1 and self.withheld:
            locus["contacts"] = str(self.folder / CONTACTS_FILE)
        return config.model_copy(update={
            "seed": replica_seed(config.seed, number + SEEDS_A_ROUND * (this - 1)),
            "output": str(self.fold_folder(number, of_round)),
            "scaffold": config.scaffold.model_copy(update=scaffold),
            "locus": config.locus.model_copy(update=locus)})

    def targets(self, contacts: Sequence[Contact]) -> NDArray[np.float64]:
        """(c,) frequency that each contact shall have: the share of folds that such contacts are shared out to."""
        given = [{id(one) for one in shared_out(tuple(contacts), k, self.folds)} for k in range(1, self.folds + 1)]
        return np.array([sum(id(one) in those for those in given) for one in contacts]) / self.folds

    def write_contacts(self) -> None:
        """The contacts that are left when some are held out, for all folds."""
        if not self.withheld:
            return
        chromosome, given = self.locus.chromosome, self.locus.given
        lines = ["\t".join([chromosome, *map(str, given(one.first)), chromosome, *map(str, given(one.second)), ".",
                            repr(one.weight)]) + "\n" for one in self.contacts]
        write_if_new(self.folder / CONTACTS_FILE, "".join(lines))

    def write_energies(self, of_round: int, energies: np.ndarray) -> None:
        """The table of a round."""
        targets, energies = self.targets(self.contacts).tolist(), np.clip(energies, -MOST, MOST).tolist()
        given = self.locus.given
        entries = [ContactEnergy(given(one.first), given(one.second), target, energy)
                   for one, target, energy in zip(self.contacts, targets, energies, strict=True)]
        write_if_new(self.energies_file(of_round), contact_energies_text(entries, self.locus.chromosome, 0))

    def read_energies(self, of_round: int) -> NDArray[np.float64]:
        """(c,) energies of the table of a round, kBT. Raises IntegrityError where it is not of these contacts."""
        path, locus = self.energies_file(of_round), self.locus
        found = read_contact_energies(path, locus.chromosome, locus.start, len(locus.sequence), self.circle, locus.turn)
        if len(found) != len(self.contacts):
            raise IntegrityError(f"{path} has {len(found)} contacts, not {len(self.contacts)}: delete {self.folder} "
                                 "and run `chromabuild ensemble` again")
        return np.array([one.energy for one in found])

    def measured_map(self) -> NDArray[np.float64] | None:
        """(b, b) counts of the measured map; None where there is none. Raises BadInputError where it does not fit."""
        return read_map(self.map_file, self.locus.chromosome, self.edges) if self.map_file else None


def map_file(config: Settings) -> str | None:
    """The measured map of some settings."""
    contacts = config.locus.contacts
    return config.ensemble.map or (contacts if contacts and is_matrix(contacts) else None)


def fold_name(number: int) -> str:
    """Name of the folder of a fold, from 1.

    >>> fold_name(7)
    'fold_0007'
    """
    return f"fold_{number:04d}"


def make_design(config: Settings) -> Design:
    """The ensemble that the settings describe.

    Raises BadInputError with one sentence for what cannot be used: a circle that is laid flat, a comparison without
    bins, a range of slopes without length, pixels that are held out or energies that are sought where there are no
    contacts.
    """
    locus, section = load_locus(config.locus, config.seed), config.ensemble
    if config.is_laid_flat:
        raise BadInputError("locus.circular: a circle of DNA alone is laid flat, and all its folds are the same: give "
                            "locus.contacts or scaffold.confinement_radius, or leave section ensemble out")
    if section.slope_to <= section.slope_from:
        raise BadInputError(f"ensemble.slope_to = {section.slope_to} is not beyond slope_from = {section.slope_from}: "
                            "give a longer distance")
    if section.rounds > 1 and config.scaffold.contact_energies:
        raise BadInputError(f"ensemble.rounds = {section.rounds} seek energies of contacts, and "
                            "scaffold.contact_energies gives them: leave one of them out")
    if not locus.contacts and (section.rounds > 1 or section.hold_out > 0):
        what = f"rounds = {section.rounds}" if section.rounds > 1 else f"hold_out = {section.hold_out:g}"
        raise BadInputError(f"ensemble.{what} needs contacts, and locus.contacts names no file: give BEDPE, .cool, "
                            ".mcool or .hic, or leave it out")
    design = Design(config, locus, locus.contacts, 0)
    whole_bins(locus.start, len(locus.sequence), design.bin_size)
    held_out = design.held_out()
    if held_out is None:
        return design
    kept = tuple(one for one in locus.contacts if not _is_in(held_out, design.edges, locus, one))
    if not kept:
        raise BadInputError(f"ensemble.hold_out = {section.hold_out:g} holds out all {len(locus.contacts)} contacts: "
                            "choose a smaller share, or another --seed")
    return replace(design, contacts=kept, withheld=len(locus.contacts) - len(kept))


def check_ensemble(config: Settings) -> None:
    """Raises BadInputError where the section `ensemble`, if it was changed, cannot be used."""
    if config.ensemble != EnsembleSection():
        make_design(config).measured_map()


def write_if_new(path: Path, text: str) -> None:
    """Write a text file, unless it says that already: jobs side by side write the same one."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with atomic_path(path) as part:
            part.write_text(text, encoding="utf-8")


def _is_in(pixels: np.ndarray, edges: np.ndarray, locus: Locus, contact: Contact) -> bool:
    """Whether the middle of a contact lies in a pixel of those (b, b), between edges (b + 1,) on the chromosome."""
    middles = [locus.start + ((a + b - 1) / 2 - locus.start) % len(locus.sequence)
               for a, b in map(locus.given, (contact.first, contact.second))]
    one, other = np.searchsorted(edges, middles, side="right") - 1
    inside = min(one, other) >= 0 and max(one, other) < len(pixels)
    return bool(inside and pixels[one, other])
