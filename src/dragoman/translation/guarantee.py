"""`Guarantee`: translations that hold what they must hold, whatever the model does."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from dragoman.base.log import warn
from dragoman.control.control import Control, Demand
from dragoman.decode.search import Hypothesis
from dragoman.translation.codec import Codec
from dragoman.translation.engine import Row
from dragoman.translation.result import Translation

_SHOWN = 10

Search = Callable[[Row], list[Hypothesis]]
"""The hypotheses of a row, the best first."""

Part = tuple[int, int]
"""Where a part of a text begins and ends."""


class Guarantee:
    """Looks at every hypothesis.

    Where none will do, what stands between the kept spans is translated part by part. Where that breaks the promise
    too, the parts stay as the source has them, with the glossary's terms translated.
    """

    def __init__(self, codec: Codec, search: Search) -> None:
        self._codec, self._search = codec, search
        self._count = 0
        self._first: list[int] = []

    def translations(
        self, row: Row, source: str, control: Control, hypotheses: Sequence[Hypothesis]
    ) -> list[Translation]:
        """Of a row, those of its hypotheses that hold all. source: its text, without stand-ins.

        None only where the model was left to write by itself what it has learned: then the row is to be searched once
        more, `Codec.forced`.
        """
        demand = control.demand(source)
        kept = self._holding(row, demand, hypotheses)
        if kept or row.expected.constraints:
            return kept
        self._count += 1
        if len(self._first) < _SHOWN:
            self._first.append(row.number)
        best = self._codec.translation(hypotheses[0], row.constraints)
        return [replace(best, text=self._put_together(row, demand), patched=True)]

    def holding(self, row: Row, source: str, control: Control, hypotheses: Sequence[Hypothesis]) -> list[Translation]:
        """Of a row, those of its hypotheses that hold all; none where none does."""
        return self._holding(row, control.demand(source), hypotheses)

    def report(self) -> None:
        """Warn of the lines that had to be put together since the last time, if there are any."""
        if self._count:
            shown = ", ".join(map(str, self._first)) + (" …" if self._count > len(self._first) else "")
            warn(
                f"{self._count:,} translation(s) were put together from parts, because no hypothesis held what must "
                f"stand in them: line {shown}"
            )
        self._count, self._first = 0, []

    def _holding(self, row: Row, demand: Demand, hypotheses: Sequence[Hypothesis]) -> list[Translation]:
        constraints = row.expected.constraints or row.constraints
        if row.expected.constraints:  # the search did not see to them
            hypotheses = [each for each in hypotheses if self._codec.holds_all(each, constraints)]
        found = [(each, self._codec.translation(each, constraints)) for each in hypotheses]
        return [
            translation
            for hypothesis, translation in found
            if demand.met_by(translation.text) and self._codec.is_tidy(hypothesis, constraints)
        ]

    def _put_together(self, row: Row, demand: Demand) -> str:
        ends = [0, *(span.end for span in demand.spans)]
        starts = [*(span.start for span in demand.spans), len(demand.text)]
        parts = list(zip(ends, starts, strict=True))
        text = self._whole(row, demand, [self._translated(row, demand, part) for part in parts])
        if not demand.met_by(text):
            text = self._whole(row, demand, [_copied(demand, part) for part in parts])
        return text

    def _translated(self, row: Row, demand: Demand, part: Part) -> str:
        """A part between two spans, translated, with the blanks at its ends; one of signs alone stays as it is."""
        start, end = part
        source = demand.text[start:end]
        inner = source.strip()
        if not any(map(str.isalnum, inner)):
            return source
        terms = tuple(term.phrase for term in demand.terms if start <= term.start < end)
        asked = self._codec.part(row, inner, terms)
        text = self._codec.translation(self._search(asked)[0], asked.constraints).text.strip()
        if demand.keep is not None and demand.keep.find(text):
            return _copied(demand, part)
        begin = source.index(inner)
        return source[:begin] + text + source[begin + len(inner) :]

    def _whole(self, row: Row, demand: Demand, parts: Sequence[str]) -> str:
        """Parts and spans in turn, what the translation has to begin with, and phrases that are missing."""
        spans = [*(span.text for span in demand.spans), ""]
        text = "".join(part for pair in zip(parts, spans, strict=True) for part in pair)
        begun = self._codec.blank(row).text
        if begun and not text.startswith(begun):
            text = f"{begun} {text}"
        for phrase, times in Counter(demand.required).items():
            text = " ".join([text, *[phrase.alternatives[0]] * (times - phrase.times(text))])
        return text


def _copied(demand: Demand, part: Part) -> str:
    """A part as it is, with its terms translated."""
    place, end = part
    text = ""
    for term in demand.terms:
        if part[0] <= term.start < end:
            text += demand.text[place : term.start] + term.phrase.alternatives[0]
            place = term.end
    return text + demand.text[place:end]
