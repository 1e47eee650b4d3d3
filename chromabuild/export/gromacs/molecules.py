"""GROMACS topology: system.top and an itp file for each kind of molecule.

Energy functions and columns: GROMACS reference manual, "Topology file formats". Lengths become nm, energies kJ/mol; a
force constant k of k x^2 becomes 2k, for GROMACS writes k x^2/2.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import numpy as np
from scipy.sparse import coo_array

from chromabuild.base.constants import ANGSTROM_PER_NM, KJ_PER_KCAL
from chromabuild.base.files import atomic_path
from chromabuild.export.gromacs.correction_maps import AtomKinds, write_maps
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.groups import HEAVIEST_HYDROGEN, mask

STIFFNESS = 2 * KJ_PER_KCAL * ANGSTROM_PER_NM**2
"""kJ/mol/nm^2 of GROMACS' k/2 x^2, in one kcal/mol/angstrom^2 of k x^2."""
BONDS_EXCLUDED = 3
HEAVY_HYDROGENS = "HEAVY_HYDROGENS"
"""Macro: masses of the hydrogens of the solute are repartitioned."""
RIGID_FAST_BONDS = "RIGID_FAST_BONDS"
"""Macro: bonds whose period is shorter than a phase allows are constraints."""
STEPS_A_PERIOD = 5
"""GROMACS warns of a bond that is integrated with fewer steps a period."""
END_PAIRS = "END_PAIRS"
"""Macro: the hydrogen bonds at the ends of DNA are held, with this constant."""
_ELEMENT_MASSES = {1: 1.008, 6: 12.011, 7: 14.007, 8: 15.999, 11: 22.99, 12: 24.305, 15: 30.974, 16: 32.06, 17: 35.45,
                   19: 39.098, 20: 40.078, 30: 65.38}
_SAME = 1e-6


def restraint_macro(group: str) -> str:
    """The macro of a group of atoms that is held; its value is the constant, kJ/mol/nm^2.

    With ``_END`` behind it, the macro of the constant at lambda = 1, which a phase goes to whose constant changes.
    """
    return "POSRES_" + group.upper().replace("-", "_")


def write_topology(topology: Topology, folder: Path, groups: Iterable[str] = (), heavy_hydrogens: float = 1.0,
                   end_bonds: Iterable[EndBond] = (), timestep: float = 0.0) -> list[Path]:
    """Write ``system.top`` and the itp files that it includes into a folder, which is made; gives their paths.

    ``groups``: of atoms that position restraints may hold, by ``restraint_macro``. ``heavy_hydrogens``: factor of the
    masses of the solute's hydrogens where ``HEAVY_HYDROGENS`` is defined. ``end_bonds``: held where ``END_PAIRS`` is.
    ``timestep``: fs, the longest of a phase, for which bonds are rigid where ``RIGID_FAST_BONDS`` is defined.
    Raises BadInputError for correction maps elsewhere than along the backbone of a protein.
    """
    kinds, files = AtomKinds.of(topology, type_names(topology)), molecule_names(topology)
    folder.mkdir(parents=True, exist_ok=True)
    fudge = _coulomb_factor(topology)
    groups, paths = list(groups), []
    used = sorted(set(topology.run_template.tolist()))
    for t in used:
        paths.append(folder / f"{files[t]}.itp")
        types = [kinds.names[k] for k in kinds.of_template[t].tolist()]
        with atomic_path(paths[-1]) as part, open(part, "w", encoding="ascii") as file:
            _write_molecule(file, topology.templates[t], files[t], types, fudge, groups, heavy_hydrogens,
                            fast_bonds(topology.templates[t], heavy_hydrogens, timestep))
    with atomic_path(folder / "system.top") as part, open(part, "w", encoding="ascii") as file:
        file.write(f"; chromabuild, force field {topology.force_field}\n\n[ defaults ]\n"
                   "; function  combination  pairs  fudgeLJ  fudgeQQ\n"
                   f"  1         2            no     1.0      {1.0 if fudge is None else fudge:.10f}\n")
        _write_types(file, topology, kinds)
        write_maps(file, topology)
        file.writelines(f'\n#include "{files[t]}.itp"' for t in used)
        file.write("\n\n[ system ]\nchromabuild\n\n[ molecules ]\n")
        file.writelines(f"{files[t]:<16s} {count}\n"
                        for t, count in zip(topology.run_template.tolist(), topology.run_count.tolist(), strict=True))
        _write_end_bonds(file, list(end_bonds))
    return [folder / "system.top", *paths]


def molecule_names(topology: Topology) -> list[str]:
    """A name for each kind of molecule, which is also that of its file; no two differ in case alone."""
    return _unique(template.name for template in topology.templates)


