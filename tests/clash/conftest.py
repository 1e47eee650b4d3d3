"""Structures for the clash tests."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.placed_nucleosomes import place_nucleosomes


@pytest.fixture(scope="session")
def nucleosome():
    """One nucleosome, as in the crystal."""
    return place_nucleosomes([(np.eye(3), np.zeros(3))])


@pytest.fixture(scope="session")
def shifted_octamer(nucleosome):
    """A nucleosome whose octamer is displaced by 0.8 A and 1 degree: protein runs into DNA all around."""
    position = nucleosome.position.astype(np.float64)
    protein = slice(int(nucleosome.molecule_first_atom[2]), None)
    centre = position[protein].mean(axis=0)
    turn = Rotation.from_euler("xyz", [1.0, 1.0, 0.0], degrees=True)
    position[protein] = turn.apply(position[protein] - centre) + centre + [0.8, 0.0, 0.0]
    return replace(nucleosome, position=position.astype(np.float32))
