"""`tune_weights`: minimum error rate training of the feature weights of a statistical translation model (Och 2003)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dragoman.base.log import info
from dragoman.base.progress import Progress
from dragoman.inference.translation.reranking.line_search import Lists, search_weights
from dragoman.metrics.summed import NgramMetric, Statistics
from dragoman.statistical.phrases.decoder import Output, Source, StatisticalDecoder
from dragoman.tasks.statistical_translation.config import TuningConfig
from dragoman.text.tokenizer import Tokenizer

Weights = NDArray[np.float64]

_PATIENCE = 2
"""Number of successive rounds without better weights after which tuning ends."""


@dataclass
class _Pool:
    """All translations of a sentence that were found so far: their features and statistics, by words and features."""

    features: dict[tuple[tuple[int, ...], bytes], Weights] = field(default_factory=dict)
    statistics: list[Statistics] = field(default_factory=list)


@dataclass(frozen=True)
class TunedWeights:
    """The result of tuning. before, after: the score of the translations with the initial and the tuned weights."""

    weights: Weights
    before: float
    after: float
    rounds: int


class WeightTuning:
    """Tunes the weights of a decoder on a development set."""

    def __init__(
        self,
        decoder: StatisticalDecoder,
        tokenizer: Tokenizer,
        sources: Sequence[Source],
        references: Sequence[str],
        *,
        metric: NgramMetric,
    ) -> None:
        """tokenizer: that of the target. metric: maximised over the development set."""
        self._decoder, self._tokenizer, self._metric = decoder, tokenizer, metric
        self._sources, self._references = sources, references
        self._pools = [_Pool() for _ in sources]

    def run(self, config: TuningConfig) -> TunedWeights:
        """Tune the decoder's weights, and set them to the best ones.

        The score of the returned weights, of translations with these weights, is at least that of the initial weights.
        Equal inputs result in equal weights.
        """
        weights = self._decoder.weights
        best: tuple[float, Weights] | None = None
        before, number, since = 0.0, 0, 0
        for number in range(config.rounds + 1):
            score, new = self._translate(weights, config)
            info(f"Tuning: round {number}, {self._metric.name} {score:.2f} on {len(self._sources):,} validation pairs")
            if best is None:
                before = score
            if best is None or score > best[0]:
                best, since = (score, weights), 0
            else:
                since += 1
            if not new or since == _PATIENCE or number == config.rounds:
                break
            lists = Lists(
                [np.array(list(pool.features.values())) for pool in self._pools],
                [np.array(pool.statistics) for pool in self._pools],
            )
            found = search_weights(lists, weights, self._metric, config.restarts, config.seed + number)
            if np.array_equal(found.weights, weights):
                break
            weights = found.weights
        assert best is not None
        self._decoder.weights = best[1]
        return TunedWeights(best[1], before, best[0], number)

    def _translate(self, weights: Weights, config: TuningConfig) -> tuple[float, int]:
        """Return the score of the best translations, and the number of translations that are new in the pools."""
        self._decoder.weights = weights
        added, sums = 0, []
        with Progress("Tuning", "sentences", len(self._sources)) as progress:
            found = self._decoder.translate(self._sources, config.beam, config.nbest)
            for row, (pool, outputs) in enumerate(zip(self._pools, found, strict=True)):
                added += self._add(pool, outputs, self._references[row])
                sums.append(self._statistics(outputs[:1], self._references[row])[0])
                progress.update(row + 1)
        return float(self._metric.corpus(np.sum(sums, axis=0))), added

    def _add(self, pool: _Pool, outputs: Sequence[Output], reference: str) -> int:
        """Add translations that the pool does not contain, and return their number."""
        new = {}
        for output in outputs:
            key = output.translation.words, output.translation.features.round(4).tobytes()
            if key not in pool.features:
                new[key] = output
        pool.features.update({key: output.translation.features for key, output in new.items()})
        pool.statistics.extend(self._statistics(list(new.values()), reference))
        return len(new)

    def _statistics(self, outputs: Sequence[Output], reference: str) -> Statistics:
        """Return the statistics (N, K) of translations of one sentence."""
        texts = [self._tokenizer.decode(output.ids, output.unknown) for output in outputs]
        return self._metric.statistics(texts, [reference] * len(texts)) if texts else np.zeros((0, 0))
