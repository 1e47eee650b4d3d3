"""The water models that can be built: geometry, and the massless site of four-point ones."""

from dataclasses import dataclass

import numpy as np

from chromabuild.base.force_fields import WaterName


@dataclass(frozen=True)
class WaterModel:
    """Geometry of a rigid water."""

    residue: str
    """Name in the residue library."""
    bond: float
    """O-H, angstrom."""
    angle: float
    """H-O-H, degree."""
    site_distance: float = 0.0
    """Of a charge on the bisector from the oxygen, angstrom; 0 where there is none."""

    @property
    def n_atoms(self) -> int:
        """Atoms of a molecule, the site among them."""
        return 4 if self.site_distance else 3

    def shaped(self, position: np.ndarray) -> np.ndarray:
        """(n, n_atoms, 3) int32 molecules of this model from others (n, 3, 3), 0.001 angstrom, O and H.

        Oxygens stay, the hydrogens keep their plane and the direction of their bisector.
        """
        first, second = (position[:, k] - position[:, 0] for k in (1, 2))
        middle, across = (_unit(v.astype(float)) for v in (first + second, first - second))
        across = _unit(across - (across * middle).sum(1, keepdims=True) * middle)
        half = np.radians(self.angle / 2)
        depth, width = 1000 * self.bond * np.cos(half), 1000 * self.bond * np.sin(half)
        away = [depth * middle + width * across, depth * middle - width * across]
        if self.site_distance:
            away.append(1000 * self.site_distance * middle)
        sites = [np.zeros_like(middle), *away]
        return position[:, :1] + np.rint(np.stack(sites, axis=1)).astype(np.int32)


WATER_MODELS: dict[WaterName, WaterModel] = {
    # Jorgensen et al., J. Chem. Phys. 79, 926 (1983).
    "tip3p": WaterModel("HOH", 0.9572, 104.52),
    # Berendsen, Grigera and Straatsma, J. Phys. Chem. 91, 6269 (1987).
    "spce": WaterModel("HOH", 1.0, 109.47),
    # Izadi, Anandakrishnan and Onufriev, J. Phys. Chem. Lett. 5, 3863 (2014).
    "opc": WaterModel("HOH4", 0.87243313, 2 * np.degrees(np.arcsin(1.37120510 / 2 / 0.87243313)), 0.15939833),
    # Horn et al., J. Chem. Phys. 120, 9665 (2004).
    "tip4pew": WaterModel("HOH4", 0.9572, 104.52, 0.125),
}


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
