"""Frames of beads that follow their segments, for tests that move particles about."""

import numpy as np

from mesoscale.cores import transported
from mesoscale.model import segment_ends


def carried(chain, position, frame):
    """Bead frames turned, without twist, along their segments."""
    start, end = segment_ends(chain, position, frame)
    direction = (end - start) / np.linalg.norm(end - start, axis=1)[:, None]
    frame = frame.copy()
    for p in np.flatnonzero(chain.core[:-1] == 0):
        b = transported(frame[p, :, 1], frame[p, :, 0], direction[p])
        frame[p] = np.stack([direction[p], b, np.cross(direction[p], b)], axis=1)
    return frame
