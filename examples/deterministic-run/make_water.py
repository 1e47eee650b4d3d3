"""729 TIP3P waters on a lattice, each turned at random, in the files of GROMACS: water.top and water.gro."""

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

SPACING, SITES = 0.31, 9  # nm
TOP = """[ defaults ]
1 2 no 0.5 0.8333333333
[ atomtypes ]
OW 8 15.9994 0.0 A 0.315061 0.6364
HW 1 1.008 0.0 A 0.1 0.0
[ moleculetype ]
SOL 2
[ atoms ]
1 OW 1 SOL OW 1 -0.834 15.9994
2 HW 1 SOL HW1 1 0.417 1.008
3 HW 1 SOL HW2 1 0.417 1.008
[ bonds ]
1 2 1 0.09572 462750.4
1 3 1 0.09572 462750.4
[ angles ]
2 1 3 1 104.52 836.8
[ system ]
water
[ molecules ]
"""

axis = SPACING * (np.arange(SITES) + 0.5)
site = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
half = np.radians(104.52 / 2)
shape = 0.09572 * np.array([[0, 0, 0], [np.sin(half), np.cos(half), 0], [-np.sin(half), np.cos(half), 0]])
turned = np.einsum("nij,kj->nki", Rotation.random(len(site), random_state=1).as_matrix(), shape)
position = (site[:, None] + turned).reshape(-1, 3)

lines = ["water", str(len(position))]
for k, (x, y, z) in enumerate(position):
    lines.append(f"{k // 3 + 1:5d}SOL  {('OW', 'HW1', 'HW2')[k % 3]:>5s}{k + 1:5d}{x:8.3f}{y:8.3f}{z:8.3f}")
edge = SPACING * SITES
Path("water.gro").write_text("\n".join([*lines, f"{edge:.5f} {edge:.5f} {edge:.5f}"]) + "\n")
Path("water.top").write_text(TOP + f"SOL {len(site)}\n")
