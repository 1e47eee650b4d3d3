"""Formulas as SVG in the page: it needs no script, no font and no network, and follows the colour of the text."""

import html
from typing import Any

import ziafont
import ziamath
from docutils import nodes

SIZE = 18.0                     # px: the letters of STIX Two Math beside text of 16 px
ziafont.config.svg2 = False     # outlines in place, no identifiers that formulas of a page would share


def _image(formula: str, *, inline: bool) -> str:
    drawing = ziamath.Latex(formula, size=SIZE, color="currentColor", inline=inline)
    style = f' style="vertical-align: {drawing.getyofst() / 16:.3f}em"' if inline else ""
    return drawing.svg().replace("<svg ", f'<svg role="img" aria-label="{html.escape(formula)}"{style} ', 1)


def inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(f'<span class="math">{_image(node.astext(), inline=True)}</span>')
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_image(node.astext(), inline=False)}</div>\n')
    raise nodes.SkipNode
