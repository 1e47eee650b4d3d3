"""One system and one set of settings for chromamd, GROMACS, LAMMPS (waters alone) and OpenMM's CPU platform.

All: cutoff 12 angstrom, Lennard-Jones potential switched from 10, Ewald sum of order 4 on one grid with 0.26/angstrom,
2 fs, rigid waters and bonds to hydrogen, constant energy, lists of 13.5 angstrom or the program's own choice, renewed
every 10 steps where it can be set.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import openmm

from chromabuild.forcefield.topology_file import Topology
from common.engine import HYDROGEN_LJ, O_H, RMIN_TO_SIGMA, run
from common.peers import lammps_launch
from common.timing import Usage, measured

KJ, NM = 4.184, 0.1  # of a kcal, of an angstrom
ALPHA = 0.26  # 1/angstrom


def write_peers(folder: Path, topology: Topology, position: np.ndarray, box: np.ndarray,
                programs: Sequence[str]) -> None:
    """The input files of the peers among ``programs``."""
    if "gromacs" in programs:
        (folder / "topol.top").write_text(gromacs_topology(topology))
        _write_gro(folder / "conf.gro", topology, NM * position, NM * box)
    if "openmm" in programs:
        (folder / "system.xml").write_text(openmm.XmlSerializer.serialize(openmm_system(topology, box)))
        np.save(folder / "position_nm.npy", NM * position)
    if "lammps" in programs:
        _write_lammps(folder / "water.data", position, box)


def run_chromamd(folder: Path, grid: Sequence[int], steps: int, cores: int, tolerance: object = "auto",
                 kind: Literal["free", "langevin", "minimise"] = "free") -> Usage:
    """From ``start().rst``; ``tolerance``: pairlist_tolerance, kT/ns/atom; ``kind``: constant energy, Langevin dynamics
    with a friction of 1/ps, or steps of minimisation."""
    energy = {"cutoffdist": 12, "switchdist": 10, "pairlistdist": 13.5, "pme_alpha": ALPHA,
              **{f"pme_ngrid_{axis}": n for axis, n in zip("xyz", grid, strict=True)}}
    if kind == "minimise":
        return run(folder, folder / "start().rst", {"ENERGY": energy, "MINIMIZE": {
            "nsteps": steps, "eneout_period": 1000}}, threads=cores)
    ensemble = {"ensemble": "NVT", "tpcontrol": "LANGEVIN", "gamma_t": 1} if kind == "langevin" else {}
    return run(folder, folder / "start().rst", {
        "ENERGY": energy | {"pairlist_tolerance": tolerance},
        "DYNAMICS": {"nsteps": steps, "timestep": 0.002, "eneout_period": 1000},
        "CONSTRAINTS": {"rigid_bond": True}, "ENSEMBLE": {"temperature": 300, **ensemble}}, threads=cores)


def run_gromacs(gmx: Path, folder: Path, grid: Sequence[int], steps: int, cores: int) -> Usage:
    """``gmx mdrun`` with one rank; ``grompp`` is not counted."""
    settings = {
        "integrator": "md", "dt": 0.002, "nsteps": steps, "cutoff-scheme": "Verlet", "nstlist": 10, "rcoulomb": 1.2,
        "rvdw": 1.2, "rvdw-switch": 1.0, "vdw-modifier": "potential-switch", "DispCorr": "no", "coulombtype": "PME",
        "pme-order": 4, **{f"fourier-n{axis}": n for axis, n in zip("xyz", grid, strict=True)},
        "constraints": "h-bonds", "gen-vel": "yes", "gen-temp": 300, "nstcalcenergy": 100, "nstenergy": 1000,
        "nstlog": 1000, "nstcomm": 100}
    (folder / "run.mdp").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    measured([gmx, "grompp", "-f", "run.mdp", "-c", "conf.gro", "-p", "topol.top", "-o", "run.tpr", "-maxwarn", 10],
             folder / "grompp.log", folder=folder)
    return measured([gmx, "mdrun", "-s", "run.tpr", "-deffnm", "gromacs", "-ntmpi", 1, "-ntomp", cores, "-notunepme",
                     "-nstlist", 10, "-noconfout", "-pin", "off"], folder / "mdrun.log", cores, folder=folder)


def run_lammps(lmp: Path, folder: Path, grid: Sequence[int], steps: int, cores: int) -> Usage:
    """With the OPT package, a rank a core."""
    (folder / "in.lammps").write_text(f"""units real
