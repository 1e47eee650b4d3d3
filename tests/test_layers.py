"""Data flows one way along the pipeline: no module imports from a later stage."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Each may import from those above it. What shares a row knows nothing of its neighbours.
LAYERS = (
    ("errors",),
    ("files", "geometry", "ranks", "scaling"),
    ("residues", "bigwig", "contact_files", "matrix_reader", "mesoscale", "labels", "workflow"),
    ("config", "solute", "hydrogens"),
    ("provenance", "locus", "examples", "sterics", "shards"),
    ("dna",),
    ("nucleosome", "analysis"),
    ("build",),
    ("clash",),
    ("nucleosome_template", "solvate"),
    ("topology", "plan"),
    ("backends",),
    ("report",),
    ("stages",),
    ("pipeline", "verify"),
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
