"""A solute as one structure file: mmCIF, BinaryCIF or PDB.

Categories and items: PDBx/mmCIF dictionary (mmcif.wwpdb.org). Every molecule is a chain of its own (``label_asym_id``)
and an instance of an entity, molecules of one sequence of the same; ``auth_asym_id`` and ``auth_seq_id`` are the
segments and residue numbers of all other files of ours.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import gemmi
import numpy as np

from chromabuild import __version__
from chromabuild.analysis.secondary_structure import Stretch, stretches
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.export.blocks import row_blocks
from chromabuild.export.solvent import SolventKind, solvent_lines
from chromabuild.molecule.bond_orders import double_bonds
from chromabuild.molecule.entities import chain_name, entity_of_molecules, place_in_molecule
from chromabuild.molecule.residues import SITE, ResidueTemplate, library_needed, modifications, residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.shards import StoredPositions, binary_cif
from chromabuild.shards.binary_cif_blocks import BlockColumn, Blocks, write_file

LARGEST_PDB = 99_999
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BLOCK = 1 << 16
_LINE = 80

Category = tuple[str, list[str], list[tuple[str, ...]]]
"""Name, items, rows; ``?`` and ``.`` are values that are not there."""


def write_structure(solute: Solute, path: Path, title: str, provenance: dict | None = None,
                    solvent: Sequence[SolventKind] = ()) -> Path:
    """Write a solute, with ``solvent`` behind it, in the format of the file's suffix: ``.cif``, ``.bcif`` or ``.pdb``.

    A PDB file has at most 99,999 atoms in 62 chains, which get letters in the order of their molecules; waters and ions
    of one kind are a chain there, numbered from 1. Raises BadInputError for another suffix and for more than a PDB file
    holds.
    """
    writers = {".cif": _write_text, ".bcif": _write_binary, ".pdb": _write_pdb}
    if path.suffix not in writers:
        raise BadInputError(f"{path} is no structure file that can be written: name it .cif, .bcif or .pdb")
    path.parent.mkdir(parents=True, exist_ok=True)
    categories = _with_solvent(_descriptions(solute, title, provenance or {}), solute, solvent)
    writers[path.suffix](path, solute, categories, solvent)
    return path


def _with_solvent(categories: list[Category], solute: Solute, solvent: Sequence[SolventKind]) -> list[Category]:
    """The categories with an entity and a chain for each kind of water and ion."""
    if not solvent:
        return categories
    first = max(entity_of_molecules(solute)) + 1
    chains = _solvent_chains(solute, solvent)
    names = ["water" if kind.is_water else f"{kind.residue} ion" for kind in solvent]
    rows = {"entity": [(str(entity), "water" if kind.is_water else "non-polymer", "syn", name, str(kind.count))
                       for entity, (kind, name) in enumerate(zip(solvent, names, strict=True), first)],
            "struct_asym": [(chain, str(entity), "?") for entity, chain in enumerate(chains, first)]}
    nonpoly = [(str(entity), name, kind.residue) for entity, (kind, name) in
               enumerate(zip(solvent, names, strict=True), first)]
    rows |= _components([(kind.residue, "non-polymer", "?", "?", zip(kind.names, kind.elements, strict=True))
                         for kind in solvent])
    kinds = {kind.residue for kind in solvent}
    rows["chem_comp_bond"] = _bonds(template for template in residue_library().values() if template.kind == "water"
                                    and template.pdb_name in kinds)
    known = {own for name, _, own_rows in categories if name == "atom_type" for own in own_rows}
    rows["atom_type"] = [row for row in rows["atom_type"] if row not in known]
    if not any(name == "pdbx_entity_nonpoly" for name, *_ in categories):
        categories = [*categories, ("pdbx_entity_nonpoly", ["entity_id", "name", "comp_id"], [])]
    rows["pdbx_entity_nonpoly"] = nonpoly
    return [(name, items, [*own, *(row for row in rows.get(name, []) if row not in own)])
            for name, items, own in categories]


def _solvent_chains(solute: Solute, solvent: Sequence[SolventKind]) -> list[str]:
    """One a kind, behind those of the molecules."""
    return [chain_name(len(solute.molecule_name) + k) for k in range(len(solvent))]


def _descriptions(solute: Solute, title: str, provenance: dict) -> list[Category]:
    """All categories but the atoms."""
    library = list(residue_library().values())
    library_index = {template.name: k for k, template in enumerate(library)}
    names = np.array([template.pdb_name for template in library])
    first = solute.molecule_first_residue
    sequences = [names[solute.residue_template[a:b]].tolist() for a, b in zip(first[:-1], first[1:], strict=True)]
    chains = [chain_name(k) for k in range(len(sequences))]
    is_dna = [library[solute.residue_template[k]].kind == "nucleotide" for k in first[:-1]]
    entities = entity_of_molecules(solute)
    members: dict[int, list[int]] = {}
    for molecule, entity in enumerate(entities):
        members.setdefault(entity, []).append(molecule)
    of_entity = {entity: (molecules[0], [chains[k] for k in molecules]) for entity, molecules in members.items()}
    lone = {entity: library[solute.residue_template[first[molecule]]] for entity, (molecule, _) in of_entity.items()
            if library[solute.residue_template[first[molecule]]].kind in ("water", "ion")}
    poly, sequence_rows = [], []
    for entity, (molecule, strands) in of_entity.items():
        if entity in lone:
            continue
        sequence = sequences[molecule]
        kind = "polydeoxyribonucleotide" if is_dna[molecule] else "polypeptide(L)"
        part = slice(*first[molecule:molecule + 2])
        parents = [library[library_index[library[k].parent]].pdb_name if library[k].modification else names[k]
                   for k in solute.residue_template[part].tolist()]
        is_modified = [not library[k].is_standard for k in solute.residue_template[part].tolist()]
        canonical = gemmi.one_letter_code(parents)
        written = "".join(f"({name})" if is_dna[molecule] or changed else letter for name, changed, letter
                          in zip(sequence, is_modified, canonical, strict=True))
        poly.append((str(entity), kind, "no", "yes" if any(is_modified) else "no", written, canonical,
                     ",".join(strands)))
        sequence_rows += [(str(entity), str(k), name, "n") for k, name in enumerate(sequence, 1)]
    categories: list[Category] = [
        ("entry", ["id"], [("CHROMABUILD",)]),
        ("struct", ["entry_id", "title"], [("CHROMABUILD", title)]),
        ("exptl", ["entry_id", "method"], [("CHROMABUILD", "THEORETICAL MODEL")]),
        ("software", ["pdbx_ordinal", "name", "version", "classification"],
         [("1", "chromabuild", __version__, "model building")]),
        ("chromabuild_provenance", ["entry_id", "json"],
         [("CHROMABUILD", json.dumps(provenance, sort_keys=True, indent=1))]),
        ("entity", ["id", "type", "src_method", "pdbx_description", "pdbx_number_of_molecules"],
         [(str(entity), _entity_type(lone.get(entity)), "syn" if is_dna[molecule] or entity in lone else "man",
           solute.molecule_name[molecule], str(len(strands))) for entity, (molecule, strands) in of_entity.items()]),
        ("entity_poly", ["entity_id", "type", "nstd_linkage", "nstd_monomer", "pdbx_seq_one_letter_code",
                         "pdbx_seq_one_letter_code_can", "pdbx_strand_id"], poly),
        ("entity_poly_seq", ["entity_id", "num", "mon_id", "hetero"], sequence_rows),
        ("struct_asym", ["id", "entity_id", "details"],
         [(chain, str(entity), "?" if nucleosome < 0 else f"nucleosome {nucleosome + 1}") for chain, entity, nucleosome
          in zip(chains, entities, solute.molecule_nucleosome.tolist(), strict=True)])]
    components = _components(_monomers(solute))
    categories += [("chem_comp", ["id", "type", "mon_nstd_flag", "mon_nstd_parent_comp_id"], components["chem_comp"]),
                   ("chem_comp_atom", ["comp_id", "atom_id", "type_symbol"], components["chem_comp_atom"]),
                   ("chem_comp_bond", ["comp_id", "atom_id_1", "atom_id_2", "value_order"],
                    _bonds(library[k] for k in np.unique(solute.residue_template).tolist())),
                   ("atom_type", ["symbol"], components["atom_type"])]
    if lone:
        categories.append(("pdbx_entity_nonpoly", ["entity_id", "name", "comp_id"],
                           [(str(entity), solute.molecule_name[of_entity[entity][0]], template.pdb_name)
                            for entity, template in lone.items()]))
    found = [(k, stretch) for k in range(len(chains)) if not is_dna[k] and entities[k] not in lone
             for stretch in stretches(solute, k)]
    helices = [(k, stretch) for k, stretch in found if stretch.kind == "helix"]
    strands = [(k, stretch) for k, stretch in found if stretch.kind == "strand"]
    ends = [f"{end}_{item}" for end in ("beg", "end") for item in (
        "label_comp_id", "label_asym_id", "label_seq_id", "auth_asym_id", "auth_seq_id")]

    def columns(molecule: int, stretch: Stretch) -> tuple[str, ...]:
        found: list[str] = []
        for end in (stretch.first, stretch.last):
            k = int(first[molecule]) + end
            found += [sequences[molecule][end], chains[molecule], str(end + 1),
                      solute.segment_name[solute.residue_segment[k]], str(solute.residue_number[k])]
        return tuple(found)

    if helices:
        categories.append(("struct_conf", ["id", "conf_type_id", *ends],
                           [(f"HELX{n}", "HELX_P", *columns(*row)) for n, row in enumerate(helices, 1)]))
        categories.append(("struct_conf_type", ["id"], [("HELX_P",)]))
    if strands:
        categories.append(("struct_sheet_range", ["sheet_id", "id", *ends],
                           [(f"S{n}", "1", *columns(*row)) for n, row in enumerate(strands, 1)]))
        categories.append(("struct_sheet", ["id"], [(f"S{n}",) for n in range(1, len(strands) + 1)]))
    modified = _modified_residues(solute, chains)
    if modified:
        categories.append(("pdbx_struct_mod_residue",
                           ["id", "label_asym_id", "label_comp_id", "label_seq_id", "auth_asym_id", "auth_comp_id",
                            "auth_seq_id", "parent_comp_id", "details"], modified))
    if solute.circular or solute.links:
        partner = [f"ptnr{n}_label_{item}" for n in (1, 2) for item in ("asym_id", "comp_id", "seq_id", "atom_id")]
        rows = [("covale", chains[k], sequences[k][-1], str(len(sequences[k])), "O3'", chains[k], sequences[k][0], "1",
                 "P") for k in solute.circular]
        rows += _links(solute, chains)
        kinds = [kind for kind, *_ in rows]
        categories.append(("struct_conn", ["id", "conn_type_id", *partner],
                           [(f"{kind}{kinds[:k].count(kind) + 1}", kind, *row) for k, (kind, *row) in enumerate(rows)]))
        categories.append(("struct_conn_type", ["id"], [(kind,) for kind in dict.fromkeys(kinds)]))
    return categories


def _symbols(template: ResidueTemplate) -> list[str]:
    """Elements in capitals; X, which is PDBx's unknown one, for a site without mass."""
    return ["X" if element == SITE else element.upper() for element in template.elements]


