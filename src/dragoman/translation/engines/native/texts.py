"""`NativeText`, what the native engine translates, and `TextArray`, texts in the memory that it reads and writes."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ModelError
from dragoman.decode.rules.length_penalty import GNMTPenalty, LengthPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.translation.engines.native import library


@dataclass(frozen=True)
class NativeText:
    """A text to translate: source ids, end of sentence among them, and what `SearchConfig` and `Prompts` make of it.

    limit: tokens of an output at most, its end counted, more than the prefix has.
    """

    source: Sequence[int]
    prefix: Sequence[int]
    forbidden: Sequence[int]
    beam: int
    wanted: int
    limit: int
    minimum: int
    penalty: LengthPenalty

    @staticmethod
    def of(source: Sequence[int], prefix: Sequence[int], config: SearchConfig, positions: int | None) -> "NativeText":
        """positions: how many tokens the decoder can read, None for any number."""
        most = config.max_length(len(source))
        limit = most if positions is None else min(most, positions)
        return NativeText(
            source=source,
            prefix=prefix,
            forbidden=config.forbid,
            beam=config.beam,
            wanted=config.nbest,
            limit=max(limit, len(prefix) + 1),
            minimum=config.min_length(len(source)),
            penalty=config.length_penalty,
        )


class TextArray:
    """Texts in the library's layout, with room for what is found."""

    def __init__(self, texts: Sequence[NativeText], sizes: tuple[int, int]) -> None:
        """sizes: of the source's and the target's vocabulary. Raises ModelError for ids beyond them."""
        ids: list[int] = []
        begins = []
        for text in texts:
            for some, size in ((text.source, sizes[0]), (text.prefix, sizes[1]), (text.forbidden, sizes[1])):
                _check(some, size)
                begins.append(len(ids))
                ids.extend(some)
        self._ids = np.array(ids or [0], np.int32)
        rows, places = 0, 0
        self._rows = []
        for text in texts:
            self._rows.append((rows, places, text.limit))
            rows, places = rows + text.wanted, places + text.wanted * text.limit
        self._tokens = np.zeros(places, np.int32)
        self._lengths = np.zeros(rows, np.int32)
        self._log_probabilities = np.zeros(rows, np.float32)
        self._scores = np.zeros(rows, np.float64)
        self._finished = np.zeros(rows, np.uint8)
        held: list[NDArray[Any]] = [
            self._tokens,
            self._lengths,
            self._log_probabilities,
            self._scores,
            self._finished,
        ]
        addresses = [array.ctypes.data for array in held]
        first = self._ids.ctypes.data
        self.texts = (library.Text * len(texts))()
        for number, text in enumerate(texts):
            row, place, _ = self._rows[number]
            starts = (place, row, row, row, row)
            penalty = text.penalty
            self.texts[number] = library.Text(
                *(first + 4 * begin for begin in begins[3 * number : 3 * number + 3]),
                len(text.source),
                len(text.prefix),
                len(text.forbidden),
                text.beam,
                text.wanted,
                text.limit,
                text.minimum,
                _PENALTIES[type(penalty)],
                penalty.alpha if isinstance(penalty, GNMTPenalty) else 0.0,
                *(base + each.itemsize * at for base, each, at in zip(addresses, held, starts, strict=True)),
                None,
                -1,
            )

    def place(self, address: int) -> int:
        """Of the text that lies there."""
        return (address - ctypes.addressof(self.texts)) // ctypes.sizeof(library.Text)

    def hypotheses(self, number: int) -> list[Hypothesis]:
        """What was found of a text, once it is done."""
        return [self._hypothesis(number, rank) for rank in range(self.texts[number].found)]

    def _hypothesis(self, number: int, rank: int) -> Hypothesis:
        row, place, limit = self._rows[number]
        row, start = row + rank, place + rank * limit
        return Hypothesis(
            tuple(self._tokens[start : start + int(self._lengths[row])].tolist()),
            float(self._log_probabilities[row]),
            float(self._scores[row]),
            bool(self._finished[row]),
        )


_PENALTIES = {
    NoPenalty: library.NO_PENALTY,
    GNMTPenalty: library.GNMT_PENALTY,
    MeanLogProbability: library.MEAN_PENALTY,
}


def _check(ids: Sequence[int], size: int) -> None:
    """Raises ModelError for ids that the vocabulary does not have."""
    if ids and (min(ids) < 0 or max(ids) >= size):
        wrong = min(ids) if min(ids) < 0 else max(ids)
        raise ModelError(f"token {wrong} is not among the vocabulary's {size}")
