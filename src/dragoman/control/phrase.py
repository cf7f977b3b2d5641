"""`Phrase`: a text that a translation must hold, in one of several forms, and how files write it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.base.errors import ConfigError
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.text.words import is_whole_word

SEPARATOR, ALTERNATIVE, ESCAPE = "\t", "|", "\\"


class Phrase(NamedTuple):
    """alternatives: texts without blanks at their ends, at least one; a translation holds one of them."""

    alternatives: tuple[str, ...]

    @staticmethod
    def of(forms: str | Sequence[str]) -> "Phrase":
        """Of one form or several, without blanks at their ends. Raises ConfigError where that leaves nothing."""
        given = [forms] if isinstance(forms, str) else list(forms)
        found = tuple(dict.fromkeys(form.strip() for form in given))
        if not found or not all(found):
            raise ConfigError(
                f"{forms!r} is no phrase: a phrase, and each of its alternatives, has at least a character"
            )
        if any(has_broken_utf8(form) or "\n" in form for form in found):
            raise ConfigError(f"{forms!r} is no phrase: it is no Unicode text of one line")
        return Phrase(found)

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it stands in a text as words of their own: of its first form from left to right, then of the next."""
        for form in self.alternatives:
            start = text.find(form)
            while start >= 0:
                end = start + len(form)
                if is_whole_word(text, start, end):
                    yield start, end
                start = text.find(form, start + 1)

    def times(self, text: str) -> int:
        """How often it stands there, in places that do not overlap."""
        count, free = 0, 0
        for start, end in sorted(self.places(text), key=lambda place: place[1]):
            if start >= free:
                count, free = count + 1, end
        return count


def phrases(given: Iterable[str | Sequence[str]]) -> tuple[Phrase, ...]:
    """Each of one form, or of several. Raises ConfigError as `Phrase.of`, TypeError for a bare string."""
    if isinstance(given, str):
        raise TypeError("constraints are a list of phrases, not one string")
    return tuple(map(Phrase.of, given))


def read_phrases(line: str) -> tuple[Phrase, ...]:
    r"""Of a line: a tab between phrases, | between alternatives; \| and \\ stand for the signs themselves.

    A blank line has none. Raises ConfigError for an empty phrase or alternative and for another sign after \.
    """
    if not line.strip():
        return ()
    return tuple(Phrase.of(split_alternatives(part)) for part in line.split(SEPARATOR))


def split_alternatives(text: str) -> list[str]:
    r"""What stands between |, with \| and \\ as the signs themselves. Raises ConfigError for another sign after \."""
    parts, signs = [""], iter(text)
    for sign in signs:
        if sign == ALTERNATIVE:
            parts.append("")
            continue
        if sign == ESCAPE:
            sign = next(signs, "")
            if sign not in (ALTERNATIVE, ESCAPE) or not sign:
                raise ConfigError(
                    rf"\{sign} in {text[:60]!r}: only \| and \\ are known; write \\ for the sign \ itself"
                )
        parts[-1] += sign
    return parts
