"""Systems that AMBER's tleap makes, imported: energies and forces are those of sander, from the same files."""

import subprocess

import numpy as np
import pytest
from scipy.io import netcdf_file
from support.four_point import placed
from support.judges import SANDER, TLEAP, needs_judges
from support.molecular_systems import MolecularSystem
from support.sander import agree_with, evaluated

from chromabuild.forcefield.import_files import import_system
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.openmm_engine import NonbondedOptions

OPTIONS = NonbondedOptions(7.0, 0.44, (96, 96, 96))
SYSTEMS = {
    "DNA with magnesium": ("DNA.bsc1 water.tip3p", """m = sequence { DG5 DC DA DT DG DC3 }
solvateBox m TIP3PBOX 5.0
addIons m MG 0
addIonsRand m Na+ 3 Cl- 2
"""),
    "correction maps, four-point water": ("protein.ff19SB water.opc", """m = sequence { NALA ARG GLY TRP HIE PRO CLYS }
solvateBox m OPCBOX 5.0
addIonsRand m Cl- 3
"""),
    "sugar, lipid, RNA and protein": ("protein.ff14SB GLYCAM_06j-1 lipid21 RNA.OL3 water.spce",
                                      """g = sequence { ROH 4GB 0GB }
l = sequence { OL PC OL }
r = sequence { G5 A U3 }
p = sequence { NALA HID PHE CVAL }
translate g { 10 0 0 }
translate l { 0 15 0 }
translate r { 0 0 15 }
m = combine { g l r p }
solvateBox m SPCBOX 4.0
addIonsRand m K+ 2
""")}
"""Files of parameters, and what is made. 1-4 pairs of GLYCAM are not scaled, those of the others are."""
MINIMISE = """apart
 &cntrl imin = 1, maxcyc = 60, ncyc = 30, cut = 7.0, ntc = 2, ntf = 2 /
"""


@needs_judges
@pytest.mark.parametrize("name", SYSTEMS)
def test_energies_and_forces(tmp_path, name):
    """Minimised a little by sander: what tleap makes has atoms on top of each other."""
    sources, made = SYSTEMS[name]
    (tmp_path / "make.in").write_text("".join(f"source leaprc.{source}\n" for source in sources.split())
                                      + made + "saveAmberParm m system.prmtop made.rst7\nquit\n")
    (tmp_path / "apart.in").write_text(MINIMISE)
    for command in ([TLEAP, "-s", "-f", "make.in"], [SANDER, "-O", "-i", "apart.in", "-p", "system.prmtop", "-c",
                                                     "made.rst7", "-o", "apart.out", "-r", "system.rst7"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    import_system(tmp_path / "system.prmtop", tmp_path / "system.rst7", [], tmp_path / "imported")
    topology = Topology.read(tmp_path / "imported" / "topology.h5")
    with netcdf_file(tmp_path / "system.rst7", mmap=False) as file:
        position, box = (file.variables[key][:].astype(float) for key in ("coordinates", "cell_lengths"))
    if len(topology.term("virtual_site")["atoms"]):
        position = placed(topology, position)
    agree_with(MolecularSystem(topology, position, np.array(box)), OPTIONS, *evaluated(tmp_path, OPTIONS))
