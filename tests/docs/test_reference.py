"""What the site says of the code is what the code says, and the version stands in one place."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from chromabuild.quantum.chromaqm import executable

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def pages():
    """The generated pages, made as the site makes them."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from generate import api, commands, control_keys, genesis_keys, settings

        makers = (api, commands, control_keys, genesis_keys, settings)
        return {maker.__name__.split(".")[-1]: maker.pages() for maker in makers}
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize(("page", "table", "least"), [
    ("control-keys.md", "engine/input/control_keys.f90", 80), ("quantum-keys.md", "planewave/input/qm_keys.f90", 25)])
def test_every_key_is_described(pages, page, table, least):
    text = pages["control_keys"][page]
    keys = set(re.findall(r'key_t\("(\w+)", "(\w+)(?:#)?"', (ROOT / "fortran" / table).read_text()))
    assert len(keys) > least
    for section, name in keys:
        part = text.split(f"## `[{section}]`")[1].split("\n## ")[0]
        assert re.search(rf"^\| `{name}1?` ", part, re.MULTILINE), f"{section} {name}"


def test_every_key_of_genesis_is_described(pages):
    text = pages["genesis_keys"]["genesis-keys.md"]
    source = (ROOT / "fortran/engine/input/genesis_keys.f90").read_text()
    keys = re.findall(r'genesis_key_t\("(\w+)", "([\w*#]+)", is_(\w+)', source)
    assert len(keys) > 120
    for section, name, kind in keys:
        part = text.split(f"## {kind.capitalize()}\n")[1].split("\n## ")[0]
        assert f"| `[{section}]` | `{name}` |" in part, f"{section} {name}"


def test_every_setting_is_described(pages):
    text = pages["settings"]["settings.md"]
    file = text.split("```yaml\n")[1].split("```")[0]
    for section, values in yaml.safe_load(file).items():
        part = text.split(f"## `{section}`")[1].split("\n## ")[0] if isinstance(values, dict) else text
        for key in values if isinstance(values, dict) else [section]:
            assert f"\n| `{key}` |" in part, f"{section}.{key}"


def test_every_command_is_described(pages):
    text = pages["commands"]["commands.md"]
    for name in ("init", "all", "scaffold", "build", "clash check", "shards merge", "import", "workflow"):
        assert f"`chromabuild {name}`" in text
    assert "\b" not in text


def test_every_public_module_has_a_place(pages):
    text = "\n".join(pages["api"].values())
    for path in (ROOT / "chromabuild").glob("*/*.py"):
        if path.parent.name != "cli" and not path.stem.startswith("_"):
            assert f".. automodule:: chromabuild.{path.parent.name}.{path.stem}\n" in text


def test_one_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == VERSION
    released = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == VERSION
    program = subprocess.run(["chromamd", "version"], capture_output=True, text=True, check=True)
    assert program.stdout.startswith(f"chromamd {VERSION} (")
    program = subprocess.run([executable(), "version"], capture_output=True, text=True, check=True)
    assert program.stdout == f"chromaqm {VERSION}\n"
