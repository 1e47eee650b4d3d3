"""Systems that several test files look at; built once."""

import pytest
from molecular_systems import MolecularSystem, solvated


@pytest.fixture(scope="session")
def systems() -> dict[str, MolecularSystem]:
    """Minimised: 1,500 to 4,500 atoms of water, a solvated peptide of 11 residues, a solvated duplex of 8 bp."""
    return {"water": solvated(None, 25.0), "peptide": solvated("peptide", 30.0), "duplex": solvated("duplex", 36.0)}
