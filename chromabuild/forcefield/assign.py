"""Force-field assignment: OpenMM's ForceField decides, once per pair of neighbouring residue kinds.

No AMBER term reaches beyond two consecutive residues of a polymer (three residues would need a path of five atoms).
So all terms of a molecule follow from its *junctions* (kind of residue k-1, kind of residue k). Each distinct junction
is parameterised once, in a short capped chain, and its terms are copied along the molecule with array arithmetic: the
cost of OpenMM's matching does not grow with the length of the DNA.
"""

from dataclasses import dataclass

import numpy as np
import openmm
from openmm import app

import chromabuild
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.progress import Progress, silent
from chromabuild.base.settings import WaterName
from chromabuild.forcefield.modified_residues import check_residues
from chromabuild.forcefield.openmm_system import COULOMB_CONSTANT, SystemTerms, read_system
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.forcefield.virtual_sites import no_sites
from chromabuild.forcefield.water_files import WATER_FILES, water_file
from chromabuild.molecule.residues import SITE, SOLVENT, residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.molecule.water_models import WATER_MODELS

FORCE_FIELDS = {"amber14": ("amber14/protein.ff14SB.xml", "amber14/DNA.OL15.xml", "amber14/tip3p.xml")}

WATER_SEGMENT = "WAT"
"""Segment id of water; an ion's is the name of its residue."""

_CAPS = {"amino acid": ("NGLY", "CGLY"), "nucleotide": ("DA5", "DA3")}
_TERM_COLUMNS = {"bond": ("k", "r0"), "angle": ("k", "theta0"), "dihedral": ("k", "n", "phase"),
                 "pair": ("charge_product", "sigma", "epsilon"), "virtual_site": ("w2", "w3")}

Junction = tuple[str, str, bool, bool]
"""Residue k-1 ("" when k stands alone), residue k, whether k-1 is the first of its molecule, whether k is the last."""


@dataclass
class _JunctionTerms:
    """What a junction contributes: terms that touch residue k (and those within k-1 when that is the first residue).

    Atoms count from the first atom of residue k-1.
    """

    terms: dict[str, dict[str, np.ndarray]]
    charge: np.ndarray
    mass: np.ndarray
    sigma: np.ndarray
    epsilon: np.ndarray
    type_name: list[str]


def make_topology(solute: Solute | None, counts: dict[str, int], force_field: str = "amber14",
                  net_charge: int | None = None, progress: Progress = silent, water: WaterName = "tip3p") -> Topology:
    """Topology of a solute (None: solvent only) with ``counts`` of ``water`` and of the ions in ``SOLVENT``.

    ``net_charge`` is what the shard manifest says of the whole system; ``progress`` is called with every step.
    Raises BadInputError for an unknown force field, a residue or a water model that it does not know, IntegrityError
    when the charge of the topology is not ``net_charge``.
    """
    files = force_field_files(force_field, water)
    check_residues(solute.modifications() if solute is not None else (), force_field)
    molecules = _distinct_molecules(solute) if solute is not None else []
    runs = [(i, 1) for i in _molecule_order(solute, molecules)] if solute is not None else []
    solvent = [(WATER_MODELS[water].residue if key == "water" else name, name,
                WATER_SEGMENT if key == "water" else name, counts[key])
               for key, name in SOLVENT.items() if counts.get(key, 0)]
    junctions = sorted({junction for m in molecules for junction in set(_junctions(m))}
                       | {("", residue, True, True) for residue, *_ in solvent})
    progress(f"assigning {force_field} to {len(junctions)} residue pairs of {len(molecules)} molecules")
    of_junction = _parameterise(junctions, force_field, files)

    lj_types = _LennardJonesTypes()
    templates = []
    for molecule in molecules:
        progress(f"assembling {molecule.name}")
        templates.append(_assemble(molecule, of_junction, lj_types))
    for residue, name, segid, count in solvent:
        runs.append((len(templates), count))
        molecule = _Molecule(name, [residue], np.array([1]), [segid])
        templates.append(_assemble(molecule, of_junction, lj_types))
    topology = Topology(
        templates=templates,
        run_template=np.array([t for t, _ in runs], dtype=np.int32),
        run_count=np.array([count for _, count in runs], dtype=np.int64),
        lj_name=np.array(lj_types.names, dtype="S8"),
        lj_sigma=np.array([sigma for sigma, _ in lj_types.index], dtype=float),
        lj_epsilon=np.array([epsilon for _, epsilon in lj_types.index], dtype=float),
        coulomb_constant=COULOMB_CONSTANT,
        force_field=force_field,
        provenance={"chromabuild": chromabuild.__version__, "openmm": openmm.version.version,
                    "force_field_files": list(files)},
    )
    # AMBER residue charges have four to six decimals: a chain of thousands of residues is whole within 0.01 e.
    if net_charge is not None and abs(topology.net_charge - net_charge) > 0.01:
        raise IntegrityError(f"the topology has charge {topology.net_charge:+.3f} but the shards have {net_charge:+d}: "
                             "solute and shards do not belong together; run chromabuild solvate again")
    return topology


