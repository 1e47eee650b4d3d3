"""MDAnalysis on a topology: what a reader of topology.psf gets, without the detour through text."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chromabuild.export.psf import labelled_runs
from chromabuild.forcefield.topology_file import Topology
from chromabuild.molecule.solute import Solute

if TYPE_CHECKING:
    import MDAnalysis


def make_universe(topology: Topology, solute: Solute | None = None,
                  trajectories: Sequence[str | Path] = ()) -> "MDAnalysis.Universe":
    """Names, types, charges, masses, residues, segments and bonds of the atoms, with their frames.

    Labels are those of ``write_psf``, and ``solute`` means the same. Angles and dihedrals are left out: they are what
    takes most of the time that MDAnalysis needs for a PSF.
    """
    import MDAnalysis
    from MDAnalysis.core import topologyattrs as attributes

    atom_residue, residue_names, labels = [], [], []
    for template, count, _, label in labelled_runs(topology, solute):
        n_residues = len(template.residue_name)
        copies = np.arange(count)[:, None] * n_residues
        atom_residue.append((len(labels) + copies + template.atom_residue).ravel())
        residue_names.append(np.tile(template.residue_name.astype("U4"), count))
        labels += [label(k) for k in range(count * n_residues)]
    segment_of = np.array([segment for segment, _ in labels])
    # Residues of a segment stand together.
    new = np.flatnonzero(np.append(True, segment_of[1:] != segment_of[:-1]))
    numbers = np.array([number for _, number in labels])
    made = MDAnalysis.core.topology.Topology(
        topology.n_atoms, len(labels), len(new),
        attrs=[attributes.Atomids(np.arange(1, topology.n_atoms + 1)),
               attributes.Atomnames(topology.per_atom("atom_name").astype("U4").astype(object)),
               attributes.Atomtypes(topology.lj_name.astype("U8").astype(object)[topology.per_atom("lj_type")]),
               attributes.Charges(topology.charges()), attributes.Masses(topology.masses()),
               attributes.Resids(numbers), attributes.Resnums(numbers.copy()),
               attributes.Resnames(np.concatenate(residue_names).astype(object)),
               attributes.Segids(segment_of[new].astype(object)),
               attributes.Bonds(list(map(tuple, topology.term("bond")["atoms"].tolist())))],
        atom_resindex=np.concatenate(atom_residue),
        residue_segindex=np.repeat(np.arange(len(new)), [b - a for a, b in pairwise([*new, len(labels)])]))
    return MDAnalysis.Universe(made, *([list(map(str, trajectories))] if trajectories else []))
