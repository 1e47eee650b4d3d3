"""OpenMM System -> Topology, for systems that another program has prepared."""

import re
from collections.abc import Sequence

import numpy as np
import openmm
from openmm import app, unit

import chromabuild
from chromabuild.base.constants import COULOMB_CONSTANT
from chromabuild.forcefield.openmm_system import SystemTerms, Term, read_system, separate_urey_bradley
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.forcefield.virtual_sites import no_sites

MISSING_BOND_K = 450.0
"""kcal/mol/angstrom^2 of O-H in CHARMM's TIP3P water. Constrained pairs without bond or angle (rigid waters of some
files) get such bonds: minimisation is done without constraints."""


def topology_from_system(flexible: openmm.System, rigid: openmm.System, atoms: app.Topology, force_field: str,
                         type_names: Sequence[str] | None = None, provenance: dict | None = None) -> Topology:
    """Molecule templates of a System and how often each occurs.

    ``flexible`` has all terms and no constraints; ``rigid`` is the same with the constraints that ``rigid_bond = YES``
    shall apply. ``type_names``: force-field type of every atom, to name the Lennard-Jones types by. A molecule is a run
    of whole residues that no term leaves; equal ones share a template, those of one residue whatever its number and
    segment, which their run tells. Names are cut to four letters. Raises BadInputError for terms that the engine does
    not have.
    """
    system = read_system(flexible, rigid)
    terms = _our_terms(system, atoms, _constraints(rigid))
    residue = np.array([atom.residue.index for atom in atoms.atoms()], dtype=np.int64)
    first = _molecule_starts(terms, residue)
    names = list(type_names or [atom.name for atom in atoms.atoms()])
    _, type_first = np.unique(system.lj_type, return_index=True)
    templates, runs = _templates(system, terms, first, atoms, residue)
    return Topology(
        templates=templates,
        run_template=np.array([run[0] for run in runs], dtype=np.int32),
        run_count=np.array([run[1] for run in runs], dtype=np.int64),
        run_residue=np.array([run[2] for run in runs], dtype=np.int64),
        run_segid=np.array([run[3] for run in runs], dtype="S4"),
        lj_name=np.array([names[k][:8] for k in type_first], dtype="S8"),
        lj_sigma=system.sigma, lj_epsilon=system.epsilon, lj_c12=system.c12, lj_c6=system.c6,
        cmap_energy=system.cmap_energy,
        coulomb_constant=COULOMB_CONSTANT, force_field=force_field,
        provenance={"chromabuild": chromabuild.__version__, "openmm": openmm.version.version, **(provenance or {})},
    )


def _constraints(system: openmm.System) -> Term:
    """Constrained pairs, each once. Distances are rounded so that equal ones are the same number."""
    rows = [system.getConstraintParameters(k) for k in range(system.getNumConstraints())]
    atoms = np.sort(np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2), axis=1)
    distance = np.array([row[2].value_in_unit(unit.angstrom) for row in rows])
    atoms, once = np.unique(atoms, axis=0, return_index=True)
    return {"atoms": atoms, "distance": np.round(distance[once], 9)}


def _our_terms(system: SystemTerms, topology: app.Topology, constraint: Term) -> dict[str, Term]:
    """Terms under the names of the topology file, without those that have no energy."""
    n = len(system.mass)

    def key(pairs: np.ndarray) -> np.ndarray:
        return pairs.min(axis=1) * n + pairs.max(axis=1)

    def select(term: Term, keep: np.ndarray) -> Term:
        return {column: values[keep] for column, values in term.items()}

    terms = {name: select(term, term["k"] != 0) if "k" in term else term for name, term in system.terms.items()}
    terms["constraint"] = constraint
    bonded = np.array([(a.index, b.index) for a, b in topology.bonds()], dtype=np.int64).reshape(-1, 2)
    harmonic = terms.pop("bond", {"atoms": np.empty((0, 2), dtype=np.int64), "k": np.empty(0), "r0": np.empty(0)})
    # The place of a virtual site leaves its distances from its parents no freedom: bonds of AMBER's extra points.
    sites = terms.get("virtual_site", no_sites())["atoms"]
    to_parent = np.column_stack([np.repeat(sites[:, 0], 3), sites[:, 1:].ravel()])
    harmonic = select(harmonic, ~np.isin(key(harmonic["atoms"]), key(to_parent)))
    terms["bond"], terms["urey_bradley"] = separate_urey_bradley(
        harmonic, np.concatenate([bonded, constraint["atoms"]]), n)
    held = [key(terms["bond"]["atoms"])]
    if "angle" in terms:
        held.append(key(terms["angle"]["atoms"][:, [0, 2]]))
    missing = select(constraint, ~np.isin(key(constraint["atoms"]), np.concatenate(held)))
    stiff = {"atoms": missing["atoms"], "k": np.full(len(missing["atoms"]), MISSING_BOND_K), "r0": missing["distance"]}
    terms["bond"] = {column: np.concatenate([terms["bond"][column], stiff[column]]) for column in stiff}
    pair = terms.pop("pair")
    terms["exclusion"] = {"atoms": np.unique(pair["atoms"], axis=0)}
    terms["pair14"] = select(pair, (pair["charge_product"] != 0) | (pair["epsilon"] != 0))
    return terms


