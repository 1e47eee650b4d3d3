"""Plane waves beside the force field along a scan of a cluster."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.progress import Progress, silent
from chromabuild.base.summary import Summary
from chromabuild.forcefield.topology_file import Topology
from chromabuild.quantum.cluster import Cluster, refuse_overlaps
from chromabuild.quantum.cluster_force_field import ClusterForceField
from chromabuild.quantum.points import (
    Method,
    PointRun,
    box_around,
    compute_all,
    dispersion_of,
    nearest_first,
    refuse_potentials,
)
from chromabuild.quantum.scan import Scan, along_axes


@dataclass(frozen=True)
class Check:
    """Energies (p,) of a scan in kcal/mol, and forces on pieces as built."""

    cluster: Cluster
    scan: Scan
    method: Method
    box: np.ndarray
    """(3,) angstrom."""
    quantum: np.ndarray
    """From the farthest point of a distance, or the lowest of a torsion."""
    force_field: np.ndarray
    piece_forces: tuple[np.ndarray, np.ndarray]
    """(f, 3) each, by plane waves and by the force field, kcal/mol/angstrom. Bonds within a piece do not count."""

    @property
    def piece_names(self) -> list[str]:
        """Of the residues that each piece is of."""
        names: list[list[str]] = [[] for _ in self.cluster.piece_charge]
        for label, piece in zip(self.cluster.label, self.cluster.piece, strict=True):
            name = label.rsplit(":", 1)[0]
            if name not in names[piece]:
                names[piece].append(name)
        return [" + ".join(parts) for parts in names]

    def deviation(self) -> float:
        """Root mean square difference of the curves about their means, over points below 10 kcal/mol of the lowest in
        plane waves: beyond, no simulation goes. kcal/mol."""
        low = self.quantum <= self.quantum.min() + 10.0
        difference = (self.force_field - self.quantum)[low]
        return float(np.sqrt(np.mean((difference - difference.mean())**2)))

    def minima(self) -> tuple[float, float]:
        """Where both curves are lowest, by a parabola through three points; at an end of the scan the end itself."""
        return lowest_of(self.scan.value, self.quantum), lowest_of(self.scan.value, self.force_field)

    def as_dict(self) -> Summary:
        """Plain data."""
        lowest = self.minima()
        return {
            "coordinate": self.scan.coordinate, "value": self.scan.value.tolist(),
            "as_built": float(self.scan.value[self.scan.as_built]),
            "plane_waves": self.quantum.tolist(), "force_field": self.force_field.tolist(),
            "minimum_plane_waves": lowest[0], "minimum_force_field": lowest[1], "deviation": self.deviation(),
            "atoms": len(self.cluster.element), "charge": self.cluster.total_charge,
            "functional": self.method.functional, "cutoff": self.method.cutoff,
            "dispersion": self.method.with_dispersion, "box": self.box.tolist(),
            "pieces": [{"name": name, "charge": charge, "plane_waves": waves.tolist(), "force_field": field.tolist()}
                       for name, charge, waves, field in zip(self.piece_names, self.cluster.piece_charge.tolist(),
                                                             *self.piece_forces, strict=True)]}


def run_check(topology: Topology, cluster: Cluster, scan: Scan, method: Method, folder: Path,
              progress: Progress = silent) -> Check:
    """Compute all points of a scan, each from the states of its neighbour; files of each in ``folder``.

    Raises what chromaqm.run raises, with points that are done kept for the next time; before the first of them
    BadInputError for what would end a later one.
    """
    position = along_axes(scan)
    is_atom = np.array([element != "" for element in cluster.element])
    elements = [element for element in cluster.element if element]
    box = box_around(position[:, is_atom])
    for value, place in zip(scan.value, position, strict=True):
        refuse_overlaps(cluster, place, f" at a {scan.coordinate} of {value:g}")
    refuse_potentials(method, elements)
    order = nearest_first(position[:, is_atom], scan.as_built)
    runs: dict[int, PointRun] = {}
    for k, neighbour in order:
        is_neighbour = any(beside == k != one for one, beside in order)
        runs[k] = PointRun(folder, f"point_{k:02d}", elements, position[k, is_atom], box, cluster.total_charge, method,
                           runs.get(neighbour), is_neighbour)
    runs[scan.as_built].refuse()
    if method.with_dispersion:
        dispersion_of(elements, position[0, is_atom], method.functional)
    field = ClusterForceField(topology, cluster)
    folder.mkdir(parents=True, exist_ok=True)
    compute_all(list(runs.values()), lambda done: progress(
        f"{scan.coordinate} {scan.value[order[done][0]]:.2f}, {done + 1} of {len(order)}"))
    points = [runs[k].point() for k in range(len(runs))]
    quantum = np.array([point.energy for point in points])
    classical = np.array([field.energy(place) for place in position])
    zero = len(quantum) - 1 if scan.coordinate == "distance" else None
    built = position[scan.as_built]
    n_pieces = len(cluster.piece_charge)
    forces = np.zeros((n_pieces, 3))
    np.add.at(forces, cluster.piece[is_atom], points[scan.as_built].forces)
    return Check(cluster, scan, method, box,
                 quantum - (quantum.min() if zero is None else quantum[zero]),
                 classical - (classical.min() if zero is None else classical[zero]),
                 (forces, field.piece_forces(built)))


def lowest_of(value: np.ndarray, energy: np.ndarray) -> float:
    """Where a curve is lowest: by a parabola through the lowest point and its neighbours."""
    k = int(energy.argmin())
    if k in (0, len(value) - 1):
        return float(value[k])
    a, b, _ = np.polyfit(value[k - 1:k + 2] - value[k], energy[k - 1:k + 2], 2)
    away = -0.5 * b / a
    # A parabola through points far apart says nothing: believe it near the lowest of them only.
    return float(value[k] + (away if abs(away) <= 0.5 * min(np.diff(value[k - 1:k + 2])) else 0.0))
