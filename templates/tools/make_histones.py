"""Write histones.h5: the histones of histones.json modelled on the octamer of 1KX5, tails compact.

    python templates/tools/make_histones.py [--missing]

Backbones come from the template, loops of another length and longer ends are built, side chains chosen from rotamers
(chromabuild/nucleosome/homology.py); then OpenMM minimises the nucleosome in the force field without charges, kept
atoms tied to their places, so that every contact and every bond angle is sound. A variant is modelled among the
canonical histones of its species. Run it again after make_compact_tails.py. With --missing what is there is kept, and
only histones that the file lacks are added.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import openmm
from openmm import unit

from chromabuild.base.files import template_path
from chromabuild.build.duplex import build_dna
from chromabuild.dna.sequence import base_index
from chromabuild.forcefield.assign import make_topology
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.homology import Residue, chains_of, histone_table, model_histones
from chromabuild.nucleosome.octamer import Octamer, octamer
from chromabuild.simulate.openmm_engine import NonbondedOptions, system_from_topology
from chromabuild.sterics.atoms import Atoms
from chromabuild.sterics.audit import audit
from chromabuild.sterics.detect import find_clashes

TIED, DNA_TIED = 20.0, 50.0  # kcal/mol/angstrom^2 on atoms of the template and of DNA
STEPS = 2000
ATTEMPTS = 6
MOVED = 0.15  # angstrom: residues beside a variant that moved further are stored with it
KJ, KJ_PER_NM2 = 4.184, 418.4  # of 1 kcal/mol and of 1 kcal/mol/angstrom^2


def dna_of_the_path() -> tuple[np.ndarray, np.ndarray]:
    """Atoms and library indices of 147 bp on the crystal's path, every base in every fourth place."""
    path = json.loads(template_path("nucleosome_path_1kx5.json").read_text())
    origin, frame = np.array(path["origin"]), np.array(path["frame"]).reshape(-1, 3, 3)
    sequence = base_index(np.frombuffer(("ACGT" * 37)[:len(origin)].encode(), dtype=np.uint8))
    position, kinds, _ = build_dna(sequence, origin, frame)
    return position, kinds


def as_solute(dna: tuple[np.ndarray, np.ndarray], model: Octamer) -> Solute:
    """DNA and octamer as one solute."""
    strand = len(dna[1]) // 2
    counts = np.bincount(model.residue_chain)
    return Solute(
        position=np.concatenate([dna[0], model.position]).astype(np.float32),
        residue_template=np.concatenate([dna[1], model.residue_template]),
        residue_number=np.concatenate([np.arange(1, 2 * strand + 1), model.residue_number]).astype(np.int32),
        residue_segment=np.concatenate([np.zeros(2 * strand, int), model.residue_chain + 1]).astype(np.uint16),
        segment_name=["DNA0", *(f"000{letter}" for letter in model.chain)], segment_chain=["X", *model.chain],
        molecule_first_residue=np.concatenate([[0, strand], 2 * strand + np.concatenate([[0], np.cumsum(counts)])]),
        molecule_name=["DNA-I", "DNA-J", *model.histone],
        molecule_nucleosome=np.array([-1, -1] + [0] * len(model.chain), np.int32))


def minimised(solute: Solute, tied: np.ndarray, fixed: np.ndarray | None = None,
              omegas: Sequence[Sequence[int]] = (), held: float = 0.0) -> np.ndarray:
    """Positions after minimisation without charges.

    ``tied``: kcal/mol/angstrom^2 on every atom; ``fixed``: (n,) bool, atoms that do not move; ``omegas``: four
    atoms each of torsions that ``held`` kcal/mol on 1 + cos keep at trans.
    """
    box = np.full(3, 400.0)
    topology = make_topology(solute, {})
    system = system_from_topology(topology, box, NonbondedOptions(cutoff=9.0, alpha=0.35, grid=(64, 64, 64)))
    for force in system.getForces():
        if isinstance(force, openmm.NonbondedForce):
            force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
            for k in range(force.getNumParticles()):
                _, sigma, epsilon = force.getParticleParameters(k)
                force.setParticleParameters(k, 0.0, sigma, epsilon)
            for k in range(force.getNumExceptions()):
                i, j, _, sigma, epsilon = force.getExceptionParameters(k)
                force.setExceptionParameters(k, i, j, 0.0, sigma, epsilon)
    tie = openmm.CustomExternalForce("k*((x-x0)^2+(y-y0)^2+(z-z0)^2)")
    for name in ("k", "x0", "y0", "z0"):
        tie.addPerParticleParameter(name)
    place = 0.1 * solute.position.astype(float) + 20.0
    for k in np.flatnonzero(tied):
        tie.addParticle(int(k), [KJ_PER_NM2 * tied[k], *place[k]])
    system.addForce(tie)
    for k in np.flatnonzero(fixed if fixed is not None else []):
        system.setParticleMass(int(k), 0.0)
    trans = openmm.PeriodicTorsionForce()
    for atoms in omegas:
        trans.addTorsion(*atoms, 1, 0.0, KJ * held)
    system.addForce(trans)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("CPU"))
    context.setPositions(place)
    openmm.LocalEnergyMinimizer.minimize(context, maxIterations=STEPS)
    state = context.getState(getPositions=True)
    return 10.0 * (np.asarray(state.getPositions(asNumpy=True).value_in_unit(unit.nanometer)) - 20.0)