atom_style full
bond_style harmonic
angle_style harmonic
pair_style lj/charmm/coul/long 10.0 12.0
pair_modify mix arithmetic
special_bonds lj/coul 0 0 0
kspace_style pppm 1e-4
kspace_modify mesh {grid[0]} {grid[1]} {grid[2]} order 4 gewald {ALPHA} diff ad
read_data water.data
neighbor 1.5 bin
neigh_modify every 10 delay 0 check no
velocity all create 300 4711
fix 1 all shake 1e-5 100 0 b 1 a 1
fix 2 all nve
timestep 2.0
thermo 100000
run {steps}
""")
    return measured([*lammps_launch(lmp, cores), "-in", "in.lammps", "-log", "none", "-sf", "opt"],
                    folder / "lammps.log", folder=folder)


_OPENMM = """
import sys
import numpy, openmm
system = openmm.XmlSerializer.deserialize(open("system.xml").read())
grid, steps, threads = eval(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for force in system.getForces():
    if isinstance(force, openmm.NonbondedForce):
        force.setPMEParameters(10 * float(sys.argv[4]), *grid)
integrator = openmm.VerletIntegrator(0.002)
context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("CPU"), {"Threads": threads})
context.setPositions(numpy.load("position_nm.npy"))
context.setVelocitiesToTemperature(300, 1)
integrator.step(steps)
context.getState(getEnergy=True)
"""


def run_openmm(folder: Path, grid: Sequence[int], steps: int, cores: int) -> Usage:
    """OpenMM's CPU platform."""
    (folder / "openmm_run.py").write_text(_OPENMM)
    return measured([sys.executable, "openmm_run.py", repr(tuple(grid)), steps, cores, ALPHA], folder / "openmm.log",
                    cores, folder=folder)


def openmm_system(topology: Topology, box: np.ndarray) -> openmm.System:
    """An OpenMM System as OpenMM's users have it: one NonbondedForce with the Ewald sum and OpenMM's own switch."""
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*np.diag(NM * box))
    for mass in topology.masses().tolist():
        system.addParticle(mass)
    kind = topology.per_atom("lj_type")
    pairs = openmm.NonbondedForce()
    pairs.setNonbondedMethod(openmm.NonbondedForce.PME)
    pairs.setCutoffDistance(1.2)
    pairs.setUseSwitchingFunction(True)
    pairs.setSwitchingDistance(1.0)
    pairs.setUseDispersionCorrection(False)
    for row in zip(topology.charges().tolist(), (NM * topology.lj_sigma[kind]).tolist(),
                   (KJ * topology.lj_epsilon[kind]).tolist(), strict=True):
        pairs.addParticle(*row)
    scaled = topology.term("pair14")
    for i, j in topology.exclusions().tolist():
        pairs.addException(i, j, 0, 1, 0)
    for (i, j), *values in zip(scaled["atoms"].tolist(), scaled["charge_product"], NM * scaled["sigma"],
                               KJ * scaled["epsilon"], strict=True):
        pairs.addException(i, j, *values, True)
    bond, angle, dihedral = (topology.term(name) for name in ("bond", "angle", "dihedral"))
    constraint = topology.term("constraint")
    for (i, j), distance in zip(constraint["atoms"].tolist(), NM * constraint["distance"], strict=True):
        system.addConstraint(i, j, distance)
    rigid = set(map(tuple, np.sort(constraint["atoms"], axis=1).tolist()))
    bonds, angles, torsions = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce(), openmm.PeriodicTorsionForce()
    for atoms, r0, k in zip(bond["atoms"].tolist(), NM * bond["r0"], 2 * KJ / NM**2 * bond["k"], strict=True):
        if tuple(sorted(atoms)) not in rigid:
            bonds.addBond(*atoms, r0, k)
    for atoms, theta0, k in zip(angle["atoms"].tolist(), np.radians(angle["theta0"]), 2 * KJ * angle["k"], strict=True):
        if tuple(sorted((atoms[0], atoms[2]))) not in rigid:
            angles.addAngle(*atoms, theta0, k)
    for atoms, *values in zip(dihedral["atoms"].tolist(), dihedral["n"].tolist(), np.radians(dihedral["phase"]),
                              KJ * dihedral["k"], strict=True):
        torsions.addTorsion(*atoms, *values)
    for force in (pairs, bonds, angles, torsions):
        system.addForce(force)
    return system


