"""CHARMM, AMBER and GROMACS files of systems in memory, written for the tests of `chromabuild import`.

The formats are written here from their published descriptions; OpenMM reads them. Numbers have enough digits that the
files say the same as the system to 1e-9.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology

HALF_MINIMUM = 2 ** (1 / 6) / 2
"""Rmin/2 of a Lennard-Jones sigma."""
AMBER_CHARGE = 18.2223


def proper_dihedrals(bonds: np.ndarray) -> np.ndarray:
    """(d, 4): every chain of four bonded atoms, once, from the end with the lower number."""
    neighbour: dict[int, set[int]] = {}
    for i, j in bonds.tolist():
        neighbour.setdefault(i, set()).add(j)
        neighbour.setdefault(j, set()).add(i)
    found = {min((i, j, k, m), (m, k, j, i)) for j, k in bonds.tolist()
             for i in neighbour[j] - {k} for m in neighbour[k] - {j} if i != m}
    return np.array(sorted(found)).reshape(-1, 4)


def assert_same_topology(ours: Topology, whole: Topology) -> None:
    """The same atoms, terms and numbers of residues, however the molecules stand in runs."""
    assert ours.n_atoms == whole.n_atoms
    for name in ("charge", "mass", "lj_type", "atom_name"):
        assert np.array_equal(ours.per_atom(name), whole.per_atom(name))
    assert np.array_equal(ours.residue_of_atom(), whole.residue_of_atom())
    assert np.array_equal(ours.lj_c12, whole.lj_c12) and ours.lj_name.tolist() == whole.lj_name.tolist()
    for term in ("bond", "angle", "urey_bradley", "dihedral", "improper", "cmap", "pair14", "constraint"):
        a, b = ours.term(term), whole.term(term)
        for key in a:
            assert np.array_equal(a[key], b[key]), (term, key)
    assert np.array_equal(ours.exclusions(), whole.exclusions())
    numbers = [np.concatenate([first + np.arange(count) for first, count, t in
                               zip(one.run_residue, one.run_count, one.run_template, strict=True)
                               if len(one.templates[t].residue_name) == 1]) for one in (ours, whole)]
    assert np.array_equal(*numbers)


# CHARMM ---------------------------------------------------------------------------------------------------------------

def write_charmm(folder: Path, topology: Topology, types: Sequence[str], lennard_jones: dict[str, dict[str, float]],
                 special: Iterable[tuple[str, str, float, float]], position: np.ndarray) -> tuple[Path, Path, Path]:
    """PSF, parameter file and CRD. ``types``: CHARMM type of each atom; ``lennard_jones``: sigma, epsilon, sigma14 and
    epsilon14 by type; ``special``: type, type, sigma, epsilon of the NBFIX pairs."""
    paths = folder / "system.psf", folder / "system.prm", folder / "system.crd"
    term = {name: topology.term(name) for name in ("bond", "angle", "urey_bradley", "dihedral", "improper", "cmap")}
    labels = list(_labels(topology))
    propers = proper_dihedrals(term["bond"]["atoms"])
    sections = [("!NBOND: bonds", term["bond"]["atoms"], 8), ("!NTHETA: angles", term["angle"]["atoms"], 9),
                ("!NPHI: dihedrals", propers, 8), ("!NIMPHI: impropers", term["improper"]["atoms"], 8),
                ("!NDON: donors", np.empty((0, 2), int), 8), ("!NACC: acceptors", np.empty((0, 2), int), 8)]
    lines = ["PSF EXT CMAP XPLOR", "", f"{1:10d} !NTITLE", "* test", "", f"{topology.n_atoms:10d} !NATOM"]
    charge, mass = topology.charges(), topology.masses()
    lines += [f"{k + 1:10d} {segid:<8s} {number:<8d} {residue:<8s} {atom:<8s} {types[k]:<8s} {charge[k]:.10f} "
              f"{mass[k]:.6f} 0" for k, (segid, number, residue, atom) in enumerate(labels)]
    for title, atoms, width in sections:
        lines += ["", f"{len(atoms):10d} {title}", *_rows_of((atoms + 1).ravel(), width)]
    lines += ["", f"{0:10d} !NNB", "", *_rows_of(np.zeros(topology.n_atoms, int), 8), "", f"{1:10d}{0:10d} !NGRP NST2",
              f"{0:10d}{0:10d}{0:10d}", ""]
    cmap = term["cmap"]["atoms"] + 1
    lines += [f"{len(cmap):10d} !NCRTERM: cross-terms",
              *_rows_of(np.hstack([cmap[:, :4], cmap[:, 1:]]).ravel(), 8), ""]
    paths[0].write_text("\n".join(lines) + "\n")
    paths[1].write_text("\n".join(_charmm_parameters(topology, term, propers, types, lennard_jones, special)) + "\n")
    lines = ["* test", "*", f"{topology.n_atoms:10d}  EXT"]
    lines += [f"{k + 1:10d}{number:10d}  {residue:<8s}  {atom:<8s}" + "".join(f"{x:20.10f}" for x in position[k])
              + f"  {segid:<8s}  {number:<8d}{0.0:20.10f}" for k, (segid, number, residue, atom) in enumerate(labels)]
    paths[2].write_text("\n".join(lines) + "\n")
    return paths


def _charmm_parameters(topology: Topology, term: dict, propers: np.ndarray, types: Sequence[str],
                       lennard_jones: dict[str, dict[str, float]],
                       special: Iterable[tuple[str, str, float, float]]) -> list[str]:
    mass = dict(zip(types, topology.masses(), strict=True))
    lines = ["* test", "*", "", "ATOMS", *(f"MASS -1 {name} {mass[name]:.6f}" for name in mass), "", "BONDS"]

    def table(atoms: np.ndarray, *columns: np.ndarray) -> list[str]:
        """One line per combination of types; a combination has the same parameters everywhere."""
        found: dict[tuple, str] = {}
        for row, values in zip(atoms.tolist(), zip(*(c.tolist() for c in columns), strict=True), strict=True):
            key = tuple(types[i] for i in row)
            text = " ".join(f"{value:.12g}" for value in values)
            assert found.setdefault(min(key, key[::-1]), text) == text, key
        return [" ".join(key) + " " + text for key, text in found.items()]

    urey = {tuple(sorted(atoms)): (k, r0) for atoms, k, r0 in
            zip(term["urey_bradley"]["atoms"].tolist(), term["urey_bradley"]["k"], term["urey_bradley"]["r0"],
                strict=True)}
    angle = term["angle"]
    ends = np.array([urey.get(tuple(sorted((i, k))), (0.0, 0.0)) for i, _, k in angle["atoms"].tolist()])
    lines += table(term["bond"]["atoms"], term["bond"]["k"], term["bond"]["r0"])
    lines += ["", "ANGLES", *table(angle["atoms"], angle["k"], angle["theta0"], ends[:, 0], ends[:, 1])]
    waves: dict[tuple, set] = {}
    for atoms in propers.tolist():
        key = tuple(types[i] for i in atoms)
        waves.setdefault(min(key, key[::-1]), set())
    dihedral = term["dihedral"]
    for atoms, k, n, phase in zip(dihedral["atoms"].tolist(), dihedral["k"], dihedral["n"], dihedral["phase"],
                                  strict=True):
        key = tuple(types[i] for i in atoms)
        waves[min(key, key[::-1])].add((f"{k:.12g}", int(n), f"{phase:.12g}"))
    lines += ["", "DIHEDRALS"]
    for key, values in waves.items():
        lines += [" ".join(key) + f" {k} {n} {phase}" for k, n, phase in sorted(values) or [("0.0", 1, "0.0")]]
    improper = term["improper"]
    lines += ["", "IMPROPER", *table(improper["atoms"], improper["k"], 0 * improper["k"], improper["psi0"])]
    lines += ["", "CMAP"]
    written = set()
    for atoms, number in zip(term["cmap"]["atoms"].tolist(), term["cmap"]["map"].tolist(), strict=True):
        key = tuple(types[i] for i in (*atoms[:4], *atoms[1:]))
        if key in written:
            continue
        written.add(key)
        size = round(topology.cmap_energy.shape[1] ** 0.5)
        # CHARMM's maps begin at -180 degrees, psi runs faster.
        energy = np.roll(topology.cmap_energy[number].reshape(size, size), size // 2, axis=(0, 1))
        lines += [" ".join(key) + f" {size}"]
        for row in energy:
            lines += [" ".join(f"{value:.12g}" for value in row[k:k + 5]) for k in range(0, size, 5)]
    lines += ["", "NONBONDED nbxmod 5 atom cdiel fshift vatom vdistance vfswitch -",
              "cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac 1.0 wmin 1.5"]
    for name in mass:
        v = lennard_jones[name]
        lines.append(f"{name} 0.0 {-v['epsilon']:.12g} {v['sigma'] * HALF_MINIMUM:.14g} 0.0 {-v['epsilon14']:.12g} "
                     f"{v['sigma14'] * HALF_MINIMUM:.14g}")
    lines += ["", "NBFIX", *(f"{a} {b} {-epsilon:.12g} {2 * sigma * HALF_MINIMUM:.14g}"
                             for a, b, sigma, epsilon in special if a in mass and b in mass), "", "END"]
    return lines


# AMBER ----------------------------------------------------------------------------------------------------------------

def write_amber(folder: Path, topology: Topology, position: np.ndarray, box: np.ndarray) -> tuple[Path, Path]:
    """prmtop and restart file of a system with AMBER's 1-4 factors (1/1.2 and 1/2) and Lorentz-Berthelot mixing."""
    n, mass = topology.n_atoms, topology.masses()
    light = mass < 1.5
    lj_type, n_types = topology.per_atom("lj_type"), len(topology.lj_sigma)
    labels = list(_labels(topology))
    starts = [k for k in range(n) if k == 0 or labels[k][:3] != labels[k - 1][:3]]
    exclusions = np.sort(topology.exclusions(), axis=1)
    exclusions = exclusions[np.lexsort((exclusions[:, 1], exclusions[:, 0]))]
    partners = np.split(exclusions[:, 1] + 1, np.searchsorted(exclusions[:, 0], np.arange(1, n)))
    # An atom without excluded partners after it lists one atom number 0.
    partners = [p if len(p) else np.array([0]) for p in partners]
    a, b = np.triu_indices(n_types)
    index = np.zeros((n_types, n_types), int)
    index[a, b] = index[b, a] = np.arange(1, len(a) + 1)
    bond, angle, dihedral = (topology.term(name) for name in ("bond", "angle", "dihedral"))
    bonded = {tuple(sorted(pair)) for pair in bond["atoms"].tolist()}
    scaled = {tuple(sorted(pair)) for pair in topology.term("pair14")["atoms"].tolist()}
    # Every 1-4 pair is named by one dihedral, if need be by one without energy.
    atoms_of = dict(zip(((i, m) if i < m else (m, i) for i, _, _, m in proper_dihedrals(bond["atoms"]).tolist()),
                        proper_dihedrals(bond["atoms"]).tolist(), strict=True))
    named = {tuple(sorted((i, m))) for i, j, k, m in dihedral["atoms"].tolist()
             if {tuple(sorted(pair)) for pair in ((i, j), (j, k), (k, m))} <= bonded}
    silent = np.array([atoms_of[pair] for pair in sorted(scaled - named)]).reshape(-1, 4)
    dihedral = {"atoms": np.concatenate([dihedral["atoms"], silent]),
                **{key: np.append(dihedral[key], np.full(len(silent), fill)) for key, fill in
                   (("k", 0.0), ("n", 1), ("phase", 0.0))}}
    quads = []
    for i, j, k, m in dihedral["atoms"].tolist():
        is_chain = {tuple(sorted(pair)) for pair in ((i, j), (j, k), (k, m))} <= bonded
        if 0 in (k, m):
            i, j, k, m = m, k, j, i
        pair = tuple(sorted((i, m)))
        scales = is_chain and pair in scaled
        if scales:
            scaled.remove(pair)
        quads.append([3 * i, 3 * j, 3 * k if scales else -3 * k, 3 * m if is_chain else -3 * m])
    assert not scaled

    def split(atoms: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.column_stack([rows, np.arange(1, len(rows) + 1)])
        with_hydrogen = light[atoms].any(axis=1)
        return rows[with_hydrogen].ravel(), rows[~with_hydrogen].ravel()

    # Rigid waters of AMBER have a third bond between the hydrogens; here without energy, as ours have an angle.
    constraint = topology.term("constraint")
    third = np.array([tuple(sorted(pair)) not in bonded for pair in constraint["atoms"].tolist()])
    bond = {"atoms": np.concatenate([bond["atoms"], constraint["atoms"][third]]),
            "k": np.append(bond["k"], np.zeros(third.sum())),
            "r0": np.append(bond["r0"], constraint["distance"][third])}
    bonds, angles = split(bond["atoms"], 3 * bond["atoms"]), split(angle["atoms"], 3 * angle["atoms"])
    dihedrals = split(dihedral["atoms"], np.array(quads).reshape(-1, 4))
    pointers = np.zeros(31, int)
    pointers[:12] = [n, n_types, len(bonds[0]) // 3, len(bonds[1]) // 3, len(angles[0]) // 4, len(angles[1]) // 4,
                     len(dihedrals[0]) // 5, len(dihedrals[1]) // 5, 0, 0, sum(map(len, partners)), len(starts)]
    pointers[12:15] = pointers[[3, 5, 7]]
    pointers[15:18] = len(bond["k"]), len(angle["k"]), len(dihedral["k"])
    pointers[27:29] = 1, 24
    element = {1: 1, 12: 6, 14: 7, 16: 8, 31: 15, 23: 11, 35: 17}
    content = {
        "POINTERS": pointers, "ATOM_NAME": [label[3] for label in labels], "CHARGE": topology.charges() * AMBER_CHARGE,
        "ATOMIC_NUMBER": [element[round(m)] if round(m) in element else element[int(m)] for m in mass], "MASS": mass,
        "ATOM_TYPE_INDEX": lj_type + 1, "NUMBER_EXCLUDED_ATOMS": [len(p) for p in partners],
        "NONBONDED_PARM_INDEX": index.ravel(), "RESIDUE_LABEL": [labels[k][2] for k in starts],
        "RESIDUE_POINTER": np.array(starts) + 1, "BOND_FORCE_CONSTANT": bond["k"], "BOND_EQUIL_VALUE": bond["r0"],
        "ANGLE_FORCE_CONSTANT": angle["k"], "ANGLE_EQUIL_VALUE": np.radians(angle["theta0"]),
        "DIHEDRAL_FORCE_CONSTANT": dihedral["k"], "DIHEDRAL_PERIODICITY": dihedral["n"].astype(float),
        "DIHEDRAL_PHASE": np.radians(dihedral["phase"]), "SCEE_SCALE_FACTOR": np.full(len(quads), 1.2),
        "SCNB_SCALE_FACTOR": np.full(len(quads), 2.0), "LENNARD_JONES_ACOEF": topology.lj_c12[a, b],
        "LENNARD_JONES_BCOEF": topology.lj_c6[a, b], "BONDS_INC_HYDROGEN": bonds[0],
        "BONDS_WITHOUT_HYDROGEN": bonds[1], "ANGLES_INC_HYDROGEN": angles[0], "ANGLES_WITHOUT_HYDROGEN": angles[1],
        "DIHEDRALS_INC_HYDROGEN": dihedrals[0], "DIHEDRALS_WITHOUT_HYDROGEN": dihedrals[1],
        "EXCLUDED_ATOMS_LIST": np.concatenate(partners), "HBOND_ACOEF": np.empty(0), "HBOND_BCOEF": np.empty(0),
        "AMBER_ATOM_TYPE": [topology.lj_name[t].decode()[:4] for t in lj_type],
        "BOX_DIMENSIONS": np.array([90.0, *box]),
    }
    paths = folder / "system.prmtop", folder / "system.rst7"
    lines = ["%VERSION  VERSION_STAMP = V0001.000  DATE = 01/01/00  00:00:00", "%FLAG TITLE", "%FORMAT(20a4)", "test"]
    for name, values in content.items():
        if len(values) and isinstance(values[0], str):
            style, texts, width = "20a4", [f"{value:<4s}" for value in values], 20
        elif np.asarray(values).dtype.kind == "i":
            style, texts, width = "10I8", [f"{value:8d}" for value in values], 10
        else:
            style, texts, width = "5E24.16", [f"{value:24.16E}" for value in values], 5
        lines += [f"%FLAG {name}", f"%FORMAT({style})"]
        lines += ["".join(texts[k:k + width]) for k in range(0, len(texts), width)] or [""]
    paths[0].write_text("\n".join(lines) + "\n")
    numbers = [f"{x:12.7f}" for x in position.ravel()]
    lines = ["test", f"{n:5d}", *("".join(numbers[k:k + 6]) for k in range(0, len(numbers), 6)),
             "".join(f"{x:12.7f}" for x in (*box, 90.0, 90.0, 90.0))]
    paths[1].write_text("\n".join(lines) + "\n")
    return paths


# GROMACS --------------------------------------------------------------------------------------------------------------

def write_gromacs(folder: Path, topology: Topology, position: np.ndarray, box: np.ndarray) -> tuple[Path, Path]:
    """top and gro of a system with AMBER's 1-4 factors; parameters stand in the lines of the terms."""
    paths = folder / "system.top", folder / "system.gro"
    lines = ["[ defaults ]", f"1 2 no 0.5 {1 / 1.2!r}", "[ atomtypes ]"]
    lines += [f"T{k} 0 0.0 0.0 A {sigma / 10!r} {epsilon * 4.184!r}" for k, (sigma, epsilon) in
              enumerate(zip(topology.lj_sigma.tolist(), topology.lj_epsilon.tolist(), strict=True))]
    for k, template in enumerate(topology.templates):
        lines += _gromacs_molecule(f"M{k}", template)
    lines += ["[ system ]", "test", "[ molecules ]"]
    lines += [f"M{t} {count}" for t, count in zip(topology.run_template, topology.run_count, strict=True)]
    paths[0].write_text("\n".join(lines) + "\n")
    lines = ["test", str(topology.n_atoms)]
    lines += [f"{number % 100000:5d}{residue:<5s}{atom:>5s}{(k + 1) % 100000:5d}"
              + "".join(f"{x / 10:9.4f}" for x in position[k])
              for k, (_, number, residue, atom) in enumerate(_labels(topology))]
    lines.append(" ".join(f"{x / 10:.5f}" for x in box))
    paths[1].write_text("\n".join(lines) + "\n")
    return paths


def _gromacs_molecule(name: str, template: MoleculeTemplate) -> list[str]:
    lines = ["[ moleculetype ]", f"{name} 3", "[ atoms ]"]
    lines += [f"{k + 1} T{t} {template.residue_number[r]} {template.residue_name[r].decode()} "
              f"{template.atom_name[k].decode()} {k + 1} {q!r} {m!r}" for k, (t, r, q, m) in
              enumerate(zip(template.lj_type.tolist(), template.atom_residue.tolist(), template.charge.tolist(),
                            template.mass.tolist(), strict=True))]

    def rows(section: str, function: int, atoms: np.ndarray, *columns: np.ndarray) -> list[str]:
        return [f"[ {section} ]"] + [
            " ".join(map(str, (*(i + 1 for i in row), function, *values)))
            for row, values in zip(atoms.tolist(), zip(*(c.tolist() for c in columns), strict=True), strict=True)]

    lines += rows("bonds", 1, template.bond_atoms, template.bond_r0 / 10, 2 * template.bond_k * 418.4)
    lines += rows("angles", 1, template.angle_atoms, template.angle_theta0, 2 * template.angle_k * 4.184)
    lines += rows("dihedrals", 9, template.dihedral_atoms, template.dihedral_phase, template.dihedral_k * 4.184,
                  template.dihedral_n)
    lines += rows("pairs", 1, template.pair14_atoms, template.pair14_sigma / 10, template.pair14_epsilon * 4.184)
    if template.rigid_water:
        oh, hh = sorted(template.constraint_distance.tolist())[::2]
        lines += ["[ settles ]", f"1 1 {oh / 10!r} {hh / 10!r}"]
    return lines


def _labels(topology: Topology) -> Iterable[tuple[str, int, str, str]]:
    """Segment id, residue number, residue and atom name of every atom; waters and ions are numbered on."""
    serial = 0
    for t, count in zip(topology.run_template, topology.run_count, strict=True):
        template = topology.templates[t]
        for _ in range(count):
            serial += 1
            for name, r in zip(template.atom_name, template.atom_residue, strict=True):
                number = serial % 9999 if len(template.residue_name) == 1 else int(template.residue_number[r])
                segid = template.residue_segid[r].decode()
                yield segid, number, template.residue_name[r].decode(), name.decode()


def _rows_of(values: np.ndarray, width: int) -> list[str]:
    return ["".join(f"{value:10d}" for value in values[k:k + width]) for k in range(0, len(values), width)]
