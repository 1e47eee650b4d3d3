"""Energies of exported systems in the programs that they are exported to, beside chromamd's, term by term.

Systems: water with ions and a duplex of 20 base pairs in each water that the force field offers, that duplex with all
ions and the waters within 4 angstrom (``--part``), a nucleosome (177 base pairs), the same with every mark that the
force field describes, and the bundled demo, all as the chain makes them, in each force field. Those with parameters by
analogy differ in marks alone. Programs read the files that ``chromabuild export`` writes, and nothing else: GROMACS
energy.mdp, LAMMPS energy.in, AMBER's sander and OpenMM the prmtop, OpenMM CHARMM's psf and parameters (of the exports
to NAMD and GENESIS), the GROMACS topology and the serialised System. The reference is ``chromamd-double``.

All take the same Ewald splitting and grid, and B-splines of the same order. LAMMPS has PPPM in place of PME, and sander
an optimal influence function and meshes without a factor of 7: they agree with it where the mesh is fine,
``--spacing``. Energies of charges are made equal by the ratio of the Coulomb constants. A difference is relative to the
term; where a term is the small difference of large parts (charges inside the cutoff and in reciprocal space), to the
largest of its parts. Rigid waters of a prmtop have a third bond in place of their angle: its bonds and angles are
compared without water. Lennard-Jones is truncated, not switched, since the force switches of CHARMM and GROMACS are
different polynomials. What an export refuses is left out.

Systems and force fields may be run one by one; ``--summary --save --machine summary`` then makes the tables of the
documentation from all that is saved.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import openmm
from common import peers
from common.command import Benchmark
from common.energies import BONDS_ANGLES, Parts, differences, of_chromamd, of_openmm
from common.results import RESULTS
from common.solutes import duplex, nucleosome
from modified_nucleosomes import CASES
from modified_nucleosomes import built as marked
from openmm import app, unit

from chromabuild.base.errors import BadInputError
from chromabuild.base.force_fields import FORCE_FIELDS, WaterName
from chromabuild.base.settings import DynamicsSection, SimulateSection, SolvateSection
from chromabuild.base.smooth_numbers import smooth_number
from chromabuild.export.amber import export_amber
from chromabuild.export.amber_control import LARGEST_PRIME
from chromabuild.export.charmm import is_charmm, write_charmm
from chromabuild.export.gromacs import export_gromacs
from chromabuild.export.lammps import export_lammps
from chromabuild.export.openmm_files import export_openmm
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.solute import Solute
from chromabuild.molecule.water_models import WATER_MODELS
from chromabuild.shards import read_shards
from chromabuild.shards.manifest import Manifest
from chromabuild.simulate.openmm_engine import SPLINE_ORDER, nonbonded_options
from chromabuild.simulate.protocol import plan_phases
from chromabuild.solvate import solvate

SYSTEMS = ("water", "duplex", "part", "nucleosome", "marked", "demo")
PART = "dna or ions or within 4 of dna"
"""Of the duplex; without a net charge."""
PROGRAMS = ("gromacs", "lammps", "sander", "prmtop", "psf", "top", "system")
QUICK = ("gromacs", "lammps", "sander", "system")
"""Programs for the demo, where none are named: OpenMM's readers of other programs' files take minutes for each."""
TITLES = {"gromacs": "GROMACS", "lammps": "LAMMPS", "sander": "AMBER, sander", "prmtop": "OpenMM, prmtop",
          "psf": "OpenMM, CHARMM psf", "top": "OpenMM, GROMACS topology", "system": "OpenMM, System"}
KCAL = 4.184
SHIFT = 1 / 3000
"""Angstrom, of coordinates for sander: it forgets the charge of an atom in the very middle of an edge of the box."""
COULOMB = {"gromacs": 138.935458 * 10 / KCAL, "sander": 18.2223**2}
"""kcal angstrom/mol/e^2, where a program does not take that of our files (GROMACS' manual, Definitions and Units)."""
GROMACS_TERMS = {"bond": ["Bond", "Harmonic Pot."], "angle": ["Angle", "U-B"],
                 "dihedral": ["Proper Dih.", "Improper Dih.", "CMAP Dih."], "lennard_jones": ["LJ-14", "LJ (SR)"],
                 "electrostatic": ["Coulomb-14", "Coulomb (SR)", "Coul. recip."]}
SANDER_TERMS = {"bond": ["BOND", "UB"], "angle": ["ANGLE"], "dihedral": ["DIHED", "IMP", "CMAP"],
                "lennard_jones": ["VDWAALS", "1-4 NB"], "electrostatic": ["EELEC", "1-4 EEL"]}
LAMMPS_TERMS = {"bond": ["E_bond"], "angle": ["E_angle"], "dihedral": ["E_dihed", "E_impro"],
                "lennard_jones": ["E_vdwl"], "electrostatic": ["E_coul", "E_long"]}


def cells(force_fields: Sequence[str], systems: Sequence[str], waters: Sequence[WaterName]
          ) -> Iterator[tuple[str, str, WaterName]]:
    """Force fields, systems and waters that go together."""
    for force_field, name in product(force_fields, systems):
        known = FORCE_FIELDS[force_field]
        if (name == "marked" and force_field not in CASES) or (name != "marked" and known.by_analogy):
            continue
        offered = [water for water in waters if water in known.water]
        yield from ((force_field, name, water) for water in (offered if name in ("water", "duplex") else offered[:1]))


def made_demo(folder: Path) -> tuple[Solute, Path]:
    """The solute of the bundled demo and the folder of its shards, made once for all force fields."""
    if not (folder / "results").exists():
        subprocess.run(["chromabuild", "init", "--example", "demo", folder], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["chromabuild", "all", "--until", "solvate"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return Solute.read(folder / "results" / "solute_clean.h5"), folder / "results" / "shards"


def built(name: str, force_field: str, water: WaterName, folder: Path, demo: Path) -> BuiltSystem:
    """A system of the chain, its virtual sites where they belong: coordinates of shards are rounded. ``demo``: the
    folder of the demo, where it is or shall be."""
    if name == "demo":
        solute, shards = made_demo(demo)
        box, position = read_shards(shards / "bricks.txt")
        return BuiltSystem(make_topology(solute, Manifest.read(shards).counts, force_field), position, box, solute)
    folder.mkdir()
    solute = marked(CASES[force_field], folder) if name == "marked" else \
        nucleosome() if name == "nucleosome" else duplex(20)
    manifest = solvate(solute, SolvateSection(water=water), 1, 1, folder / "shards")
    box, position = read_shards(folder / "shards" / "bricks.txt")
    counts = dict(manifest.counts)
    if name == "water":
        # What is around the duplex, without its counter-ions.
        first = solute.n_atoms + WATER_MODELS[water].n_atoms * counts["water"]
        extra = counts["sodium"] - counts["chloride"]
        position = np.concatenate([position[solute.n_atoms:first], position[first + extra:]])
        counts["sodium"] -= extra
        solute = None
    topology = make_topology(solute, counts, force_field, water=water)
    site = topology.term("virtual_site")
    if len(site["atoms"]):
        atom, *parents = site["atoms"].T
        first, second, third = (position[parent] for parent in parents)
        position[atom] = first + site["w2"][:, None] * (second - first) + site["w3"][:, None] * (third - first)
    system = BuiltSystem(topology, position, box, solute)
    return system.part(PART) if name == "part" else system


def of_gromacs(system: BuiltSystem, folder: Path) -> Parts:
    """GROMACS in double precision where Debian's is there."""
    gmx = peers.gromacs_double() or peers.gromacs()
    environment = os.environ | {"GMX_MAXBACKUP": "-1"}

    def call(*arguments: object, told: str = "") -> str:
        done = subprocess.run([gmx, *map(str, arguments)], cwd=folder, input=told, capture_output=True, text=True,
                              env=environment)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return done.stdout + done.stderr

    said = call("grompp", "-f", "energy.mdp", "-c", "system.gro", "-p", "system.top", "-n", "index.ndx", "-o", "e.tpr")
    if "WARNING" in said:
        raise RuntimeError(said[said.index("WARNING"):][:1000])
    call("mdrun", "-s", "e.tpr", "-deffnm", "e", "-rerun", "system.gro", "-nt", 1)
    menu = call("energy", "-f", "e.edr", "-o", "none.xvg", told="Potential\n\n")
    wanted = [name for names in GROMACS_TERMS.values() for name in names if name.replace(" ", "-") in menu]
    order = sorted(wanted, key=lambda name: menu.index(name.replace(" ", "-")))
    call("energy", "-f", "e.edr", "-o", "e.xvg", "-xvg", "none", "-dp",
         told="\n".join(name.replace(" ", "-") for name in order) + "\n\n")
    value = dict(zip(order, map(float, (folder / "e.xvg").read_text().split()[1:]), strict=True))
    parts = {term: [value[name] / KCAL for name in names if name in value] for term, names in GROMACS_TERMS.items()}
    if "U-B" in value:
        parts[BONDS_ANGLES] = parts.pop("bond") + parts.pop("angle")
    factor = system.topology.coulomb_constant / COULOMB["gromacs"]
    return parts | {"electrostatic": [factor * part for part in parts["electrostatic"]]}


def of_lammps(lmp: Path, system: BuiltSystem, folder: Path) -> Parts:
    """The only row of the table of energies; correction maps are fixes, and Urey-Bradley terms are angles."""
    subprocess.run([lmp, "-in", "energy.in", "-screen", "none", "-log", "e.log"], cwd=folder, check=True)
    log = (folder / "e.log").read_text()
    head, row = log[log.rindex("   Step "):].splitlines()[:2]
    value = dict(zip(head.split(), map(float, row.split()), strict=True))
    found = {term: [value.get(name, 0.0) for name in names] for term, names in LAMMPS_TERMS.items()}
    found["dihedral"] += [one for name, one in value.items() if name.startswith("f_cmap")]
    if any(len(template.urey_bradley_atoms) for template in system.topology.templates):
        found[BONDS_ANGLES] = found.pop("bond") + found.pop("angle")
    return found


def of_sander(sander: Path, system: BuiltSystem, dynamics: DynamicsSection, folder: Path) -> Parts:
    """Of the first of two steps without length. Rigid waters as in ``of_prmtop``."""
    options = nonbonded_options(dynamics, system.box)
    mesh = ", ".join(f"nfft{k} = {smooth_number(points, LARGEST_PRIME)}"
                     for k, points in zip((1, 2, 3), options.grid, strict=True))
    (folder / "energy.in").write_text(
        f"energy\n &cntrl nstlim = 1, dt = 1e-7, cut = {options.cutoff}, ntpr = 1 /\n"
        f" &ewald {mesh}, order = {SPLINE_ORDER}, ew_coeff = {options.alpha!r}, vdwmeth = 0, netfrc = 0 /\n")
    subprocess.run([sander, "-O", "-i", "energy.in", "-p", "system.prmtop", "-c", "system.rst7", "-o", "energy.out"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    said = (folder / "energy.out").read_text()
    table = said[said.index(" NSTEP ="):].partition(" ---")[0]
    value = {name: float(number) for name, number in re.findall(r"((?:1-4 )?[A-Z]+)\s*=\s*(-?[\d.]+)", table)}
    found = {term: [value.get(name, 0.0) for name in names] for term, names in SANDER_TERMS.items()}
    factor = system.topology.coulomb_constant / COULOMB["sander"]
    return without_bonds_of_water(system, found | {"electrostatic": [factor * part for part in found["electrostatic"]]})


def without_bonds_of_water(system: BuiltSystem, found: Parts) -> Parts:
    """Rigid waters of a prmtop have a third bond in place of their angle: with water no bonds and angles."""
    has_water = any(template.rigid_water for template in system.topology.templates)
    return {term: parts for term, parts in found.items() if not (has_water and term in ("bond", "angle"))}


def of_prmtop(system: BuiltSystem, dynamics: DynamicsSection, folder: Path) -> Parts:
    """By OpenMM's reader."""
    made = app.AmberPrmtopFile(str(folder / "system.prmtop")).createSystem(
        nonbondedMethod=app.PME, nonbondedCutoff=dynamics.cutoff / 10, rigidWater=False)
    return without_bonds_of_water(system, of_openmm(made, system.position, system.box, dynamics))


def of_psf(system: BuiltSystem, dynamics: DynamicsSection, folder: Path) -> Parts:
    """By OpenMM's reader of CHARMM's files."""
    psf = app.CharmmPsfFile(str(folder / "system.psf"))
    psf.setBox(*(system.box / 10 * unit.nanometer))
    made = psf.createSystem(app.CharmmParameterSet(str(folder / "system.prm")), nonbondedMethod=app.PME,
                            nonbondedCutoff=dynamics.cutoff / 10, constraints=None, rigidWater=False)
    return of_openmm(made, system.position, system.box, dynamics)


def of_top(system: BuiltSystem, dynamics: DynamicsSection, folder: Path) -> Parts:
    """By OpenMM's reader of GROMACS' topologies."""
    edges = np.diag(system.box) / 10 * unit.nanometer
    made = app.GromacsTopFile(str(folder / "system.top"), periodicBoxVectors=edges).createSystem(
        nonbondedMethod=app.PME, nonbondedCutoff=dynamics.cutoff / 10, rigidWater=False)
    return of_openmm(made, system.position, system.box, dynamics)


def of_system(system: BuiltSystem, dynamics: DynamicsSection, folder: Path) -> Parts:
    """Of the serialised System, whose rigid bonds have no energy."""
    made = openmm.XmlSerializer.deserialize((folder / "system.xml").read_text())
    found = of_openmm(made, system.position, system.box, dynamics)
    return {term: parts for term, parts in found.items() if term not in ("bond", "angle")}


def water_of(label: str) -> str:
    """Of a system that has one."""
    return next((water for water in get_args(WaterName) if f", {water}" in label), "tip3p")


class Row(NamedTuple):
    """Of the table ``terms``."""

    force_field: str
    system: str
    atoms: int
    program: str
    worst_term: str
    of_term: float
    of_sum: float


def main() -> None:
    """See the head of this file."""
    is_summary = "--summary" in sys.argv
    saved = "newest rows of the runs in benchmarks/results/export_energies"
    benchmark = Benchmark(__doc__, computed=saved if is_summary else "")
    benchmark.parser.add_argument("--summary", action="store_true",
                                  help="tables of the largest differences in all saved results, in place of new ones")
    benchmark.parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    benchmark.parser.add_argument("--force-fields", nargs="+", choices=FORCE_FIELDS, default=list(FORCE_FIELDS))
    benchmark.parser.add_argument("--waters", nargs="+", choices=get_args(WaterName), default=get_args(WaterName))
    benchmark.parser.add_argument("--programs", nargs="+", choices=PROGRAMS)
    benchmark.parser.add_argument("--spacing", type=float, default=0.5, help="angstrom, of the mesh")
    benchmark.parser.add_argument("--peers", type=Path, metavar="PYTHON", help="interpreter of the peers' environment")
    benchmark.parser.add_argument("--work", type=Path, help="folder for the runs; default: a temporary one")
    given = benchmark.start(quick={"systems": ["duplex"], "force_fields": ["amber14"], "spacing": 0.8},
                            packages=() if is_summary else ("openmm",))
    if is_summary:
        summarise(benchmark)
        return
    programs = list(given.programs or PROGRAMS)
    lmp = peers.lammps(given.peers) if "lammps" in programs else None
    if "lammps" in programs and lmp is None:
        programs.remove("lammps")
    sander = peers.sander(given.peers) if "sander" in programs else None
    if "sander" in programs and sander is None:
        programs.remove("sander")
    if "gromacs" in programs:
        gmx = peers.gromacs_double() or peers.gromacs()
        if gmx is None:
            programs.remove("gromacs")
        else:
            benchmark.peer("GROMACS", peers.gromacs_version(gmx))
    if lmp:
        benchmark.peer("LAMMPS", peers.lammps_version(lmp))
    if sander:
        benchmark.peer("AmberTools", peers.sander_version(sander))
    table = benchmark.table(
        "terms", "Energies of exported systems beside chromamd's in double precision: relative differences",
        force_field="", system="", atoms=",d", program="", worst_term="", difference_of_it=".1e",
        difference_of_the_sum=".1e")
    phases = plan_phases(SimulateSection(protocol=None, phases=({"name": "one", "steps": 1},)))
    with tempfile.TemporaryDirectory() as temporary:
        for force_field, name, water in cells(given.force_fields, given.systems, given.waters):
            dynamics = DynamicsSection(force_field=force_field, cutoff=9, switch_distance=9, pme_spacing=given.spacing,
                                       pme_spline_order=SPLINE_ORDER, dispersion_correction=False)
            label = name if water == "tip3p" else f"{name}, {water}"
            folder = (given.work or Path(temporary)).resolve() / force_field / label.replace(", ", "-")
            folder.mkdir(parents=True)
            system = built(name, force_field, water, folder / "chain", folder.parents[1] / "demo")
            ours = of_chromamd(system, dynamics, folder)
            judges: dict[str, Callable[[Path], Parts]] = {
                "gromacs": partial(of_gromacs, system), "lammps": partial(of_lammps, lmp, system),
                "sander": partial(of_sander, sander, system, dynamics),
                "prmtop": partial(of_prmtop, system, dynamics), "psf": partial(of_psf, system, dynamics),
                "top": partial(of_top, system, dynamics),
                "system": partial(of_system, system, dynamics)}
            exports: dict[str, Callable[[Path], object]] = {
                "gromacs": lambda here, s=system, d=dynamics: export_gromacs(s, here, d, phases, 1),
                "lammps": lambda here, s=system, d=dynamics: export_lammps(s, here, d),
                "prmtop": lambda here, s=system: export_amber(replace(s, position=s.position + SHIFT), here),
                "psf": lambda here, s=system: write_charmm(s, here) if is_charmm(s.topology) else None,
                "system": lambda here, s=system, d=dynamics: export_openmm(s, here, d)}
            for program in programs:
                if name == "demo" and given.programs is None and program not in QUICK:
                    continue
                export = {"top": "gromacs", "sander": "prmtop"}.get(program, program)
                here = folder / export
                if not here.exists():
                    here.mkdir()
                    try:
                        exports[export](here)
                    except BadInputError as error:
                        print(f"{program}: {error}", file=sys.stderr)
                try:
                    found = differences(ours, judges[program](here)) if any(here.iterdir()) else None
                except ValueError as error:  # OpenMM's readers of other programs' files know not all of them
                    print(f"{program}: {error}", file=sys.stderr)
                    continue
                if found:
                    table.row(force_field, label, system.topology.n_atoms, TITLES[program], *found)
            if system.solute is not None and (folder / "prmtop" / "system.prmtop").exists():
                # Bonds and angles, which the prmtop with water cannot show.
                (folder / "solute").mkdir()
                dry = system.part("solute")
                export_amber(dry, folder / "solute")
                found = differences(of_chromamd(dry, dynamics, folder / "solute"),
                                    of_prmtop(dry, dynamics, folder / "solute"))
                table.row(force_field, f"{label}, solute", dry.topology.n_atoms, TITLES["prmtop"], *found)
    benchmark.finish()


def summarise(benchmark: Benchmark) -> None:
    """Tables of the largest differences of a term, from the newest saved row of force field, system and program."""
    newest: dict[tuple[str, str, str], Row] = {}
    for path in sorted((RESULTS / benchmark.name).glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8"))["tables"].get("terms", {"rows": []})["rows"]:
            newest[row[0], row[1], row[3]] = Row(*row)
    rows = sorted(newest.values(), key=lambda row: SYSTEMS.index(row.system.split(",")[0]))
    force_fields = [name for name in FORCE_FIELDS if any(row.force_field == name for row in rows)]
    water_rows = [row for row in rows if row.system.split(",")[0] in ("water", "duplex", "part")]
    kinds: dict[str, tuple[str, Callable[[Row], str], Callable[[Row], str], Sequence[str], list[Row]]] = {
        "programs": ("program and force field", lambda row: row.program, lambda row: row.force_field, force_fields,
                     rows),
        "systems": ("system and force field", lambda row: row.system.split(",")[0], lambda row: row.force_field,
                    force_fields, rows),
        "waters": ("program and water", lambda row: row.program, lambda row: water_of(row.system),
                   get_args(WaterName), water_rows)}
    for name, (kind, line_of, column_of, columns, chosen) in kinds.items():
        table = benchmark.table(name, f"Largest relative difference of a term, by {kind}",
                                **{kind.split()[0]: ""}, **dict.fromkeys(columns, ".1e"))
        for line in dict.fromkeys(map(line_of, chosen)):
            of_line = [row for row in chosen if line_of(row) == line]
            table.row(line, *(max((row.of_term for row in of_line if column_of(row) == column), default=None)
                              for column in columns))
    benchmark.finish()


if __name__ == "__main__":
    main()
