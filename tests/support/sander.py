"""Energies and forces of AMBER's sander, of AmberTools.

Terms of mdout have four decimals. Sander takes erfc from a table that is good to some 1e-7 of the energy of all pairs:
2e-6 of a term, and 1e-5 of the forces, which are written in single precision, cover it. Its influence function is an
optimal one in place of that of smooth PME: meshes have to be fine. An atom exactly in the middle of an edge of the box
has no charge there.
"""

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import netcdf_file

from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.openmm_engine import SPLINE_ORDER, NonbondedOptions
from support.engine_energies import reference_energy, relative_rms
from support.judges import SANDER
from support.molecular_systems import MolecularSystem

COULOMB = 18.2223**2
"""kcal angstrom/mol/e^2 of AMBER."""
ROUNDING = 1e-4
"""kcal/mol of a term that is the sum of two."""
TERMS = {"bond": ("BOND",), "angle": ("ANGLE",), "dihedral": ("DIHED",), "urey_bradley": ("UB",), "improper": ("IMP",),
         "cmap": ("CMAP",), "lennard_jones": ("VDWAALS", "1-4 NB"), "electrostatic": ("EELEC", "1-4 EEL")}


def terms(text: str) -> dict[str, float]:
    """Of the first table of energies in a text."""
    table = text[text.index(" NSTEP ="):].partition(" ---")[0]
    return {name: float(value) for name, value in re.findall(r"((?:1-4 )?[A-Z]+)\s*=\s*(-?[\d.]+)", table)}


def with_ambers_constant(topology: Topology) -> Topology:
    """The topology whose charges have AMBER's energies by our Coulomb constant."""
    scale = COULOMB / topology.coulomb_constant
    return replace(topology, templates=[
        replace(template, charge=scale**0.5 * template.charge,
                pair14_charge_product=scale * template.pair14_charge_product) for template in topology.templates])


def evaluated(folder, options: NonbondedOptions) -> tuple[dict[str, float], np.ndarray]:
    """Energies by term and forces (n, 3) of ``system.prmtop`` and ``system.rst7`` in a folder, from a step of no
    length."""
    mesh = ", ".join(f"nfft{k} = {points}" for k, points in zip((1, 2, 3), options.grid, strict=True))
    switch = f", fswitch = {options.switch_distance}" if options.force_switch else ""
    (folder / "energy.in").write_text(
        f"energy\n &cntrl nstlim = 1, dt = 1e-7, cut = {options.cutoff}{switch}, ntpr = 1, ntwf = 1, ioutfm = 1 /\n"
        f" &ewald {mesh}, order = {SPLINE_ORDER}, ew_coeff = {options.alpha!r}, vdwmeth = {int(options.tail)}, "
        "skinnb = 0.3, netfrc = 0 /\n")
    command = [SANDER, "-O", "-i", "energy.in", "-p", "system.prmtop", "-c", "system.rst7", "-o", "energy.out",
               "-frc", "energy.nc"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    said = (folder / "energy.out").read_text()
    assert done.returncode == 0, said[-2000:] + done.stderr
    assert "WARNING" not in said, said[said.index("WARNING"):][:500]
    found = terms(said)
    with netcdf_file(folder / "energy.nc", mmap=False) as file:
        force = file.variables["forces"][0].astype(float)
    return {term: sum(found.get(name, 0.0) for name in names) for term, names in TERMS.items()}, force


def of_rigid_bodies(topology: Topology, force: np.ndarray) -> np.ndarray:
    """Forces on atoms, and on whole molecules of rigid water."""
    found, first = [], 0
    for template, count in zip(topology.run_template, topology.run_count, strict=True):
        n = topology.templates[template].n_atoms
        part = force[first:first + n * count]
        first += n * count
        found.append(part.reshape(count, n, 3).sum(axis=1) if topology.templates[template].rigid_water else part)
    return np.concatenate(found)


def agree_with(system: MolecularSystem, options: NonbondedOptions, found: dict[str, float], force: np.ndarray,
               reference=reference_energy, looser: float = 1.0) -> None:
    """A rigid water has its third side as a bond in place of its angle: what it holds together does not count."""
    topology = with_ambers_constant(system.topology)
    ours, our_force = reference(replace(system, topology=topology), options)
    has_water = any(template.rigid_water for template in topology.templates)
    for term, value in ours.items():
        if not (has_water and term in ("bond", "angle")):
            assert found[term] == pytest.approx(value, rel=2e-6 * looser, abs=ROUNDING), term
    assert relative_rms(of_rigid_bodies(topology, force), of_rigid_bodies(topology, our_force)) < 1e-5 * looser
