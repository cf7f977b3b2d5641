"""Words as people count them: what whitespace separates. Their places are those of `str.split`."""

from bisect import bisect_right

from dragoman.text.tokenizer import Tokenizer


def word_places(tokenizer: Tokenizer, text: str) -> list[int | None]:
    """For each id of `tokenizer.encode(text)` which of `text.split()` it belongs to; None for blanks.

    A piece that begins in one word and ends in another belongs to the first.
    """
    begins = _begins(text)
    return [None if end == begin else bisect_right(begins, begin) - 1 for begin, end in tokenizer.spans(text)]


def _begins(text: str) -> list[int]:
    """Where the words of a text begin, in characters."""
    blank = [True, *map(str.isspace, text)]
    return [place for place in range(len(text)) if blank[place] and not blank[place + 1]]
