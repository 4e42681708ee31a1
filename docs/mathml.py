"""Writes formulas as MathML, which browsers show without a script and without a network."""

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Writes a formula within a line of text."""
    translator.body.append(_mathml(node))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Writes a formula that has a line of its own, and scrolls where it is too wide."""
    translator.body.append(f'<div class="formula">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, *, as_block: bool = False) -> str:
    # In LaTeX, an underscore within a text has a backslash. The converter would show it.
    latex = re.sub(r"\\text\{.*?\}", lambda text: text[0].replace(r"\_", "_"), node.astext())
    return tex2mathml(latex, as_block=as_block)


def setup(app: Sphinx) -> None:
    """Adds the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
