"""Reports on labels and values: intervals, baselines, warnings, undefined values, text, JSON, and comparisons."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dragoman.base.errors import DataError
from dragoman.metrics.labels.classification import ConfusionMatrix
from dragoman.metrics.labels.regression import pearson, spearman
from dragoman.metrics.labels.report import Report, compare
from dragoman.metrics.labels.scoring import answer_report, classification_report, regression_report, tagging_report
from dragoman.metrics.resampling import interval_of, resampled_counts

GOLD = ["ja", "nein", "vielleicht nicht", "ja"] * 15
RIGHT = [label if index % 5 else "ja" for index, label in enumerate(GOLD)]
WORSE = [label if index % 3 else "nein" for index, label in enumerate(GOLD)]


def test_resampled_sets_are_those_of_the_paired_bootstrap() -> None:
    draws = np.random.default_rng(12345).choice(700, size=(900, 700), replace=True)
    blocks = list(resampled_counts(700, 900, 12345))
    assert len(blocks) > 1
    counts = np.concatenate(blocks)
    assert counts.shape == (900, 700)
    assert (counts == np.array([np.bincount(row, minlength=700) for row in draws])).all()


def test_each_interval_is_that_of_rescored_samples() -> None:
    """Every metric is recomputed from the drawn examples, without the sums that the reports use."""
    draws = np.random.default_rng(7).choice(len(GOLD), size=(40, len(GOLD)), replace=True)

    def check(report: Report, rescored: list[Report]) -> None:
        for score in report.scores:
            values = [each[score.key].value for each in rescored]
            assert None not in values
            expected = interval_of(np.array(values, np.float64))
            assert score.interval is not None, score.key
            assert (score.interval.low, score.interval.high) == pytest.approx((expected.low, expected.high))

    def pick(values: list, draw: np.ndarray) -> list:  # type: ignore[type-arg]
        return [values[index] for index in draw]

    check(
        classification_report(GOLD, RIGHT, samples=40, seed=7),
        [classification_report(pick(GOLD, draw), pick(RIGHT, draw), samples=0) for draw in draws],
    )
    generator = np.random.default_rng(1)
    gold = np.round(generator.uniform(0, 5, len(GOLD)), 1).tolist()
    values = [value + error for value, error in zip(gold, generator.normal(size=len(gold)), strict=True)]
    check(
        regression_report(gold, values, samples=40, seed=7),
        [regression_report(pick(gold, draw), pick(values, draw), samples=0) for draw in draws],
    )
    tags = [["B-X", "I-X", "O"], ["B-Y", "O", "B-X"], ["O", "O", "O"]] * 20
    guesses = [["B-X", "O", "O"], ["B-Y", "O", "B-X"], ["O", "I-Y", "O"]] * 20
    words = [["Bo", str(index % 7), "x"] for index in range(60)]
    check(
        tagging_report(tags, guesses, words=words, samples=40, seed=7),
        [
            tagging_report(pick(tags, draw), pick(guesses, draw), scheme="IOB2", words=pick(words, draw), samples=0)
            for draw in draws
        ],
    )
    plain = [["N", "V"], ["V", "V", "N"], ["N"]] * 20
    guesses = [["N", "N"], ["V", "V", "N"], ["N"]] * 20
    check(
        tagging_report(plain, guesses, samples=40, seed=7),
        [tagging_report(pick(plain, draw), pick(guesses, draw), samples=0) for draw in draws],
    )
    answers = [["Bo"], [], ["the red box", "box"]] * 20
    guesses = ["Bo", "x", "red box"] * 15 + ["", "", "y"] * 5  # type: ignore[list-item]
    check(
        answer_report(answers, guesses, samples=40, seed=7),  # type: ignore[arg-type]
        [answer_report(pick(answers, draw), pick(guesses, draw), samples=0) for draw in draws],
    )


def test_the_majority_baseline_is_always_reported() -> None:
    report = classification_report(GOLD, RIGHT, samples=0)
    assert report.baseline is not None
    assert report.baseline.description == "always 'ja'"
    assert report.baseline.values["accuracy"] == 50
    assert report.baseline.values["matthews"] == 0
    other = classification_report(GOLD, RIGHT, majority="unbekannt", samples=0)
    assert other.baseline is not None
    assert other.baseline.values["accuracy"] == 0
    means = regression_report([1.0, 2.0, 6.0], [1.0, 2.0, 5.0], samples=0)
    assert means.baseline is not None
    assert means.baseline.values == {"pearson": None, "spearman": None, "mae": 2.0, "mse": pytest.approx(14 / 3)}


def test_a_model_that_predicts_one_class_is_reported() -> None:
    """99.7% correct, and useless."""
    gold = ["healthy"] * 997 + ["ill"] * 3
    report = classification_report(gold, ["healthy"] * 1000, samples=0)
    assert report["accuracy"].value == pytest.approx(99.7)
    assert report["matthews"].value == 0
    assert report.baseline is not None
    assert report["accuracy"].value == report.baseline.values["accuracy"]
    assert report.warnings == {
        "one_class": "all predictions are 'healthy', so the model does not distinguish the classes"
    }
    assert "warning: all predictions are 'healthy'" in report.text()
    missing = classification_report(["a", "b", "c"], ["a", "b", "b"], samples=0)
    assert missing.warnings == {"never_predicted": "never predicted: c"}
    assert not classification_report(["a", "b"], ["b", "a"], samples=0).warnings
    assert "one_correct_class" in classification_report(["a", "a"], ["b", "a"], samples=0).warnings


def test_correlations_with_a_constant_are_undefined_and_never_nan() -> None:
    assert pearson([1, 2, 3], [0.1 + 0.2] * 3) is None
    assert spearman([5, 5, 5], [1, 2, 3]) is None
    report = regression_report([1, 2, 3], [2, 2, 2])
    for key in ("pearson", "spearman"):
        assert not report[key].is_defined
        assert report[key].interval is None
        assert report[key].reason == "all predictions are equal"
    assert report["mae"].value == pytest.approx(2 / 3)
    assert "Pearson correlation is undefined: all predictions are equal." in report.text()
    assert "nan" not in report.text().lower()
    assert "NaN" not in json.dumps(report.as_json())
    assert pearson([1e-300, 2e-300], [1e300, 2e300]) == pytest.approx(1)
    nearly = regression_report([0.0] * 60 + [1.0], [0.0] * 60 + [1.0])  # undefined on a third of the samples
    assert nearly["pearson"].value == pytest.approx(1)
    assert nearly["pearson"].interval is None
    for wrong in (math.nan, math.inf):
        with pytest.raises(DataError, match="the prediction 2 is (nan|inf), which is not a finite number"):
            regression_report([1, 2], [1, wrong])


def test_text_has_names_intervals_and_signatures() -> None:
    text = classification_report(GOLD, RIGHT).text()
    assert (
        "classification, 60 texts; 95% intervals of 1,000 bootstrap samples (seed 12345); baseline: always 'ja'" in text
    )
    assert "F1|macro|zero_division:0" in text
    row = next(line for line in text.splitlines() if line.startswith("vielleicht nicht"))
    assert row.split()[-2:] == ["15", str(RIGHT.count("vielleicht nicht"))]
    wide = (
        ConfusionMatrix.of([f"ein langer Name {index}" for index in range(12)], ["ein langer Name 3"] * 12)
        .table()
        .text()
    )
    assert wide.splitlines()[0].split() == ["gold", "\\", "predicted", *map(str, range(1, 13))]
    assert max(map(len, wide.splitlines())) < 100


def test_json_contains_all_values() -> None:
    report = classification_report(GOLD, RIGHT, labels=["nein", "ja", "vielleicht nicht", "unbenutzt"])
    content = json.loads(json.dumps(report.as_json()))
    assert content["texts"] == 60
    assert content["scores"]["accuracy"]["value"] == report["accuracy"].value
    assert len(content["scores"]["matthews"]["interval"]) == 3
    assert content["confusion"]["labels"] == ["nein", "ja", "vielleicht nicht", "unbenutzt"]
    assert [sum(row) for row in content["confusion"]["counts"]] == [15, 30, 15, 0]
    assert content["classes"][3] == {
        "name": "unbenutzt", "precision": 0, "recall": 0, "f1": 0, "support": 0, "predicted": 0
    }  # fmt: skip
    assert report["macro_f1"].value == classification_report(GOLD, RIGHT)["macro_f1"].value


def test_paired_comparison() -> None:
    better, worse = classification_report(GOLD, RIGHT), classification_report(GOLD, WORSE)
    comparisons = {comparison.first.name: comparison for comparison in compare(worse, better)}
    accuracy = comparisons["accuracy"]
    assert accuracy.difference == pytest.approx(
        100 * (sum(map(str.__eq__, GOLD, RIGHT)) - sum(map(str.__eq__, GOLD, WORSE))) / 60
    )
    assert accuracy.difference_interval.low <= accuracy.difference <= accuracy.difference_interval.high
    assert accuracy.p_value < 0.05
    assert accuracy.describe(60, "texts").endswith(f"p = {accuracy.p_value:.4f}, significant at 0.05")
    assert accuracy.describe(9, "texts").endswith("too few texts for a significance test (9)")
    smallest = replace(accuracy, difference=-0.001)
    assert smallest.describe(60).startswith("accuracy: +0.00 (95% of resampled test sets: ")
    assert {comparison.p_value for comparison in compare(better, better)} == {1.0}
    assert len(comparisons) == len(better.scores)
    constant = regression_report([1, 2, 3], [2, 2, 2])
    assert [comparison.first.name for comparison in compare(constant, constant)] == [
        "mean absolute error",
        "mean squared error",
    ]


def test_reports_of_other_test_sets_are_not_compared() -> None:
    report = classification_report(GOLD, RIGHT)
    with pytest.raises(DataError, match="different correct labels"):
        compare(report, classification_report(RIGHT, RIGHT))
    for other in (classification_report(GOLD, RIGHT, seed=1), classification_report(GOLD, RIGHT, samples=10)):
        with pytest.raises(DataError, match="the same number of samples"):
            compare(report, other)
    with pytest.raises(DataError, match="at least 1"):
        compare(classification_report(GOLD, RIGHT, samples=0), classification_report(GOLD, RIGHT, samples=0))


def test_labels_that_do_not_fit_are_errors() -> None:
    with pytest.raises(DataError, match="there are 1 correct labels, but 2 predictions"):
        classification_report(["a"], ["a", "b"])
    with pytest.raises(DataError, match="there are no examples to score"):
        classification_report([], [])
    with pytest.raises(DataError, match="the label 'c' is not one of the labels a, b"):
        classification_report(["a"], ["c"], labels=["a", "b"])


def test_unknown_keys_are_key_errors() -> None:
    with pytest.raises(KeyError, match="bleu"):
        classification_report(["a"], ["a"], samples=0)["bleu"]
