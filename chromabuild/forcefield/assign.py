"""Force-field assignment: OpenMM's ForceField decides, once per pair of neighbouring residue kinds.

Terms of up to four atoms never reach beyond two consecutive residues of a polymer (three residues would need a path of
five atoms). So all terms of a molecule follow from its *junctions* (kind of residue k-1, kind of residue k). Each
distinct junction is parameterised once, in a short capped chain, and its terms are copied along the molecule with array
arithmetic: the cost of OpenMM's matching does not grow with the length of the DNA.

A correction map has five atoms, C of residue k-2 the first and N of residue k the last. It belongs to the junction too:
the first atom is that of the cap, and stands for that of residue k-2, which has the same class (this is checked).

Chains of the solute that a side chain is bonded to (``Solute.links``) are one molecule of the topology, with all that
lies between them; what the bond adds is in ``chromabuild.forcefield.links``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import openmm
from openmm import app

import chromabuild
from chromabuild.base.constants import COULOMB_CONSTANT
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.force_fields import FORCE_FIELDS, WaterName, force_field_files
from chromabuild.base.progress import Progress, silent
from chromabuild.forcefield.capped_chains import CAPS, CappedChains, caps_of_links
from chromabuild.forcefield.links import LinkedEnd, LinkKind, LinkTerms, add_fragment, along_links, cut_link
from chromabuild.forcefield.openmm_system import SystemTerms, Term, read_system, separate_urey_bradley
from chromabuild.forcefield.rules import Rules, rules_for
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology
from chromabuild.forcefield.zinc_sites import ZINC, SiteKind, add_site, cut_site, residues_of_sites
from chromabuild.molecule.residues import SOLVENT, residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.molecule.water_models import WATER_MODELS

WATER_SEGMENT = "WAT"
"""Segment id of water; an ion's is the name of its residue."""

_TERM_COLUMNS = {"bond": ("k", "r0"), "angle": ("k", "theta0"), "urey_bradley": ("k", "r0"),
                 "dihedral": ("k", "n", "phase"), "improper": ("k", "psi0"), "cmap": ("map",),
                 "pair": ("charge_product", "sigma", "epsilon"), "virtual_site": ("w2", "w3")}
_N_ATOMS = {"bond": 2, "angle": 3, "urey_bradley": 2, "dihedral": 4, "improper": 4, "cmap": 5, "pair": 2,
            "virtual_site": 4}

Junction = tuple[str, str, bool, bool]
"""Residue k-1 ("" when k stands alone), residue k, whether k-1 is the first of its molecule, whether k is the last."""


@dataclass
class _JunctionTerms:
    """What a junction contributes: terms that touch residue k (and those within k-1 when that is the first residue).

    Atoms count from the first atom of residue k-1; an atom below 0 is one of residue k-2, counted from its end.
    """

    terms: dict[str, Term]
    charge: np.ndarray
    mass: np.ndarray
    lj_type: np.ndarray
    """Types of the system of all junctions."""
    label: list[str]
    """Classes."""
    before: dict[int, str]
    """Class of each atom of residue k-2 that a term names, by its number."""


