"""`ConstraintFallback`: ensures that translations meet their requirements even if no hypothesis does."""

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace

from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Engine, Row
from dragoman.inference.control.control import Control, Requirements
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.rounds.rounds import Answer, Search, Steps
from dragoman.inference.translation.rounds.term_placement import AlignerOf, TermPlacement, before_end

Part = tuple[int, int]
"""The start and end of a part of a text, in characters."""


class ConstraintFallback:
    """Selects the hypotheses that meet all requirements; if there are none, constructs such a translation.

    The following methods are tried in order. If the constraints were not enforced in the first search, the search is
    repeated with the constraints enforced, if the engine can enforce them. Then the parts between protected spans are
    translated separately and joined. Finally, these parts are copied from the source, with the glossary's terms
    translated.
    """

    def __init__(self, engine: Engine, codec: Codec, aligner_of: AlignerOf) -> None:
        self._engine, self._codec = engine, codec
        self._placement = TermPlacement(engine, codec, aligner_of)

    def translations(self, row: Row, source: str, request: Request, hypotheses: Sequence[Hypothesis]) -> Steps:
        """Return the translations of a row: its hypotheses that meet all requirements, or a single patched one.

        source: the row's text, without placeholders. Terms stand in the places of their source words (`TermPlacement`).
        """
        assert request.control is not None
        requirements = request.control.requirements(source)
        found = self._meeting(row, requirements, hypotheses)
        if (entry := _glossary_entry(requirements)) is not None and not request.prefix:
            best = found[0] if found else self._codec.decode(hypotheses[0], row.constraints)
            return [replace(best, text=entry, patched=True), *found]
        if self._placement.applies_to(row, requirements):
            answer = yield Search([self._placement.without_terms(row, requirements)])
            assert answer is not None
            found = self._placement.placed(row, requirements, request.tags, found, answer[0])
        if found:
            return found
        if row.expected.constraints:
            row = self._codec.enforce_constraints(row)
            if self._engine.refusal(row) is None:
                answer = yield Search([row])
                assert answer is not None
                (hypotheses,) = answer
                if found := self._meeting(row, requirements, hypotheses):
                    return found
        best = self._codec.decode(hypotheses[0], row.constraints)
        text = yield from self._assembled(row, requirements)
        return [replace(best, text=text, patched=True)]

    def meeting(self, row: Row, source: str, control: Control, hypotheses: Sequence[Hypothesis]) -> list[Translation]:
        """Return the hypotheses of a row that meet all requirements, as translations.

        source: the row's text, without placeholders.
        """
        return self._meeting(row, control.requirements(source), hypotheses)

    def _meeting(self, row: Row, requirements: Requirements, hypotheses: Sequence[Hypothesis]) -> list[Translation]:
        codec, constraints = self._codec.constraints, row.expected.constraints or row.constraints
        if row.expected.constraints:  # the search did not enforce them
            hypotheses = [each for each in hypotheses if codec.meets_all(each, constraints)]
        found = [(each, self._codec.decode(each, constraints)) for each in hypotheses]
        return [
            translation
            for hypothesis, translation in found
            if requirements.is_met_by(translation.text) and codec.restores_all(hypothesis, constraints)
        ]

    def _assembled(self, row: Row, requirements: Requirements) -> Generator[Search, Answer, str]:
        """Return a translation joined from parts, which are all searched in one batch."""
        ends = [0, *(span.end for span in requirements.spans)]
        starts = [*(span.start for span in requirements.spans), len(requirements.text)]
        parts = list(zip(ends, starts, strict=True))
        texts = [requirements.text[start:end] for start, end in parts]
        rows = {
            index: self._part_row(row, requirements, parts[index])
            for index, text in enumerate(texts)
            if any(map(str.isalnum, text))  # parts with punctuation only are copied unchanged
        }
        if rows:
            answer = yield Search(list(rows.values()))
            assert answer is not None
            for (index, part_row), hypotheses in zip(rows.items(), answer, strict=True):
                found = self._codec.decode(hypotheses[0], part_row.constraints).text.strip()
                if requirements.keep is not None and requirements.keep.find(found):
                    texts[index] = _copied(requirements, parts[index])
                else:
                    inner = texts[index].strip()
                    start = texts[index].index(inner)
                    texts[index] = texts[index][:start] + found + texts[index][start + len(inner) :]
        text = self._joined(row, requirements, texts)
        if not requirements.is_met_by(text):
            text = self._joined(row, requirements, [_copied(requirements, part) for part in parts])
        return text

    def _part_row(self, row: Row, requirements: Requirements, part: Part) -> Row:
        start, end = part
        terms = tuple(term.phrase for term in requirements.terms if start <= term.start < end)
        return self._codec.encode_part(row, requirements.text[start:end].strip(), terms)

    def _joined(self, row: Row, requirements: Requirements, parts: Sequence[str]) -> str:
        """Join parts and spans alternately, with the prefix at the start and missing phrases before the final mark."""
        spans = [*(span.text for span in requirements.spans), ""]
        text = "".join(part for pair in zip(parts, spans, strict=True) for part in pair)
        prefix = self._codec.blank_translation(row).text
        if prefix and not text.startswith(prefix):
            text = f"{prefix} {text}"
        for phrase, times in Counter(requirements.required).items():
            for _ in range(times - phrase.times(text)):
                text = before_end(text, phrase.alternatives[0])
        return text


def _glossary_entry(requirements: Requirements) -> str | None:
    """Return the translation of a text that is a term, such as a cell of a table; None for any other text."""
    if len(requirements.terms) != 1 or requirements.phrases or requirements.spans:
        return None
    (term,), text = requirements.terms, requirements.text
    others = text[: term.start] + text[term.end :]
    return None if any(map(str.isalnum, others)) else _copied(requirements, (0, len(text))).strip()


def _copied(requirements: Requirements, part: Part) -> str:
    """Return a part of the source with its terms translated."""
    position, end = part
    text = ""
    for term in requirements.terms:
        if part[0] <= term.start < end:
            text += requirements.text[position : term.start] + term.phrase.alternatives[0]
            position = term.end
    return text + requirements.text[position:end]
