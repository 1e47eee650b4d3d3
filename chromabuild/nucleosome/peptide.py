"""Peptide geometry: ideal residues, atoms placed from internal coordinates, torsions set, chains closed.

Bond lengths, angles and planar groups are Biopython's default internal coordinates (averages over crystal structures).
"""

import warnings
from functools import cache

import numpy as np

from chromabuild.dna.steps import fit_frames
from chromabuild.molecule.geometry import measure_torsion
from chromabuild.molecule.residues import modifications, residue_library

# (weight, phi, psi, spread): extended, polyproline II, helix; degree. The last ones are for glycine only.
REGIONS = ((0.40, -120.0, 130.0, 20.0), (0.40, -70.0, 145.0, 15.0), (0.20, -65.0, -40.0, 10.0))
GLYCINE_REGIONS = (*REGIONS, (0.40, 60.0, 40.0, 15.0), (0.40, 80.0, -170.0, 20.0))
PROLINE_PHI = -65.0
N_CA, CA_C, C_N = 1.46, 1.525, 1.329  # angstrom
C_N_CA, CA_C_N, N_CA_C = 121.7, 117.2, 111.0  # degree

Atoms = dict[str, np.ndarray]


def three_letters(letter: str) -> str:
    """Library name of an amino acid's one-letter code; a new histidine has its hydrogen on NE2."""
    from Bio.SeqUtils import seq3

    name = seq3(letter).upper()
    return "HIE" if name == "HIS" else name


def plain_name(name: str) -> str:
    """PDB name of a library residue: ``NALA`` -> ``ALA``, ``HID`` -> ``HIS``."""
    return residue_library()[name].pdb_name


@cache
def one_letter(name: str) -> str:
    """One-letter code of a library residue inside a chain; a modified one has that of its parent."""
    from Bio.SeqUtils import seq1

    library = residue_library()
    return seq1(library[library[name].parent].pdb_name)


@cache
def ideal_residue(name: str) -> Atoms:
    """Heavy atoms (3,) by name of a residue (PDB name), N, CA, C and O included, any side-chain torsions.

    A modified residue is its parent with the new atoms of templates/modified_residues.json.
    """
    if name in modifications():
        change = modifications()[name]
        atoms = dict(ideal_residue(change.parent))
        for atom, (a, b, c, length, angle, turn) in change.place.items():
            atoms[atom] = place(atoms[a], atoms[b], atoms[c], length, angle, turn)
        return atoms
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from Bio.PDB.PICIO import read_PIC_seq
        from Bio.Seq import Seq
        from Bio.SeqRecord import SeqRecord
        from Bio.SeqUtils import seq1

        structure = read_PIC_seq(SeqRecord(Seq(f"G{seq1(name)}G"), id="ideal"))
        structure.internal_to_atom_coordinates()
    middle = list(structure.get_residues())[1]
    return {atom.name: np.asarray(atom.coord, dtype=float) for atom in middle}


def place(a: np.ndarray, b: np.ndarray, c: np.ndarray, length: float, angle: float, torsion: np.ndarray | float
          ) -> np.ndarray:
    """Position (..., 3) of d at ``length`` from c, ``angle`` b-c-d, ``torsion`` a-b-c-d; degree."""
    along = c - b
    along = along / np.linalg.norm(along, axis=-1, keepdims=True)
    normal = np.cross(b - a, along)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    across = np.cross(normal, along)
    theta, phi = np.radians(angle), np.radians(np.asarray(torsion))[..., None]
    return c + length * (-np.cos(theta) * along + np.sin(theta) * (np.cos(phi) * across + np.sin(phi) * normal))


