"""BinaryCIF of a brick: `_entry`, `_cell` and `_atom_site`, chains named by the four-character segments.

Entities, and places in their sequences, are those of the structure file of the whole solute.
"""

from functools import cache

import numpy as np

from chromabuild.base.box_vectors import edges_and_angles
from chromabuild.molecule.residues import library_needed, residue_library
from chromabuild.shards import binary_cif
from chromabuild.shards.brick import Brick


def bcif_bytes(brick: Brick) -> bytes:
    """The whole file. Atom ids are global (from 1)."""
    segments, place = _segments(brick), brick.residue_in_entity[:, 1]
    columns = [
        binary_cif.texts("group_PDB", *_of_atoms(brick, "group")),
        binary_cif.integers("id", brick.global_id + 1, delta=True),
        binary_cif.texts("type_symbol", *_of_atoms(brick, "element")),
        binary_cif.texts("label_atom_id", *_of_atoms(brick, "name")),
        binary_cif.absent("label_alt_id", ".", brick.n_atoms),
        binary_cif.texts("label_comp_id", *_of_atoms(brick, "residue")),
        binary_cif.texts("label_asym_id", *segments),
        binary_cif.texts("label_entity_id", *_entities(brick)),
        binary_cif.integers("label_seq_id", place[brick.atom_residue], run_length=True,
                            mask=np.where(place == 0, 1, 0)[brick.atom_residue]),
        binary_cif.absent("pdbx_PDB_ins_code", "?", brick.n_atoms),
        *(binary_cif.thousandths(f"Cartn_{axis}", brick.position[:, k]) for k, axis in enumerate("xyz")),
        binary_cif.constant("occupancy", 1, brick.n_atoms),
        binary_cif.constant("B_iso_or_equiv", 0, brick.n_atoms),
        binary_cif.integers("auth_seq_id", brick.residue_number[brick.atom_residue], run_length=True),
        binary_cif.texts("auth_asym_id", *segments),
        binary_cif.constant("pdbx_PDB_model_num", 1, brick.n_atoms, integer=True),
    ]
    names = ("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma")
    cell = [binary_cif.floats(name, [value]) for name, value
            in zip(names, edges_and_angles(brick.vectors).tolist(), strict=True)]
    entry = binary_cif.texts("id", ["BRICK"], np.zeros(1, dtype=np.int8))
    return binary_cif.file_bytes("BRICK", [("_entry", 1, [entry]), ("_cell", 1, cell),
                                           ("_atom_site", brick.n_atoms, columns)])


@cache
def _library_columns(size: int) -> dict[str, tuple[list[str], np.ndarray, np.ndarray]]:
    """Per text column: distinct strings, string of each atom of the library, first atom of each residue.

    Of the first ``size`` residues, ``library_needed`` by a brick.
    """
    library = list(residue_library().values())[:size]
    sizes = [len(template.atoms) for template in library]
    first = np.cumsum([0, *sizes[:-1]])
    values: dict[str, list[str]] = {"group": [], "element": [], "name": [], "residue": []}
    for template in library:
        n = len(template.atoms)
        values["group"] += ["ATOM" if template.is_standard else "HETATM"] * n
        values["element"] += [element.upper() for element in template.elements]
        values["name"] += template.atoms
        values["residue"] += [template.pdb_name] * n
    columns = {}
    for key, texts in values.items():
        distinct = list(dict.fromkeys(texts))
        index = {text: i for i, text in enumerate(distinct)}
        columns[key] = (distinct, np.array([index[text] for text in texts], dtype=np.int32), first)
    return columns


def _of_atoms(brick: Brick, key: str) -> tuple[list[str], np.ndarray]:
    """Distinct strings and the string of every atom."""
    distinct, of_library_atom, first = _library_columns(len(library_needed(brick.residue_template)))[key]
    return distinct, of_library_atom[first[brick.residue_template][brick.atom_residue] + brick.atom_in_residue]


def _segments(brick: Brick) -> tuple[list[str], np.ndarray]:
    code = np.ascontiguousarray(brick.residue_segment).view("S4").ravel()
    distinct, member = np.unique(code, return_inverse=True)
    return [text.decode().strip() for text in distinct], member[brick.atom_residue]


def _entities(brick: Brick) -> tuple[list[str], np.ndarray]:
    """Distinct entities, and the one of every atom."""
    distinct, member = np.unique(brick.residue_in_entity[:, 0], return_inverse=True)
    return list(map(str, distinct.tolist())), member[brick.atom_residue]
