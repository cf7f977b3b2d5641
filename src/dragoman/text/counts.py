"""How often words occur, and a text that holds them so often: what trainers learn from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from dragoman.text.tokenizer import check_unicode

_AT_ONCE = 1000


def count_words(texts: Iterable[str], split: Callable[[str], Iterable[str]]) -> Counter[str]:
    """The words that `split` finds in `texts`. Raises DataError for broken Unicode."""
    words: Counter[str] = Counter()
    for text in texts:
        check_unicode([text])
        words.update(split(text))
    words.pop("", None)
    return words


def occurrences(words: Counter[str], separator: str) -> Iterator[str]:
    """Texts in which each word stands as often as it was counted; words that hold the separator are left out."""
    for word, count in sorted(words.items()):
        for start in range(0, 0 if separator in word else count, _AT_ONCE):
            yield separator.join([word] * min(_AT_ONCE, count - start))
