"""A nucleosome in each force field and with modifications: faults as built, and after dynamics.

An octamer on 177 base pairs of random sequence, freed of clashes: plain in each force field, then with all marks that
CHARMM36m has published parameters of, then with all that have parameters by analogy. Faults are pairs of heavy atoms
below 2.0 angstrom, bonds and angles that are outliers, wrong chirality, cis and twisted peptides, and what is out of
shape of a modified residue by the force field itself: bonds 0.1 angstrom and angles 15 degrees from rest, planes 0.3
angstrom off. Then minimisation and Langevin dynamics of `chromamd` without water, from 50 to 310 K with restraints that
vanish (the stage `relax`), which ends where forces or temperatures leave their bands; then the faults that heat does
not bring are counted again: overlaps, chirality, cis peptides and pierced rings. Charges are summed by the force field.
As built, every term of `chromamd` in double precision stands beside OpenMM's Reference platform, with PME in a box of
its own: the table has the largest relative difference of a term.

With --journal a run that was stopped goes on where it was; a table is saved of the nucleosomes that are done.
"""

import tempfile
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.energies import differences, of_chromamd, of_openmm
from common.journal import Journal
from common.solutes import straight_scaffold

from chromabuild.base.errors import ChromabuildError
from chromabuild.base.force_fields import FORCE_FIELDS
from chromabuild.base.settings import DynamicsSection, Settings
from chromabuild.build import build_solute
from chromabuild.clash import check, correct_clashes
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.mark_names import parse_mark
from chromabuild.simulate.openmm_engine import SPLINE_ORDER, nonbonded_options, system_from_topology
from chromabuild.simulate.relaxation import relax

FLANK = 15
CASES = {
    "charmm36m": ("H3A1nac", "H3T3ph", "H3S10ph", "H3K27ac", "H4S1nac", "H4Y51ph", "H2AK119ub", "H2BK117ub", "5mC",
                  "5hmC", "5fC", "5'-phosphates", "3'-phosphates"),
    "charmm36m-analogy": ("H3R2me1", "H3K4me3", "H3R8me2a", "H3K9me2", "H3R17me2s", "H3K18cr", "H3K27me1"),
    "amber14": ("5'-phosphates",),
    "amber14-analogy": ("H2AK119ub", "H2BK117ub"),
    "amber19-analogy": ("H2AK119ub", "H2BK117ub"),
}
"""Marks of one nucleosome by the force field that is first to describe them."""
BASES = ("5mC", "5hmC", "5fC")
ENDS = {"5'-phosphates": "five_prime", "3'-phosphates": "three_prime"}
MARGIN = 12.0
"""Angstrom around the nucleosome whose energies are compared."""
BOND, ANGLE, PLANE = 0.1, 15.0, 0.3
LASTING = ("chirality_errors", "cis_peptides", "ring_piercings")
FAULTS = (*LASTING, "bond_outliers", "angle_outliers", "twisted_peptides")


def residue_of(mark: str) -> str:
    """Library name of the modified residue inside a chain."""
    of_base = {change.mark: name for name, change in modifications().items()}
    return of_base[mark] if mark in BASES else parse_mark(mark).residue_name


def built(marks: tuple[str, ...], folder: Path) -> Solute:
    """The nucleosome; modified bases stand in turn on every second cytosine of both strands."""
    scaffold = straight_scaffold(1, FLANK)
    build = {"variants": tuple(mark for mark in marks if mark not in (*BASES, *ENDS)),
             **{ENDS[mark]: "phosphate" for mark in marks if mark in ENDS}}
    bases = [mark for mark in marks if mark in BASES]
    if bases:
        letters = bytes(scaffold.base).decode()
        places = [k for k, letter in enumerate(letters) if letter in "CG"][::2]
        (folder / "bases.bed").write_text("".join(
            f"chrS\t{k}\t{k + 1}\t{bases[n % len(bases)]}\t0\t{'+' if letters[k] == 'C' else '-'}\n"
            for n, k in enumerate(places)))
        build["methylation"] = str(folder / "bases.bed")
    solute, _ = correct_clashes(build_solute(scaffold, Settings.model_validate({"build": build})))
    return solute


def faults(solute: Solute, names: tuple[str, ...] = FAULTS) -> tuple[int, int]:
    """Pairs of heavy atoms below 2.0 angstrom, and the findings of these names."""
    found = check(solute).data["before"]
    counts = [found[name] if isinstance(found[name], int) else found[name]["count"]
              for name in ("heavy_pairs_below_2", *names)]
    return counts[0], sum(counts[1:])


