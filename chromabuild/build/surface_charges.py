"""The charges that stand for a nucleosome's core in the mesoscale model, for the histones at hand.

The atoms of a core are its octamer, less the tails that beads stand for, and 147 base pairs of A, C, G, T in turn on
the template's path, with charges and radii of templates/electrostatics.json. The charges on the 300 sites of the core
of 1KX5 are those whose Debye-Hueckel field is nearest to the Poisson-Boltzmann field of these atoms at a salt
(``mesoscale.disco``). Linker histones and ubiquitin are left out: the first are bodies of their own in the model.

Cores that come with the package (templates/core_charges.json) are looked up. Others are fitted with the program apbs,
and kept in the user's cache folder under a checksum of all that they follow from; where apbs is missing, the nearest
core that came with the package stands in.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from chromabuild.base.files import atomic_path, template_path
from chromabuild.build.duplex import build_dna
from chromabuild.build.octamers import octamer_of_recipe
from chromabuild.dna.helix import crystal_path
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.octamer import FAMILIES
from chromabuild.nucleosome.recipe import OctamerRecipe, residue_of
from chromabuild.nucleosome.scaffold_tails import beads_of_residues
from chromabuild.nucleosome.tail_charges import unmodified
from chromabuild.nucleosome.template_file import read_template
from mesoscale.core_charges import ANGSTROM, bundled_charges, bundled_cores, core_sites
from mesoscale.disco import PROTOCOL, ChargedAtoms, MissingProgramError, apbs_version, optimise

DIGITS = 3  # of a charge, e


@dataclass(frozen=True)
class CoreCharges:
    """Charges for the 300 sites of a core."""

    charge: tuple[float, ...]
    """e."""
    atomic_charge: int
    """Of the atoms that they stand for, e."""
    field_error: float
    """Mean relative error of their field at points that took no part in the fit."""
    source: str
    """``bundled``, ``fitted``, or whose charges stand in."""


def core_charges_of(recipe: OctamerRecipe, salt: float, tell: Callable[[str], None] = lambda text: None) -> CoreCharges:
    """The charges of a recipe's core at a salt (mol/L); ``tell`` is called with what takes long or is missing.

    Raises BadInputError for a recipe that cannot be built, ValueError for a salt beyond that of the bundled charges.
    """
    core = core_recipe(recipe)
    if bundled_name(core) in bundled_cores():
        return _bundled(bundled_name(core), salt, "bundled")
    try:
        return _fitted(core, salt, tell)
    except MissingProgramError as error:
        nearest = next(name for name in (bundled_name(replace(core, mutations=(), modifications=(), ph=None)),
                                         bundled_name(OctamerRecipe(core.species)))
                       if name in bundled_cores())
        tell(f"charges of the core with {described(core)} are not fitted: {error}; those of {nearest} stand in for "
             "them")
        return _bundled(nearest, salt, f"those of {nearest}")


def core_recipe(recipe: OctamerRecipe) -> OctamerRecipe:
    """The recipe of a nucleosome's core alone: without what lies on tails, without linker histone, with both dimers."""
    plain = unmodified(replace(recipe, ph=None))
    fold = {(FAMILIES[chain], int(number)) for chain, number, bead in
            zip(plain.residue_chain, plain.residue_number, beads_of_residues(plain), strict=True) if bead < 0}
    kept = {key: tuple(mark for mark in getattr(recipe, key) if residue_of(mark)[:2] in fold)
            for key in ("mutations", "modifications")}
    return replace(recipe, tails=recipe.tails if recipe.template else "compact", linker_histone="", missing="", **kept)


def bundled_name(core: OctamerRecipe) -> str:
    """What templates/core_charges.json calls a core; empty where it can have none."""
    if core.template or core.mutations or core.modifications or core.ph is not None:
        return ""
    return " ".join((core.species, *core.variants))


def described(core: OctamerRecipe) -> str:
    """A core in words."""
    parts = ["histones of the template" if core.template else f"{core.species} histones", *core.marks]
    return ", ".join([*parts, *([] if core.ph is None else [f"pH {core.ph:g}"])])


def core_atoms(core: OctamerRecipe) -> ChargedAtoms:
    """The atoms of a core in the nucleosome's own frame."""
    octamer, library = octamer_of_recipe(core), list(residue_library().values())
    kept = (beads_of_residues(octamer) < 0) & (octamer.residue_chain < len(FAMILIES))
    origin, frame = crystal_path()
    if core.template:
        own = read_template(core.template)
        origin, frame = own.origin, own.frame
    dna, nucleotides, _ = build_dna(np.arange(len(origin)) % 4, origin, frame)
    table = electrostatics()
    names = [library[k].name for k in (*octamer.residue_template[kept], *nucleotides)]
    position = np.concatenate([octamer.position[np.repeat(kept, np.diff(octamer.first_atom))], dna])
    return ChargedAtoms(position * ANGSTROM, np.concatenate([table[name]["charge"] for name in names]),
                        np.concatenate([table[name]["radius"] for name in names]) * ANGSTROM)


@cache
def electrostatics() -> dict[str, dict]:
    """Charges (e) and radii (angstrom) of the atoms of every residue (templates/electrostatics.json)."""
    return json.loads(template_path("electrostatics.json").read_text())["residues"]


def cache_folder() -> Path:
    """Where fitted charges are kept: ``$XDG_CACHE_HOME/chromabuild``, else ``~/.cache/chromabuild``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chromabuild" / "core_charges"


def _bundled(name: str, salt: float, source: str) -> CoreCharges:
    charge, atomic_charge, error = bundled_charges(name, salt)
    return CoreCharges(tuple(charge.tolist()), atomic_charge, error, source)


def _fitted(core: OctamerRecipe, salt: float, tell: Callable[[str], None]) -> CoreCharges:
    """The charges from the cache folder, or else by apbs. Raises MissingProgramError."""
    bundled_charges("xenopus", salt)  # the same range for all: refused alike
    atoms = core_atoms(core)
    path = cache_folder() / f"{_checksum(atoms, salt)}.json"
    try:
        found = json.loads(path.read_text())
        return CoreCharges(tuple(found["charge"]), found["atomic_charge"], found["field_error"], found["source"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    version = apbs_version()
    tell(f"fitting charges of the core with {described(core)}, about a minute")
    fit = optimise(atoms, [salt], core_sites())[0]
    result = CoreCharges(tuple((np.round(fit.charge, DIGITS) + 0.0).tolist()), round(float(atoms.charge.sum())),
                         round(fit.mean_error, 4), f"fitted, {version}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as part:
            part.write_text(json.dumps(asdict(result)))
    except OSError:
        tell(f"{path.parent} cannot be written: these charges are fitted anew next time")
    return result


def _checksum(atoms: ChargedAtoms, salt: float) -> str:
    """Of all that fitted charges follow from; atoms to 0.0001 nm and e."""
    text = hashlib.sha256(f"{PROTOCOL} {salt!r}".encode())
    for values in (atoms.position, atoms.charge, atoms.radius, core_sites()):
        text.update(np.rint(values * 1e4).astype("<i8").tobytes())
    return text.hexdigest()
