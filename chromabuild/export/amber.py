"""AMBER input: prmtop, a NetCDF restart, and the phases of the protocol.

In a force field of CHARMM the prmtop is what AMBER's `chamber` makes: 1-4 pairs have a table of their own, and there
are lists of Urey-Bradley terms, harmonic impropers and correction maps.

Format of the prmtop: "AMBER Parameter/Topology File Format" (ambermd.org/FileFormats); of the restart: AMBER NetCDF
Trajectory/Restart Convention 1.0, revision B. Units of AMBER are ours, but for charges, which are multiplied by
18.2223, and angles, which are in radian.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from chromabuild.base.box_vectors import edges_and_angles, tilt_of
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.amber_control import END_PAIRS_NAME, end_pair_restraints, phase_control
from chromabuild.export.amber_terms import (
    SCEE,
    SCNB,
    pair_keys,
    refuse_charmm_terms,
    scales_of_pairs,
    sides_of_water,
    site_distances,
)
from chromabuild.export.atom_types import AtomTypes, atom_types, short_names
from chromabuild.export.blocks import atom_blocks, molecule_blocks, row_blocks, term_blocks, total
from chromabuild.export.elements import ELEMENTS, nearest_element
from chromabuild.export.netcdf_file import Variable, write_netcdf
from chromabuild.export.parts import (
    heavy_hydrogens,
    held_groups,
    phase_script,
    with_constant_restraints,
    write_texts,
)
from chromabuild.export.prmtop_sections import TypedTerms, write_charmm_terms, write_maps, write_section
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.hydrogens import masses_of_molecules
from chromabuild.forcefield.molecule_runs import MoleculeRuns
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.openmm_engine import nonbonded_options
from chromabuild.simulate.protocol import PlannedPhase

CHARGE_UNIT = 18.2223
"""Square root of 332.05, kcal angstrom/mol: energies of charges are smaller by 4e-5 than with our constant."""
TIME_UNIT = 20.455
"""AMBER's units of time in a picosecond."""
LARGEST = 33_333_333
"""Atoms: three coordinates each are numbered in columns of eight digits."""
_HH_CONSTANT = 553.0
"""kcal/mol/angstrom^2 of the third side of a rigid water, which AMBER has as a bond."""
_WATER = "WAT"
"""The residue that AMBER's programs take for a rigid water."""
_PHASE = """\
# phase NAME PRMTOP COORDINATES
phase() {
  [[ ! -f "$1.rst7" ]] || return 0
  $PMEMD -O -i "$1.in" -p "$2" -c "$3" -ref system.rst7 -o "$1.out" -inf "$1.info" -r "$1.part.rst7" -x "$1.nc"
  mv "$1.part.rst7" "$1.rst7"
}

"""


@dataclass(frozen=True)
class _Terms:
    """Terms of a kind of molecule: atoms (n, 2..4) from 0, and rows of parameters (n, ...)."""

    bonds: np.ndarray
    bond_values: np.ndarray
    angles: np.ndarray
    angle_values: np.ndarray
    dihedrals: np.ndarray
    dihedral_values: np.ndarray
    """k, periodicity, phase, scee, scnb."""
    gives_pair: np.ndarray
    """(n,) bool: its first and last atom are a 1-4 pair."""
    is_improper: np.ndarray


def export_amber(system: BuiltSystem, folder: Path, dynamics: DynamicsSection | None = None,
                 phases: Sequence[PlannedPhase] = (), seed: int = 1, end_bonds: Sequence[EndBond] = ()) -> list[Path]:
    """Write ``system.prmtop`` and ``system.rst7`` into ``folder``, which is made; gives their paths.

    ``phases``: each becomes an mdin file, ten of them where its restraints change, and a command in ``run.sh``; where
    hydrogens are heavy, ``heavy.prmtop`` has their masses. Raises BadInputError for what a prmtop cannot hold: too many
    atoms, 1-4 pairs with parameters that are not those of their types, in other force fields than CHARMM's Urey-Bradley
    terms and harmonic impropers; for several masses of hydrogen, and for a restraint on nothing.
    """
    factor = heavy_hydrogens(phases, "AMBER")
    parts = with_constant_restraints(phases)
    groups = held_groups(phases, system.topology)
    paths = write_prmtops(system, folder, factor)
    with atomic_path(folder / "system.rst7") as part:
        write_restart(part, system)
    paths.append(folder / "system.rst7")
    if not parts:
        return paths
    options = nonbonded_options(dynamics, system.box)
    ranges = MoleculeRuns.of(system.topology).ranges(dynamics.trajectory_selection)
    last = ranges[0][1] if len(ranges) == 1 and ranges[0] != (1, system.topology.n_atoms) else 0
    texts = {}
    for phase in parts:
        texts[f"{phase.stem}.in"] = phase_control(phase, dynamics, options, seed, groups, last)
        if phase.end_pairs:
            texts[f"{phase.stem}_{END_PAIRS_NAME}"] = end_pair_restraints(end_bonds, phase.end_pairs)
    texts["run.sh"] = _commands(parts)
    return paths + write_texts(folder, texts)