def force_field_files(force_field: str, water: WaterName) -> tuple[str, ...]:
    """OpenMM's files of a force field with a water model. Raises BadInputError where they do not go together."""
    if force_field not in FORCE_FIELDS:
        raise BadInputError(f"force field {force_field} is not known: use {' or '.join(FORCE_FIELDS)}")
    own = set(WATER_FILES[force_field].values())
    return (*(name for name in FORCE_FIELDS[force_field] if name not in own), water_file(force_field, water))


@dataclass
class _Molecule:
    """A distinct molecule: residue names of the library, and how files label the residues."""

    name: str
    residues: list[str]
    numbers: np.ndarray
    segids: list[str]
    circular: bool = False
    """Whether the last residue is joined to the first."""


_Key = tuple[bytes, bytes, bool]


def _molecule_keys(solute: Solute) -> list[_Key]:
    """Two molecules share a template when residues and residue numbers are the same, and both are closed or not."""
    first = solute.molecule_first_residue
    return [(solute.residue_template[a:b].tobytes(), solute.residue_number[a:b].tobytes(), m in solute.circular)
            for m, (a, b) in enumerate(zip(first[:-1], first[1:], strict=True))]


def _molecule_order(solute: Solute, molecules: list[_Molecule]) -> list[int]:
    """The template of every molecule of the solute."""
    seen = {}
    order = [seen.setdefault(key, len(seen)) for key in _molecule_keys(solute)]
    assert len(seen) == len(molecules)
    return order


def _distinct_molecules(solute: Solute) -> list[_Molecule]:
    """The first of each kind of molecule, in solute order; equal names get a number."""
    names = residue_names()
    found: dict[_Key, _Molecule] = {}
    used: dict[str, int] = {}
    for m, key in enumerate(_molecule_keys(solute)):
        if key in found:
            continue
        part = slice(solute.molecule_first_residue[m], solute.molecule_first_residue[m + 1])
        base = solute.molecule_name[m]
        used[base] = used.get(base, 0) + 1
        found[key] = _Molecule(
            name=base if used[base] == 1 else f"{base}-{used[base]}",
            residues=[names[k] for k in solute.residue_template[part]],
            numbers=solute.residue_number[part],
            segids=[solute.segment_name[s] for s in solute.residue_segment[part]],
            circular=m in solute.circular,
        )
    return list(found.values())


def _junctions(molecule: _Molecule) -> list[Junction]:
    """One per residue after the first, in a circle of the first too; for a lone residue the one that stands for it."""
    residues = molecule.residues
    if molecule.circular:
        return [(residues[k - 1], residues[k], False, False) for k in range(len(residues))]
    if len(residues) == 1:
        return [("", residues[0], True, True)]
    last = len(residues) - 1
    return [(residues[k - 1], residues[k], k == 1, k == last) for k in range(1, last + 1)]


