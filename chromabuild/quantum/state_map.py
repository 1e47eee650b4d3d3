"""Map files of chromaqm: which rank has which plane of which pair of states, or which object."""

from math import prod
from pathlib import Path

from chromabuild.base.errors import BadInputError
from chromabuild.scaling.placement import (
    Decomposition,
    hybrid_map,
    hybrid_planes,
    naive_map,
    prism_map,
    write_object_map,
    write_state_planes,
)
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
        _check_torus(torus, ranks)
        r = prism_map(Decomposition(pairs, planes, ranks // max(torus), 1), Torus(torus)).r
    write_state_planes(path, r, ranks)


def write_objects(path: Path, states: int, planes: int, ranks: int, grain: dict[str, int], groups: int = 0,
                  torus: tuple[int, int, int] | None = None) -> None:
    """Write which rank has which object: dealt in the order of their indices, in a hybrid map (`groups`), or in the
    prism map of a torus with one rank a node. `grain`: g_sets, rho_sets, chunks, subplanes, and s_grain and ortho_grain
    in states; 0: as chromaqm has it without a map, but for as many sets as the torus has prisms. Raises BadInputError
    where the numbers do not fit."""
    pairs = (states + 1) // 2
    blocks = [grain["s_grain"], grain["ortho_grain"]]
    if any(grain_of_states % 2 for grain_of_states in blocks):
        raise BadInputError(f"--s-grain {blocks[0]} and --ortho-grain {blocks[1]} must be even: states go in pairs")
    s_grain = blocks[0] // 2 or max(n for n in range(1, 17) if pairs % n == 0)
    _check_torus(torus, ranks)
    if groups and ranks % groups:
        raise BadInputError(f"--groups {groups} does not divide {ranks} ranks: take a divisor")
    sets = ranks // max(torus) if torus else planes // 4
    try:
        d = Decomposition(pairs, planes, grain["g_sets"] or sets, s_grain, blocks[1] // 2, grain["chunks"],
                          grain["subplanes"], grain["rho_sets"] or planes // 2)
        if torus is None:
            table = hybrid_map(d, ranks, groups) if groups else naive_map(d, ranks)
        else:
            table = prism_map(d, Torus(torus))
    except ValueError as error:
        raise BadInputError(f"{error}; grains are in pairs of states") from None
    write_object_map(path, d, table)


def _check_torus(torus: tuple[int, int, int] | None, ranks: int) -> None:
    if torus is not None and (min(torus) < 1 or prod(torus) != ranks):
        raise BadInputError(f"--torus {' '.join(map(str, torus))} has not the {ranks} nodes of --ranks")
