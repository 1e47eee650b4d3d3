"""A locus as instances of few structures: rigid base pairs along the path of the DNA, and proteins on their cores.

An instance stands where the scaffold's frame is; what clashes, relaxation and linkers have bent since is not in it. The
structures are those of the solute nearest to the middle of the locus.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from chromabuild.export.region import residues_of
from chromabuild.export.structure import write_structure
from chromabuild.molecule.colours import STRAND_COLOURS, Colour, molecule_colours
from chromabuild.molecule.entities import entity_of_molecules
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.octamer import protein_of_molecules

if TYPE_CHECKING:
    from mesoscale.scaffold import Scaffold


@dataclass(frozen=True)
class InstancedEntity:
    """One structure and its places."""

    name: str
    """Of its file."""
    label: str
    description: str
    colour: Colour
    group: str
    """``dna`` or ``protein``."""
    structure: bytes
    """BinaryCIF, angstrom, in the frame of its instances."""
    origin: np.ndarray
    """(n, 3) angstrom."""
    quaternion: np.ndarray
    """(n, 4) x, y, z, w."""


def instanced_entities(solute: Solute, scaffold: "Scaffold") -> Iterator[InstancedEntity]:
    """Base pairs by their base on strand I, then histones and other proteins of each kind.

    ``solute`` must be that of the whole scaffold.
    """
    first, n = solute.molecule_first_residue, len(scaffold.base)
    middle = n // 2
    for base in sorted(set(bytes(scaffold.base.tobytes()))):
        places = np.flatnonzero(scaffold.base == base)
        inner = places[(places > 0) & (places < n - 1)]  # ends have other atoms
        chosen = int(inner[np.argmin(np.abs(inner - middle))]) if len(inner) else int(places[0])
        part = residues_of(solute, [(0, first[0] + [chosen]), (1, first[1] + [n - 1 - chosen])])
        part = _moved(part, scaffold.origin[chosen], scaffold.frame[chosen])
        yield InstancedEntity(f"base-pair-{chr(base)}", f"base pairs {chr(base)}", "rigid, on the path of the DNA",
                              STRAND_COLOURS["DNA-I"], "dna", _binary(part), scaffold.origin[places],
                              _quaternions(scaffold.frame[places]))
    colours = molecule_colours(solute)
    # Cores of nucleosomes, then of other proteins.
    core_of, core_origin, core_frame = solute.molecule_nucleosome.copy(), scaffold.core_origin, scaffold.core_frame
    if scaffold.proteins is not None:
        bound = np.array(protein_of_molecules(solute))
        core_of[bound >= 0] = len(core_origin) + bound[bound >= 0]
        core_origin = np.concatenate([core_origin, scaffold.proteins.origin])
        core_frame = np.concatenate([core_frame, scaffold.proteins.frame])
    # The letter of a chain tells the copy: of a hexasome's H2A there is but one.
    copies: dict[tuple[int, str], list[int]] = {}
    for molecule, entity in enumerate(entity_of_molecules(solute)):
        if core_of[molecule] >= 0:
            segment = solute.segment_name[solute.residue_segment[first[molecule]]]
            copies.setdefault((entity, segment[-1]), []).append(molecule)
    letters: dict[int, list[str]] = {}
    for entity, letter in copies:
        letters.setdefault(entity, []).append(letter)
    for (entity, letter), molecules in copies.items():
        copy = sorted(letters[entity]).index(letter)
        chosen = molecules[len(molecules) // 2]
        cores = core_of[molecules]
        core = int(core_of[chosen])
        part = _moved(residues_of(solute, [(chosen, np.arange(first[chosen], first[chosen + 1]))]),
                      core_origin[core], core_frame[core])
        name = solute.molecule_name[chosen]
        yield InstancedEntity(f"protein-{entity}-{copy + 1}", name, f"copy {copy + 1} on {len(cores)} nucleosomes"
                              if core < len(scaffold.dyad) else f"copy {copy + 1} at {len(cores)} sites",
                              colours[name], "protein", _binary(part), core_origin[cores],
                              _quaternions(core_frame[cores]))


def _moved(solute: Solute, origin: np.ndarray, frame: np.ndarray) -> Solute:
    """The same in the coordinates of a frame whose axes are columns."""
    position = (np.asarray(solute.position, dtype=float) - origin) @ frame
    return replace(solute, position=position.astype(np.float32))


def _quaternions(frame: np.ndarray) -> np.ndarray:
    """(n, 4) of frames (n, 3, 3), w not negative."""
    return Rotation.from_matrix(frame).as_quat(canonical=True)


def _binary(solute: Solute) -> bytes:
    with TemporaryDirectory() as folder:
        return write_structure(solute, Path(folder) / "part.bcif", "chromabuild").read_bytes()
