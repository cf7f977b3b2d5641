"""Exact match and F1 of answers, against independent formulas of the published definitions, and thresholds."""

import random
import re

import pytest

from dragoman.base.errors import DataError
from dragoman.metrics.labels.answers import answer_f1, best_threshold, exact_match, normalise_answer
from dragoman.metrics.labels.scoring import answer_report

WORDS = ("the", "a", "An", "red", "Red,", "box", "box.", "--", "€5", "U.S.", "theatre", "  ", "—")


def reference_words(text: str) -> list[str]:
    """Return the normalised words, one character and one word at a time."""
    kept = "".join(" " if c.isspace() else c for c in text.lower() if c not in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    return [word for word in re.sub(r"\b(?:a|an|the)\b", " ", kept).split(" ") if word]


def reference_scores(prediction: str, answers: list[str], version: str) -> tuple[float, float]:
    words = reference_words(prediction)
    best_match = best_f1 = 0.0
    if version == "2.0":
        answers = [answer for answer in answers if reference_words(answer)] or [""]
    for answer in answers:
        correct, rest = reference_words(answer), reference_words(answer)
        common = 0
        for word in words:
            if word in rest:
                rest.remove(word)
                common += 1
        f1 = 0.0
        if common:
            precision, recall = common / len(words), common / len(correct)
            f1 = 2 * precision * recall / (precision + recall)
        elif version == "2.0" and not words and not correct:
            f1 = 1.0
        best_match, best_f1 = max(best_match, float(words == correct)), max(best_f1, f1)
    return best_match, best_f1


def draw_text(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(0, 5)))


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_scores_equal_an_independent_implementation(version: str) -> None:
    draw = random.Random(3)
    for _ in range(500):
        prediction, answers = draw_text(draw), [draw_text(draw) for _ in range(draw.randint(1, 3))]
        scores = exact_match(prediction, answers, version), answer_f1(prediction, answers, version)  # type: ignore[arg-type]
        assert scores == pytest.approx(reference_scores(prediction, answers, version)), (prediction, answers)


def test_normalisation_and_known_scores() -> None:
    assert normalise_answer("  The U.S.A.'s an Apple—a\tday! ") == "usas apple— day"
    assert normalise_answer("Theatre an-other") == "theatre another"
    assert exact_match("the Broncos.", ["Denver Broncos", "broncos"]) == 1
    assert answer_f1("Denver Broncos won", ["The Denver Broncos"]) == pytest.approx(0.8)
    assert answer_f1("the", ["a"]) == 0
    assert (exact_match("", []), answer_f1("", [])) == (0, 0)
    assert (exact_match("", [], "2.0"), answer_f1("", [], "2.0"), answer_f1("x", [], "2.0")) == (1, 1, 0)


def test_the_best_threshold_is_the_best_of_all() -> None:
    draw = random.Random(5)
    for _ in range(100):
        count = draw.randint(1, 8)
        answerable = [draw.random() < 0.6 for _ in range(count)]
        predictions = [draw.choice(["", "x"]) for _ in range(count)]
        scores = [
            draw.random() if has and text else float(not has and not text)
            for has, text in zip(answerable, predictions, strict=True)
        ]
        rejections = draw.sample(range(1, 100), count)
        best = best_threshold(scores, predictions, answerable, rejections)
        totals = {
            threshold: sum(
                (score if rejection <= threshold else float(not has))
                for score, has, rejection in zip(scores, answerable, rejections, strict=True)
            )
            for threshold in (0, *rejections)
        }
        assert best.score == pytest.approx(100 * max(totals.values()) / count)
        assert totals[int(best.threshold)] == pytest.approx(max(totals.values()))


def test_reports_of_both_versions() -> None:
    report = answer_report([["x y"], ["the z"]], ["x", "z"], samples=0)
    assert [score.signature for score in report.scores] == ["EM|SQuAD 1.1", "F1|SQuAD 1.1"]
    assert (report["exact_match"].value, report["f1"].value) == (50, pytest.approx(100 * (2 / 3 + 1) / 2))
    report = answer_report(
        [["x y"], [], ["the z"], []], ["x", "", "z", "foo"], no_answer_scores=[0.1, 0.9, 0.2, 0.3], samples=50
    )
    values = {score.key: score.value for score in report.scores}
    assert values["exact_match"] == 50
    assert values["answerable_f1"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert values["unanswerable_exact_match"] == 50
    assert values["best_exact_match"] == 75
    assert report.thresholds == {"best_exact_match": 0.2, "best_f1": 0.2}
    assert report.baseline is not None
    assert report.baseline.values["exact_match"] == 50
    assert answer_report([["x"], []], ["y", "y"], samples=0).warnings["one_class"] == "all predicted answers are 'y'"
    with pytest.raises(DataError, match="there are 2 correct labels, but 1 predictions"):
        answer_report([["x"], []], ["x"])