def type_names(topology: Topology) -> list[str]:
    """A name for each Lennard-Jones type. GROMACS takes a word that begins with a digit for a number."""
    names = (name.decode() for name in np.asarray(topology.lj_name, dtype="S8").tolist())
    return _unique(name if name[:1].isalpha() else f"t{name}" for name in names)


def _unique(names: Iterable[str]) -> list[str]:
    found: dict[str, str] = {}
    for name in names:
        base = new = "".join(letter if letter.isalnum() or letter in "-_+*" else "_" for letter in name)
        k = 2
        while new.lower() in found:
            new, k = f"{base}_{k}", k + 1
        found[new.lower()] = new
    return list(found.values())


def _coulomb_factor(topology: Topology) -> float | None:
    """What the charges of all 1-4 pairs are scaled by; None where there is no such number."""
    ratios = [1.0]
    for template in topology.templates:
        atoms = template.pair14_atoms
        product = template.charge[atoms[:, 0]] * template.charge[atoms[:, 1]]
        has = np.abs(product) > 1e-10
        if (np.abs(template.pair14_charge_product[~has]) > 1e-10).any():
            return None
        ratios += [np.max(template.pair14_charge_product[has] / product[has], initial=-np.inf),
                   np.min(template.pair14_charge_product[has] / product[has], initial=np.inf)]
    found = [ratio for ratio in ratios[1:] if np.isfinite(ratio)]
    if found and max(found) - min(found) > _SAME:
        return None
    return float(np.mean(found)) if found else 1.0


def _write_types(file: TextIO, topology: Topology, kinds: AtomKinds) -> None:
    """Atom types, and the pairs of them that the combination rule does not give."""
    types, of = kinds.names, kinds.lj_type
    mass = np.zeros(len(types))
    for template, kind in zip(topology.templates, kinds.of_template, strict=True):
        massive = template.mass > 0
        mass[kind[massive]] = template.mass[massive]
    bonded = [f"{name:<5s} " for name in kinds.bonded] or [""] * len(types)
    file.write(f"\n[ atomtypes ]\n; name  {'bonded  ' if kinds.bonded else ''}"
               "number  mass  charge  ptype  sigma(nm)  epsilon(kJ/mol)\n")
    for name, kind, weight, sigma, epsilon in zip(types, bonded, mass.tolist(), (topology.lj_sigma[of] / 10).tolist(),
                                                  (topology.lj_epsilon[of] * KJ_PER_KCAL).tolist(), strict=True):
        file.write(f"{name:<9s} {kind}{_atomic_number(weight):3d} {weight:9.4f} 0.0 A {sigma:.10e} {epsilon:.10e}\n")
    # GROMACS also looks the bonded types of a correction map up among the atom types.
    file.writelines(f"{name:<9s} {name:<5s}   0    0.0000 0.0 A 0.0 0.0\n" for name in sorted(set(kinds.bonded)))
    first, second = np.nonzero(np.triu(topology.special_pairs[np.ix_(of, of)]))
    if len(first) == 0:
        return
    file.write("\n[ nonbond_params ]\n; types  function  sigma(nm)  epsilon(kJ/mol)\n")
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        c6, c12 = float(topology.lj_c6[of[i], of[j]]), float(topology.lj_c12[of[i], of[j]])
        sigma, epsilon = ((c12 / c6) ** (1 / 6), c6**2 / (4 * c12)) if c6 > 0 and c12 > 0 else (0.0, 0.0)
        file.write(f"{types[i]:<9s} {types[j]:<9s} 1 {sigma / 10:.10e} {epsilon * KJ_PER_KCAL:.10e}\n")


def _atomic_number(mass: float) -> int:
    """By mass; 0 for what has none, such as a virtual site."""
    number, nearest = min(_ELEMENT_MASSES.items(), key=lambda item: abs(item[1] - mass))
    return number if abs(nearest - mass) < 0.5 else 0


