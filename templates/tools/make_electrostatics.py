"""Write electrostatics.json: charge and radius of every atom that proteins and DNA can have, for Poisson-Boltzmann.

    python templates/tools/make_electrostatics.py

Of amber14 (ff14SB, OL15), and of charmm36m-analogy for residues that it lacks; each residue stands in a capped chain,
as chromabuild/forcefield/assign.py puts it there. The radius is half the distance of the Lennard-Jones minimum, 0 for
atoms without such a term (hydroxyl hydrogens of AMBER): the radii that PDB2PQR has for AMBER. Net charges are whole
for every residue inside a chain, and for the two ends of a strand together.
"""

import json
from pathlib import Path

import numpy as np
from openmm import app

from chromabuild.forcefield.capped_chains import CAPS, CappedChains, caps_of_links
from chromabuild.forcefield.openmm_system import read_system
from chromabuild.forcefield.rules import is_known, rules_for
from chromabuild.molecule.residues import PHOSPHATE, PHOSPHATE_3, residue_library

FORCE_FIELDS = ("amber14", "charmm36m-analogy")


def place_in_chain(name: str) -> tuple[list[str], int]:
    """A chain that the residue can stand in, and where."""
    entry = residue_library()[name]
    first, last = CAPS[entry.kind]
    if entry.kind == "amino acid":
        begins, ends = name == f"N{entry.inner_name}" or entry.is_acylated, name == f"C{entry.inner_name}"
    else:
        end = name[len(entry.inner_name):]
        begins, ends = end in ("5", PHOSPHATE), end in ("3", PHOSPHATE_3)
    names = [first] * (not begins) + [name] + [last] * (not ends)
    return names, int(not begins)


def charges_and_radii(names: list[str], force_field: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By residue charges (e) and radii (angstrom) of its atoms."""
    chains = [place_in_chain(name) for name in names]
    needed = {one for chain, _ in chains for one in chain}
    rules = rules_for(sorted(needed | caps_of_links(needed)), force_field)
    built, spans = CappedChains(rules), []
    for chain, at in chains:
        added = built.add(chain)
        built.cap_links(chain, added)
        spans.append((added[at][0].index, added[at][-1].index + 1))
    terms = read_system(rules.force_field.createSystem(
        built.topology, nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False, removeCMMotion=False,
        residueTemplates=built.residue_templates))
    if terms.c12 is None:
        radius = np.where(terms.epsilon > 0, 2 ** (1 / 6) * terms.sigma / 2, 0.0)
    else:
        own12, own6 = np.diag(terms.c12), np.diag(terms.c6)
        radius = np.where(own6 > 0, (2 * own12 / np.where(own6 > 0, own6, 1)) ** (1 / 6) / 2, 0.0)
    return {name: (terms.charge[a:b], radius[terms.lj_type[a:b]]) for name, (a, b) in zip(names, spans, strict=True)}


def main() -> None:
    """Write the template beside this folder."""
    library = residue_library()
    wanted = [name for name, entry in library.items() if entry.kind in ("amino acid", "nucleotide")]
    found, rows = {}, []
    for force_field in FORCE_FIELDS:
        mine = [name for name in wanted if name not in found and is_known(name, force_field)]
        values = charges_and_radii(mine, force_field)
        found |= dict.fromkeys(mine, force_field)
        for name in mine:
            charge, radius = (np.round(column, 4) + 0.0 for column in values[name])
            rows.append(f'  {json.dumps(name)}: {{"force_field": {json.dumps(force_field)}, '
                        f'"charge": {json.dumps(charge.tolist())}, "radius": {json.dumps(radius.tolist())}}}')
    print("without parameters:", [name for name in wanted if name not in found])
    (Path(__file__).resolve().parents[1] / "electrostatics.json").write_text(
        '{\n "about": "charge (e) and radius (angstrom) of the atoms of residues.json, in its order; written by '
        'make_electrostatics.py",\n "residues": {\n' + ",\n".join(rows) + "\n }\n}\n")


if __name__ == "__main__":
    main()
