"""Bases that do not overlap: a sequence threaded on the path of another one stacks badly where the path is kinked.

Base pairs of a core keep the frames of the crystal, but the crystal's base pairs had their own buckle and propeller.
Here every base is a rigid body, tethered to where its base pair puts it, elastic against its partner, and pushed off
the bases of the neighbouring pairs (kernel ``base_stacking``).
"""

from functools import cache

import numpy as np

from chromabuild import _kernels
from chromabuild.dna.backbone import ATOM_CLASS, base_layout
from mesoscale.handle import Handle

PAIR_DEVIATION = np.array([0.2, 0.1, 0.3, 7.4, 6.6, 3.0])
"""Shear ... opening: of the order of the spread within PDB 1KX5, tighter where hydrogen bonds would suffer."""
TETHER = (0.4, np.radians(6.0))  # angstrom, radian
CONTACT = 3.15  # angstrom, between carbon or nitrogen of stacked bases
CONTACT_OXYGEN = 2.9  # angstrom, when one of them is oxygen
CONTACT_DEVIATION = 0.1
REACH = 4.2  # angstrom: pairs of atoms farther apart at the start never come into contact
ITERATIONS = 7
CONVERGED = 5e-3  # angstrom and radian
PIECE, MARGIN = 200, 12  # base pairs; what one base does is not felt some pairs away


@cache
def _stacking() -> Handle:
    """The kernel's model of stacked bases."""
    kernel, layout = _kernels.base_stacking, base_layout()
    handle = Handle(kernel.create_stacking(), kernel.free_stacking, "model of stacked bases")
    kernel.set_bases(handle.number, size_of=layout.size, atom=layout.position.transpose(2, 1, 0),
                     is_oxygen=(layout.atom_class == ATOM_CLASS["O"]).T)
    shift, turn = TETHER
    kernel.set_elasticity(handle.number, pair_sigma=PAIR_DEVIATION, tether_shift=shift, tether_turn=turn)
    kernel.set_contacts(handle.number, contact=CONTACT, contact_oxygen=CONTACT_OXYGEN, sigma=CONTACT_DEVIATION,
                        reach=REACH)
    return handle


def relax_bases(
    bases: np.ndarray, origin: np.ndarray, frame: np.ndarray, pair_rest: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Base frames without overlaps between neighbouring base pairs.

    Args:
        bases: (2n,) 0..3 for A, C, G, T; strand I, then strand J, each 5' to 3'.
        origin: (2n, 3) base origins as the base pairs put them, angstrom.
        frame: (2n, 3, 3) base frames, each in its own strand's sense.
        pair_rest: (n, 6) shear ... opening at rest, angstrom and degree.
        threads: OpenMP threads; the result does not depend on it.

    Returns:
        Origins (2n, 3) and frames (2n, 3, 3).
    """
    n = len(bases) // 2
    # Bodies in the order I0, J'0, I1, J'1, ...: J' is the partner of I.
    bodies = np.stack([np.arange(n), 2 * n - 1 - np.arange(n)], axis=1).ravel()
    place = np.array(origin[bodies].T, order="F")
    turn = np.array(frame[bodies].transpose(1, 2, 0), order="F")
    failed = _kernels.base_stacking.relax_stack(
        _stacking().number, kind=bases[bodies] + 1, rest=pair_rest.T, piece=PIECE, margin=MARGIN,
        most_iterations=ITERATIONS, converged=CONVERGED, n_threads=threads, place=place, turn=turn,
    )  # fmt: skip
    if failed:
        raise ValueError(f"{failed} base-pair steps have more contacts than stacked bases can have: base pairs overlap")
    result_origin, result_frame = np.empty_like(origin, dtype=float), np.empty_like(frame, dtype=float)
    result_origin[bodies], result_frame[bodies] = place.T, turn.transpose(2, 0, 1)
    return result_origin, result_frame