def write_prmtops(system: BuiltSystem, folder: Path, factor: float) -> list[Path]:
    """Write ``system.prmtop`` and, where hydrogens are heavier by a factor, ``heavy.prmtop``; makes the folder."""
    topology = system.topology
    if topology.n_atoms > LARGEST:
        raise BadInputError(f"{topology.n_atoms:,} atoms are too many for a prmtop (at most {LARGEST:,}): export "
                            "--part solute")
    types = atom_types(topology)
    terms = [_terms_of(topology, template, types.scaled is not None) for template in topology.templates]
    folder.mkdir(parents=True, exist_ok=True)
    masses = {"system": [template.mass for template in topology.templates]}
    if factor != 1:
        masses["heavy"] = masses_of_molecules(topology, factor)
    for name, mass in masses.items():
        with atomic_path(folder / f"{name}.prmtop") as part, open(part, "w", encoding="ascii") as file:
            _write_prmtop(file, system, terms, types, mass)
    return [folder / f"{name}.prmtop" for name in masses]


def prmtop_of(phase: PlannedPhase) -> str:
    """The file with the masses of a phase."""
    return "system.prmtop" if phase.hydrogen_mass_factor == 1 else "heavy.prmtop"


def _commands(phases: Sequence[PlannedPhase]) -> str:
    lines, before = [_PHASE], "system.rst7"
    for phase in phases:
        lines.append(f"phase {phase.stem} {prmtop_of(phase)} {before}\n")
        before = f"{phase.stem}.rst7"
    return phase_script("PMEMD names the program.", 'PMEMD="${PMEMD:-pmemd.cuda}"', lines)


def _terms_of(topology: Topology, template: MoleculeTemplate, charmm: bool) -> _Terms:
    if not charmm:
        refuse_charmm_terms(template, "AMBER")
    bonds, bond_values = template.bond_atoms, np.column_stack([template.bond_k, template.bond_r0])
    angles = template.angle_atoms
    angle_values = np.column_stack([template.angle_k, np.radians(template.angle_theta0)])
    if template.rigid_water:
        sides = sides_of_water(template)
        bonds = np.vstack([bonds, [[1, 2]]])
        bond_values = np.vstack([bond_values, [[_HH_CONSTANT, sides[1, 2]]]])
        angles, angle_values = angles[:0], angle_values[:0]
        # AMBER finds the place of an extra point from its distance: it lies on the bisector.
        sites = site_distances(template, "AMBER")
        bonds = np.vstack([bonds, template.virtual_site_atoms[:, :2]])
        bond_values = np.vstack([bond_values, np.column_stack([np.full(len(sites), _HH_CONSTANT), sites])])
    elif len(template.virtual_site_atoms):
        raise BadInputError(f"{template.name} has virtual sites outside of a rigid water, which the export to AMBER "
                            "does not write: export to gromacs or openmm")
    atoms = template.dihedral_atoms.astype(np.int64)
    values = np.column_stack([template.dihedral_k, template.dihedral_n, np.radians(template.dihedral_phase),
                              *(np.full(len(atoms), 1.0 if charmm else scale) for scale in (SCEE, SCNB))])
    keys = pair_keys(atoms[:, [0, 3]], template.n_atoms)
    bonded = pair_keys(template.bond_atoms, template.n_atoms)
    is_proper = np.all([np.isin(pair_keys(atoms[:, k:k + 2], template.n_atoms), bonded) for k in range(3)], axis=0)
    scaled = pair_keys(template.pair14_atoms, template.n_atoms)
    scales = np.ones((len(scaled), 2)) if charmm else scales_of_pairs(topology, template)
    gives = np.zeros(len(atoms), dtype=bool)
    proper = np.flatnonzero(is_proper)
    found, first = np.unique(keys[proper], return_index=True)
    order = np.argsort(scaled)
    if len(order) and len(found):
        place = np.minimum(np.searchsorted(scaled[order], found), len(order) - 1)
        has = scaled[order][place] == found
        chosen = proper[first[has]]
        gives[chosen] = True
        values[chosen, 3:] = scales[order[place[has]]]
    missing = np.flatnonzero(~np.isin(scaled, keys[gives]))
    if len(missing):  # a pair without a torsion that counts: one without energy, as AMBER's own programs have it
        atoms = np.vstack([atoms, _paths(template, template.pair14_atoms[missing])])
        values = np.vstack([values, np.column_stack([np.zeros(len(missing)), np.ones(len(missing)),
                                                     np.zeros(len(missing)), scales[missing]])])
        gives, is_proper = (np.append(flags, np.ones(len(missing), dtype=bool)) for flags in (gives, is_proper))
    return _Terms(bonds, bond_values, angles, angle_values, atoms, values, gives, ~is_proper)


