"""A zinc site for tests: the lac repressor on its operator (PDB 1LCD), and a zinc ion between four tripeptides.

No structure of a zinc finger is at hand. The tripeptides are three residues of 1KX5 each, glycine on either side of the
ligand; a serine becomes the cysteine. They stand around the ion as in a finger: S-Zn 2.31, N-Zn 2.00 angstrom, at the
corners of a tetrahedron, CB-S-Zn 105 degrees, the ion in the plane of the ring.
"""

from pathlib import Path

import gemmi
import numpy as np
from scipy.spatial import cKDTree

from chromabuild.molecule.residues import residue_library
from chromabuild.nucleosome.octamer import octamer

LAC = Path(__file__).parents[1] / "proteins" / "data" / "lac.pdb.gz"
LIGANDS = ("SG", "SG", "NE2", "ND1")
CORNERS = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)


def write_zinc_structure(path: Path, ligands: tuple[str, ...] = LIGANDS) -> Path:
    """Write the structure with a site of these atoms, 30 angstrom beyond the protein."""
    structure = gemmi.read_structure(str(LAC))
    model = structure[0]
    protein = np.array([a.pos.tolist() for c in model for r in c if r.find_atom("CA", "*") for a in r])
    dna = np.array([a.pos.tolist() for c in model for r in c if not r.find_atom("CA", "*") for a in r])
    out = protein.mean(axis=0) - dna.mean(axis=0)
    zinc = protein.mean(axis=0) + 45.0 * out / np.linalg.norm(out)
    taken = [zinc[None]]
    for k, (atom, corner) in enumerate(zip(ligands, CORNERS, strict=False)):
        tree = cKDTree(np.concatenate(taken))
        room, names, best = -1.0, [], np.zeros((0, 3))
        for own, places in _tripeptides("SER" if atom == "SG" else "HIS"):
            ligand = own.index((1, atom))
            for way in _ways(own, places, atom):
                base = (places - places[ligand]) @ _onto(way, -corner).T + (2.31 if atom == "SG" else 2.0) * corner
                for angle in np.radians(np.arange(0, 360, 15)):
                    x = _about(base, corner, angle) + zinc
                    least = np.delete(tree.query(x)[0], ligand).min()
                    if least > room:
                        room, names, best = least, own, x
        taken.append(best)
        chain = gemmi.Chain("WXYZ"[k])
        for which in range(3):
            residue = gemmi.Residue()
            residue.name = ("CYS" if atom == "SG" else "HIS") if which == 1 else "GLY"
            residue.seqid = gemmi.SeqId(which + 1, " ")
            for n, (of, name) in enumerate(names):
                if of == which:
                    residue.add_atom(_atom(name, name[0], best[n]))
            chain.add_residue(residue)
        model.add_chain(chain)
    chain, residue = gemmi.Chain("V"), gemmi.Residue()
    residue.name, residue.seqid, residue.het_flag = "ZN", gemmi.SeqId(1, " "), "H"
    residue.add_atom(_atom("ZN", "Zn", zinc))
    chain.add_residue(residue)
    model.add_chain(chain)
    structure.setup_entities()
    structure.write_pdb(str(path))
    return path


def _ways(names: list[tuple[int, str]], places: np.ndarray, atom: str) -> list[np.ndarray]:
    """Unit vectors from the ligand's atom to where the ion may stand."""
    at = places[names.index((1, atom))]
    if atom != "SG":
        near = [places[names.index((1, name))] for name in {"NE2": ("CE1", "CD2"), "ND1": ("CE1", "CG")}[atom]]
        way = sum((at - x) / np.linalg.norm(at - x) for x in near)
        return [way / np.linalg.norm(way)]
    bond = at - places[names.index((1, "CB"))]
    bond /= np.linalg.norm(bond)
    side = np.cross(bond, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    tilted = np.cos(np.radians(75)) * bond + np.sin(np.radians(75)) * side  # 180 - 105 degrees from the bond
    return [_about(tilted[None], bond, angle)[0] for angle in np.radians(np.arange(0, 360, 30))]


def _tripeptides(middle: str, most: int = 6) -> list[tuple[list[tuple[int, str]], np.ndarray]]:
    """Atoms (residue 0..2, name) and places of such residues, and of the main chain beside, in folded parts of 1KX5."""
    core, library, found = octamer(), list(residue_library().values()), []
    for k in range(40, len(core.residue_template) - 1):
        same = len(set(core.residue_chain[k - 1:k + 2].tolist())) == 1
        if not same or library[core.residue_template[k]].pdb_name != middle or any(
                len(library[core.residue_template[i]].name) != 3 for i in (k - 1, k, k + 1)):
            continue
        names, places = [], []
        for which, i in enumerate((k - 1, k, k + 1)):
            template = library[core.residue_template[i]]
            for n, (name, element) in enumerate(zip(template.atoms, template.elements, strict=True)):
                if element != "H" and (which == 1 or name in ("N", "CA", "C", "O")):
                    names.append((which, "SG" if name == "OG" else name))
                    places.append(core.position[core.first_atom[i] + n].astype(float))
        places = np.array(places)
        if middle == "SER":
            cb, sg = (names.index((1, one)) for one in ("CB", "SG"))
            bond = places[sg] - places[cb]
            places[sg] = places[cb] + 1.81 * bond / np.linalg.norm(bond)
        found.append((names, places))
        if len(found) == most:
            break
    return found


def _atom(name: str, element: str, place: np.ndarray) -> gemmi.Atom:
    atom = gemmi.Atom()
    atom.name, atom.element, atom.pos, atom.occ = name, gemmi.Element(element), gemmi.Position(*place), 1.0
    return atom


def _onto(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(3, 3) that turns unit vector a to b, not its opposite."""
    v, c = np.cross(a, b), a @ b
    x = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + x + x @ x / (1 + c)


def _about(x: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Points turned about a unit axis through the origin."""
    return (x * np.cos(angle) + np.cross(axis, x) * np.sin(angle)
            + np.outer(x @ axis, axis) * (1 - np.cos(angle)))
