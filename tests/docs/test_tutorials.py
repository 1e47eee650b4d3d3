"""The tutorials are executed: every marked block of a page, in its order, in one folder.

A comment before a block marks it:

    <!-- run -->                            bash or Python, as it stands
    <!-- run, shortened by: OPTIONS -->     the options are added to the last command of the block
    <!-- copy: PATH -->                     the reader downloads this file of the repository
    <!-- expect: PATHS -->                  what is there in the end
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
MARK = re.compile(r"^<!-- (?P<word>run|copy|expect)(?:, shortened by)?(?:: (?P<text>.*?))? -->$\n?"
                  r"(?P<block>^```(?P<language>\w+)\n(?P<code>.*?)^```$)?", re.MULTILINE | re.DOTALL)
NAMES = ["first-locus", "your-own-locus", "single-nucleosome", "cluster", "imported-system", "electrons-of-water"]

pytestmark = pytest.mark.slow


def script_of(page: str) -> tuple[str, list[str]]:
    """One bash script of all marked blocks of a page, and the files that it must leave behind."""
    lines, expected = ["set -euo pipefail"], []
    for mark in MARK.finditer(page):
        word, text, code = mark["word"], mark["text"], mark["code"]
        if word == "expect":
            expected += text.split()
        elif word == "copy":
            lines.append(f"cp {ROOT / text} .")
        elif mark["language"] == "python":
            lines.append(f"python - <<'END_OF_SNIPPET'\n{code}END_OF_SNIPPET")
        else:
            assert mark["language"] == "bash", f"a block that is run must be bash or Python: {mark[0]}"
            lines.append(code.rstrip() + (f" {text}" if text else ""))
    return "\n".join(lines) + "\n", expected


def test_every_tutorial_is_executed():
    assert sorted(NAMES) == sorted(path.stem for path in TUTORIALS.glob("*.md") if path.stem != "index")


@pytest.mark.parametrize("name", NAMES)
def test_tutorial(name, tmp_path, user_environment):
    script, expected = script_of((TUTORIALS / f"{name}.md").read_text())
    assert expected and script.count("\n") > 3
    if name == "cluster":
        pytest.importorskip("snakemake")
    folder = tmp_path / "work"
    folder.mkdir()
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=user_environment, capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert [path for path in expected if not (folder / path).is_file()] == []
