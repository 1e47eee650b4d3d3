"""Files as a user of GENESIS has them: salt water in those of CHARMM with control files in the manner of its tutorials,
and restart files in its binary form."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

BOX = 18.9
SIDE = 6
PARAMETERS = """* TIP3P water of CHARMM
*
ATOMS
MASS -1 OT 15.9994
MASS -1 HT 1.008

BONDS
HT HT 0.0 1.5139
OT HT 450.0 0.9572

ANGLES
HT OT HT 55.0 104.52

NONBONDED nbxmod 5 atom cdiel fshift vatom vdistance vfswitch -
cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac 1.0 wmin 1.5
HT 0.0 -0.046 0.2245
OT 0.0 -0.1521 1.7682

END
"""
STREAM = """* ions
*
read rtf card append
36 1

MASS -1 SOD 22.98977
MASS -1 CLA 35.45

RESI SOD 1.00
GROUP
ATOM SOD SOD 1.00

RESI CLA -1.00
GROUP
ATOM CLA CLA -1.00

END

read para card flex append
NONBONDED nbxmod 5 atom cdiel fshift vatom vdistance vfswitch -
cutnb 14.0 ctofnb 12.0 ctonnb 10.0 eps 1.0 e14fac 1.0 wmin 1.5
SOD 0.0 -0.0469 1.41075
CLA 0.0 -0.150 2.27

END
RETURN
"""
RESIDUES = """* water
*
36 1

MASS -1 OT 15.9994
MASS -1 HT 1.008

RESI TIP3 0.00
GROUP
ATOM OH2 OT -0.834
ATOM H1 HT 0.417
ATOM H2 HT 0.417
BOND OH2 H1 OH2 H2 H1 H2
ANGLE H1 OH2 H2

END
"""


def write_salt_water(folder: Path) -> np.ndarray:
    """``step1.psf``, ``step1.pdb`` (no box), ``toppar/water.rtf``, ``.prm`` and ``ions.str``; gives (n, 3) positions.

    Two segments of waters, WATA with residues 1 to 120 and WATB with 1 to 92, and two sodiums and chlorides, IONS with
    residues 1 to 4.
    """
    rng = np.random.default_rng(2)
    site = (np.argwhere(np.ones((SIDE,) * 3)) + 0.5) * BOX / SIDE - BOX / 2  # about the origin, as CHARMM-GUI does
    half = np.radians(104.52 / 2)
    water = 0.9572 * np.array([[0, 0, 0], [np.sin(half), np.cos(half), 0], [-np.sin(half), np.cos(half), 0]])
    atoms, position = [], []
    kinds = [("WATA", k + 1) for k in range(120)] + [("WATB", k + 1) for k in range(92)]
    for (segment, number), centre in zip(kinds, site, strict=False):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        position += list(centre + water @ turn.T)
        atoms += [(segment, number, "TIP3", "OH2", "OT", -0.834, 15.9994),
                  (segment, number, "TIP3", "H1", "HT", 0.417, 1.008),
                  (segment, number, "TIP3", "H2", "HT", 0.417, 1.008)]
    for k, name in enumerate(("SOD", "SOD", "CLA", "CLA")):
        position.append(site[len(kinds) + k])
        atoms.append(("IONS", k + 1, name, name, name, *((1.0, 22.98977) if name == "SOD" else (-1.0, 35.45))))
    position = np.round(np.array(position), 3)
    first = 3 * np.arange(len(kinds)) + 1
    bonds = np.stack([first, first + 1, first, first + 2, first + 1, first + 2], axis=1).ravel()
    angles = np.stack([first + 1, first, first + 2], axis=1).ravel()

    def rows(values: np.ndarray, width: int) -> list[str]:
        return ["".join(f"{value:10d}" for value in values[k:k + width]) for k in range(0, len(values), width)] + [""]

    psf = ["PSF EXT CMAP XPLOR", "", f"{1:10d} !NTITLE", "* test", "", f"{len(atoms):10d} !NATOM"]
    psf += [f"{k:10d} {segment:<8s} {number:<8d} {residue:<8s} {name:<8s} {kind:<6s} {charge:14.6f}{mass:14.4f} 0"
            for k, (segment, number, residue, name, kind, charge, mass) in enumerate(atoms, 1)]
    psf += ["", f"{len(bonds) // 2:10d} !NBOND: bonds", *rows(bonds, 8), f"{len(angles) // 3:10d} !NTHETA: angles",
            *rows(angles, 9)]
    for title in ("!NPHI: dihedrals", "!NIMPHI: impropers", "!NDON: donors", "!NACC: acceptors"):
        psf += [f"{0:10d} {title}", "", ""]
    psf += [f"{0:10d} !NNB", "", *rows(np.zeros(len(atoms), int), 8), f"{1:10d}{0:10d} !NGRP NST2",
            f"{0:10d}{0:10d}{0:10d}", "", f"{0:10d} !NCRTERM: cross-terms", "", ""]
    pdb = [f"ATOM  {k:5d} {name:<4s} {residue:<4s}{segment[0]}{number:4d}    "
           + "".join(f"{x:8.3f}" for x in position[k - 1]) + f"  1.00  0.00      {segment:<4s}"
           for k, (segment, number, residue, name, *_) in enumerate(atoms, 1)]
    (folder / "toppar").mkdir(exist_ok=True)
    (folder / "toppar/water.rtf").write_text(RESIDUES)
    (folder / "toppar/water.prm").write_text(PARAMETERS)
    (folder / "toppar/ions.str").write_text(STREAM)
    (folder / "step1.psf").write_text("\n".join(psf) + "\n")
    (folder / "step1.pdb").write_text("\n".join([*pdb, "END"]) + "\n")
    return position


FILES = """[INPUT]
topfile = toppar/water.rtf                 # topology file
parfile = toppar/water.prm                 # parameter file
strfile = toppar/ions.str                  # stream file
psffile = step1.psf                        # protein structure file
pdbfile = step1.pdb                        # PDB file
"""
ENERGY = """[ENERGY]
forcefield       = CHARMM    # [CHARMM]
electrostatic    = PME       # [CUTOFF,PME]
switchdist       = 7.0       # switch distance
cutoffdist       = 8.0       # cutoff distance
pairlistdist     = 9.0       # pair-list distance
vdw_force_switch = YES
pme_nspline      = 4
pme_max_spacing  = 1.2
pme_scheme       = AUTOSELECT
water_model      = NONE
output_style     = GENESIS
dielec_const     = 1.0
"""
MINIMISE = FILES + """
[OUTPUT]
dcdfile = step2.dcd
rstfile = step2.rst

