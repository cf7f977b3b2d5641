"""`CTranslate2Engine`: the engine that searches with CTranslate2, on the CPU.

CTranslate2 implements the search, so its results differ from the results of the other engines (see
docs/explanation/engines.md). A search ends once `beam` hypotheses have finished. A score is the sum of
log-probabilities divided by lengthᵅ. Forbidden tokens, and the end of sentence before the minimum length, are removed
from the distribution, which is then renormalised. A prefix counts towards the length, but not towards
log-probabilities.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import fsum, isnan
from typing import Any, NamedTuple

from dragoman.base.cancellation import check_cancelled
from dragoman.base.errors import ModelError, ResourceError
from dragoman.base.progress import Progress
from dragoman.decode.decoding import Sampling
from dragoman.decode.rules.length_penalty import GNMTPenalty, LengthPenalty, MeanLogProbability
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Pair, Row
from dragoman.exchange.ctranslate2.folder import ExportedModel
from dragoman.exchange.ctranslate2.specification import token_names
from dragoman.models.interface import LengthLimits
from dragoman.text.symbols import EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.unknown_words import ForbidUnknownConfig

_LARGEST_BATCH = 1 << 24
"""Maximum of rows · length². It equals 64 rows of 512 tokens, whose attention in 8 heads takes half a gigabyte."""

_MOST_WORK = 1 << 14
"""Maximum of rows · source tokens · beam. A batch cannot be interrupted, and takes about a second on one core with a
model of the preset `small`."""

_SCORED_PAIRS = 4096
"""Number of pairs per CTranslate2 call. No progress is reported during a call."""


class _Search(NamedTuple):
    """Search settings shared by all rows of a call.

    limit: the maximum number of output tokens, including the end of sentence.
    """

    beam: int
    nbest: int
    alpha: float
    limit: int
    minimum: int
    forbidden: frozenset[int]
    has_prefix: bool


class CTranslate2Engine:
    """Runs greedy and beam search of one model in CTranslate2.

    Rows are computed together only if their search settings are equal, including the length limit, so the result of a
    row does not depend on other rows. Each worker computes one batch at a time, on a separate thread. One more batch
    per worker is queued, so that no worker waits while results are read. After a cancellation, no further batch is
    started.
    """

    def __init__(self, exported: ExportedModel, workers: int) -> None:
        """workers: the number of workers of `exported.translator`."""
        self._translator, self._positions, self._limits = exported.translator, exported.positions, exported.limits
        self._writes_unknowns = not exported.tokenizers.target.lossless
        self._source, self._target = TokenNames(exported.tokenizers.source), TokenNames(exported.tokenizers.target)
        self._in_flight = 2 * workers

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return str(self._translator.compute_type)

    @property
    def limits(self) -> LengthLimits:
        """The model's limits."""
        return self._limits

    def refusal(self, row: Row) -> str | None:
        """Return why CTranslate2 does not support a row, or cannot compute it independently of other rows; else None.

        The reason is a full sentence.
        """
        decoding = row.decoding
        feature = None
        if isinstance(decoding, Sampling):
            feature = "sampling with random numbers that are independent of other lines"
        elif row.constraints:
            feature = "a search with several constraints"
        elif others := decoding.beyond("minimum_length", "minimum_factor", "unknown"):
            feature = f"dragoman's definition of {', '.join(others)}"
        elif self._writes_unknowns and not isinstance(decoding.unknown, ForbidUnknownConfig):
            feature = "the replacement of unknown words (search.unknown=forbid omits them)"
        elif not len(row.source):
            feature = "lines without tokens"
        elif self._positions is not None and max(self._limit(row), len(row.source) + 1) > self._positions:
            feature = f"more than {self._positions} positions, which the longest lines need"
        if feature is None:
            return None
        return f"the ctranslate2 engine does not support {feature}, but PyTorch does (--engine torch)"

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """See `Engine.hypotheses`. Raises ModelError if log-probabilities are NaN, and Cancelled between batches."""
        batches = deque(self._batches(rows, batch_size))
        in_flight: deque[tuple[_Search, list[int], list[Any]]] = deque()
        while batches or in_flight:
            check_cancelled()
            while batches and len(in_flight) < self._in_flight:
                search, indices = batches.popleft()
                in_flight.append((search, indices, self._start(search, [rows[index] for index in indices])))
            search, indices, results = in_flight.popleft()
            for index, result in zip(indices, results, strict=True):
                yield index, self._read(search, rows[index], result)

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`."""
        scores: list[float] = []
        with Progress("Scoring", "pairs", len(pairs)) as progress:
            for start in range(0, len(pairs), _SCORED_PAIRS):
                part = pairs[start : start + _SCORED_PAIRS]
                with _memory_errors():
                    results = self._translator.score_batch(
                        [self._source.of(pair.source) for pair in part],
                        [self._target.of(pair.target) for pair in part],
                        max_batch_size=batch_size,
                        max_input_length=0,
                    )
                scores += [fsum(result.log_probs) for result in results]
                progress.update(len(scores))
        return scores

    def _limit(self, row: Row) -> int:
        """Return the maximum output length in tokens, including the end of sentence, as in dragoman's search."""
        assert isinstance(row.decoding, SearchConfig)
        limit = row.decoding.max_length(len(row.source) + 1)
        positions = self._limits.target.positions
        return max(limit if positions is None else min(limit, positions), len(row.prefix.ids) + 1)

    def _search(self, row: Row) -> _Search:
        config = row.decoding
        assert isinstance(config, SearchConfig)
        return _Search(
            beam=config.beam,
            nbest=config.nbest,
            alpha=_exponent(config.length_penalty),
            limit=self._limit(row),
            minimum=config.min_length(len(row.source) + 1),
            forbidden=frozenset(config.forbid),
            has_prefix=bool(row.prefix.ids),
        )

    def _batches(self, rows: Sequence[Row], size: int) -> list[tuple[_Search, list[int]]]:
        """Return batches of equal search settings and similar lengths, as row indices.

        The batch of the first row comes first.
        """
        groups: dict[_Search, list[int]] = {}
        for index, row in enumerate(rows):
            groups.setdefault(self._search(row), []).append(index)
        batches = []
        for search, indices in groups.items():
            batch: list[int] = []
            for index in sorted(indices, key=lambda index: len(rows[index].source)):
                length, count = len(rows[index].source) + 1, len(batch) + 1
                is_full = (
                    len(batch) == size
                    or count * max(length, search.limit) ** 2 > _LARGEST_BATCH
                    or count * length * search.beam > _MOST_WORK
                )
                if batch and is_full:
                    batches.append((search, batch))
                    batch = []
                batch.append(index)
            batches.append((search, batch))
        return sorted(batches, key=lambda each: min(each[1]))

    def _start(self, search: _Search, rows: Sequence[Row]) -> list[Any]:
        """Pass a batch to CTranslate2, which computes it in the background; returns its pending results."""
        results: list[Any] = self._translator.translate_batch(
            [self._source.of(row.source) for row in rows],
            [self._target.of(row.prefix.ids) for row in rows] if search.has_prefix else None,
            asynchronous=True,
            beam_size=search.beam,
            num_hypotheses=search.nbest,
            length_penalty=search.alpha,
            max_input_length=0,
            max_decoding_length=search.limit,
            min_decoding_length=search.minimum,
            suppress_sequences=[[name] for name in self._target.of(sorted(search.forbidden))] or None,
            return_end_token=True,
            return_scores=True,
        )
        return results

    def _read(self, search: _Search, row: Row, result: Any) -> list[Hypothesis]:
        """Wait for the pending result of a row, and return its hypotheses."""
        with _memory_errors():
            result = result.result()
        hypotheses = []
        for pieces, score in zip(result.hypotheses, result.scores, strict=True):
            if isnan(score):
                raise ModelError("the model's log-probabilities are NaN: its parameters are damaged or have diverged")
            tokens = self._target.ids(pieces)
            finished = bool(tokens) and tokens[-1] == EOS
            log_probability = score * len(tokens) ** search.alpha
            hypotheses.append(
                Hypothesis(tokens[:-1] if finished else tokens, log_probability, score, finished, row.prefix.unknown)
            )
        return hypotheses


class TokenNames:
    """Converts ids to the tokens of CTranslate2's vocabulary, and back."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._names = token_names(tokenizer)
        self._ids = {name: number for number, name in enumerate(self._names)}

    def of(self, ids: Iterable[int]) -> list[str]:
        """Return the token of each id."""
        return [self._names[number] for number in ids]

    def ids(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the id of each token."""
        return tuple(self._ids[name] for name in names)


def _exponent(penalty: LengthPenalty) -> float:
    """Return the exponent α of the length penalty lengthᵅ.

    GNMT's penalty, ((5 + length) / 6)ᵅ, grows at the same rate for long outputs, but more slowly for short ones.
    """
    if isinstance(penalty, GNMTPenalty):
        return penalty.alpha
    return 1.0 if isinstance(penalty, MeanLogProbability) else 0.0


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Convert a MemoryError raised by CTranslate2 to a ResourceError."""
    try:
        yield
    except MemoryError as error:
        raise ResourceError(
            "CTranslate2 ran out of memory for a batch: use a smaller --batch-size, or split long lines into sentences"
        ) from error
