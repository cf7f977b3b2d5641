"""`NativeEngine`: the engine that holds the whole search of a Transformer in one call of compiled code."""

from collections.abc import Iterator, Sequence

from dragoman.base.errors import ResourceError
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.limits import LengthLimits
from dragoman.models.seq2seq import Seq2Seq
from dragoman.native.build import built
from dragoman.native.calibration import calibrated
from dragoman.native.model import NativeModel, NativeText, Precision
from dragoman.native.processor import available
from dragoman.text.special import EOS
from dragoman.text.tokenizers import Tokenizers
from dragoman.translation.engine import Engine, Pair, Row
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
                unknown = rows[place].prefix.unknown
                yield place, [_with_unknown(each, unknown) for each in hypotheses] if unknown else hypotheses

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


def _with_unknown(hypothesis: Hypothesis, unknown: tuple[str, ...]) -> Hypothesis:
    return Hypothesis(hypothesis.tokens, hypothesis.log_probability, hypothesis.score, hypothesis.finished, unknown)
