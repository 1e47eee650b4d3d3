"""Systems that several test files look at; built once."""

import pytest
from molecular_systems import MolecularSystem, solvated


@pytest.fixture(scope="session")
def systems() -> dict[str, MolecularSystem]:
    """Minimised: 1,500 to 4,500 atoms of water, a solvated peptide of 11 residues, a solvated duplex of 8 bp."""
    return {"water": solvated(None, 25.0), "peptide": solvated("peptide", 30.0), "duplex": solvated("duplex", 36.0)}


@pytest.fixture(scope="session")
def equilibrated() -> dict[str, MolecularSystem]:
    """4 ps at 300 K after that: enough for a steady total energy."""
    return {"water": solvated(None, 26.0, 2000), "peptide": solvated("peptide", 27.0, 2000)}
