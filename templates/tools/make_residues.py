"""Write residues.json: atoms, bonds and side-chain torsions of every residue that chromabuild can build.

Atom names and bonds are those of the AMBER residue templates in the OpenMM package (protein.ff14SB, DNA.OL15, tip3p),
so that a solute written in this order is matched by the force field without renaming. Modified residues are made of
their parents by templates/modified_residues.json. HOH4, behind them so that the numbers of others in files stay, is the
water of opc.xml, with a massless site; spermine and spermidine are chains of their own. Run it only to add residues:

    python templates/tools/make_residues.py
"""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import openmm.app

STANDARD = ("ALA ARG ASN ASP CYS GLN GLU GLY HID HIE HIP ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL").split()
NUCLEOTIDES = [base + end for base in ("DA", "DC", "DG", "DT") for end in ("", "5", "3")]
SOLVENT = ["HOH", "NA", "CL", "K", "MG", "CA", "ZN"]
PHOSPHORYLATED = [f"{name}{end}" for end in ("5P", "3P") for name in ("DA", "DC", "DG", "DT", "5CM", "5HC", "5FC")]
THIOLATE = "CYM"
POLYAMINES = {"SPM": "N1 C2 C3 C4 N5 C6 C7 C8 C9 N10 C11 C12 C13 N14", "SPD": "N1 C2 C3 C4 C5 N6 C7 C8 C9 N10"}
"""Spermine and spermidine: heavy atoms along the chain, all nitrogens protonated as at neutral pH."""
LATER = ("CA", "CYX", "NCYX", "CCYX", "KUB", "NKUB", "CKUB", *PHOSPHORYLATED, THIOLATE, "ZN", *POLYAMINES)
"""At the end, behind all others: their numbers in files stay."""
PDB_NAME = {"HID": "HIS", "HIE": "HIS", "HIP": "HIS", "CYX": "CYS", "CYM": "CYS"}
LINKED = {"CYX": "SG"}
"""Standard residues that a bond of their side chain joins to another residue, and its atom."""

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


def modified(parent: dict, name: str, change: dict) -> dict:
    """The entry of a modified residue from that of its parent; new atoms follow the first that they hang on."""
    atoms = [(atom, element) for atom, element in zip(parent["atoms"], parent["elements"], strict=True)
             if atom not in change["remove"]]
    old_name = [parent["atoms"][i] for bond in parent["bonds"] for i in bond]
    bonds = [pair for pair in zip(old_name[::2], old_name[1::2], strict=True)
             if not set(pair) & set(change["remove"])]
    place = 1 + next(k for k, (atom, _) in enumerate(atoms) if atom == change["add"][0][2])
    atoms[place:place] = [(atom, element) for atom, element, _ in change["add"]]
    bonds += [(atom, bonded) for atom, _, bonded in change["add"]]
    index = {atom: k for k, (atom, _) in enumerate(atoms)}
    return {
        "pdb_name": change.get("pdb_name", name),
        "kind": parent["kind"],
        "atoms": [change["rename"].get(atom, atom) for atom, _ in atoms],
        "elements": [element for _, element in atoms],
        "bonds": sorted(sorted((index[a], index[b])) for a, b in bonds),
        "chi": [*parent["chi"], *(torsion.split() for torsion in change["chi"])],
        "modification": name,
        **({"link": change["link"]} if "link" in change else {}),
    }


def phosphorylated(inner: dict) -> dict:
    """The entry of a nucleotide that begins a strand with a phosphate of one negative charge."""
    place = inner["atoms"].index("OP2") + 1
    bonds = [[i + 2 * (i >= place) for i in bond] for bond in inner["bonds"]]
    bonds += [[inner["atoms"].index("P"), place], [place, place + 1]]
    insert = {key: [*inner[key][:place], *new, *inner[key][place:]]
              for key, new in (("atoms", ("OP3", "HOP3")), ("elements", ("O", "H")))}
    return {**inner, **insert, "bonds": sorted(map(sorted, bonds))}


