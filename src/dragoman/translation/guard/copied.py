"""Text that was not translated: the source, or nearly that, as the output."""

from difflib import SequenceMatcher

import regex

from dragoman.control.keep import KINDS
from dragoman.text.words import units
from dragoman.translation.guard.finding import Finding

_LEAST_WORDS = 4
_COPIED = 0.8
"""The share of a source's plain words that stands in the output in the same order."""

_NO_TEXT = regex.compile("|".join(KINDS[kind] for kind in ("url", "email", "markup", "placeholder")), regex.V1)


def copied(source: str, output: str) -> Finding | None:
    """A finding where at least 80% of a source's plain words stand in the output in their order.

    Plain words have letters and no capital at their beginning, and no address or markup holds them: names, numbers and
    addresses stay what they are in most languages. A source of less than four is not judged, and none that is mostly
    something else. In scripts without blanks a word is a character. To be asked of two different languages only.
    """
    if source == output:  # most copies are exact
        given = written = _words(source)
    else:
        given, written = _words(source), _words(output)
    plain = [word for word in given if _is_plain(word)]
    if len(plain) < _LEAST_WORDS or 2 * len(plain) < len(given):
        return None
    if given is not written:
        matching = SequenceMatcher(None, plain, [word for word in written if _is_plain(word)], autojunk=False)
        if sum(block.size for block in matching.get_matching_blocks()) < _COPIED * len(plain):
            return None
    return Finding("copy", output)


def _words(text: str) -> list[str]:
    """Those with letters."""
    text = _NO_TEXT.sub(" ", text)
    return [word for begin, end in units(text) if any(map(str.isalpha, word := text[begin:end]))]


def _is_plain(word: str) -> bool:
    """Whether it begins with a letter that is no capital."""
    return word[0].isalpha() and not word[0].isupper() and not word[0].istitle()
