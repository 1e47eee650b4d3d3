"""Map files of chromaqm: which rank has which plane of which pair of states."""

from math import prod
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.scaling.placement import Decomposition, hybrid_planes, prism_map, write_state_planes
from chromabuild.scaling.topology import Torus


def write_map(path: Path, states: int, planes: int, ranks: int, groups: int = 1,
              torus: tuple[int, int, int] | None = None) -> None:
    """Write which rank has which plane of which pair of states: states dealt to groups of ranks and planes within each,
    or the prism map of a torus with one rank a node. Raises BadInputError where the numbers do not fit."""
    pairs = (states + 1) // 2
    if torus is None:
        if ranks % groups:
            raise BadInputError(f"--groups {groups} does not divide {ranks} ranks: take a divisor")
        r = hybrid_planes(pairs, planes, ranks, groups)
    else:
        if min(torus) < 1 or prod(torus) != ranks:
            raise BadInputError(f"--torus {' '.join(map(str, torus))} has not the {ranks} nodes of --ranks")
        r = prism_map(Decomposition(pairs, planes, ranks // max(torus), 1), Torus(torus)).r
    write_state_planes(path, r, ranks)
