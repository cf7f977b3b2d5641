"""The report on questions with several choices, each of which is correct or not (MultiRC; Khashabi et al. 2018)."""

from collections.abc import Sequence

import numpy as np

from dragoman.metrics.labels.classification import check_equal_lengths
from dragoman.metrics.labels.report import Baseline, Floats, LabelMetric, Report, resample, score_all
from dragoman.metrics.labels.scoring import SAMPLES, SEED, digest_of

_METRICS = (
    LabelMetric("f1a", "F1a", "F1|correct choices of all questions"),
    LabelMetric("exact_match", "EM", "EM|all choices of a question"),
)

Choices = Sequence[Sequence[bool]]
"""Whether each choice of each question is correct."""


def choice_report(gold: Choices, predicted: Choices, *, samples: int = SAMPLES, seed: int = SEED) -> Report:
    """Report the metrics of MultiRC in SuperGLUE (Wang et al. 2019): F1a, and exact match (EM).

    F1a is F1 of the correct choices of all questions. EM is the percentage of questions of which every choice is
    predicted correctly. The units of resampling are the questions. The baseline takes every choice as correct. Raises
    DataError if the numbers of questions differ or are 0.
    """
    check_equal_lengths(gold, predicted)
    statistics = _count(gold, predicted)

    def values_of(counted: Floats, counts: Floats) -> dict[str, Floats]:
        correct, marked, exact = np.moveaxis(counts @ counted, 1, 0)
        f1 = 200 * correct / np.where(marked > 0, marked, 1)
        return {"f1a": f1, "exact_match": 100 * exact / counts.sum(1)}

    def scorer(counts: Floats) -> dict[str, Floats]:
        return values_of(statistics, counts)

    once = np.ones((1, len(gold)))
    resampled = resample(scorer, len(gold), samples, seed)
    every = values_of(_count(gold, [[True] * len(choices) for choices in gold]), once)
    return Report(
        task="multiple choice",
        examples=len(gold),
        unit="questions",
        scores=score_all(_METRICS, {key: float(value[0]) for key, value in scorer(once).items()}, resampled),
        samples=samples,
        seed=seed,
        baseline=Baseline("every choice is correct", {key: float(value[0]) for key, value in every.items()}),
        resampled=resampled,
        gold_digest=digest_of([list(choices) for choices in gold]),
    )


def _count(gold: Choices, predicted: Choices) -> Floats:
    """Return, per question, the correctly chosen ones, all correct and all chosen ones, and whether both are equal."""
    pairs = zip(gold, predicted, strict=True)
    return np.array([[np.sum(np.logical_and(a, b)), sum(a) + sum(b), list(a) == list(b)] for a, b in pairs], float)
