"""`Control`: requirements on all translations. `Requirements`: requirements on the translation of one text."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.inference.control.glossary import Glossary, Match, load_glossary
from dragoman.inference.control.keep import KeepRules, Span, bare_number
from dragoman.inference.control.numbers import digits_of
from dragoman.inference.control.phrase import Phrase, phrases


@dataclass(frozen=True)
class Requirements:
    """Phrases and spans that the translation of one text must contain.

    phrases: required in every translation; terms: glossary matches in the text; spans: parts of the text to copy
    unchanged; keep: the rules that find these spans.
    """

    text: str
    phrases: tuple[Phrase, ...]
    terms: tuple[Match, ...]
    spans: tuple[Span, ...]
    keep: KeepRules | None

    def __bool__(self) -> bool:
        """Return whether anything is required."""
        return bool(self.required or self.spans)

    @property
    def required(self) -> tuple[Phrase, ...]:
        """The phrases, followed by the phrases of the matched terms in text order."""
        return (*self.phrases, *(term.phrase for term in self.terms))

    def is_met_by(self, translation: str) -> bool:
        """Return whether a translation contains each phrase as whole words, and each span as often as required.

        A span may occur more often if it is also part of required phrases.
        """
        if any(phrase.times(translation) < times for phrase, times in Counter(self.required).items()):
            return False
        if self.keep is None or not self.spans:
            return True
        required_spans, extra = Counter(span.text for span in self.spans), Counter[str]()

        def count(text: str) -> Counter[str]:
            """Count the spans. A number that is required without its signs may have any."""
            assert self.keep is not None
            texts = (span.text for span in self.keep.find(text))
            return Counter(each if each in required_spans else digits_of(each) for each in texts)

        counts = count(translation)
        for phrase in self.required:
            max_counts = Counter[str]()
            for form in phrase.alternatives:
                max_counts |= count(form)
            extra += max_counts
        return all(times <= counts[span] <= times + extra[span] for span, times in required_spans.items())


@dataclass(frozen=True)
class Control:
    """Requirements on all translations.

    phrases: required in every translation; glossary: translations of terms; keep: rules that find spans to copy
    unchanged.
    """

    phrases: tuple[Phrase, ...] = ()
    glossary: Glossary | None = None
    keep: KeepRules | None = None

    @staticmethod
    def of(
        constraints: Iterable[str | Sequence[str]] = (),
        glossary: Glossary | Mapping[str, Any] | Path | str | None = None,
        keep: Iterable[str] = (),
        keep_patterns: Iterable[str] = (),
    ) -> "Control | None":
        """Create the requirements. Return None if nothing is required.

        constraints: phrases, each a string or a list of alternatives; glossary: a `Glossary`, a mapping of its terms,
        or the path of its file; keep: names of `keep.KINDS`, or "all"; keep_patterns: regular expressions for further
        spans. Raises ConfigError for an invalid value, DataError for an unreadable glossary.
        """
        control = Control(phrases(constraints), load_glossary(glossary), KeepRules.of(keep, keep_patterns))
        return control if control.phrases or control.glossary is not None or control.keep is not None else None

    def requirements(self, text: str) -> Requirements:
        """Return the requirements on the translation of a text.

        A term that contains a whole protected span, such as `#sheep` or `5G`, is translated as the glossary says, and
        so is one that contains all letters and digits of a span and continues beyond it, such as `5 menu` in `€5 menu`.
        Of a number, the digits are kept: a term may contain its sign or unit. Other terms inside protected spans, such
        as a word of an address, are ignored.
        """
        spans = () if self.keep is None else tuple(self.keep.find(text))
        if self.glossary is None:
            return Requirements(text, self.phrases, (), spans, self.keep)
        if spans:
            matches = self.glossary.find(text, [(0, len(text))])
            spans = tuple(rest for span in spans if (rest := _beside_terms(span, matches)) is not None)
        ends = [0, *(span.end for span in spans)]
        starts = [*(span.start for span in spans), len(text)]
        terms = self.glossary.find(text, zip(ends, starts, strict=True))
        return Requirements(text, self.phrases, tuple(terms), spans, self.keep)

    def settings(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {
            "phrases": [list(phrase.alternatives) for phrase in self.phrases],
            "glossary": None if self.glossary is None else self.glossary.fingerprint,
            "keep": None if self.keep is None else [list(self.keep.kinds), list(self.keep.patterns)],
        }


def _beside_terms(span: Span, terms: Sequence[Match]) -> Span | None:
    """Return what is kept of a span beside the terms of a glossary, or None if a term contains it."""
    number = bare_number(span)
    letters = [span.start + index for index, character in enumerate(span.text) if character.isalnum()]
    first, last = (number.start, number.end) if number != span or not letters else (letters[0], letters[-1] + 1)
    for term in terms:
        if term.end <= span.start or span.end <= term.start:
            continue
        contains = term.start <= span.start and span.end <= term.end
        continues = term.start < span.start or span.end < term.end
        if contains or (continues and term.start <= first and last <= term.end):
            return None
        if term.end <= number.start or number.end <= term.start:
            span = number
    return span
