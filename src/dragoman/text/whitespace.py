"""Words as people count them: what whitespace separates. Their places are those of `str.split`."""

from bisect import bisect_right

from dragoman.text.tokenizer import Tokenizer


def word_places(tokenizer: Tokenizer, text: str) -> list[int | None]:
    """For each id of `tokenizer.encode(text)` which of `text.split()` it belongs to; None for blanks.

    A piece that begins in one word and ends in another belongs to the first.
    """
    begins = [begin for begin, _ in word_spans(text)]
    return [None if end == begin else bisect_right(begins, begin) - 1 for begin, end in tokenizer.spans(text)]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each of `text.split()` begins and ends, in characters."""
    blank = [True, *map(str.isspace, text), True]
    edges = [place for place in range(len(text) + 1) if blank[place] != blank[place + 1]]
    return list(zip(edges[::2], edges[1::2], strict=True))
