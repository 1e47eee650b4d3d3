"""Any nucleosome structure becomes a template: its octamer completed, the frames of its DNA, in the own frame."""

import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from Bio.PDB import PDBList

from chromabuild.base.errors import BadInputError
from chromabuild.build.assembly import assemble_solute
from chromabuild.build.duplex import build_dna
from chromabuild.clash import correct_clashes
from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.nucleosome.template_file import NucleosomeTemplate
from chromabuild.template_import.completion import completed, threads_of
from chromabuild.template_import.dna_path import dna_path
from chromabuild.template_import.structure import octamer_chains, own_frame, read_model


def template_from_structure(path: str | Path, chains: list[str] | None = None) -> NucleosomeTemplate:
    """The template of a PDB or mmCIF file (plain or gz) with one nucleosome.

    Args:
        path: the file; its first model counts.
        chains: the chains to look at, where the file holds more than one nucleosome.

    Raises BadInputError when the file cannot be read, or holds no nucleosome, or more than one.
    """
    model = read_model(path, chains)
    observed = octamer_chains(path, model)
    matrix, shift, deviation, order = own_frame(path, observed)
    observed = [observed[k] for k in order]
    for chain in observed:
        for residue in chain.residues:
            residue.atoms = {a: matrix @ x + shift for a, x in residue.atoms.items()}
    origin, frame, dna_report = dna_path(path, model, matrix, shift)
    position, kinds, _ = build_dna(np.arange(len(origin)) % 4, origin, frame)
    library = list(residue_library().values())
    element = np.concatenate([library[kind].elements for kind in kinds])
    dna, polar = position[element != "H"], np.isin(element[element != "H"], ("N", "O"))
    octamers, contacts, chain_report = {}, {}, None
    for tails in ("compact", "crystal"):
        threads, now = threads_of(observed, tails == "compact")
        if now == chain_report:  # no tail is there: both are the same
            octamers[tails], contacts[tails] = octamers["compact"], contacts["compact"]
            break
        octamers[tails], contacts[tails] = _corrected(completed(observed, threads, dna, polar), position, kinds)
        chain_report = now
    report = {"source": Path(path).name, "fold_deviation": round(deviation, 3), **dna_report,
              "heavy_pairs_below_2": contacts, "chains": chain_report}
    return NucleosomeTemplate(origin, frame, octamers, report)


def _corrected(core: Octamer, dna: np.ndarray, kinds: np.ndarray) -> tuple[Octamer, list[int]]:
    """The octamer after clash correction on its DNA, and its heavy pairs below 2 angstrom before and after."""
    solute = assemble_solute(dna, kinds, [core], np.zeros((1, 3)), np.eye(3)[None])
    corrected, found = correct_clashes(solute)
    position = corrected.position[corrected.molecule_first_atom[2]:].astype(float)
    return replace(core, position=position), [
        int(found.data[when]["heavy_pairs_below_2"]) for when in ("before", "after")]


def add_template(path: str | Path, output: str | Path | None = None, chains: list[str] | None = None) -> dict:
    """Write the template of a structure file, by default as NAME.nucleosome.h5 here, and report what was done.

    Raises BadInputError as ``template_from_structure`` does.
    """
    made = template_from_structure(path, chains)
    target = Path(output or f"{Path(path).name.split('.')[0]}.nucleosome.h5")
    made.write(target)
    return {"file": str(target)} | made.report


def fetch_template(entry: str, output: str | Path | None = None, chains: list[str] | None = None) -> dict:
    """The same for an entry of the Protein Data Bank, e.g. ``1KX5``.

    Raises BadInputError for a name that is none, or when the entry cannot be downloaded.
    """
    if not re.fullmatch("[0-9][A-Za-z0-9]{3}", entry):
        raise BadInputError(f"{entry!r} is no name of a PDB entry: give four characters such as 1KX5")
    with TemporaryDirectory() as folder:
        said = StringIO()
        with redirect_stdout(said):  # PDBList prints its errors
            file = PDBList(verbose=False).retrieve_pdb_file(entry, pdir=folder, file_format="mmCif")
        if file is None:
            reason = said.getvalue().strip().rpartition("': ")[2]
            raise BadInputError(f"PDB entry {entry} cannot be downloaded ({reason}): check its name and the network, "
                                "or take the file from elsewhere and use `chromabuild template add`")
        return add_template(file, output or f"{entry.lower()}.nucleosome.h5", chains)


def lines(report: dict) -> list[str]:
    """A report for people."""
    before, after = report["heavy_pairs_below_2"]["compact"]
    found = [f"{report['source']}: fold {report['fold_deviation']:.2f} angstrom, DNA {report['dna_deviation']:.2f} "
             f"angstrom rms from 1KX5",
             f"dyad at base {report['dyad']}; {report['base_pairs']} base pairs, {report['base_pairs_completed']} more "
             "completed as in 1KX5",
             f"close contacts of heavy atoms (below 2 angstrom): {before}, after correction {after}"]
    for chain in report["chains"]:
        done = [f"{chain['residues']} residues, {chain['observed']} of them in the file"]
        done += [f"completed {chain['completed']}"] if chain["completed"] else []
        done += [f"{chain['side_chains_completed']} side chains completed"] if chain["side_chains_completed"] else []
        done += [f"{chain['deletions']} fewer than there"] if chain["deletions"] else []
        found.append(f"chain {chain['chain']}: nearest to {chain['histone']}, {'; '.join(done)}")
    return [*found, f"wrote {report['file']}", f"next: build.template: {report['file']} in locus.yaml"]
