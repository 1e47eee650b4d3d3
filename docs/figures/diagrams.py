"""Drawings of boxes and arrows: the rules of the workflow, and the layers of the code.

    python docs/figures/diagrams.py        writes docs/images/tutorials/cluster.svg and docs/images/architecture.svg
"""

from pathlib import Path
from xml.sax.saxutils import escape

IMAGES = Path(__file__).resolve().parents[1] / "images"
HEAD = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" font-family="Helvetica, Arial, sans-serif" '
        'role="img" aria-label="{label}">\n<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#5a6472"/></marker></defs>\n'
        '<rect width="{w}" height="{h}" fill="#ffffff"/>\n')


def box(x: int, y: int, w: int, title: str, text: str = "", fill: str = "#e3edf7", h: int = 46) -> str:
    """A box with a title and a line below it."""
    middle = x + w / 2
    lines = f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" fill="{fill}" stroke="#2b5d8c"/>\n'
    lines += (f'<text x="{middle:g}" y="{y + (20 if text else 28)}" text-anchor="middle" font-size="14" '
              f'font-weight="600" fill="#1c2733">{escape(title)}</text>\n')
    if text:
        lines += (f'<text x="{middle:g}" y="{y + 37}" text-anchor="middle" font-size="11" fill="#46525f">'
                  f'{escape(text)}</text>\n')
    return lines


def arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    return (f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#5a6472" stroke-width="1.5" '
            'marker-end="url(#tip)"/>\n')


def label(x: int, y: int, text: str, size: int = 12, weight: int = 400) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="#46525f">{escape(text)}</text>\n'


def workflow() -> str:
    """The rules of the Snakemake workflow."""
    text = HEAD.format(w=900, h=300, label="Rules of the workflow")
    row = [("scaffold", "scaffold.h5"), ("build", "solute.h5"), ("clash", "solute_clean.h5")]
    for k, (name, file) in enumerate(row):
        text += box(20 + 170 * k, 30, 140, name, file)
        if k:
            text += arrow(20 + 170 * k - 30, 53, 20 + 170 * k, 53)
    text += arrow(500, 53, 530, 53) + box(530, 30, 160, "solvation_plan", "shards/plan.h5")
    for k in range(3):
        text += box(716 + 8 * k, 14 + 14 * k, 150, *(("bricks", "shards/brick_*") if k == 2 else ("",)), fill="#fdf1dc")
    text += arrow(690, 53, 716, 53)
    text += arrow(790, 90, 790, 130) + box(716, 130, 150, "solvate", "shards/manifest.json")
    text += arrow(716, 153, 690, 153) + box(530, 130, 160, "topology", "topology.h5, topology.psf")
    text += arrow(530, 153, 500, 153) + box(360, 130, 140, "run", "md/*.dcd")
    text += arrow(360, 153, 330, 153) + box(190, 130, 140, "report", "report.html")
    text += arrow(190, 153, 160, 153) + box(20, 130, 140, "verify", "verified.json")
    text += label(20, 230, "Blue: one job each, on one node; run starts MPI by itself.")
    text += label(20, 250, "Yellow: as many jobs as brick_jobs says, on any nodes that share the folder.")
    text += label(20, 270, "With brick_jobs = 1 solvate writes the shards itself, without solvation_plan and bricks.")
    return text + "</svg>\n"


def architecture() -> str:
    """Layers of Python and Fortran; imports go down."""
    text = HEAD.format(w=900, h=710, label="Layers of the code")
    text += label(20, 28, "Python: imports go down, and within a row at most from left to right", 14, 600)
    layers = [
        [("cli", "one module a command"), ("pipeline", "stages, chain, plan"), ("api", "the public names"),
         ("view", "a locus in a browser"), ("report", "pages")],
        [("export", "other programs"), ("quantum", "chromaqm"), ("simulate", "chromamd, OpenMM")],
        [("forcefield", "topology"), ("solvate", "water, ions"), ("template_import", "structure -> template")],
        [("build", "all atoms of a locus"), ("clash", "detection, moves")],
        [("nucleosome", "octamers"), ("dna", "duplex"), ("analysis", "measures")],
        [("sterics", "close pairs, rings"), ("shards", "files of bricks")],
        [("genome", "inputs -> Locus"), ("molecule", "residues, solute"), ("scaling", "cost on a machine")],
        [("base", "settings, errors, files"), ("mesoscale", "the fibre in nm, kBT, e")],
    ]
    for row, rooms in enumerate(layers):
        width = (860 - 16 * (len(rooms) - 1)) // len(rooms)
        for k, (name, about) in enumerate(rooms):
            text += box(20 + k * (width + 16), 40 + 56 * row, width, name, about,
                        "#fdf1dc" if name == "mesoscale" else "#e3edf7", 44)
    text += label(20, 522, "Fortran: uses go down", 14, 600)
    engine = [("run", "commands"), ("motion", "steps, baths"), ("forces", "terms"), ("system", "topology, state"),
              ("input", "control"), ("output", "log, frames")]
    width = (640 - 10 * 5) // 6
    for k, (name, about) in enumerate(engine):
        text += box(20 + k * (width + 10), 536, width, f"{name}", about, "#e4f3e6")
    text += label(20, 598, "engine", 12, 600)
    text += box(676, 536, 204, "kernels", "behind the Python packages", "#e4f3e6")
    text += box(20, 606, 310, "comm", "domains, halo, transports", "#e4f3e6")
    text += box(350, 606, 310, "fft", "distributed 3D FFT", "#e4f3e6")
    text += box(676, 606, 204, "planewave", "electrons; uses fft and comm", "#e4f3e6")
    text += box(20, 660, 860, "base", "kinds, errors, text, random numbers, fixed point; no MPI", "#e4f3e6", 44)
    return text + "</svg>\n"


if __name__ == "__main__":
    (IMAGES / "tutorials").mkdir(exist_ok=True)
    (IMAGES / "tutorials" / "cluster.svg").write_text(workflow(), encoding="utf-8")
    (IMAGES / "architecture.svg").write_text(architecture(), encoding="utf-8")
