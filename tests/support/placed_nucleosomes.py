"""Nucleosomes placed rigidly, alone or too close."""

from pathlib import Path

import numpy as np

from chromabuild.molecule.residues import residue_names
from chromabuild.molecule.solute import Solute

STEP = 0.003
MOLECULES = {"I": "DNA-I", "J": "DNA-J", "A": "H3", "B": "H4", "C": "H2A", "D": "H2B",
             "E": "H3", "F": "H4", "G": "H2A", "H": "H2B"}


def place_nucleosomes(transforms, keep="IJABCDEFGH"):
    """A Solute of copies of the nucleosome, each turned and shifted; ``keep`` names the chains wanted."""
    data = np.load(Path(__file__).parent / "data" / "nucleosome.npz")
    ids = {name: k for k, name in enumerate(residue_names())}
    template = np.array([ids[name.decode()] for name in data["template"]], dtype=np.uint16)
    chain = np.array([name.decode() for name in data["chain"]])
    whole = Solute(np.zeros((len(data["steps"]), 3), dtype=np.float32), template, data["number"], template * 0,
                   ["A"], ["A"], np.array([0, len(template)]), ["all"], np.array([0]))
    position = data["steps"] * STEP
    parts, templates, numbers, segments, names, chains, molecules, nucleosome = ([] for _ in range(8))
    first = [0]
    for k, (rotation, shift) in enumerate(transforms):
        for c in keep:
            here = chain == c
            parts.append(position[here[whole.atom_residue]] @ np.asarray(rotation).T + shift)
            templates.append(template[here])
            numbers.append(data["number"][here].astype(np.int32))
            segments.append(np.full(here.sum(), len(names), dtype=np.uint16))
            names.append(f"{c}{k:03d}")
            chains.append(c)
            first.append(first[-1] + int(here.sum()))
            molecules.append(MOLECULES[c])
            nucleosome.append(-1 if c in "IJ" else k)
    return Solute(np.concatenate(parts).astype(np.float32), np.concatenate(templates), np.concatenate(numbers),
                  np.concatenate(segments), names, chains, np.array(first), molecules,
                  np.array(nucleosome, dtype=np.int32))


def joined(solutes):
    """One Solute of several, in the given order; segment ids must be unique."""
    first, segments, residues = [0], 0, 0
    parts = []
    for s in solutes:
        parts.append(s.residue_segment + segments)
        segments += len(s.segment_name)
        first += (s.molecule_first_residue[1:] + residues).tolist()
        residues += s.n_residues
    return Solute(
        np.concatenate([s.position for s in solutes]), np.concatenate([s.residue_template for s in solutes]),
        np.concatenate([s.residue_number for s in solutes]), np.concatenate(parts).astype(np.uint16),
        [name for s in solutes for name in s.segment_name], [name for s in solutes for name in s.segment_chain],
        np.array(first), [name for s in solutes for name in s.molecule_name],
        np.concatenate([s.molecule_nucleosome for s in solutes]))