def _entity_type(lone: ResidueTemplate | None) -> str:
    """Of a molecule that is a water or an ion; None: that is a polymer."""
    return "polymer" if lone is None else "water" if lone.kind == "water" else "non-polymer"


def _monomers(solute: Solute) -> list[tuple[str, str, str, str, Iterator[tuple[str, str]]]]:
    """Name, type, whether it is standard, parent, and atoms with elements, of each residue of the library that is
    there; ends of chains are residues of their own, with the same name."""
    library, rows = list(residue_library().values()), []
    for k in np.unique(solute.residue_template).tolist():
        template = library[k]
        peptide = "peptide linking" if template.pdb_name == "GLY" else "L-peptide linking"
        if template.kind in ("water", "ion"):
            rows.append((template.pdb_name, "non-polymer", "?", "?",
                         zip(template.atoms, _symbols(template), strict=True)))
            continue
        parent = "?" if template.is_standard else residue_library()[template.parent].pdb_name
        rows.append((template.pdb_name, "DNA linking" if template.kind == "nucleotide" else peptide,
                     "y" if template.is_standard else "n", parent, zip(template.atoms, template.elements, strict=True)))
    return rows


def _components(rows: Sequence[tuple[str, str, str, str, Iterable[tuple[str, str]]]]
                ) -> dict[str, list[tuple[str, ...]]]:
    """Rows of the categories of chemical components, each once, of what ``_monomers`` gives."""
    components, atoms, elements = {}, {}, {}
    for name, *about, own in rows:
        components[name, *about] = None
        for atom, element in own:
            atoms[name, atom, element.upper()] = None
            elements[(element.upper(),)] = None
    return {"chem_comp": list(components), "chem_comp_atom": list(atoms), "atom_type": list(elements)}


