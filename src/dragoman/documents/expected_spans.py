"""`ExpectedSpans`: checks that translations contain the addresses, emoji, placeholders and numbers of their sources."""

from collections.abc import Iterable

from dragoman.control.control import Control
from dragoman.control.keep import KeepRules
from dragoman.translation.guard.numbers import changed_numbers

USUAL_KINDS = ("all",)
"""The kinds of spans that are expected in translations unless others are chosen."""


class ExpectedSpans:
    """Spans that a translation should contain unchanged.

    Kept spans are enforced in the search, which is slow. Expected spans are not, because most translations contain them
    anyway. Only a translation that lacks one is searched again, with all spans enforced. Numbers may be written as the
    target language writes them, as in the check of the guard.
    """

    def __init__(self, rules: KeepRules) -> None:
        """rules: find the spans."""
        self.rules = rules
        self._exact = Control(keep=KeepRules(tuple(each for each in rules.kinds if each != "number"), rules.patterns))
        self._has_numbers = "number" in rules.kinds

    def are_in(self, source: str, translation: str) -> bool:
        """Return whether a translation contains each span of its source as often as the source."""
        if self._has_numbers and changed_numbers(source, translation) is not None:
            return False
        return self._exact.requirements(source).is_met_by(translation)


def expected_spans(keep: Iterable[str] | None, patterns: Iterable[str] | None = ()) -> ExpectedSpans | None:
    """Return the usual expected spans and those of patterns if no kinds of spans to keep are given; otherwise None.

    keep, patterns: as in `Translator.request`.
    """
    rules = None if keep is not None else KeepRules.of(USUAL_KINDS, patterns or ())
    return None if rules is None else ExpectedSpans(rules)


def has_words(text: str, rules: KeepRules | None) -> bool:
    """Return whether a text has letters outside the spans that the rules find, so that there is text to translate."""
    position = 0
    for span in [] if rules is None else rules.find(text):
        if any(map(str.isalpha, text[position : span.start])):
            return True
        position = span.end
    return any(map(str.isalpha, text[position:]))
