"""`NativeModel`: a Transformer that the native engine holds, and its one function: translate texts."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ModelError, ResourceError
from dragoman.decode.rules.length_penalty import GNMTPenalty, LengthPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.seq2seq import Seq2Seq
from dragoman.native import library
from dragoman.native.build import built
from dragoman.native.processor import InstructionSet, available
from dragoman.native.transformer import Packing, PositionTables, stacks
from dragoman.text.special import BOS, EOS

Precision = Literal["float32", "int8"]


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


class NativeModel:
    """Weights packed once, as float32 or 8-bit codes; products, attention and search in one call of the library.

    Not for several calls at a time.
    """

    def __init__(
        self,
        model: Seq2Seq,
        precision: Precision = "int8",
        threads: int = 1,
        instructions: InstructionSet | None = None,
    ) -> None:
        """threads: that work on a text together where there is one worker. instructions: None for the best there are.

        Raises Unsupported for a model that the engine does not have, NoCompilerError where it cannot be built.
        """
        packing = Packing(model, library.INT8 if precision == "int8" else library.FLOAT32, threads)
        self.library = built(instructions or available()[0])
        """The file of the compiled engine."""
        self._library = library.load(self.library)
        self._model = self._library.dragoman_open(ctypes.byref(packing.model))
        if not self._model:
            raise ResourceError(
                "the model does not fit the memory a second time, packed for the native engine: use --engine torch"
            )
        self._close = finalize(self, self._library.dragoman_close, self._model)
        encoder, decoder = stacks(model)
        self._source, self._target = PositionTables(encoder), PositionTables(decoder)
        self._vocabulary = packing.model.vocabulary.outputs
        self._sizes = packing.model.encoder.size, packing.model.decoder.size

    def translate(self, texts: Sequence[NativeText], batch_size: int, workers: int) -> list[list[Hypothesis]]:
        """The hypotheses of each, as `dragoman.decode.search.search` has them.

        The texts are taken up in their order. batch_size: that a worker has at work at most. workers: that share the
        texts, a thread each; with one, the model's threads work together. Raises ModelError where log-probabilities
        are not numbers, ResourceError where the memory is too small.
        """
        if not texts:
            return []
        batch = _Batch(texts, self._sizes)
        plan = library.Plan(
            self._source.table(max(len(text.source) for text in texts)),
            self._target.table(max(text.limit for text in texts)),
            BOS,
            EOS,
            max(1, min(workers, len(texts))),
            max(1, min(batch_size, len(texts))),
        )
        outcome = self._library.dragoman_translate(self._model, batch.texts, len(texts), ctypes.byref(plan))
        if outcome == library.NO_MEMORY:
            raise ResourceError("the texts do not fit the memory together: use a smaller batch size or beam")
        if outcome == library.NOT_A_NUMBER:
            raise ModelError("the model's log-probabilities are not numbers (NaN): damaged or diverged parameters")
        return batch.hypotheses()


class _Batch:
    """Texts in the library's layout, with room for what is found."""

    def __init__(self, texts: Sequence[NativeText], sizes: tuple[int, int]) -> None:
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
                -1,
            )

    def hypotheses(self) -> list[list[Hypothesis]]:
        """What was found."""
        return [
            [self._hypothesis(number, rank) for rank in range(text.found)] for number, text in enumerate(self.texts)
        ]

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
