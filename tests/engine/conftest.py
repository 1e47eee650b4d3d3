"""Systems that several test files look at; built once."""

import subprocess
from pathlib import Path

import pytest
from support.build_products import ROOT, newest
from support.molecular_systems import MolecularSystem, solvated


@pytest.fixture(scope="session")
def systems() -> dict[str, MolecularSystem]:
    """Minimised: 1,500 to 4,500 atoms of water, a solvated peptide of 11 residues, a solvated duplex of 8 bp."""
    return {"water": solvated(None, 25.0), "peptide": solvated("peptide", 30.0), "duplex": solvated("duplex", 36.0)}


@pytest.fixture(scope="session")
def drivers(tmp_path_factory) -> Path:
    """Folder with the drivers of the forces: of the build tree, else built now."""
    built = newest("force_driver_double")
    if built is not None:
        return built.parent
    folder = tmp_path_factory.mktemp("forces")
    subprocess.run(["cmake", "-S", ROOT / "tests/engine/fortran", "-B", folder], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", folder, "-j2"], check=True, capture_output=True)
    return folder
