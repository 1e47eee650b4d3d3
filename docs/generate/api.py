"""API pages: one for the public names of chromabuild, one for each package inside it and for mesoscale."""

import ast
import importlib
import pkgutil
from pathlib import Path

PACKAGES = ("chromabuild", "mesoscale")
LEFT_OUT = {"cli"}  # described by the command reference
MODULES = "modules"


def room_of(module: str) -> str:
    """The page a module stands on: its package below chromabuild, or mesoscale as a whole."""
    package, _, rest = module.partition(".")
    return f"{package}.{rest.split('.')[0]}" if package == "chromabuild" else package


def modules_by_room() -> dict[str, list[str]]:
    """Page -> its modules in alphabetical order, the package itself first. Private modules are left out."""
    rooms: dict[str, list[str]] = {"mesoscale": ["mesoscale"]}
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            parts = found.name.split(".")[1:]
            if any(part.startswith("_") for part in parts) or parts[0] in LEFT_OUT or not source_of(found):
                continue
            rooms.setdefault(room_of(found.name), []).append(found.name)
    return {room: sorted(modules) for room, modules in sorted(rooms.items())}


def source_of(found: pkgutil.ModuleInfo) -> Path | None:
    """The Python file of a module; None for compiled ones."""
    spec = found.module_finder.find_spec(found.name, None)
    path = Path(spec.origin) if spec is not None and spec.origin else None
    return path if path is not None and path.suffix == ".py" else None


def summary(module: str) -> str:
    """First sentence of a module's docstring, from its source."""
    spec = importlib.util.find_spec(module)
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


def page(room: str, modules: list[str]) -> str:
    """The page of a package in reStructuredText, which is what docstrings are written in."""
    text = heading(room, "=")
    for module in modules:
        if module != room:
            text += heading(module.removeprefix("chromabuild."), "-")
        text += f".. automodule:: {module}\n\n"
    return text


def public_page() -> str:
    """What ``import chromabuild`` offers."""
    names = getattr(importlib.import_module("chromabuild"), "__all__", [])
    text = heading("Public Python API", "=")
    text += ("The names of ``import chromabuild``. They follow semantic versioning: within a major version a name\n"
             "keeps its meaning. The modules below them may change with every minor version.\n\n")
    members = "   :imported-members:\n   :members: " + ", ".join(names) + "\n" if names else ""
    return text + ".. automodule:: chromabuild\n" + members


def pages() -> dict[str, str]:
    """File name -> text."""
    rooms = modules_by_room()
    index = heading("Python modules", "=")
    index += "Every package with its modules, from their docstrings.\n\n.. toctree::\n   :hidden:\n\n"
    index += "".join(f"   {room}\n" for room in rooms) + "\n.. list-table::\n   :header-rows: 1\n\n"
    index += "   * - package\n     - contents\n"
    for room in rooms:
        index += f"   * - :doc:`{room}`\n     - {summary(room)}\n"
    result = {"public-api.rst": public_page(), f"{MODULES}/index.rst": index}
    return result | {f"{MODULES}/{room}.rst": page(room, modules) for room, modules in rooms.items()}
