"""The public names: where they live, how little importing them costs, and what they say of themselves."""

import ast
import doctest
import inspect
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import chromabuild
from chromabuild.base.settings import Settings
from chromabuild.pipeline.workflow import workflow_folder

PACKAGE = Path(chromabuild.__file__).parent
MODULES = ("chromabuild.api", "chromabuild.base.notebook", "chromabuild.base.settings", "chromabuild.genome.locus",
           "chromabuild.molecule.solute", "chromabuild.pipeline.results")
"""Those with examples."""
SMALL_SOLUTE = Path(__file__).parents[1] / "support" / "data" / "solute.h5"


def python(code):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=environment,
                          check=True).stdout.strip()


def test_every_name_is_there_and_documented():
    assert chromabuild.__all__ == sorted(chromabuild.__all__)
    for name in chromabuild.__all__:
        found = getattr(chromabuild, name)
        assert name == "__version__" or inspect.getdoc(found), name
        assert name in dir(chromabuild)
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        _ = chromabuild.frobnicate


def test_names_for_type_checkers_are_those_that_are_imported_lazily():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    checking = next(node for node in tree.body if isinstance(node, ast.If))
    stated = {alias.asname or alias.name: (node.module, alias.name)
              for node in checking.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert stated.keys() | {"__version__"} == set(chromabuild.__all__)
    for name, (module, attribute) in stated.items():
        assert getattr(import_module(module), attribute) is getattr(chromabuild, name)
    assert (PACKAGE / "py.typed").is_file()


def test_no_public_name_is_that_of_a_subpackage():
    """A package cannot have both: importing the subpackage would replace the function."""
    assert not {path.stem for path in PACKAGE.iterdir()} & set(chromabuild.__all__)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys; import chromabuild; print(*sorted(sys.modules))"
    loaded = set(python(code).split())
    assert not {name for name in loaded if name.startswith(("chromabuild.", "mesoscale", "importlib.metadata"))}
    assert not loaded & {"numpy", "pydantic", "h5py"}


def test_a_public_name_imports_only_what_it_needs():
    code = "import sys; from chromabuild import Locus, fold; print(*sorted(sys.modules))"
    assert not set(python(code).split()) & {"openmm", "matplotlib", "chromabuild.clash", "chromabuild.solvate"}


@pytest.mark.parametrize(("name", "section"), [
    ("fold", "scaffold"), ("build_solute", "build"), ("remove_clashes", "clash"), ("add_solvent", "solvate"),
    ("run_dynamics", "dynamics"), ("run_dynamics", "simulate")])
def test_help_shows_the_keys_of_the_section_with_their_defaults(name, section):
    function = getattr(chromabuild, name)
    parameters = inspect.signature(function).parameters
    for key, field in Settings.model_fields[section].annotation.model_fields.items():
        assert parameters[key].default == field.default and parameters[key].kind is inspect.Parameter.KEYWORD_ONLY
        assert f"    {key}: {field.description}" in inspect.getdoc(function)
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


@pytest.mark.parametrize("module", MODULES)
def test_doctests(module, tmp_path, monkeypatch):
    """Examples run in a folder with the files of the bundled demo and a small solute."""
    for path in (workflow_folder() / "config" / "loci").glob("demo.*"):
        shutil.copy(path, tmp_path)
    shutil.copy(SMALL_SOLUTE, tmp_path / "solute.h5")
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS).failed == 0


def test_there_are_doctests():
    attempted = {module: sum(len(test.examples) for test in doctest.DocTestFinder().find(import_module(module)))
                 for module in MODULES}
    assert not [module for module, examples in attempted.items() if not examples]


def test_the_example_at_the_top_names_public_functions_only():
    text = chromabuild.__doc__
    called = set(re.findall(r"= (\w+)[.(]", text))
    assert called <= set(chromabuild.__all__)
