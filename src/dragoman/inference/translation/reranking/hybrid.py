"""`HybridEngine`: the translations of a phrase-based model, of which a neural model helps to choose the best."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from dragoman.checkpoint.meta import HybridWeights
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Engine, Pair, Row
from dragoman.inference.translation.reranking.pair_scores import PairScorer, pair_scores
from dragoman.models.interface import LengthLimits
from dragoman.text.tokenizer import Tokenizer

Scorer = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""Returns log p(target | source) of pairs, in nats, given their sources and their targets."""

_ROWS = 64
"""Number of rows whose hypotheses are scored together."""


class HybridEngine:
    """Orders the hypotheses of an engine by a weighted sum of their score, their neural log-probability and length.

    A phrase-based model knows the words of a small corpus better than a neural model, which knows better how they are
    arranged. The sum is a log-linear model with the neural model as one feature (Och & Ney 2002, "Discriminative
    Training and Maximum Entropy Models for Statistical Machine Translation"; Neubig et al. 2015, "Neural Reranking
    Improves Subjective Quality of Machine Translation").
    """

    def __init__(self, engine: Engine, tokenizer: Tokenizer, scorer: Scorer, weights: HybridWeights) -> None:
        """tokenizer: of the target of `engine`. scorer: the neural model."""
        self._engine, self._tokenizer, self._scorer, self._weights = engine, tokenizer, scorer, weights

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return self._engine.precision

    @property
    def limits(self) -> LengthLimits:
        """See `Engine.limits`."""
        return self._engine.limits

    def refusal(self, row: Row) -> str | None:
        """See `Engine.refusal`."""
        return self._engine.refusal(row)

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """See `Engine.hypotheses`. The score of a hypothesis is the weighted sum."""
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            found = dict(self._engine.hypotheses([self._widened(row) for row in part], batch_size))
            pairs = [
                (row.text, self._tokenizer.decode(each.tokens, each.unknown))
                for index, row in enumerate(part)
                for each in found[index]
            ]
            scores = iter(self._scorer([source for source, _ in pairs], [target for _, target in pairs]))
            for index, row in enumerate(part):
                scored = [replace(each, score=self.score(each, next(scores))) for each in found[index]]
                scored.sort(key=lambda each: -each.score)  # stable: of equal ones, the phrase-based model's best
                assert isinstance(row.decoding, SearchConfig)
                yield start + index, scored[: row.decoding.nbest]

    def score(self, hypothesis: Hypothesis, log_probability: float) -> float:
        """Return the weighted sum of a hypothesis's features. log_probability: by the neural model, in nats."""
        features = hypothesis.score, log_probability, float(len(hypothesis.tokens))
        return sum(weight * feature for weight, feature in zip(self._weights.vector, features, strict=True))

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`."""
        return self._engine.scores(pairs, batch_size)

    def _widened(self, row: Row) -> Row:
        """Return a row that requests as many hypotheses as are compared."""
        assert isinstance(row.decoding, SearchConfig)
        count = max(row.decoding.nbest, self._weights.nbest)
        return row._replace(decoding=row.decoding.model_copy(update={"nbest": count}))


def with_neural_scores(
    engine: Engine, tokenizer: Tokenizer, weights: HybridWeights | None, load: Callable[[], PairScorer]
) -> Engine:
    """Return the engine itself without weights, otherwise the hybrid of it and the neural model that `load` returns.

    tokenizer: of the target of `engine`.
    """
    if weights is None:
        return engine
    neural = load()
    neural.warn_unfinished = False  # the translator of the hybrid warns
    return HybridEngine(engine, tokenizer, partial(pair_scores, neural), weights)
