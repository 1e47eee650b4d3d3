"""Virtual sites of an OpenMM System as our topology file has them: r = r1 + w2 (r2 - r1) + w3 (r3 - r1)."""

import numpy as np
import openmm

from chromabuild.base.constants import ANGSTROM_PER_NM
from chromabuild.base.errors import BadInputError

_TOLERANCE = 1e-6
"""Of the sum of weights, and of what a site may stand out of the plane of its parents (nm)."""


def read_sites(system: openmm.System, rigid: openmm.System | None = None) -> dict[str, np.ndarray]:
    """Sites of three-particle averages: ``atoms`` (m, 4) int64, site and parents, ``w2`` and ``w3`` (m,).

    A site in a local frame is such an average where constraints of ``rigid`` hold the triangle of its parents and it
    lies in their plane (lone pairs of CHARMM's four-point waters). Raises BadInputError for any other kind of site.
    """
    atoms, weights = [], []
    distance = _distances(rigid) if rigid is not None else {}
    for i in range(system.getNumParticles()):
        if not system.isVirtualSite(i):
            continue
        site = system.getVirtualSite(i)
        weight = None
        if isinstance(site, openmm.ThreeParticleAverageSite):
            weight = np.array([site.getWeight(k) for k in range(3)])
        elif isinstance(site, openmm.LocalCoordinatesSite) and site.getNumParticles() == 3:
            weight = _in_plane(site, distance)
        if weight is None or abs(weight.sum() - 1) > _TOLERANCE:
            raise BadInputError("there is a virtual site of a kind that the engine does not have "
                                f"({type(site).__name__}): it has averages of three atoms that constraints hold "
                                "together, as in OPC and TIP4P water; use a force field without others")
        atoms.append([i, *(site.getParticle(k) for k in range(3))])
        weights.append(weight)
    table = np.array(weights).reshape(-1, 3)
    return {"atoms": np.array(atoms, dtype=np.int64).reshape(-1, 4), "w2": table[:, 1], "w3": table[:, 2]}


def no_sites() -> dict[str, np.ndarray]:
    """What ``read_sites`` returns where there are none."""
    return {"atoms": np.empty((0, 4), dtype=np.int64), "w2": np.empty(0), "w3": np.empty(0)}


def _distances(system: openmm.System) -> dict[tuple[int, int], float]:
    """Constrained distances, nm, by pair in ascending order."""
    rows = (system.getConstraintParameters(k) for k in range(system.getNumConstraints()))
    return {(min(i, j), max(i, j)): distance.value_in_unit(openmm.unit.nanometer) for i, j, distance in rows}


def _in_plane(site: openmm.LocalCoordinatesSite, distance: dict[tuple[int, int], float]) -> np.ndarray | None:
    """Weights of the parents of a site in their plane; None where it is not, or where they are not held together."""
    parents = [site.getParticle(k) for k in range(3)]
    a, b, c = (distance.get((min(i, j), max(i, j))) for i, j in
               ((parents[0], parents[1]), (parents[0], parents[2]), (parents[1], parents[2])))
    if a is None or b is None or c is None:
        return None
    along = (a * a + b * b - c * c) / (2 * a)
    corner = np.array([[0.0, 0, 0], [a, 0, 0], [along, np.sqrt(max(0.0, b * b - along * along)), 0]])
    origin, x, y = (np.array(weights) @ corner for weights in
                    (site.getOriginWeights(), site.getXWeights(), site.getYWeights()))
    z = np.cross(x, y)
    local = np.array(site.getLocalPosition().value_in_unit(openmm.unit.nanometer))
    x, z = x / np.linalg.norm(x), z / np.linalg.norm(z)
    place = origin + local @ np.array([x, np.cross(z, x), z])
    if abs(place[2]) > _TOLERANCE or corner[2, 1] < _TOLERANCE * ANGSTROM_PER_NM:
        return None
    w3 = place[1] / corner[2, 1]
    w2 = (place[0] - w3 * corner[2, 0]) / a
    return np.array([1 - w2 - w3, w2, w3])
