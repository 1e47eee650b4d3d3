"""The page "Use it elsewhere": every block that it marks, as it stands, in the folder of a small build. Programs of
others have stand-ins that note how they were called and leave the files that they were asked for: the modules of each
program beside this one run the programs themselves."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import result_of
from support.solvated_example import SOLUTE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "use-elsewhere.md").read_text()
BLOCKS = re.findall(r"^<!-- run -->\n```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
STAND_INS = ("gmx", "lmp", "python", "pmemd.cuda", "namd3", "spdyn", "prst_setup")
STAND_IN = """#!/bin/sh
echo {name} "$@" >>"{called}"
while [ $# -gt 1 ]; do
  case "$1" in -r|-o|-c) [ -e "$2" ] || : >"$2" ;; -deffnm) : >"$2.gro" ;;
    -in) : >"${{2%.in}}.restart.part" ;; esac
  shift
done
"""
SETTINGS = """
solvate: {padding: 3.0, brick_edge: 60.0}
simulate:
  protocol: null
  phases:
    - {name: minimise, kind: minimise, steps: 3}
    - {name: heat, steps: 4, temperature: [100, 200], output_period: 2, trajectory_period: 2}
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder of a build, and the environment in which a reader of the page works."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "results").mkdir()
    shutil.copy(SOLUTE, folder / "results" / "solute_clean.h5")
    (folder / "locus.yaml").write_text(SETTINGS)
    for stage in ("solvate", "topology"):
        result_of(stage, cwd=folder)
    programs = folder / "programs"
    programs.mkdir()
    here = {"chromabuild": f'exec {sys.executable} -m chromabuild.cli "$@"', "mpirun": 'shift 2; exec "$@"',
            "chromamd": f'exec {sys.executable} -c "from chromabuild.simulate.executable import main; main()" "$@"'}
    texts = {name: STAND_IN.format(name=name, called=folder / "called") for name in STAND_INS}
    texts |= {name: f'#!/bin/sh\necho {name} "$@" >>"{folder / "called"}"\n{command}\n'
              for name, command in here.items()}
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(stat.S_IRWXU)
    return folder, {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split()[2])
def test_commands_of_the_page(project, block):
    folder, environment = project
    (folder / "called").unlink(missing_ok=True)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    called = {line.split()[0] for line in (folder / "called").read_text().splitlines()}
    wanted = {word for word in ("chromamd", "mpirun", *STAND_INS) if re.search(rf"\b{re.escape(word)}\b", block)}
    assert wanted | {"chromabuild"} <= called


def test_every_program_has_a_block():
    from typing import get_args

    from chromabuild.pipeline.export import Program

    assert {block.split()[2] for block in BLOCKS if " export " in block} == set(get_args(Program))
