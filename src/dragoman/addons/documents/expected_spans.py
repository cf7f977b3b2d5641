"""`ExpectedSpans`: checks that translations contain the addresses, emoji, placeholders and numbers of their sources."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dragoman.inference.control.control import Control
from dragoman.inference.control.keep import KeepRules, Span
from dragoman.inference.control.numbers import loses_sign
from dragoman.inference.translation.guard.numbers import changed_numbers

USUAL_KINDS = ("all",)
"""The kinds of spans that are expected in translations unless others are chosen."""


class ExpectedSpans:
    """Spans that a translation should contain unchanged.

    Kept spans are enforced in the search, which is slow. Expected spans are not, because most translations contain them
    anyway. Only a translation that lacks one is searched again, with all spans enforced. Numbers may be written as the
    target language writes them, as in the check of the guard, and words may replace common symbols (`5 percent`).
    """

    def __init__(self, rules: KeepRules) -> None:
        """rules: find the spans."""
        self.rules = rules
        self._exact = Control(keep=KeepRules(tuple(each for each in rules.kinds if each != "number"), rules.patterns))
        self._has_numbers = "number" in rules.kinds

    def are_in(self, source: str, translation: str) -> bool:
        """Return whether a translation contains each span of its source as often as the source."""
        if self._has_numbers and (changed_numbers(source, translation) is not None or loses_sign(source, translation)):
            return False
        return self._exact.requirements(source).is_met_by(translation)

    def divide(self, text: str) -> list[tuple[str, bool]]:
        """Divide a text into parts that are expected spans (True), and parts to translate (False)."""
        parts, end = list[tuple[str, bool]](), 0
        for span in self.rules.find(text):
            parts += [(text[end : span.start], False), (span.text, True)]
            end = span.end
        return [part for part in (*parts, (text[end:], False)) if part[0]]


def expected_spans(keep: Iterable[str] | None, patterns: Iterable[str] | None = ()) -> ExpectedSpans | None:
    """Return the usual expected spans and those of patterns if no kinds of spans to keep are given; otherwise None.

    keep, patterns: as in `Translator.request`.
    """
    rules = None if keep is not None else KeepRules.of(USUAL_KINDS, patterns or ())
    return None if rules is None else ExpectedSpans(rules)


_LOOSE_KINDS = ("mention", "hashtag", "url")
"""Kinds of spans that precede or follow whole sentences, but may also be words of a sentence."""

_ENDS = ".!?…:"


class Edges:
    """Separates the emoji, mentions, hashtags and addresses at the ends of a sentence, which are not translated."""

    def __init__(self, control: Control) -> None:
        """control: finds kept and expected spans, without those that its glossary translates."""
        kinds = () if control.keep is None else control.keep.kinds
        emoji, loose = (tuple(kind for kind in kinds if kind in each) for each in (("emoji",), _LOOSE_KINDS))
        self._emoji, self._loose = replace(control, keep=KeepRules(emoji)), replace(control, keep=KeepRules(loose))

    def trim(self, text: str) -> tuple[int, int]:
        """Return the (begin, end) characters of a sentence without the spans at its ends and without blanks.

        Emoji are always separated. Other spans are separated if a capital letter follows or the end of a sentence
        precedes, because they may otherwise be words of the sentence.
        """
        loose = self._loose.requirements(text).spans
        spans = sorted([*self._emoji.requirements(text).spans, *loose])
        begin, end = 0, len(text)
        first = _contiguous(text, spans)
        while first and begin == 0:
            if loose and any(span in loose for span in first) and not text[first[-1].end :].lstrip()[:1].isupper():
                first.pop()
            else:
                begin = first[-1].end
        last = _contiguous(text, [span for span in spans if span.start >= begin], from_end=True)
        while last and end == len(text):
            before = text[begin : last[0].start].rstrip()
            if loose and any(span in loose for span in last) and before[-1:] not in _ENDS:
                last.pop(0)
            else:
                end = last[0].start
        core = text[begin:end]
        return begin + len(core) - len(core.lstrip()), begin + len(core.rstrip())


def _contiguous(text: str, spans: Sequence[Span], from_end: bool = False) -> list[Span]:
    """Return the spans at the start or the end of a text that only blanks separate."""
    found: list[Span] = []
    for span in reversed(spans) if from_end else spans:
        if from_end:
            between = text[span.end : found[0].start] if found else text[span.end :]
        else:
            between = text[found[-1].end : span.start] if found else text[: span.start]
        if between.strip():
            break
        found.insert(0 if from_end else len(found), span)
    return found


def has_words(text: str, control: Control) -> bool:
    """Return whether a text has letters outside the spans to keep, so that there is text to translate."""
    position = 0
    for span in control.requirements(text).spans:
        if any(map(str.isalpha, text[position : span.start])):
            return True
        position = span.end
    return any(map(str.isalpha, text[position:]))
