"""`chromabuild clash fix FILE`: the clash corrector on a structure of any origin."""

from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError
from chromabuild.base.progress import Progress, silent
from chromabuild.base.summary import Summary

if TYPE_CHECKING:
    from chromabuild.molecule.solute import Solute

OUTPUTS = (".cif", ".bcif", ".pdb", ".h5")


def fix_structure(path: Path, output: Path, mode: str, threshold: float, seed: int, threads: int = 1,
                  progress: Progress = silent) -> Summary:
    """Write the structure without its clashes, and the clash report beside it as ``OUTPUT's stem_clashes.*``.

    ``threshold`` (angstrom) defines clashes. Raises BadInputError when the file cannot be read or corrected, or
    ``output`` is the file itself or has another suffix than ``OUTPUTS``.
    """
    from chromabuild.clash import correct_clashes
    from chromabuild.export.structure import write_structure
    from chromabuild.molecule.from_structure import solute_of_structure
    from chromabuild.report.clash_page import write_clash_page

    if not path.is_file():
        raise BadInputError(f"{path} does not exist: give a PDB or mmCIF file")
    if output.suffix not in OUTPUTS:
        raise BadInputError(f"{output} is no structure file that can be written: name it {', '.join(OUTPUTS[:-1])} or "
                            f"{OUTPUTS[-1]}")
    if output.resolve() == path.resolve():
        raise BadInputError(f"{output} is the file that is read: give the corrected structure another name")
    converted = solute_of_structure(path)
    name_histones(converted.solute)
    solute, report = correct_clashes(converted.solute, mode, threshold, seed, threads, progress)
    report.data["left_out"] = converted.left_out
    stem = output.with_name(f"{output.stem}_clashes")
    report.write(stem)
    write_clash_page(report, stem.with_name(f"{stem.name}.html"), path.name)
    if output.suffix == ".h5":
        solute.write(output)
    else:
        write_structure(solute, output, f"{path.stem}, clashes removed", solute.provenance)
    return {"file": str(output), "report": f"{stem}.html", "atoms": solute.n_atoms, "left_out": converted.left_out,
            "hydrogens_placed": converted.hydrogens_placed, "fatal": report.fatal, "text": report.to_text(),
            "pairs_before": report.data["before"]["pairs_below_threshold"]["count"],
            "pairs_after": report.data["after"]["pairs_below_threshold"]["count"]}


def name_histones(solute: "Solute") -> None:
    """Name molecules that are histones in the usual numbering, so that their tails are known as such."""
    from chromabuild.molecule.residues import residue_library, residue_names
    from chromabuild.nucleosome.peptide import one_letter
    from chromabuild.template_import.structure import nearest_histone

    names, library = residue_names(), residue_library()
    for k, (a, b) in enumerate(zip(solute.molecule_first_residue, solute.molecule_first_residue[1:], strict=False)):
        kinds = solute.residue_template[a:b].tolist()
        if library[names[kinds[0]]].kind != "amino acid":
            continue
        found = nearest_histone("".join(one_letter(names[kind]) for kind in kinds))
        if found is None:
            continue
        known, partner = found
        numbers = [residue.number for residue in known.copies[0]]
        same = sum(int(solute.residue_number[a + i]) == numbers[j] for i, j in partner.items())
        if 2 * same > len(partner):
            solute.molecule_name[k] = known.name
