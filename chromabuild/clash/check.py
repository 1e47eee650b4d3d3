"""Check any structure: a Solute, its file, or a PDB or mmCIF file of any origin."""

from pathlib import Path

from chromabuild.clash.atoms import Atoms
from chromabuild.clash.report import FORMAT, VERSION, ClashReport, findings
from chromabuild.errors import BadInputError
from chromabuild.solute import Solute


def load_atoms(source: Solute | Atoms | str | Path) -> Atoms:
    """Atoms of a Solute, or of a file: ``.h5`` is ours, everything else is read as PDB or mmCIF.

    Raises BadInputError when the file is missing, unreadable or empty.
    """
    if isinstance(source, Atoms):
        return source
    if isinstance(source, Solute):
        return Atoms.from_solute(source)
    if not Path(source).is_file():
        raise BadInputError(f"{source} does not exist: give a solute (.h5), PDB or mmCIF file")
    if Path(source).suffix == ".h5":
        return Atoms.from_solute(Solute.read(source))
    return Atoms.from_structure_file(source)


def check(source: Solute | Atoms | str | Path, threshold: float = 0.9, threads: int = 1) -> ClashReport:
    """What stands in the way of a simulation: close pairs, overlaps, pierced rings, chirality, peptides, backbone.

    ``threshold`` (angstrom) defines clashes; the report's ``fatal`` counts them and the pierced rings.
    """
    atoms = load_atoms(source)
    return ClashReport({
        "format": FORMAT, "version": VERSION, "threshold": threshold, "mode": "check", "seed": None,
        "before": findings(atoms, threshold, threads), "after": None, "moves": [], "unresolved": [], "invariants": {}})
