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
