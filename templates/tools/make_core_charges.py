"""Write core_charges.json: Debye-Hueckel charges of nucleosome cores, 1KX5 at six salts, others at two of them.

    python templates/tools/make_core_charges.py [--workers 2] [CORE ...]

Needs apbs (see mesoscale/disco.py). A core is the octamer of a species, with variants, without the parts of the tails
that the model's 50 beads stand for, and 147 base pairs (chromabuild/build/surface_charges.py). Without names all
cores are made, else those, such as "human H2A.Z"; the others stay as they are in the file. So do the sites and the
numbers of their base pairs, by which a core with fewer of them leaves sites out: the sites were spread over the
envelope of the core of PDB 1KX5, and belong to the base pair whose atom is nearest.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from chromabuild.build.surface_charges import DIGITS, core_atoms, core_recipe
from chromabuild.nucleosome.recipe import OctamerRecipe
from mesoscale.disco import ANGSTROM, optimise

SALTS = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2]  # mol/L, of the first core
FEW_SALTS = [0.02, 0.15]  # of the others, of which the model takes the difference to the first
CORES = ["xenopus", "human", "yeast", "mouse", "fly", "human H2A.Z", "yeast H2A.Z", "human CENP-A", "xenopus H2A.Z",
         "yeast Cse4", "fly H2A.Z", "xenopus CENP-A", "human macroH2A", "xenopus macroH2A"]
PATH = Path(__file__).resolve().parents[1] / "core_charges.json"


def fitted(name: str, site: list[list[float]]) -> dict:
    """What the file holds of a core."""
    species, *variants = name.split()
    atoms = core_atoms(core_recipe(OctamerRecipe(species, variants=tuple(variants))))
    salts = SALTS if name == CORES[0] else FEW_SALTS
    fits = optimise(atoms, salts, np.array(site) * ANGSTROM)
    return {"salt": salts, "atomic_charge": round(float(atoms.charge.sum())),
            "net_charge": [round(float(fit.charge.sum()), 2) for fit in fits],
            "mean_field_error": [round(fit.mean_error, 4) for fit in fits],
            "field_error_95th_percentile": [round(fit.high_error, 4) for fit in fits],
            "charge": [(np.round(fit.charge, DIGITS) + 0.0).tolist() for fit in fits]}


def main() -> None:
    """Fit, and write the template after every core."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cores", nargs="*", default=CORES, metavar="CORE")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    data = json.loads(PATH.read_text())
    with ProcessPoolExecutor(given.workers) as pool:
        jobs = {pool.submit(fitted, name, data["sites"]): name for name in given.cores}
        for job in as_completed(jobs):
            core = data["cores"][jobs[job]] = job.result()
            print(f"{jobs[job]}: {core['atomic_charge']} e, fitted {core['net_charge']} e, field errors "
                  f"{core['mean_field_error']}", flush=True)
            write({**data, "cores": dict(sorted(data["cores"].items()))})


def write(data: dict) -> None:
    """The file, a core a line."""
    cores = ",\n  ".join(f"{json.dumps(name)}: {json.dumps(core)}" for name, core in data.pop("cores").items())
    head = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items())
    PATH.write_text(f'{{\n{head},\n "cores": {{\n  {cores}\n }}\n}}\n')


if __name__ == "__main__":
    main()
