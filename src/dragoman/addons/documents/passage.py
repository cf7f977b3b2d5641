"""`Passage`: a translatable part of a document, with the markup in it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Escape = Callable[[str, bool], str]
"""Writes text of a translation in the document's format; the flag indicates whether the text starts a sentence."""

Raw = tuple["str | Passage", ...]
"""A part of the document that is kept, except for passages in it, such as the description of an image."""


MarkKind = Literal["open", "close", "empty", "break"]

Style = Literal["emphasis", "separate", "raised"]
"""How an element relates to the word that it is a part of: it emphasises a part of the word; it adds something else,
such as the number of a note or the cents of a price; or it adds something that is raised or lowered."""


class Mark(NamedTuple):
    """A piece of markup within a passage.

    position: the index of the unit that the mark precedes. kind: `open` or `close` for a mark that opens or closes a
    span of text, `break` for one that divides a sentence into sections whose order translations keep, else `empty`.
    partner: the index of the other mark of the span, or None if that mark is in another passage. must_contain_text:
    whether an empty span, or an empty section before or after a break, is invalid. keep_source: whether a span that
    would become empty keeps its source text, such as a link. style: of the opening mark of a span, and of a sign
    at a word.
    """

    position: int
    raw: Raw
    kind: MarkKind
    partner: int | None = None
    must_contain_text: bool = False
    keep_source: bool = False
    style: Style = "emphasis"


@dataclass(frozen=True)
class Passage:
    """A text as a sequence of units. A unit is a single character or a piece of inline code.

    texts: the text of each unit as model input; raws: the original form of each unit, such as `&amp;` for `&`; marks:
    the markup, sorted by position; code: the indices of the units that translations must copy; escape: encodes the text
    of a translation; kept: (begin, end) ranges of units, such as those of an address, whose raws contain markup, which
    translations that contain their text also contain.
    """

    texts: Sequence[str]
    raws: Sequence[str]
    marks: Sequence[Mark] = ()
    code: frozenset[int] = frozenset()
    escape: Escape = field(default=lambda text, _: text, compare=False)
    kept: Sequence[tuple[int, int]] = ()

    @property
    def symbols(self) -> str:
        """One character per unit, for sentence splitting. A letter represents code, and a soft hyphen an empty text."""
        if isinstance(self.texts, str):
            return self.texts
        return "".join("x" if index in self.code else text[:1] or "\u00ad" for index, text in enumerate(self.texts))

    def original(self, begin: int, end: int, first: int, last: int) -> Raw:
        """Return units `begin` to `end` and marks `first` to `last` in their original form."""
        raw: list[str | Passage] = []
        for mark in self.marks[first:last]:
            raw.append("".join(self.raws[begin : mark.position]))
            raw += mark.raw
            begin = max(begin, mark.position)
        raw.append("".join(self.raws[begin:end]))
        return tuple(raw)


def iterate_passages(parts: Sequence["str | Passage"]) -> Iterator[Passage]:
    """Yield all passages, including the passages within marks of other passages."""
    for part in parts:
        if isinstance(part, Passage):
            yield part
            for mark in part.marks:
                yield from iterate_passages(mark.raw)


def raw_text(passage: Passage) -> str:
    """Return the original form of a passage in the document."""
    parts = passage.original(0, len(passage.raws), 0, len(passage.marks))
    return "".join(part if isinstance(part, str) else raw_text(part) for part in parts)