def make_topology(solute: Solute | None, counts: dict[str, int], force_field: str = "amber14",
                  net_charge: int | None = None, progress: Progress = silent,
                  files: Sequence[str | Path] = (), water: WaterName = "tip3p") -> Topology:
    """Topology of a solute (None: solvent only) with ``counts`` of ``water`` and of the ions in ``SOLVENT``.

    ``net_charge`` is what the shard manifest says of the whole system; ``progress`` is called with every step;
    ``files``: force-field files of the user's, beside those of the force field. Raises BadInputError for an unknown
    force field, a residue or a water model that it does not know and a bad file, IntegrityError when the charge of the
    topology is not ``net_charge``.
    """
    form = FORCE_FIELDS.get(force_field)
    zinc_is_bonded = form is not None and (form.is_charmm or form.by_analogy)
    molecules = _distinct_molecules(solute, zinc_is_bonded) if solute is not None else []
    runs = _runs(_molecule_order(solute, molecules, zinc_is_bonded), molecules) if solute is not None else []
    solvent = [(WATER_MODELS[water].residue if key == "water" else name, name,
                WATER_SEGMENT if key == "water" else name, counts[key])
               for key, name in SOLVENT.items() if counts.get(key, 0)]
    junctions = sorted({junction for m in molecules for junction in set(_junctions(m)[0])}
                       | {("", residue, True, True) for residue, *_ in solvent})
    links = sorted({kind for m in molecules for kind in m.link_kinds()})
    sites = sorted({kind for m in molecules for kind in m.site_kinds()})
    rules = rules_for([*_residues_and_caps(junctions, [*links, *sites]), *residues_of_sites(sites)], force_field, files,
                      water)
    progress(f"assigning {force_field} to {len(junctions)} residue pairs of {len(molecules)} molecules")
    of_junction, of_link, everything = _parameterise(junctions, links, sites, rules, force_field)

    lj_types, maps, is_charmm = _LennardJonesTypes(), _Numbering(), FORCE_FIELDS[force_field].is_charmm
    templates = []
    for molecule in molecules:
        progress(f"assembling {molecule.name}")
        templates.append(_assemble(molecule, of_junction, lj_types, maps, is_charmm, of_link))
    lone = {molecule.residues[0]: k for k, molecule in enumerate(molecules) if molecule.is_lone}
    for residue, name, segid, count in solvent:
        runs.append((lone.get(residue, len(templates)), count))
        if residue in lone:
            continue
        molecule = _Molecule(name, [residue], np.array([1]), [segid])
        templates.append(_assemble(molecule, of_junction, lj_types, maps, is_charmm))
    own = list(lj_types.number)
    matrices = {} if everything.c12 is None else {
        "lj_c12": everything.c12[np.ix_(own, own)], "lj_c6": everything.c6[np.ix_(own, own)]}
    topology = Topology(
        templates=templates,
        run_template=np.array([t for t, _ in runs], dtype=np.int32),
        run_count=np.array([count for _, count in runs], dtype=np.int64),
        lj_name=np.array(lj_types.names, dtype="S8"),
        lj_sigma=everything.sigma[own],
        lj_epsilon=everything.epsilon[own],
        cmap_energy=everything.cmap_energy[list(maps.number)],
        **matrices,
        coulomb_constant=COULOMB_CONSTANT,
        force_field=force_field,
        provenance={"chromabuild": chromabuild.__version__, "openmm": openmm.version.version,
                    "force_field_files": [*force_field_files(force_field, water),
                                          *(Path(path).name for path in files)]},
    )
    # AMBER residue charges have four to six decimals: a chain of thousands of residues is whole within 0.01 e.
    if net_charge is not None and abs(topology.net_charge - net_charge) > 0.01:
        raise IntegrityError(f"the topology has charge {topology.net_charge:+.3f} but the shards have {net_charge:+d}: "
                             "solute and shards do not belong together; run chromabuild solvate again")
    return topology


def check_assignment(chains: Iterable[Sequence[str]], force_field: str, files: Sequence[str | Path], water: WaterName
                     ) -> None:
    """Raise what ``make_topology`` would for chains of these residues of the library, in water with ions."""
    molecules = [_Molecule("chain", list(chain), np.arange(len(chain)), []) for chain in chains if len(chain)]
    solvent = [WATER_MODELS[water].residue if key == "water" else name for key, name in SOLVENT.items()]
    junctions = sorted({junction for one in molecules for junction in _junctions(one)[0]}
                       | {("", residue, True, True) for residue in solvent})
    of_junction, *_ = _parameterise(junctions, [], [], rules_for(_residues_and_caps(junctions, []), force_field, files,
                                                                 water), force_field)
    for molecule in molecules:
        found, _ = _junctions(molecule)
        for junction, where in _places(found).items():
            if of_junction[junction].before:
                _check_before(molecule, found, where, of_junction)


def _places(junctions: list[Junction]) -> dict[Junction, list[int]]:
    """Where each distinct junction stands."""
    places: dict[Junction, list[int]] = {}
    for k, junction in enumerate(junctions):
        places.setdefault(junction, []).append(k)
    return places


