"""Small systems of known ingredients."""

import pytest
from support.molecular_systems import MolecularSystem, solvated


@pytest.fixture(scope="session")
def systems() -> dict[str, MolecularSystem]:
    """Water and salt, a peptide, a duplex: minimised a little."""
    return {"water": solvated(None, 25.0), "peptide": solvated("peptide", 30.0), "duplex": solvated("duplex", 36.0)}