def phosphorylated_3(inner: dict) -> dict:
    """The entry of a nucleotide that ends a strand with a phosphate of one negative charge, named as in CHARMM."""
    n, bridge = len(inner["atoms"]), inner["atoms"].index("O3'")
    bonds = [*inner["bonds"], *([bridge, n], [n, n + 1], [n, n + 2], [n, n + 3], [n + 3, n + 4])]
    return {**inner, "atoms": [*inner["atoms"], "P3", "O1P3", "O2P3", "O3T", "H3T"],
            "elements": [*inner["elements"], *"POOOH"], "bonds": sorted(map(sorted, bonds))}


def polyamine(heavy: list[str]) -> dict:
    """The entry of a chain of carbon and nitrogen; hydrogens follow their atom and are numbered after it."""
    atoms, elements, bonds, before = [], [], [], None
    for k, name in enumerate(heavy):
        here, at_end = len(atoms), k in (0, len(heavy) - 1)
        bonds += [] if before is None else [[before, here]]
        own = [f"H{name[1:]}{h}" for h in range(1, 3 + at_end)]
        bonds += [[here, here + h] for h in range(1, len(own) + 1)]
        atoms += [name, *own]
        elements += [name[0], *"H" * len(own)]
        before = here
    return {"kind": "ion", "atoms": atoms, "elements": elements, "bonds": sorted(bonds), "chi": []}


def main() -> None:
    """Read the force-field templates and write residues.json beside this script."""
    folder = Path(openmm.app.__file__).parent / "data" / "amber14"
    templates, element_of_type = {}, {}
    for name in ("protein.ff14SB.xml", "DNA.OL15.xml", "tip3p.xml"):
        root = ElementTree.parse(folder / name).getroot()
        element_of_type |= {t.get("name"): t.get("element") for t in root.find("AtomTypes")}
        templates |= {r.get("name"): r for r in root.find("Residues")}

    wanted = [*STANDARD, *LINKED]
    wanted += [end + name for name in wanted for end in "NC"] + NUCLEOTIDES + SOLVENT + [THIOLATE]
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
            kind, pdb_name = "amino acid", PDB_NAME.get(standard, standard)
        parent = "CYS" if standard in ("CYX", THIOLATE) else standard
        chi = [torsion.split() for torsion in CHI[parent].split(",")] if parent in CHI else []
        residues[name] = {
            "pdb_name": pdb_name,
            "kind": kind,
            "atoms": [a for a, _ in atoms],
            "elements": [e for _, e in atoms],
            "bonds": bonds,
            "chi": chi,
        }
        if standard in LINKED:
            residues[name]["link"] = LINKED[standard]

    changes = json.loads((Path(__file__).resolve().parents[1] / "modified_residues.json").read_text())["residues"]
    for name, change in changes.items():
        parent = change["parent"]
        if residues[parent]["kind"] == "nucleotide":
            ends = {name + end: parent + end for end in ("", "5", "3")}
        else:
            ends = ({name: "N" + parent} if change.get("begins_chain")
                    else {end + name: end + parent for end in ("", "N", "C")})
        residues |= {own: modified(residues[of], name, change) for own, of in ends.items()}

    others = ElementTree.parse(folder / "opc.xml").getroot().find("Residues")
    four_point = next(r for r in others if r.get("name") == "HOH")
    water = residues["HOH"]
    residues["HOH4"] = {**water, "atoms": [a.get("name") for a in four_point.iter("Atom")],
                        "elements": [*water["elements"], "EP"]}
    for name in PHOSPHORYLATED:
        inner = residues[name[:-2]]
        residues[name] = phosphorylated(inner) if name.endswith("5P") else phosphorylated_3(inner)
    residues |= {name: {"pdb_name": name, **polyamine(heavy.split())} for name, heavy in POLYAMINES.items()}
    residues |= {name: residues.pop(name) for name in LATER}
    lines = [f"  {json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}" for name, entry in residues.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (Path(__file__).resolve().parents[1] / "residues.json").write_text(text)


if __name__ == "__main__":
    main()