def _paths(template: MoleculeTemplate, pairs: np.ndarray) -> np.ndarray:
    """(n, 4): each pair with two bonded atoms between them."""
    partners: dict[int, list[int]] = {}
    for i, j in template.bond_atoms.tolist():
        partners.setdefault(i, []).append(j)
        partners.setdefault(j, []).append(i)
    return np.array([next((first, j, k, last) for j in partners[first] for k in partners[j]
                          if k != first and last in partners[k] and last != j) for first, last in pairs.tolist()])


def _write_prmtop(file: TextIO, system: BuiltSystem, terms: Sequence[_Terms], types: AtomTypes,
                  mass: Sequence[np.ndarray]) -> None:
    """``types``: those that atoms have; readers take others for pairs out of the rule. ``mass``: of the atoms of each
    kind of molecule."""
    topology, templates = system.topology, system.topology.templates
    n_types, kinds = len(types.names), types.of_template
    charmm = types.scaled is not None

    def of_atoms(values: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        return atom_blocks(topology, values)

    bonds = TypedTerms.of([(one.bonds, one.bond_values) for one in terms])
    angles = TypedTerms.of([(one.angles, one.angle_values) for one in terms])
    dihedrals = TypedTerms.of([(_signed(one), one.dihedral_values) for one in terms])
    bond_types, angle_types, dihedral_types = (one.types for one in (bonds, angles, dihedrals))
    exclusions = [_exclusions(template) for template in templates]
    of_used = [templates[t] for t in np.unique(topology.run_template)]
    counts = [tuple(one.count(topology, has) for has in (True, False)) for one in (bonds, angles, dihedrals)]
    residues = total(topology, [len(template.residue_name) for template in templates])
    pointers_of_file = [
        topology.n_atoms, n_types, counts[0][0], counts[0][1], counts[1][0], counts[1][1], counts[2][0], counts[2][1],
        0, 0, total(topology, [len(others) for _, others in exclusions]), residues,
        counts[0][1], counts[1][1], counts[2][1], len(bond_types), len(angle_types),
        len(dihedral_types), n_types, 0, 0, 0, 0, 0, 0, 0, 0, _box_kind(system.box),
        max(int(np.bincount(template.atom_residue).max()) for template in of_used), 0,
        total(topology, [int((template.mass == 0).sum()) for template in templates])]
    element = [nearest_element(template.mass) for template in templates]
    is_site = [template.mass == 0 for template in templates]
    number = np.array([row.number for row in ELEMENTS])
    file.write("%VERSION  VERSION_STAMP = V0001.000  DATE = 01/01/00  00:00:00\n")
    write_section(file, "CTITLE" if charmm else "TITLE", "4s", ["chro", "mabu", "ild"])
    write_section(file, "POINTERS", "8d", pointers_of_file)
    if charmm:
        file.write(f"%FLAG FORCE_FIELD_TYPE\n%FORMAT(i2,a78)\n 1{f' CHARMM {topology.force_field}':<78s}\n")
    write_section(file, "ATOM_NAME", "4s", of_atoms([np.where(site, "EPW", template.atom_name.astype("U4"))
                                                     for site, template in zip(is_site, templates, strict=True)]))
    write_section(file, "CHARGE", "16.8E", of_atoms([template.charge * CHARGE_UNIT for template in templates]))
    write_section(file, "ATOMIC_NUMBER", "8d", of_atoms([np.where(site, 0, number[row])
                                                         for site, row in zip(is_site, element, strict=True)]))
    write_section(file, "MASS", "16.8E", of_atoms(mass))
    write_section(file, "ATOM_TYPE_INDEX", "8d", of_atoms([kind + 1 for kind in kinds]))
    write_section(file, "NUMBER_EXCLUDED_ATOMS", "8d", of_atoms([behind for behind, _ in exclusions]))
    first, second = np.meshgrid(np.arange(n_types), np.arange(n_types), indexing="ij")
    low, high = np.minimum(first, second), np.maximum(first, second)
    write_section(file, "NONBONDED_PARM_INDEX", "8d", (high * (high + 1) // 2 + low + 1).ravel())
    names = [np.array([_WATER]) if template.rigid_water else template.residue_name.astype("U4")
             for template in templates]
    write_section(file, "RESIDUE_LABEL", "4s", atom_blocks(topology, names))
    write_section(file, "RESIDUE_POINTER", "8d", term_blocks(topology, [
        np.searchsorted(template.atom_residue, np.arange(len(template.residue_name)))[:, None]
        for template in templates], base=1))
    for title, values, columns in (("BOND", bond_types, ("FORCE_CONSTANT", "EQUIL_VALUE")),
                                   ("ANGLE", angle_types, ("FORCE_CONSTANT", "EQUIL_VALUE")),
                                   ("DIHEDRAL", dihedral_types, ("FORCE_CONSTANT", "PERIODICITY", "PHASE"))):
        for k, column in enumerate(columns):
            write_section(file, f"{title}_{column}", "16.8E", values[:, k])
    for k, title in ((3, "SCEE_SCALE_FACTOR"), (4, "SCNB_SCALE_FACTOR")):
        write_section(file, title, "16.8E", dihedral_types[:, k])
    write_section(file, "SOLTY", "16.8E", np.zeros(n_types))
    rows, columns = np.tril_indices(n_types)
    first, second = types.lj_type[rows], types.lj_type[columns]
    write_section(file, "LENNARD_JONES_ACOEF", "16.8E", topology.lj_c12[first, second])
    write_section(file, "LENNARD_JONES_BCOEF", "16.8E", topology.lj_c6[first, second])
    if types.scaled is not None:
        for letter, table in zip("AB", types.scaled.coefficients(), strict=True):
            write_section(file, f"LENNARD_JONES_14_{letter}COEF", "16.8E", table[rows, columns])
    for name, one in (("BONDS", bonds), ("ANGLES", angles), ("DIHEDRALS", dihedrals)):
        write_section(file, f"{name}_INC_HYDROGEN", "8d", one.rows(topology, True))
        write_section(file, f"{name}_WITHOUT_HYDROGEN", "8d", one.rows(topology, False))
    if charmm:
        write_charmm_terms(file, topology)
    write_maps(file, topology, "CHARMM_" if charmm else "")
    write_section(file, "EXCLUDED_ATOMS_LIST", "8d", _excluded_lists(topology, exclusions))
    for title in ("HBOND_ACOEF", "HBOND_BCOEF", "HBCUT"):
        write_section(file, title, "16.8E", [])
    type_names = np.array(short_names(types.names, 4) if charmm else [name[:4] for name in types.names])
    write_section(file, "AMBER_ATOM_TYPE", "4s", of_atoms([
        np.where(site, "EP", type_names[np.minimum(kind, n_types - 1)])
        for site, kind in zip(is_site, kinds, strict=True)]))
    write_section(file, "TREE_CHAIN_CLASSIFICATION", "4s", of_atoms([np.full(t.n_atoms, "BLA") for t in templates]))
    for title in ("JOIN_ARRAY", "IROTAT"):
        write_section(file, title, "8d", of_atoms([np.zeros(t.n_atoms, dtype=int) for t in templates]))
    solute_molecules, solute_residues = _solute_size(topology)
    write_section(file, "SOLVENT_POINTERS", "8d",
                  [solute_residues, int(topology.run_count.sum()), solute_molecules + 1])
    write_section(file, "ATOMS_PER_MOLECULE", "8d", (np.full(count, templates[t].n_atoms)
                                                     for t, _, count in molecule_blocks(topology)))
    lengths, angles = np.split(edges_and_angles(system.box), 2)
    write_section(file, "BOX_DIMENSIONS", "16.8E", [angles[1], *lengths])
    file.write("%FLAG RADIUS_SET\n%FORMAT(1a80)\n" + "Bondi radii (bondi)".ljust(80) + "\n")
    for title, values in (("RADII", [row.radius for row in ELEMENTS]), ("SCREEN", [row.screening for row in ELEMENTS])):
        write_section(file, title, "16.8E", of_atoms([np.array(values)[row] for row in element]))


def _signed(terms: _Terms) -> np.ndarray:
    """Dihedrals with AMBER's marks, as flags behind the atoms: (n, 6) atoms, no pair, improper.

    The third and fourth atom bear the marks as signs, and 0 has none: such a row is read backwards.
    """
    atoms = terms.dihedrals
    backwards = (atoms[:, 2] == 0) | (atoms[:, 3] == 0)
    return np.column_stack([np.where(backwards[:, None], atoms[:, ::-1], atoms), ~terms.gives_pair, terms.is_improper])


def _exclusions(template: MoleculeTemplate) -> tuple[np.ndarray, np.ndarray]:
    """How many atoms behind it each atom excludes, at least one, and who: from 0, -1 for none."""
    n = template.n_atoms
    pairs = np.sort(template.exclusion.astype(np.int64), axis=1)
    nobody = np.setdiff1d(np.arange(n), pairs[:, 0])
    pairs = np.vstack([pairs, np.column_stack([nobody, np.full(len(nobody), -1)])])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return np.bincount(pairs[:, 0], minlength=n), pairs[:, 1]


def _excluded_lists(topology: Topology, exclusions: Sequence[tuple[np.ndarray, np.ndarray]]) -> Iterator[np.ndarray]:
    """Excluded atoms of all atoms, from 1, 0 for none."""
    for t, first, count in molecule_blocks(topology):
        others = exclusions[t][1]
        offsets = first + 1 + topology.templates[t].n_atoms * np.arange(count, dtype=np.int64)
        yield np.where(others < 0, 0, others + offsets[:, None])


def _solute_size(topology: Topology) -> tuple[int, int]:
    """Molecules and residues before the first water or ion."""
    molecules = residues = 0
    for t, count in zip(topology.run_template.tolist(), topology.run_count.tolist(), strict=True):
        template = topology.templates[t]
        if template.rigid_water or template.n_atoms == 1:
            break
        molecules, residues = molecules + count, residues + count * len(template.residue_name)
    return molecules, residues


def _box_kind(box: np.ndarray) -> int:
    """IFBOX: rectangular, or any other; 2 is the truncated octahedron by vectors that are all 109.47 degrees apart."""
    return 3 if tilt_of(box).any() else 1


def write_restart(path: Path, system: BuiltSystem) -> None:
    """Write coordinates, velocities where there are any, and box as a NetCDF restart."""
    def blocks(values: np.ndarray, unit: float = 1.0) -> Iterator[np.ndarray]:
        return (values[rows] / unit for rows in row_blocks(len(values)))

    def letters(*words: str) -> list[np.ndarray]:
        return [np.array([list(word) for word in words], dtype="S1")]

    lengths, angles = np.split(edges_and_angles(system.box), 2)
    atoms = ("atom", "spatial")
    variables = [
        Variable("spatial", ("spatial",), "S1", letters("xyz")), Variable("cell_spatial", ("cell_spatial",), "S1",
                                                                          letters("abc")),
        Variable("cell_angular", ("cell_angular", "label"), "S1", letters("alpha", "beta ", "gamma")),
        Variable("time", (), ">f8", [np.zeros(1)], {"units": b"picosecond"}),
        Variable("coordinates", atoms, ">f8", blocks(system.position), {"units": b"angstrom"}),
        Variable("cell_lengths", ("cell_spatial",), ">f8", [lengths], {"units": b"angstrom"}),
        Variable("cell_angles", ("cell_angular",), ">f8", [angles], {"units": b"degree"})]
    if system.velocity is not None:
        variables.append(Variable("velocities", atoms, ">f8", blocks(system.velocity, TIME_UNIT),
                                  {"units": b"angstrom/picosecond", "scale_factor": TIME_UNIT}))
    about = {"Conventions": b"AMBERRESTART", "ConventionVersion": b"1.0",
             **{name: b"chromabuild" for name in ("title", "application", "program", "programVersion")}}
    sizes = {"spatial": 3, "atom": len(system.position), "cell_spatial": 3, "cell_angular": 3, "label": 5}
    with open(path, "wb") as file:
        write_netcdf(file, sizes, about, variables)
