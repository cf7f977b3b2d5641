"""`CTranslate2Engine`: the engine that computes with CTranslate2, on the CPU.

It finds what our search finds, though CTranslate2 searches by other rules:

- Its beam search ends a sentence when a number of hypotheses have finished; ours when no other can get a better score.
  So it is asked to end none before a number of steps, and gives all that have finished by then and the live ones; from
  these follows whether ours would have ended too. A sentence for which it would not is searched again with more steps.
  Where numbers are rounded anyway (int8), it ends by its own rule, a little later than it would by itself.
- What must not be written it takes out of the distribution that log-probabilities come from; ours leaves it in. So
  nothing is taken out at first; only where a hypothesis holds what it must not, its sentence is searched again without.
- Hypotheses are ranked by our scores, computed from its sums. Where those are not ours (a prefix, which it does not
  count, and where tokens were taken out), log-probabilities come from forced decoding.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil, fsum, isnan
from typing import Any

from dragoman.base.errors import ModelError, ResourceError
from dragoman.base.progress import Work
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.decode.unknown import ForbidUnknownConfig
from dragoman.exchange.ctranslate2.folder import Exported
from dragoman.exchange.ctranslate2.specification import names
from dragoman.models.interface import LengthLimits
from dragoman.text.symbols import EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.engine import Pair, Row
from dragoman.translation.engines.ctranslate2.attempt import Attempt, Batch, Found, in_batches
from dragoman.translation.engines.ctranslate2.usual_steps import UsualSteps
from dragoman.translation.request import Sampling

_ALMOST_NONE = 1e-12
"""A length penalty's exponent that changes no score; with 0 CTranslate2 would end when its best hypothesis has."""

_PATIENCE = 2
"""How many times `beam` hypotheses have finished where it ends by its own rule; by itself, that is once."""

_AT_ONCE = 4096
"""Pairs that are scored in one call, which tells nothing before its end."""

_MORE = 1.5
"""How many times as many steps a sentence gets that has to be searched again."""


