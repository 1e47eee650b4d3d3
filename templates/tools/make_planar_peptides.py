"""Flatten twisted peptides of histones.h5 and linker_histones.h5.

    python templates/tools/make_planar_peptides.py

Loops and ends that are built anew close with some strain, which minimisation leaves in the peptides. Where omega is
more than LIMIT off planarity, the residues around it are minimised once more without charges, among everything else of
the nucleosome that stays where it is, with a torsion that holds omega at trans. What gave way to a variant beside
residues that change stays instead. Run it after make_histones.py and make_linker_histones.py; a file without such
peptides is left as it is.
"""

import sys
from pathlib import Path

import h5py
import numpy as np
from make_histones import as_solute, dna_of_the_path, minimised
from make_linker_histones import dna_with_linkers

from chromabuild.molecule.residues import heavy_atoms, residue_library
from chromabuild.nucleosome.homology import Residue, chains_of, histone_table, octamer_of
from chromabuild.nucleosome.octamer import FAMILIES, LINKER_CHAIN, Octamer, octamer
from chromabuild.nucleosome.peptide import torsion
from chromabuild.nucleosome.recipe import (
    OctamerRecipe,
    build_octamer,
    linker_histone_table,
    stored_histone,
    stored_linker_histone,
)
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from chromabuild.sterics.detect import find_clashes

LIMIT = 28.0  # degree off planarity; the audit finds what is 30 off
REACHES = (3, 4, 5, 6)  # residues on either side that move, tried in turn
HELD = 150.0  # kcal/mol on 1 + cos(omega)


def off_planarity(chain: list[Residue]) -> np.ndarray:
    """(r - 1,) degree."""
    omega = np.abs([float(torsion(a.atoms["CA"], a.atoms["C"], b.atoms["N"], b.atoms["CA"]))
                    for a, b in zip(chain, chain[1:], strict=False)])
    return np.minimum(omega, 180.0 - omega)


def flattened(model: Octamer, chains: list[int], dna: tuple[np.ndarray, np.ndarray], reach: int) -> Octamer:
    """The octamer with planar peptides in some of its chains."""
    library = list(residue_library().values())
    solute = as_solute(dna, model)
    n_dna = len(solute.position) - len(model.position)
    moves, omegas, all_chains = np.zeros(len(model.residue_template), bool), [], chains_of(model)
    for c in chains:
        rows = np.flatnonzero(model.residue_chain == c)
        for k in np.flatnonzero(off_planarity(all_chains[c]) > LIMIT):
            window = range(max(0, k - reach), min(len(rows), k + 2 + reach))
            moves[rows[window]] = True
    for c in chains:
        rows = np.flatnonzero(model.residue_chain == c)
        for a, b in zip(rows, rows[1:], strict=False):
            if moves[a] or moves[b]:
                one, other = library[model.residue_template[a]].index, library[model.residue_template[b]].index
                first, second = n_dna + model.first_atom[a], n_dna + model.first_atom[b]
                omegas.append([int(first) + one["CA"], int(first) + one["C"], int(second) + other["N"],
                               int(second) + other["CA"]])
    fixed = np.concatenate([np.ones(n_dna, bool), ~np.repeat(moves, np.diff(model.first_atom))])
    position = minimised(solute, np.zeros(len(fixed)), fixed, omegas, HELD)
    position[fixed] = solute.position[fixed]
    return Octamer(position[n_dna:], model.residue_template, model.residue_number, model.residue_chain, model.chain,
                   model.histone)


def faults(model: Octamer, dna: tuple[np.ndarray, np.ndarray], what: str) -> tuple[int, ...]:
    """How often the audit finds each kind of fault but twisted peptides, which other chains may still have; says so."""
    solute = as_solute(dna, model)
    found = audit(Atoms.from_solute(solute))
    pairs, _ = find_clashes(solute, 2.0)
    close = int(np.sum(np.all(solute.elements()[pairs] != "H", axis=1)))
    counts = (close, len(found.chirality_errors), len(found.cis_peptides), len(found.piercings))
    print(what, dict(zip(("heavy pairs below 2.0", "chirality", "cis", "piercings"), counts, strict=True)), flush=True)
    return counts


