"""Modified residues: how they are written, what they are, and which force fields describe them; from the library."""

from chromabuild.forcefield.modified_residues import DESCRIPTIONS
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.nucleosome.mark_names import STAND_IN
from chromabuild.nucleosome.peptide import one_letter
from generate.markdown import code, table

INTRODUCTION = """# Modifications

What `build.variants`, `build.marks` and `build.methylation` can put on histones and DNA. Residue names are those of the
Chemical Component Dictionary of the PDB. The charge is that of the residue inside a chain, with the phosphate of a
nucleotide. A cell of a force field names residue and patches in its own data; empty: it has none, and the build is
refused. [How to use them](../../how-to/mark-nucleosomes-and-dna.md).

"""


def described(residue: str, force_field: str) -> str:
    """Residue and patches of a force field, and the file that holds them."""
    told = DESCRIPTIONS[force_field].get(residue)
    return f"{code(' + '.join((told.residue, *told.patches)))} in `{told.file}`" if told else ""


def pages() -> dict[str, str]:
    """File name -> text."""
    rows = []
    for name, change in modifications().items():
        is_base = residue_library()[name].kind == "nucleotide"
        written = change.mark if is_base else f"{one_letter(change.parent)}…{change.mark}"
        stand_in = STAND_IN.get(name, "")
        rows.append((code(written), code(name), change.title, f"{change.charge:+d}" if change.charge else "0",
                     *(described(name, force_field) for force_field in DESCRIPTIONS), code(stand_in)))
    head = ("written", "residue", "chemistry", "charge, e", *DESCRIPTIONS, "stand-in")
    return {"modifications.md": INTRODUCTION + table(head, rows)}
