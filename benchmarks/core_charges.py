"""Charges of nucleosome cores for the fold: agreement with another program, species and variants, acetylated folds.

`agreement`: the bundled charges of 1KX5 at 150 mmol/L beside those fitted to the crystal structure with PDB2PQR's atoms
(tests/mesoscale/core_charges_pdb2pqr.json), whose core has six charges more, at ends where tails are cut off. Fields
are compared at random points 1 to 2.5 nm from the sites; energies are those of two parallel cores face to face.
`cores`: every core that comes with the package. `acetylated`: acetyl-lysines in the fold, and a salt between those of
the bundled fits, by apbs (half a minute of one core each).
"""

import json
from pathlib import Path

import numpy as np
from common.command import Benchmark
from scipy.spatial.distance import cdist

from chromabuild.build.surface_charges import core_atoms, core_recipe
from chromabuild.nucleosome.recipe import OctamerRecipe
from mesoscale.core_charges import bundled_charges, bundled_cores, core_sites
from mesoscale.disco import apbs_version, debye_hueckel_field, optimise
from mesoscale.model import Parameters

SALT = 0.15
FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "mesoscale" / "core_charges_pdb2pqr.json"
MARKS = ("H3K56ac", "H4K91ac")
DISTANCES = (7.0, 8.0, 10.0)  # nm


def facing(charge: np.ndarray, distance: float, salt: float = SALT) -> float:
    """Debye-Hueckel energy (kBT) of two parallel cores, one above the other, `distance` nm apart."""
    parameters, site = Parameters(salt=salt), core_sites()
    r = cdist(site, site + [0.0, 0.0, distance])
    return float(charge @ (parameters.bjerrum_length * np.exp(-parameters.kappa * r) / r) @ charge)


def difference(charge: np.ndarray, other: np.ndarray, salt: float = SALT) -> float:
    """Mean relative difference of two sets' fields at random points 1 to 2.5 nm from the sites, outside the bore."""
    parameters, site = Parameters(salt=salt), core_sites()
    random = np.random.Generator(np.random.Philox(key=3))
    points = random.uniform(site.min(axis=0) - 2.5, site.max(axis=0) + 2.5, (20_000, 3))
    nearest = cdist(points, site).min(axis=1)
    points = points[(nearest > 1.0) & (nearest < 2.5) & (np.linalg.norm(points, axis=1) > 5.5)]
    one, two = (debye_hueckel_field(site, points, parameters.bjerrum_length, parameters.kappa) @ q
                for q in (charge, other))
    return float((np.linalg.norm(one - two, axis=1) / np.linalg.norm(two, axis=1)).mean())


def main() -> None:
    """Compare, list, and fit."""
    benchmark = Benchmark(__doc__)
    benchmark.parser.add_argument("--marks", nargs="*", default=MARKS)
    given = benchmark.start(quick={"marks": ()})
    energies = {f"two cores at {distance:g} nm, kBT": ".1f" for distance in DISTANCES}
    agreement = benchmark.table("agreement", "Core of 1KX5 at 150 mmol/L, by two ways from the structure to the atoms",
                                **{"atoms": "", "charge of the atoms, e": ".0f", "fitted charge, e": ".1f"}, **energies,
                                **{"difference of the fields": ".1%"})
    ours, other = bundled_charges("xenopus", SALT)[0], json.loads(FIXTURE.read_text())
    theirs = np.array(other["charge"])
    for name, total, charge in (("chromabuild", bundled_charges("xenopus", SALT)[1], ours),
                                ("PDB2PQR, crystal DNA", other["atomic_charge"], theirs)):
        agreement.row(name, total, charge.sum(), *(facing(charge, one) for one in DISTANCES),
                      difference(charge, theirs))

    cores = benchmark.table("cores", "Cores that come with the package", **{
        "core": "", "charge of the atoms, e": ".0f", "fitted at 20 mmol/L, e": ".1f", "at 150 mmol/L, e": ".1f",
        "largest mean error of the field": ".1%", "two cores at 8 nm, 150 mmol/L, kBT": ".1f"})
    for name in bundled_cores():
        low, high = bundled_charges(name, 0.02), bundled_charges(name, SALT)
        cores.row(name, high[1], low[0].sum(), high[0].sum(), high[2], facing(high[0], 8.0))

    if given.marks:
        benchmark.peer("APBS", apbs_version().split()[-1])
        acetylated = benchmark.table("acetylated", "Other cores of Xenopus and human histones, fitted by APBS", **{
            "core": "", "salt, mmol/L": ".0f", "charge of the atoms, e": ".0f", "fitted charge, e": ".1f",
            "mean error of the field": ".1%", "two cores at 8 nm, kBT": ".1f", "those of the bundled core, kBT": ".1f",
            "difference of the fields": ".1%"})
        rows = [(mark, OctamerRecipe().with_mark(mark), SALT, "xenopus") for mark in given.marks]
        for name, recipe, salt, usual in [*rows, ("human, no marks", OctamerRecipe("human"), 0.05, "human")]:
            atoms = core_atoms(core_recipe(recipe))
            fit, plain = optimise(atoms, [salt], core_sites())[0], bundled_charges(usual, salt)[0]
            acetylated.row(name, 1000 * salt, atoms.charge.sum(), fit.charge.sum(), fit.mean_error,
                           facing(fit.charge, 8.0, salt), facing(plain, 8.0, salt),
                           difference(plain, fit.charge, salt))
    benchmark.finish()


if __name__ == "__main__":
    main()
