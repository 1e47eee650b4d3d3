"""Solute: DNA and proteins as arrays, the contract between building, clash correction, solvation and topology.

Atom names, elements and bonds are never stored: they follow from the residue library, because every residue is
complete and its atoms are in template order. An atom costs its 12 bytes of position.
"""

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits

import h5py
import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.hdf5_file import CHECKED, HARMED, check_kind, written_hdf5
from chromabuild.base.notebook import facts_html
from chromabuild.base.summary import Summary
from chromabuild.molecule.residues import library_needed, modification_counts, residue_library, residue_names

FORMAT = "chromabuild-solute"
VERSION = 1
LEAST_RESIDUE_NUMBER, MAX_RESIDUES_PER_SEGMENT = -999, 9999  # what four decimal columns of a PDB file hold

CHAIN_LETTERS = ascii_uppercase + ascii_lowercase + digits
"""Chain ids of PDB files, in the order in which segments take them."""
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@lru_cache  # neighbouring residues ask for the same segment
def base_36(number: int, n_digits: int) -> str:
    """``number`` in base 36, the counting part of every segment id; higher digits are dropped."""
    return "".join(_DIGITS[number // 36**power % 36] for power in reversed(range(n_digits)))


@dataclass
class Solute:
    """Molecules of residues of atoms.

    >>> solute = Solute.read("solute.h5")
    >>> solute.n_atoms, solute.molecule_name
    (2054, ['DNA-I', 'DNA-J', 'H4'])

    Molecule order: DNA strand I (5'->3', residue k is base pair k), strand J (5'->3', residue k pairs with base pair
    n-1-k), then per nucleosome H3, H4, H2A, H2B, H3, H4, H2A, H2B, then anything else.
    """

    position: np.ndarray
    """(n, 3) float32, angstrom."""
    residue_template: np.ndarray
    """(r,) uint16, index into ``residue_names()``."""
    residue_number: np.ndarray
    """(r,) int32, the number shown in files; 1..9,999 within a segment (histones keep the numbers of 1KX5)."""
    residue_segment: np.ndarray
    """(r,) uint16, index into ``segment_name``."""
    segment_name: list[str]
    """Four characters, unique. A molecule longer than 9,999 residues spans several segments."""
    segment_chain: list[str]
    """One-character chain id of each segment (``CHAIN_LETTERS``, repeated once used up)."""
    molecule_first_residue: np.ndarray
    """(m + 1,) int64: residues of molecule k are first[k] .. first[k+1]-1, one covalent polymer."""
    molecule_name: list[str]
    """``DNA-I``, ``DNA-J``, ``H3``, ``H4``, ``H2A``, ``H2B``, a variant's name, ``H5``, ``H1.0`` or ``H1.4``."""
    molecule_nucleosome: np.ndarray
    """(m,) int32: which nucleosome the protein belongs to; -1 for DNA."""
    provenance: dict = field(default_factory=dict)
    circular: tuple[int, ...] = ()
    """Molecules whose last residue is joined to their first: closed circles of DNA."""
    links: tuple[tuple[int, int], ...] = ()
    """Pairs of residues that another bond than that of their chain joins: disulphides, isopeptides (``link_atom``)."""
    build_report: Summary = field(default_factory=dict)
    """What the builder tells of it (docs/reference/file-formats.md); it is not written to the file."""

    def _repr_html_(self) -> str:
        kinds = Counter("DNA" if name.startswith("DNA") else name for name in self.molecule_name)
        return facts_html("Solute", {"atoms": self.n_atoms, "residues": self.n_residues, "molecules": kinds,
                                     "extent, angstrom": np.ptp(self.position[...], axis=0).round(1).tolist()})

    @cached_property
    def residue_first_atom(self) -> np.ndarray:
        """(r + 1,) int64: atoms of residue k are first[k] .. first[k+1]-1."""
        sizes = np.array([len(t.atoms) for t in residue_library().values()])
        return np.concatenate([[0], np.cumsum(sizes[self.residue_template])]).astype(np.int64)

    @cached_property
    def molecule_first_atom(self) -> np.ndarray:
        """(m + 1,) int64."""
        return self.residue_first_atom[self.molecule_first_residue]

    @cached_property
    def atom_residue(self) -> np.ndarray:
        """(n,) int32: the residue of every atom."""
        return np.repeat(np.arange(self.n_residues, dtype=np.int32), np.diff(self.residue_first_atom))

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.position)

    @property
    def n_residues(self) -> int:
        """Number of residues."""
        return len(self.residue_template)

    def _per_atom(self, attribute: str) -> np.ndarray:
        tables = [np.array(getattr(t, attribute)) for t in residue_library().values()]
        return np.concatenate([tables[k] for k in self.residue_template])

    def atom_names(self) -> np.ndarray:
        """(n,) array of str."""
        return self._per_atom("atoms")

    def elements(self) -> np.ndarray:
        """(n,) array of str."""
        return self._per_atom("elements")

    def modifications(self) -> dict[str, int]:
        """How many residues are modified, by the name of the residue (``ALY``); empty where none is."""
        return modification_counts(np.bincount(self.residue_template, minlength=len(residue_library())))

    def bonds(self) -> np.ndarray:
        """(b, 2) int32: covalent bonds within residues and between consecutive residues of a molecule.

        Consecutive amino acids are joined C-N, consecutive nucleotides O3'-P; in a circular molecule the last
        residue is followed by the first. ``links`` add their bonds.
        """
        library = list(residue_library().values())
        first = self.residue_first_atom
        pieces = []
        for kind in np.unique(self.residue_template):
            starts = first[:-1][self.residue_template == kind]
            pieces.append((starts[:, None, None] + library[kind].bonds[None]).reshape(-1, 2))
        tail = np.array([t.index.get("C", t.index.get("O3'", -1)) if t.kind in ("amino acid", "nucleotide") else -1
                         for t in library])
        head = np.array([t.index.get("P", -1) if t.kind == "nucleotide" else t.index.get("N", -1) for t in library])
        joined = np.ones(max(self.n_residues - 1, 0), dtype=bool)
        joined[self.molecule_first_residue[1:-1] - 1] = False
        circle = np.array(self.circular, dtype=np.int64)
        left = np.concatenate([np.flatnonzero(joined), self.molecule_first_residue[circle + 1] - 1])
        right = np.concatenate([np.flatnonzero(joined) + 1, self.molecule_first_residue[circle]])
        pieces.append(np.stack([first[left] + tail[self.residue_template[left]],
                                first[right] + head[self.residue_template[right]]], axis=1))
        if self.links:
            pieces.append(self.link_atoms())
        return np.concatenate(pieces).astype(np.int32)

    def link_atoms(self) -> np.ndarray:
        """(k, 2) int64: the two atoms of every link."""
        library, names = residue_library(), residue_names()
        return np.array([[self.residue_first_atom[k] + entry.index[entry.link_atom] for k in pair
                          for entry in (library[names[self.residue_template[k]]],)] for pair in self.links],
                        dtype=np.int64).reshape(-1, 2)

    @cached_property
    def held_residues(self) -> frozenset[int]:
        """Residues that bind a metal, whose side chains stay where they are."""
        kinds = [template.kind for template in residue_library().values()]
        return frozenset(k for pair in self.links if any(kinds[self.residue_template[i]] == "ion" for i in pair)
                         for k in pair)

    def write(self, path: str | Path) -> None:
        """Write HDF5 by atomic rename. Raises ResourceError when the disk is full or the folder unwritable."""
        with written_hdf5(path, **CHECKED) as file:
            file.attrs["format"] = FORMAT
            file.attrs["version"] = VERSION
            file.attrs["provenance"] = json.dumps(self.provenance, sort_keys=True)
            file.create_dataset("atom/position", data=np.asarray(self.position, dtype=np.float32))
            file.create_dataset("residue/template", data=np.asarray(self.residue_template, dtype=np.uint16))
            known = library_needed(self.residue_template)
            file.create_dataset("residue/template_name", data=np.array([entry.name.encode() for entry in known]))
            file.create_dataset("residue/number", data=np.asarray(self.residue_number, dtype=np.int32))
            file.create_dataset("residue/segment", data=np.asarray(self.residue_segment, dtype=np.uint16))
            file.create_dataset("segment/name", data=np.array([name.encode() for name in self.segment_name]))
            file.create_dataset("segment/chain", data=np.array([name.encode() for name in self.segment_chain]))
            file.create_dataset("molecule/first_residue", data=np.asarray(self.molecule_first_residue, dtype=np.int64))
            file.create_dataset("molecule/name", data=np.array([name.encode() for name in self.molecule_name]))
            file.create_dataset("molecule/nucleosome", data=np.asarray(self.molecule_nucleosome, dtype=np.int32))
            if self.circular:
                file.create_dataset("molecule/circular", data=np.array(self.circular, dtype=np.int32))
            if self.links:
                file.create_dataset("residue/link", data=np.array(self.links, dtype=np.int64))

    @classmethod
    def read(cls, path: str | Path) -> "Solute":
        """Read what ``write`` wrote. Raises BadInputError when the file is missing or is not a solute file."""
        solute = cls.open(path)
        file = solute.position.file
        try:
            solute.position = solute.position[...]
        except HARMED as error:
            raise BadInputError(f"cannot read {path} as a solute file ({error}): run chromabuild build") from error
        finally:
            file.close()
        return solute

    @classmethod
    def open(cls, path: str | Path) -> "Solute":
        """Like ``read``, but positions stay in the file: ``position`` is an h5py dataset, read by slices."""
        try:
            with ExitStack() as stack:
                file = stack.enter_context(h5py.File(path, "r"))
                check_kind(file, path, FORMAT, VERSION, "give solute.h5 or solute_clean.h5 of a build of this version")
                stored = [name.decode() for name in file["residue/template_name"]]
                current = {name: i for i, name in enumerate(residue_names())}
                unknown = [name for name in stored if name not in current]
                if unknown:
                    raise BadInputError(f"{path} holds residue {unknown[0]}, unknown to this version: run build again")
                translate = np.array([current[name] for name in stored], dtype=np.uint16)
                solute = cls(
                    position=file["atom/position"],
                    residue_template=translate[file["residue/template"][...]],
                    residue_number=file["residue/number"][...],
                    residue_segment=file["residue/segment"][...],
                    segment_name=[name.decode() for name in file["segment/name"]],
                    segment_chain=[name.decode() for name in file["segment/chain"]],
                    molecule_first_residue=file["molecule/first_residue"][...],
                    molecule_name=[name.decode() for name in file["molecule/name"]],
                    molecule_nucleosome=file["molecule/nucleosome"][...],
                    provenance=json.loads(file.attrs["provenance"]),
                    circular=tuple(file["molecule/circular"][...].tolist()) if "molecule/circular" in file else (),
                    links=tuple(map(tuple, file["residue/link"][...].tolist())) if "residue/link" in file else (),
                )
                stack.pop_all()  # all is well: the file stays open
                return solute
        except HARMED as error:
            raise BadInputError(f"cannot read {path} as a solute file ({error}): run chromabuild build") from error
