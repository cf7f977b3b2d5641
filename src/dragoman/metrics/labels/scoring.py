"""Reports on predictions: of classes, of values, of tags, and of answers to questions.

All reports have 95% percentile bootstrap intervals. The resampled units are texts, sentences, or questions.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from dragoman.base.errors import DataError
from dragoman.metrics.labels.answers import Version, answer_scores, best_threshold
from dragoman.metrics.labels.classification import (
    ConfusionMatrix,
    ResampledClassification,
    check_equal_lengths,
)
from dragoman.metrics.labels.odd_tags import LARGEST_ODD, Locate, in_sentence, warn_of_odd_tags
from dragoman.metrics.labels.regression import ResampledRegression, as_values, is_constant
from dragoman.metrics.labels.report import Baseline, Floats, LabelMetric, Report, Scorer, resample, score_all
from dragoman.metrics.labels.spans import (
    CONVENTIONS,
    OUTSIDE,
    Scheme,
    detect_scheme,
    find_spans,
    has_span_tags,
    score_types,
)
from dragoman.metrics.labels.tagging import ResampledSpans, ResampledTags, SurfaceForms

SAMPLES, SEED = 1000, 12345

_CLASSIFICATION = (
    LabelMetric("accuracy", "accuracy", "accuracy"),
    LabelMetric("macro_f1", "macro F1", "F1|macro|zero_division:0"),
    LabelMetric("micro_f1", "micro F1", "F1|micro"),
    LabelMetric("weighted_f1", "weighted F1", "F1|weighted|zero_division:0"),
    LabelMetric("matthews", "Matthews correlation", "Matthews|Gorodkin", digits=4),
)
_REGRESSION = (
    LabelMetric("pearson", "Pearson correlation", "Pearson", digits=4),
    LabelMetric("spearman", "Spearman correlation", "Spearman|ties:mean rank", digits=4),
    LabelMetric("mae", "mean absolute error", "MAE", better="lower", digits=4),
    LabelMetric("mse", "mean squared error", "MSE", better="lower", digits=4),
)


def classification_report(
    gold: Sequence[str],
    predicted: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    majority: str | None = None,
    unit: str = "texts",
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Report:
    """Report accuracy, F1 and Matthews correlation of predicted labels.

    labels: the order of the labels; by default alphabetical. majority: the label of the baseline, such as the most
    frequent label of the training data; by default the most frequent correct label. unit: name of the labelled
    units. samples: number of resampled test
    sets; 0 for no intervals. Raises DataError as `ConfusionMatrix.of` does.
    """
    confusion = ConfusionMatrix.of(gold, predicted, labels)
    resampled = resample(
        ResampledClassification(gold, predicted, sorted({*gold, *predicted})), len(gold), samples, seed
    )
    return Report(
        task="classification",
        examples=len(gold),
        unit=unit,
        scores=score_all(_CLASSIFICATION, confusion.values, resampled),
        samples=samples,
        seed=seed,
        baseline=_majority_baseline(gold, majority),
        classes=confusion.classes,
        confusion=confusion,
        warnings=_class_warnings(confusion),
        resampled=resampled,
        gold_digest=digest_of(gold),
    )


def regression_report(
    gold: Sequence[float],
    predicted: Sequence[float],
    *,
    mean: float | None = None,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Report:
    """Report the correlations and errors of predicted values.

    mean: the value of the baseline, such as the mean of the training data; by default the mean of `gold`. A correlation
    is undefined if the correct values or the predictions are constant. samples: as in `classification_report`. Raises
    DataError if the numbers of values differ or are 0, or if a value is not finite.
    """
    correct, values = as_values(gold, predicted)
    scorer = ResampledRegression(correct, values)
    constant = [name for name, side in (("correct values", correct), ("predictions", values)) if is_constant(side)]
    reason = f"all {' and all '.join(constant)} are equal" if constant else ""
    resampled = resample(scorer, len(correct), samples, seed)
    center = float(correct.mean()) if mean is None else mean
    constant_errors = ResampledRegression(correct, np.full_like(correct, center))(np.ones((1, len(correct))))
    return Report(
        task="regression",
        examples=len(correct),
        unit="texts",
        scores=score_all(
            _REGRESSION, _values(scorer, len(correct)), resampled, {"pearson": reason, "spearman": reason}
        ),
        samples=samples,
        seed=seed,
        baseline=Baseline(
            f"always {center:.4g}",
            {"pearson": None, "spearman": None, **{key: float(constant_errors[key][0]) for key in ("mae", "mse")}},
        ),
        warnings={"constant": f"{reason}, so the correlations are undefined"} if reason else {},
        resampled=resampled,
        gold_digest=digest_of(correct.tolist()),
    )


def similarity_report(
    gold: Sequence[float], predicted: Sequence[float], *, samples: int = SAMPLES, seed: int = SEED
) -> Report:
    """Report the correlations of predicted similarities, whose scale may differ from that of the correct values.

    Arguments and errors are those of `regression_report`.
    """
    report = regression_report(gold, predicted, samples=samples, seed=seed)
    correlations = [score for score in report.scores if score.key in ("pearson", "spearman")]
    return replace(report, scores=tuple(correlations), baseline=None)


def tagging_report(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    *,
    scheme: Scheme | Literal["auto"] | None = "auto",
    words: Sequence[Sequence[str]] | None = None,
    majority: str | None = None,
    locate: tuple[Locate, Locate] = (in_sentence, in_sentence),
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Report:
    """Report the accuracy of tags and, if they mark spans, precision, recall and F1 of the spans in both conventions.

    gold, predicted: the tags of each sentence. scheme: None to score single words only, also with F1 of the tags; auto
    to determine it from `gold` (see `detect_scheme`), or None if no tag is O or has a prefix. words: the words of each
    sentence, for F1 of distinct surface forms as in the shared task WNUT-17. locate: where the correct and the
    predicted tags were read, for messages. majority, samples: as in `classification_report`. A few tags that contradict
    the scheme are counted by its conventions, and reported. Raises DataError if the numbers of sentences or words
    differ or are 0, if the scheme cannot be determined, or if many tags do not belong to it.
    """
    check_equal_lengths(gold, predicted)
    for index, sides in enumerate(zip(gold, predicted, strict=True)):
        if len(sides[0]) != len(sides[1]):
            raise DataError(f"sentence {index + 1} has {len(sides[0])} correct tags, but {len(sides[1])} predictions")
    flat = [tag for tags in gold for tag in tags], [tag for tags in predicted for tag in tags]
    confusion = ConfusionMatrix.of(*flat)
    chosen = _choose_scheme(gold) if scheme == "auto" else scheme
    accuracy = LabelMetric("accuracy", "accuracy of words", "accuracy|words")
    warnings = _class_warnings(confusion)
    baseline = _majority_baseline(flat[0], majority)
    if chosen is None:
        scorer: Scorer = ResampledTags(gold, predicted, confusion.labels)
        metrics: tuple[LabelMetric, ...] = (accuracy, *_CLASSIFICATION[1:])
        classes = confusion.classes
    else:
        spans = {
            convention: tuple([find_spans(tags, chosen, convention) for tags in side] for side in (gold, predicted))
            for convention in CONVENTIONS
        }
        forms = SurfaceForms(words, *spans["conlleval"]) if words is not None else None
        scorer = ResampledSpans(gold, predicted, spans, forms)
        metrics = (accuracy, *_span_metrics(chosen, forms is not None))
        classes = score_types(*spans["conlleval"])
        baseline = Baseline(baseline.description, {"accuracy": baseline.values["accuracy"]})
        warnings = _span_warnings(sum(each.predicted for each in classes), sum(each.support for each in classes))
        for name, side, where in (("correct", gold, locate[0]), ("predicted", predicted, locate[1])):
            if odd := warn_of_odd_tags(side, chosen, f"{name} tags", where):
                warnings[f"odd_{name}_tags"] = odd
    resampled = resample(scorer, len(gold), samples, seed)
    return Report(
        task="tagging",
        examples=len(gold),
        unit="sentences",
        scores=score_all(metrics, _values(scorer, len(gold)), resampled),
        samples=samples,
        seed=seed,
        baseline=baseline,
        classes=classes,
        confusion=confusion,
        warnings=warnings,
        resampled=resampled,
        gold_digest=digest_of([list(tags) for tags in gold]),
    )


def answer_report(
    answers: Sequence[Sequence[str]],
    predicted: Sequence[str],
    *,
    no_answer_scores: Sequence[float] | None = None,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Report:
    """Report exact match and F1 of predicted answers, as the scripts of SQuAD 1.1 or, with impossible questions, 2.0.

    answers: the correct answers of each question; none if the context does not contain the answer. predicted: empty if
    the model rejects the question. no_answer_scores: the model's scores for the absence of an answer, for the best
    scores over all thresholds in version 2.0. samples: as in `classification_report`. Raises DataError if the numbers
    of questions differ or are 0.
    """
    check_equal_lengths(answers, predicted)
    answerable = np.array([bool(correct) for correct in answers])
    version: Version = "1.1" if answerable.all() else "2.0"
    scores = answer_scores(predicted, answers, version)
    metrics = list(_answer_metrics("", "", version))
    groups = {"": np.ones(len(answers))}
    if version == "2.0":
        for prefix, group in (("answerable", answerable), ("unanswerable", ~answerable)):
            metrics += _answer_metrics(f"{prefix}_", f" ({prefix})", version)
            groups[f"{prefix}_"] = group.astype(np.float64)

    def scorer(counts: Floats) -> dict[str, Floats]:
        values: dict[str, Floats] = {}
        for prefix, group in groups.items():
            sizes = counts @ group
            means = 100 * (counts @ (scores * group[:, None])) / np.where(sizes > 0, sizes, np.nan)[:, None]
            values |= {f"{prefix}exact_match": means[:, 0], f"{prefix}f1": means[:, 1]}
        return values

    values = _values(scorer, len(answers))
    thresholds: dict[str, float] = {}
    if version == "2.0" and no_answer_scores is not None:
        check_equal_lengths(answers, no_answer_scores)
        for column, key, name in ((0, "best_exact_match", "EM"), (1, "best_f1", "F1")):
            best = best_threshold(scores[:, column].tolist(), predicted, answerable.tolist(), no_answer_scores)
            metrics.append(LabelMetric(key, f"{name} (best threshold)", f"{name}|SQuAD 2.0|best threshold"))
            values[key], thresholds[key] = best
    resampled = resample(scorer, len(answers), samples, seed)
    rejected = ["" for _ in answers]
    baseline = None
    if version == "2.0":
        mean = float(100 * answer_scores(rejected, answers, version)[:, 0].mean())
        baseline = Baseline("no answer to any question", {"exact_match": mean, "f1": mean})
    return Report(
        task="question answering",
        examples=len(answers),
        unit="questions",
        scores=score_all(metrics, values, resampled, {metric.key: "there is no such question" for metric in metrics}),
        samples=samples,
        seed=seed,
        baseline=baseline,
        warnings=_answer_warnings(predicted),
        thresholds=thresholds,
        resampled=resampled,
        gold_digest=digest_of([list(correct) for correct in answers]),
    )


def _values(scorer: Scorer, examples: int) -> dict[str, float]:
    return {key: float(value[0]) for key, value in scorer(np.ones((1, examples))).items()}


def _majority_baseline(gold: Sequence[str], majority: str | None) -> Baseline:
    label = Counter(gold).most_common(1)[0][0] if majority is None else majority
    return Baseline(f"always {label!r}", ConfusionMatrix.of(gold, [label] * len(gold)).values)


def _choose_scheme(gold: Sequence[Sequence[str]]) -> Scheme | None:
    """Return the scheme of tags; None if they mark no spans. A few tags without a prefix do not matter."""
    counts = Counter(tag for tags in gold for tag in tags)
    if not has_span_tags(counts) and OUTSIDE not in counts:
        return None
    odd = {tag for tag in counts if tag != OUTSIDE and not has_span_tags([tag])}
    if odd and sum(counts[tag] for tag in odd) <= LARGEST_ODD * (counts.total() - counts[OUTSIDE]):
        return detect_scheme([tag for tag in tags if tag not in odd] for tags in gold)
    return detect_scheme(gold)


def _span_metrics(scheme: Scheme, with_surface_forms: bool) -> list[LabelMetric]:
    metrics = [
        LabelMetric(f"{convention}_{key}", f"{name} ({convention})", f"{name}|{convention}|{scheme}")
        for convention in CONVENTIONS
        for key, name in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
    ]
    if with_surface_forms:
        metrics.append(LabelMetric("surface_f1", "F1 (surface forms)", f"F1|surface forms|conlleval|{scheme}"))
    return metrics


def _answer_metrics(prefix: str, suffix: str, version: Version) -> tuple[LabelMetric, LabelMetric]:
    group = f"|{prefix[:-1]}" if prefix else ""
    return (
        LabelMetric(f"{prefix}exact_match", f"EM{suffix}", f"EM|SQuAD {version}{group}"),
        LabelMetric(f"{prefix}f1", f"F1{suffix}", f"F1|SQuAD {version}{group}"),
    )


def _class_warnings(confusion: ConfusionMatrix) -> dict[str, str]:
    warnings: dict[str, str] = {}
    predicted = [each.name for each in confusion.classes if each.predicted]
    correct = [each.name for each in confusion.classes if each.support]
    if len(correct) == 1:
        warnings["one_correct_class"] = f"all correct labels are {correct[0]!r}, so F1 and Matthews are not informative"
    elif len(predicted) == 1:
        warnings["one_class"] = f"all predictions are {predicted[0]!r}, so the model does not distinguish the classes"
    elif missing := [name for name in correct if name not in predicted]:
        warnings["never_predicted"] = f"never predicted: {', '.join(missing)}"
    return warnings


def _span_warnings(predicted: int, support: int) -> dict[str, str]:
    if not support:
        return {"no_correct_span": "the correct tags contain no span"}
    return {} if predicted else {"no_span": "no span was predicted"}


def _answer_warnings(predicted: Sequence[str]) -> dict[str, str]:
    if len(predicted) > 1 and len(set(predicted)) == 1:
        return {"one_class": f"all predicted answers are {predicted[0]!r}"}
    return {}


def digest_of(gold: Sequence[object]) -> str:
    """Return a digest of correct labels, as in `Report`."""
    return hashlib.sha256(json.dumps(list(gold)).encode()).hexdigest()
