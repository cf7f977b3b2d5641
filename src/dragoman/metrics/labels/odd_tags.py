"""Tags that contradict their scheme, such as I-PER after O or the spelling b-PER: how many there are, and the first."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from dragoman.base.errors import DataError
from dragoman.metrics.labels.spans import OUTSIDE, Scheme, belongs, may_follow

Locate = Callable[[int, int], str]
"""Describes where a tag was read. Its arguments are the indices of the sentence and of the word."""

LARGEST_ODD = 0.1
"""Maximum fraction of tags of another scheme, besides O, among those of a file that is scored."""


def in_sentence(sentence: int, word: int) -> str:
    """Describe the position of a tag, if its file and line are unknown."""
    return f"sentence {sentence + 1:,}, word {word + 1}"


def warn_of_odd_tags(
    sentences: Sequence[Sequence[str]], scheme: Scheme, name: str, locate: Locate = in_sentence
) -> str | None:
    """Describe the tags that contradict a scheme, and how they are counted; None if there are none.

    name: of the tags. Raises DataError if more than a tenth of the tags belong to no span of the scheme.
    """
    marked = sum(tag != OUTSIDE for tags in sentences for tag in tags)
    unknown = [
        (number, word)
        for number, tags in enumerate(sentences)
        for word, tag in enumerate(tags)
        if not belongs(tag, scheme)
    ]
    if len(unknown) > LARGEST_ODD * marked:
        number, word = unknown[0]
        raise DataError(
            f"{locate(number, word)}: {sentences[number][word]!r} is not a tag of {scheme}, like {len(unknown):,} of "
            f"the {marked:,} {name} besides O: use the same scheme in all files, with O outside of spans"
        )
    odd = list(_contradictions(sentences, scheme))
    if not odd:
        return None
    number, word, description = min(odd)
    return (
        f"{len(odd):,} {name} contradict {scheme} (the first is {description}; {locate(number, word)}). They are "
        "counted as by conlleval, and not as parts of strict spans"
    )


def _contradictions(sentences: Sequence[Sequence[str]], scheme: Scheme) -> Iterator[tuple[int, int, str]]:
    """Yield sentence, word and description of each tag that does not belong to a scheme or may not be there."""
    allowed: dict[tuple[str, str], bool] = {}
    for number, tags in enumerate(sentences):
        for word, (previous, tag) in enumerate(pairwise([OUTSIDE, *tags, OUTSIDE])):
            if word < len(tags) and not belongs(tag, scheme):
                yield number, word, repr(tag)
            elif belongs(previous, scheme) and belongs(tag, scheme):
                if (previous, tag) not in allowed:
                    allowed[previous, tag] = may_follow(tag, previous, scheme)
                if not allowed[previous, tag] and word == len(tags):
                    yield number, word - 1, f"{previous!r} at the end"
                elif not allowed[previous, tag]:
                    yield number, word, f"{tag!r} after {previous!r}"
