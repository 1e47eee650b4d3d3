"""Topology: what the engine must know of the atoms apart from where they are (docs/reference/file-formats.md).

A system is a run-length list of molecules; each molecule kind is stored once, so that a billion waters cost nothing.
Units: angstrom, kcal/mol, elementary charge, atomic mass unit, degree (force constants of angles per radian squared).
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import h5py
import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.hdf5_file import CHECKED, HARMED, check_kind, written_hdf5
from chromabuild.base.notebook import facts_html
from chromabuild.forcefield.pieces import cut_into_pieces

FORMAT = "chromabuild-topology"
VERSION = 2


def _column(dtype: str, *shape: int) -> np.ndarray:
    """A field that is empty unless given, with its dtype and the shape of one row as the schema of the file."""
    return field(default_factory=lambda: np.empty((0, *shape), dtype=dtype), metadata={"dtype": dtype, "shape": shape})


_ROWS_A_CHUNK = 1 << 16


@dataclass
class MoleculeTemplate:
    """One kind of molecule. Atom indices count from 0 within the molecule.

    The field ``bond_atoms`` is the dataset ``bond/atoms`` of the file, and so on: docs/reference/file-formats.md has
    the energy function behind each table. Units: ``charge`` e, ``mass`` u; ``r0``, ``sigma`` and ``distance`` angstrom;
    ``theta0``, ``phase``, ``psi0`` and other angles degree; ``k`` kcal/mol, per angstrom^2 of bonds and Urey-Bradley
    terms and per radian^2 of angles and impropers, ``bond_k4`` per angstrom^4; ``epsilon`` kcal/mol; ``charge_product``
    e^2; ``gaussian_width`` radian, ``alpha`` 1/angstrom. Virtual sites: site and parents. ``atom_class`` is CHARMM's
    atom type, by which its parameter files name terms; empty in other force fields.
    """

    name: str
    rigid_water: bool = False
    lj_type: np.ndarray = _column("<i4")
    charge: np.ndarray = _column("<f8")
    mass: np.ndarray = _column("<f8")
    atom_name: np.ndarray = _column("S4")
    atom_class: np.ndarray = _column("S8")
    atom_residue: np.ndarray = _column("<i4")
    residue_name: np.ndarray = _column("S4")
    residue_number: np.ndarray = _column("<i4")
    residue_segid: np.ndarray = _column("S4")
    bond_atoms: np.ndarray = _column("<i4", 2)
    bond_k: np.ndarray = _column("<f8")
    bond_r0: np.ndarray = _column("<f8")
    bond_k4: np.ndarray = _column("<f8")
    angle_atoms: np.ndarray = _column("<i4", 3)
    angle_k: np.ndarray = _column("<f8")
    angle_theta0: np.ndarray = _column("<f8")
    urey_bradley_atoms: np.ndarray = _column("<i4", 2)
    urey_bradley_k: np.ndarray = _column("<f8")
    urey_bradley_r0: np.ndarray = _column("<f8")
    dihedral_atoms: np.ndarray = _column("<i4", 4)
    dihedral_k: np.ndarray = _column("<f8")
    dihedral_n: np.ndarray = _column("<i4")
    dihedral_phase: np.ndarray = _column("<f8")
    improper_atoms: np.ndarray = _column("<i4", 4)
    improper_k: np.ndarray = _column("<f8")
    improper_psi0: np.ndarray = _column("<f8")
    cmap_atoms: np.ndarray = _column("<i4", 5)
    cmap_map: np.ndarray = _column("<i4")
    exclusion: np.ndarray = _column("<i4", 2)
    pair14_atoms: np.ndarray = _column("<i4", 2)
    pair14_charge_product: np.ndarray = _column("<f8")
    pair14_sigma: np.ndarray = _column("<f8")
    pair14_epsilon: np.ndarray = _column("<f8")
    gaussian_atoms: np.ndarray = _column("<i4", 4)
    gaussian_k: np.ndarray = _column("<f8")
    gaussian_width: np.ndarray = _column("<f8")
    gaussian_phi0: np.ndarray = _column("<f8")
    stacking_atoms: np.ndarray = _column("<i4", 3)
    stacking_epsilon: np.ndarray = _column("<f8")
    stacking_r0: np.ndarray = _column("<f8")
    stacking_theta0: np.ndarray = _column("<f8")
    stacking_alpha: np.ndarray = _column("<f8")
    stacking_sharpness: np.ndarray = _column("<f8")
    base_pair_atoms: np.ndarray = _column("<i4", 4)
    base_pair_epsilon: np.ndarray = _column("<f8")
    base_pair_r0: np.ndarray = _column("<f8")
    base_pair_theta1: np.ndarray = _column("<f8")
    base_pair_theta2: np.ndarray = _column("<f8")
    base_pair_phi0: np.ndarray = _column("<f8")
    base_pair_alpha: np.ndarray = _column("<f8")
    base_pair_sharpness: np.ndarray = _column("<f8")
    cross_stacking_atoms: np.ndarray = _column("<i4", 5)
    cross_stacking_epsilon: np.ndarray = _column("<f8")
    cross_stacking_r0: np.ndarray = _column("<f8")
    cross_stacking_theta3: np.ndarray = _column("<f8")
    cross_stacking_theta: np.ndarray = _column("<f8")
    cross_stacking_alpha: np.ndarray = _column("<f8")
    cross_stacking_sharpness3: np.ndarray = _column("<f8")
    cross_stacking_sharpness: np.ndarray = _column("<f8")
    constraint_atoms: np.ndarray = _column("<i4", 2)
    constraint_distance: np.ndarray = _column("<f8")
    virtual_site_atoms: np.ndarray = _column("<i4", 4)
    virtual_site_w2: np.ndarray = _column("<f8")
    virtual_site_w3: np.ndarray = _column("<f8")

    def __post_init__(self) -> None:
        for name, dtype, shape in _SCHEMA:
            setattr(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype).reshape(-1, *shape))

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.charge)


_SCHEMA = [(f.name, f.metadata["dtype"], f.metadata["shape"]) for f in fields(MoleculeTemplate) if f.metadata]
_OF_BEADS = ("gaussian", "stacking", "base_pair", "cross_stacking")
"""Terms of DNA as beads."""
_TERMS = ("bond", "angle", "urey_bradley", "dihedral", "improper", "cmap", "pair14", *_OF_BEADS, "constraint")
_SITES = "virtual_site"
_OPTIONAL = {"virtual_site_atoms": _SITES, "virtual_site_w2": _SITES, "virtual_site_w3": _SITES,
             "atom_class": "atom_class", "bond_k4": "bond/k4",
             **{name: kind for name, _, _ in _SCHEMA for kind in _OF_BEADS if name.startswith(kind + "_")}}
"""What is in files only of templates that have any: field, and what stands there then."""


def _dataset_name(name: str) -> str:
    """``bond_atoms`` is stored as ``bond/atoms``; per-atom and per-residue columns keep their name."""
    for term in (*_TERMS, _SITES):
        if name.startswith(term + "_"):
            return f"{term}/{name[len(term) + 1:]}"
    return name


@dataclass
class Topology:
    """Molecule templates, Lennard-Jones types, and the molecules of the system in global atom order."""

    templates: list[MoleculeTemplate]
    run_template: np.ndarray
    """(k,) int32: template of each run of equal molecules, in global atom order."""
    run_count: np.ndarray
    """(k,) int64: number of molecules in each run."""
    lj_name: np.ndarray
    """(t,) S8."""
    lj_sigma: np.ndarray
    """(t,) angstrom."""
    lj_epsilon: np.ndarray
    """(t,) kcal/mol."""
    coulomb_constant: float
    """kcal angstrom / mol / e^2."""
    force_field: str
    provenance: dict = field(default_factory=dict)
    lj_c12: np.ndarray | None = None
    """(t, t): E = c12/r^12 - c6/r^6, kcal/mol angstrom^12; what the Lorentz-Berthelot rule gives unless given."""
    lj_c6: np.ndarray | None = None
    """(t, t), kcal/mol angstrom^6; given together with ``lj_c12``."""
    cmap_energy: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    """(m, s s) kcal/mol: correction maps, phi = 360 i/s and psi = 360 j/s degrees in column s i + j."""
    run_residue: np.ndarray | None = None
    """(k,) int64, of imported systems: where the molecules of a run are one residue, the number of the first one's; the
    others follow it."""
    run_segid: np.ndarray | None = None
    """(k,) S4: segment of these; given together with ``run_residue``."""

    def __post_init__(self) -> None:
        if self.lj_c12 is None:
            self.lj_c12, self.lj_c6 = self._mixed()

    def _mixed(self) -> tuple[np.ndarray, np.ndarray]:
        """c12 and c6 of all pairs of types by the Lorentz-Berthelot rule."""
        sigma6 = (0.5 * (self.lj_sigma[:, None] + self.lj_sigma)) ** 6
        c6 = 4.0 * np.sqrt(self.lj_epsilon[:, None] * self.lj_epsilon) * sigma6
        return c6 * sigma6, c6

    @property
    def special_pairs(self) -> np.ndarray:
        """(t, t) bool: pairs of types that do not follow the Lorentz-Berthelot rule (to 1e-6)."""
        c12, c6 = self._mixed()
        return ~(np.isclose(self.lj_c12, c12, rtol=1e-6, atol=0) & np.isclose(self.lj_c6, c6, rtol=1e-6, atol=0))

    @property
    def run_first_atom(self) -> np.ndarray:
        """(k + 1,) int64: the atoms of run i are first[i] .. first[i+1]-1."""
        sizes = np.array([t.n_atoms for t in self.templates], dtype=np.int64)
        return np.concatenate([[0], np.cumsum(sizes[self.run_template] * self.run_count)]).astype(np.int64)

    @property
    def n_atoms(self) -> int:
        """Number of atoms of the whole system."""
        return int(self.run_first_atom[-1])

    @property
    def net_charge(self) -> float:
        """Total charge, e."""
        per_molecule = np.array([t.charge.sum() for t in self.templates])
        return float(np.sum(per_molecule[self.run_template] * self.run_count))

    def _repr_html_(self) -> str:
        kinds = {t.name: int(self.run_count[self.run_template == k].sum()) for k, t in enumerate(self.templates)}
        return facts_html("Topology", {"force field": self.force_field, "atoms": self.n_atoms,
                                       "net charge, e": round(self.net_charge, 3), "atom types": len(self.lj_name),
                                       "molecules": kinds})

    def per_atom(self, name: str) -> np.ndarray:
        """A per-atom column (``charge``, ``mass``, ``lj_type``, ``atom_name``) of all atoms, (n,)."""
        return self.of_atoms([getattr(template, name) for template in self.templates])

    def of_atoms(self, of_template: Sequence[np.ndarray]) -> np.ndarray:
        """(n,) of all atoms from what the atoms of each template have."""
        return np.concatenate([np.tile(of_template[t], count)
                               for t, count in zip(self.run_template, self.run_count, strict=True)])

    def residue_of_atom(self) -> np.ndarray:
        """(n,) int64: residues counted from 0 through the whole system."""
        pieces, before = [], 0
        for t, count in zip(self.run_template.tolist(), self.run_count.tolist(), strict=True):
            template = self.templates[t]
            n = len(template.residue_name)
            pieces.append((before + n * np.arange(count)[:, None] + template.atom_residue).ravel())
            before += n * count
        return np.concatenate(pieces)

    def charges(self) -> np.ndarray:
        """(n,) charges of all atoms, e."""
        return self.per_atom("charge")

    def masses(self) -> np.ndarray:
        """(n,) masses of all atoms, atomic mass units."""
        return self.per_atom("mass")

    def term(self, term: str) -> dict[str, np.ndarray]:
        """All terms of one kind (``bond``, ``dihedral``, ``pair14``, ...) with global atom indices.

        Keys: ``atoms`` (m, 2..5) int64, and the parameter columns (m,); one that a template does not have is 0.
        """
        columns = [(name, _dataset_name(name).split("/")[1]) for name, _, _ in _SCHEMA if name.startswith(term + "_")]
        pieces = {key: [] for _, key in columns}
        for t, count, start in zip(self.run_template, self.run_count, self.run_first_atom[:-1], strict=True):
            template = self.templates[t]
            atoms = getattr(template, f"{term}_atoms")
            for name, key in columns:
                values = getattr(template, name)
                if len(values) < len(atoms):
                    values = np.zeros(len(atoms), values.dtype)
                pieces[key].append(_shifted(atoms, template.n_atoms, count, start) if key == "atoms"
                                   else np.tile(values, count))
        return {key: np.concatenate(arrays) for key, arrays in pieces.items()}

    def exclusions(self) -> np.ndarray:
        """(e, 2) int64: all excluded pairs with global atom indices."""
        return np.concatenate([
            _shifted(self.templates[t].exclusion, self.templates[t].n_atoms, count, start)
            for t, count, start in zip(self.run_template, self.run_count, self.run_first_atom[:-1], strict=True)
        ])

    def write(self, path: str | Path) -> None:
        """Write HDF5 by atomic rename. Raises ResourceError when the disk is full or the folder unwritable."""
        # Every array carries a checksum too: HDF5 refuses to read what was damaged, in the engine as well.
        with written_hdf5(path, **CHECKED) as file:
            file.attrs["format"] = np.bytes_(FORMAT)
            file.attrs["version"] = np.int32(VERSION)
            file.attrs["provenance"] = np.bytes_(json.dumps(self.provenance, sort_keys=True))
            file.attrs["coulomb_constant"] = float(self.coulomb_constant)
            file.attrs["force_field"] = np.bytes_(self.force_field)
            rule = "pair matrix" if self.special_pairs.any() else "lorentz-berthelot"
            file.attrs["combination_rule"] = np.bytes_(rule)
            _put(file, "lj/name", np.asarray(self.lj_name, dtype="S8"))
            for name in ("sigma", "epsilon", "c12", "c6"):
                _put(file, f"lj/{name}", np.asarray(getattr(self, f"lj_{name}"), dtype="<f8"))
            _put(file, "molecule/template", np.asarray(self.run_template, dtype="<i4"))
            _put(file, "molecule/count", np.asarray(self.run_count, dtype="<i8"))
            if self.run_residue is not None:
                _put(file, "molecule/residue_number", np.asarray(self.run_residue, dtype="<i8"))
                _put(file, "molecule/segid", np.asarray(self.run_segid, dtype="S4"))
            _put(file, "cmap/energy", np.asarray(self.cmap_energy, dtype="<f8"))
            templates = file.create_group("template")
            for i, template in enumerate(self.templates):
                group = templates.create_group(f"{i:04d}")
                group.attrs["name"] = np.bytes_(template.name)
                group.attrs["rigid_water"] = np.int32(template.rigid_water)
                for name, _, _ in _SCHEMA:
                    if name not in _OPTIONAL or len(getattr(template, name)):
                        _put(group, _dataset_name(name), np.asarray(getattr(template, name)))
            self._write_pieces(file)

    def _write_pieces(self, file: h5py.File) -> None:
        """What the engine reads of molecules with several residues."""
        written = [name for name, _, _ in _SCHEMA
                   if name not in _OPTIONAL or any(len(getattr(t, name)) for t in self.templates)]
        tables = {kind: [name for name in written if _dataset_name(name).split("/")[0] == kind]
                  for kind in (*_TERMS, "exclusion", *self._sites_in_pieces())}
        tables = {kind: columns for kind, columns in tables.items() if columns}
        pieces = cut_into_pieces(self.templates, tables)
        if len(pieces.first_atom) == 1:
            return
        group = file.create_group("pieces")
        group.attrs["rigid_water"] = np.int32(0)
        _put(group, "first_atom", pieces.first_atom)
        for kind, first in pieces.first_term.items():
            _put(group, f"first_term/{kind}", first)
        for name, dtype, _ in _SCHEMA:
            if name in pieces.columns:
                _put(group, _dataset_name(name), np.asarray(pieces.columns[name], dtype=dtype))
        for i, piece in enumerate(pieces.of_molecule):
            if piece is not None:
                _put(file, f"template/{i:04d}/piece", piece)

    def _sites_in_pieces(self) -> tuple[str, ...]:
        """The kind of term of virtual sites, where long molecules have any."""
        return (_SITES,) * any(len(t.virtual_site_atoms) and len(t.residue_name) > 1 for t in self.templates)

    @classmethod
    def read(cls, path: str | Path) -> "Topology":
        """Read what ``write`` wrote. Raises BadInputError when the file is missing or is not a topology file."""
        with opened(path) as file:
            return cls(
                templates=[
                    MoleculeTemplate(name=_text(group.attrs["name"]), rigid_water=bool(group.attrs["rigid_water"]),
                                     **{name: group[_dataset_name(name)][...] for name, _, _ in _SCHEMA
                                        if _OPTIONAL.get(name, name) in group or name not in _OPTIONAL})
                    for group in template_groups(file)
                ],
                run_template=file["molecule/template"][...],
                run_count=file["molecule/count"][...],
                run_residue=_optional(file, "molecule/residue_number"), run_segid=_optional(file, "molecule/segid"),
                lj_name=file["lj/name"][...],
                lj_sigma=file["lj/sigma"][...],
                lj_epsilon=file["lj/epsilon"][...],
                lj_c12=file["lj/c12"][...],
                lj_c6=file["lj/c6"][...],
                cmap_energy=file["cmap/energy"][...],
                coulomb_constant=float(file.attrs["coulomb_constant"]),
                force_field=_text(file.attrs["force_field"]),
                provenance=json.loads(_text(file.attrs["provenance"])),
            )


def _optional(file: h5py.File, name: str) -> np.ndarray | None:
    return file[name][...] if name in file else None


def molecule_kinds(path: str | Path) -> dict[str, str]:
    """The kinds of molecules in a topology file, without the rest of it: name and name of the first residue.

    Raises BadInputError when the file is missing or is not a topology file.
    """
    with opened(path) as file:
        return {_text(group.attrs["name"]): _text(group["residue_name"][0]) for group in template_groups(file)}


@contextmanager
def opened(path: str | Path) -> Iterator[h5py.File]:
    """A topology file to read from.

    Raises BadInputError when it is missing, of another version or damaged, also where the block finds it damaged.
    """
    try:
        with h5py.File(path, "r") as file:
            check_kind(file, path, FORMAT, VERSION, "give topology.h5 of `chromabuild topology` of this version")
            yield file
    except HARMED as error:
        raise BadInputError(f"cannot read {path} as a topology file ({error}): run chromabuild topology") from error


def template_groups(file: h5py.File) -> list[h5py.Group]:
    """The kinds of molecules in an open topology file, in their order."""
    return [file["template"][name] for name in sorted(file["template"], key=int)]


def _put(group: h5py.Group, name: str, values: np.ndarray) -> None:
    """An array with checksums (an empty one has nothing to check)."""
    chunks = {"fletcher32": True, "chunks": (min(len(values), _ROWS_A_CHUNK), *values.shape[1:])} if values.size else {}
    group.create_dataset(name, data=values, **chunks)


def _shifted(atoms: np.ndarray, molecule_size: int, count: int, start: int) -> np.ndarray:
    """Atom indices within a molecule -> global indices of ``count`` molecules that begin at atom ``start``."""
    offsets = start + molecule_size * np.arange(count, dtype=np.int64)
    return (atoms[None].astype(np.int64) + offsets[:, None, None]).reshape(-1, atoms.shape[1])


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
