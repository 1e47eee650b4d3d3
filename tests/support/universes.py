"""Universes of MDAnalysis on solutes and on DNA that is built on given base pairs."""

import MDAnalysis
import numpy as np

from chromabuild.build.duplex import build_dna
from chromabuild.dna.sequence import base_index
from chromabuild.dna.steps import dna_parameters, split_pair
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute


def universe_of(solute, frames=None, box=None):
    """The atoms of a solute; ``frames`` (f, n, 3) are its trajectory, ``box`` six numbers."""
    library = list(residue_library().values())
    chosen = [library[k] for k in solute.residue_template]
    made = MDAnalysis.Universe.empty(
        solute.n_atoms, solute.n_residues, len(solute.segment_name), atom_resindex=solute.atom_residue,
        residue_segindex=solute.residue_segment, trajectory=True)
    made.add_TopologyAttr("names", [str(name) for name in solute.atom_names()])
    made.add_TopologyAttr("resnames", [residue.pdb_name for residue in chosen])
    made.add_TopologyAttr("resids", solute.residue_number)
    made.add_TopologyAttr("segids", solute.segment_name)
    frames = np.asarray([solute.position] if frames is None else frames, dtype=np.float32)
    made.load_new(frames, format=MDAnalysis.coordinates.memory.MemoryReader, dt=2.0,
                  dimensions=None if box is None else np.tile(np.float32(box), (len(frames), 1)))
    return made


def built_dna(sequence, origin, frame, pair=None, circular=False):
    """A solute of both strands on base pairs (n, 3), (n, 3, 3); ``pair`` (n, 6): their parameters, kept exactly."""
    n = len(sequence)
    position, template, _ = build_dna(base_index(sequence), origin, frame, circular=circular)
    solute = Solute(position.astype(np.float32), template, np.tile(np.arange(1, n + 1), 2).astype(np.int32),
                    np.repeat([0, 1], n).astype(np.uint16), ["DI00", "DJ00"], ["I", "J"], np.array([0, n, 2 * n]),
                    ["DNA-I", "DNA-J"], np.array([-1, -1]))
    if pair is not None:
        (origin_i, frame_i), (origin_j, frame_j) = split_pair(origin, frame, pair)
        origins, frames = np.concatenate([origin_i, origin_j[::-1]]), np.concatenate([frame_i, frame_j[::-1]])
        library = list(residue_library().values())
        for k, first in enumerate(solute.residue_first_atom[:-1]):
            residue = library[template[k]]
            base = dna_parameters().base[residue.name[1]]
            for name, place in zip(base.atoms, base.position, strict=True):
                solute.position[first + residue.index[name]] = origins[k] + frames[k] @ place
    return solute
