"""Total energies of chromaqm beside ABINIT (apt install abinit), besides pw.x: a water, GTH and UPF potentials.

Same cutoff, grid and functional. GTH potentials go in by their numbers (ABINIT's code 10). ABINIT 9.6 does not read UPF
files of version 2, so those of water from Quantum ESPRESSO (--pseudo) are interpolated on its linear mesh (code 8),
which limits the last row. ABINIT does not cut gradient terms at low density; ours fade (`xc_cut = SMOOTH`): some 1e-6
Ha.
"""

import json
import re
import tempfile
from pathlib import Path

import numpy as np
from common.command import Benchmark
from planewave import ATOMS, CHARGE, GTH, NUMBER, UPF, ours, times_of
from scipy.interpolate import CubicSpline

CASES = {"PZ, GTH": ("PZ", False), "BLYP, GTH": ("BLYP", False), "BLYP, UPF": ("BLYP", True)}
XC = {"PZ": 2, "BLYP": -106131}
"""ABINIT's number of a functional; of BLYP those of exchange and correlation in libxc."""
EDGE, CUTOFF, GRID = 12, 70, 64
STEP, POINTS = 0.005, 2001
"""Bohr: to 10, where the local part of a table ends for chromaqm and pw.x too."""


def gth_file(element: str, functional: str) -> str:
    return (f"GTH\n{NUMBER[element]} {CHARGE[element]} 010101\n10 {XC[functional]} 0 0 2001 0\n"
            f"{GTH[element, functional]}\n")


def linear_file(element: str, path: Path) -> str:
    """A UPF file of s projectors on a linear mesh; energies in hartree."""
    text = path.read_text()

    def values(tag: str) -> np.ndarray:
        found = re.search(rf"<{tag}(?=[ >\n])[^>]*>(.*?)</{tag}>", text, re.DOTALL)
        return np.array(found[1].split(), float)

    mesh, new = values("PP_R"), STEP * np.arange(POINTS)

    def column(table: np.ndarray, at_zero: float) -> np.ndarray:
        table = np.pad(table, (0, len(mesh) - len(table)))
        return np.append(at_zero, CubicSpline(mesh, table)(new[1:]))

    local = values("PP_LOCAL") / 2
    blocks = [("4", [column(local, local[0])])]
    if "<PP_BETA.1" in text:
        blocks.insert(0, (f"0 {values('PP_DIJ')[0] / 2:.15e}", [column(values("PP_BETA.1"), 0.0)]))
    head = (f"{element}\n{NUMBER[element]} {CHARGE[element]} 010101\n8 {XC['BLYP']} 0 4 {POINTS} 0\n0 0 0\n"
            f"{len(blocks) - 1} 0 0 0 0\n0\n")
    return head + "".join(f"{start}\n" + "".join(f"{k + 1} {r:.15e} {value:.15e}\n" for k, (r, value) in
                                                  enumerate(zip(new, table, strict=True)))
                          for start, (table,) in blocks)


def abinit(folder: Path, functional: str, pseudo: Path | None) -> float:
    """Total energy by ABINIT, Ha."""
    for element in UPF:
        (folder / f"{element}.psp").write_text(
            gth_file(element, functional) if pseudo is None else linear_file(element, pseudo / UPF[element]))
    places = " ".join(line.split(maxsplit=1)[1] for line in ATOMS["water"].splitlines())
    (folder / "water.abi").write_text(
        f'pp_dirpath "{folder}"\npseudos "O.psp, H.psp"\nntypat 2\nznucl 8 1\nnatom 3\ntypat 1 2 2\nacell 3*{EDGE}\n'
        f"xcart {places}\necut {CUTOFF / 2}\nngfft 3*{GRID}\nboxcutmin 1.9\nixc {XC[functional]}\nnband 4\nkptopt 0\n"
        "nkpt 1\nkpt 3*0\nistwfk 2\nnsym 1\ntoldfe 1e-11\nnstep 80\nprtwf 0\nprtden 0\nprteig 0\n")
    times_of(["abinit", "water.abi"], folder, "abinit.out")
    return float(re.findall(r"^ *etotal +(\S+)$", (folder / "water.abo").read_text(), re.MULTILINE)[-1])


def main() -> None:
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--pseudo", type=Path, default=Path("/usr/share/espresso/pseudo"))
    benchmark.parser.add_argument("--cases", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}")
    given = benchmark.start(quick={"cases": ["PZ, GTH"]})
    table = benchmark.table("energies", "Total energies of a water beside ABINIT (Ha)", case="", chromaqm=".9f",
                            ABINIT=".9f", difference=".1e")
    for name in given.cases:
        functional, has_upf = CASES[name]
        pseudo = given.pseudo if has_upf else None
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            ours(folder, ATOMS["water"], f"length_unit = BOHR\n[SYSTEM]\nbox = {EDGE}\n[ELECTRONS]\ncutoff = {CUTOFF}\n"
                 f"functional = {functional}\n[MINIMIZE]\ntolerance = 1e-10", pseudo)
            result = json.loads((folder / "result.json").read_text())
            peer = abinit(folder, functional, pseudo)
            benchmark.peer("ABINIT", re.findall(r"Version +(\S+)", (folder / "water.abo").read_text())[0])
        table.row(name, result["total"], peer, result["total"] - peer)
    benchmark.finish()


if __name__ == "__main__":
    main()