def _write_lammps(path: Path, position: np.ndarray, box: np.ndarray) -> None:
    """Waters of ``water_topology(hydrogen_lj=True)``: types 1 (O) and 2 (H), one bond and one angle type."""
    n = len(position)
    atom = np.arange(n)
    water = np.arange(n // 3)
    with path.open("w") as file:
        file.write(f"water\n\n{n} atoms\n{2 * len(water)} bonds\n{len(water)} angles\n2 atom types\n1 bond types\n"
                   "1 angle types\n\n")
        file.writelines(f"0 {edge:.6f} {axis}lo {axis}hi\n" for axis, edge in zip("xyz", box, strict=True))
        file.write("\nMasses\n\n1 15.9994\n2 1.008\n\nPair Coeffs\n\n"
                   f"1 0.1521 {1.7682 * RMIN_TO_SIGMA:.8f}\n2 {HYDROGEN_LJ[1]} {HYDROGEN_LJ[0]:.8f}\n"
                   f"\nBond Coeffs\n\n1 450 {O_H}\n\nAngle Coeffs\n\n1 55 104.52\n\nAtoms\n\n")
        kind = np.where(atom % 3 == 0, 1, 2)
        charge = np.where(atom % 3 == 0, -0.834, 0.417)
        np.savetxt(file, np.column_stack([atom + 1, atom // 3 + 1, kind, charge, position]),
                   "%d %d %d %.4f %.4f %.4f %.4f")
        file.write("\nBonds\n\n")
        first = np.repeat(3 * water + 1, 2)
        bonds = np.arange(2 * len(water))
        np.savetxt(file, np.column_stack([bonds + 1, np.ones_like(first), first, first + 1 + bonds % 2]), "%d")
        file.write("\nAngles\n\n")
        oxygen = 3 * water + 1
        np.savetxt(file, np.column_stack([water + 1, np.ones_like(water), oxygen + 1, oxygen, oxygen + 2]), "%d")


def gromacs_topology(topology: Topology) -> str:
    """The text of a .top file: excluded and 1-4 pairs one by one, waters for SETTLE."""
    lines = ["[ defaults ]", "1 2 no 1.0 1.0", "[ atomtypes ]"]
    lines += [f"T{k} 1.0 0.0 A {NM * sigma:.9g} {KJ * epsilon:.9g}"
              for k, (sigma, epsilon) in enumerate(zip(topology.lj_sigma, topology.lj_epsilon, strict=True))]
    for k, template in enumerate(topology.templates):
        lines += ["[ moleculetype ]", f"M{k} 0", "[ atoms ]"]
        # GROMACS knows the hydrogens whose bonds it makes rigid by their names.
        rows = zip(template.lj_type, template.charge, template.mass, strict=True)
        lines += [f"{i} T{lj} 1 M{k} {'H' if mass < 2 else 'X'}{i} {i} {charge:.9g} {mass:.9g}"
                  for i, (lj, charge, mass) in enumerate(rows, start=1)]
        if template.rigid_water:
            distance = NM * np.sort(template.constraint_distance)  # O-H twice, H-H
            lines += ["[ settles ]", f"1 1 {distance[0]:.9g} {distance[2]:.9g}"]
        else:
            lines += _terms("bonds", template.bond_atoms, 1, NM * template.bond_r0, 2 * KJ / NM**2 * template.bond_k)
            lines += _terms("angles", template.angle_atoms, 1, template.angle_theta0, 2 * KJ * template.angle_k)
        lines += _terms("dihedrals", template.dihedral_atoms, 9, template.dihedral_phase, KJ * template.dihedral_k,
                       template.dihedral_n.astype(int))
        ones = np.ones(len(template.pair14_atoms))
        lines += _terms("pairs", template.pair14_atoms, 2, ones, template.pair14_charge_product, ones,
                       NM * template.pair14_sigma, KJ * template.pair14_epsilon)
        lines += ["[ exclusions ]", *(f"{i + 1} {j + 1}" for i, j in template.exclusion)]
        assert not any(map(len, (template.urey_bradley_atoms, template.improper_atoms, template.cmap_atoms)))
    lines += ["[ system ]", "solute in water", "[ molecules ]"]
    lines += [f"M{t} {count}" for t, count in zip(topology.run_template, topology.run_count, strict=True)]
    return "\n".join(lines) + "\n"


def _terms(directive: str, atoms: np.ndarray, function: int, *parameters: np.ndarray) -> list[str]:
    """Lines of one directive; atoms count from 1."""
    rows = zip((atoms + 1).tolist(), *(values.tolist() for values in parameters), strict=True)
    return [f"[ {directive} ]", *(" ".join(map(str, [*numbers, function, *(f"{value:.9g}" for value in values)]))
                                  for numbers, *values in rows)]


def _write_gro(path: Path, topology: Topology, position: np.ndarray, box: np.ndarray) -> None:
    """Coordinates in nm, without velocities."""
    molecules = np.repeat(topology.run_template, topology.run_count)
    sizes = np.array([template.n_atoms for template in topology.templates])[molecules]
    number = np.repeat(np.arange(1, len(molecules) + 1), sizes)
    kind = np.repeat(molecules, sizes)
    light = topology.masses() < 2
    place = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    with path.open("w") as file:
        file.write(f"solute in water\n{len(position)}\n")
        for row, name, i, is_light, (x, y, z), atom in zip(number, kind, place, light, position,
                                                          range(1, len(number) + 1), strict=True):
            file.write(f"{row % 100000:5d}{f'M{name}':<5s}{('H' if is_light else 'X') + str(i):>5.5s}{atom % 100000:5d}"
                       f"{x:8.3f}{y:8.3f}{z:8.3f}\n")
        file.write(" ".join(f"{edge:.6f}" for edge in box) + "\n")
