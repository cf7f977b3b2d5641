"""`TermPlacement`: puts the required translations of terms where the alignment of their source words puts them.

A search with constraints may write a term where it costs least, such as after the end of the sentence ("Der Koffer ist
rot. Reisetasche."), beside the translation that the model prefers. The translation without the terms shows where they
belong: its words that are aligned with the words of a source term.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

import numpy as np
import regex

from dragoman.base.errors import ConfigError, LineError
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Engine, Row
from dragoman.inference.control.control import Requirements
from dragoman.inference.control.glossary import Match
from dragoman.inference.control.phrase import Phrase
from dragoman.inference.translation.alignment import Aligner, WeightedAligner, WordMatrix
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.result import Translation
from dragoman.text.words import word_spans

AlignerOf = Callable[[Sequence[str]], Aligner]
"""Returns the aligner for sources with these tags."""

Span = tuple[int, int]
"""The start and end of a part of a text, in characters."""

_MAX_TEXTS = 16
"""Maximum number of texts that are scored if terms have several forms."""

_WEAKEST = 0.3
"""Weight of the source words of a term below which no word of the translation counts as their translation."""

_LETTERS = regex.compile(r"[\p{L}\p{M}\p{N}](?:.*[\p{L}\p{M}\p{N}])?", regex.DOTALL)
_FINAL = regex.compile(r"(?P<mark>[.!?…。！？]+[\"'“”’»)\]]*)(?=[\s\p{Script=Han}]|$)")


class TermPlacement:
    """Selects the best of the translations that contain all terms in their places.

    The candidates are the hypotheses of the constrained search, and the translation of the search without the terms, in
    which the words aligned with a term are replaced by each of its forms. The model's log-probability per token
    decides, so that it also chooses among forms and inflections.
    """

    def __init__(self, engine: Engine, codec: Codec, aligner_of: AlignerOf) -> None:
        self._engine, self._codec, self._aligner_of = engine, codec, aligner_of

    def applies_to(self, row: Row, requirements: Requirements) -> bool:
        """Return whether the terms of a row are placed: the search enforces them, and it finds the best translation."""
        decoding = row.decoding
        plain = isinstance(decoding, SearchConfig) and not decoding.tree
        return bool(plain and requirements.terms and row.constraints and not row.expected.constraints)

    def without_terms(self, row: Row, requirements: Requirements) -> Row:
        """Return the row whose search requires all but the terms."""
        first, last = len(requirements.phrases), len(requirements.required)
        return row._replace(constraints=(*row.constraints[:first], *row.constraints[last:]))

    def placed(
        self,
        row: Row,
        requirements: Requirements,
        tags: Sequence[str],
        found: list[Translation],
        plain: Sequence[Hypothesis],
    ) -> list[Translation]:
        """Return the translations of a row, those with the terms in their places first.

        tags: the tags of the request. found: the translations of the constrained search that meet all requirements.
        plain: the hypotheses of the search without the terms.
        """
        free = self._codec.decode(plain[0], self.without_terms(row, requirements).constraints)
        if requirements.is_met_by(free.text):
            return [free, *(each for each in found if each.text != free.text)]
        spans = self._spans(requirements, tags, free.text)
        in_place = [each for each in found if self._is_in_place(requirements, each.text, free.text, spans)]
        if not in_place:
            replaced = [text for text in _replaced(requirements, free.text, spans) if requirements.is_met_by(text)]
            in_place = [replace(free, text=text, patched=True) for text in dict.fromkeys(replaced)]
            if not in_place:
                return [_moved(requirements, each) for each in found]
            scores = self._scores(row, [each.text for each in in_place])
            in_place = [in_place[int(np.argmax(scores))]]
        chosen = {each.text for each in in_place}
        return [*in_place, *(each for each in found if each.text not in chosen)]

    def _spans(self, requirements: Requirements, tags: Sequence[str], text: str) -> dict[Match, Span]:
        """Return the part of a translation that is aligned with each term that it lacks, if there is one."""
        missing = [term for term in requirements.terms if not term.phrase.times(text)]
        weights = self._weights(tags, requirements.text, text)
        if weights is None:
            return {}
        sources, targets = word_spans(requirements.text), word_spans(text)
        present = [span for term in requirements.terms for span in term.phrase.find(text)]
        blocked = {
            number
            for number, (start, end) in enumerate(targets)
            if _LETTERS.search(text[start:end]) is None or any(begin < end and start < stop for begin, stop in present)
        }
        spans: dict[Match, Span] = {}
        for term in missing:
            words = [number for number, (start, end) in enumerate(sources) if start < term.end and term.start < end]
            run = _aligned_run(weights, words, blocked)
            if run:
                blocked |= set(run)
                spans[term] = _letters(text, targets[run[0]][0], targets[run[-1]][1])
        return spans

    def _weights(self, tags: Sequence[str], source: str, target: str) -> WordMatrix | None:
        """Return the weight of each link; None if the pair cannot be aligned."""
        aligner = self._aligner_of(tags)
        try:
            if isinstance(aligner, WeightedAligner):
                return aligner.link_weights(source, target)
            (links,) = aligner.align([source], [target], 1)
        except (ConfigError, LineError):
            return None
        weights = np.zeros((len(target.split()), len(source.split())))
        for source_word, target_word in links:
            weights[target_word, source_word] = 1.0
        return weights

    def _is_in_place(self, requirements: Requirements, text: str, free: str, spans: dict[Match, Span]) -> bool:
        """Return whether a translation has no term after its end, and none beside another translation of the term."""
        if terms_after_end(requirements, text):
            return False
        return all(
            _occurrences(free[slice(*span)], free) > _occurrences(free[slice(*span)], text)
            or any(free[slice(*span)] in form for form in term.phrase.alternatives)
            for term, span in spans.items()
        )

    def _scores(self, row: Row, texts: Sequence[str]) -> list[float]:
        """Return the log-probability per token of translations, in nats; zeros if there is nothing to compare."""
        lines = self._codec.target_ids(texts)
        pairs = self._codec.pairs_of(row, lines)
        try:
            scores = self._engine.scores(pairs, len(pairs)) if len(pairs) > 1 else [0.0]
        except ConfigError:  # of an engine without probabilities of given translations
            scores = [0.0] * len(pairs)
        return [score / (len(ids) + 1) for score, ids in zip(scores, lines, strict=True)]


def before_end(text: str, phrase: str) -> str:
    """Return a text with a phrase before the mark that ends its first sentence; at its end without such a mark."""
    match = _FINAL.search(text)
    position = len(text.rstrip()) if match is None else match.start()
    before = text[:position]
    return f"{before}{' ' if before.strip() else ''}{phrase}{text[position:]}"


def _aligned_run(weights: WordMatrix, words: Sequence[int], blocked: set[int]) -> list[int]:
    """Return the consecutive target words that are aligned with source words, around the one with the largest weight.

    weights: (T, S). blocked: target words that are left out.
    """
    inside = set(words)
    aligned = [row for row in range(len(weights)) if row not in blocked and int(weights[row].argmax()) in inside]
    strength = weights[:, words].sum(1)  # (T,)
    best = max(aligned, key=lambda row: (strength[row], -row), default=None)
    if best is None or strength[best] <= _WEAKEST:
        return []
    run = [best]
    for step in (-1, 1):
        number = best + step
        while number in aligned:
            run.append(number)
            number += step
    longest = max(1, len(words))  # attention of function words is often spread over their neighbours
    kept = sorted(run, key=lambda number: -strength[number])[:longest]
    return list(range(min(kept), max(kept) + 1)) if max(kept) - min(kept) < longest else [best]


def _letters(text: str, start: int, end: int) -> Span:
    """Return a part of a text without punctuation at its ends."""
    match = _LETTERS.search(text[start:end])
    return (start, end) if match is None else (start + match.start(), start + match.end())


def _replaced(requirements: Requirements, text: str, spans: dict[Match, Span]) -> Iterator[str]:
    """Yield the text with the spans replaced by all forms of their terms."""
    ordered = sorted(spans.items(), key=lambda item: item[1])
    for forms in islice(product(*(term.phrase.alternatives for term, _ in ordered)), _MAX_TEXTS):
        result, position = "", 0
        for (_, (start, end)), form in zip(ordered, forms, strict=True):
            result, position = result + text[position:start] + form, end
        yield result + text[position:]


def _occurrences(part: str, text: str) -> int:
    """Return how often a part occurs in a text as whole words."""
    return Phrase((part,)).times(text)


def _end_of_first_sentence(text: str) -> int:
    """Return the position after the first mark that ends a sentence."""
    match = _FINAL.search(text)
    return len(text) if match is None else match.end()


def terms_after_end(requirements: Requirements, text: str) -> list[Span]:
    """Return the terms of the first sentence of a source that stand after the first sentence of a translation."""
    source_end, end = _end_of_first_sentence(requirements.text), _end_of_first_sentence(text)
    terms = [term for term in requirements.terms if term.end <= source_end]
    found = [sorted(term.phrase.find(text)) for term in terms]
    return [spans[0] for spans in found if spans and spans[0][0] >= end]


def _moved(requirements: Requirements, translation: Translation) -> Translation:
    """Return a translation with terms that stand after its end moved before the final punctuation."""
    text = translation.text
    for _ in requirements.terms:
        late = terms_after_end(requirements, text)
        if not late:
            break
        start, end = late[0]
        after = text[end:]
        if (mark := _FINAL.match(after)) is not None:
            after = after[mark.end() :]
        text = before_end(text[:start].rstrip() + after, text[start:end])
    return translation if text == translation.text else replace(translation, text=text, patched=True)
