"""`chromabuild qm check`: from a build or a structure file to a page that compares plane waves and force field."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.base.box_vectors import edges_and_angles, nearest_image
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path
from chromabuild.base.in_use import in_use
from chromabuild.base.progress import Progress, silent
from chromabuild.base.summary import Summary

if TYPE_CHECKING:
    import MDAnalysis

    from chromabuild.forcefield.topology_file import Topology
    from chromabuild.molecule.solute import Solute
    from chromabuild.quantum.points import Method

FARTHEST_CONTACT = 8.0
"""Angstrom within which the nearest atoms of two selections are looked for."""
ION_KEYS = {"Na+": "sodium", "K+": "potassium", "Mg2+": "magnesium", "Ca2+": "calcium", "Cl-": "chloride"}
"""Keys of the counts of a manifest by the names of ``analysis.solvent``."""


@dataclass(frozen=True)
class Matter:
    """A system with a force field: positions (n, 3) and its box, (3,) edges or (3, 3) vectors, angstrom."""

    topology: "Topology"
    position: np.ndarray
    box: np.ndarray
    universe: "MDAnalysis.Universe"
    left_out: list[str] = field(default_factory=list)
    """(m,) atoms of the file that are not in it, as ``FILE: segid:resname:resid``."""
    left_out_position: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    def labels(self) -> np.ndarray:
        """(n,) ``segid:resname:resid:name``."""
        atoms = self.universe.atoms
        columns = (atoms.segids, atoms.resnames, atoms.resids, atoms.names)
        return np.array([":".join(map(str, words)) for words in zip(*columns, strict=True)], dtype=object)

    def chosen(self, selection: str, option: str) -> np.ndarray:
        """Atoms, from 0, of a selection of MDAnalysis. Raises BadInputError where it is wrong or empty."""
        from MDAnalysis.exceptions import SelectionError

        try:
            atoms = self.universe.select_atoms(selection).ix
        except (SelectionError, ValueError, TypeError, AttributeError) as error:
            raise BadInputError(f'{option} "{selection}" is no selection of MDAnalysis ({str(error).splitlines()[0]}): '
                                "write for instance name OP1 and resid 12 and segid D1") from None
        if len(atoms) == 0:
            others = list(dict.fromkeys(self.left_out))
            left_out = f"; left out are {', '.join(others[:5])}{', ...' * (len(others) > 5)}" if others else ""
            raise BadInputError(f'{option} "{selection}" chooses no atom: look at names, residues and segments of the '
                                f"system, for instance with chromabuild export structure{left_out}")
        return atoms


def system_of(source: Path, after: str | None, force_field: str) -> Matter:
    """An output folder of a build with a topology, as built or at the end of a phase, or a PDB or mmCIF file.

    Raises BadInputError where there is none, or the file holds what the force field does not know.
    """
    from chromabuild.export.universe import make_universe

    if source.is_dir():
        from chromabuild.pipeline.export import built_system
        from chromabuild.pipeline.results import open_results

        system = built_system(open_results(source), after)
        topology, position, box, solute = system.topology, system.position, system.box, system.solute
    elif after is not None:
        raise BadInputError(f"--after is of an output folder, and {source} is a file: leave it out")
    else:
        return _of_structure(source, force_field)
    universe = make_universe(topology, solute)
    return Matter(topology, np.asarray(position, dtype=float), np.asarray(box, dtype=float), universe)


def _of_structure(source: Path, force_field: str) -> Matter:
    """Protein and DNA of a file, and the waters and ions in it."""
    from chromabuild.analysis.solvent import IONS, WATERS
    from chromabuild.export.universe import make_universe
    from chromabuild.forcefield.assign import make_topology
    from chromabuild.molecule.from_structure import solute_of_structure
    from chromabuild.molecule.residues import SOLVENT
    from chromabuild.molecule.structure_file import StructureFile

    converted = solute_of_structure(source)
    solute = converted.solute
    refuse_torn_chains(solute, source)
    structure = StructureFile.read(source)
    first = np.searchsorted(structure.residue, np.arange(len(structure.residue_name) + 1))
    found: dict[str, list[np.ndarray]] = {key: [] for key in SOLVENT}
    left_out: list[str] = []
    left_out_position = [np.zeros((0, 3))]
    for k in converted.others:
        name, atoms = structure.residue_name[k], slice(first[k], first[k + 1])
        if name in WATERS and structure.element[atoms].tolist() == [8, 1, 1]:
            found["water"].append(structure.position[atoms])
        elif name in IONS and first[k + 1] - first[k] == 1:
            found[ION_KEYS[IONS[name]]].append(structure.position[atoms])
        else:
            left_out += [f"{source}: {structure.residue_label[k]}"] * len(structure.position[atoms])
            left_out_position.append(structure.position[atoms])
    counts = {key: len(parts) for key, parts in found.items() if parts}
    position = np.vstack([solute.position, *(part for key in SOLVENT for part in found[key])])
    # Nothing repeats in a file without a box.
    box = structure.box if structure.box is not None else np.ptp(position, axis=0) + 1000.0
    topology = make_topology(solute, counts, force_field)
    return Matter(topology, np.asarray(position, dtype=float), np.asarray(box, dtype=float),
                  make_universe(topology, solute), left_out, np.vstack(left_out_position))


def refuse_torn_chains(solute: "Solute", source: Path) -> None:
    """Raise BadInputError for a chain that begins or ends as if another residue followed: no force field knows it."""
    from chromabuild.molecule.residues import residue_library, residue_names

    names, library, bounds = residue_names(), residue_library(), solute.molecule_first_residue
    linked = {k for pair in solute.links for k in pair}
    for first, last in zip(bounds, bounds[1:] - 1, strict=False):
        begin, end = (library[names[solute.residue_template[k]]] for k in (first, last))
        if begin.kind == "nucleotide":
            torn = ((first, "begins with a phosphate that lacks OP3", "remove its P, OP1 and OP2")
                    if "P" in begin.atoms and "OP3" not in begin.atoms else
                    (last, "has no 3' end", "add a nucleotide before it")
                    if {"HO3'", "P3"}.isdisjoint(end.atoms) else None)
        else:
            torn = ((first, "begins its chain with the hydrogens of a residue inside", "remove its hydrogens")
                    if "H3" not in begin.atoms and not begin.is_acylated else
                    (last, "ends its chain without OXT", "add it")
                    if "OXT" not in end.atoms and last not in linked else None)
        if torn:
            k, what, remedy = torn
            segment = solute.segment_name[solute.residue_segment[k]]
            raise BadInputError(f"{source}: residue {segment}:{library[names[solute.residue_template[k]]].pdb_name}:"
                                f"{solute.residue_number[k]} {what}: if a residue is missing there, complete the "
                                f"structure (PDBFixer does), else {remedy}")


def check_contact(matter: Matter, folder: Path, method: "Method", contact: Sequence[str] = (),
                  torsion: Sequence[str] = (), scan: str | None = None, radius: float = 3.0,
                  progress: Progress = silent) -> Summary:
    """Cut a cluster, scan it, and write ``check.json`` and ``check.html`` into ``folder``.

    ``contact``: two selections of MDAnalysis, of which the nearest two atoms count; or ``torsion``: four, of one atom
    each. ``scan``: values as ``quantum.scan.read_values`` reads them. ``radius`` in angstrom. Raises BadInputError for
    selections, scans and clusters that cannot be used, BusyError while another process writes there.
    """
    from chromabuild.quantum import cluster as clusters
    from chromabuild.quantum import scan as scans
    from chromabuild.quantum.check import run_check
    from chromabuild.report.quantum_page import quantum_page

    if bool(contact) == bool(torsion):
        raise BadInputError("give either --contact with two selections or --torsion with four")
    values = None if scan is None else scans.read_values(scan)
    atoms = _contact(matter, contact) if contact else _one_each(matter, torsion)
    _refuse_left_out(matter, atoms[:2] if contact else atoms[1:3], radius)
    cluster = clusters.cut_cluster(matter.topology, matter.position, matter.box, atoms[:2] if contact else atoms[1:3],
                                   radius, matter.labels())
    try:
        rows = tuple(cluster.row(atom) for atom in atoms)
    except IndexError:
        raise BadInputError("the atoms of --torsion lie in different pieces: they must follow each other along "
                            "bonds") from None
    path = scans.scan_contact(cluster, rows, values) if contact else scans.scan_torsion(cluster, rows, values)
    with in_use(folder, is_lock_kept=False):
        check = run_check(matter.topology, cluster, path, method, folder / "points", progress)
        subject = " – ".join(cluster.label[row] for row in rows)
        summary = {"subject": subject, "force_field_name": matter.topology.force_field, **check.as_dict()}
        for name, text in (("check.json", json.dumps(summary, indent=1) + "\n"),
                           ("check.html", quantum_page(subject, matter.topology.force_field, check))):
            with atomic_path(folder / name) as part:
                part.write_text(text, encoding="utf-8")
    return summary


def _refuse_left_out(matter: Matter, centres: np.ndarray, radius: float) -> None:
    """Raise BadInputError where atoms that no force field here takes would belong to the cluster."""
    for centre in matter.position[centres]:
        apart = np.linalg.norm(nearest_image(matter.left_out_position - centre, matter.box), axis=1)
        if len(apart) and apart.min() <= radius:
            raise BadInputError(
                f"{matter.left_out[apart.argmin()]} is {apart.min():.2f} angstrom from the contact and cannot be "
                "taken: a water needs both hydrogens, and all else must be protein, DNA or an ion of Na, K, Mg, Ca or "
                "Cl; complete it (PDBFixer does), remove it, or give a smaller --radius")


def _one_each(matter: Matter, selections: Sequence[str]) -> np.ndarray:
    atoms = []
    for selection in selections:
        found = matter.chosen(selection, "--torsion")
        if len(found) > 1:
            raise BadInputError(f'--torsion "{selection}" chooses {len(found)} atoms, and one is wanted: name residue '
                                "and segment")
        atoms.append(int(found[0]))
    if len(set(atoms)) < len(atoms):
        raise BadInputError("--torsion names an atom twice: four different ones are wanted")
    return np.array(atoms)


def _contact(matter: Matter, selections: Sequence[str]) -> np.ndarray:
    """The nearest atoms of two selections."""
    from MDAnalysis.lib.distances import capped_distance

    one, other = (matter.chosen(selection, "--contact") for selection in selections)
    pairs, distance = capped_distance(matter.position[one], matter.position[other], FARTHEST_CONTACT,
                                      box=edges_and_angles(matter.box).astype(np.float32))
    different = one[pairs[:, 0]] != other[pairs[:, 1]]
    pairs, distance = pairs[different], distance[different]
    if len(pairs) == 0:
        raise BadInputError(f'"{selections[0]}" and "{selections[1]}" have no atoms within {FARTHEST_CONTACT:g} '
                            "angstrom of each other: that is no contact")
    nearest = pairs[distance.argmin()]
    return np.array([one[nearest[0]], other[nearest[1]]])
