"""Pictures of constituency trees, as SVG."""

import unicodedata
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from dragoman.base.files import atomic_write
from dragoman.inspect.figures.style import BLUE, DEFAULT_FONT, GRID, INK, QUIET
from dragoman.text.trees.tree import Tree

_SIZE, _CHARACTER, _GAP = 13, 7.6, 14.0
"""Size of the font, mean width of a character, and space between words, in pixels."""
_LEVEL, _MARGIN = 44, 16
"""Distance of the rows of a tree, and margin around it, in pixels."""


def draw_trees(trees: Sequence[Tree], file: Path) -> None:
    """Draw trees below each other into an SVG file. Words stand in one row, and labels above the middle of their words.

    file: an SVG file.
    """
    drawn = [_draw(tree) for tree in trees]
    tops = [0.0, *accumulate(height for _, _, height in drawn)]
    width = max((width for _, width, _ in drawn), default=0.0)
    groups = [
        f'<g transform="translate(0 {top:g})">{"".join(shapes)}</g>'
        for (shapes, *_), top in zip(drawn, tops, strict=False)
    ]
    atomic_write(
        file,
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{tops[-1]:g}" '
        f'viewBox="0 0 {width:g} {tops[-1]:g}" font-family="{DEFAULT_FONT}, sans-serif" font-size="{_SIZE}" '
        f'text-anchor="middle">\n<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(groups) + "\n</svg>\n",
    )


def _draw(tree: Tree) -> tuple[list[str], float, float]:
    """Return the shapes of a tree, and its width and height in pixels."""
    widths = [max(map(_text_width, word)) + _GAP for word in tree.words]
    edges = [_MARGIN + each for each in accumulate(widths, initial=0.0)]
    middles = [(first + last) / 2 for first, last in pairwise(edges)]
    depths = tree.depths()
    bottom = max(depths, default=-1) + 1
    lines: list[str] = []
    texts: list[str] = []
    parents: list[tuple[int, float, float]] = []
    """The end, and the position, of the constituents that contain the next part."""
    constituents = iter([*zip(tree.constituents, depths, strict=True), None])
    following = next(constituents)
    for number, (tag, text) in enumerate(tree.words):
        while parents and parents[-1][0] <= number:
            parents.pop()
        while following is not None and following[0].start == number:
            (label, start, end), depth = following
            x, y = (middles[start] + middles[end - 1]) / 2, _height(depth)
            lines += _edge(parents, x, y)
            texts.append(_text(x, y, label, BLUE))
            parents.append((end, x, y))
            following = next(constituents)
        x, y = middles[number], _height(bottom)
        lines += _edge(parents, x, y)
        texts += [_text(x, y, tag, QUIET), _text(x, y + 1.5 * _SIZE, text, INK)]
    return [*lines, *texts], edges[-1] + _MARGIN, _height(bottom) + 1.5 * _SIZE + _MARGIN


def _height(depth: int) -> float:
    return _MARGIN + _SIZE + _LEVEL * depth


def _edge(parents: Sequence[tuple[int, float, float]], x: float, y: float) -> list[str]:
    """Return the line from the innermost constituent to one of its parts."""
    if not parents:
        return []
    _, above, top = parents[-1]
    return [f'<path d="M{above:g} {top + 5:g}L{x:g} {y - _SIZE - 1:g}" stroke="{GRID}" stroke-width="1.5"/>']


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}">{escape(text)}</text>'


def _text_width(text: str) -> float:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text) * _CHARACTER
