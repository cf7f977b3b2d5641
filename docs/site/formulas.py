"""Formulas between dollar signs, as MathML, which browsers draw without a script. Code hosts draw the same TeX."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx, in place of MathJax, which browsers would load from another server."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _mathml(tex: str, is_block: bool = False) -> str:
    """Convert a formula. Not every font has space between a function and its argument, as in log x."""
    text = tex2mathml(tex, as_block=is_block)
    return re.sub(r"<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>\()", '<mspace width="0.17em"/>', text)


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{_mathml(node.astext(), is_block=True)}</div>\n')
    raise nodes.SkipNode
