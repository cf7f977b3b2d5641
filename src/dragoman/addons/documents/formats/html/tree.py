"""`element_ends`: the end of every element of a page, including elements without an end tag."""

from collections.abc import Sequence

from dragoman.addons.documents.formats.html.elements import CLOSED_BY, VOID_TAGS
from dragoman.addons.documents.formats.html.tokenizer import Token

_CLOSING = frozenset(name for names, _ in CLOSED_BY.values() for name in names)


def element_ends(tokens: Sequence[Token]) -> dict[int, int]:
    """Return, for each start tag with content, the index after the last token of its element.

    An element without an end tag ends as in browsers in the usual cases: where its parent ends, or at a tag that cannot
    be in it. Takes linear time.
    """
    ends: dict[int, int] = {}
    stack: list[int] = []
    positions: dict[str, list[int]] = {}

    def pop_to(depth: int, end: int) -> None:
        while len(stack) > depth:
            index = stack.pop()
            positions[tokens[index].name].pop()
            ends[index] = end

    for index, token in enumerate(tokens):
        if token.kind == "start":
            if token.name in _CLOSING:
                for name, (closing, limits) in CLOSED_BY.items():
                    depth = _last(positions, name)
                    if token.name in closing and depth > max(_last(positions, limit) for limit in limits):
                        pop_to(depth, index)
            if token.name not in VOID_TAGS and not token.closed:
                positions.setdefault(token.name, []).append(len(stack))
                stack.append(index)
        elif token.kind == "end" and positions.get(token.name):
            depth = positions[token.name][-1]
            start = stack[depth]
            pop_to(depth + 1, index)
            pop_to(depth, index + 1)
            ends[start] = index + 1
    pop_to(0, len(tokens))
    return ends


def _last(positions: dict[str, list[int]], name: str) -> int:
    """Return the depth of the innermost open element of a name, or -1."""
    found = positions.get(name)
    return found[-1] if found else -1
