"""The metrics of labels are those of scikit-learn, SciPy and seqeval."""

import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dragoman.metrics.labels.classification import ConfusionMatrix
from dragoman.metrics.labels.regression import mean_absolute_error, mean_squared_error, pearson, spearman
from dragoman.metrics.labels.spans import SCHEMES, Convention, Scheme, find_spans

sklearn = pytest.importorskip("sklearn.metrics")
stats = pytest.importorskip("scipy.stats")
schemes = pytest.importorskip("seqeval.scheme")
labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")

NAMES = ("a", "b", "sehr gut", "ü", "")


def draw_labels(seed: int) -> tuple[list[str], list[str]]:
    """Return correct labels and predictions, from which some classes are missing."""
    draw = random.Random(seed)
    sides = [draw.sample(NAMES, draw.randint(1, len(NAMES))) for _ in range(2)]
    count = draw.choice([1, 2, 7, 60])
    return [draw.choice(sides[0]) for _ in range(count)], [draw.choice(sides[1]) for _ in range(count)]


@pytest.mark.parametrize("seed", range(25))
def test_classification_equals_scikit_learn(seed: int) -> None:
    gold, predicted = draw_labels(seed)
    confusion = ConfusionMatrix.of(gold, predicted)
    names = list(confusion.labels)
    assert names == sorted({*gold, *predicted})
    assert confusion.counts.tolist() == sklearn.confusion_matrix(gold, predicted, labels=names).tolist()
    precision, recall, f1, support = sklearn.precision_recall_fscore_support(
        gold, predicted, labels=names, zero_division=0
    )
    for index, scores in enumerate(confusion.classes):
        assert (scores.precision, scores.recall, scores.f1) == pytest.approx(
            (100 * precision[index], 100 * recall[index], 100 * f1[index])
        )
        assert scores.support == support[index]
    for average in ("macro", "micro", "weighted"):
        expected = 100 * sklearn.f1_score(gold, predicted, average=average, zero_division=0)
        assert confusion.values[f"{average}_f1"] == pytest.approx(expected)
    assert confusion.accuracy == pytest.approx(100 * sklearn.accuracy_score(gold, predicted))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert confusion.matthews == pytest.approx(sklearn.matthews_corrcoef(gold, predicted), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_regression_equals_scipy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    gold = draw.normal(size=40) * 10.0 ** draw.integers(-8, 8) + draw.integers(-3, 3)
    predicted = gold + draw.normal(size=40) * gold.std()
    if seed % 2:  # ties
        gold, predicted = np.round(draw.uniform(0, 5, 40)), np.round(draw.uniform(0, 5, 40))
    assert pearson(gold.tolist(), predicted.tolist()) == pytest.approx(
        stats.pearsonr(gold, predicted).statistic, abs=1e-9
    )
    assert spearman(gold.tolist(), predicted.tolist()) == pytest.approx(stats.spearmanr(gold, predicted).statistic)
    assert mean_absolute_error(gold, predicted) == pytest.approx(sklearn.mean_absolute_error(gold, predicted))
    assert mean_squared_error(gold, predicted) == pytest.approx(sklearn.mean_squared_error(gold, predicted))


def draw_tags(draw: random.Random, scheme: Scheme) -> list[str]:
    """Return any sequence of the tags of a scheme, most of which are invalid."""
    prefixes = {"IOB1": "BI", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU"}[scheme]
    tags = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("X", "Y-Z"))]
    return draw.choices(tags, k=draw.randint(1, 7))


def seqeval_spans(tags: Sequence[str], scheme: Scheme, convention: Convention) -> list[Any]:
    if convention == "strict":
        found = schemes.Entities([list(tags)], getattr(schemes, scheme)).entities[0]
        return [(span.tag, span.start, span.end) for span in found]
    renamed = [{"L": "E", "U": "S"}.get(tag[0], tag[0]) + tag[1:] for tag in tags] if scheme == "BILOU" else list(tags)
    return [(kind, start, end + 1) for kind, start, end in labeling.get_entities(renamed)]


@pytest.mark.parametrize("convention", ["conlleval", "strict"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_spans_equal_seqeval(scheme: Scheme, convention: Convention) -> None:
    draw = random.Random(7)
    for _ in range(600):
        tags = draw_tags(draw, scheme)
        assert find_spans(tags, scheme, convention) == seqeval_spans(tags, scheme, convention), tags
