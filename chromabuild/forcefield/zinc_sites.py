"""Zinc that cysteines and histidines bind, as CHARMM's bonded model has it: bonds and angles about Zn2+.

Patches ZN_C, ZNHD and ZNHE of CHARMM join thiolates and neutral histidines to an ion that keeps its charge; lengths and
angles are means over structures of the PDB (toppar_all36_prot_modify_res.str). AMBER's force fields have Zn2+ as an ion
without bonds. Each kind of site is assigned once, its ligands in capped chains.
"""

import numpy as np

from chromabuild.forcefield.capped_chains import CAPS, CappedChains
from chromabuild.forcefield.links import LinkedEnd, LinkSpan, LinkTerms
from chromabuild.forcefield.openmm_system import SystemTerms
from chromabuild.molecule.residues import residue_library

ZINC = "ZN"
SiteKind = tuple[LinkedEnd, ...]
"""The ligands of a site, in the order of their residues."""


def bound(residue: str, ligands: int = 0) -> str:
    """What templates/charmm_residues.json calls a ligand that is bound to zinc, or zinc with so many ligands."""
    return f"{residue}@{ligands}" if ligands else f"{residue}@{ZINC}"


def residues_of_sites(kinds: list[SiteKind]) -> set[str]:
    """Residues that the sites need beside those of the library."""
    return {bound(end.residue) for kind in kinds for end in kind} | {bound(ZINC, len(kind)) for kind in kinds}


def add_site(chains: CappedChains, kind: SiteKind) -> LinkSpan:
    """Add zinc and its ligands in capped chains, bonded; zinc is the first side."""
    library, names = residue_library(), chains.rules.template_name
    zinc = chains.add([ZINC])[0]
    chains.residue_templates[zinc[0].residue] = names[bound(ZINC, len(kind))]
    sides, place = [zinc], [(0, 0, ZINC)]
    for side, end in enumerate(kind, start=1):
        start, stop = CAPS["amino acid"]
        added = chains.add([start, end.residue, stop])
        ligand = added[1]
        chains.residue_templates[ligand[0].residue] = names[bound(end.residue)]
        chains.topology.addBond(zinc[0], ligand[library[end.residue].index[library[end.residue].link_atom]])
        sides.append([atom for atoms in added for atom in atoms])
        place += [(side, k - 1, atom.name) for k, atoms in enumerate(added) for atom in atoms]
    return LinkSpan(tuple(sides), place)


def cut_site(span: LinkSpan, everything: SystemTerms, label: list[str], columns: dict[str, tuple[str, ...]]
             ) -> LinkTerms:
    """The terms of the system of all fragments that have atoms of two sides; ``columns`` as of ``cut_link``."""
    first, end = span.sides[0][0].index, span.sides[-1][-1].index + 1
    side = np.repeat(np.arange(len(span.sides)), [len(atoms) for atoms in span.sides])
    terms = {}
    for name, values in columns.items():
        term = everything.terms[name]
        inside = ((term["atoms"] >= first) & (term["atoms"] < end)).all(axis=1)
        of_term = side[np.clip(term["atoms"] - first, 0, len(side) - 1)]
        across = inside & (of_term.min(axis=1, initial=len(side)) != of_term.max(axis=1, initial=-1))
        terms[name] = {"atoms": term["atoms"][across] - first} | {column: term[column][across] for column in values}
    return LinkTerms(terms, span.place, label[first:end])
