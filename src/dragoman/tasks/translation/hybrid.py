"""`tune_hybrid`: the hybrid of the phrase-based and the neural model of a run, if it is better than either."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.base.log import quietly
from dragoman.checkpoint.meta import HybridWeights, RecordedScore, SystemRecord
from dragoman.checkpoint.systems import HYBRID, NEURAL, PHRASE_BASED
from dragoman.inference.translation.reranking.line_search import Lists, search_weights
from dragoman.inference.translation.reranking.pair_scores import pair_scores
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.bootstrap import compare_statistics
from dragoman.metrics.chrf import ChrF
from dragoman.metrics.summed import NgramMetric, Statistics

_NBEST, _RESTARTS = 15, 5
"""Number of translations of each source: 30 instead of 15 gained 0.2 BLEU, for twice the time."""
_LEVEL = 0.05
"""Level of significance at which a hybrid must be better than the phrase-based model, which is faster."""


@dataclass(frozen=True)
class TuningPairs:
    """Pairs to tune on. name: of the set. tokenizer: of BLEU. metric: chrf, or otherwise bleu decides."""

    name: str
    sources: Sequence[str]
    targets: Sequence[str]
    tokenizer: str
    metric: str


def tune_hybrid(folder: Path, pairs: TuningPairs, threads: int | None = None) -> SystemRecord | None:
    """Find the weights of a hybrid of both models of a folder by minimum error rate training (Och 2003).

    The `_NBEST` best translations of each source by the phrase-based model are ordered by its score, the
    log-probability of the neural model and the number of words. Returns None if the tuned order is not significantly
    better on the pairs that it was tuned on. Raises the errors of `Translator.load`.
    """
    with quietly(True):
        phrase_based, neural = (
            Translator.load(folder, "cpu", threads=threads, system=name) for name in (PHRASE_BASED, NEURAL)
        )
        found = phrase_based.translate_nbest(pairs.sources, phrase_based.request(nbest=_NBEST))
        repeated = [(source, each) for source, its in zip(pairs.sources, found, strict=True) for each in its]
        log_probabilities = pair_scores(neural, [text for text, _ in repeated], [each.text for _, each in repeated])
    counts = [len(each) for each in found]
    features = np.array(
        [
            (each.score, log_probability, len(each.ids))
            for (_, each), log_probability in zip(repeated, log_probabilities, strict=True)
        ]
    )
    targets = [target for target, count in zip(pairs.targets, counts, strict=True) for _ in range(count)]
    metrics: tuple[NgramMetric, NgramMetric] = BLEU(tokenizer=pairs.tokenizer), ChrF()
    statistics = [metric.statistics([each.text for _, each in repeated], targets) for metric in metrics]
    deciding = int(pairs.metric == "chrf")
    ends = np.cumsum(counts)[:-1]
    lists = Lists(np.split(features, ends), np.split(statistics[deciding], ends))
    weights = search_weights(lists, np.eye(3)[0], metrics[deciding], _RESTARTS).weights
    firsts = np.concatenate([[0], ends])
    chosen = firsts + [int(np.argmax(each @ weights)) for each in lists.features]
    if not _is_better(statistics[deciding], firsts, chosen, metrics[deciding]):
        return None
    scores = [
        metric.score_of(metric.exact(each[chosen].sum(0)), metric.signature(1))
        for metric, each in zip(metrics, statistics, strict=True)
    ]
    recorded = (RecordedScore(metric=s.name, value=s.value, signature=s.signature, data=pairs.name) for s in scores)
    phrase_weight, neural_weight, length = weights.tolist()
    hybrid = HybridWeights(phrase_based=phrase_weight, neural=neural_weight, length=length, nbest=_NBEST)
    folder_name = f"systems/{PHRASE_BASED}"
    return SystemRecord(name=HYBRID, folder=folder_name, scores=tuple(recorded), hybrid=hybrid)


def _is_better(
    statistics: Statistics, before: NDArray[np.int64], after: NDArray[np.int64], metric: NgramMetric
) -> bool:
    """Return whether the rows `after` of the statistics have a significantly better score than the rows `before`."""
    compared = compare_statistics(statistics[before], statistics[after], metric, references=1)
    return compared.difference > 0 and compared.p_value < _LEVEL
