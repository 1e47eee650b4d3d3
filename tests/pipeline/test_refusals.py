"""Every refusal is known: `validate` gives it, with a case here or where its reader is tried, or a reason says why it
cannot be known before the work.

The inventory is that of the source: each `raise` of an error that a user can act on. A case names what a user got
wrong; which `raise` answers is read off the traceback, so that a check which `validate` loses, and a new one that it
does not make, fail the test.
"""

import ast
import fnmatch
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml
from support.refusal_cases import CASES, ELSEWHERE, READERS

import chromabuild
from chromabuild.base import errors
from chromabuild.base.errors import ChromabuildError
from chromabuild.base.settings import load_config
from chromabuild.pipeline.inspect import locus_summary

SOURCE = Path(chromabuild.__file__).parent
TESTS = Path(__file__).parents[1]
ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type)} - {"InterruptedRunError"}


@dataclass(frozen=True)
class Site:
    """A `raise`."""

    file: str
    function: str
    lines: range

    @property
    def name(self) -> str:
        """``file:function``, as the tables have it."""
        return f"{self.file}:{self.function}"


@cache
def sites() -> tuple[Site, ...]:
    """Every `raise` of an error that a user can act on, also of one that a function has made."""
    trees = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    makers = {node.name for tree in trees.values() for node in ast.walk(tree)
              if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id in ERRORS}
    found: list[Site] = []

    def look(node: ast.AST, file: str, stack: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                look(child, file, (*stack, child.name))
                continue
            raised = getattr(child.exc, "func", None) if isinstance(child, ast.Raise) else None
            if isinstance(raised, ast.Name) and raised.id in ERRORS | makers:
                found.append(Site(file, ".".join(stack), range(child.lineno, child.end_lineno + 1)))
            look(child, file, stack)

    for file, tree in trees.items():
        look(tree, file, ())
    return tuple(found)


def answered_by(error: ChromabuildError) -> list[Site]:
    """The `raise` that a refusal came from, and those of the errors that it was made of."""
    found = []
    while error is not None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        path = Path(frame.filename)
        if path.is_relative_to(SOURCE):
            file = path.relative_to(SOURCE).as_posix()
            found += [site for site in sites() if site.file == file and frame.lineno in site.lines]
        error = error.__cause__ or error.__context__
    return found


def refused(folder: Path, files: dict[str, str | bytes], settings: object) -> ChromabuildError:
    """What `validate` says of a project."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if settings is not None:
        (folder / "locus.yaml").write_text(settings if isinstance(settings, str) else yaml.safe_dump(settings))
    with pytest.raises(ChromabuildError) as caught:
        locus_summary(load_config(folder / "locus.yaml"), 1)
    assert isinstance(caught.value, errors.BadInputError | errors.ResourceError)
    return caught.value


def reasons(site: Site) -> list[str]:
    """Patterns of the tables of what is tried elsewhere, or cannot be known, that a `raise` matches."""
    return [pattern for pattern in (*ELSEWHERE, *READERS) if fnmatch.fnmatchcase(site.name, pattern)]


def test_every_refusal_is_known(tmp_path):
    """Each case is answered by a `raise` of the inventory; what no case brings about is in a table."""
    tried: set[Site] = set()
    for number, (name, (files, settings)) in enumerate(CASES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = answered_by(refused(folder, files, settings))
        assert found, f"{name} is refused by no `raise` of the inventory"
        tried.update(found)
    unknown = [f"{site.name} (line {site.lines.start})" for site in sites() if site not in tried and not reasons(site)]
    assert not unknown, "refusals that `validate` is not seen to give, and no table has:\n" + "\n".join(unknown)


def test_tables_have_nothing_else():
    for pattern in (*ELSEWHERE, *READERS):
        assert any(pattern in reasons(site) for site in sites()), f"{pattern} is no refusal any more"
        assert ".py:" in pattern, f"{pattern} may not stand for a whole folder: a new file is to be thought of"
    for name, file in READERS.items():
        assert (TESTS / file).is_file(), (name, file)