def _parameterise(junctions: list[Junction], force_field: str,
                  files: tuple[str, ...]) -> dict[Junction, _JunctionTerms]:
    """Let OpenMM assign all junctions, each in a capped chain of its own, in one system, and cut its terms up again."""
    library = residue_library()
    topology = app.Topology()
    spans = []  # first atom of residues k-1 and k, and the atom after k
    residue_templates = {}
    for left, right, is_first, is_last in junctions:
        start_cap, end_cap = _CAPS.get(library[right].kind, ("", ""))
        names = [start_cap] * (not is_first) + [left] * bool(left) + [right] + [end_cap] * (not is_last)
        chain, previous = topology.addChain(), None
        first_atoms = []
        for name in names:
            template = library[name]
            residue = topology.addResidue(name, chain)
            residue_templates[residue] = template.pdb_name if template.kind == "water" else name
            first_atoms.append(topology.getNumAtoms())
            atoms = [topology.addAtom(atom, None if element == SITE else app.Element.getBySymbol(element.capitalize()),
                                      residue)
                     for atom, element in zip(template.atoms, template.elements, strict=True)]
            for i, j in template.bonds:
                topology.addBond(atoms[i], atoms[j])
            if previous is not None:
                tail, head = ("O3'", "P") if template.kind == "nucleotide" else ("C", "N")
                topology.addBond(previous[tail], atoms[template.index[head]])
            previous = dict(zip(template.atoms, atoms, strict=True))
        first_atoms.append(topology.getNumAtoms())
        middle = int(not is_first) + bool(left)
        spans.append((first_atoms[middle - bool(left)], first_atoms[middle], first_atoms[middle + 1]))

    rules = app.ForceField(*files)
    try:
        system = rules.createSystem(topology, nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False,
                                    removeCMMotion=False, residueTemplates=residue_templates)
    except (ValueError, KeyError) as error:
        raise BadInputError(f"force field {force_field} cannot describe the solute: {error}") from error
    everything = read_system(system)
    everything.terms.setdefault("virtual_site", no_sites())
    if set(everything.terms) != set(_TERM_COLUMNS) or everything.c12 is not None:
        raise BadInputError(f"force field {force_field} has energy terms that this assignment cannot carry: give "
                            "chromabuild import a system that another program has prepared")
    type_name = _type_names(rules, topology)
    return {
        junction: _cut(junction, span, everything, type_name)
        for junction, span in zip(junctions, spans, strict=True)
    }


def _type_names(rules: app.ForceField, topology: app.Topology) -> list[str]:
    """Force-field atom type of every atom, without the prefix that names the file (``protein-CX`` -> ``CX``)."""
    names = []
    for residue, template in zip(topology.residues(), rules.getMatchingTemplates(topology), strict=True):
        types = {atom.name: atom.type for atom in template.atoms}
        names += [types[atom.name].split("-", 1)[-1] for atom in residue.atoms()]
    return names


def _cut(junction: Junction, span: tuple[int, int, int], everything: SystemTerms,
         type_name: list[str]) -> _JunctionTerms:
    """The part of the big system that a junction owns."""
    begin, middle, end = span
    # The first residue of a molecule has no junction of its own: its inner terms belong to the one that follows.
    lowest_last_atom = begin if junction[2] else middle
    own = {}
    for name, columns in _TERM_COLUMNS.items():
        term = everything.terms[name]
        atoms = term["atoms"]
        low, high = atoms.min(axis=1, initial=len(type_name)), atoms.max(axis=1, initial=-1)
        touches = (high >= lowest_last_atom) & (high < end)
        if np.any(touches & (low < begin) & (high >= middle)):
            raise BadInputError(f"the force field has a {name} term beyond the neighbours {junction[0]}-{junction[1]}: "
                                "this assignment cannot carry it; use another force field")
        keep = touches & (low >= begin)
        own[name] = {"atoms": atoms[keep] - begin} | {column: term[column][keep] for column in columns}
    own_type = everything.lj_type[begin:end]
    return _JunctionTerms(terms=own, mass=everything.mass[begin:end], charge=everything.charge[begin:end],
                          sigma=everything.sigma[own_type], epsilon=everything.epsilon[own_type],
                          type_name=type_name[begin:end])


class _LennardJonesTypes:
    """Distinct (sigma, epsilon) pairs in order of first use, named after the first force-field type that has them."""

    def __init__(self) -> None:
        self.index: dict[tuple[float, float], int] = {}
        self.names: list[str] = []

    def of(self, sigma: float, epsilon: float, type_name: str) -> int:
        """Number of the type, made if new."""
        key = (sigma, epsilon)
        if key not in self.index:
            name, number = type_name[:8], 2
            while name in self.names:
                name, number = f"{type_name[:6]}{number}", number + 1
            self.index[key] = len(self.names)
            self.names.append(name)
        return self.index[key]


