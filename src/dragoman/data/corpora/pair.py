"""`Pair`: a sentence pair as a reader finds it."""

from typing import NamedTuple


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
