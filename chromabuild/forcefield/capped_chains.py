"""Short capped chains in which OpenMM assigns what stands next to what, as a topology of OpenMM."""

from openmm import app

from chromabuild.forcefield.rules import Rules
from chromabuild.molecule.residues import SITE, residue_library

CAPS = {"amino acid": ("NGLY", "CGLY"), "nucleotide": ("DA5", "DA3")}
LINK_CAPS = {"KUB": (("NGLY", "GLY"), 1), "CYX": (("NGLY", "CYX", "CGLY"), 1)}
"""By a residue whose side chain is bonded to another, a chain that stands for that other, and which of it is bonded."""


class CappedChains:
    """An OpenMM topology that grows by chains."""

    def __init__(self, rules: Rules) -> None:
        """Nothing is in it."""
        self.rules = rules
        self.topology = app.Topology()
        self.residue_templates: dict[app.topology.Residue, str] = {}

    def add(self, names: list[str]) -> list[list[app.topology.Atom]]:
        """Add a chain of residues of the library; gives the atoms of each."""
        library, chain, previous, added = residue_library(), self.topology.addChain(), None, []
        for name in names:
            template = library[name]
            residue = self.topology.addResidue(name, chain)
            self.residue_templates[residue] = self.rules.template_name[name]
            atoms = [self.topology.addAtom(atom, None if element == SITE
                                           else app.Element.getBySymbol(element.capitalize()), residue)
                     for atom, element in zip(template.atoms, template.elements, strict=True)]
            for i, j in template.bonds:
                self.topology.addBond(atoms[i], atoms[j])
            if previous is not None:
                tail, head = ("O3'", "P") if template.kind == "nucleotide" else ("C", "N")
                self.topology.addBond(previous[tail], atoms[template.index[head]])
            previous = dict(zip(template.atoms, atoms, strict=True))
            added.append(atoms)
        return added

    def link(self, one: str, atoms: list[app.topology.Atom], other: str, theirs: list[app.topology.Atom]) -> None:
        """Bond the link atoms of two residues."""
        library = residue_library()
        self.topology.addBond(*(some[library[name].index[library[name].link_atom]]
                                for name, some in ((one, atoms), (other, theirs))))

    def cap_links(self, names: list[str], added: list[list[app.topology.Atom]]) -> None:
        """Give every residue of a chain whose side chain is bonded to another one to be bonded to."""
        for name, atoms in zip(names, added, strict=True):
            if residue_library()[name].link:
                cap, bonded = LINK_CAPS[residue_library()[name].inner_name]
                self.link(name, atoms, cap[bonded], self.add(list(cap))[bonded])


def caps_of_links(names: set[str]) -> set[str]:
    """The residues that stand for what some residues are linked to."""
    library = residue_library()
    return {cap for name in names if library[name].link for cap in LINK_CAPS[library[name].inner_name][0]}