def _assemble(molecule: _Molecule, of_junction: dict[Junction, _JunctionTerms],
              lj_types: _LennardJonesTypes) -> MoleculeTemplate:
    """Copy the terms of all junctions along the molecule."""
    library = residue_library()
    residues = [library[name] for name in molecule.residues]
    sizes = np.array([len(r.atoms) for r in residues])
    first = np.concatenate([[0], np.cumsum(sizes)])
    junctions = _junctions(molecule)
    # Atom 0 of junction k's terms within the molecule; that of a circle's first junction runs over the seam.
    start = first[:-1] if len(residues) == 1 else first[:-2]
    if molecule.circular:
        start = np.concatenate([first[-2:-1], start])

    charge, mass, lj_type = np.empty(first[-1]), np.empty(first[-1]), np.empty(first[-1], dtype=np.int32)
    collected = {name: {column: [] for column in ("atoms", "junction", *columns)}
                 for name, columns in _TERM_COLUMNS.items()}
    places: dict[Junction, list[int]] = {}
    for k, junction in enumerate(junctions):
        places.setdefault(junction, []).append(k)
    for junction, where in places.items():
        owned = of_junction[junction]
        offsets = start[where]
        target = (offsets[:, None] + np.arange(len(owned.charge))) % first[-1]
        charge[target], mass[target] = owned.charge, owned.mass
        lj_type[target] = [lj_types.of(sigma, epsilon, type_name) for sigma, epsilon, type_name
                           in zip(owned.sigma, owned.epsilon, owned.type_name, strict=True)]
        for name, columns in _TERM_COLUMNS.items():
            atoms = owned.terms[name]["atoms"]
            collected[name]["atoms"].append(((offsets[:, None, None] + atoms) % first[-1]).reshape(-1, atoms.shape[1]))
            collected[name]["junction"].append(np.repeat(where, len(atoms)))
            for column in columns:
                collected[name][column].append(np.tile(owned.terms[name][column], len(where)))
    terms = {}
    for name, columns in collected.items():
        order = np.argsort(np.concatenate(columns.pop("junction")), kind="stable")
        terms[name] = {column: np.concatenate(parts)[order] for column, parts in columns.items()}

    pair = terms.pop("pair")
    pair["atoms"].sort(axis=1)
    order = np.lexsort((pair["atoms"][:, 1], pair["atoms"][:, 0]))
    pair = {column: values[order] for column, values in pair.items()}
    interacts = (pair["charge_product"] != 0) | (pair["epsilon"] != 0)
    elements = np.concatenate([r.elements for r in residues])
    water = residues[0].kind == "water"
    constraint_atoms, constraint_distance = _constraints(terms, elements == "H", water)
    return MoleculeTemplate(
        name=molecule.name,
        rigid_water=water,
        lj_type=lj_type, charge=charge, mass=mass,
        atom_name=np.concatenate([r.atoms for r in residues]).astype("S4"),
        atom_residue=np.repeat(np.arange(len(residues)), sizes),
        residue_name=[r.pdb_name.encode() for r in residues],
        residue_number=molecule.numbers,
        residue_segid=[segid.encode() for segid in molecule.segids],
        exclusion=pair["atoms"],
        **{f"pair14_{column}": values[interacts] for column, values in pair.items()},
        **{f"{name}_{column}": values for name, columns in terms.items() for column, values in columns.items()},
        constraint_atoms=constraint_atoms, constraint_distance=constraint_distance,
    )


def _constraints(terms: dict, is_hydrogen: np.ndarray, water: bool) -> tuple[np.ndarray, np.ndarray]:
    """Bonds to hydrogen; in a rigid water also H-H, from the bond length and angle of the force field."""
    atoms, r0 = terms["bond"]["atoms"], terms["bond"]["r0"]
    to_hydrogen = is_hydrogen[atoms].any(axis=1)
    atoms, r0 = atoms[to_hydrogen], r0[to_hydrogen]
    if water:
        half_angle = 0.5 * np.radians(terms["angle"]["theta0"][0])
        atoms, r0 = np.vstack([atoms, [[1, 2]]]), np.append(r0, 2.0 * r0[0] * np.sin(half_angle))
    return atoms, r0
