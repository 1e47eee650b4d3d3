"""Write dimers_1kx5.json: what of the mesoscale core belongs to either H2A-H2B dimer.

    python templates/tools/make_dimers.py

Needs the other templates only. The dimer of chains C and D lies beside the DNA that arrives (`entry`), that of chains G
and H beside the DNA that leaves (`exit`): half of the base pairs within 14 angstrom of their C-alpha atoms are on that
side of base pair 44 from the dyad. A sphere or charge belongs to the chain whose heavy atom is nearest to it; charges
that stand for DNA have base pairs of their own (core_charges.json).
"""

import json
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.octamer import octamer

DIMERS = {"entry": (2, 3), "exit": (6, 7)}
TAILS = ("H3", "H3", "H4", "H4", "H2A", "H2A", "H2B", "H2B", "H2A C", "H2A C")  # first and second copy in turn


def chain_atoms(tails: str) -> tuple[np.ndarray, np.ndarray]:
    """Heavy atoms (n, 3; angstrom) of the octamer and their chains (n,)."""
    core, library = octamer(tails), list(residue_library().values())
    element = np.concatenate([library[k].elements for k in core.residue_template])
    chain = np.repeat(core.residue_chain, np.diff(core.first_atom))
    return core.position[element != "H"], chain[element != "H"]


def main() -> None:
    """Read the places of spheres and charges, and write whose they are."""
    folder = Path(__file__).resolve().parents[1]
    body = json.loads((folder / "nucleosome_core_1kx5.json").read_text())
    charges = json.loads((folder / "core_charges.json").read_text())
    crystal, compact = chain_atoms("crystal"), chain_atoms("compact")

    def owner(rows: list[list[float]], atoms: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return atoms[1][cKDTree(atoms[0]).query(np.array(rows)[:, :3])[1]]

    owners = {"octamer_spheres": owner(body["octamer_spheres"], crystal),
              "tail_spheres": owner(body["tail_spheres"], compact),
              "charge_sites": owner(body["charge_sites"], compact),
              "core_charges": np.where(np.array(charges["base_pair"]) < 0, owner(charges["sites"], crystal), -1)}
    data = {"source": body["source"], "about": "rows of the other templates; written by make_dimers.py"}
    for copy, (name, chains) in enumerate(DIMERS.items()):
        rows = {key: np.flatnonzero(np.isin(value, chains)).tolist() for key, value in owners.items()}
        tails = [k for k, tail in enumerate(TAILS) if tail.startswith("H2") and k % 2 == copy]
        data[name] = {"chains": list(chains), "tails": tails} | rows
    text = json.dumps(data).replace('"entry"', '\n "entry"').replace('"exit"', '\n "exit"').replace("], ", "],\n  ")
    (folder / "dimers_1kx5.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
