"""Write residues.json: atoms, bonds and side-chain torsions of every residue that chromabuild can build.

Atom names and bonds are those of the AMBER residue templates in the OpenMM package (protein.ff14SB, DNA.OL15, tip3p),
so that a solute written in this order is matched by the force field without renaming. HOH4 is the water of opc.xml,
with a massless site; the last of all, so that the numbers of others in files stay. Run it only to add residues:

    python templates/tools/make_residues.py
"""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import openmm.app

STANDARD = ("ALA ARG ASN ASP CYS GLN GLU GLY HID HIE HIP ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL").split()
NUCLEOTIDES = [base + end for base in ("DA", "DC", "DG", "DT") for end in ("", "5", "3")]
SOLVENT = ["HOH", "NA", "CL", "K", "MG"]

# Rotatable side-chain torsions, IUPAC-IUB 1970.
CHI = {
    "ARG": "N CA CB CG, CA CB CG CD, CB CG CD NE, CG CD NE CZ",
    "ASN": "N CA CB CG, CA CB CG OD1",
    "ASP": "N CA CB CG, CA CB CG OD1",
    "CYS": "N CA CB SG",
    "GLN": "N CA CB CG, CA CB CG CD, CB CG CD OE1",
    "GLU": "N CA CB CG, CA CB CG CD, CB CG CD OE1",
    "HID": "N CA CB CG, CA CB CG ND1",
    "HIE": "N CA CB CG, CA CB CG ND1",
    "HIP": "N CA CB CG, CA CB CG ND1",
    "ILE": "N CA CB CG1, CA CB CG1 CD1",
    "LEU": "N CA CB CG, CA CB CG CD1",
    "LYS": "N CA CB CG, CA CB CG CD, CB CG CD CE, CG CD CE NZ",
    "MET": "N CA CB CG, CA CB CG SD, CB CG SD CE",
    "PHE": "N CA CB CG, CA CB CG CD1",
    "SER": "N CA CB OG",
    "THR": "N CA CB OG1",
    "TRP": "N CA CB CG, CA CB CG CD1",
    "TYR": "N CA CB CG, CA CB CG CD1",
    "VAL": "N CA CB CG1",
}


def standard_name(name: str) -> str:
    """The three-letter name of a terminal variant: NALA -> ALA."""
    return name[1:] if len(name) == 4 else name


def main() -> None:
    """Read the force-field templates and write residues.json beside this script."""
    folder = Path(openmm.app.__file__).parent / "data" / "amber14"
    templates, element_of_type = {}, {}
    for name in ("protein.ff14SB.xml", "DNA.OL15.xml", "tip3p.xml"):
        root = ElementTree.parse(folder / name).getroot()
        element_of_type |= {t.get("name"): t.get("element") for t in root.find("AtomTypes")}
        templates |= {r.get("name"): r for r in root.find("Residues")}

    wanted = STANDARD + [end + name for name in STANDARD for end in "NC"] + NUCLEOTIDES + SOLVENT
    residues = {}
    for name in wanted:
        template = templates[name]
        atoms = [(a.get("name"), element_of_type[a.get("type")]) for a in template.iter("Atom")]
        index = {atom: i for i, (atom, _) in enumerate(atoms)}
        bonds = sorted(sorted((index[b.get("atomName1")], index[b.get("atomName2")])) for b in template.iter("Bond"))
        standard = standard_name(name)
        if name in NUCLEOTIDES:
            kind, pdb_name = "nucleotide", name[:2]
        elif name in SOLVENT:
            kind, pdb_name = "water" if name == "HOH" else "ion", name
        else:
            kind, pdb_name = "amino acid", "HIS" if standard in ("HID", "HIE", "HIP") else standard
        chi = [torsion.split() for torsion in CHI[standard].split(",")] if standard in CHI else []
        residues[name] = {
            "pdb_name": pdb_name,
            "kind": kind,
            "atoms": [a for a, _ in atoms],
            "elements": [e for _, e in atoms],
            "bonds": bonds,
            "chi": chi,
        }

    others = ElementTree.parse(folder / "opc.xml").getroot().find("Residues")
    four_point = next(r for r in others if r.get("name") == "HOH")
    water = residues["HOH"]
    residues["HOH4"] = {**water, "atoms": [a.get("name") for a in four_point.iter("Atom")],
                        "elements": [*water["elements"], "EP"]}
    lines = [f"  {json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}" for name, entry in residues.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (Path(__file__).resolve().parents[1] / "residues.json").write_text(text)


if __name__ == "__main__":
    main()
