"""Check any structure: a Solute, its file, or a PDB or mmCIF file of any origin."""

import time
from pathlib import Path

from chromabuild.clash.report import FORMAT, VERSION, ClashReport, findings, neighbourhoods_of
from chromabuild.molecule.solute import Solute
from chromabuild.sterics.atoms import Atoms


def load_atoms(source: Solute | Atoms | str | Path) -> Atoms:
    """Atoms of a Solute, or of a file: ``.h5`` is ours, everything else is read as PDB, mmCIF or BinaryCIF.

    Raises BadInputError when the file is missing, unreadable or empty.
    """
    if isinstance(source, Atoms):
        return source
    if isinstance(source, Solute):
        return Atoms.from_solute(source)
    return Atoms.from_file(source)


def check(source: Solute | Atoms | str | Path, threshold: float = 0.9, threads: int = 1) -> ClashReport:
    """What stands in the way of a simulation: close pairs, overlaps, pierced rings, chirality, peptides, backbone.

    ``threshold`` (angstrom) defines clashes; the report's ``fatal`` counts them and the pierced rings.
    """
    started = time.perf_counter()
    atoms = load_atoms(source)
    found = findings(atoms, threshold, threads)
    return ClashReport({
        "format": FORMAT, "version": VERSION, "threshold": threshold, "mode": "check", "seed": None,
        "left_out": atoms.left_out, "before": found, "after": None, "moves": [], "unresolved": [], "invariants": {}},
        neighbourhoods_of(found, atoms), {"seconds": time.perf_counter() - started})