@dataclass
class _Molecule:
    """A distinct molecule: residue names of the library, and how files label the residues."""

    name: str
    residues: list[str]
    numbers: np.ndarray
    segids: list[str]
    circular: bool = False
    """Whether the last residue is joined to the first."""
    first: tuple[int, ...] = (0,)
    """First residues of its chains."""
    links: tuple[tuple[int, int], ...] = ()
    """Residues that a bond of a side chain joins, the earlier first."""
    zinc: tuple[tuple[int, int], ...] = ()
    """Ligand and zinc, of all sites."""

    @property
    def is_lone(self) -> bool:
        """Whether it is a water or an ion, as there are more of in the solvent."""
        return len(self.residues) == 1 and _is_solvent(self.residues[0])

    def link_kinds(self) -> list[LinkKind]:
        """Of each of its links."""
        return [self._kind(pair) for pair in self.links]

    def zinc_sites(self) -> list[tuple[int, ...]]:
        """Zinc and its ligands, of each site."""
        sites: dict[int, list[int]] = {}
        for ligand, zinc in self.zinc:
            sites.setdefault(zinc, []).append(ligand)
        return [(zinc, *sorted(ligands)) for zinc, ligands in sorted(sites.items())]

    def site_kinds(self) -> list[SiteKind]:
        """Of each of these sites."""
        return [self._kind(site[1:]) for site in self.zinc_sites()]

    def _kind(self, residues: tuple[int, ...]) -> tuple[LinkedEnd, ...]:
        ends = [*(k - 1 for k in self.first[1:]), len(self.residues) - 1]
        return tuple(LinkedEnd(self.residues[k], k in self.first, k in ends) for k in residues)


_Key = tuple[bytes, bytes, bool, tuple[int, ...], tuple[tuple[int, int], ...]]


def _molecules_of(solute: Solute, zinc_is_bonded: bool) -> list[tuple[int, int, _Key]]:
    """First chain of the solute and the one behind the last of every molecule, and what makes it what it is.

    Two molecules share a template when residues and residue numbers are the same, both are closed or not, and the same
    residues are linked.
    """
    first = solute.molecule_first_residue
    links = [pair for pair in solute.links if zinc_is_bonded or not _of_zinc(solute, pair)]
    chain = [tuple(sorted(int(np.searchsorted(first, k, side="right")) - 1 for k in pair)) for pair in links]
    inside = np.zeros(len(first), dtype=bool)
    """Chains that belong to the same molecule as the one before."""
    for a, b in chain:
        inside[a + 1:b + 1] = True
    starts = [*np.flatnonzero(~inside[:-1]).tolist(), len(first) - 1]
    own: dict[int, list[tuple[int, int]]] = {}
    for (a, _), pair in zip(chain, links, strict=True):
        m = int(np.searchsorted(starts, a, side="right")) - 1
        own.setdefault(m, []).append(tuple(sorted(k - int(first[starts[m]]) for k in pair)))
    solvent = np.array([_is_solvent(name) for name in residue_names()])
    lone = (np.diff(first) == 1) & solvent[solute.residue_template[first[:-1]]]
    return [(a, b, (solute.residue_template[first[a]:first[b]].tobytes(),
                    b"" if b == a + 1 and lone[a] else solute.residue_number[first[a]:first[b]].tobytes(),
                    a in solute.circular,
                    tuple((first[a:b] - first[a]).tolist()), tuple(sorted(own.get(m, ())))))
            for m, (a, b) in enumerate(pairwise(starts))]


def _of_zinc(solute: Solute, pair: tuple[int, int]) -> bool:
    """Whether a link is that of zinc and a ligand."""
    names = residue_names()
    return ZINC in (names[solute.residue_template[k]] for k in pair)


def _is_solvent(residue: str) -> bool:
    return residue_library()[residue].kind in ("water", "ion")