def torsion(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Torsion a-b-c-d in degree, over leading axes."""
    return np.degrees(measure_torsion(a, b, c, d))


def rotate(points: np.ndarray, origin: np.ndarray, axis: np.ndarray, angle: np.ndarray | float) -> np.ndarray:
    """Points (..., k, 3) turned by ``angle`` (degree) about the unit ``axis`` (..., 3) through ``origin`` (..., 3)."""
    axis, angle = np.asarray(axis), np.radians(np.asarray(angle))[..., None, None]
    cross = np.zeros((*axis.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        cross[..., i, j], cross[..., j, i] = -axis[..., k], axis[..., k]
    matrix = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)
    origin = np.asarray(origin)[..., None, :]
    return (points - origin) @ np.swapaxes(matrix, -1, -2) + origin


def superposition(moving: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation R and shift t for which ``moving @ R.T + t`` lies best on ``target`` (both (k, 3); Kabsch 1976)."""
    shift, matrix = fit_frames(target, moving)
    return matrix, shift


def side_chain_on(name: str, backbone: Atoms) -> Atoms:
    """The ideal side chain of residue ``name`` (PDB name) on a backbone's N, CA, C; empty for glycine."""
    ideal = ideal_residue(name)
    matrix, shift = superposition(np.array([ideal[a] for a in ("N", "CA", "C")]),
                                  np.array([backbone[a] for a in ("N", "CA", "C")]))
    # CA stays where it is: the backbone's own angle may differ a little from the ideal one.
    shift = backbone["CA"] - matrix @ ideal["CA"]
    return {atom: matrix @ x + shift for atom, x in ideal.items() if atom not in ("N", "CA", "C", "O", "OXT")}


@cache
def chi_torsions(name: str) -> tuple[tuple[tuple[str, str, str, str], tuple[str, ...]], ...]:
    """Side-chain torsions of a residue (PDB name) and, for each, the heavy atoms that it turns."""
    library = residue_library()
    template = library["HIE" if name == "HIS" else name]
    heavy = [a for a, element in zip(template.atoms, template.elements, strict=True) if element != "H"]
    neighbours: dict[str, set[str]] = {a: set() for a in heavy}
    for i, j in template.bonds:
        a, b = template.atoms[i], template.atoms[j]
        if a in neighbours and b in neighbours:
            neighbours[a].add(b)
            neighbours[b].add(a)
    result = []
    for quad in template.chi:
        if quad[3] not in neighbours:
            continue
        seen, queue = {quad[1], quad[2]}, [quad[2]]
        for atom in queue:
            for other in sorted(neighbours[atom] - seen):
                seen.add(other)
                queue.append(other)
        result.append((tuple(quad), tuple(a for a in queue if a != quad[2])))
    return tuple(result)


def set_torsions(atoms: Atoms, name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Side chains (s, 3) by atom with torsions ``values`` (s, number of chi), degree, from one residue's ``atoms``."""
    count = len(values)
    placed = {atom: np.repeat(x[None], count, axis=0) for atom, x in atoms.items()}
    for k, (quad, turned) in enumerate(chi_torsions(name)):
        if k >= values.shape[1]:
            break
        now = torsion(*(placed[a] for a in quad))
        axis = placed[quad[2]] - placed[quad[1]]
        axis = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
        points = np.stack([placed[a] for a in turned], axis=1)
        points = rotate(points, placed[quad[2]], axis, values[:, k] - now)
        for i, atom in enumerate(turned):
            placed[atom] = points[:, i]
    return placed


def carbonyl_oxygen(ca: np.ndarray, c: np.ndarray, n_next: np.ndarray) -> np.ndarray:
    """O of a peptide group from its other atoms: in the plane, opposite to the next N."""
    out = (c - ca) / np.linalg.norm(c - ca, axis=-1, keepdims=True)
    out = out + (c - n_next) / np.linalg.norm(c - n_next, axis=-1, keepdims=True)
    return c + 1.231 * out / np.linalg.norm(out, axis=-1, keepdims=True)


def beta_carbon(n: np.ndarray, ca: np.ndarray, c: np.ndarray) -> np.ndarray:
    """CB of an L-amino acid from its N, CA and C."""
    return place(n, c, ca, 1.53, 110.1, -122.6)


def draw_phi_psi(random: np.random.Generator, letter: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """``count`` draws of (phi, psi) in degree from the allowed Ramachandran regions of residue ``letter``."""
    regions = np.array(GLYCINE_REGIONS if letter == "G" else REGIONS)
    drawn = regions[random.choice(len(regions), count, p=regions[:, 0] / regions[:, 0].sum())]
    phi = drawn[:, 1] + drawn[:, 3] * random.uniform(-1.0, 1.0, count)
    psi = drawn[:, 2] + drawn[:, 3] * random.uniform(-1.0, 1.0, count)
    if letter == "P":
        phi = np.full(count, PROLINE_PHI)
    return phi, psi
