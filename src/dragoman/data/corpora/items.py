"""What readers of corpora give: sentence pairs, and passages of plain text."""

from typing import NamedTuple, Protocol


class Item(Protocol):
    """What a reader gives: a `Pair` or a `Passage`."""

    @property
    def line(self) -> int: ...

    @property
    def texts(self) -> tuple[str, ...]: ...

    @property
    def characters(self) -> int: ...


class Pair(NamedTuple):
    """A sentence pair. Bytes that are no UTF-8 stand in it as lone surrogates (`surrogateescape`).

    complete: whether the corpus has both sides at all; a unit of a TMX file may be without one of the languages.
    """

    line: int  # counted from 1
    source: str
    target: str
    complete: bool = True

    @property
    def texts(self) -> tuple[str, str]:
        """Its sides."""
        return self.source, self.target

    @property
    def characters(self) -> int:
        """Of both sides."""
        return len(self.source) + len(self.target)


class Passage(NamedTuple):
    """A part of a document; all parts one after another are its whole text. Broken UTF-8 is as in `Pair`.

    line: where it begins in the corpus, counted from 1. begins, ends: whether the document does so with it.
    """

    line: int
    text: str
    begins: bool = True
    ends: bool = True

    @property
    def texts(self) -> tuple[str]:
        """Its only side."""
        return (self.text,)

    @property
    def characters(self) -> int:
        """Of its text."""
        return len(self.text)
