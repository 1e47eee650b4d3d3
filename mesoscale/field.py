"""A table of the field of a core's charge sites: a charge meets a core at a cost that does not grow with its sites.

Fitted cores have 300 sites; two of them in contact are 90,000 pairs. With the table they are 300 look-ups. The kernel
core_field says how the potential is split; here are its grid and the coefficients of its B-spline.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import spline_filter

from mesoscale import _kernels
from mesoscale.handle import Handle

Array = NDArray[np.float64]
# The error of a cubic B-spline is about edge^4/384 times the fourth derivative, which a site of charge q has most of
# where the table takes over: 24 l_B q/joint^5. With 5 e some 1e-4 kBT per e.
EDGE = 0.4  # nm between points of the table
JOINT = 2.0  # nm; nearer sites are summed one by one
CELL = 1.0  # nm, edges of the cells whose near sites are listed
LANES = 4  # of the kernel: three parts and a gap
WORTH = 8  # cores from which a table pays for itself


class CoreField:
    """The table of a core's field in the kernels; freed with the last reference to it."""

    def __init__(self, handle: Handle) -> None:
        """Own a table that was filled."""
        self._handle = handle

    @property
    def number(self) -> int:
        """What the kernel's procedures take."""
        return self._handle.number


def core_field(site: Array, site_charge: Array, kappa: float, cutoff: float) -> CoreField:
    """The table of sites (s, 3) in nm with charges (s,), for an inverse screening length (1/nm) and a cutoff (nm)."""
    reach = cutoff + 3 * EDGE  # a point and its neighbours beyond the cutoff of all sites are zero
    lower = site.min(axis=0) - reach
    points = np.ceil((site.max(axis=0) + reach - lower) / EDGE).astype(int) + 1
    cell_lower = site.min(axis=0) - JOINT
    cells = np.ceil((site.max(axis=0) + JOINT - cell_lower) / CELL).astype(int)
    border = _kernels.field_table
    number = border.create_field(lower=lower, edge=EDGE, joint=JOINT, kappa=kappa, cutoff=cutoff)
    handle = Handle(number, border.free_field, "table of a core's field")
    smooth = border.sample_field(
        number, site=np.asfortranarray(site.T), site_charge=site_charge, nx=points[0], ny=points[1], nz=points[2]
    )
    coefficient = np.zeros((LANES, *points), np.float32, order="F")
    for part in range(len(smooth)):
        coefficient[part] = spline_filter(smooth[part], order=3, mode="mirror")
    border.set_coefficients(number, coefficient)

    middle = np.stack(np.meshgrid(*(np.arange(n) + 0.5 for n in cells), indexing="ij"), axis=-1) * CELL + cell_lower
    # From the middle of a cell to its nearest point that a site can be near of: its half diagonal at most.
    flat = middle.transpose(2, 1, 0, 3).reshape(-1, 3)  # x runs fastest, as in the kernel
    near = np.linalg.norm(flat[:, None] - site[None], axis=2) < JOINT + 0.5 * np.sqrt(3) * CELL
    first = np.concatenate([[0], np.cumsum(near.sum(axis=1))]) + 1
    listed = np.nonzero(near)[1] + 1
    border.set_near_sites(
        number, site=np.asfortranarray(site.T), site_charge=site_charge, lower=cell_lower, edge=CELL,
        cells=cells.astype(np.int32), cell_first=first.astype(np.int32), cell_site=listed.astype(np.int32),
    )  # fmt: skip
    return CoreField(handle)
