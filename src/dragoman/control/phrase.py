"""`Phrase`: a text that a translation must contain, in one of several forms, and its format in files."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.base.errors import ConfigError
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.text.words import is_whole_word

SEPARATOR, ALTERNATIVE, ESCAPE = "\t", "|", "\\"


class Phrase(NamedTuple):
    """alternatives: at least one text, without spaces at its ends; a translation must contain one of them."""

    alternatives: tuple[str, ...]

    @staticmethod
    def of(forms: str | Sequence[str]) -> "Phrase":
        """Return a phrase of one form or several, outer spaces stripped. Raises ConfigError if one is blank."""
        given = [forms] if isinstance(forms, str) else list(forms)
        found = tuple(dict.fromkeys(form.strip() for form in given))
        if not found or not all(found):
            raise ConfigError(
                f"{forms!r} is not a phrase: a phrase, and each of its alternatives, has at least one character"
            )
        if any(has_broken_utf8(form) or "\n" in form for form in found):
            raise ConfigError(f"{forms!r} is not a phrase: it must be Unicode text of one line")
        return Phrase(found)

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the places where a text has the phrase as whole words: of its first form from left to right, then of
        the next.
        """
        for form in self.alternatives:
            start = text.find(form)
            while start >= 0:
                end = start + len(form)
                if is_whole_word(text, start, end):
                    yield start, end
                start = text.find(form, start + 1)

    def times(self, text: str) -> int:
        """Return how often a text has the phrase, in places that do not overlap."""
        count, free = 0, 0
        for start, end in sorted(self.places(text), key=lambda place: place[1]):
            if start >= free:
                count, free = count + 1, end
        return count


def phrases(given: Iterable[str | Sequence[str]]) -> tuple[Phrase, ...]:
    """Return phrases, each given as one form or several. Raises ConfigError as `Phrase.of`, TypeError for a string."""
    if isinstance(given, str):
        raise TypeError("constraints are a list of phrases, not one string")
    return tuple(map(Phrase.of, given))


def read_phrases(line: str) -> tuple[Phrase, ...]:
    r"""Parse a line: a tab between phrases, | between alternatives; \| and \\ are the characters themselves.

    A blank line has no phrases. Raises ConfigError for an empty phrase or alternative and for another character after
    a backslash.
    """
    if not line.strip():
        return ()
    return tuple(Phrase.of(split_alternatives(part)) for part in line.split(SEPARATOR))


def split_alternatives(text: str) -> list[str]:
    r"""Split a text at |, with \| and \\ as the characters themselves. Raises ConfigError for other escapes."""
    parts, signs = [""], iter(text)
    for sign in signs:
        if sign == ALTERNATIVE:
            parts.append("")
            continue
        if sign == ESCAPE:
            sign = next(signs, "")
            if sign not in (ALTERNATIVE, ESCAPE) or not sign:
                raise ConfigError(
                    rf"\{sign} in {text[:60]!r}: only \| and \\ are valid escapes; write \\ for a backslash"
                )
        parts[-1] += sign
    return parts