def _molecule_starts(terms: dict[str, Term], residue: np.ndarray) -> np.ndarray:
    """(m + 1,) first atom of each molecule: cuts where no term and no residue spans the gap between two atoms."""
    n = len(residue)
    step = np.zeros(n + 1, dtype=np.int64)
    for term in terms.values():
        np.add.at(step, term["atoms"].min(axis=1, initial=n), 1)
        np.add.at(step, term["atoms"].max(axis=1, initial=0), -1)
    spanned = np.cumsum(step[:n - 1]) > 0
    return np.concatenate([[0], np.flatnonzero(~spanned & (np.diff(residue) != 0)) + 1, [n]])


def _templates(system: SystemTerms, terms: dict[str, Term], first: np.ndarray, topology: app.Topology,
               residue: np.ndarray) -> tuple[list[MoleculeTemplate], list[tuple[int, int, int, bytes]]]:
    """Distinct molecules, and runs (template, count, number of the first residue, its segment) in order."""
    n_molecules = len(first) - 1
    molecule_of_atom = np.repeat(np.arange(n_molecules), np.diff(first))
    columns = {}  # field of the template -> its rows by molecule, and where those of each molecule begin
    for name, term in terms.items():
        molecule = molecule_of_atom[term["atoms"][:, 0]]
        order = np.argsort(molecule, kind="stable")
        begin = np.searchsorted(molecule[order], np.arange(n_molecules + 1))
        for column, values in term.items():
            values = values - first[molecule][:, None] if column == "atoms" else values
            target = name if name == "exclusion" else f"{name}_{column}"
            columns[target] = np.ascontiguousarray(values[order]), begin
    for target in ("lj_type", "charge", "mass"):
        columns[target] = getattr(system, target), first
    atom_name = np.array([atom.name.encode()[:4] for atom in topology.atoms()], dtype="S4")
    columns["atom_name"] = atom_name, first
    residues = list(topology.residues())

    templates: list[MoleculeTemplate] = []
    known: dict[tuple, int] = {}
    runs: list[tuple[int, int, int, bytes]] = []
    for m in range(n_molecules):
        own = residues[residue[first[m]]:residue[first[m + 1] - 1] + 1]
        numbers = [_number(r.id, k) for k, r in enumerate(own)]
        values = {target: array[begin[m]:begin[m + 1]] for target, (array, begin) in columns.items()}
        segids = [r.chain.id.encode()[:4] for r in own]
        key = (*(array.tobytes() for array in values.values()), *(r.name for r in own),
               *((*numbers, *segids) if len(own) > 1 else ()))
        if key not in known:
            known[key] = len(templates)
            templates.append(MoleculeTemplate(
                name=own[0].name if len(own) == 1 else f"chain-{own[0].chain.id}",
                rigid_water=(values["mass"] > 0).sum() == 3 == len(values["constraint_atoms"]),
                atom_residue=residue[first[m]:first[m + 1]] - residue[first[m]],
                residue_name=[r.name.encode()[:4] for r in own], residue_number=numbers,
                residue_segid=segids, **values))
        kind, count, number, segid = runs[-1] if runs else (-1, 0, 0, b"")
        if kind == known[key] and (len(own) > 1 or (number + count, segid) == (numbers[0], segids[0])):
            runs[-1] = (kind, count + 1, number, segid)
        else:
            runs.append((known[key], 1, numbers[0], segids[0]))
    return templates, runs


def _number(identifier: str, index: int) -> int:
    """Residue number without its insertion code; the place in the molecule where it has none."""
    found = re.match(r"-?\d+", identifier.strip())
    return int(found.group()) if found else index + 1
