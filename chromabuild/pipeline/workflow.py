"""Where the bundled workflow and example loci are, and how Snakemake is started on them."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from chromabuild.base.errors import BadInputError


def workflow_folder() -> Path:
    """``workflows/``, inside the installed package or in the source tree."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "workflows", package.parent / "workflows"):
        if (folder / "workflow" / "Snakefile").is_file():
            return folder
    raise BadInputError("the bundled workflow is missing: reinstall chromabuild")


def run_snakemake(config: Path, overrides: list[str], seed: int | None, threads: int, dry_run: bool,
                  arguments: list[str]) -> int:
    """Run the chain of a settings file as a workflow in the current folder; gives Snakemake's exit code.

    ``arguments`` are handed to snakemake. Raises BadInputError when snakemake is not installed.
    """
    if find_spec("snakemake") is None:
        raise BadInputError("snakemake is not installed: pip install 'chromabuild[workflow]'")
    settings = [f"settings={config.resolve()}"]
    if overrides:
        settings.append(f"overrides={[*overrides]!r}")
    if seed is not None:
        settings.append(f"seed={seed}")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(workflow_folder() / "workflow" / "Snakefile"),
               "--cores", str(threads), *(["--dry-run"] if dry_run else []), *arguments]
    if "--config" not in command:  # snakemake takes the last one only: what the user configures stands in the same list
        command.append("--config")
    place = command.index("--config") + 1
    command[place:place] = settings
    return subprocess.run(command, check=False, stdout=sys.stderr).returncode