class CTranslate2Engine:
    """Greedy and beam search of one model; what it refuses, PyTorch does.

    As many batches are computed at one time as there are workers, each on a thread of its own; more wait in a queue, so
    that none is idle while results are looked at.
    """

    def __init__(self, exported: Exported, workers: int) -> None:
        """workers: how many `exported.translator` has."""
        self._translator, self._positions, self._limits = exported.translator, exported.positions, exported.limits
        self._writes_unknowns = not exported.tokenizers.target.lossless
        self._source, self._target = Names(exported.tokenizers.source), Names(exported.tokenizers.target)
        self._in_flight = 2 * workers
        self._exact = exported.translator.compute_type == "float32"
        self._usual = UsualSteps()

    @property
    def limits(self) -> LengthLimits:
        """The model's."""
        return self._limits

    def refusal(self, row: Row) -> str | None:
        """What CTranslate2 would do with another meaning than our search."""
        decoding = row.decoding
        reason = None
        if isinstance(decoding, Sampling):
            reason = "draws samples by other random numbers, which depend on the other lines"
        elif row.constraints:
            reason = "does not search with several constraints"
        elif others := decoding.beyond("minimum_length", "unknown"):
            reason = f"has no {', '.join(others)} as it is meant here"
        elif self._writes_unknowns and not isinstance(decoding.unknown, ForbidUnknownConfig):
            reason = "does not tell what unknown words attend (search.unknown=forbid needs no attention)"
        elif decoding.beam > 1 and row.prefix.ids:
            reason = "searches on from a prefix by another rule where the beam is more than 1"
        elif decoding.beam > 1 and decoding.minimum_length:
            reason = "compares translations with a least length by another rule where the beam is more than 1"
        elif not len(row.source):
            reason = "translates no text without a token"
        elif self._positions is not None and max(self._limit(row), len(row.source) + 1) > self._positions:
            reason = f"has {self._positions} positions here, too few for the longest lines"
        return None if reason is None else f"the engine ctranslate2 {reason}; PyTorch does this (--engine torch)"

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """As `Engine.hypotheses`. Raises ModelError where log-probabilities are not numbers."""
        first = [Attempt(place, row, self._limit(row)) for place, row in enumerate(rows)]
        fresh = deque(in_batches(first, batch_size))
        again: list[Attempt] = []
        flying: deque[Batch] = deque()
        while fresh or again or flying:
            while len(flying) < self._in_flight and (fresh or again):
                if len(again) >= batch_size or not fresh:
                    fresh.extendleft(in_batches(again, batch_size))
                    again = []
                flying.append(self._started(fresh.popleft()))
            landed = flying.popleft()
            done: list[tuple[Attempt, list[Found]]] = []
            for attempt, result in zip(landed.attempts, landed.results, strict=True):
                judged = self._judged(attempt, landed.steps, self._read(result))
                if isinstance(judged, Attempt):
                    again.append(judged)
                else:
                    done.append((attempt, judged))
            yield from self._scored(done, batch_size)

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """As `Engine.scores`."""
        sums: list[float] = []
        with Work("Scoring", "pairs", len(pairs)) as work:
            for begin in range(0, len(pairs), _AT_ONCE):
                given = [(pair.source, pair.target) for pair in pairs[begin : begin + _AT_ONCE]]
                sums += map(fsum, self._forced(given, batch_size))
                work.tell(len(sums))
        return sums

    def _limit(self, row: Row) -> int:
        """Of a translation in tokens, its end counted, as our search has it."""
        assert isinstance(row.decoding, SearchConfig)
        limit = row.decoding.max_length(len(row.source) + 1)
        positions = self._limits.target.positions
        return max(limit if positions is None else min(limit, positions), len(row.prefix.ids) + 1)

    def _is_guessed(self, attempt: Attempt) -> bool:
        """Whether nobody knows how many steps it needs. Greedy search and CTranslate2's rule end by themselves."""
        return attempt.steps is None and self._exact and attempt.config.beam > 1

    def _steps(self, attempt: Attempt) -> int:
        """How many it gets."""
        if self._is_guessed(attempt):
            return min(attempt.limit, self._usual.of(len(attempt.row.source) + 1))
        return attempt.steps or attempt.limit

    def _started(self, attempts: list[Attempt]) -> Batch:
        """Hand them to CTranslate2, which computes while we go on."""
        config, restricted = attempts[0].config, attempts[0].restricted
        steps, greedy = max(map(self._steps, attempts)), config.beam == 1
        patience = 1 if greedy else steps + 1 if self._exact else _PATIENCE  # more than ever finish in so many steps
        prefixes = [self._target.of(attempt.row.prefix.ids) for attempt in attempts]
        results = self._translator.translate_batch(
            [self._source.of(attempt.row.source) for attempt in attempts],
            prefixes if any(prefixes) else None,
            asynchronous=True,
            beam_size=config.beam,
            patience=patience,
            num_hypotheses=config.beam * patience,
            length_penalty=0 if greedy else _ALMOST_NONE,
            max_input_length=0,
            max_decoding_length=steps,
            min_decoding_length=config.minimum_length,
            suppress_sequences=[[name] for name in self._target.of(config.forbid)] if restricted else None,
            return_end_token=True,
            return_scores=True,
        )
        return Batch(attempts, steps, results)

    def _read(self, result: Any) -> list[Found]:
        """What CTranslate2 has found of a row, once it is there."""
        with _memory():
            result = result.result()
        found = []
        for pieces, total in zip(result.hypotheses, result.scores, strict=True):
            if isnan(total):
                raise ModelError("the model's log-probabilities are not numbers (NaN): damaged or diverged parameters")
            tokens = self._target.ids(pieces)
            finished = bool(tokens) and tokens[-1] == EOS
            found.append(Found(tokens[:-1] if finished else tokens, total, finished))
        return found

    def _judged(self, attempt: Attempt, steps: int, found: list[Found]) -> "list[Found] | Attempt":
        """The best hypotheses of a row after so many steps, or how it has to be searched again."""
        config, limit, begun = attempt.config, attempt.limit, len(attempt.row.prefix.ids)
        forbidden = frozenset(config.forbid)
        if not attempt.restricted and any(not forbidden.isdisjoint(each.tokens[begun:]) for each in found):
            return replace(attempt, restricted=True)
        finished = _best_first((each for each in found if each.finished and len(each.tokens) < limit), config)
        live = _best_first((each for each in found if not each.finished), config)
        if len(finished) >= config.nbest and (steps >= limit or _decided(attempt, steps, found)):
            if self._is_guessed(attempt):
                self._usual.decided(len(attempt.row.source) + 1, len(finished[0].tokens) + 1)
            return finished[: config.nbest]
        if steps < limit:
            if self._is_guessed(attempt):
                self._usual.undecided()
            return replace(attempt, steps=min(limit, ceil(_MORE * steps)))
        # batches go as far as their longest row's limit: what was live at this row's is not known any more
        return [*finished, *live][: config.nbest] if steps == limit else replace(attempt, steps=limit, exactly=True)

    def _scored(
        self, done: list[tuple[Attempt, list[Found]]], batch_size: int
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """With our scores, where they are not known yet from forced decoding."""
        given = [
            (attempt.row.source, each.tokens) for attempt, found in done if not attempt.sums_are_ours for each in found
        ]
        forced = iter(self._forced(given, batch_size))
        for attempt, found in done:
            if not attempt.sums_are_ours:
                sums = [next(forced)[: len(each.tokens) + each.finished] for each in found]
                found = [each._replace(total=fsum(own)) for each, own in zip(found, sums, strict=True)]
            config, unknown = attempt.config, attempt.row.prefix.unknown
            ordered = [_best_first((each for each in found if each.finished is kind), config) for kind in (True, False)]
            yield (
                attempt.place,
                [
                    Hypothesis(each.tokens, each.total, _score(each, config), each.finished, unknown)
                    for each in (*ordered[0], *ordered[1])
                ],
            )

    def _forced(self, given: Sequence[tuple[Sequence[int], Sequence[int]]], batch_size: int) -> list[list[float]]:
        """log p of every token of the second of each pair, and of the end behind them, given the first."""
        if not given:
            return []
        with _memory():
            results = self._translator.score_batch(
                [self._source.of(source) for source, _ in given],
                [self._target.of(target) for _, target in given],
                max_batch_size=batch_size,
                max_input_length=0,
            )
        return [result.log_probs for result in results]


class Names:
    """Ids as the strings that CTranslate2 takes for them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._names = names(tokenizer)
        self._numbers = {name: number for number, name in enumerate(self._names)}

    def of(self, ids: Iterable[int]) -> list[str]:
        """The name of each."""
        return [self._names[number] for number in ids]

    def ids(self, pieces: Iterable[str]) -> tuple[int, ...]:
        """The number of each."""
        return tuple(self._numbers[piece] for piece in pieces)


def _decided(attempt: Attempt, steps: int, found: list[Found]) -> bool:
    """Whether no live hypothesis can get a better score than the last of the `nbest` finished ones."""
    config = attempt.config
    if config.beam == 1:
        return True
    # of the last step, the best `beam` hypotheses: where all of them have finished, no live one is better than any
    live = [each.total for each in found if not each.finished]
    best = max(live) if live else min(each.total for each in found if len(each.tokens) + 1 == steps)
    finished = _best_first((each for each in found if each.finished), config)
    return best / config.length_penalty.divisor(attempt.limit) <= _score(finished[config.nbest - 1], config)


def _best_first(found: Iterable[Found], config: SearchConfig) -> list[Found]:
    return sorted(found, key=lambda each: -_score(each, config))


def _score(found: Found, config: SearchConfig) -> float:
    return found.total / config.length_penalty.divisor(len(found.tokens) + found.finished)


@contextmanager
def _memory() -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise ResourceError(
            "the lines of a batch do not fit the memory of CTranslate2: take a smaller --batch-size, or split long "
            "lines into sentences"
        ) from error
