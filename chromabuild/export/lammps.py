"""LAMMPS input: a data file, the styles and coefficients of the force field, and an input script for each phase.

Formats and units: LAMMPS manual, "read_data", "units real" (kcal/mol, angstrom, fs, atm; ours). ``dihedral_style
fourier`` has the form of our torsions, and bonds and angles are k (x - x0)^2 as ours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from scipy.sparse import coo_array, csr_array

from chromabuild.base.box_vectors import tilt_of, vectors_of
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.amber_terms import SCEE, SCNB, pair_keys, refuse_charmm_terms, scales_of_pairs
from chromabuild.export.blocks import molecule_blocks, row_blocks
from chromabuild.export.implicit_sites import without_sites
from chromabuild.export.lammps_input import RigidTypes, energy_input, phase_input, settings_input, styles_input
from chromabuild.export.parts import (
    heavy_hydrogens,
    held_groups,
    phase_script,
    with_constant_restraints,
    write_texts,
)
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.hydrogens import masses_of_molecules
from chromabuild.forcefield.molecule_runs import MoleculeRuns
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import nonbonded_options
from chromabuild.simulate.protocol import PlannedPhase

LARGEST = 2**31 - 1
"""Atoms: LAMMPS numbers them in 32 bits unless it is built for more."""
_MOLECULES_AT_ONCE = 20_000
_ROWS_AT_ONCE = 5_000
_PHASE = """\
# phase NAME
phase() {
  [[ ! -f "$1.restart" ]] || return 0
  $LMP -in "$1.in" -log "$1.log" -screen none
  mv "$1.restart.part" "$1.restart"
}

