"""LAMMPS input: a data file, the styles and coefficients of the force field, and an input script for each phase.

Formats and units: LAMMPS manual, "read_data", "units real" (kcal/mol, angstrom, fs, atm; ours). ``dihedral_style
fourier`` has the form of our torsions, and bonds and angles are k (x - x0)^2 as ours. In a force field of CHARMM
``dihedral_style charmm`` takes its place: a torsion without energy and with a weight of one bears each 1-4 pair.
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
from chromabuild.export.atom_types import AtomTypes, atom_types
from chromabuild.export.blocks import distinct_rows, molecule_blocks, row_blocks, total
from chromabuild.export.charmm_parameters import charmm_terms
from chromabuild.export.implicit_sites import without_sites
from chromabuild.export.lammps_input import (
    RigidTypes,
    energy_input,
    map_file,
    map_input,
    phase_input,
    settings_input,
    styles_input,
)
from chromabuild.export.lammps_maps import CorrectionMaps
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
    atoms: list[np.ndarray]
    """(terms, 2..4) by kind of molecule, from 0."""

    @classmethod
    def of(cls, kinds: Sequence[tuple[np.ndarray, np.ndarray]]) -> "_Table":
        """From atoms and parameters (terms, parameters) of the terms of each kind of molecule."""
        return cls(*distinct_rows([rows for _, rows in kinds]), [atoms for atoms, _ in kinds])


@dataclass(frozen=True)
class _Terms:
    """Bonded terms of a system."""

    bonds: _Table
    """k, r0, and whether dynamics keeps it."""
    angles: _Table
    """k, theta0, those of the Urey-Bradley term in CHARMM, and whether dynamics keeps it."""
    torsions: _Table
    """k, periodicity, phase, and in CHARMM the weight of the 1-4 pair at its ends."""
    impropers: _Table
    """k, psi0."""
    maps: CorrectionMaps


def export_lammps(system: BuiltSystem, folder: Path, dynamics: DynamicsSection, phases: Sequence[PlannedPhase] = (),
                  seed: int = 1, end_bonds: Sequence[EndBond] = ()) -> list[Path]:
    """Write ``system.data``, ``start.in`` with the styles of the force field, ``settings.in``, ``energy.in`` and, for
    each of ``phases``, an input script into ``folder``, which is made, and ``run.sh``; gives their paths.

    A phase whose restraints change becomes ten; where hydrogens are heavy, ``heavy.in`` and ``light.in`` have masses.
    Raises BadInputError for what LAMMPS has no style for, such as 1-4 pairs that are neither AMBER's nor CHARMM's; for
    too many atoms, several masses of hydrogen, and for a restraint on nothing.
    """
    system, site = without_sites(system, "LAMMPS")
    topology = system.topology
    if topology.n_atoms > LARGEST:
        raise BadInputError(f"{topology.n_atoms:,} atoms are too many for LAMMPS (at most {LARGEST:,}): export --part "
                            "solute")
    types = atom_types(topology)
    terms = _terms(topology, types.scaled is not None)
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
    kinds, which = distinct_rows([np.column_stack([types.of_template[t], topology.templates[t].mass, heavy[t]])
                                  for t in used])
    kind = dict(zip(used, which, strict=True))
    # Types, from 1, of oxygen, hydrogen, their bond and their angle, and where the oxygen's charge is.
    water = None if site is None else (
        *(kind[site.template][:2] + 1).tolist(),
        *(int(table.of_template[site.template][0]) + 1 for table in (terms.bonds, terms.angles)), site.distance)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder / "system.data") as part, open(part, "w", encoding="ascii") as file:
        _write_data(file, system, types, kinds, kind, terms)
    ranges = MoleculeRuns.of(topology).ranges(dynamics.trajectory_selection)
    n_maps = len(terms.maps.files)
    texts = {"start.in": styles_input(topology, types, kinds[:, 0].astype(int), options, groups, ranges, water,
                                      terms.maps.headers(topology)),
             "settings.in": settings_input(topology.coulomb_constant, dynamics, options, site is not None, n_maps),
             "energy.in": energy_input(n_maps)}
    if n_maps:
        texts["maps.in"] = map_input(n_maps)
        texts |= {f"cmap{k}.txt": map_file(topology.cmap_energy[numbers])
                  for k, numbers in enumerate(terms.maps.files, 1)}
    parts = with_constant_restraints(phases)
    rigid = RigidTypes(*(np.flatnonzero(table.values[:, -1]) + 1 for table in (terms.bonds, terms.angles)))
    for k, phase in enumerate(parts):
        later = {one.group for other in parts[k:] for one in other.restraints}
        texts[f"{phase.stem}.in"] = phase_input(
            phase, parts[k - 1] if k else None, dynamics, seed, sorted(later), end_bonds, rigid,
            None if factor == 1 else "light.in" if phase.hydrogen_mass_factor == 1 else "heavy.in",
            has_velocities=k > 0 or system.velocity is not None, n_maps=n_maps)
    if factor != 1:
        for name, column in (("light.in", 1), ("heavy.in", 2)):
            texts[name] = "".join(f"mass {k} {value:.6f}\n" for k, value in enumerate(kinds[:, column].tolist(), 1))
    if parts:
        texts["run.sh"] = phase_script("LMP names the program, with its launcher.", 'LMP="${LMP:-mpirun -np 8 lmp}"',
                                       [_PHASE, *(f"phase {phase.stem}\n" for phase in parts)])
    return [folder / "system.data", *write_texts(folder, texts)]


def _terms(topology: Topology, charmm: bool) -> _Terms:
    """Raises BadInputError for what LAMMPS has no style for."""
    templates = topology.templates
    bonds = _Table.of([(t.bond_atoms, np.column_stack([t.bond_k, t.bond_r0, _is_rigid(t)])) for t in templates])
    torsions = [(t.dihedral_atoms, np.column_stack([t.dihedral_k, t.dihedral_n, t.dihedral_phase])) for t in templates]
    if charmm:
        angles, torsions = [], []
        for template in templates:
            _check_charmm(template)
            own = charmm_terms(template)
            angles.append(own.angle_values)
            torsions.append(_weighted(template, own.dihedrals))
    else:
        for template in templates:
            refuse_charmm_terms(template, "LAMMPS")
            _check_pairs(topology, template)
        angles = [np.column_stack([t.angle_k, t.angle_theta0]) for t in templates]
    return _Terms(bonds, _Table.of([(t.angle_atoms, np.column_stack([values, np.full(len(values), t.rigid_water)]))
                                    for t, values in zip(templates, angles, strict=True)]), _Table.of(torsions),
                  _Table.of([(t.improper_atoms, np.column_stack([t.improper_k, t.improper_psi0])) for t in templates]),
                  CorrectionMaps.of(topology))


def _check_charmm(template: MoleculeTemplate) -> None:
    """Raise BadInputError for phases that ``dihedral_style charmm`` and ``improper_style harmonic`` do not take."""
    if (np.abs(template.dihedral_phase - template.dihedral_phase.round()) > 1e-6).any():
        raise BadInputError(f"{template.name} has torsions with a phase that is no whole number of degrees, which "
                            "LAMMPS' styles of CHARMM do not take: export to another program")
    if (template.improper_psi0 % 180 != 0).any():
        raise BadInputError(f"{template.name} has harmonic impropers that rest elsewhere than at 0 or 180 degrees, for "
                            "which LAMMPS has no style: export to another program")


def _weighted(template: MoleculeTemplate, chains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Torsions, none of which counts a 1-4 pair, and one without energy on each pair that does; ``chains``: (d, 4) all
    of four bonded atoms."""
    n = template.n_atoms
    wanted = pair_keys(template.pair14_atoms, n)
    found, first = np.unique(pair_keys(chains[:, [0, 3]], n), return_index=True)
    carriers = chains[first[np.isin(found, wanted)]]
    values = np.column_stack([template.dihedral_k, template.dihedral_n, template.dihedral_phase.round(),
                              np.zeros(len(template.dihedral_k))])
    bare = np.tile([0.0, 1, 0, 1], (len(carriers), 1))
    return np.vstack([template.dihedral_atoms, carriers]), np.vstack([values, bare])


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


