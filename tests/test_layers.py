"""Data flows one way along the pipeline: no module imports from a later stage."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Each may import from those above it. What shares a row knows nothing of its neighbours.
LAYERS = (
    ("base", "mesoscale"),
    ("genome", "molecule", "scaling"),
    ("sterics", "shards"),
    ("dna",),
    ("nucleosome", "analysis"),
    ("proteins",),
    ("build",),
    ("clash",),
    ("template_import", "solvate"),
    ("forcefield",),
    ("simulate",),
    ("export", "quantum"),
    ("report",),
    ("view",),
    ("api",),
    ("pipeline",),
    ("cli",),
)


def imported_parts(file: Path) -> set[str]:
    """Packages and modules of ours that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for package, part, *_ in (name.split(".") + [""] for name in names):
            if package == "mesoscale":
                found.add("mesoscale")
            elif package == "chromabuild" and part not in ("", "_kernels", "__version__"):
                found.add(part)
    return found


def test_nothing_imports_from_a_later_stage():
    level = {part: k for k, row in enumerate(LAYERS) for part in row}
    for file in sorted([*ROOT.glob("chromabuild/**/*.py"), *ROOT.glob("mesoscale/**/*.py")]):
        below = file.relative_to(ROOT).with_suffix("").parts
        own = "mesoscale" if below[0] == "mesoscale" else below[1]
        if own == "__init__":
            continue
        assert own in level, f"{own} has no place in the order of the pipeline: add it to LAYERS"
        late = {part for part in imported_parts(file) - {own} if level[part] >= level[own]}
        assert not late, f"{file.relative_to(ROOT)} imports from {', '.join(sorted(late))}"


def test_no_modules_import_each_other():
    files = {}
    for file in ROOT.glob("chromabuild/**/*.py"):
        files[".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = file
    graph = {}
    for module, file in files.items():
        named = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                named |= {f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in files else node.module
                          for alias in node.names}
        # The public names at the top are imported when they are used; what others import from there is _kernels.
        graph[module] = (named & files.keys()) - {"chromabuild"}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names them


def test_the_drawing_shows_every_room():
    drawing = (ROOT / "docs" / "images" / "architecture.svg").read_text()
    assert [room for row in LAYERS for room in row if f">{room}<" not in drawing] == []