def modelled(template: Octamer, entries: dict[str, dict], dna: tuple[np.ndarray, np.ndarray]) -> Octamer:
    """Model, minimise, and say how sound it is; models with faults are made again with other draws."""
    for attempt in range(ATTEMPTS):
        model, is_sound = minimum(template, entries, dna, attempt)
        if is_sound:
            break
    return model


def minimum(template: Octamer, entries: dict[str, dict], dna: tuple[np.ndarray, np.ndarray], attempt: int
            ) -> tuple[Octamer, bool]:
    """A model at its minimum, and whether it is without faults."""
    library = list(residue_library().values())
    element = np.concatenate([library[k].elements for k in dna[1]])
    model = model_histones(template, entries, dna[0][element != "H"], np.isin(element[element != "H"], ("N", "O")),
                           attempt)
    solute = as_solute(dna, model)
    kept = {tuple(np.round(x, 3)) for chain in chains_of(template) for r in chain for x in r.atoms.values()}
    tied = np.array([TIED if tuple(x) in kept else 0.0 for x in np.round(model.position, 3)])
    tied = np.where(np.concatenate([element, solute.elements()[len(element):]]) == "H", 0.0,
                    np.concatenate([np.full(len(element), DNA_TIED), tied]))
    position = minimised(solute, tied)
    moved = np.linalg.norm(position - solute.position, axis=1)[tied == TIED]
    solute.position[:] = position
    found = audit(Atoms.from_solute(solute))
    pairs, distance = find_clashes(solute, 2.0)
    heavy = np.all(solute.elements()[pairs] != "H", axis=1)
    print(f"  kept atoms moved {np.sqrt(np.mean(moved**2)):.2f} angstrom rms; {int(heavy.sum())} heavy pairs below 2.0 "
          f"angstrom, {len(found.chirality_errors)} chirality errors, {len(found.cis_peptides)} cis peptides, "
          f"{len(found.piercings)} ring piercings", flush=True)
    is_sound = not (heavy.any() or found.chirality_errors or found.cis_peptides or found.piercings)
    return Octamer(position[len(element):], model.residue_template, model.residue_number, model.residue_chain,
                   model.chain, model.histone), is_sound


def store(file: h5py.File, species: str, histone: str, family: str, model: Octamer,
          base: Octamer | None = None) -> None:
    """Both copies of one histone; of a variant, also the residues of other histones that gave way to it."""
    all_chains = chains_of(model)
    chains = [chain for chain, name in zip(all_chains, model.histone, strict=True) if name == family]
    moved = [] if base is None else [
        (c, k, residue) for c, (chain, before) in enumerate(zip(all_chains, chains_of(base), strict=True))
        if model.histone[c] != family for k, (residue, old) in enumerate(zip(chain, before, strict=True))
        if 0 < k < len(chain) - 1
        and max(np.linalg.norm(residue.atoms[a] - old.atoms[a]) for a in residue.atoms) > MOVED]

    def thousandths(residues: list[Residue]) -> np.ndarray:
        return np.rint(1000 * np.array([x for r in residues for x in r.atoms.values()]).reshape(-1, 3)).astype(np.int32)

    group = file.create_group(f"{species}/{histone}")
    group.attrs["first_number"] = chains[0][0].number
    data = {"residue_name": np.array([r.name for r in chains[0]], dtype="S4"),
            "heavy_atom_position": thousandths([r for chain in chains for r in chain]),
            "moved_chain_and_index": np.array([(c, k) for c, k, _ in moved], dtype=np.int16).reshape(-1, 2),
            "moved_residue_name": np.array([r.name for *_, r in moved], dtype="S4"),
            "moved_position": thousandths([r for *_, r in moved])}
    for name, values in data.items():
        group.create_dataset(name, data=values, **({"compression": "gzip", "shuffle": True} if len(values) else {}))


def main() -> None:
    """Write the file beside this script."""
    folder, dna = Path(__file__).resolve().parents[1], dna_of_the_path()
    with h5py.File(folder / "histones.h5", "a" if "--missing" in sys.argv[1:] else "w") as file:
        file.attrs["source"] = "modelled on PDB 1KX5 (CC0 1.0) with the sequences of histones.json"
        file.attrs["unit"] = "0.001 angstrom, both copies one after the other, residues without OXT"
        for species, table in histone_table().items():
            missing = [name for name in table if f"{species}/{name}" not in file]
            if not missing:
                continue
            families = {name: entry for name, entry in table.items() if name == entry["family"]}
            print(species, flush=True)
            base = modelled(octamer("compact"), families, dna)
            for name in missing:
                if name in families:
                    store(file, species, name, name, base)
                    continue
                print(species, name, flush=True)
                model = modelled(base, {table[name]["family"]: table[name]}, dna)
                store(file, species, name, table[name]["family"], model, base)


if __name__ == "__main__":
    sys.exit(main())
