"""The division of shaded words into the lines of a picture."""

from collections.abc import Callable, Iterator, Sequence

from dragoman.figures.pictures.figure import shorten_text
from dragoman.text.pieces import readable


def word_lines(
    words: Sequence[str],
    values: Sequence[float],
    width: Callable[[str, float], float],
    limit: float,
    gap: float,
    length: int,
) -> Iterator[list[tuple[str, float, float]]]:
    """Yield the words of each line as they are shown, with their values and widths in inches.

    width: returns the width of a word with its value. limit: maximum width of a line. gap: space between words. length:
    maximum number of characters of a word.
    """
    line: list[tuple[str, float, float]] = []
    used = 0.0
    for word, value in zip(words, values, strict=True):
        shown = shorten_text(readable(word.encode("utf-8", "surrogatepass")), length)
        size = width(shown, value)
        if line and used + size > limit:
            yield line
            line, used = [], 0.0
        line.append((shown, value, size))
        used += size + gap
    if line:
        yield line
