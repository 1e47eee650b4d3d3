"""Write bead_judgement.npz: energies and forces that open3SPN2 0.3.2 (PyPI) gives on OpenMM's Reference platform to the
beads of the fixture ``duplex`` and of the DNA of a nucleosome, moved at random from where they are.

Its forces come as they are, but for two things. Between bases, only pairs that the build has count, as in chromabuild:
all others are excluded. Bases that could pair but do not are excluded from each other's volume there, and are not here.
The cutoff of the charges lies beyond the model, since chromabuild's shifts the force at its cutoff.

python tests/support/data/make_bead_judgement.py, where open3SPN2 can be imported.
"""

import itertools
from pathlib import Path

import numpy as np
import open3SPN2
import openmm
import pandas
from openmm import unit
from support.beads import displaced, dna_of_nucleosome
from support.molecular_systems import fixture

from chromabuild.build.beads import BASE, PHOSPHATE, SUGAR, Beads, beads_of

CUTOFF = 100.0
"""Nanometre."""
SALT, TEMPERATURE = 150.0, 300.0
"""mmol/L, K."""
KCAL = unit.kilocalorie_per_mole


def table_of(beads: Beads, place: np.ndarray) -> tuple[pandas.DataFrame, np.ndarray]:
    """The atoms of an open3SPN2.DNA, in our order, and the order that it needs: strand by strand."""
    first = np.flatnonzero(beads.following == -1)
    chain = np.searchsorted(first, beads.residue)
    names = {PHOSPHATE: "P", SUGAR: "S"}
    letter = np.array([row.decode() for row in beads.letter])
    name = [names.get(kind, x) for kind, x in zip(beads.kind.tolist(), letter, strict=True)]
    order = np.lexsort((beads.kind, beads.residue))
    table = pandas.DataFrame({
        "recname": "ATOM", "serial": np.arange(beads.n), "name": name, "altLoc": "",
        "resname": ["D" + x for x in letter], "chainID": [chr(65 + c) for c in chain], "resSeq": beads.residue,
        "iCode": "", "x": place[:, 0], "y": place[:, 1], "z": place[:, 2], "type": name})
    return table.iloc[order].reset_index(drop=True), order


def exclude_others(force: openmm.CustomHbondForce, native: set[tuple[int, int]]) -> None:
    """Leave only the native pairs of the bases that stand first in donors and acceptors."""
    kept = set()
    for k in range(force.getNumExclusions()):
        kept.add(tuple(force.getExclusionParticles(k)))
    donors = [force.getDonorParameters(k)[0] for k in range(force.getNumDonors())]
    acceptors = [force.getAcceptorParameters(k)[0] for k in range(force.getNumAcceptors())]
    for (i, d), (j, a) in itertools.product(enumerate(donors), enumerate(acceptors)):
        if (d, a) not in native and (i, j) not in kept:
            force.addExclusion(i, j)


def judgement(beads: Beads, place: np.ndarray) -> dict[str, np.ndarray]:
    """Energies by term (kcal/mol) and the force of all (kcal/mol/angstrom)."""
    dna = open3SPN2.DNA(periodic=False)
    dna.atoms, order = table_of(beads, place)
    number = np.argsort(order)
    dna.DNAtype = "B"
    dna.parseConfigurationFile()
    dna.computeTopology(template_from_X3DNA=False)
    system = openmm.System()
    for _ in range(beads.n):
        system.addParticle(1.0)
    table = beads.of_residue
    nucleotides = np.flatnonzero(beads.partner >= 0)
    native = {(int(number[table[k, BASE]]), int(number[table[beads.partner[k], BASE]])) for k in nucleotides}
    charges = open3SPN2.ff3SPN2.Electrostatics(dna, temperature=TEMPERATURE * unit.kelvin,
                                               salt_concentration=SALT * unit.millimolar)
    terms = {"bond": [open3SPN2.ff3SPN2.Bond(dna).force], "angle": [open3SPN2.ff3SPN2.Angle(dna).force],
             "dihedral": [open3SPN2.ff3SPN2.Dihedral(dna).force],
             "stacking": [open3SPN2.ff3SPN2.Stacking(dna).force],
             "base_pair": list(open3SPN2.ff3SPN2.BasePair(dna).forces.values()),
             "cross_stacking": [f for both in open3SPN2.ff3SPN2.CrossStacking(dna).crossStackingForces.values()
                                for f in both],
             "volume": [open3SPN2.ff3SPN2.Exclusion(dna).force], "charge": [charges.force]}
    charges.force.setCutoffDistance(CUTOFF)
    for force in [*terms["base_pair"], *terms["cross_stacking"]]:
        exclude_others(force, native)
    volume = terms["volume"][0]
    excluded = [volume.getExclusionParticles(k) for k in range(volume.getNumExclusions())]
    base, residue = beads.kind[order] == BASE, beads.residue[order]
    near = {tuple(sorted(pair)) for pair in native}
    fresh = openmm.CustomNonbondedForce(volume.getEnergyFunction())
    for k in range(volume.getNumPerParticleParameters()):
        fresh.addPerParticleParameter(volume.getPerParticleParameterName(k))
    for k in range(beads.n):
        fresh.addParticle(volume.getParticleParameters(k))
    step = beads.following
    for i, j in excluded:
        a, b = residue[i], residue[j]
        along = a == b or step[a] == b or step[b] == a
        if along or not (base[i] and base[j]) or tuple(sorted((i, j))) in near:
            fresh.addExclusion(i, j)
    fresh.setNonbondedMethod(fresh.CutoffNonPeriodic)
    fresh.setCutoffDistance(volume.getCutoffDistance())
    terms["volume"] = [fresh]
    for k, forces in enumerate(terms.values()):
        for force in forces:
            force.setForceGroup(k)
            system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(place[order] / 10)
    energy = [context.getState(getEnergy=True, groups={k}).getPotentialEnergy().value_in_unit(KCAL)
              for k in range(len(terms))]
    force = context.getState(getForces=True).getForces(asNumpy=True).value_in_unit(KCAL / unit.angstrom)
    names = {charges.force.getGlobalParameterName(k): charges.force.getGlobalParameterDefaultValue(k)
             for k in range(charges.force.getNumGlobalParameters())}
    return {"terms": np.array(list(terms)), "energy": np.array(energy), "force": force[number],
            "debye_length": np.array(10 * names["dh_length"]), "denominator": np.array(names["denominator"])}


def main() -> None:
    """Write the file beside this one."""
    found = {}
    for name, solute in {"duplex": fixture("duplex")[0], "nucleosome": dna_of_nucleosome()}.items():
        beads = beads_of(solute)
        for key, values in judgement(beads, displaced(beads, solute)).items():
            found[f"{name} {key}"] = values
            if key in ("energy", "debye_length", "denominator"):
                print(name, key, values)
    np.savez_compressed(Path(__file__).with_name("bead_judgement.npz"), **found)


if __name__ == "__main__":
    main()
