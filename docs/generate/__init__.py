"""Reference pages made from the code: nothing in them is written twice.

``write_reference`` is called by conf.py at every build of the site; the pages are not kept in the repository. The one
generated file that is kept is the JSON schema of locus.yaml, because Snakemake and editors read it; a test compares it
with the model.
"""

from pathlib import Path

from generate import api, commands, control_keys, genesis_keys, modifications, settings


def write_reference(folder: Path) -> None:
    """Write all generated pages into ``folder``; a page that has not changed keeps its time stamp."""
    pages: dict[str, str] = {}
    for maker in (api, commands, control_keys, genesis_keys, modifications, settings):
        pages |= maker.pages()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in pages:
            path.unlink()
