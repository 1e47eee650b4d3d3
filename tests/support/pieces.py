"""Parts of a solute."""

from dataclasses import replace

import numpy as np

from chromabuild.molecule.solute import Solute


def molecules_of(solute: Solute, molecules: list[int]) -> Solute:
    """The named molecules as a solute of their own."""
    first = solute.molecule_first_residue
    residues = np.concatenate([np.arange(first[k], first[k + 1]) for k in molecules])
    segments, number_of_segment = np.unique(solute.residue_segment[residues], return_inverse=True)
    return replace(
        solute,
        position=solute.position[np.isin(solute.atom_residue, residues)],
        residue_template=solute.residue_template[residues],
        residue_number=solute.residue_number[residues],
        residue_segment=number_of_segment.astype(np.uint16),
        segment_name=[solute.segment_name[s] for s in segments],
        segment_chain=[solute.segment_chain[s] for s in segments],
        molecule_first_residue=np.concatenate([[0], np.cumsum(np.diff(first)[molecules])]).astype(np.int64),
        molecule_name=[solute.molecule_name[k] for k in molecules],
        molecule_nucleosome=solute.molecule_nucleosome[molecules],
    )
