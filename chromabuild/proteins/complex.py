"""A protein-DNA complex of a structure file: base pairs, protein with all atoms, and what the fold sees of it."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import gemmi
import numpy as np
from scipy.spatial import cKDTree

from chromabuild.analysis.duplex import NUCLEOTIDES, Duplex, duplexes_of, first_model
from chromabuild.base.errors import BadInputError
from chromabuild.dna.steps import COMPLEMENT, FLIP
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import MAX_RESIDUES_PER_SEGMENT, base_36
from chromabuild.nucleosome.homology import Residue, build_side_chains, octamer_of
from chromabuild.nucleosome.octamer import Octamer
from chromabuild.nucleosome.peptide import plain_name
from chromabuild.nucleosome.recipe import Link
from chromabuild.proteins.residues import complete_residue, standard_letter
from mesoscale.fibre import Body

BRIDGED = 3
"""Consecutive base pairs of poor geometry that do not end a duplex, as where a protein kinks it."""
FEWEST_PAIRS = 4
SECOND_DUPLEX = 4
"""Base pairs from which on a further duplex makes it unclear which one the protein holds."""
PEPTIDE_BOND, DISULPHIDE_BOND = 2.0, 2.5
"""Angstrom within which C and N, and two sulphurs, count as bonded."""
BEYOND, IN_THE_WAY = 15.0, 8.0
"""Angstrom of DNA that goes on straight beyond either end, and from its axis to a CA that stands in it."""
DISULPHIDE = "CYX"
"""Library name of a cysteine with such a bond."""
ZINC_REACH, FEWEST_LIGANDS, MOST_LIGANDS = 2.8, 3, 4
"""Angstrom within which a sulphur or a nitrogen of a ring binds zinc, and ligands of a site that is kept."""
ZINC_FORMS = {"SG": "CYM", "ND1": "HIE", "NE2": "HID"}
"""Library name of a ligand by the atom that binds: a thiolate, or a histidine whose other nitrogen has the hydrogen."""
PER_BALL = 5
"""Residues of a chain that the fold takes as one ball and charge, as it does those of histone tails."""
ATOM_RADIUS = 1.5
"""Angstrom that a ball reaches beyond the sphere with the radius of gyration of its heavy atoms."""
CHARGE = {"ARG": 1, "LYS": 1, "HIP": 1, "ASP": -1, "GLU": -1, "CYM": -1, "ZN": 2}


ZINC = "ZN"
Zinc = tuple[np.ndarray, list[tuple[int, int]]]
"""Place of an ion, and its ligands by chain and residue."""


@dataclass(frozen=True)
class Complex:
    """A protein on n base pairs in its own frame: the axes of the file about the middle of the base pairs; angstrom."""

    path: str
    name: str
    """By which records of BED call it: that of the file without its endings."""
    sequence: str
    """Strand I of the structure, 5' to 3'."""
    pair_origin: np.ndarray
    """(n, 3)."""
    pair_frame: np.ndarray
    """(n, 3, 3) along strand I."""
    pair_parameters: np.ndarray
    """(n, 6) shear, stretch, stagger, buckle, propeller, opening; angstrom and degree."""
    protein: Octamer
    """All chains with all hydrogens; each ``histone`` is the name."""
    report: dict = field(default_factory=dict)

    def pairs(self, reverse: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Origins (n, 3) and frames (n, 3, 3) of the base pairs along strand I, or along strand II."""
        if not reverse:
            return self.pair_origin, self.pair_frame
        return self.pair_origin[::-1], self.pair_frame[::-1] @ FLIP

    def within_pairs(self, reverse: bool = False) -> np.ndarray:
        """(n, 6) ``pair_parameters`` along strand I, or along strand II, where shear and buckle change their sign."""
        return self.pair_parameters[::-1] * [-1, 1, 1, -1, 1, 1] if reverse else self.pair_parameters

    def strand(self, reverse: bool = False) -> str:
        """The sequence of strand I, or of strand II, 5' to 3'."""
        return "".join(COMPLEMENT[base] for base in reversed(self.sequence)) if reverse else self.sequence

    def body(self, reverse: bool = False) -> Body:
        """What the fold sees: balls and formal charges of five residues each, nm."""
        origin, frame = self.pairs(reverse)
        library = list(residue_library().values())
        first, chain = self.protein.first_atom, self.protein.residue_chain
        centre, radius, charge = [], [], []
        for c in range(len(self.protein.chain)):
            rows = np.flatnonzero(chain == c)
            for some in np.array_split(rows, -(-len(rows) // PER_BALL)):
                kinds = [library[self.protein.residue_template[k]] for k in some]
                heavy = np.concatenate([np.array(kind.elements) != "H" for kind in kinds])
                atoms = self.protein.position[first[some[0]]:first[some[-1] + 1]][heavy]
                middle = atoms.mean(axis=0)
                centre.append(middle)
                radius.append(np.sqrt(5 / 3 * np.mean(np.sum((atoms - middle) ** 2, axis=1))) + ATOM_RADIUS)
                is_chain = kinds[0].kind == "amino acid"
                charge.append(sum(CHARGE.get(kind.inner_name, 0) for kind in kinds)
                              + is_chain * (int(some[0] == rows[0]) - int(some[-1] == rows[-1])))
        ball = np.array(centre) / 10.0
        return Body(origin / 10.0, frame, ball, np.array(charge, dtype=float), ball, np.array(radius) / 10.0)


def name_of_file(path: str | Path) -> str:
    """The name of a structure: that of its file up to the first dot.

    >>> name_of_file("structures/TBP.cif.gz")
    'TBP'
    """
    return Path(path).name.split(".")[0]


@cache
def read_complex(path: str) -> Complex:
    """The first model of a PDB or mmCIF file: one duplex, and all its protein.

    Side chains that are not complete are built; chains that are broken go on as chains of their own. Raises
    BadInputError for a file that cannot be read, without DNA or protein, or with more than one duplex, for a residue
    that cannot be built, and where DNA cannot go on beyond the structure.
    """
    model = first_model(path, "of a protein on DNA")
    duplex = _duplex(path, model)
    pair_origin, pair_frame = duplex.pair_frames
    chains, labels, links, zinc, report = _chains(path, model)
    dna = [(atom.pos.tolist(), atom.element.name in ("N", "O")) for chain in model for residue in chain
           if residue.name in NUCLEOTIDES for atom in residue if not atom.is_hydrogen()]
    dna += [(place.tolist(), True) for place, _ in zinc]
    position, polar = (np.array(part) for part in zip(*dna, strict=True))
    try:
        build_side_chains(chains, position, polar)
    except BadInputError as error:
        raise BadInputError(f"{path}: {error}") from None
    for number, (place, ligands) in enumerate(zinc, start=1):
        links += [(ligand, (len(chains), 0)) for ligand in ligands]
        chains.append([Residue(ZINC, number, {ZINC: place})])
    middle = pair_origin.mean(axis=0)
    for chain in chains:
        for residue in chain:
            residue.atoms = {name: x - middle for name, x in residue.atoms.items()}
    name = name_of_file(path)
    names = (name,) * (len(chains) - len(zinc)) + (ZINC,) * len(zinc)
    protein = octamer_of(chains, tuple(base_36(k, 1) for k in range(len(chains))), names, links)
    found = Complex(path, name, duplex.sequence, pair_origin - middle, pair_frame, duplex.pair_parameters, protein,
                    report | {
        "base_pairs": len(duplex.sequence), "chains": ", ".join(labels),
        "residues": len(protein.residue_template) - len(zinc)})
    _check_ends(found)
    return found


def _duplex(path: str, model: gemmi.Model) -> Duplex:
    """The one duplex of the file. Raises BadInputError where there is none, or more than one."""
    found = sorted(duplexes_of(model, BRIDGED), key=lambda one: -len(one.sequence))
    if not found or len(found[0].sequence) < FEWEST_PAIRS:
        raise BadInputError(f"{path} holds no DNA duplex of {FEWEST_PAIRS} base pairs: a protein is placed by the base "
                            "pairs of its structure, give one with its DNA")
    if len(found) > 1 and len(found[1].sequence) >= SECOND_DUPLEX:
        raise BadInputError(f"{path} holds {len(found)} DNA duplexes, of {len(found[0].sequence)} and "
                            f"{len(found[1].sequence)} base pairs: keep one, with its protein, in the file")
    return found[0]


def _chains(path: str, model: gemmi.Model) -> tuple[list[list[Residue]], list[str], list[Link], list[Zinc], dict]:
    """Unbroken chains of amino acids, names of the file's chains, disulphides, zinc, and what was done to them."""
    chains: list[list[Residue]] = []
    labels, broken, completed, standard, left_out, ions = [], 0, 0, 0, {}, []
    for chain in model:
        here: list[Residue] = []
        for residue in chain:
            label = f"{residue.name} {chain.name}{residue.seqid}"
            if residue.name in NUCLEOTIDES or residue.is_water():
                continue
            found = complete_residue(residue)
            if found is not None:
                here.append(found)
                completed += found.replaced is not None
                standard += not gemmi.find_tabulated_residue(residue.name).is_standard()
            elif standard_letter(residue) is not None:
                missing = [name for name in ("N", "CA", "C", "O") if not residue.find_atom(name, "*")]
                raise BadInputError(f"{path}: residue {label} lacks {', '.join(missing)} of its backbone: complete it, "
                                    "or remove the residue")
            elif residue.find_atom("CA", "*") and len(residue) > 1:
                raise BadInputError(f"{path}: residue {label} is no amino acid that can be built: replace it by a "
                                    "standard one, or remove it")
            elif residue.find_atom("C1'", "*"):
                raise BadInputError(f"{path}: residue {label} is no nucleotide of DNA that is known: replace it by a "
                                    "standard one, or remove it")
            elif residue.name == ZINC:
                ions.append(np.array(residue[0].pos.tolist()))
            else:
                left_out[residue.name] = left_out.get(residue.name, 0) + 1
        pieces = _unbroken(here)
        alone = [piece for piece in pieces if len(piece) == 1]
        if alone:
            raise BadInputError(f"{path}: residue {plain_label(alone[0][0])} of chain {chain.name} is bonded to no "
                                "other: complete the chain, or remove the residue")
        if pieces:
            labels.append(chain.name)
            broken += len(pieces) - 1
            chains += pieces
    if not chains:
        raise BadInputError(f"{path} holds no protein: give the structure of a protein on DNA")
    zinc = _bound_zinc(path, chains, ions)
    if len(ions) > len(zinc):
        left_out[ZINC] = len(ions) - len(zinc)
    if len(chains) + len(zinc) > 36:
        raise BadInputError(f"{path} holds {len(chains)} unbroken chains of protein and {len(zinc)} zinc ions, at most "
                            "36 can be named: complete "
                            "them, or remove some")
    links = _join_disulphides(path, chains)
    for piece in chains:
        _renumber(piece)
    report = {"breaks": broken, "side_chains_completed": completed, "residues_made_standard": standard,
              "left_out": ", ".join(f"{n} {name}" for name, n in sorted(left_out.items())) or "nothing"}
    counts = {"disulphides": len(links), "zinc_sites": len(zinc)}
    return chains, labels, links, zinc, report | {key: count for key, count in counts.items() if count}


def _bound_zinc(path: str, chains: list[list[Residue]], ions: list[np.ndarray]) -> list[Zinc]:
    """Zinc that three or four cysteines and histidines bind; these become thiolates and the tautomer that can bind.

    Raises BadInputError for a ligand at the end of a chain, one of two ions, and more than four.
    """
    atoms = [((c, k), name, residue.atoms[name]) for c, chain in enumerate(chains) for k, residue in enumerate(chain)
             if plain_name(residue.name) in ("CYS", "HIS") for name in ZINC_FORMS if name in residue.atoms]
    found: list[Zinc] = []
    for ion in ions:
        near = sorted((float(np.linalg.norm(place - ion)), where, name) for where, name, place in atoms)
        binding = {}
        for distance, where, name in near:
            if distance < ZINC_REACH:
                binding.setdefault(where, name)
        if len(binding) < FEWEST_LIGANDS:
            continue
        if len(binding) > MOST_LIGANDS:
            raise BadInputError(f"{path}: a zinc ion has {len(binding)} ligands within {ZINC_REACH} angstrom, and at "
                                f"most {MOST_LIGANDS} can be built: correct the structure")
        for (c, k), name in binding.items():
            residue = chains[c][k]
            if residue.held or k in (0, len(chains[c]) - 1):
                why = "binds two zinc ions" if residue.held else "ends its chain and binds zinc"
                raise BadInputError(f"{path}: {plain_label(residue)} {why}, which cannot be built: "
                                    f"{'correct the structure' if residue.held else 'complete the chain'}")
            residue.name, residue.held = ZINC_FORMS[name], True
        found.append((ion, sorted(binding)))
    return found


def plain_label(residue: Residue) -> str:
    """``ALA 7``, for messages."""
    return f"{residue_library()[residue.name].pdb_name} {residue.number}"


def _unbroken(residues: list[Residue]) -> list[list[Residue]]:
    """Runs of residues that peptide bonds join."""
    runs: list[list[Residue]] = []
    for residue in residues:
        if runs and np.linalg.norm(residue.atoms["N"] - runs[-1][-1].atoms["C"]) < PEPTIDE_BOND:
            runs[-1].append(residue)
        else:
            runs.append([residue])
    return runs


def _renumber(chain: list[Residue]) -> None:
    """Keep the numbers of the file where they ascend within what a solute holds, else count from 1."""
    numbers = [residue.number for residue in chain]
    if numbers[0] < 1 or numbers[-1] > MAX_RESIDUES_PER_SEGMENT or min(np.diff(numbers)) < 1:
        for k, residue in enumerate(chain, start=1):
            residue.number = k


def _join_disulphides(path: str, chains: list[list[Residue]]) -> list[Link]:
    """Cysteines whose sulphurs are bonded get that form; gives the pairs. Raises BadInputError for three in a row."""
    sulphurs = [(c, k) for c, chain in enumerate(chains) for k, r in enumerate(chain)
                if r.name == "CYS" and "SG" in r.atoms]
    place = np.array([chains[c][k].atoms["SG"] for c, k in sulphurs]).reshape(-1, 3)
    pairs = sorted(cKDTree(place).query_pairs(DISULPHIDE_BOND)) if sulphurs else []
    bonded = [i for pair in pairs for i in pair]
    for i in bonded:
        c, k = sulphurs[i]
        if bonded.count(i) > 1:
            raise BadInputError(f"{path}: the sulphur of {plain_label(chains[c][k])} lies within "
                                f"{DISULPHIDE_BOND} angstrom of two others, and has one disulphide bond: correct the "
                                "structure")
        chains[c][k].name = DISULPHIDE
    return [(sulphurs[i], sulphurs[j]) for i, j in pairs]


def _check_ends(found: Complex) -> None:
    """Raises BadInputError where the DNA that goes on straight beyond an end would run through the protein."""
    for end, sign in ((-1, 1.0), (0, -1.0)):
        way = sign * found.pair_frame[end, :, 2]
        from_end = found.protein.alpha_carbons - found.pair_origin[end]
        along = np.clip(from_end @ way, 0.0, BEYOND)
        apart = np.linalg.norm(from_end - along[:, None] * way, axis=1)
        inside = np.flatnonzero((apart < IN_THE_WAY) & (along > 0.0))
        if len(inside):
            raise BadInputError(
                f"{found.path}: DNA that goes on beyond the {'last' if end else 'first'} base pair would run through "
                f"the protein ({len(inside)} CA atoms within {IN_THE_WAY:.0f} angstrom of its axis): give a structure "
                "with longer DNA, or without that part of the protein")
