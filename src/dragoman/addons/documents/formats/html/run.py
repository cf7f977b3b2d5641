"""`Run`: the text and markup between two blocks of a page, divided into passages.

Neighbours such as the links of a menu are not one sentence, even if no block separates them.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, NamedTuple

from dragoman.addons.documents.formats.html.elements import style_of
from dragoman.addons.documents.passage import Escape, Passage, Raw
from dragoman.addons.documents.passage_builder import PassageBuilder

_SEPARATORS = frozenset("|¦‖·•∙⋅◦▪▫●○■□★☆◆◇")
"""Characters that separate texts where whitespace or markup surrounds them."""

_BREADCRUMBS = frozenset("/\\><»›«‹→←▸▶❯⟩≫⇒:")
"""Characters that separate texts if they are alone between a link and its neighbour."""

_TAG = re.compile(r"(?<!\w)[#@]\w+\Z")
_LONGEST_TAG = 200
"""The number of items before a gap that are searched for the sign of a tag."""


class _Item(NamedTuple):
    """A unit of text, whitespace, code or markup. piece: for a mark, whether its element is a separate piece."""

    kind: Literal["text", "blank", "break", "code", "open", "close", "empty"]
    text: str
    raw: Raw
    name: str = ""
    piece: bool = False

    @property
    def is_mark(self) -> bool:
        return self.kind in ("open", "close", "empty")


class _Gap(NamedTuple):
    """The items `begin` to `end` without letters between two letters. left, right: the pieces around it, or None."""

    begin: int
    end: int
    left: int | None
    right: int | None


class Run:
    """Collects text and markup. `finish` passes it on as passages."""

    def __init__(self, escape: Escape) -> None:
        self._builder = PassageBuilder(escape)
        self._items: list[_Item] = []

    def add_text(self, text: str, raw: str) -> None:
        """Add a character, or an empty text whose `raw` disappears in translations."""
        self._items.append(_Item("text", text, (raw,)))

    def add_blank(self, raw: str) -> None:
        """Add whitespace."""
        self._items.append(_Item("blank", " ", (raw,)))

    def add_line_break(self, raw: str) -> None:
        """Add a line break, which ends a sentence."""
        self._items.append(_Item("break", "\n", (raw,)))

    def add_code(self, text: str, raw: str) -> None:
        """Add code that translations must copy."""
        self._items.append(_Item("code", text, (raw,)))

    def add_mark(self, kind: Literal["open", "close", "empty"], raw: Raw, name: str = "", piece: bool = False) -> None:
        """Add a tag. piece: whether its element is usually a text of its own, such as a link."""
        self._items.append(_Item(kind, "", raw, name, piece))

    def finish(self, receive: Callable[[str | Passage], object], is_menu: bool = False) -> None:
        """Pass everything added since the last call to `receive`. is_menu: whether neighbouring links are separate."""
        items, self._items = _join_signs(self._items), []
        cuts = _cuts(items, is_menu)
        for index, item in enumerate(items):
            if index in cuts:
                self._builder.finish(receive)
            self._build(item)
        self._builder.finish(receive)

    def _build(self, item: _Item) -> None:
        builder, raw = self._builder, item.raw[0] if item.raw else ""
        if item.kind in ("open", "close", "empty"):
            builder.add_mark(item.kind, item.raw, item.name, keep_source=item.piece, style=style_of(item.name))
            return
        assert isinstance(raw, str)
        match item.kind:
            case "text":
                builder.add_text(item.text, raw)
            case "blank":
                builder.add_blank(raw)
            case "break":
                builder.add_line_break(raw)
            case _:
                builder.add_code(item.text, raw)


def _join_signs(items: list[_Item]) -> list[_Item]:
    """Return the items with one mark for each piece without letters and digits, such as the link `¶` of a heading."""
    joined: list[_Item] = []
    begin, has_signs = -1, False
    for item in items:
        joined.append(item)
        has_signs |= bool(item.text.strip())
        if item.kind == "open" and item.piece:
            begin, has_signs = len(joined) - 1, False
        elif item.kind == "code" or any(map(str.isalnum, item.text)):
            begin = -1
        elif item.kind == "close" and begin >= 0 and joined[begin].name == item.name:
            if has_signs:
                raw = tuple(part for each in joined[begin:] for part in each.raw)
                joined[begin:] = [_Item("empty", "", raw)]
            begin = -1
    return joined


def _cuts(items: list[_Item], is_menu: bool) -> set[int]:
    """Return the indices of the items that start a new passage."""
    letters: list[tuple[int, int | None]] = []
    pieces: list[tuple[str, int]] = []
    for index, item in enumerate(items):
        if item.piece and item.kind == "open":
            pieces.append((item.name, index))
        elif item.kind == "close" and pieces and pieces[-1][0] == item.name:
            pieces.pop()
        elif item.kind == "code" or (item.kind == "text" and item.text.isalpha()):
            letters.append((index, pieces[-1][1] if pieces else None))
    inner = {piece for _, piece in letters}
    is_menu = is_menu or (None not in inner and len(inner) > 1)
    cuts: set[int] = set()
    for (left_index, left), (right_index, right) in pairwise(letters):
        if right_index > left_index + 1:
            cuts.update(_cuts_in(items, _Gap(left_index + 1, right_index, left, right), is_menu))
    if is_menu and letters and letters[-1][1] is not None:
        cuts.add(_after_closing_tags(items, _Gap(letters[-1][0] + 1, len(items), letters[-1][1], None)))
    return cuts


def _cuts_in(items: list[_Item], gap: _Gap, is_menu: bool) -> tuple[int, ...]:
    """Return the indices in a gap at which passages start: around its separators, or between its elements."""
    strong = [
        index
        for index in range(gap.begin + 1, gap.end - 1)
        if items[index].text in _SEPARATORS
        and items[index].kind == "text"
        and all(_is_boundary(items[neighbour]) for neighbour in (index - 1, index + 1))
    ]
    if strong:
        return (strong[0], strong[-1] + 1)
    visible = [index for index in range(gap.begin, gap.end) if items[index].text.strip()]
    if gap.left != gap.right:
        is_breadcrumb = bool(visible) and all(items[index].text in _BREADCRUMBS for index in visible)
        both = gap.left is not None and gap.right is not None
        if (both and (is_menu or not _has_text(items, gap))) or (is_breadcrumb and _are_spaced(items, gap, visible)):
            closing = _after_closing_tags(items, gap)
            outside = [index for index in visible if index >= closing]
            return (outside[0], outside[-1] + 1) if outside else (closing,)
    if not _has_text(items, gap) and _are_neighbouring_labels(items, gap):
        return (_after_closing_tags(items, gap),)
    return ()


def _is_boundary(item: _Item) -> bool:
    return item.is_mark or item.text.isspace()


def _has_text(items: list[_Item], gap: _Gap) -> bool:
    return any(item.text for item in items[gap.begin : gap.end])


def _are_spaced(items: list[_Item], gap: _Gap, visible: list[int]) -> bool:
    """Whether separators stand between whitespace or tags, unlike the colon in `Languages: <a>…`."""
    before, after = items[gap.begin : visible[0]], items[visible[-1] + 1 : gap.end]
    return bool(before) and bool(after) and all(map(_is_boundary, (*before, *after)))


def _after_closing_tags(items: list[_Item], gap: _Gap) -> int:
    """Return the index after the last end tag that precedes the first start tag of a gap."""
    end = next((index for index in range(gap.begin, gap.end) if items[index].kind == "open"), gap.end)
    closing = [index for index in range(gap.begin, end) if items[index].kind == "close"]
    return closing[-1] + 1 if closing else end


def _are_neighbouring_labels(items: list[_Item], gap: _Gap) -> bool:
    """Whether `Home</span><span>About` is in a gap: without a space, and with a capital letter only after the gap.

    The parts of a tag such as `#BigCow` are no labels.
    """
    closed = next((item.name for item in items[gap.begin : gap.end] if item.kind == "close"), None)
    opened = next((item.name for item in items[gap.begin : gap.end] if item.kind == "open"), None)
    left, right = items[gap.begin - 1].text, items[gap.end].text
    if not (closed == opened == "span" and left[-1:].islower() and not right[:1].islower()):
        return False
    return _TAG.search("".join(item.text for item in items[max(0, gap.begin - _LONGEST_TAG) : gap.begin])) is None