def out_of_shape(solute: Solute, topology: Topology) -> dict[str, int]:
    """By modified residue its bonds, angles and planes that are far from where the force field has them at rest."""
    library = list(residue_library().values())
    sizes = [len(library[k].atoms) for k in solute.residue_template]
    kinds = np.repeat([library[k].modification for k in solute.residue_template], sizes)
    x = solute.position.astype(float)
    bond, angle, improper = (topology.term(name) for name in ("bond", "angle", "improper"))
    length = np.linalg.norm(np.diff(x[bond["atoms"]], axis=1)[:, 0], axis=1)
    rows = angle["atoms"]
    first, second = x[rows[:, 0]] - x[rows[:, 1]], x[rows[:, 2]] - x[rows[:, 1]]
    cosine = np.einsum("ij,ij->i", first, second) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    heavy = (topology.masses()[rows] > 2).all(axis=1)
    apart = np.abs(np.degrees(np.arccos(np.clip(cosine, -1, 1))) - angle["theta0"])
    planes = improper["atoms"]
    normal = np.cross(x[planes[:, 2]] - x[planes[:, 1]], x[planes[:, 3]] - x[planes[:, 1]])
    height = np.abs(np.einsum("ij,ij->i", normal, x[planes[:, 0]] - x[planes[:, 1]]))
    far = ((bond["atoms"], np.abs(length - bond["r0"]) > BOND), (rows, heavy & (apart > ANGLE)),
           (planes, height > PLANE * np.linalg.norm(normal, axis=1)))
    return {name: sum(int(((kinds[atoms] == name).all(axis=1) & bad).sum()) for atoms, bad in far)
            for name in np.unique(kinds[kinds != ""]).tolist()}


def energies(solute: Solute, topology: Topology, force_field: str, folder: Path) -> tuple[str, float]:
    """The term whose energies in chromamd and in OpenMM differ most, and their relative difference."""
    position = solute.position.astype(float) - solute.position.min(axis=0) + MARGIN
    system = BuiltSystem(topology, np.round(position, 3), np.ceil(position.max(axis=0) + MARGIN), solute)
    dynamics = DynamicsSection(force_field=force_field, cutoff=9, switch_distance=9, pme_spline_order=SPLINE_ORDER)
    made = system_from_topology(topology, system.box, nonbonded_options(dynamics, system.box))
    return differences(of_chromamd(system, dynamics, folder),
                       of_openmm(made, system.position, system.box, dynamics))[:2]


def nucleosome(force_field: str, marks: tuple[str, ...], settings: dict, threads: int) -> dict:
    """All that is measured of one nucleosome."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        solute = built(marks, folder)
        topology = make_topology(solute, {}, force_field)
        found, shape = faults(solute), out_of_shape(solute, topology)
        term, difference = energies(solute, topology, force_field, folder)
        steps, ends, after = 0, "whole", ("", "")
        (folder / "relax").mkdir()
        config = Settings.model_validate({"relax": settings | {"enabled": True},
                                          "dynamics": {"force_field": force_field}})
        try:
            moved, summary = relax(solute, config, folder / "relax", threads, lambda *_: None)
            steps, after = summary["steps"], faults(moved, LASTING)
        except ChromabuildError as error:
            ends = str(error)
    library = list(residue_library().values())
    shapes = []
    for residue in dict.fromkeys(residue_of(mark) for mark in marks if mark not in ENDS):
        named = ", ".join(one for one in marks if one not in ENDS and residue_of(one) == residue)
        number = sum(library[k].modification == residue for k in solute.residue_template)
        shapes.append([named, residue, number, shape[residue]])
    return {"row": [solute.n_atoms, topology.net_charge, *found, term, difference, steps, ends, *after],
            "shapes": shapes}


def main() -> None:
    """Measure and print."""
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--force-fields", nargs="+", default=list(FORCE_FIELDS), choices=list(FORCE_FIELDS))
    benchmark.parser.add_argument("--minimise-steps", type=int, default=60)
    benchmark.parser.add_argument("--length", default="10 ps")
    benchmark.parser.add_argument("--threads", type=int, default=1)
    benchmark.parser.add_argument("--journal", type=Path, help="file to which results are appended; those in it are "
                                                               "not repeated")
    benchmark.parser.add_argument("--seconds", type=float, default=1e9, help="after which no further one begins")
    given = benchmark.start(quick={"force_fields": ["amber14"], "minimise_steps": 5, "length": "10 fs"})
    table = benchmark.table(
        "stability", "A nucleosome in each force field, and with modifications: when built, and after dynamics",
        force_field="", modifications="", atoms=",", charge="+.6f", heavy_pairs_below_2="", faults="", worst_term="",
        difference=".1e", steps=",", ends="", pairs_after="", faults_after="")
    shapes = benchmark.table(
        "shapes", "Modified residues as built: bonds, angles and planes out of shape",
        force_field="", modification="", residue="", residues="", out_of_shape="")
    journal = Journal(given.journal, given.seconds)
    settings = {"minimise_steps": given.minimise_steps, "length": given.length}
    for force_field, marks in [*((name, CASES[name]) for name in given.force_fields if name in CASES),
                               *((name, ()) for name in given.force_fields)]:
        key = f"{force_field}: {', '.join(marks) or 'none'}; {given.minimise_steps}, {given.length}"
        if key not in journal:
            if journal.is_late:
                continue
            journal[key] = nucleosome(force_field, marks, settings, given.threads)
        found = journal[key]
        table.row(force_field, ", ".join(marks) or "none", *found["row"])
        for row in found["shapes"]:
            shapes.row(force_field, *row)
    vars(given).update(journal=None, seconds=None)
    benchmark.finish()


if __name__ == "__main__":
    main()