def _bonds(templates: Iterable[ResidueTemplate]) -> list[tuple[str, ...]]:
    """Rows of chem_comp_bond, each bond once: PyMOL asks the web for those that a file does not tell."""
    rows: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
    for template in templates:
        double = double_bonds(template.name)
        for row, (a, b) in enumerate(template.bonds.tolist()):
            if SITE not in (template.elements[a], template.elements[b]):
                names = template.atoms[a], template.atoms[b]
                rows.setdefault((template.pdb_name, frozenset(names)),
                                (template.pdb_name, *names, "doub" if row in double else "sing"))
    return list(rows.values())


def _links(solute: Solute, chains: list[str]) -> list[tuple[str, ...]]:
    """Rows of struct_conn, without numbers, of the bonds of side chains."""
    library, rows = list(residue_library().values()), []
    for pair in solute.links:
        partners = []
        for k in pair:
            template = library[solute.residue_template[k]]
            molecule = int(np.searchsorted(solute.molecule_first_residue, k, side="right")) - 1
            partners += [chains[molecule], template.pdb_name,
                         str(k - int(solute.molecule_first_residue[molecule]) + 1), template.link_atom]
        kind = "metalc" if "ZN" in (partners[3], partners[7]) else "disulf" if partners[3] == partners[7] else "covale"
        rows.append((kind, *partners))
    return rows


