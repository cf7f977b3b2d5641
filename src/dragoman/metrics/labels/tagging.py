"""Metrics of tagged sentences on resampled test sets: of tags, of spans, and of distinct surface forms."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.metrics.labels.classification import Floats, classification_values
from dragoman.metrics.labels.spans import Convention, Span

Sides = tuple[Sequence[Sequence[Span]], ...]
"""The correct spans of each sentence, and the predicted ones."""


class ResampledTags:
    """The metrics of single words on resampled sentences."""

    def __init__(
        self, gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], labels: Sequence[str]
    ) -> None:
        """gold, predicted: the tags of N sentences. labels: all K tags that occur."""
        index = {name: number for number, name in enumerate(labels)}
        self._statistics = np.zeros((3, len(gold), len(labels)))
        for row, (correct, guessed) in enumerate(zip(gold, predicted, strict=True)):
            for tag, guess in zip(correct, guessed, strict=True):
                self._statistics[0, row, index[tag]] += tag == guess
                self._statistics[1, row, index[tag]] += 1
                self._statistics[2, row, index[guess]] += 1

    def __call__(self, counts: Floats) -> dict[str, Floats]:
        """Return the values (S,), by key. counts: (S, N) number of times that each sentence was drawn."""
        correct, support, predicted = counts @ self._statistics  # (S, K) each
        return classification_values(correct, support, predicted)


class SurfaceForms:
    """F1 of the distinct surface forms of spans (Derczynski et al. 2017), so that frequent names do not dominate.

    A surface form is the type of a span with its words. As in the evaluation of WNUT-17, a form is correct if at least
    one span with this form was predicted at its position.
    """

    def __init__(
        self, words: Sequence[Sequence[str]], gold: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]]
    ) -> None:
        """words: the words of N sentences. gold, predicted: their spans."""
        self._index: dict[tuple[str, ...], int] = {}
        correct = [sorted(set(sides[0]) & set(sides[1])) for sides in zip(gold, predicted, strict=True)]
        self._groups = [self._collect(words, sentences) for sentences in (correct, gold, predicted)]

    def __call__(self, counts: Floats) -> Floats:
        """Return F1 (S,), in percent. counts: (S, N) number of times that each sentence was drawn."""
        correct, gold, predicted = (self._count(counts > 0, *group) for group in self._groups)
        return _f1(correct, gold, predicted)

    def _collect(
        self, words: Sequence[Sequence[str]], sentences: Sequence[Sequence[Span]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the form and the sentence of each span (E,), sorted by form."""
        entries = []
        for row, spans in enumerate(sentences):
            for span in spans:
                form = (span.type, *words[row][span.start : span.end])
                entries.append((self._index.setdefault(form, len(self._index)), row))
        forms, rows = np.array(sorted(entries), np.int64).reshape(-1, 2).T
        return forms, rows

    @staticmethod
    def _count(is_drawn: NDArray[np.bool_], forms: NDArray[np.int64], rows: NDArray[np.int64]) -> Floats:
        """Return the number of forms that occur in the drawn sentences: (S,). forms, rows: as from `_collect`."""
        if not len(forms):
            return np.zeros(len(is_drawn))
        starts = np.unique(forms, return_index=True)[1]
        counts: Floats = np.logical_or.reduceat(is_drawn[:, rows], starts, axis=1).sum(1).astype(np.float64)
        return counts


class ResampledSpans:
    """The accuracy of words, and precision, recall and F1 of spans, on resampled sentences."""

    def __init__(
        self,
        gold: Sequence[Sequence[str]],
        predicted: Sequence[Sequence[str]],
        spans: Mapping[Convention, Sides],
        forms: SurfaceForms | None,
    ) -> None:
        """gold, predicted: the tags of N sentences. spans: the spans of these tags in each convention."""
        self._forms, self._conventions = forms, list(spans)
        columns: list[list[int]] = [
            [sum(map(str.__eq__, *tags)) for tags in zip(gold, predicted, strict=True)],
            [len(tags) for tags in gold],
        ]
        for sides in spans.values():
            columns.append([len(set(correct) & set(guesses)) for correct, guesses in zip(*sides, strict=True)])
            columns += [[len(each) for each in side] for side in sides]
        self._statistics = np.array(columns, np.float64).T  # (N, 2 + 3 · conventions)

    def __call__(self, counts: Floats) -> dict[str, Floats]:
        """Return the values (S,), by key. counts: (S, N) number of times that each sentence was drawn."""
        sums = (counts @ self._statistics).T
        values = {"accuracy": _percent(sums[0], sums[1])}
        for number, convention in enumerate(self._conventions):
            correct, support, guesses = sums[2 + 3 * number : 5 + 3 * number]
            values[f"{convention}_precision"] = _percent(correct, guesses)
            values[f"{convention}_recall"] = _percent(correct, support)
            values[f"{convention}_f1"] = _f1(correct, support, guesses)
        if self._forms is not None:
            values["surface_f1"] = self._forms(counts)
        return values


def _percent(part: Floats, whole: Floats) -> Floats:
    return 100 * part / np.where(whole > 0, whole, 1)


def _f1(correct: Floats, support: Floats, guesses: Floats) -> Floats:
    return _percent(2 * correct, support + guesses)
