"""`NativeEngine`: the engine that runs the encoder, decoder and search of a Transformer in compiled code on the CPU."""

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from math import inf

from dragoman.base.errors import ResourceError
from dragoman.decode.constraints.constraint import tokens_needed, word_edges
from dragoman.decode.decoding import Sampling
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Engine, Pair, Row
from dragoman.engines.native.calibration import calibrate
from dragoman.engines.native.constraints import NativeConstraints, TokenKinds
from dragoman.engines.native.model import NativeModel, NativeSession, stacks
from dragoman.engines.native.packing import Packing, Precision
from dragoman.engines.native.request import NativeRequest
from dragoman.models.interface import LengthLimits
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.native.build import best_library
from dragoman.native.compiler import InstructionSet
from dragoman.text.symbols import EOS
from dragoman.text.tokenizers import Tokenizers

_ROWS_PER_CALL = 4096
"""Number of rows per call of the library. A call takes a few seconds, during which no progress is reported."""


class NativeEngine:
    """Runs greedy and beam search in compiled code; pairs are scored by another engine.

    The rows of a call are started in order of decreasing length, so that all cores finish at about the same time. Each
    completed row is replaced by the next row. In float32, results are bit-for-bit independent of the batch size and of
    the numbers of workers and threads.
    """

    def __init__(
        self,
        model: Seq2Seq,
        tokenizers: Tokenizers,
        scorer: Engine,
        precision: Precision,
        threads: int,
        *,
        instructions: InstructionSet | None = None,
    ) -> None:
        """scorer: another engine of the same model. threads: the maximum number of threads. instructions: the
        instruction set; None for the best available one.

        Raises the same errors as `NativeModel`.
        """
        Packing(*stacks(model))  # refuses models that it does not support, before anything is compiled or measured
        best = calibrate(threads, best_library())
        self._model = NativeModel(model, precision, best.threads, instructions)
        self._workers, self._precision = best.workers, precision
        self._limits, self._tokenizers, self._scorer = model.limits, tokenizers, scorer

    def copy(self, threads: int) -> "NativeEngine":
        """Return an engine of the same packed model that can translate in another thread at the same time."""
        other, best = copy(self), calibrate(threads, best_library())
        other._model, other._workers = self._model.copy(best.threads), best.workers
        return other

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return self._precision

    @property
    def limits(self) -> LengthLimits:
        """The model's limits."""
        return self._limits

    def refusal(self, row: Row) -> str | None:
        """Return why a row is not supported.

        None for beam search, also with constraints, without other rules and without unknown-word replacement.
        """
        if isinstance(row.decoding, Sampling):
            return "the native engine does not support sampling, but PyTorch does"
        if row.constraints and tokens_needed(row.constraints) > self._room(row):
            return "the constraints need more tokens than the model may generate"
        if others := row.decoding.beyond("minimum_length", "minimum_factor", "unknown", "shortlist"):
            return f"the native engine does not support {', '.join(others)}, but PyTorch does"
        if not self._tokenizers.target.lossless and (
            row.decoding.unknown is None or row.decoding.unknown.kind != "forbid"
        ):
            return (
                "the native engine does not replace unknown words, but PyTorch does "
                "(--unknown forbid omits unknown words)"
            )
        return None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """See `Engine.hypotheses`; a batch that does not fit into memory is halved."""
        for start in range(0, len(rows), _ROWS_PER_CALL):
            indices = range(start, min(start + _ROWS_PER_CALL, len(rows)))
            order = sorted(indices, key=lambda index: -len(rows[index].source))
            requests = [self.request(rows[index]) for index in order]
            workers = self._workers if len(requests) > 1 else 1
            yield from zip(order, self._translate(requests, -(-batch_size // workers), workers), strict=True)

    def session(self, rows: Sequence[Row], batch_size: int) -> NativeSession:
        """Open a session that starts with at least one row and admits further requests.

        Until the session is closed, the engine can only score pairs. batch_size: as in `hypotheses`. Raises
        ResourceError if no thread can be started.
        """
        requests = [self.request(row) for row in rows]
        return self._model.session(requests, -(-batch_size // self._workers), self._workers)

    def request(self, row: Row) -> NativeRequest:
        """Return the library's request for a supported row."""
        assert isinstance(row.decoding, SearchConfig)
        source, prefix = (*row.source, EOS), row.prefix
        constraints = NativeConstraints(row.constraints, self._kinds, prefix.ids) if row.constraints else None
        positions = self._limits.target.positions
        return NativeRequest.of(
            source,
            prefix.ids,
            row.decoding,
            positions,
            unknown=prefix.unknown,
            constraints=constraints,
            shortlist=row.shortlist,
        )

    @cached_property
    def _kinds(self) -> TokenKinds:
        return TokenKinds(word_edges(self._tokenizers.target))

    def _room(self, row: Row) -> float:
        """Return the maximum number of tokens that may follow a row's prefix."""
        positions = self._limits.target.positions
        return inf if positions is None else positions - len(row.prefix.ids)

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`; computed by `scorer`."""
        return self._scorer.scores(pairs, batch_size)

    def _translate(self, requests: Sequence[NativeRequest], batch_size: int, workers: int) -> list[list[Hypothesis]]:
        try:
            return self._model.translate(requests, batch_size, workers)
        except ResourceError:
            if batch_size == 1 and workers == 1:
                raise
        return self._translate(requests, max(1, batch_size // 2), max(1, workers // 2))