def _modified_residues(solute: Solute, chains: list[str]) -> list[tuple[str, ...]]:
    """Rows of pdbx_struct_mod_residue, in the order of the residues."""
    library = list(residue_library().values())
    is_modified = np.array([bool(template.modification) for template in library])
    rows = []
    for number, k in enumerate(np.flatnonzero(is_modified[solute.residue_template]).tolist(), start=1):
        template = library[solute.residue_template[k]]
        molecule = int(np.searchsorted(solute.molecule_first_residue, k, side="right")) - 1
        parent = residue_library()[template.parent].pdb_name
        rows.append((str(number), chains[molecule], template.pdb_name,
                     str(k - int(solute.molecule_first_residue[molecule]) + 1),
                     solute.segment_name[solute.residue_segment[k]], template.pdb_name, str(solute.residue_number[k]),
                     parent, modifications()[template.modification].title))
    return rows


class _Atoms:
    """Columns of atom_site, of residues and of the library's atoms; atoms are looked up in blocks."""

    def __init__(self, solute: Solute) -> None:
        self._solute = solute
        library = library_needed(solute.residue_template)
        self._first = np.cumsum([0, *(len(template.atoms) for template in library)])
        self.names = [name for template in library for name in template.atoms]
        self.elements = [symbol for template in library for symbol in _symbols(template)]
        self.residue_names = [template.pdb_name for template in library]
        self.groups = ["ATOM" if template.is_standard else "HETATM" for template in library]
        self.molecule, self.place = place_in_molecule(solute)
        self.entity = entity_of_molecules(solute)

    def library_atom(self, atoms: slice, residue: np.ndarray) -> np.ndarray:
        """Places in the library of a block of atoms in their residues."""
        within = np.arange(atoms.start, atoms.stop) - self._solute.residue_first_atom[residue]
        return self._first[self._solute.residue_template[residue]] + within


