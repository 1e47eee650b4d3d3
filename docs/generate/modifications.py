"""Modified residues: how they are written, what they are, and which force fields describe them; from the library."""

from chromabuild.base.force_fields import FORCE_FIELDS
from chromabuild.forcefield.charmm import charmm_recipe
from chromabuild.forcefield.modified_residues import force_fields_with
from chromabuild.molecule.residues import modifications, residue_library
from chromabuild.nucleosome.mark_names import STAND_IN
from chromabuild.nucleosome.peptide import one_letter
from generate.markdown import code, table

INTRODUCTION = """# Modifications

What `build.variants`, `build.marks` and `build.methylation` can put on histones and DNA. Residue names are those of the
Chemical Component Dictionary of the PDB. The charge is that of the residue inside a chain, with the phosphate of a
nucleotide. A cell of CHARMM names residue and patches in its data; empty: the force field has none, and the build is
refused. What a force field `…-analogy` has beyond the one without is by analogy. `KUB` is written as LYS in files.
[How to use them](../../how-to/mark-nucleosomes-and-dna.md).

"""


def described(residue: str, force_field: str) -> str:
    """Residue and patches of CHARMM, the name alone of others."""
    if force_field not in force_fields_with(residue):
        return ""
    if not FORCE_FIELDS[force_field].is_charmm:
        return code(residue)
    return code(" + ".join(charmm_recipe(residue, by_analogy=FORCE_FIELDS[force_field].by_analogy)))


def pages() -> dict[str, str]:
    """File name -> text."""
    rows = []
    for name, change in modifications().items():
        is_base = residue_library()[name].kind == "nucleotide"
        written = change.mark if is_base else f"{one_letter(change.parent)}…{change.mark}"
        stand_in = STAND_IN.get(name, "")
        rows.append((code(written), code(name), change.title, f"{change.charge:+d}" if change.charge else "0",
                     *(described(name, force_field) for force_field in FORCE_FIELDS), code(stand_in)))
    head = ("written", "residue", "chemistry", "charge, e", *FORCE_FIELDS, "stand-in")
    return {"modifications.md": INTRODUCTION + table(head, rows)}
