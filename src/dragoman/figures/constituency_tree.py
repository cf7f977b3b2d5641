"""Pictures of constituency trees, as SVG."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from dragoman.base.files import atomic_write
from dragoman.figures.style import BLUE, DEFAULT_FONT, GREYS, INK, QUIET
from dragoman.figures.text_layout import text_width
from dragoman.text.trees.tree import Tree

_SIZE, _GAP = 13, 16.0
"""Size of the font, and space between words, in pixels."""
_LEVEL, _MARGIN = 40, 16
"""Distance of the rows of a tree, and margin around it, in pixels."""
_PIXELS = 72
"""Pixels per inch of a text whose size in points is `_SIZE`."""
_LINE = GREYS[1]
"""Colour of the lines."""


def draw_trees(trees: Sequence[Tree], file: Path) -> None:
    """Draw trees below each other into an SVG file. Words stand in one row, and labels above the middle of their parts.

    Lines are horizontal and vertical, so that those of different constituents do not cross. file: an SVG file.
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
    edges = [_MARGIN + each for each in accumulate(_widths(tree), initial=0.0)]
    middles = [(first + last) / 2 for first, last in pairwise(edges)]
    depths, positions = tree.depths(), _positions(tree, middles)
    bottom = _height(max(depths, default=-1) + 1)
    lines: list[str] = []
    texts: list[str] = []
    parents: list[tuple[float, float]] = []
    """The positions of the constituents that contain the next part."""
    numbers = iter(range(len(tree.constituents)))
    for event in tree.events():
        if event is None:
            parents.pop()
        elif isinstance(event, int):
            tag, text = tree.words[event]
            lines += _edge(parents, middles[event], bottom)
            texts += [_text(middles[event], bottom, tag, QUIET), _text(middles[event], bottom + 1.5 * _SIZE, text, INK)]
        else:
            number = next(numbers)
            position = positions[number], _height(depths[number])
            lines += _edge(parents, *position)
            texts.append(_text(*position, event.label, BLUE))
            parents.append(position)
    return [*lines, *texts], edges[-1] + _MARGIN, bottom + 1.5 * _SIZE + _MARGIN


def _widths(tree: Tree) -> list[float]:
    """Return the widths of the columns of the words, which have space for words, tags and labels."""
    widths = [max(map(_text_width, word)) + _GAP for word in tree.words]
    for label, start, end in reversed(tree.constituents):
        missing = _text_width(label) + _GAP - sum(widths[start:end])
        if missing > 0:
            widths[start:end] = [width + missing / (end - start) for width in widths[start:end]]
    return widths


def _positions(tree: Tree, middles: Sequence[float]) -> list[float]:
    """Return the horizontal position of each constituent, in the middle between its first and its last part.

    middles: the positions of the words.
    """
    parts: list[list[float]] = [[] for _ in tree.constituents]
    owners: list[int] = []
    """The constituents that contain the next part."""
    parents: list[int | None] = []
    for event in tree.events():
        if event is None:
            owners.pop()
        elif isinstance(event, int):
            if owners:
                parts[owners[-1]].append(middles[event])
        else:
            parents.append(owners[-1] if owners else None)
            owners.append(len(parents) - 1)
    positions = [0.0] * len(parts)
    for number in reversed(range(len(parts))):
        positions[number] = (min(parts[number]) + max(parts[number])) / 2
        if (parent := parents[number]) is not None:
            parts[parent].append(positions[number])
    return positions


def _height(depth: int) -> float:
    return _MARGIN + _SIZE + _LEVEL * depth


def _edge(parents: Sequence[tuple[float, float]], x: float, y: float) -> list[str]:
    """Return the line from the innermost constituent to one of its parts."""
    if not parents:
        return []
    above, top = parents[-1]
    path = f"M{above:g} {top + 5:g}V{top + 13:g}H{x:g}V{y - _SIZE - 1:g}"
    return [f'<path d="{path}" fill="none" stroke="{_LINE}"/>']


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}">{escape(text)}</text>'


def _text_width(text: str) -> float:
    return text_width(text, _SIZE) * _PIXELS