def _runs(order: list[int], molecules: list[_Molecule]) -> list[tuple[int, int]]:
    """Template and count of each run; copies of a water or an ion that follow each other are one."""
    runs: list[tuple[int, int]] = []
    for template in order:
        if runs and runs[-1][0] == template and molecules[template].is_lone:
            runs[-1] = template, runs[-1][1] + 1
        else:
            runs.append((template, 1))
    return runs


def _molecule_order(solute: Solute, molecules: list[_Molecule], zinc_is_bonded: bool) -> list[int]:
    """The template of every molecule of the solute."""
    seen = {}
    order = [seen.setdefault(key, len(seen)) for _, _, key in _molecules_of(solute, zinc_is_bonded)]
    assert len(seen) == len(molecules)
    return order


def _distinct_molecules(solute: Solute, zinc_is_bonded: bool) -> list[_Molecule]:
    """The first of each kind of molecule, in solute order; equal names get a number."""
    names = residue_names()
    found: dict[_Key, _Molecule] = {}
    used: dict[str, int] = {}
    for a, b, key in _molecules_of(solute, zinc_is_bonded):
        if key in found:
            continue
        part = slice(solute.molecule_first_residue[a], solute.molecule_first_residue[b])
        base = solute.molecule_name[a]
        used[base] = used.get(base, 0) + 1
        found[key] = _Molecule(
            name=base if used[base] == 1 else f"{base}-{used[base]}",
            residues=[names[k] for k in solute.residue_template[part]],
            numbers=solute.residue_number[part],
            segids=[solute.segment_name[s] for s in solute.residue_segment[part]],
            circular=a in solute.circular, first=key[3],
        )
        of_zinc = [pair for pair in key[4] if ZINC in (found[key].residues[k] for k in pair)]
        found[key].links = tuple(pair for pair in key[4] if pair not in of_zinc)
        found[key].zinc = tuple(tuple(sorted(pair, key=lambda k: found[key].residues[k] == ZINC)) for pair in of_zinc)
        if found[key].is_lone:  # as in the solvent
            found[key].numbers = np.array([1])
            found[key].segids = [WATER_SEGMENT if residue_library()[found[key].residues[0]].kind == "water" else base]
    return list(found.values())


def _junctions(molecule: _Molecule) -> tuple[list[Junction], np.ndarray]:
    """One per residue after the first, in a circle of the first too; for a lone residue the one that stands for it.

    And (j,) the residue that each begins with. A chain that ends in a link has no end of its own: its last residue is
    none, for it is bonded like an inner one.
    """
    residues = molecule.residues
    if molecule.circular:
        return [(residues[k - 1], residues[k], False, False) for k in range(len(residues))], np.append(
            len(residues) - 1, np.arange(len(residues) - 1))
    linked, found, begin = {k for pair in molecule.links for k in pair}, [], []
    for a, b in pairwise([*molecule.first, len(residues)]):
        if b == a + 1:
            found.append(("", residues[a], True, True))
            begin.append(a)
            continue
        ends = b - 1 not in linked or bool(residue_library()[residues[b - 1]].link)
        found += [(residues[k - 1], residues[k], k == a + 1, ends and k == b - 1) for k in range(a + 1, b)]
        begin += range(a, b - 1)
    return found, np.array(begin)


def _residues_and_caps(junctions: list[Junction], links: list[LinkKind]) -> list[str]:
    """Names of the residues of some junctions and links, and of the caps of their chains."""
    library = residue_library()
    names = {name for left, right, _, _ in junctions for name in (left, right) if name}
    names |= {end.residue for kind in links for end in kind}
    names |= caps_of_links(names)
    return sorted(names | {cap for left, right, *_ in junctions if left for cap in CAPS[library[right].kind]}
                  | ({cap for cap in CAPS["amino acid"]} if links else set()))


