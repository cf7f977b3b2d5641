"""`Passage`: a run of a document that is translated, with the marks that stand in it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Escape = Callable[[str, bool], str]
"""Text of a translation as the format writes it; True where it begins a sentence."""

Raw = tuple["str | Passage", ...]
"""What stands in the document, as it is, but for the passages in it, such as a picture's description."""


class Mark(NamedTuple):
    """Markup within a passage.

    place: the unit that it stands before; kind: whether it opens a span of text, closes one, or neither; partner: the
    index of its span's other mark, None where that stands in another passage. fragile: a span of it cannot be empty.
    """

    place: int
    raw: Raw
    kind: Literal["open", "close", "empty"]
    partner: int | None = None
    fragile: bool = False


@dataclass(frozen=True)
class Passage:
    """Units are characters as the model reads them, and what is kept whole.

    texts: of each unit; raws: the same as the document has it, so `&amp;` for `&`; kept: the units, by index, that
    translations have to hold as they are; marks: by place. escape: how translations of it are written.
    """

    texts: Sequence[str]
    raws: Sequence[str]
    marks: Sequence[Mark] = ()
    kept: frozenset[int] = frozenset()
    escape: Escape = field(default=lambda text, _: text, compare=False)

    @property
    def symbols(self) -> str:
        """A character a unit: where sentences end is looked for in it. What is kept is a letter."""
        if isinstance(self.texts, str):
            return self.texts
        return "".join("x" if place in self.kept else text[:1] for place, text in enumerate(self.texts))

    def as_it_is(self, begin: int, end: int, first: int, last: int) -> Raw:
        """What the document has of the units `begin` to `end` and the marks `first` to `last`."""
        raw: list[str | Passage] = []
        for mark in self.marks[first:last]:
            raw.append("".join(self.raws[begin : mark.place]))
            raw += mark.raw
            begin = max(begin, mark.place)
        raw.append("".join(self.raws[begin:end]))
        return tuple(raw)


def passages_in(parts: Sequence["str | Passage"]) -> Iterator[Passage]:
    """All of them, those in marks of others too."""
    for part in parts:
        if isinstance(part, Passage):
            yield part
            for mark in part.marks:
                yield from passages_in(mark.raw)


def as_text(passage: Passage) -> str:
    """What the document has for it."""
    parts = passage.as_it_is(0, len(passage.raws), 0, len(passage.marks))
    return "".join(part if isinstance(part, str) else as_text(part) for part in parts)
