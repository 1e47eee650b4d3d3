"""Write toppar.json: what CHARMM's own files say of alanine, deoxyadenosine, TIP3P, sodium and chloride.

Read from the toppar distribution of the MacKerell group (top_all36_prot.rtf, par_all36m_prot.prm, top_all36_na.rtf,
par_all36_na.prm, toppar_water_ions.str), whose folder is the argument:

    python tests/support/data/make_toppar.py FOLDER
"""

import json
import sys
from pathlib import Path

RESIDUES = {"ALA": ("top_all36_prot.rtf", "ALA", ()), "DA": ("top_all36_na.rtf", "ADE", ("DEOX",)),
            "HOH": ("toppar_water_ions.str", "TIP3", ()), "NA": ("toppar_water_ions.str", "SOD", ()),
            "CL": ("toppar_water_ions.str", "CLA", ())}
PARAMETERS = ("par_all36m_prot.prm", "par_all36_na.prm", "toppar_water_ions.str")
OUR_NAME = {"HN": "H", "O1P": "OP1", "O2P": "OP2", "OH2": "O"}
WORDS = {"BOND": 2, "ANGL": 3, "DIHE": 4, "CMAP": 8, "NONB": 1, "NBFI": 2}
END = ("IMPR", "HBON", "END", "ATOM")


def lines_of(path: Path) -> list[list[str]]:
    """Words of all lines, without comments; lines that end in a hyphen are joined."""
    text = "\n".join(line.split("!")[0] for line in path.read_text(errors="replace").splitlines())
    return [line.split() for line in text.replace("-\n", " ").splitlines() if line.split()]


def atoms_of(lines: list[list[str]], name: str) -> dict[str, tuple[str, float]]:
    """Type and charge of the atoms of a residue or a patch; None for one that is deleted."""
    found: dict = {}
    inside = False
    for words in lines:
        if words[0] in ("RESI", "PRES"):
            inside = words[1] == name
        elif inside and words[0] == "ATOM":
            found[words[1]] = words[2], float(words[3])
        elif inside and words[:2] == ["DELETE", "ATOM"]:
            found[words[2]] = None
    return found


def main(folder: Path) -> None:
    """Read, keep what concerns the residues, write."""
    content: dict = {"residues": {}, "BOND": {}, "ANGL": {}, "DIHE": {}, "CMAP": {}, "NONB": {}, "NBFI": {}}
    for ours, (file, name, patches) in RESIDUES.items():
        lines = lines_of(folder / file)
        atoms = atoms_of(lines, name)
        for patch in patches:
            atoms |= atoms_of(lines, patch)
        content["residues"][ours] = {OUR_NAME.get(atom, atom): value for atom, value in atoms.items() if value}
    types = {kind for atoms in content["residues"].values() for kind, _ in atoms.values()}
    # The neighbours of the two residues bring these along.
    for file in PARAMETERS:
        section, map_of = None, None
        for words in lines_of(folder / file):
            if words[0][:4] in WORDS and not words[1:2] or words[0][:4] in ("NONB", "NBFI"):
                section = words[0][:4]
                continue
            if words[0][:4] in END:
                section = None
            n = WORDS.get(section, 0)
            if section == "CMAP" and words[0][0] in "-0123456789":
                if map_of:
                    content["CMAP"][map_of] += [float(word) for word in words]
            elif section:
                key = " ".join(words[:n])
                if section == "CMAP":
                    map_of = key if set(words[:n]) <= types else None
                if set(words[:n]) <= types | {"X"} and len(words) > n:
                    values = [float(word) for word in words[n:]]
                    if section == "DIHE":
                        content["DIHE"].setdefault(key, []).append(values)
                    else:
                        content[section][key] = [] if section == "CMAP" else values
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
    (Path(__file__).parent / "toppar.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