"""


@dataclass(frozen=True)
class _Table:
    """Distinct rows of parameters, and which of them the terms of each kind of molecule have."""

    values: np.ndarray
    """(types, parameters)."""
    of_template: list[np.ndarray]
    """(terms,) from 0."""

    @classmethod
    def of(cls, rows: Sequence[np.ndarray]) -> "_Table":
        """From the parameters of the terms of each kind of molecule, (terms, parameters)."""
        values, which = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
        return cls(values, np.split(which.ravel(), np.cumsum([len(one) for one in rows])[:-1]))


def export_lammps(system: BuiltSystem, folder: Path, dynamics: DynamicsSection, phases: Sequence[PlannedPhase] = (),
                  seed: int = 1, end_bonds: Sequence[EndBond] = ()) -> list[Path]:
    """Write ``system.data``, ``start.in`` with the styles of the force field, ``settings.in``, ``energy.in`` and, for
    each of ``phases``, an input script into ``folder``, which is made, and ``run.sh``; gives their paths.

    A phase whose restraints change becomes ten; where hydrogens are heavy, ``heavy.in`` and ``light.in`` have masses.
    Raises BadInputError for terms of the CHARMM force field, 1-4 pairs other than AMBER's, too many atoms, several
    masses of hydrogen, and for a restraint on nothing.
    """
    system, site = without_sites(system, "LAMMPS")
    topology = system.topology
    if topology.n_atoms > LARGEST:
        raise BadInputError(f"{topology.n_atoms:,} atoms are too many for LAMMPS (at most {LARGEST:,}): export --part "
                            "solute")
    for template in topology.templates:
        refuse_charmm_terms(template, "this export does not write")
        _check_pairs(topology, template)
    factor = heavy_hydrogens(phases, "LAMMPS")
    groups = held_groups(phases, topology)
    options = nonbonded_options(dynamics, system.box)
    if site is not None and options.is_switched:
        raise BadInputError("LAMMPS truncates Lennard-Jones in four-point water: leave out dynamics.switch_distance, "
                            "or export to another program")
    if site is not None and tilt_of(system.box).any():
        raise BadInputError("LAMMPS knows four-point water in rectangular boxes alone, and edges of this one lean: "
                            "export to another program")
    used = np.unique(topology.run_template).tolist()
    heavy = masses_of_molecules(topology, factor)
    kinds, which = np.unique(np.concatenate([np.column_stack([
        topology.templates[t].lj_type, topology.templates[t].mass, heavy[t]]) for t in used]), axis=0,
        return_inverse=True)
    kind = dict(zip(used, np.split(which.ravel(), np.cumsum([topology.templates[t].n_atoms for t in used])[:-1]),
                    strict=True))
    bonds = _Table.of([np.column_stack([t.bond_k, t.bond_r0, _is_rigid(t)]) for t in topology.templates])
    angles = _Table.of([np.column_stack([t.angle_k, t.angle_theta0, np.full(len(t.angle_k), t.rigid_water)])
                        for t in topology.templates])
    torsions = _Table.of([np.column_stack([t.dihedral_k, t.dihedral_n, t.dihedral_phase]) for t in topology.templates])
    # Types, from 1, of oxygen, hydrogen, their bond and their angle, and where the oxygen's charge is.
    water = None if site is None else (*(kind[site.template][:2] + 1).tolist(), int(bonds.of_template[site.template][0])
                                       + 1, int(angles.of_template[site.template][0]) + 1, site.distance)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder / "system.data") as part, open(part, "w", encoding="ascii") as file:
        _write_data(file, system, kinds, kind, bonds, angles, torsions)
    ranges = MoleculeRuns.of(topology).ranges(dynamics.trajectory_selection)
    texts = {"start.in": styles_input(topology, kinds[:, 0].astype(int), options, groups, ranges, water),
             "settings.in": settings_input(topology.coulomb_constant, dynamics, options, site is not None),
             "energy.in": energy_input()}
    parts = with_constant_restraints(phases)
    rigid = RigidTypes(*(np.flatnonzero(table.values[:, 2]) + 1 for table in (bonds, angles)))
    for k, phase in enumerate(parts):
        later = {one.group for other in parts[k:] for one in other.restraints}
        texts[f"{phase.stem}.in"] = phase_input(
            phase, parts[k - 1] if k else None, dynamics, seed, sorted(later), end_bonds, rigid,
            None if factor == 1 else "light.in" if phase.hydrogen_mass_factor == 1 else "heavy.in",
            has_velocities=k > 0 or system.velocity is not None)
    if factor != 1:
        for name, column in (("light.in", 1), ("heavy.in", 2)):
            texts[name] = "".join(f"mass {k} {value:.6f}\n" for k, value in enumerate(kinds[:, column].tolist(), 1))
    if parts:
        texts["run.sh"] = phase_script("LMP names the program, with its launcher.", 'LMP="${LMP:-mpirun -np 8 lmp}"',
                                       [_PHASE, *(f"phase {phase.stem}\n" for phase in parts)])
    return [folder / "system.data", *write_texts(folder, texts)]


def _check_pairs(topology: Topology, template: MoleculeTemplate) -> None:
    """Raise BadInputError unless pairs within three bonds, and no others, are left out or scaled as AMBER's are.

    LAMMPS finds these pairs itself, along bonds.
    """
    n = template.n_atoms
    i, j = template.bond_atoms.T
    one = csr_array(coo_array((np.ones(2 * len(i), dtype=np.int32), (np.append(i, j), np.append(j, i))), shape=(n, n)))
    two = one @ one
    near = np.union1d(_reached(one), _reached(two))
    third = np.setdiff1d(_reached(two @ one), near)
    is_usual = np.allclose(scales_of_pairs(topology, template), (SCEE, SCNB), rtol=1e-5)
    if not (is_usual and np.array_equal(third, np.sort(pair_keys(template.pair14_atoms, n)))
            and np.array_equal(np.union1d(near, third), np.unique(pair_keys(template.exclusion, n)))):
        raise BadInputError(f"{template.name} has 1-4 pairs or excluded pairs that are not those of AMBER's force "
                            "fields, for which LAMMPS has no style: export to another program")


def _reached(matrix: csr_array) -> np.ndarray:
    """Ascending keys of the pairs of different atoms among the entries of a symmetric matrix."""
    i, j = matrix.nonzero()
    return np.unique(pair_keys(np.column_stack([i, j])[i < j], matrix.shape[0]))


def _is_rigid(template: MoleculeTemplate) -> np.ndarray:
    """(bonds,) bool: those that dynamics keeps at their length."""
    return np.isin(*(pair_keys(atoms, template.n_atoms) for atoms in (template.bond_atoms, template.constraint_atoms)))


def _write_data(file: TextIO, system: BuiltSystem, kinds: np.ndarray, kind: Mapping[int, np.ndarray], bonds: _Table,
                angles: _Table, torsions: _Table) -> None:
    """``kinds``: (types, 3) Lennard-Jones type and masses of the types of atoms; ``kind``: those of the atoms of each
    kind of molecule, from 0."""
    topology = system.topology
    terms = (("Bond", "bond", bonds), ("Angle", "angle", angles), ("Dihedral", "dihedral", torsions))
    count = topology.run_count
    file.write(f"chromabuild\n\n{topology.n_atoms} atoms\n{len(kinds)} atom types\n")
    for _, name, table in terms:
        size = np.array([len(getattr(template, f"{name}_atoms")) for template in topology.templates])
        file.write(f"{np.sum(size[topology.run_template] * count)} {name}s\n{len(table.values)} {name} types\n")
    file.write("\n")
    vectors = vectors_of(system.box)
    for axis, edge in zip("xyz", np.diag(vectors).tolist(), strict=True):
        file.write(f"0 {edge:.6f} {axis}lo {axis}hi\n")
    if tilt_of(vectors).any():
        file.write("{:.6f} {:.6f} {:.6f} xy xz yz\n".format(*tilt_of(vectors).tolist()))
    _section(file, "Masses", "%.6f", [kinds[:, 1]])
    lj = kinds[:, 0].astype(int)
    _section(file, "Pair Coeffs", "%.10g %.10g", [topology.lj_epsilon[lj], topology.lj_sigma[lj]])
    for title, _, table in terms:
        form = "1 %.10g %d %.10g" if title == "Dihedral" else "%.10g %.10g"
        _section(file, f"{title} Coeffs", form, table.values[:, :form.count("%")].T)
    _numbered(file, "Atoms # full", "%d %d %.8g %.6f %.6f %.6f", _atoms(system, kind))
    if system.velocity is not None:
        _numbered(file, "Velocities", "%.8g %.8g %.8g", (system.velocity[rows] / 1000
                                                       for rows in row_blocks(topology.n_atoms)))
    for title, name, table in terms:
        width = {"bond": 2, "angle": 3, "dihedral": 4}[name]
        _numbered(file, f"{title}s", "%d" + " %d" * width, _terms(topology, name, table))


def _atoms(system: BuiltSystem, kind: Mapping[int, np.ndarray]) -> Iterator[np.ndarray]:
    """(atoms, 6) molecule and type, both from 1, charge and place, some molecules at a time."""
    molecules = 0
    for t, first, count in molecule_blocks(system.topology):
        template = system.topology.templates[t]
        n = template.n_atoms
        yield np.column_stack([
            np.repeat(np.arange(molecules + 1, molecules + count + 1), n), np.tile(kind[t] + 1, count),
            np.tile(template.charge, count), system.position[first:first + count * n]])
        molecules += count


def _terms(topology: Topology, name: str, table: _Table) -> Iterator[np.ndarray]:
    """(terms, 1 + atoms) types and atoms, both from 1, of all terms of a kind, some molecules at a time."""
    for t, count, first in zip(topology.run_template.tolist(), topology.run_count.tolist(),
                               topology.run_first_atom.tolist(), strict=False):
        template = topology.templates[t]
        atoms = getattr(template, f"{name}_atoms").astype(np.int64)
        which = table.of_template[t]
        for start in range(0, count, _MOLECULES_AT_ONCE):
            offset = first + 1 + template.n_atoms * np.arange(start, min(start + _MOLECULES_AT_ONCE, count))
            rows = atoms + offset[:, None, None]
            types = np.broadcast_to((which + 1)[None, :, None], (*rows.shape[:2], 1))
            yield np.concatenate([types, rows], axis=2).reshape(-1, 1 + atoms.shape[1])


def _section(file: TextIO, title: str, form: str, columns: Sequence[np.ndarray]) -> None:
    """A section of columns, (rows,) each."""
    _numbered(file, title, form, [np.column_stack([np.asarray(column, dtype=float) for column in columns])])


def _numbered(file: TextIO, title: str, form: str, blocks: Iterable[np.ndarray]) -> None:
    """A section whose rows are numbered from 1, of blocks (rows, columns); nothing where there is no row."""
    number = 0
    form = f"%d {form}\n"
    for block in blocks:
        if number == 0 and len(block):
            file.write(f"\n{title}\n\n")
        for start in range(0, len(block), _ROWS_AT_ONCE):
            rows = block[start:start + _ROWS_AT_ONCE]
            numbered = np.column_stack([number + 1 + np.arange(len(rows)), rows])
            file.write(form * len(rows) % tuple(numbered.ravel().tolist()))
            number += len(rows)
