"""Check of the built site: every internal link leads to a file, every anchor to an element; no network.

    python docs/generate/links.py build/docs/html
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links and anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.anchors.add(value)
            elif value and (name == "src" or (name == "href" and tag in ("a", "link"))):
                self.links.append(value)


@cache
def page(path: Path) -> Page:
    return Page(path)


def broken_links(site: Path) -> list[str]:
    """One line a link that leads nowhere. Anchors between the pages that FORD makes are FORD's own affair."""
    problems = []
    for path in sorted(site.rglob("*.html")):
        for link in dict.fromkeys(page(path).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                problems.append(f"{path.relative_to(site)}: {link} leads to no file")
            elif parts.fragment and target.suffix == ".html" and path.relative_to(site).parts[0] != "fortran" \
                    and unquote(parts.fragment) not in page(target).anchors:
                problems.append(f"{path.relative_to(site)}: {link} leads to no anchor")
    return problems


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "all internal links lead somewhere")
    sys.exit(bool(found))
