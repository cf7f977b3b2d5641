"""Items of corpora: sentence pairs, and passages of plain text."""

from typing import NamedTuple, Protocol


class Item(Protocol):
    """An item of a corpus: a `Pair` or a `Passage`."""

    @property
    def line(self) -> int: ...

    @property
    def texts(self) -> tuple[str, ...]: ...

    @property
    def characters(self) -> int: ...


class Pair(NamedTuple):
    """A sentence pair. Invalid UTF-8 is kept as lone surrogates (`surrogateescape`).

    complete: whether both sides exist; a unit of a TMX file may lack one of the languages.
    """

    line: int  # counted from 1
    source: str
    target: str
    complete: bool = True

    @property
    def texts(self) -> tuple[str, str]:
        """The source and the target."""
        return self.source, self.target

    @property
    def characters(self) -> int:
        """Number of characters on both sides."""
        return len(self.source) + len(self.target)


class Passage(NamedTuple):
    """A part of a document. The concatenated passages of a document are its whole text. Invalid UTF-8 is as in `Pair`.

    line: line of the corpus at which the passage starts, counted from 1. begins, ends: whether the document begins or
    ends with this passage.
    """

    line: int
    text: str
    begins: bool = True
    ends: bool = True

    @property
    def texts(self) -> tuple[str]:
        """The text, as the only side."""
        return (self.text,)

    @property
    def characters(self) -> int:
        """Number of characters."""
        return len(self.text)
