"""DNA and octamers joined to one Solute."""

from collections.abc import Sequence

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.solute import CHAIN_LETTERS, MAX_RESIDUES_PER_SEGMENT, Solute, base_36
from chromabuild.nucleosome.octamer import Octamer, histone_segid, place_octamer, protein_segid

MOST_SEGMENTS = 2**16


def assemble_solute(dna_position: np.ndarray, dna_template: np.ndarray, octamers: list[Octamer],
                    core_origin: np.ndarray, core_frame: np.ndarray, circular: bool = False,
                    proteins: Sequence[Octamer] = ()) -> Solute:
    """Join DNA, as ``build_dna`` gives it, and octamers on their cores in the order that ``Solute`` prescribes.

    Args:
        dna_position: (atoms, 3) angstrom.
        dna_template: (2n,) library indices.
        octamers: one for each of m cores.
        core_origin: (m + k, 3) angstrom, of nucleosomes, then of other proteins.
        core_frame: (m + k, 3, 3).
        circular: whether ``build_dna`` closed the strands to circles.
        proteins: k that are no nucleosomes.
    """
    nucleosomes, octamers = len(octamers), [*octamers, *proteins]
    n = len(dna_template) // 2
    segment_name, segment, number = _dna_segments(n)
    dna_segments = len(segment_name)
    segment_name += [histone_segid(k, chain) if k < nucleosomes else protein_segid(k - nucleosomes, chain)
                     for k, octamer in enumerate(octamers) for chain in octamer.chain]
    if len(segment_name) > MOST_SEGMENTS:
        raise BadInputError(f"the solute has {len(segment_name)} segments, at most {MOST_SEGMENTS} can be counted: "
                            "build the locus in parts")
    chains = [len(octamer.chain) for octamer in octamers]
    first_segment = dna_segments + np.concatenate([[0], np.cumsum(chains)])
    residues_of_chain = np.concatenate([np.zeros(0, dtype=int), *(np.bincount(o.residue_chain) for o in octamers)])
    histone_residues = 2 * n + np.concatenate([[0], np.cumsum(residues_of_chain)])
    first_residue = 2 * n + np.cumsum([0, *(len(octamer.residue_template) for octamer in octamers)])
    templates = [octamer.residue_template for octamer in octamers]
    histone_segments = [first_segment[k] + octamer.residue_chain for k, octamer in enumerate(octamers)]
    placed = [place_octamer(octamer, origin, frame)
              for octamer, origin, frame in zip(octamers, core_origin, core_frame, strict=True)]
    return Solute(
        position=np.concatenate([dna_position.astype(np.float32), *placed]),
        residue_template=np.concatenate([dna_template, *templates]).astype(np.uint16),
        residue_number=np.concatenate([number, *(octamer.residue_number for octamer in octamers)]).astype(np.int32),
        residue_segment=np.concatenate([segment, *histone_segments]).astype(np.uint16),
        segment_name=segment_name,
        segment_chain=[CHAIN_LETTERS[k % len(CHAIN_LETTERS)] for k in range(len(segment_name))],
        molecule_first_residue=np.concatenate([[0, n], histone_residues]).astype(np.int64),
        molecule_name=["DNA-I", "DNA-J", *(name for octamer in octamers for name in octamer.histone)],
        molecule_nucleosome=np.concatenate([[-1, -1], np.repeat(
            [k if k < nucleosomes else -1 for k in range(len(octamers))], chains)]).astype(np.int32),
        circular=(0, 1) if circular else (),
        links=tuple((int(first) + a, int(first) + b) for first, octamer in zip(first_residue, octamers, strict=False)
                    for a, b in octamer.links),
    )  # fmt: skip


def _dna_segments(n: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Segment names, segment of every residue (2n,), residue numbers (2n,) of both strands."""
    pieces = -(-n // MAX_RESIDUES_PER_SEGMENT)
    names = [f"D{strand}{base_36(k, 2)}" for strand in "IJ" for k in range(pieces)]
    segment, within = np.divmod(np.arange(n), MAX_RESIDUES_PER_SEGMENT)
    return names, np.concatenate([segment, pieces + segment]), np.tile(within + 1, 2)
