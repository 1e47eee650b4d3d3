"""Synthetic scaffolds: cores joined by straight DNA, every frame consistent with its neighbours."""

import numpy as np

from chromabuild.dna.helix import crystal_path
from chromabuild.dna.steps import advance, dna_parameters
from mesoscale.scaffold import Scaffold


def synthetic_scaffold(nucleosomes, linker, flank, seed=1, wrapped=147):
    """A fibre of ``nucleosomes`` cores with ``linker`` bp between and ``flank`` bp beyond them, random sequence."""
    half = wrapped // 2
    path_origin, path_frame = (part[73 - half : 73 + half + 1] for part in crystal_path())
    step = dna_parameters().b_dna
    bps, core_origin, core_frame, first = [], [], [], []
    origin, frame = np.zeros(3), np.eye(3)

    def free(count):
        nonlocal origin, frame
        for _ in range(count):
            bps.append((origin, frame, -1))
            origin, frame = advance(origin, frame, step)

    free(flank)
    for k in range(nucleosomes):
        turned = frame @ path_frame[0].T
        centre = origin - turned @ path_origin[0]
        core_origin.append(centre)
        core_frame.append(turned)
        first.append(len(bps))
        bps += [(centre + turned @ o, turned @ f, k) for o, f in zip(path_origin, path_frame, strict=True)]
        origin, frame = advance(bps[-1][0], bps[-1][1], step)
        free(linker if k < nucleosomes - 1 else flank)
    first = np.array(first, dtype=np.int32)
    n = len(bps)
    letters = np.random.Generator(np.random.Philox(key=seed)).integers(0, 4, n)
    return Scaffold(
        name="synthetic",
        chromosome="chrS",
        position=np.arange(n),
        origin=np.array([bp[0] for bp in bps]),
        frame=np.array([bp[1] for bp in bps]),
        base=np.frombuffer(b"ACGT", dtype=np.uint8)[letters],
        nucleosome=np.array([bp[2] for bp in bps], dtype=np.int32),
        core_origin=np.array(core_origin).reshape(-1, 3),
        core_frame=np.array(core_frame).reshape(-1, 3, 3),
        dyad=first + half,
        first_bp=first,
        last_bp=first + wrapped - 1,
    )