def _write_molecule(file: TextIO, template: MoleculeTemplate, name: str, types: list[str], fudge: float | None,
                    groups: list[str], heavy_hydrogens: float, fast: np.ndarray) -> None:
    """``fast``: (bonds,) bool, those that may be constraints."""
    by_bonds = not template.rigid_water and _excludes_by_bonds(template)
    file.write(f"[ moleculetype ]\n; name  bonds within which pairs are excluded\n{name} "
               f"{BONDS_EXCLUDED if by_bonds else 0}\n")
    if heavy_hydrogens != 1.0 and not template.rigid_water and len(template.bond_atoms):
        file.write(f"\n#ifdef {HEAVY_HYDROGENS}\n")
        _write_atoms(file, template, types, _repartitioned(template, heavy_hydrogens))
        file.write("#else\n")
        _write_atoms(file, template, types, template.mass)
        file.write("#endif\n")
    else:
        _write_atoms(file, template, types, template.mass)
    bonds, angles = _bonds_angles(template)
    if template.rigid_water:
        distance = {tuple(sorted(pair)): value for pair, value in zip(
            template.constraint_atoms.tolist(), (template.constraint_distance / 10).tolist(), strict=True)}
        file.write("\n#ifndef FLEXIBLE\n[ settles ]\n; oxygen  function  O-H  H-H (nm)\n"
                   f"1 1 {distance[0, 1]:.10f} {distance[1, 2]:.10f}\n#else\n")
        _write_rows(file, "bonds", bonds)
        _write_rows(file, "angles", angles)
        file.write("#endif\n")
    else:
        if fast.any():
            atoms, function, length, stiffness = bonds[0]
            _write_rows(file, "bonds", [(atoms[~fast], function, length[~fast], stiffness[~fast]), *bonds[1:]])
            file.write(f"\n#ifdef {RIGID_FAST_BONDS}")
            _write_rows(file, "constraints", [(atoms[fast], 1, length[fast])])
            file.write("#else")
            _write_rows(file, "bonds", [(atoms[fast], function, length[fast], stiffness[fast])])
            file.write("#endif\n")
        else:
            _write_rows(file, "bonds", bonds)
        _write_pairs(file, template, fudge)
        _write_rows(file, "angles", angles)
        _write_rows(file, "dihedrals", [
            (template.dihedral_atoms, 9, template.dihedral_phase, KJ_PER_KCAL * template.dihedral_k,
             template.dihedral_n),
            (template.improper_atoms, 2, template.improper_psi0, 2 * KJ_PER_KCAL * template.improper_k)])
        _write_rows(file, "cmap", [(template.cmap_atoms, 1)])
    _write_rows(file, "virtual_sites3", [(template.virtual_site_atoms, 1, template.virtual_site_w2,
                                          template.virtual_site_w3)])
    if not by_bonds:
        _write_exclusions(file, template)
    for group in groups:
        _write_restraints(file, group, mask(group, template))


def _bonds_angles(template: MoleculeTemplate) -> tuple[list[tuple], list[tuple]]:
    """Rows of bonds and of angles. Urey-Bradley terms go with the first angle between their ends; others are distances
    that are no bonds to GROMACS: they exclude no pair and are no constraints."""
    n, angle, urey = template.n_atoms, template.angle_atoms, template.urey_bradley_atoms
    theta0, stiffness = template.angle_theta0, 2 * KJ_PER_KCAL * template.angle_k
    r0, pull = template.urey_bradley_r0 / 10, STIFFNESS * template.urey_bradley_k
    _, first, of_angle = np.intersect1d(_keys(urey.astype(np.int64), n), _keys(angle[:, [0, 2]].astype(np.int64), n),
                                        return_indices=True)
    plain, rest = (np.setdiff1d(np.arange(len(rows)), used) for rows, used in ((angle, of_angle), (urey, first)))
    return ([(template.bond_atoms, 1, template.bond_r0 / 10, STIFFNESS * template.bond_k),
             (urey[rest], 6, r0[rest], pull[rest])],
            [(angle[plain], 1, theta0[plain], stiffness[plain]),
             (angle[of_angle], 5, theta0[of_angle], stiffness[of_angle], r0[first], pull[first])])


def _write_atoms(file: TextIO, template: MoleculeTemplate, types: list[str], masses: np.ndarray) -> None:
    names = [name.decode() for name in template.residue_name.tolist()]
    numbers = template.residue_number.tolist()
    file.write("[ atoms ]\n; nr  type  resnr  residue  atom  charge group  charge  mass\n")
    rows = zip(types, template.atom_residue.tolist(), template.atom_name.tolist(),
               template.charge.tolist(), masses.tolist(), strict=True)
    for k, (kind, residue, atom, charge, mass) in enumerate(rows, 1):
        file.write(f"{k} {kind} {numbers[residue]} {names[residue]} {atom.decode()} {k} "
                   f"{charge:.8f} {mass:.5f}\n")


def fast_bonds(template: MoleculeTemplate, heavy_hydrogens: float, timestep: float) -> np.ndarray:
    """(bonds,) bool: bonds without hydrogen, of which GROMACS finds a period below ``STEPS_A_PERIOD`` steps (fs).

    The period is that of a harmonic oscillator with the reduced mass of its atoms.
    """
    masses = _repartitioned(template, heavy_hydrogens)
    i, j = template.bond_atoms.T
    with np.errstate(divide="ignore", invalid="ignore"):
        reduced = masses[i] * masses[j] / (masses[i] + masses[j])
        period = 1000 * 2 * np.pi * np.sqrt(reduced / (2 * template.bond_k * KJ_PER_KCAL * ANGSTROM_PER_NM**2))
    is_hydrogen = template.mass < HEAVIEST_HYDROGEN
    return ~(is_hydrogen[i] | is_hydrogen[j]) & (period < STEPS_A_PERIOD * timestep) & (not template.rigid_water)


