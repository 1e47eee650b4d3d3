"""Force fields: time and memory of assigning one to a locus, and every energy term of a nucleosome against OpenMM.

The locus has 83,000 base pairs of random DNA and 427 octamers, 12 million atoms. Each assignment is a process of its
own, which writes topology.h5. The nucleosome has all tails and is judged whole by OpenMM's ForceField, which knows
nothing of junctions and, in CHARMM, finds residues and patches by itself; no water, PME in a box of its own.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.solutes import nucleosome
from common.timing import measured
from setup_domains import locus

from chromabuild.base.force_fields import FORCE_FIELDS, force_field_files
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.solute import Solute

ROOT = Path(__file__).resolve().parents[1]
BASE_PAIRS, OCTAMERS = 83_000, 427
MARGIN = 12.0  # angstrom around the nucleosome


def with_octamers(solute: Solute, copies: int) -> Solute:
    """The two strands of a locus, and its histones ``copies`` times."""
    first = int(solute.molecule_first_residue[2])
    atoms = int(solute.residue_first_atom[first])

    def repeated(values: np.ndarray, start: int) -> np.ndarray:
        return np.concatenate([values[:start], np.tile(values[start:], copies)])

    lengths = repeated(np.diff(solute.molecule_first_residue), 2)
    segments = solute.residue_segment
    return replace(
        solute, position=np.zeros((atoms + copies * (solute.n_atoms - atoms), 3), np.float32),
        residue_template=repeated(solute.residue_template, first),
        residue_number=repeated(solute.residue_number, first), residue_segment=repeated(segments, first),
        molecule_first_residue=np.concatenate([[0], np.cumsum(lengths)]),
        molecule_name=[*solute.molecule_name[:2], *solute.molecule_name[2:] * copies],
        molecule_nucleosome=repeated(solute.molecule_nucleosome, 2))


def assign(force_field: str, base_pairs: int, octamers: int, path: Path) -> None:
    """What one of the processes does; prints the atoms."""
    solute = with_octamers(locus(base_pairs), octamers)
    make_topology(solute, {"water": 1}, force_field).write(path)
    print(solute.n_atoms)


def judge(force_field: str, folder: Path) -> dict[str, tuple[float, float]]:
    """Energy (kcal/mol) of every term of a nucleosome by chromamd in double precision and by OpenMM's ForceField."""
    sys.path.insert(0, str(ROOT / "tests"))
    from openmm import app, unit
    from support.charmm36m import charmm36m
    from support.engine_energies import evaluate, write_input
    from support.force_field_judge import COLUMNS, judged
    from support.molecular_systems import MolecularSystem, openmm_topology

    from chromabuild.simulate.openmm_engine import NonbondedOptions

    solute = nucleosome()
    position = solute.position - solute.position.min(axis=0) + MARGIN
    box = np.ceil(position.max(axis=0) + MARGIN)
    system = MolecularSystem(make_topology(solute, {}, force_field), np.round(position.astype(float), 3), box)
    options = NonbondedOptions(cutoff=9.0, alpha=0.34, grid=tuple(int(2 * np.ceil(edge / 2)) for edge in box))
    ours, force = evaluate(write_input(system, folder), folder, "double", options)
    atoms = openmm_topology(solute, {})
    atoms.setPeriodicBoxVectors(np.diag(box) / 10 * unit.nanometer)
    rules = charmm36m() if FORCE_FIELDS[force_field].is_charmm else app.ForceField(*force_field_files(force_field))
    templates = {} if FORCE_FIELDS[force_field].is_charmm else {one: one.name for one in atoms.residues()}
    theirs, their_force = judged(rules.createSystem(
        atoms, nonbondedMethod=app.PME, nonbondedCutoff=options.cutoff / 10, constraints=None, rigidWater=False,
        removeCMMotion=False, residueTemplates=templates), system.position, options)
    pairs = {term: (sum(ours[column] for column in columns), theirs[term]) for term, columns in COLUMNS.items()}
    if not FORCE_FIELDS[force_field].is_charmm:  # OpenMM has charges and Lennard-Jones in one force
        first, second = pairs.pop("lennard_jones"), pairs.pop("electrostatic")
        pairs["nonbonded"] = first[0] + second[0], first[1] + second[1]
    pairs["force, rms"] = tuple(float(np.sqrt(np.mean(one**2))) for one in (force, their_force))
    return pairs


def main() -> None:
    """Measure and print."""
    if len(sys.argv) == 6 and sys.argv[1] == "assign":
        assign(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
        return
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--force-fields", nargs="+", default=list(FORCE_FIELDS), choices=list(FORCE_FIELDS))
    benchmark.parser.add_argument("--base-pairs", type=int, default=BASE_PAIRS)
    benchmark.parser.add_argument("--octamers", type=int, default=OCTAMERS)
    given = benchmark.start(quick={"base_pairs": 500, "octamers": 2, "force_fields": ["amber14"]})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost = benchmark.table("assignment", "Assigning a force field and writing topology.h5", force_field="",
                               atoms=",", cpu_seconds=".1f", memory_gb=".2f", file_mb=".0f")
        for force_field in given.force_fields:
            log = folder / "assign.log"
            used = measured([sys.executable, __file__, "assign", force_field, given.base_pairs, given.octamers,
                             folder / "topology.h5"], log)
            cost.row(force_field, int(log.read_text().split()[-1]), used.cpu, used.memory,
                     (folder / "topology.h5").stat().st_size / 1e6)
        terms = benchmark.table("terms", "Energy of a nucleosome, kcal/mol", force_field="", term="", chromamd=".6f",
                                openmm=".6f", relative=".1e")
        for force_field in given.force_fields:
            for term, (ours, theirs) in judge(force_field, folder).items():
                terms.row(force_field, term, ours, theirs, abs(ours - theirs) / abs(theirs) if theirs else 0.0)
    benchmark.finish()


if __name__ == "__main__":
    main()
