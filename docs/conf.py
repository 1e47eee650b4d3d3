"""Sphinx configuration. `./do docs` builds the site; docs/generate writes the reference pages before Sphinx reads."""

import sys
import tomllib
from pathlib import Path

from sphinx.domains.python import PythonDomain

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

from generate import formulas, write_reference  # noqa: E402  (found through the path above)

write_reference(DOCS / "reference" / "generated")

project = "chromabuild"
author = "the chromabuild authors"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
include_patterns = ["index.md", "architecture.md", "contributing.md", "changelog.md", "explanation/**", "how-to/**",
                    "reference/**", "tutorials/**"]
exclude_patterns = ["**/*.py"]

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist",
                          "substitution"]
myst_heading_anchors = 4
myst_substitutions = {"version": release}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False
autodoc_default_options = {"members": True, "ignore-module-all": True}  # a name stands where it is defined
default_role = "literal"
python_maximum_signature_line_length = 100
toc_object_entries = False  # the side bar lists modules; a page lists their contents

templates_path = []
html_theme = "furo"
html_title = f"chromabuild {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_math_renderer = "svg"
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
copybutton_exclude = ".linenos, .gp, .go"


def plain_docstring(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are written to be read in the code: ``|z|`` is a magnitude, and an indented block after a colon is a
    table or an example that keeps its lines."""
    for number, line in enumerate(lines):
        parts = line.split("``")  # every second part is code
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "``".join(parts)
        following = lines[number + 1:number + 3]
        if line.endswith(":") and not line.endswith("::") and len(following) == 2 and not following[0].strip() \
                and following[1].startswith(line[:len(line) - len(line.lstrip())] + "    "):
            lines[number] += ":"


class QuickPythonDomain(PythonDomain):
    """Looks each name up once: Sphinx goes through all objects for every type in every signature. Words that several
    classes use for a field, `origin`, are no links."""

    def find_obj(self, env: object, *name: object) -> list:
        known = self.__dict__.setdefault("known", {})
        key = (*name, len(self.objects))
        if key not in known:
            found = super().find_obj(env, *name)
            known[key] = found if len(found) == 1 else []
        return known[key]


def setup(app: object) -> None:
    app.add_domain(QuickPythonDomain, override=True)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.add_html_math_renderer("svg", inline_renderers=(formulas.inline, None), block_renderers=(formulas.block, None))
