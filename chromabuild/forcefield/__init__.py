"""Force field -> Topology: molecule templates with all their energy terms, and how often each occurs."""

from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import MoleculeTemplate, Topology

__all__ = ["MoleculeTemplate", "Topology", "make_topology"]
