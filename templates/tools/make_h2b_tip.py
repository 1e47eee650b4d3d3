"""Complete H2B in nucleosome_1kx5.h5: residues -2 to 0, which 1KX5 lacks.

    python templates/tools/make_h2b_tip.py
    python templates/tools/make_compact_tails.py --ends-of-h2b 12

The chains of the entry begin at residue 1 of its numbering; the protein has three more, Pro-Glu-Pro (UniProtKB P02281
without the initiator methionine). They are grown from the ends of the crystal's tails, clear of everything else, side
chains chosen from rotamers, and minimised without charges among atoms that stay where they are. Run it once, after
make_nucleosome.py and make_compact_tails.py; the second line does the same for compact tails. make_histones.py follows.
"""

import sys
from pathlib import Path

import h5py
import numpy as np
from make_histones import DNA_TIED, as_solute, dna_of_the_path, minimised

from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.homology import chains_of, model_histones
from chromabuild.nucleosome.octamer import Octamer, octamer
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from chromabuild.sterics.detect import find_clashes

TIP = "PEP"
SOURCE = "; residues -2 to 0 of H2B modelled (make_h2b_tip.py)"
FIXED = 1e4  # kcal/mol/angstrom^2: what is there stays, to the 0.001 angstrom of the file
ATTEMPTS = 60


def completed(core: Octamer) -> Octamer:
    """The octamer with the tip on both copies of H2B, and else as it was; the first sound model of several."""
    dna = dna_of_the_path()
    library = list(residue_library().values())
    element = np.concatenate([library[k].elements for k in dna[1]])
    heavy = element != "H"
    h2b = next(chain for chain, name in zip(chains_of(core), core.histone, strict=True) if name == "H2B")
    entry = {"family": "H2B", "first": h2b[0].number - len(TIP), "sequence": TIP + "".join(r.letter for r in h2b)}
    there = {tuple(np.round(x, 3)) for chain in chains_of(core) for r in chain for x in r.atoms.values()}
    for attempt in range(ATTEMPTS):
        model = model_histones(core, {"H2B": entry}, dna[0][heavy], np.isin(element[heavy], ("N", "O")), attempt)
        solute = as_solute(dna, model)
        is_hydrogen = solute.elements() == "H"
        kept = np.array([tuple(x) in there for x in np.round(model.position, 3)]) & ~is_hydrogen[len(element):]
        is_end = rows_of(model)[2]
        if np.any(~kept[~is_hydrogen[len(element):]] & ~rows_of(model)[1] & ~is_end):
            continue  # a side chain gave way
        tied = np.concatenate([np.full(len(element), DNA_TIED), np.where(kept, FIXED, 0.0)])
        position = minimised(solute, np.where(is_hydrogen, 0.0, tied))
        position[len(element):][kept] = model.position[kept]
        solute.position[:] = position
        found = audit(Atoms.from_solute(solute))
        pairs, _ = find_clashes(solute, 2.0)
        close = np.sum(~is_hydrogen[pairs].any(axis=1))
        new = int(np.sum(~kept & ~is_hydrogen[len(element):]))
        print(f"attempt {attempt}: {new} new heavy atoms, {close} heavy pairs below 2.0 angstrom, "
              f"{len(found.chirality_errors)} chirality errors, {len(found.cis_peptides)} cis peptides, "
              f"{len(found.piercings)} ring piercings", flush=True)
        if not (close or found.chirality_errors or found.cis_peptides or found.piercings):
            break
    else:
        raise SystemExit("no model is sound: give it more attempts")
    return Octamer(position[len(element):], model.residue_template, model.residue_number, model.residue_chain,
                   model.chain, model.histone)


def rows_of(core: Octamer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heavy atoms (n, 3) in the order of the file, whether they are of the tip, and whether they end a chain (OXT)."""
    library = list(residue_library().values())
    position, is_tip, is_end = [], [], []
    for k, residue in enumerate(residue for chain in chains_of(core) for residue in chain):
        entry = library[core.residue_template[k]]
        first = core.first_atom[k]
        for i, (atom, element) in enumerate(zip(entry.atoms, entry.elements, strict=True)):
            if element != "H":
                position.append(core.position[first + i] if atom == "OXT" else residue.atoms[atom])
                is_tip.append(core.histone[core.residue_chain[k]] == "H2B" and residue.number < 1)
                is_end.append(atom == "OXT")
    return np.array(position), np.array(is_tip), np.array(is_end)


def main() -> None:
    """Rewrite the file; rows of histone_tails_compact.h5 follow."""
    folder, options = Path(__file__).resolve().parents[1], {"compression": "gzip", "shuffle": True}
    crystal = octamer("crystal")
    if crystal.residue_number.min() < 1:
        raise SystemExit("H2B is complete already")
    core, names = completed(crystal), list(residue_library())
    position, is_tip, is_end = rows_of(core)
    position[is_end] = rows_of(crystal)[0][is_end[~is_tip]]
    with h5py.File(folder / "nucleosome_1kx5.h5", "r+") as file:
        file.attrs["source"] = file.attrs["source"] + SOURCE
        data = {"heavy_atom_position": np.rint(1000 * position).astype(np.int32),
                "residue_name": np.array([names[k] for k in core.residue_template], dtype="S4"),
                "residue_number": core.residue_number.astype(np.int16),
                "residue_chain": np.array([core.chain[k] for k in core.residue_chain], dtype="S1")}
        for name, values in data.items():
            attributes = dict(file[name].attrs)
            del file[name]
            file.create_dataset(name, data=values, **options)
            file[name].attrs.update(attributes)
    with h5py.File(folder / "histone_tails_compact.h5", "r+") as file:
        file["heavy_atom"][...] = np.flatnonzero(~is_tip)[file["heavy_atom"][...]]


if __name__ == "__main__":
    sys.exit(main())
