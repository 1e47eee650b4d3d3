"""What the build makes for the tests, beside the package."""

import os
from pathlib import Path

import chromabuild

ROOT = Path(__file__).resolve().parents[2]


def newest(name: str) -> Path | None:
    """The newest file of that name among what was built with the chromabuild that is imported: of the debug build or of
    the others; None where there is none."""
    debug = "debug-site" in Path(chromabuild.__file__).parts
    built = [path for path in ROOT.glob(f"build/**/{name}")
             if ("debug" in path.relative_to(ROOT / "build").parts) == debug]
    return max(built, key=os.path.getmtime, default=None)
