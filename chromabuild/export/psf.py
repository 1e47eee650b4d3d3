"""CHARMM PSF for other programs (extended columns, X-PLOR atom types), for systems that a text file can hold."""

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.molecule.solute import MAX_RESIDUES_PER_SEGMENT, Solute, base_36

MAX_ATOMS = 999_999_999  # the largest index that leaves a blank in a column of ten, for readers that split at blanks


def write_psf(topology: Topology, path: str | Path, solute: Solute | None = None) -> None:
    """Write atoms, bonds, angles, dihedrals, impropers and cross-terms in the order of the topology.

    ``solute`` gives every copy of a molecule its own segment ids and residue numbers; without it copies repeat those of
    their template. Solvent residues are numbered from 1 in segments of 9,999 residues, named by the first letter of
    their template's segment id and three base-36 digits. Fields are in CHARMM's columns and also separated by blanks
    (flag NAMD), so both kinds of readers agree. Raises BadInputError for too many atoms.
    """
    n_atoms = topology.n_atoms
    if n_atoms > MAX_ATOMS:
        raise BadInputError(f"{path}: {n_atoms:,} atoms are too many for a PSF (at most {MAX_ATOMS:,}): "
                            "give other programs a part of the system")
    bonds = topology.term("bond")["atoms"]
    dihedrals, impropers = _dihedrals(topology)
    impropers = np.concatenate([impropers, topology.term("improper")["atoms"]])
    nothing = np.empty((0, 2), dtype=np.int64)
    with atomic_path(path) as part, open(part, "w", encoding="ascii") as file:
        file.write(f"PSF EXT XPLOR NAMD\n\n{1:10d} !NTITLE\n* chromabuild, force field {topology.force_field}\n\n")
        file.write(f"{n_atoms:10d} !NATOM\n")
        file.writelines(_atom_lines(topology, solute))
        file.write("\n")
        _write_section(file, "!NBOND: bonds", bonds, 4)
        _write_section(file, "!NTHETA: angles", topology.term("angle")["atoms"], 3)
        _write_section(file, "!NPHI: dihedrals", dihedrals, 2)
        _write_section(file, "!NIMPHI: impropers", impropers, 2)
        _write_section(file, "!NDON: donors", nothing, 4)
        _write_section(file, "!NACC: acceptors", nothing, 4)
        cmap = topology.term("cmap")["atoms"]
        if len(cmap):
            _write_section(file, "!NCRTERM: cross-terms", np.hstack([cmap[:, :4], cmap[:, 1:]]), 1)


def _dihedrals(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Proper and improper dihedrals, (k, 4) each, sorted.

    A dihedral with several periodicities is one entry. AMBER's impropers stand among the dihedrals: they are those
    whose consecutive atoms are not all bonded. Both are decided once for each kind of molecule.
    """
    kinds = []
    for template in topology.templates:
        atoms = template.dihedral_atoms.astype(np.int64)
        high, low = atoms[:, 0] << 32 | atoms[:, 1], atoms[:, 2] << 32 | atoms[:, 3]
        order = np.lexsort((low, high))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
        rows = atoms[order[new]]
        bonded = _pair_keys(template.bond_atoms.astype(np.int64), template.n_atoms)
        proper = np.ones(len(rows), dtype=bool)
        for column in range(3):
            proper &= np.isin(_pair_keys(rows[:, column:column + 2], template.n_atoms), bonded)
        kinds.append((rows[proper], rows[~proper]))
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for t, count, start in zip(topology.run_template, topology.run_count, topology.run_first_atom[:-1], strict=True):
        offset = start + topology.templates[t].n_atoms * np.arange(count, dtype=np.int64)
        for rows, pieces in zip(kinds[t], found, strict=True):
            if len(rows):
                pieces.append((rows + offset[:, None, None]).reshape(-1, 4))
    nothing = np.empty((0, 4), dtype=np.int64)
    return np.concatenate([nothing, *found[0]]), np.concatenate([nothing, *found[1]])


def _pair_keys(pairs: np.ndarray, n_atoms: int) -> np.ndarray:
    """One integer per unordered pair."""
    return pairs.min(axis=1) * n_atoms + pairs.max(axis=1)


def _atom_lines(topology: Topology, solute: Solute | None) -> Iterator[str]:
    """One line an atom: index, segment, residue number, residue, name, type, charge, mass."""
    residues_before: dict[str, int] = {}
    solute_residue = 0
    index = 0
    for t, count in zip(topology.run_template, topology.run_count, strict=True):
        template = topology.templates[t]
        tails = _line_tails(template, topology.lj_name)
        n_residues = len(template.residue_name)
        in_solute = solute is not None and solute_residue < solute.n_residues
        for _ in range(count):
            if in_solute:
                part = slice(solute_residue, solute_residue + n_residues)
                labels = [(solute.segment_name[s], number) for s, number in
                          zip(solute.residue_segment[part], solute.residue_number[part], strict=True)]
                solute_residue += n_residues
            elif count == 1 and n_residues > 1:
                labels = [(segid.decode(), number) for segid, number in
                          zip(template.residue_segid, template.residue_number, strict=True)]
            else:
                letter = template.residue_segid[0].decode()[:1]
                before = residues_before.get(letter, 0)
                residues_before[letter] = before + n_residues
                labels = [solvent_label(letter, before + k) for k in range(n_residues)]
            for residue, tail in zip(template.atom_residue, tails, strict=True):
                index += 1
                segid, number = labels[residue]
                yield f"{index:10d} {segid:<8s} {number:<8d} {tail}"


def _line_tails(template: MoleculeTemplate, lj_name: np.ndarray) -> list[str]:
    """What is the same in every copy of a molecule."""
    return [
        f"{template.residue_name[residue].decode():<8s} {name.decode():<8s} {lj_name[kind].decode():<4s} "
        f"{charge:14.6f}{mass:14.4f}{0:8d}\n"
        for residue, name, kind, charge, mass in zip(template.atom_residue, template.atom_name, template.lj_type,
                                                     template.charge, template.mass, strict=True)
    ]


def solvent_label(letter: str, index: int) -> tuple[str, int]:
    """Segment id and residue number of the solvent residue ``index`` (from 0) of a species."""
    segment, number = divmod(index, MAX_RESIDUES_PER_SEGMENT)
    return letter + base_36(segment, 3), number + 1


def _write_section(file: TextIO, label: str, atoms: np.ndarray, tuples_a_line: int) -> None:
    """Index tuples, counted from 1, in columns of ten."""
    file.write(f"{len(atoms):10d} {label}\n")
    width = tuples_a_line * atoms.shape[1]
    flat = (atoms + 1).ravel()
    whole = len(flat) // width * width
    line = "%10d" * width + "\n"
    file.writelines(line % tuple(row) for row in flat[:whole].reshape(-1, width).tolist())
    if whole < len(flat):
        file.write("%10d" * (len(flat) - whole) % tuple(flat[whole:].tolist()) + "\n")
    file.write("\n")