_ATOM_ITEMS = ["group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id",
               "label_entity_id", "label_seq_id", "pdbx_PDB_ins_code", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy",
               "B_iso_or_equiv", "auth_seq_id", "auth_asym_id", "pdbx_PDB_model_num"]


def _write_text(path: Path, solute: Solute, categories: list[Category], solvent: Sequence[SolventKind] = ()) -> None:
    with atomic_path(path) as part, open(part, "w", encoding="ascii") as file:
        file.writelines(_lines(solute, categories, solvent))


def _lines(solute: Solute, categories: list[Category], solvent: Sequence[SolventKind]) -> Iterator[str]:
    """Of an mmCIF file."""
    yield "data_CHROMABUILD\n"
    for name, items, rows in categories:
        yield from _text_of(name, items, rows)
    yield "#\nloop_\n" + "".join(f"_atom_site.{item}\n" for item in _ATOM_ITEMS)
    for block in _atom_lines(solute):
        yield from block
    for block in solvent_lines(list(solvent), solute.n_atoms + 1, max(entity_of_molecules(solute)) + 1,
                               _solvent_chains(solute, solvent),
                               [[_quoted(name) for name in kind.names] for kind in solvent]):
        yield from block
    yield "#\n"


def _text_of(name: str, items: list[str], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Lines of a category: pairs where it has one row, a table where it has several."""
    yield "#\n"
    if len(rows) == 1:
        width = max(map(len, items)) + len(name) + 3
        for item, value in zip(items, rows[0], strict=True):
            yield f"_{name}.{item}".ljust(width) + f" {_quoted(value)}\n"
        return
    yield "loop_\n"
    for item in items:
        yield f"_{name}.{item}\n"
    for row in rows:
        yield " ".join(map(_quoted, row)) + "\n"


def _quoted(value: str) -> str:
    """A value as CIF writes it: bare, in quotes, or as a text of several lines; long words are broken."""
    if "\n" not in value and len(value) > _LINE and " " not in value:
        value = "\n".join(value[k:k + _LINE] for k in range(0, len(value), _LINE))
    if "\n" in value or ("'" in value and '"' in value):
        return "\n;" + value.replace("\n;", "\n ;") + "\n;"  # a semicolon that begins a line would end the text
    if value and not set(value) & set(" '\"#;\t") and value[0] not in "_$[]" and value.lower() not in (
            "loop_", "stop_", "global_", "data_"):
        return value
    return f'"{value}"' if '"' not in value else f"'{value}'"


def _atom_lines(solute: Solute) -> Iterator[list[str]]:
    atoms = _Atoms(solute)
    of_atom = [f"{element} {_quoted(name)} . " for element, name in zip(atoms.elements, atoms.names, strict=True)]
    for start in range(0, solute.n_atoms, _BLOCK):
        block = slice(start, min(start + _BLOCK, solute.n_atoms))
        residue = solute.atom_residue[block]
        low, high = int(residue[0]), int(residue[-1]) + 1
        of_residue = []
        for k in range(low, high):
            molecule = int(atoms.molecule[k])
            segment = solute.segment_name[solute.residue_segment[k]]
            kind = int(solute.residue_template[k])
            of_residue.append((atoms.groups[kind], f"{atoms.residue_names[kind]} {chain_name(molecule)} "
                               f"{atoms.entity[molecule]} {atoms.place[k]} ? ",
                               f" 1.00 0.00 {solute.residue_number[k]} {segment} 1\n"))
        position = np.asarray(solute.position[block], dtype=float).tolist()
        rows = zip(range(start + 1, block.stop + 1), (residue - low).tolist(),
                   atoms.library_atom(block, residue).tolist(), position, strict=True)
        yield [f"{of_residue[k][0]} {number} {of_atom[atom]}{of_residue[k][1]}{x:.3f} {y:.3f} {z:.3f}{of_residue[k][2]}"
               for number, k, atom, (x, y, z) in rows]


def _write_binary(path: Path, solute: Solute, categories: list[Category], solvent: Sequence[SolventKind] = ()) -> None:
    described = [(f"_{name}", len(rows), [binary_cif.texts(item, *_distinct(list(values), np.arange(len(rows))))
                                           for item, values in zip(items, zip(*rows, strict=True), strict=True)])
                 for name, items, rows in categories]
    n = solute.n_atoms + sum(kind.n_atoms for kind in solvent)
    with atomic_path(path) as part:
        write_file(part, "CHROMABUILD", [*described, ("_atom_site", n, _atom_columns(solute, solvent, path.parent))])


def _atom_columns(solute: Solute, solvent: Sequence[SolventKind], folder: Path) -> list[dict | BlockColumn]:
    """Columns of atom_site, in blocks; positions wait in ``folder``."""
    atoms = _Atoms(solute)
    n = solute.n_atoms + sum(kind.n_atoms for kind in solvent)
    position, first = StoredPositions(n, folder), 0
    own = (np.asarray(solute.position[rows], dtype=float) for rows in row_blocks(solute.n_atoms))
    for block in itertools.chain(own, (block.reshape(-1, 3) for kind in solvent for block in kind.blocks())):
        position.put(first, np.round(1000 * block))
        first += len(block)

    def column(of_residue: np.ndarray | None, of_kind: Callable[[int, np.ndarray], np.ndarray]) -> Blocks:
        """Values of the solute's residues, None: places of atoms in the library, then of molecules (m,) of each kind of
        solvent, (m, atoms)."""
        def blocks() -> Iterator[np.ndarray]:
            for rows in row_blocks(solute.n_atoms):
                residue = solute.atom_residue[rows]
                yield atoms.library_atom(rows, residue) if of_residue is None else of_residue[residue]
            for k, kind in enumerate(solvent):
                for some in row_blocks(kind.count):
                    yield of_kind(k, np.arange(some.start, some.stop)).ravel()
        return blocks

    def texts(item: str, values: list[str], of_residue: np.ndarray | None, more: list[list[str]]) -> BlockColumn:
        """``more``: those of the atoms of a molecule of each kind of solvent."""
        first = np.cumsum([len(values), *map(len, more)])
        distinct, place = _distinct([*values, *itertools.chain(*more)], np.arange(first[-1]))
        of_own = None if of_residue is None else of_residue.astype(np.int64)
        blocks = column(of_own, lambda k, some: np.tile(np.arange(first[k], first[k + 1]), len(some)))
        return BlockColumn(item, lambda: (place[block] for block in blocks()), distinct=distinct)

    def alike(of_kinds: Sequence[str]) -> list[list[str]]:
        return [[one] * len(kind.names) for one, kind in zip(of_kinds, solvent, strict=True)]

    def numbers(of_residue: np.ndarray, of_molecule: Callable[[np.ndarray], np.ndarray]) -> Blocks:
        return column(of_residue.astype(np.int64),
                      lambda k, some: np.repeat(of_molecule(some), len(solvent[k].names)))

    entities, behind = max(atoms.entity) + 1, _solvent_chains(solute, solvent)
    chains = [chain_name(k) for k in range(len(solute.molecule_name))]
    of_solute = np.zeros(solute.n_residues)
    return [
        texts("group_PDB", atoms.groups, solute.residue_template, alike(["HETATM"] * len(solvent))),
        BlockColumn("id", lambda: (np.arange(rows.start, rows.stop) + 1 for rows in row_blocks(n)),
                    as_differences=True, as_runs=True),
        texts("type_symbol", atoms.elements, None, [kind.elements for kind in solvent]),
        texts("label_atom_id", atoms.names, None, [kind.names for kind in solvent]),
        binary_cif.absent("label_alt_id", ".", n),
        texts("label_comp_id", atoms.residue_names, solute.residue_template, alike([kind.residue for kind in solvent])),
        texts("label_asym_id", chains, atoms.molecule, alike(behind)),
        texts("label_entity_id", [str(entity) for entity in atoms.entity], atoms.molecule,
              alike([str(entities + k) for k in range(len(solvent))])),
        BlockColumn("label_seq_id", numbers(atoms.place, np.zeros_like), as_runs=True,
                    mask=numbers(of_solute, np.ones_like) if solvent else None),
        binary_cif.absent("pdbx_PDB_ins_code", "?", n),
        *(BlockColumn(f"Cartn_{axis}", partial(_thousandths, position, k), as_differences=True, factor=1000)
          for k, axis in enumerate("xyz")),
        binary_cif.constant("occupancy", 1, n), binary_cif.constant("B_iso_or_equiv", 0, n),
        BlockColumn("auth_seq_id", numbers(solute.residue_number, lambda some: some + 1), as_runs=True),
        texts("auth_asym_id", solute.segment_name, solute.residue_segment, alike(behind)),
        binary_cif.constant("pdbx_PDB_model_num", 1, n, integer=True)]


def _thousandths(position: StoredPositions, axis: int) -> Iterator[np.ndarray]:
    return (np.round(1000 * position[rows][:, axis]).astype(np.int64) for rows in row_blocks(len(position)))


def _distinct(values: list[str], which: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Distinct strings, and the one of each row, where rows name places among ``values``."""
    number: dict[str, int] = {}
    of_value = np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int64)
    return list(number), of_value[which]


