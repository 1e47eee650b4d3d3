"""The folder of the viewer: index.html with the overview inside, and a script for the atoms of each place."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild import __version__
from chromabuild.base.files import atomic_path
from chromabuild.base.progress import Progress, silent
from chromabuild.molecule.solute import Solute
from chromabuild.report import html
from chromabuild.view.atoms import place_script, places, solute_key, stretches, template_table, used_templates
from chromabuild.view.binary import packed
from chromabuild.view.frames import Frames
from chromabuild.view.overview import overview
from chromabuild.view.tracks import Track

if TYPE_CHECKING:
    from mesoscale.scaffold import Scaffold

PAGE = Path(__file__).parent / "page"
MODULES = ("data", "colours", "state", "geometry", "impostors", "coarse", "detail", "fine", "scene",
           "atom_models", "atoms", "words", "picking", "tracks", "contacts", "player", "main")
"""Our modules, each after those that it imports from."""
ATOMS = "atoms"


def write_page(folder: Path, scaffold: "Scaffold", solute: Solute | None, carried: Sequence[tuple[str, ...]],
               family: dict[str, str], tracks: Sequence[Track] = (), frames: Frames | None = None, state: str = "",
               progress: Progress = silent) -> int:
    """Write the viewer into ``folder`` and return the bytes of its files; index.html comes last.

    ``solute``: atoms to show, None: none; ``state`` says in words which they are. Others as ``overview`` and
    ``place_script`` take them.
    """
    facts, arrays = overview(scaffold, carried, tracks, frames)
    facts |= {"atoms": None}
    size = 0
    old = {path for path in (folder / ATOMS).glob("*.js") if path.stem.isdecimal()}
    if solute is not None:
        used = used_templates(solute)
        found = stretches(scaffold)
        key = solute_key(solute)
        facts["atoms"] = {"key": key, "state": state, "count": solute.n_atoms, "places": found,
                          "templates": template_table(used)}
        for number, place in enumerate(places(solute, scaffold)):
            path = folder / ATOMS / f"{number:04d}.js"
            with atomic_path(path) as part:
                part.write_text(place_script(number, place, solute, used, family, key), encoding="ascii")
            size += path.stat().st_size
            old.discard(path)
            progress("atoms", (number + 1) / len(found))
    with atomic_path(folder / "index.html") as part:
        part.write_text(page(facts, *packed(arrays)), encoding="utf-8")
    for path in old:
        path.unlink()
    return size + (folder / "index.html").stat().st_size


def page(facts: dict, table: dict, content: str) -> str:
    """index.html: style, markup, data, three.js and our modules as one module script. It can load nothing but scripts
    from its own folder."""
    text = _read("page.html")
    pieces = {"TITLE": html.text(facts["name"]), "STYLE": _read("page.css"), "VERSION": html.text(__version__),
              "FACTS": json.dumps(facts | {"arrays": table}, separators=(",", ":")).replace("<", "\\u003c"),
              "DATA": content, "THREE": _in_script(_read("three/three.min.js")),
              "MODULES": _in_script("\n".join(_modules()))}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: pieces[found[1]], text)


def _modules() -> Iterator[str]:
    """Our modules as one text: each in a scope of its own, from which only what it exports comes out."""
    for name in MODULES:
        text = re.sub(r"^import [^;]*;\n", "", _read(f"{name}.js"), flags=re.MULTILINE)
        exported = re.findall(r"^export (?:const|function|class) (\w+)", text, flags=re.MULTILINE)
        text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
        yield f"const {{{', '.join(exported)}}} = (() => {{\n{text}return {{{', '.join(exported)}}};\n}})();"


def _in_script(text: str) -> str:
    """Code that cannot end the script that it stands in."""
    return text.replace("</script", "<\\/script")


def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
