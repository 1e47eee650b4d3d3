"""What a result was made with."""

import platform
from importlib.metadata import PackageNotFoundError, version

from chromabuild import __version__

PACKAGES = ("numpy", "scipy", "h5py", "openmm", "gemmi", "pydantic", "zstandard", "blake3")


def versions() -> dict[str, str]:
    """Versions of chromabuild, Python and the packages that results depend on."""
    found = {"chromabuild": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
