"""Plane waves: energies of chromaqm beside pw.x, steps of dynamics beside cp.x, and the conserved quantity of 8 waters.

pw.x and cp.x are those of Quantum ESPRESSO (apt install quantum-espresso quantum-espresso-data), which ships the UPF
files of water, too: --pseudo names their folder. Energies: the same potential, cutoff, grid and functional, with
`xc_cut = STEP`, as pw.x drops exchange and correlation at low density. Steps: waters in a cube at 1 g/cm^3, 70 Ry,
BLYP, Car-Parrinello dynamics on one core; both programs take turns, and a step is the difference of the processor time
of a long and a short run over the difference of their steps, so that start-up does not count. cp.x starts from random
states and does not minimise: its steps cost the same. Which BLAS it has is printed, as Debian's default is slow. One
and two ranks take turns, too.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.results import ratios, spread

from chromabuild.base.errors import NotConvergedError
from chromabuild.quantum.chromaqm import executable
from chromabuild.simulate.launcher import launched

ATOMS = {
    "H": "H 0 0 0",
    "H2": "H .1 .2 .3\nH .9 1.1 1.05",
    "water": "O .10 .20 .30\nH 1.55 1.25 .45\nH -1.40 1.20 -.20",
}
# Of templates/gth_potentials.txt, in the form of pw.x (that of ABINIT's code 10, without its opening lines).
GTH = {
    ("H", "PZ"): "0.20000000 2 -4.18023680 0.72507482\n1\n0.2 0",
    ("H", "BLYP"): "0.20000000 2 -4.19596147 0.73049821\n1\n0.2 0",
    ("O", "PZ"): "0.24762086 2 -16.58031797 2.39570092\n1\n0.22178614 1 18.26691718",
    ("O", "BLYP"): "0.24342026 2 -16.99189235 2.56614206\n1\n0.22083140 1 18.38885102",
    ("Si", "PZ"): "0.44000000 1 -7.33610297\n2\n0.42273813 2 5.90692831 -1.26189397\n3.25819622\n"
                  "0.48427842 1 2.72701346\n0.0",
}
NUMBER, CHARGE = {"H": 1, "O": 8, "Si": 14}, {"H": 1, "O": 6, "Si": 4}
CODE = {"PZ": 1, "BLYP": 18}
UPF = {"H": "H.blyp-vbc.UPF", "O": "O.blyp-mt.UPF"}
CASES = {  # atoms, edge (bohr), cutoff (Ry), functional, UPF
    "H atom, PZ": ("H", 12.0, 100, "PZ", False),
    "H2, PZ": ("H2", 10.0, 40, "PZ", False),
    "Si8, PZ": ("Si8", 10.263, 25, "PZ", False),
    "water, PZ": ("water", 12.0, 70, "PZ", False),
    "water, BLYP": ("water", 12.0, 70, "BLYP", False),
    "water, BLYP, UPF": ("water", 12.0, 70, "BLYP", True),
}
WATER_VOLUME = 29.875
"""Cubic angstrom a molecule at 1 g/cm^3."""


def silicon(edge: float) -> str:
    """Eight atoms of diamond, the first one moved by a hundredth of the edge."""
    centres = [(0, 0, 0), (0, .5, .5), (.5, 0, .5), (.5, .5, 0)]
    places = edge * np.array([*centres, *(np.array(centres) + .25)])
    places[0, 0] += 0.01 * edge
    return "\n".join("Si {:.10f} {:.10f} {:.10f}".format(*place) for place in places)


def waters(n: int) -> tuple[str, float]:
    """Molecules with random orientations on a grid, and the edge of their cube, both in angstrom."""
    random = np.random.default_rng(1)
    edge = (n * WATER_VOLUME) ** (1 / 3)
    cells = round(n ** (1 / 3) + 0.499)
    angle = np.deg2rad(104.52)
    molecule = 0.9572 * np.array([[0, 0, 0], [1, 0, 0], [np.cos(angle), np.sin(angle), 0]])
    lines = []
    for k in range(n):
        a, *v = random.normal(size=4)
        v, length = np.array(v), np.hypot(a, np.linalg.norm(v))
        a, v = a / length, v / length
        turned = molecule + 2 * np.cross(v, np.cross(v, molecule) + a * molecule)
        centre = (np.array([k % cells, k // cells % cells, k // cells ** 2]) + 0.5) * edge / cells
        lines += ["{} {:.6f} {:.6f} {:.6f}".format(element, *place)
                  for element, place in zip("OHH", turned + centre, strict=True)]
    return "\n".join(lines), edge


def times_of(call: list[str], folder: Path, output: str) -> tuple[float, float]:
    """Run a program with one thread a rank; its processor time and its wall time (s)."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(folder / output, "w", encoding="utf-8") as out:
        done = subprocess.run(call, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(call)} failed: {(folder / output).read_text()[-600:]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, time.monotonic() - start


def prepared(folder: Path, atoms: str, settings: str, pseudo: Path | None, steps: str = "") -> list[str]:
    """Files of a run of chromaqm, and its call."""
    (folder / "atoms.xyz").write_text(f"{len(atoms.splitlines())}\n\n{atoms}\n")
    files = "" if pseudo is None else "".join(
        f"upf{k} = {element} {pseudo / file}\n" for k, (element, file) in enumerate(UPF.items(), 1))
    (folder / "run.inp").write_text(f"[INPUT]\natomfile = atoms.xyz\n{files}{settings}\n"
                                    f"[OUTPUT]\nresultfile = result.json\n{steps}")
    return [str(executable()), "run", "run.inp"]


def ours(folder: Path, atoms: str, settings: str, pseudo: Path | None, steps: str = "") -> float:
    """Run chromaqm; its processor seconds."""
    return times_of(prepared(folder, atoms, settings, pseudo, steps), folder, "ours.out")[0]


def pwx(folder: Path, atoms: str, edge: float, cutoff: int, functional: str, pseudo: Path | None) -> float:
    """Total energy by pw.x, Ry."""
    elements = list(dict.fromkeys(line.split()[0] for line in atoms.splitlines()))
    for element in elements:
        if pseudo is None:
            top = 1 if element == "Si" else 0
            (folder / f"{element}.gth").write_text(
                f"GTH\n{NUMBER[element]} {CHARGE[element]} 010101\n10 {CODE[functional]} {top} 0 2001 0\n"
                f"{GTH[element, functional]}\n")
    species = "\n".join(f"{element} 1.0 {UPF[element] if pseudo else element + '.gth'}" for element in elements)
    # The lone atom has one electron in one state, which pw.x takes as a given occupation.
    lone = atoms.count("\n") == 0
    occupations = ", occupations='from_input', nbnd=1" if lone else ""
    text = (f"&control\n calculation='scf', pseudo_dir='{pseudo or folder}', outdir='{folder}/out'\n/\n&system\n "
            f"ibrav=1, celldm(1)={edge}, nat={len(atoms.splitlines())}, ntyp={len(elements)}, ecutwfc={cutoff}, "
            f"nosym=.true.{occupations}\n/\n&electrons\n conv_thr=1e-12\n/\nATOMIC_SPECIES\n{species}\n"
            f"ATOMIC_POSITIONS bohr\n{atoms}\nK_POINTS gamma\n" + ("OCCUPATIONS\n1.0\n" if lone else ""))
    (folder / "pw.in").write_text(text)
    times_of(["pw.x", "-in", "pw.in"], folder, "pw.out")
    return float(re.findall(r"^!.*= *(\S+) Ry", (folder / "pw.out").read_text(), re.MULTILINE)[-1])


FALLING = ("electron_dynamics='verlet', startingwfc='random', ampre=0.02", "ion_dynamics='verlet'")
MINIMUM = ("electron_dynamics='cg', startingwfc='random', ampre=0.02, maxiter=150, conv_thr=1e-9",
           "ion_dynamics='none'")
FROM_REST = ("electron_dynamics='verlet', electron_velocities='zero', ortho_eps=1e-12",
             "ion_dynamics='verlet', ion_velocities='zero'")


def cpx(folder: Path, atoms: str, edge: float, pseudo: Path, steps: int,
        motion: tuple[str, str] = FALLING, period: int = 1000) -> float:
    """Processor seconds of a run of cp.x. ``motion``: of electrons and ions; from rest it goes on from the last run."""
    start = "restart" if motion == FROM_REST else "from_scratch"
    (folder / "cp.in").write_text(
        f"&control\n calculation='cp', restart_mode='{start}', pseudo_dir='{pseudo}', outdir='{folder}/out', "
        f"nstep={steps}, dt=5.0, iprint={period}, ndr=51, ndw=51\n/\n&system\n ibrav=1, "
        f"celldm(1)={edge / 0.529177210903}, nat={len(atoms.splitlines())}, ntyp=2, ecutwfc=70\n/\n&electrons\n "
        f"emass=400, emass_cutoff=2.5, ortho_max=300, {motion[0]}\n/\n&ions\n {motion[1]}\n/\n"
        f"ATOMIC_SPECIES\nO 15.999 {UPF['O']}\nH 1.008 {UPF['H']}\nATOMIC_POSITIONS angstrom\n{atoms}\n")
    return times_of(["cp.x", "-in", "cp.in"], folder, "cp.out")[0]


def blas_of(program: str) -> str:
    """Which BLAS a program is linked with here."""
    path = subprocess.run(["which", program], capture_output=True, text=True).stdout.strip()
    links = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    library = re.search(r"libblas\S* => (\S+)", links)
    return "OpenBLAS" if library and "openblas" in os.path.realpath(library[1]) else "reference BLAS"


def dynamics(settings: str, steps: int, tolerance: str) -> str:
    """Sections of a run of dynamics."""
    return f"{settings}\n[MINIMIZE]\ntolerance = {tolerance}\n[DYNAMICS]\nnsteps = {steps}"


def energies(benchmark: Benchmark, names: list[str], pseudo: Path) -> None:
    table = benchmark.table("energies", "Total energies beside pw.x (Ha)", case="", chromaqm=".9f", pw_x=".9f",
                            difference=".1e", steps="d")
    for name in names:
        atoms, edge, cutoff, functional, has_upf = CASES[name]
        atoms = silicon(edge) if atoms == "Si8" else ATOMS[atoms]
        folder_of_upf = pseudo if has_upf else None
        with tempfile.TemporaryDirectory() as name_of_folder:
            folder = Path(name_of_folder)
            ours(folder, atoms, f"length_unit = BOHR\n[SYSTEM]\nbox = {edge}\n[ELECTRONS]\ncutoff = {cutoff}\n"
                 f"functional = {functional}\nxc_cut = STEP\n[MINIMIZE]\ntolerance = 1e-10", folder_of_upf)
            result = json.loads((folder / "result.json").read_text())
            peer = pwx(folder, atoms, edge, cutoff, functional, folder_of_upf) / 2
        table.row(name, result["total"], peer, result["total"] - peer, result["steps"])


def step_times(benchmark: Benchmark, sizes: list[int], rounds: int, steps: int, pseudo: Path) -> None:
    table = benchmark.table("steps", "Processor time of a step of Car-Parrinello dynamics (s)", waters="d", grid="d",
                            waves="d", chromaqm=".3f", cp_x=".3f", chromaqm_over_cp_x=".2f")
    for n in sizes:
        atoms, edge = waters(n)
        settings = f"[SYSTEM]\nbox = {edge}\n[ELECTRONS]\ncutoff = 70"
        mine, theirs = [], []
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for _ in range(rounds):
                short, long = (ours(folder, atoms, dynamics(settings, k, "1e-2"), pseudo) for k in (1, 1 + steps))
                mine.append((long - short) / steps)
                short, long = (cpx(folder, atoms, edge, pseudo, k) for k in (2, 2 + steps))
                theirs.append((long - short) / steps)
            result = json.loads((folder / "result.json").read_text())
        table.row(n, result["grid"][0], result["waves"], spread(mine), spread(theirs), ratios(mine, theirs))


def rank_times(benchmark: Benchmark, sizes: list[int], rounds: int, steps: int, pseudo: Path) -> None:
    table = benchmark.table("ranks", "Wall time of a step of Car-Parrinello dynamics on one and two ranks (s)",
                            waters="d", one=".3f", two=".3f", one_over_two=".2f")
    for n in sizes:
        atoms, edge = waters(n)
        settings = f"[SYSTEM]\nbox = {edge}\n[ELECTRONS]\ncutoff = 70"
        times: dict[int, list[float]] = {1: [], 2: []}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for _ in range(rounds):
                for ranks, of_ranks in times.items():
                    short, long = (times_of(
                        launched(prepared(folder, atoms, dynamics(settings, k, "1e-2"), pseudo), ranks), folder,
                        "ours.out")[1] for k in (1, 1 + steps))
                    of_ranks.append((long - short) / steps)
        table.row(n, spread(times[1]), spread(times[2]), ratios(times[1], times[2]))


def conservation(benchmark: Benchmark, n: int, steps: int, pseudo: Path) -> None:
    atoms, edge = waters(n)
    table = benchmark.table("conserved", "Range and deviation of the conserved quantity, from the minimum (Ha)",
                            waters="d", method="", step=".1f", steps="d", range=".1e", deviation=".1e",
                            fictitious_at_most=".1e")
    for method, step in (("RATTLE", 5.0), ("NONORTHOGONAL", 5.0), ("RATTLE", 2.5)):
        n_steps = round(steps * 5.0 / step)
        settings = f"[SYSTEM]\nbox = {edge}\n[ELECTRONS]\ncutoff = 70"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            motion = dynamics(settings, n_steps, "1e-9") + f"\nmethod = {method}\ntimestep = {step}"
            ours(folder, atoms, motion, pseudo)
            text = (folder / "ours.out").read_text().split("# dynamics")[1].split("# forces")[0]
        rows = np.array([line.split() for line in text.splitlines()[2:] if line and line[0] != "#"], float)
        table.row(n, method.lower(), step, n_steps, float(np.ptp(rows[:, 5])), float(rows[:, 5].std()),
                  float(rows[:, 4].max()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cpx(folder, atoms, edge, pseudo, 1, MINIMUM)
        cpx(folder, atoms, edge, pseudo, steps, FROM_REST, 1)
        rows = np.loadtxt(next((folder / "out").glob("*.evp")))
    # Its first row is the minimisation, and the second one lacks half a step of velocities.
    table.row(n, "cp.x", 5.0, steps, float(np.ptp(rows[2:, 8])), float(rows[2:, 8].std()), float(rows[:, 2].max()))


def memory(benchmark: Benchmark, sizes: list[int], pseudo: Path) -> None:
    table = benchmark.table("memory", "Largest resident set of chromaqm on one rank, states on the grid kept or made "
                            "anew (GB)", waters="d", grid="d", states="d", kept=".1f", anew=".1f")
    for n in sizes:
        atoms, edge = waters(n)
        peaks = []
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for megabytes in (6000, 0):
                settings = f"[SYSTEM]\nbox = {edge}\n[ELECTRONS]\ncutoff = 70\nmemory = {megabytes}"
                process = subprocess.Popen(prepared(folder, atoms, f"{settings}\n[MINIMIZE]\nnsteps = 2", pseudo),
                                           cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                _, status, used = os.wait4(process.pid, 0)
                if os.waitstatus_to_exitcode(status) != NotConvergedError.exit_code:
                    sys.exit("chromaqm failed")
                peaks.append(used.ru_maxrss * 1024e-9)
            result = json.loads((folder / "result.json").read_text())
        table.row(n, result["grid"][0], result["states"], *peaks)


def main() -> None:
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--pseudo", type=Path, default=Path("/usr/share/espresso/pseudo"))
    benchmark.parser.add_argument("--cases", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}")
    benchmark.parser.add_argument("--waters", type=int, nargs="*", default=[8, 16, 32])
    benchmark.parser.add_argument("--ranked", type=int, nargs="*", default=[16, 32], metavar="WATERS",
                                  help="sizes for one and two ranks")
    benchmark.parser.add_argument("--rounds", type=int, default=3)
    benchmark.parser.add_argument("--steps", type=int, default=10)
    benchmark.parser.add_argument("--memory", type=int, nargs="*", default=[64], metavar="WATERS")
    benchmark.parser.add_argument("--conserved", type=int, default=60, metavar="STEPS", help="0: not")
    given = benchmark.start(quick={"cases": ["H2, PZ"], "waters": [], "ranked": [], "memory": [], "conserved": 0})
    with tempfile.TemporaryDirectory() as folder:  # it leaves files where it fails
        version = subprocess.run(["pw.x"], input="", cwd=folder, capture_output=True, text=True).stdout
    benchmark.peer("Quantum ESPRESSO", (re.findall(r"PWSCF v\.(\S+)", version) or ["?"])[0])
    benchmark.peer("BLAS of cp.x", blas_of("cp.x"))
    if given.cases:
        energies(benchmark, given.cases, given.pseudo)
    if given.waters:
        step_times(benchmark, given.waters, given.rounds, given.steps, given.pseudo)
    if given.ranked:
        rank_times(benchmark, given.ranked, given.rounds, given.steps, given.pseudo)
    if given.conserved:
        conservation(benchmark, 8, given.conserved, given.pseudo)
    if given.memory:
        memory(benchmark, given.memory, given.pseudo)
    benchmark.finish()


if __name__ == "__main__":
    main()