def _write_data(file: TextIO, system: BuiltSystem, types: AtomTypes, kinds: np.ndarray, kind: Mapping[int, np.ndarray],
                terms: _Terms) -> None:
    """``kinds``: (k, 3) atom type in ``types`` and masses of LAMMPS' types of atoms; ``kind``: those of the atoms of
    each kind of molecule, from 0."""
    topology = system.topology
    charmm = types.scaled is not None
    tables = (("Bond", terms.bonds, "%.10g %.10g"),
              ("Angle", terms.angles, "%.10g %.10g %.10g %.10g" if charmm else "%.10g %.10g"),
              ("Dihedral", terms.torsions, "%.10g %d %d %g" if charmm else "1 %.10g %d %.10g"),
              ("Improper", terms.impropers, "%.10g %.10g"))
    file.write(f"chromabuild\n\n{topology.n_atoms} atoms\n{len(kinds)} atom types\n")
    for title, table, _ in tables:
        file.write(f"{total(topology, [len(atoms) for atoms in table.atoms])} {title.lower()}s\n"
                   f"{len(table.values)} {title.lower()} types\n")
    file.writelines(f"{header}\n" for header in terms.maps.headers(topology))
    file.write("\n")
    vectors = vectors_of(system.box)
    for axis, edge in zip("xyz", np.diag(vectors).tolist(), strict=True):
        file.write(f"0 {edge:.6f} {axis}lo {axis}hi\n")
    if tilt_of(vectors).any():
        file.write("{:.6f} {:.6f} {:.6f} xy xz yz\n".format(*tilt_of(vectors).tolist()))
    _section(file, "Masses", "%.6f", [kinds[:, 1]])
    of = kinds[:, 0].astype(int)
    lj = [topology.lj_epsilon[types.lj_type[of]], topology.lj_sigma[types.lj_type[of]]]
    if types.scaled is not None:
        lj += [types.scaled.epsilon[of], types.scaled.sigma[of]]
    _section(file, "Pair Coeffs", " ".join(["%.10g"] * len(lj)), lj)
    for title, table, form in tables:
        _section(file, f"{title} Coeffs", form, table.values[:, :form.count("%")].T)
    _numbered(file, "Atoms # full", "%d %d %.8g %.6f %.6f %.6f", _atoms(system, kind))
    if system.velocity is not None:
        _numbered(file, "Velocities", "%.8g %.8g %.8g", (system.velocity[rows] / 1000
                                                       for rows in row_blocks(topology.n_atoms)))
    for title, table, _ in tables:
        rows = [np.column_stack([which + 1, atoms])
                for which, atoms in zip(table.of_template, table.atoms, strict=True)]
        _numbered(file, f"{title}s", "%d" + " %d" * (rows[0].shape[1] - 1), _terms_of(topology, rows))
    for k, rows in enumerate(terms.maps.rows, 1):
        _numbered(file, f"CMAP{k}", "%d" + " %d" * 5, _terms_of(topology, rows))


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


def _terms_of(topology: Topology, rows_of_template: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """(terms, 1 + atoms) types and atoms, both from 1, of all terms of a kind, some molecules at a time;
    ``rows_of_template``: types from 1, and atoms from 0, of each kind of molecule."""
    for t, count, first in zip(topology.run_template.tolist(), topology.run_count.tolist(),
                               topology.run_first_atom.tolist(), strict=False):
        own = rows_of_template[t].astype(np.int64)
        for start in range(0, count, _MOLECULES_AT_ONCE):
            copies = np.arange(start, min(start + _MOLECULES_AT_ONCE, count))
            offset = first + 1 + topology.templates[t].n_atoms * copies
            rows = np.repeat(own[None], len(offset), axis=0)
            rows[:, :, 1:] += offset[:, None, None]
            yield rows.reshape(-1, own.shape[1])


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
