"""Every command explains itself, quickly."""

import os
import re
import subprocess
import sys

import pytest

COMMANDS = [["init"], ["validate"], ["plan"], ["all"], ["scaffold"], ["ensemble"], ["build"], ["clash"],
            ["clash", "fix"], ["clash", "check"], ["clash", "audit"], ["refine"], ["relax"], ["solvate"], ["shards"],
            ["shards", "verify"], ["shards", "info"], ["shards", "merge"], ["shards", "bag"], ["topology"], ["run"],
            ["report"], ["verify"], ["workflow"]]


def run(*arguments, **options):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "120"}
    return subprocess.run([sys.executable, "-P", "-m", "chromabuild.cli", *arguments], capture_output=True, text=True,
                          env=environment, timeout=60, **options)


def test_top_help_lists_commands_and_exit_codes():
    result = run("--help")
    assert result.returncode == 0 and result.stderr == ""
    for name in {command[0] for command in COMMANDS}:
        assert f"\n  {name} " in result.stdout
    assert not re.search(r"\w\.\.\.$", result.stdout, re.MULTILINE)  # no description is cut short
    assert "Exit codes" in result.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_the_common_options_and_an_example(command):
    result = run(*command, "--help")
    assert result.returncode == 0
    for option in ("--config", "--seed", "--threads", "--json", "--set"):
        assert option in result.stdout
    assert "Example" in result.stdout and f"chromabuild {command[0]}" in result.stdout


def test_help_imports_nothing_heavy():
    """So that --help and shell completion are quick."""
    code = ("import sys; import chromabuild.cli; "
            "print([m for m in ('numpy', 'h5py', 'pydantic', 'rich', 'openmm', 'matplotlib') if m in sys.modules])")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=environment)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [["frobnicate"], ["all", "--no-such-option"], ["all", "--seed", "minus"],
                                       ["all", "--threads", "0"], ["clash", "check"]])
def test_wrong_use_is_exit_code_2(arguments):
    result = run(*arguments)
    assert result.returncode == 2 and result.stdout == "" and "Traceback" not in result.stderr