def _parameterise(junctions: list[Junction], links: list[LinkKind], sites: list[SiteKind], rules: Rules,
                  force_field: str
                  ) -> tuple[dict[Junction, _JunctionTerms], dict[LinkKind | SiteKind, LinkTerms], SystemTerms]:
    """Let OpenMM assign all junctions, links and sites of zinc, each in capped chains of its own, in one system.

    Gives the terms of each, cut out of it, and the system.
    """
    library = residue_library()
    chains = CappedChains(rules)
    spans = []  # first atom of residues k-1 and k, and the atom after k
    for left, right, is_first, is_last in junctions:
        start_cap, end_cap = CAPS.get(library[right].kind, ("", ""))
        names = [start_cap] * (not is_first) + [left] * bool(left) + [right] + [end_cap] * (not is_last)
        added = chains.add(names)
        first_atoms = [*(atoms[0].index for atoms in added), added[-1][-1].index + 1]
        chains.cap_links(names, added)
        middle = int(not is_first) + bool(left)
        spans.append((first_atoms[middle - bool(left)], first_atoms[middle], first_atoms[middle + 1]))
    link_spans = [add_fragment(chains, kind) for kind in links]
    site_spans = [add_site(chains, kind) for kind in sites]
    topology = chains.topology

    types = _AtomTypes()
    rules.force_field.registerGenerator(types)
    try:
        system = rules.force_field.createSystem(
            topology, nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False, removeCMMotion=False,
            residueTemplates=chains.residue_templates)
    except (ValueError, KeyError) as error:
        raise BadInputError(f"force field {force_field} cannot describe the solute: {error}") from error
    everything = read_system(system)
    _complete(everything, topology)
    label = [rules.label[name] for name in types.found]
    return {junction: _cut(junction, span, everything, label)
            for junction, span in zip(junctions, spans, strict=True)}, {
                kind: cut_link(span, everything, label, _TERM_COLUMNS)
                for kind, span in zip(links, link_spans, strict=True)} | {
                    kind: cut_site(span, everything, label, _TERM_COLUMNS)
                    for kind, span in zip(sites, site_spans, strict=True)}, everything


class _AtomTypes:
    """A generator of OpenMM's that makes no force and looks on: it keeps the type of every atom."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def createForce(self, system: openmm.System, data: object, *_: object) -> None:  # noqa: N802 - OpenMM's name
        """Keep what OpenMM has assigned."""
        self.found = [data.atomType[atom] for atom in data.atoms]


def _complete(everything: SystemTerms, topology: app.Topology) -> None:
    """Put Urey-Bradley terms apart from bonds, leave those and impropers without energy out, add empty terms."""
    terms = everything.terms
    bonds = np.array([(a.index, b.index) for a, b in topology.bonds()], dtype=np.int64).reshape(-1, 2)
    if "bond" in terms:
        terms["bond"], terms["urey_bradley"] = separate_urey_bradley(terms["bond"], bonds, len(everything.mass))
    for name, n_atoms in _N_ATOMS.items():
        nothing = {"atoms": np.empty((0, n_atoms), dtype=np.int64)}
        term = terms.setdefault(name, nothing | {column: np.empty(0) for column in _TERM_COLUMNS[name]})
        if name in ("urey_bradley", "improper"):
            terms[name] = {column: values[term["k"] != 0] for column, values in term.items()}


def _cut(junction: Junction, span: tuple[int, int, int], everything: SystemTerms, label: list[str]) -> _JunctionTerms:
    """The part of the big system that a junction owns."""
    begin, middle, end = span
    # The first residue of a molecule has no junction of its own: its inner terms belong to the one that follows.
    lowest_last_atom = begin if junction[2] else middle
    own, before = {}, {}
    for name, columns in _TERM_COLUMNS.items():
        term = everything.terms[name]
        atoms = term["atoms"]
        low, high = atoms.min(axis=1, initial=len(label)), atoms.max(axis=1, initial=-1)
        touches = (high >= lowest_last_atom) & (high < end)
        reaches_back = touches & (low < begin)
        if name == "cmap":
            touches &= high >= middle
            before |= {int(atom - begin): label[atom] for atom in atoms[touches & reaches_back].ravel() if atom < begin}
        elif np.any(reaches_back & (high >= middle)):
            raise BadInputError(f"the force field has a {name} term beyond the neighbours {junction[0]}-{junction[1]}: "
                                "this assignment cannot carry it; use another force field")
        keep = touches & ((low >= begin) | (name == "cmap"))
        own[name] = {"atoms": atoms[keep] - begin} | {column: term[column][keep] for column in columns}
    return _JunctionTerms(terms=own, mass=everything.mass[begin:end], charge=everything.charge[begin:end],
                          lj_type=everything.lj_type[begin:end], label=label[begin:end], before=before)


class _Numbering:
    """New numbers, in order of first use, for those of the system of all junctions."""

    def __init__(self) -> None:
        self.number: dict[int, int] = {}

    def of(self, old: np.ndarray) -> np.ndarray:
        """(n,) new numbers."""
        return np.array([self.number.setdefault(int(one), len(self.number)) for one in old], dtype=np.int32)


class _LennardJonesTypes(_Numbering):
    """Those of Lennard-Jones types, which are named after the first class that has them."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def named(self, old: np.ndarray, label: list[str]) -> np.ndarray:
        """(n,) new numbers; ``label``: the classes."""
        for one, base in zip(old.tolist(), label, strict=True):
            if one in self.number:
                continue
            name, number = base[:8], 2
            while name in self.names:
                name, number = f"{base[:6]}{number}", number + 1
            self.number[one] = len(self.names)
            self.names.append(name)
        return self.of(old)