""" + ENERGY + """contact_check    = YES
nonb_limiter     = YES
minimum_contact  = 0.5

[MINIMIZE]
method           = SD
nsteps           = 300
eneout_period    = 100
crdout_period    = 100
rstout_period    = 300
force_scale_init = 0.0005
force_scale_max  = 0.002
nbupdate_period  = 10
verbose          = NO
check_structure  = YES
fix_ring_error   = NO

[CONSTRAINTS]
rigid_bond       = NO
fast_water       = NO

[BOUNDARY]
type             = PBC
box_size_x       = 18.9
box_size_y       = 18.9
box_size_z       = 18.9
cell_size_buffer = 0.0
"""
HEAT = FILES + """reffile = step1.pdb
rstfile = step2.rst

[OUTPUT]
dcdfile = step3.dcd
rstfile = step3.rst

""" + ENERGY + """
[DYNAMICS]
integrator       = VVER      # [LEAP,VVER]
nsteps           = 20
timestep         = 0.001
eneout_period    = 10
crdout_period    = 10
velout_period    = 0
rstout_period    = 20
stoptr_period    = 10
nbupdate_period  = 10
iseed            = -1
verbose          = NO
annealing        = YES
anneal_period    = 10
dtemperature     = 50.0

[CONSTRAINTS]
rigid_bond       = YES
fast_water       = YES
shake_tolerance  = 1.0d-10
water_model      = TIP3
hydrogen_type    = NAME

[ENSEMBLE]
ensemble         = NVT
tpcontrol        = BUSSI
temperature      = 100.0
group_tp         = YES

[BOUNDARY]
type             = PBC

[SELECTION]
group1           = sid:IONS and rnam:SOD   # the ions
group2           = (sid:WATB & rno:1-3) \\
                   & !(an:H*)

[RESTRAINTS]
nfunctions       = 2
function1        = POSI
direction1       = ALL
constant1        = 1.0
exponent1        = 2
select_index1    = 1
function2        = POSI
constant2        = 2.0
select_index2    = 2
pressure_position = NO

[FITTING]
fitting_method   = TR+ROT
fitting_atom     = 1
"""
_NEXT = [("step2.rst", "step3.rst"), ("rstfile = step3.rst\n\n[ENERGY", "rstfile = step4.rst\n\n[ENERGY"),
         ("step3.dcd", "step4.dcd"), ("= NVT", "= NPT"), ("annealing        = YES", "annealing        = NO"),
         ("temperature      = 100.0", "temperature      = 150.0\npressure         = 1.0\nisotropy         = ISO\n"
                                      "tau_p            = 5.0")]
EQUILIBRATE = HEAT
for _before, _after in _NEXT:
    EQUILIBRATE = EQUILIBRATE.replace(_before, _after)


def chromamd_command(*arguments: object, cwd: Path, ranks: int = 1) -> subprocess.CompletedProcess[str]:
    """The console command ``chromamd`` in a folder, by each of several ranks."""
    line = [sys.executable, "-P", "-c", "from chromabuild.simulate.executable import main; main()",
            *map(str, arguments)]
    if ranks > 1:
        line = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(ranks), *line]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1",
                                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def write_genesis_restart(path: Path, position: np.ndarray, velocity: np.ndarray | None, box: np.ndarray) -> None:
    """A restart file of GENESIS: of dynamics with ``velocity`` in its unit, else of a minimisation."""
    blocks = [("num_atoms", b"i", np.array([len(position)], "<i4")),
              ("rstfile_type", b"i", np.array([1 if velocity is None else 2], "<i4"))]
    blocks += [(f"box_size_{axis}", b"w", box[k:k + 1]) for k, axis in enumerate("xyz")]
    blocks += [(f"coord_{axis}", b"w", position[:, k]) for k, axis in enumerate("xyz")]
    if velocity is not None:
        blocks += [("iseed", b"i", np.array([7], "<i4")), ("thermostat_momentum", b"w", np.zeros(1))]
        blocks += [(f"velocity_{axis}", b"w", velocity[:, k]) for k, axis in enumerate("xyz")]
        blocks += [("random", b"b", np.zeros(13, "u1"))]
    with open(path, "wb") as file:
        file.write(b"GD150608")
        for name, kind, values in blocks:
            payload = values.astype("<f8").tobytes() if kind == b"w" else values.tobytes()
            file.write(np.int64(len(payload) + 57).tobytes() + kind + name.encode().ljust(40) + payload + bytes(8))
