"""What stands in several places says the same."""

import inspect
import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

import chromabuild
from chromabuild.base.errors import (
    BadInputError,
    BusyError,
    IntegrityError,
    InterruptedRunError,
    NotConvergedError,
    ResourceError,
    UnstableRunError,
)
from chromabuild.base.settings import Settings
from chromabuild.clash import check, correct_clashes
from chromabuild.cli import app
from chromabuild.cli.clash import Subject
from chromabuild.cli.frame import ORDER
from chromabuild.cli.init import Example
from chromabuild.cli.run import Engine
from chromabuild.forcefield.assign import make_topology
from chromabuild.pipeline import chain
from chromabuild.pipeline.examples import EXAMPLES
from chromabuild.pipeline.inspect import AUDITS
from chromabuild.simulate.executable import executable

ROOT = Path(__file__).resolve().parents[2]


def test_version_is_that_of_pyproject():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert chromabuild.__version__ == version("chromabuild") == stated
    printed = subprocess.run([executable(), "--version"], capture_output=True, text=True).stdout
    assert printed.startswith(f"chromamd {stated} ")


def test_exit_codes_of_the_engine_are_those_of_the_package():
    text = (ROOT / "fortran" / "base" / "base_error.f90").read_text()
    stated = {name: int(code) for name, code in re.findall(r"\b(exit_\w+) = (\d+)", text)}
    assert stated == {"exit_bad_input": BadInputError.exit_code, "exit_corrupt_file": IntegrityError.exit_code,
                      "exit_resources": ResourceError.exit_code, "exit_interrupted": InterruptedRunError.exit_code,
                      "exit_busy": BusyError.exit_code, "exit_unstable": UnstableRunError.exit_code,
                      "exit_not_converged": NotConvergedError.exit_code}


@pytest.mark.parametrize(("function", "argument", "section", "key"), [
    (check, "threshold", "clash", "threshold"), (correct_clashes, "threshold", "clash", "threshold"),
    (correct_clashes, "mode", "clash", "mode"), (make_topology, "force_field", "dynamics", "force_field"),
])
def test_defaults_of_functions_are_those_of_the_settings(function, argument, section, key):
    default = inspect.signature(function).parameters[argument].default
    assert default == getattr(getattr(Settings(), section), key)


@pytest.mark.parametrize(("choices", "stated"), [
    (Example, EXAMPLES), (Subject, AUDITS),
    (Engine, get_args(Settings.model_fields["dynamics"].annotation.model_fields["engine"].annotation))])
def test_choices_of_the_command_line_are_those_that_there_are(choices, stated):
    assert [choice.value for choice in choices] == list(stated)


def test_help_of_all_names_the_stages_in_order():
    text = " ".join(CliRunner().invoke(app, ["all", "--help"]).stdout.split())
    assert f"Stages: {', '.join(chain.NAMES)}." in text


def test_every_stage_is_a_command_and_help_lists_every_command():
    registered = {command.name or command.callback.__name__ for command in app.registered_commands}
    registered |= {group.name or group.typer_instance.info.name for group in app.registered_groups}
    assert set(ORDER) == registered
    assert [name for name in ORDER if name in chain.NAMES] == list(chain.NAMES)