def _assemble(molecule: _Molecule, of_junction: dict[Junction, _JunctionTerms], lj_types: _LennardJonesTypes,
              maps: _Numbering, with_classes: bool, of_link: dict[LinkKind, LinkTerms] | None = None
              ) -> MoleculeTemplate:
    """Copy the terms of all junctions along the molecule; ``with_classes``: and the classes of the atoms."""
    library = residue_library()
    residues = [library[name] for name in molecule.residues]
    sizes = np.array([len(r.atoms) for r in residues])
    first = np.concatenate([[0], np.cumsum(sizes)])
    junctions, begin = _junctions(molecule)
    start = first[begin]  # atom 0 of junction k's terms; that of a circle's first junction runs over the seam
    charge, mass, lj_type = np.empty(first[-1]), np.empty(first[-1]), np.empty(first[-1], dtype=np.int32)
    atom_class = np.empty(first[-1] if with_classes or molecule.links or molecule.zinc else 0, dtype="S8")
    places = _places(junctions)
    for junction, where in places.items():
        owned = of_junction[junction]
        target = (start[where][:, None] + np.arange(len(owned.charge))) % first[-1]
        charge[target], mass[target] = owned.charge, owned.mass
        lj_type[target] = lj_types.named(owned.lj_type, owned.label)
        if len(atom_class):
            atom_class[target] = np.array(owned.label, dtype="S8")
        if owned.before:
            _check_before(molecule, junctions, where, of_junction)
    terms = {name: _along(name, junctions, places, of_junction, start, int(first[-1])) for name in _TERM_COLUMNS}
    links = [(pair, of_link[kind]) for pair, kind in zip(
        [*molecule.links, *molecule.zinc_sites()], [*molecule.link_kinds(), *molecule.site_kinds()], strict=True)]
    for name in _TERM_COLUMNS if links else ():
        more = along_links(name, links, molecule.residues, first, atom_class)
        terms[name] = {column: np.concatenate([values, *(term[column] for term in more)]).astype(values.dtype)
                       for column, values in terms[name].items()}
    terms["cmap"]["map"] = maps.of(terms["cmap"]["map"])
    pair = terms.pop("pair")
    pair["atoms"].sort(axis=1)
    order = np.lexsort((pair["atoms"][:, 1], pair["atoms"][:, 0]))
    for column, values in pair.items():
        pair[column] = values[order]
    del order
    exclusion, interacts = pair["atoms"], (pair["charge_product"] != 0) | (pair["epsilon"] != 0)
    for column, values in pair.items():
        pair[column] = values[interacts]
    kinds = {name: library[name] for name in set(molecule.residues)}
    is_hydrogen = {name: np.array(kind.elements) == "H" for name, kind in kinds.items()}
    names = {name: np.array(kind.atoms, dtype="S4") for name, kind in kinds.items()}
    water = residues[0].kind == "water"
    constraint_atoms, constraint_distance = _constraints(
        terms, np.concatenate([is_hydrogen[r.name] for r in residues]), water)
    return MoleculeTemplate(
        name=molecule.name,
        rigid_water=water,
        lj_type=lj_type, charge=charge, mass=mass, atom_class=atom_class if with_classes else atom_class[:0],
        atom_name=np.concatenate([names[r.name] for r in residues]),
        atom_residue=np.repeat(np.arange(len(residues)), sizes),
        residue_name=[r.pdb_name.encode() for r in residues],
        residue_number=molecule.numbers,
        residue_segid=[segid.encode() for segid in molecule.segids],
        exclusion=exclusion,
        **{f"pair14_{column}": values for column, values in pair.items()},
        **{f"{name}_{column}": values for name, columns in terms.items() for column, values in columns.items()},
        constraint_atoms=constraint_atoms, constraint_distance=constraint_distance,
    )


