"""The comparison of predictions with labels, for every kind of head."""

from collections.abc import Sequence
from typing import Any, Literal

from dragoman.base.errors import ConfigError
from dragoman.data.labelled.examples import Question
from dragoman.inference.prediction.heads.answering import AnswerPrediction
from dragoman.inference.prediction.heads.regression import label_value
from dragoman.metrics.labels.answers import answer_f1, best_threshold
from dragoman.metrics.labels.parsing import parsing_report
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.scoring import answer_report, classification_report, regression_report, tagging_report
from dragoman.metrics.labels.spans import Scheme
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.heads.trees import TreeHead
from dragoman.models.heads.union import HeadConfig


def choose_threshold(examples: Sequence[Question], predictions: Sequence[AnswerPrediction]) -> float | None:
    """Return the score of having no answer above which giving none yields the best F1; None if all are answered.

    The threshold lies halfway to the next higher score, because the scores of other batches are rounded differently.
    """
    scores = [each.no_answer for each in predictions]
    if all(example.answers for example in examples) or any(score is None for score in scores):
        return None
    texts = [each.candidates[0].text if each.candidates else "" for each in predictions]
    answers = [[] if each.impossible else [answer.text for answer in each.answers] for each in examples]
    f1 = [answer_f1(text, correct, "2.0") for text, correct in zip(texts, answers, strict=True)]
    known = [score for score in scores if score is not None]
    best = best_threshold(f1, texts, list(map(bool, answers)), known).threshold
    return (best + min((score for score in known if score > best), default=best)) / 2


def compare_with_labels(
    head: HeadConfig, examples: Sequence[Any], predictions: Sequence[Any], samples: int = 1000
) -> Report:
    """Return the metrics of a head's predictions for labelled examples.

    samples: number of bootstrap samples for the intervals; 0: no intervals. Raises DataError for invalid labels,
    and ConfigError for a masked language model, whose texts have no labels.
    """
    if isinstance(head, MaskedLanguageModelHeadConfig):
        raise ConfigError(
            "a masked language model predicts tokens, not labels: score texts with `dragoman score`, or minimal pairs "
            "with `dragoman evaluate pairs`"
        )
    if isinstance(head, TreeHead):
        trees = [example.tree for example in examples]
        repairs = [each.repairs for each in predictions]
        return parsing_report(trees, [each.tree for each in predictions], repairs=repairs, samples=samples)
    if isinstance(head, ClassificationHeadConfig):
        gold = [str(example.label) for example in examples]
        return classification_report(gold, [each.label for each in predictions], samples=samples)
    if isinstance(head, RegressionHeadConfig):
        return regression_report(
            list(map(label_value, examples)), [each.value for each in predictions], samples=samples
        )
    if isinstance(head, TaggingHeadConfig):
        tags, words = [list(each.tags) for each in examples], [list(each.words) for each in examples]
        scheme: Scheme | Literal["auto"] | None = "auto" if head.scheme is None else None
        if head.scheme is not None and head.scheme != "words":
            scheme = head.scheme
        predicted = [list(each.tags) for each in predictions]
        return tagging_report(tags, predicted, scheme=scheme, words=words, samples=samples)
    answers = [[] if each.impossible else [answer.text for answer in each.answers] for each in examples]
    scores = [each.no_answer for each in predictions]
    return answer_report(
        answers,
        [each.answer for each in predictions],
        no_answer_scores=None if any(score is None for score in scores) else scores,
        samples=samples,
    )
