"""Items of corpora: sentence pairs, and passages of plain text."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

from dragoman.text.normalization import Normalization, normalise


class Item(Protocol):
    """An item of a corpus: a `Pair` or a `Passage`."""

    @property
    def line(self) -> int: ...

    @property
    def texts(self) -> tuple[str, ...]: ...

    @property
    def size(self) -> int: ...

    def normalised(self, forms: Sequence[Normalization]) -> Self:
        """Return the item with normalised texts. forms: the Unicode normalisation of each text."""
        ...


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
    def size(self) -> int:
        """Number of UTF-8 bytes on both sides."""
        return text_size(self.source) + text_size(self.target)

    def normalised(self, forms: Sequence[Normalization]) -> "Pair":
        """Return the pair with normalised sides."""
        source, target = map(normalise, self.texts, forms)
        return self._replace(source=source, target=target)


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
    def size(self) -> int:
        """Number of UTF-8 bytes."""
        return text_size(self.text)

    def normalised(self, forms: Sequence[Normalization]) -> "Passage":
        """Return the passage with a normalised text."""
        (form,) = forms
        return self._replace(text=normalise(self.text, form))


def text_size(text: str) -> int:
    """Return the number of UTF-8 bytes of a text. Invalid UTF-8 is as in `Pair`."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
