"""A whole shard set as one structure, for those who look at it as such."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import SOLVENT, residue_names
from chromabuild.molecule.solute import MAX_RESIDUES_PER_SEGMENT, Solute
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.shards.integrity import read_shards
from chromabuild.shards.manifest import Manifest
from chromabuild.sterics.atoms import Atoms


def atoms_of_shards(folder: Path) -> Atoms:
    """Every atom of a shard set in its periodic box; the solute beside the folder says what the atoms are.

    Raises IntegrityError when the set is incomplete, BadInputError when its solute is missing or another one.
    """
    manifest = Manifest.read(folder)
    box, position = read_shards(folder)
    path = folder.parent / "solute_clean.h5"
    if not path.is_file():
        raise BadInputError(f"{path} is missing: keep it beside {folder}, it names the atoms of the shards")
    solute = Solute.read(path)
    relaxed = folder.parent / "solute_relaxed.h5"  # which alone has the ions at phosphates, where it is there
    if solute.n_atoms != manifest.counts["solute"] and relaxed.is_file():
        path, solute = relaxed, Solute.read(relaxed)
    if solute.n_atoms != manifest.counts["solute"]:
        raise BadInputError(f"{path} has {solute.n_atoms} atoms, the shards hold {manifest.counts['solute']}: "
                            "run chromabuild solvate again")
    names = residue_names()
    residues = SOLVENT | {"water": WATER_MODELS[manifest.water].residue}
    template = np.concatenate([np.full(manifest.counts.get(key, 0), names.index(name), dtype=np.uint16)
                               for key, name in residues.items()])
    numbers = np.arange(len(template)) % MAX_RESIDUES_PER_SEGMENT + 1
    segment = len(solute.segment_name)
    first = solute.molecule_first_residue
    molecules = np.concatenate([first, first[-1] + 1 + np.arange(len(template))])
    extra = len(template)
    return replace(Atoms.from_solute(Solute(
        position, np.concatenate([solute.residue_template, template]),
        np.concatenate([solute.residue_number, numbers]).astype(np.int32),
        np.concatenate([solute.residue_segment, np.full(extra, segment, dtype=np.uint16)]),
        [*solute.segment_name, "SOLV"], [*solute.segment_chain, "S"], molecules,
        [*solute.molecule_name, *["solvent"] * extra],
        np.concatenate([solute.molecule_nucleosome, np.full(extra, -1, dtype=np.int32)]),
        circular=solute.circular, links=solute.links)), box=box)
