"""The driver of parts of chromaqm."""

import subprocess
from pathlib import Path

import pytest
from support.build_products import ROOT, newest


@pytest.fixture(scope="session")
def qm_driver(tmp_path_factory) -> Path:
    """The driver: of the build tree, else built now."""
    built = newest("qm_driver")
    if built is not None:
        return built
    folder = tmp_path_factory.mktemp("qm")
    subprocess.run(["cmake", "-S", ROOT / "tests/planewave/fortran", "-B", folder], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", folder, "-j2", "--target", "qm_driver"], check=True, capture_output=True)
    return folder / "qm_driver"