def _along(name: str, junctions: list[Junction], places: dict[Junction, list[int]],
           of_junction: dict[Junction, _JunctionTerms], start: np.ndarray, n_atoms: int) -> Term:
    """All terms of a kind along a molecule of ``n_atoms``, in the order of the junctions.

    ``places``: where each distinct junction stands; ``start``: its first atom. Rows are written where they belong in
    arrays of their final type, for those of a locus take gigabytes.
    """
    sizes = {junction: len(of_junction[junction].terms[name]["atoms"]) for junction in places}
    first_row = np.cumsum([0] + [sizes[junction] for junction in junctions])
    term = {"atoms": np.empty((first_row[-1], _N_ATOMS[name]), dtype=np.int32),
            **{column: np.empty(first_row[-1], dtype=np.int32 if column in ("n", "map") else float)
               for column in _TERM_COLUMNS[name]}}
    for junction, where in places.items():
        if sizes[junction] == 0:
            continue
        owned = of_junction[junction].terms[name]
        rows = (first_row[where][:, None] + np.arange(sizes[junction])).ravel()
        atoms = (start[where][:, None, None] + owned["atoms"]) % n_atoms
        term["atoms"][rows] = atoms.reshape(-1, _N_ATOMS[name])
        for column in _TERM_COLUMNS[name]:
            term[column][rows] = np.tile(owned[column], len(where))
    return term


def _check_before(molecule: _Molecule, junctions: list[Junction], where: list[int],
                  of_junction: dict[Junction, _JunctionTerms]) -> None:
    """Raise BadInputError unless the atoms of residue k-2 that a junction names are as those of the cap it stood in."""
    library = residue_library()
    before = of_junction[junctions[where[0]]].before
    cap = library[CAPS["amino acid"][0]]
    for farther in {junctions[k - 1] for k in where}:
        residue = library[farther[0]]
        for atom, label in before.items():
            here = of_junction[farther].label[len(residue.atoms) + atom]
            if residue.atoms[atom] != cap.atoms[atom] or here != label:
                raise BadInputError(f"the force field has a correction map over {residue.name} whose first atom is "
                                    f"{residue.atoms[atom]} of class {here}, not {cap.atoms[atom]} of class {label}: "
                                    f"this assignment cannot carry it; let the atoms of {residue.name} end in C, O")


def _constraints(terms: dict, is_hydrogen: np.ndarray, water: bool) -> tuple[np.ndarray, np.ndarray]:
    """Bonds to hydrogen; in a rigid water also H-H, from the bond length and angle of the force field."""
    atoms, r0 = terms["bond"]["atoms"], terms["bond"]["r0"]
    to_hydrogen = is_hydrogen[atoms].any(axis=1)
    atoms, r0 = atoms[to_hydrogen], r0[to_hydrogen]
    if water:
        half_angle = 0.5 * np.radians(terms["angle"]["theta0"][0])
        atoms, r0 = np.vstack([atoms, [[1, 2]]]), np.append(r0, 2.0 * r0[0] * np.sin(half_angle))
    return atoms, r0
