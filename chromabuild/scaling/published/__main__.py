"""`python -m chromabuild.scaling.published PAPER`: the paper's figures, ours, deviation, fitted or predicted."""

import argparse
from pathlib import Path

from chromabuild.scaling.published import PAPERS
from chromabuild.scaling.published.comparison import report


def main() -> None:
    """Print the comparison; draw it if asked."""
    parser = argparse.ArgumentParser(prog="python -m chromabuild.scaling.published", description=__doc__)
    parser.add_argument("paper", choices=PAPERS, help="first author")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the compared figure: .svg, .png or .pdf")
    given = parser.parse_args()
    paper = PAPERS[given.paper].load()
    if given.figure and given.figure.suffix not in (".svg", ".png", ".pdf"):
        parser.error(f"--figure {given.figure}: name a file that ends in .svg, .png or .pdf")
    if given.figure and not given.figure.parent.is_dir():
        parser.error(f"--figure {given.figure}: there is no folder {given.figure.parent}")
    entries = paper.entries()
    print(PAPERS[given.paper].title, "", *report(paper.constants(), entries, paper.claims()), sep="\n")
    if given.figure:
        from chromabuild.scaling.published.figures import draw

        draw(entries, paper.panel(), given.figure)


if __name__ == "__main__":
    main()
