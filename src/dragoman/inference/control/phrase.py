"""`Phrase`: a text that a translation must contain in one of several forms, and the file format of phrases."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.base.errors import ConfigError
from dragoman.data.files.lines import has_broken_utf8
from dragoman.text.normalization import NormalisedText, normalise
from dragoman.text.words import is_whole_word

SEPARATOR, ALTERNATIVE, ESCAPE = "\t", "|", "\\"


class Phrase(NamedTuple):
    """A required phrase.

    alternatives: at least one form, without leading and trailing spaces. A translation must contain one of these forms.
    """

    alternatives: tuple[str, ...]

    @staticmethod
    def of(forms: str | Sequence[str]) -> "Phrase":
        """Create a phrase from one or several forms, which are stripped of whitespace.

        Raises ConfigError if there is no form, or if a form is blank, is not valid Unicode, or has several lines.
        """
        values = [forms] if isinstance(forms, str) else list(forms)
        alternatives = tuple(dict.fromkeys(form.strip() for form in values))
        if not alternatives or not all(alternatives):
            raise ConfigError(f"{forms!r} is not a phrase: a phrase, and each of its alternatives, must not be blank")
        if any(has_broken_utf8(form) or "\n" in form for form in alternatives):
            raise ConfigError(f"{forms!r} is not a phrase: it must be a single line of Unicode text")
        return Phrase(alternatives)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each occurrence of the phrase as whole words.

        The occurrences of each form, from left to right, follow those of the previous form. Texts that Unicode defines
        as canonically equivalent are the same.
        """
        normalised = NormalisedText.of(text, "nfc")
        for form in self.alternatives:
            form = normalise(form, "nfc")
            start = normalised.text.find(form)
            while start >= 0:
                end = start + len(form)
                if is_whole_word(normalised.text, start, end):
                    yield normalised.span_in_original(start, end)
                start = normalised.text.find(form, start + 1)

    def times(self, text: str) -> int:
        """Return the number of non-overlapping occurrences of the phrase."""
        count, free = 0, 0
        for start, end in sorted(self.find(text), key=lambda occurrence: occurrence[1]):
            if start >= free:
                count, free = count + 1, end
        return count


def phrases(values: Iterable[str | Sequence[str]]) -> tuple[Phrase, ...]:
    """Create phrases, each from one form or several.

    Raises TypeError for a single string instead of a list, and ConfigError for an invalid phrase.
    """
    if isinstance(values, str):
        raise TypeError("constraints must be a list of phrases, not a single string")
    return tuple(map(Phrase.of, values))


def read_phrases(line: str) -> tuple[Phrase, ...]:
    r"""Parse a line with tabs between phrases and | between alternatives. \| and \\ are escapes for | and \.

    A blank line has no phrases. Raises ConfigError for an empty phrase or alternative, and for a backslash before any
    other character.
    """
    if not line.strip():
        return ()
    return tuple(Phrase.of(split_alternatives(part)) for part in line.split(SEPARATOR))


def split_alternatives(text: str) -> list[str]:
    r"""Split a text at |. \| and \\ are escapes for | and \. Raises ConfigError for other escapes."""
    parts, characters = [""], iter(text)
    for character in characters:
        if character == ALTERNATIVE:
            parts.append("")
            continue
        if character == ESCAPE:
            character = next(characters, "")
            if character not in (ALTERNATIVE, ESCAPE) or not character:
                raise ConfigError(
                    rf"\{character} in {text[:60]!r}: only \| and \\ are valid escapes; write \\ for a backslash"
                )
        parts[-1] += character
    return parts
