"""Force field -> Topology: molecule templates with all their energy terms, and how often each occurs."""

from chromabuild.topology.assign import make_topology
from chromabuild.topology.psf import write_psf
from chromabuild.topology.topology_file import MoleculeTemplate, Topology

__all__ = ["MoleculeTemplate", "Topology", "make_topology", "write_psf"]