def _repartitioned(template: MoleculeTemplate, factor: float) -> np.ndarray:
    """Masses with hydrogens ``factor`` times as heavy, at the cost of the atoms that they are bonded to."""
    masses = template.mass.copy()
    is_hydrogen = template.mass < HEAVIEST_HYDROGEN
    for a, b in ((0, 1), (1, 0)):
        hydrogen, heavy = template.bond_atoms[:, a], template.bond_atoms[:, b]
        chosen = is_hydrogen[hydrogen] & ~is_hydrogen[heavy]
        gain = (factor - 1) * template.mass[hydrogen[chosen]]
        np.add.at(masses, hydrogen[chosen], gain)
        np.subtract.at(masses, heavy[chosen], gain)
    return masses


def _write_rows(file: TextIO, title: str, kinds: list[tuple]) -> None:
    """Rows of terms: atoms (n, 2..4), function, and columns of parameters (n,)."""
    if not any(len(atoms) for atoms, *_ in kinds):
        return
    file.write(f"\n[ {title} ]\n")
    for atoms, function, *columns in kinds:
        values = np.array(columns).T.reshape(len(atoms), len(columns)).tolist()
        file.writelines(" ".join([*map(str, row), str(function), *(f"{value:.10g}" for value in own)]) + "\n"
                        for row, own in zip((atoms + 1).tolist(), values, strict=True))


def _write_pairs(file: TextIO, template: MoleculeTemplate, fudge: float | None) -> None:
    """1-4 pairs with parameters of their own; their charges too where no one factor gives them."""
    columns = [template.pair14_sigma / 10, KJ_PER_KCAL * template.pair14_epsilon]
    if fudge is None:
        ones = np.ones(len(template.pair14_atoms))
        columns = [ones, template.pair14_charge_product, ones, *columns]
    _write_rows(file, "pairs", [(template.pair14_atoms, 1 if fudge is not None else 2, *columns)])


def _excludes_by_bonds(template: MoleculeTemplate) -> bool:
    """Whether the excluded pairs are those within three bonds."""
    n = template.n_atoms
    wanted = np.unique(_keys(template.exclusion.astype(np.int64), n))
    bonds = template.bond_atoms.astype(np.int64)
    if len(bonds) == 0:
        return len(wanted) == 0
    both = np.concatenate([bonds, bonds[:, ::-1]])
    step = coo_array((np.ones(len(both), dtype=np.int32), tuple(both.T)), shape=(n, n)).tocsr()
    near = step + step @ step
    near = (near + near @ step).tocoo()
    upper = near.row < near.col
    return np.array_equal(np.unique(near.row[upper].astype(np.int64) * n + near.col[upper]), wanted)


def _keys(pairs: np.ndarray, n: int) -> np.ndarray:
    return pairs.min(axis=1) * n + pairs.max(axis=1)


def _write_exclusions(file: TextIO, template: MoleculeTemplate) -> None:
    if len(template.exclusion) == 0:
        return
    file.write("\n[ exclusions ]\n")
    pairs = np.sort(template.exclusion, axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))] + 1
    first, start = np.unique(pairs[:, 0], return_index=True)
    file.writelines(f"{atom} {' '.join(map(str, others))}\n" for atom, others in zip(
        first.tolist(), (part.tolist() for part in np.split(pairs[:, 1], start[1:])), strict=True))


def _write_restraints(file: TextIO, group: str, held: np.ndarray) -> None:
    if not held.any():
        return
    macro = restraint_macro(group)
    file.write(f"\n#ifdef {macro}\n[ position_restraints ]\n; constants, kJ/mol/nm^2, at lambda = 0 and 1\n")
    constants = " ".join([macro] * 3 + [f"{macro}_END"] * 3)
    file.writelines(f"{k} 1 {constants}\n" for k in (np.flatnonzero(held) + 1).tolist())
    file.write("#endif\n")


def _write_end_bonds(file: TextIO, bonds: list[EndBond]) -> None:
    if not bonds:
        return
    file.write(f"\n#ifdef {END_PAIRS}\n[ intermolecular_interactions ]\n[ bonds ]\n")
    file.writelines(f"{bond.atoms[0] + 1} {bond.atoms[1] + 1} 6 {bond.length / 10:.6f} {END_PAIRS}\n" for bond in bonds)
    file.write("#endif\n")