def _write_pdb(path: Path, solute: Solute, categories: list[Category], solvent: Sequence[SolventKind] = ()) -> None:
    letters = _LETTERS + _LETTERS.lower() + "0123456789"
    chain_of = _pdb_chains(solute) | {chain: chain for chain in _solvent_chains(solute, solvent)}
    n_chains = len(set(chain_of.values()))
    n_atoms = solute.n_atoms + sum(kind.n_atoms for kind in solvent)
    if n_atoms > LARGEST_PDB or n_chains > len(letters):
        raise BadInputError(f"{path} would have {n_atoms:,} atoms in {n_chains} chains, and a PDB file holds "
                            f"{LARGEST_PDB:,} in {len(letters)}: write .cif or .bcif, or choose a --region")
    block = gemmi.cif.read_string("".join(_lines(solute, categories, solvent))).sole_block()
    structure = gemmi.make_structure_from_block(block)
    structure.setup_entities()
    # Segments are chains there; a PDB has a letter for each molecule, whose residues stand together.
    letter_of = dict(zip(dict.fromkeys(chain_of.values()), letters, strict=False))
    chains = {key: gemmi.Chain(letter) for key, letter in letter_of.items()}
    place: dict[tuple[str, str], tuple[str, gemmi.SeqId]] = {}
    for segment in structure[0]:
        for residue in segment:
            chain = chains[chain_of[residue.subchain]]
            before = segment.name, str(residue.seqid)
            if chain_of[residue.subchain] != residue.subchain:  # each was the first of its own molecule
                residue.seqid = gemmi.SeqId(len(chain) + 1, " ")
            place[before] = chain.name, residue.seqid
            chain.add_residue(residue)
    for bond in structure.connections:  # LINK and SSBOND
        for partner in (bond.partner1, bond.partner2):
            partner.chain_name, partner.res_id.seqid = place[partner.chain_name, str(partner.res_id.seqid)]
    model = gemmi.Model(1)
    for chain in chains.values():
        model.add_chain(chain)
    while len(structure):
        del structure[0]
    structure.add_model(model)
    structure.helices.clear()
    structure.sheets.clear()
    with atomic_path(path) as part:
        part.write_text(structure.make_pdb_string(), encoding="ascii")


def _pdb_chains(solute: Solute) -> dict[str, str]:
    """Chain of each molecule, by its own name: waters and ions of one kind share one, named for the kind."""
    library, kinds = list(residue_library().values()), solute.residue_template[solute.molecule_first_residue[:-1]]
    own = {chain_name(k): library[kind] for k, kind in enumerate(kinds.tolist())}
    return {chain: f"of {kind.pdb_name}" if kind.kind in ("water", "ion") else chain for chain, kind in own.items()}
