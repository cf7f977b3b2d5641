"""Exact match and F1 of answers to questions, as in the evaluation scripts of SQuAD 1.1 and 2.0.

Both scores compare normalised texts: lower case, without punctuation, English articles and repeated blanks. The score
of a question is the maximum over its correct answers. The scripts differ for answers that are empty after
normalisation, such as "the": in version 1.1, F1 is 0; in version 2.0, such an answer is ignored if it is a correct one,
and F1 is 1 if both sides are empty. In version 2.0, an empty prediction means that the context does not contain the
answer.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.text.words import split_words

Version = Literal["1.1", "2.0"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """Lower-case a text, remove ASCII punctuation and English articles, and normalise blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Sequence[str], version: Version = "1.1") -> float:
    """Return 1 if the normalised prediction equals one of the normalised answers, otherwise 0.

    answers: the correct answers. In version 2.0, none means that the context does not contain the answer.
    """
    normalised = normalise_answer(prediction)
    return max((float(normalised == normalise_answer(answer)) for answer in _correct(answers, version)), default=0.0)


def answer_f1(prediction: str, answers: Sequence[str], version: Version = "1.1") -> float:
    """Return the maximum F1 (0 to 1) between the words of the prediction and of each correct answer.

    In scripts without spaces between words, characters are compared, as MLQA does for Chinese (Lewis et al. 2020).
    """
    return max((_word_f1(prediction, answer, version) for answer in _correct(answers, version)), default=0.0)


class BestThreshold(NamedTuple):
    """The highest score (percent) for any threshold, and the threshold that yields it."""

    score: float
    threshold: float


def best_threshold(
    scores: Sequence[float], predictions: Sequence[str], answerable: Sequence[bool], no_answer_scores: Sequence[float]
) -> BestThreshold:
    """Find the threshold above which questions are considered unanswerable, as in the script of SQuAD 2.0.

    scores: exact match or F1 (0 to 1) of each prediction. answerable: whether the question has an answer.
    no_answer_scores: the model's scores for the absence of an answer. If a threshold does not improve on rejecting all
    questions, it is 0, as in the script.
    """
    total = best = float(len(answerable) - sum(answerable))  # all questions rejected
    threshold = 0.0
    for index in np.argsort(np.asarray(no_answer_scores), kind="stable").tolist():
        if answerable[index]:
            total += scores[index]
        elif predictions[index]:
            total -= 1
        if total > best:
            best, threshold = total, float(no_answer_scores[index])
    return BestThreshold(100 * best / len(scores), threshold)


def answer_scores(
    predictions: Sequence[str], answers: Sequence[Sequence[str]], version: Version
) -> NDArray[np.float64]:
    """Return exact match and F1 (0 to 1) of N questions: (N, 2)."""
    return np.array(
        [
            (exact_match(prediction, correct, version), answer_f1(prediction, correct, version))
            for prediction, correct in zip(predictions, answers, strict=True)
        ]
    )


def _correct(answers: Sequence[str], version: Version) -> Sequence[str]:
    if version == "1.1":
        return answers
    return [answer for answer in answers if normalise_answer(answer)] or [""]


def _word_f1(prediction: str, answer: str, version: Version) -> float:
    predicted, correct = split_words(normalise_answer(prediction)), split_words(normalise_answer(answer))
    if version == "2.0" and not (predicted and correct):
        return float(predicted == correct)
    common = sum((Counter(predicted) & Counter(correct)).values())
    return 2 * common / (len(predicted) + len(correct)) if common else 0.0
