"""The examples run. Those that a tutorial runs as well, or that repeat the demo, are left to people."""

import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOT_HERE = {"demo-locus", "import-npt"}
SAYS = {
    "linker-histones": "ring piercings", "marks-and-variants": "H2A.Z",
    "marked-promoter": "overlaps: 0", "hi-c-restraints": "restraints kept: 1",
    "clash-check": "exit code 4: clashes remain", "shards-only": "shards", "deterministic-run": "the same bits",
}

pytestmark = pytest.mark.slow


def test_every_example_is_listed_and_explained():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders == NOT_HERE | SAYS.keys()
    readme = (EXAMPLES / "README.md").read_text()
    for name in folders:
        assert f"[{name}]({name})" in readme and (EXAMPLES / name / "README.md").is_file()


@pytest.mark.parametrize("name", SAYS)
def test_example(name, tmp_path, user_environment):
    folder = shutil.copytree(EXAMPLES / name, tmp_path / name)
    done = subprocess.run([folder / "run.sh"], env=user_environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert SAYS[name] in done.stdout
    if name == "shards-only":
        before, after = (line for line in done.stdout.splitlines() if line.endswith("brick_00003.cbb"))
        assert before == after
