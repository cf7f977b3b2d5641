"""`NativeEngine`: the engine that holds the whole search of a Transformer in one call of compiled code."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dragoman.base.errors import ResourceError
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import LengthLimits
from dragoman.models.seq2seq import Seq2Seq
from dragoman.text.special import EOS
from dragoman.text.tokenizers import Tokenizers
from dragoman.translation.engine import Engine, Pair, Row
from dragoman.translation.engines.native.build import built
from dragoman.translation.engines.native.calibration import calibrated
from dragoman.translation.engines.native.model import NativeModel, Precision
from dragoman.translation.engines.native.processor import available
from dragoman.translation.engines.native.texts import NativeText
from dragoman.translation.request import Sampling

_AT_ONCE = 4096
"""Rows of a call of compiled code, which tells nothing before its end: some seconds' worth."""


class NativeEngine:
    """Searches natively; scores are another engine's.

    The rows of a call are taken up by falling length, so that the cores end together, and a row that is done makes room
    for the next. In float32 what it finds does not depend on batches, workers or threads, bit for bit.
    """

    def __init__(
        self, model: Seq2Seq, tokenizers: Tokenizers, scorer: Engine, precision: Precision, threads: int
    ) -> None:
        """scorer: another engine of the same model. threads: at most so many. Raises as `NativeModel`."""
        best = calibrated(threads, built(available()[0]))
        self._model = NativeModel(model, precision, best.threads)
        self._workers = best.workers
        self._limits, self._tokenizers, self._scorer = model.limits, tokenizers, scorer

    @property
    def limits(self) -> LengthLimits:
        """The model's."""
        return self._limits

    def refusal(self, row: Row) -> str | None:
        """Only plain beam search, without replacement of unknown words."""
        if isinstance(row.decoding, Sampling):
            return "the native engine does not sample: PyTorch does"
        if row.constraints:
            return "the native engine has no constraints: PyTorch searches with them"
        if others := row.decoding.beyond("minimum_length", "minimum_factor", "unknown"):
            return f"the native engine has no {', '.join(others)}: PyTorch searches with it"
        if not self._tokenizers.target.lossless and (
            row.decoding.unknown is None or row.decoding.unknown.kind != "forbid"
        ):
            return "the native engine does not replace unknown words, as PyTorch does; --unknown forbid leaves them out"
        return None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """As `Engine.hypotheses`; where a batch does not fit the memory, half of it."""
        for begin in range(0, len(rows), _AT_ONCE):
            some = range(begin, min(begin + _AT_ONCE, len(rows)))
            order = sorted(some, key=lambda place: -len(rows[place].source))
            texts = [self._text(rows[place]) for place in order]
            workers = self._workers if len(texts) > 1 else 1
            found = self._translated(texts, -(-batch_size // workers), workers)
            for place, hypotheses in zip(order, found, strict=True):
                yield place, _with_unknown(hypotheses, rows[place].prefix.unknown)

    def open_batch(self, rows: Sequence[Row], batch_size: int) -> "NativeOpenBatch":
        """As `ContinuousEngine.open_batch`."""
        return NativeOpenBatch(self._model, rows, -(-batch_size // self._workers), self._workers, self._text)

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """The other engine's."""
        return self._scorer.scores(pairs, batch_size)

    def _translated(self, texts: Sequence[NativeText], batch_size: int, workers: int) -> list[list[Hypothesis]]:
        try:
            return self._model.translate(texts, batch_size, workers)
        except ResourceError:
            if batch_size == 1 and workers == 1:
                raise
        return self._translated(texts, max(1, batch_size // 2), max(1, workers // 2))

    def _text(self, row: Row) -> NativeText:
        assert isinstance(row.decoding, SearchConfig)
        return NativeText.of((*row.source, EOS), row.prefix.ids, row.decoding, self._limits.target.positions)


class NativeOpenBatch:
    """As `OpenBatch`."""

    def __init__(
        self, model: NativeModel, rows: Sequence[Row], batch_size: int, workers: int, text: Callable[[Row], NativeText]
    ) -> None:
        """batch_size: rows of each worker. text: makes one of a row. Raises ResourceError."""
        self._text = text
        self._given = 0
        self._unknown: dict[int, tuple[str, ...]] = {}
        self._remember(rows)
        self._session = model.session([text(row) for row in rows], batch_size, workers)
        self.close = self._session.close
        """What is not done is given up."""

    @property
    def waiting(self) -> int:
        """As `OpenBatch.waiting`."""
        return self._session.waiting

    @property
    def under_way(self) -> int:
        """As `OpenBatch.under_way`."""
        return self._session.under_way

    def has_room_for(self, row: Row) -> bool:
        """As `OpenBatch.has_room_for`."""
        return self._session.has_room_for(self._text(row))

    def put(self, rows: Sequence[Row]) -> None:
        """As `OpenBatch.put`."""
        self._unknown |= {
            self._given + place: row.prefix.unknown for place, row in enumerate(rows) if row.prefix.unknown
        }
        self._given += len(rows)
        self._session.put([self._text(row) for row in rows])

    def found(self, seconds: float) -> list[tuple[int, list[Hypothesis]]]:
        """As `OpenBatch.found`."""
        return [
            (number, _with_unknown(hypotheses, self._unknown.pop(number, ())))
            for number, hypotheses in self._session.found(seconds)
        ]

    def _remember(self, rows: Sequence[Row]) -> None:
        for number, row in enumerate(rows, start=self._given):
            if row.prefix.unknown:
                self._unknown[number] = row.prefix.unknown
        self._given += len(rows)


def _with_unknown(hypotheses: list[Hypothesis], unknown: tuple[str, ...]) -> list[Hypothesis]:
    return [replace(each, unknown=unknown) for each in hypotheses] if unknown else hypotheses