def flat_rows(recipe: OctamerRecipe, names: set[str], dna: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Heavy atoms (n, 3), 0.001 angstrom, without OXT, of the chains of these names, with planar peptides."""
    library = list(residue_library().values())
    element = np.concatenate([library[k].elements for k in dna[1]])
    heavy = element != "H"
    model = build_octamer(recipe, dna[0][heavy], np.isin(element[heavy], ("N", "O")))
    chains = [k for k, name in enumerate(model.histone) if name in names]
    return flat_positions(model, chains, dna, f"{recipe.species} {sorted(names)}")


def flat_positions(model: Octamer, chains: list[int], dna: tuple[np.ndarray, np.ndarray], what: str) -> np.ndarray:
    """Heavy atoms (n, 3), 0.001 angstrom, without OXT, of some chains, with planar peptides and no new fault."""
    before = faults(model, dna, f"{what}, as it is")
    for reach in REACHES:
        flat = flattened(model, chains, dna, reach)
        worst = max(float(off_planarity(chain).max()) for chain in (chains_of(flat)[k] for k in chains))
        found = faults(flat, dna, f"{what}, {reach} residues, {worst:.1f} degree")
        if worst < LIMIT and all(new <= old for new, old in zip(found, before, strict=True)):
            break
    else:
        raise SystemExit("the peptides do not become planar: let more residues move")
    return np.rint(1000 * np.array([x for k in chains for r in chains_of(flat)[k] for x in r.atoms.values()]))


def forget_moved(group: h5py.Group, changed: set[tuple[int, int]]) -> None:
    """Leave out of what gave way to a variant residues that are bonded to changed ones: (chain, index in it)."""
    names = [name.decode() for name in group["moved_residue_name"][...]]
    places, rows = group["moved_chain_and_index"][...], group["moved_position"][...]
    kept = [not {(c, k - 1), (c, k), (c, k + 1)} & changed for c, k in places.tolist()]
    if all(kept):
        return
    data = {"moved_chain_and_index": places[kept],
            "moved_residue_name": np.array([name for name, stays in zip(names, kept, strict=True) if stays], "S4"),
            "moved_position": rows[np.repeat(kept, [len(heavy_atoms(name)) for name in names])]}
    for name, values in data.items():
        del group[name]
        group.create_dataset(name, data=values, **({"compression": "gzip", "shuffle": True} if len(values) else {}))


def changed_residues(family: str, before: list[list[Residue]], after: list[list[Residue]]) -> set[tuple[int, int]]:
    """Of both copies of a histone: (chain of the octamer, index in it)."""
    chains = [k for k, name in enumerate(FAMILIES) if name == family]
    return {(c, k) for c, one, other in zip(chains, before, after, strict=True)
            for k, (a, b) in enumerate(zip(one, other, strict=True))
            if any(np.any(np.rint(1000 * (a.atoms[x] - b.atoms[x]))) for x in a.atoms)}


def main() -> None:
    """Rewrite coordinates."""
    folder, dna = Path(__file__).resolve().parents[1], dna_of_the_path()
    for species, table in histone_table().items():
        for name, entry in table.items():
            if max(off_planarity(chain).max() for chain in stored_histone(species, name).copies) <= LIMIT:
                continue
            variants = () if name == entry["family"] else (name,)
            rows = flat_rows(OctamerRecipe(species=species, variants=variants, tails="compact"), {name}, dna)
            before = stored_histone(species, name).copies
            with h5py.File(folder / "histones.h5", "r+") as file:
                file[f"{species}/{name}/heavy_atom_position"][...] = rows
            stored_histone.cache_clear()
            if variants:
                continue
            changed = changed_residues(name, before, stored_histone(species, name).copies)
            with h5py.File(folder / "histones.h5", "r+") as file:
                for other in table:
                    forget_moved(file[f"{species}/{other}"], changed)
            stored_histone.cache_clear()
    repack(folder / "histones.h5")
    flatten_linker_histones(folder / "linker_histones.h5")


def flatten_linker_histones(path: Path) -> None:
    """Rewrite coordinates of those that have twisted peptides, each on the octamer with straight linkers."""
    core = octamer("compact")
    for name in linker_histone_table():
        chain = stored_linker_histone(name)
        if off_planarity(chain).max() <= LIMIT:
            continue
        whole = octamer_of([*chains_of(core), chain], (*core.chain, LINKER_CHAIN), (*FAMILIES, name))
        rows = flat_positions(whole, [len(core.chain)], dna_with_linkers(), name)
        with h5py.File(path, "r+") as file:
            file[f"{name}/heavy_atom_position"][...] = rows
        repack(path)


def repack(path: Path) -> None:
    """Write a file anew, without the room that replaced data leaves in it."""
    part = path.with_suffix(".part")
    with h5py.File(path) as old, h5py.File(part, "w") as new:
        new.attrs.update(old.attrs)
        for name in old:
            old.copy(name, new)
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
