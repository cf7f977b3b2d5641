"""Detects outputs that copy their source."""

from difflib import SequenceMatcher

import regex

from dragoman.inference.control.keep import KINDS
from dragoman.text.normalization import normalise
from dragoman.text.words import split_units

_FEWEST_WORDS = 4
_FRACTION = 0.8
"""Minimum fraction of the source's plain words that a copy repeats in order."""

_NO_TEXT = regex.compile("|".join(KINDS[kind] for kind in ("url", "email", "markup", "placeholder")), regex.V1)


def is_copied(source: str, output: str, fraction: float = _FRACTION) -> bool:
    """Return whether the output repeats at least `fraction` of the source's plain words, in the same order.

    Plain words start with a lower-case letter and are not part of an address or markup: names, numbers and addresses
    are the same in most languages. The result is False if the source has fewer than four plain words, or if most of its
    words are not plain. In scripts without spaces, each character is a word. The result is only meaningful for two
    different languages.
    """
    if source == output:  # most copies are exact
        source_words = output_words = _words(source)
    else:
        source_words, output_words = _words(source), _words(output)
    plain = [word for word in source_words if _is_plain(word)]
    if len(plain) < _FEWEST_WORDS or 2 * len(plain) < len(source_words):
        return False
    if source_words is not output_words:
        matching = SequenceMatcher(None, plain, [word for word in output_words if _is_plain(word)], autojunk=False)
        return sum(block.size for block in matching.get_matching_blocks()) >= fraction * len(plain)
    return True


def _words(text: str) -> list[str]:
    """Return the words that have letters."""
    text = _NO_TEXT.sub(" ", normalise(text, "nfc"))
    return [word for begin, end in split_units(text) if any(map(str.isalpha, word := text[begin:end]))]


def _is_plain(word: str) -> bool:
    """Return whether a word starts with a letter that is not a capital."""
    return word[0].isalpha() and not word[0].isupper() and not word[0].istitle()
