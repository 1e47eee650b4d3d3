"""Force fields: time and memory of assigning one to a locus, and every energy term of a nucleosome against OpenMM.

The locus has 83,000 base pairs of random DNA and 427 octamers, 12 million atoms. Each assignment is a process of its
own, which writes topology.h5. The nucleosome has all tails and is judged whole by OpenMM's ForceField, which knows
nothing of junctions and, in CHARMM, finds residues and patches by itself; no water, PME in a box of its own.
"""

import io
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.energies import of_chromamd, of_openmm
from common.solutes import nucleosome
from common.timing import measured
from openmm import app
from setup_domains import locus

from chromabuild.base.force_fields import FORCE_FIELDS, force_field_files
from chromabuild.base.settings import DynamicsSection
from chromabuild.export.openmm_files import openmm_topology
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.residues import residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.simulate.openmm_engine import SPLINE_ORDER

DATA = Path(app.__file__).parent / "data"
CHARMM_RESIDUES = ("ALA ARG ASN ASP CYS GLN GLU GLY HSD HSE HSP ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL "
                   "ADE CYT GUA THY").split()
CHARMM_PATCHES = ("NTER", "GLYP", "PROP", "CTER", "DEOX", "DEO5TER", "3TER")
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


def rules_of(force_field: str) -> app.ForceField:
    """OpenMM's own reading of a force field.

    Residues and patches of CHARMM that are not those of proteins and DNA are left out: OpenMM tries all of them.
    """
    files = [DATA / name for name in force_field_files(force_field)]
    if not FORCE_FIELDS[force_field].is_charmm:
        return app.ForceField(*map(str, files))
    root = ElementTree.parse(files[0]).getroot()
    residues, patches, types = (root.find(tag) for tag in ("Residues", "Patches", "AtomTypes"))
    residues[:] = [one for one in residues if one.get("name") in CHARMM_RESIDUES]
    patches[:] = [one for one in patches if one.get("name").split("_")[0] in CHARMM_PATCHES]
    kept = {one.get("name") for one in patches}
    for element in [*residues, *patches]:
        element[:] = [one for one in element if one.tag != "AllowPatch" or one.get("name") in kept]
    used = {atom.get("type") for parent in (residues, patches) for atom in parent.iter() if atom.get("type")}
    types[:] = [kind for kind in types if kind.get("name") in used]
    classes = {kind.get("class") for kind in types}
    for force in root.iter("AmoebaUreyBradleyForce"):
        force[:] = [entry for entry in force if {entry.get(f"class{k}") for k in (1, 2, 3)} <= classes]
    return app.ForceField(io.StringIO(ElementTree.tostring(root, encoding="unicode")), *map(str, files[1:]))


def judge(force_field: str, folder: Path) -> dict[str, tuple[float, float]]:
    """Energy (kcal/mol) of every term of a nucleosome by chromamd in double precision and by OpenMM's ForceField."""
    solute = nucleosome()
    position = solute.position - solute.position.min(axis=0) + MARGIN
    box = np.ceil(position.max(axis=0) + MARGIN)
    system = BuiltSystem(make_topology(solute, {}, force_field), np.round(position.astype(float), 3), box, solute)
    dynamics = DynamicsSection(force_field=force_field, cutoff=9, switch_distance=9, pme_spline_order=SPLINE_ORDER)
    atoms = openmm_topology(system)
    names = [residue_names()[k] for k in solute.residue_template]
    templates = {} if FORCE_FIELDS[force_field].is_charmm else dict(zip(atoms.residues(), names, strict=True))
    theirs = of_openmm(rules_of(force_field).createSystem(
        atoms, nonbondedMethod=app.PME, nonbondedCutoff=dynamics.cutoff / 10, constraints=None, rigidWater=False,
        removeCMMotion=False, residueTemplates=templates), system.position, box, dynamics)
    folder = folder / force_field
    folder.mkdir()
    ours = of_chromamd(system, dynamics, folder)
    ours["nonbonded"] = ours["lennard_jones"] + ours["electrostatic"]
    return {term: (sum(ours[term]), sum(parts)) for term, parts in theirs.items()}


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
