"""`evaluate labels --hypothesis` of answers: the definitions of SQuAD 1.1 and 2.0, forms of files, and errors."""

import json
import random
import re
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest

from dragoman import evaluate_labels
from dragoman.base.errors import DataError
from dragoman.inference.prediction.formats import format_prediction
from dragoman.inference.prediction.heads.answering import AnswerPrediction
from dragoman.metrics.labels.report import Report

CONTEXT = "The red box, and a Blue box of the U.S. in 1999."
ANSWERS = ("The red box", "red box,", "a Blue box", "U.S.", "the", "1999", "box of the U.S. in 1999.")


def normalised(text: str) -> list[str]:
    plain = "".join(letter for letter in text.lower() if letter not in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    return [word for word in re.split(r"\s+", plain) if word not in ("", "a", "an", "the")]


def expected(prediction: str, answers: list[str], version: str) -> tuple[float, float]:
    """Return exact match and F1 by the definitions of the scripts."""
    words, scores = normalised(prediction), []
    if version == "2.0":
        answers = [answer for answer in answers if normalised(answer)] or [""]
    for correct in map(normalised, answers):
        common = (Counter(words) & Counter(correct)).total()
        f1 = 2 * common / (len(words) + len(correct)) if common else 0.0
        if version == "2.0" and not (words and correct):
            f1 = float(words == correct)
        scores.append((float(words == correct), f1))
    return max(exact for exact, _ in scores), max(f1 for _, f1 in scores)


def draw(seed: int, version: str) -> tuple[list[list[str]], list[str]]:
    """Return the correct answers, of which some are none in version 2.0, and predictions."""
    chance = random.Random(seed)
    gold = [chance.sample(ANSWERS, chance.randint(1, 3)) for _ in range(100)]
    if version == "2.0":
        gold[::4] = [[] for _ in gold[::4]]
    return gold, [chance.choice([*ANSWERS, *([""] if version == "2.0" else [])]) for _ in gold]


def write_questions(path: Path, gold: list[list[str]], indent: int | None = None) -> Path:
    questions = [
        {
            "id": f"q{number}",
            "question": "Which?",
            "answers": [{"text": text, "answer_start": CONTEXT.index(text)} for text in answers],
            "is_impossible": not answers,
        }
        for number, answers in enumerate(gold)
    ]
    article = {"title": "Boxes", "paragraphs": [{"context": CONTEXT, "qas": questions}]}
    path.write_text(json.dumps({"version": "v2.0", "data": [article]}, indent=indent))
    return path


def report(test: Path, hypothesis: Path) -> Report:
    return evaluate_labels(test=test, hypothesis=hypothesis, quiet=True).reports[0]


@pytest.mark.parametrize("version", ["1.1", "2.0"])
@pytest.mark.parametrize("seed", range(3))
def test_answers_have_the_scores_of_squad(tmp_path: Path, version: str, seed: int) -> None:
    gold, predicted = draw(seed, version)
    questions = write_questions(tmp_path / "gold.json", gold, indent=seed or None)
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps({f"q{number}": text for number, text in enumerate(predicted)}, indent=seed or None))
    found = report(questions, path)
    scores = [expected(*pair, version) for pair in zip(predicted, gold, strict=True)]
    assert found["exact_match"].value == pytest.approx(100 * mean(exact for exact, _ in scores))
    assert found["f1"].value == pytest.approx(100 * mean(f1 for _, f1 in scores))
    assert found["f1"].signature == f"F1|SQuAD {version}"


def test_forms_of_files_have_the_same_scores(tmp_path: Path) -> None:
    gold, predicted = draw(5, "2.0")
    questions = write_questions(tmp_path / "gold.json", gold)
    rows = [{"id": f"q{number}", "prediction_text": text} for number, text in enumerate(predicted)]
    random.Random(1).shuffle(rows)
    (tmp_path / "array.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "lines.json").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "own.jsonl").write_text(
        "".join(
            format_prediction(number, None, AnswerPrediction(text, 0, 3, 1.0, -0.5), "jsonl").replace(
                f'"id": "{number + 1}"', f'"id": "q{number}"'
            )
            for number, text in enumerate(predicted)
        )
    )
    flat = tmp_path / "gold.jsonl"
    flat.write_text(
        "\n".join(
            json.dumps({**each, "context": CONTEXT})
            for each in json.loads(questions.read_text())["data"][0]["paragraphs"][0]["qas"]
        )
    )
    scores = [report(test, tmp_path / "array.json").scores for test in (questions, flat)]
    assert scores[0] == scores[1] == report(questions, tmp_path / "lines.json").scores
    own = report(questions, tmp_path / "own.jsonl")
    assert own["f1"] == scores[0][1] and own["best_f1"].is_defined  # predict writes the scores of no answer


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"q0": "1999"}', r"a.json has no answer to 1 of the 2 questions of .*gold.json, such as q1"),
        ('{"q0": "1999", "q1": ["x"]}', r"a.json: the answer to the question q1 is not a text, but list"),
        ('{"id": "q0", "answer": "x"}\n{"id": "q0", "answer": "y"}', r"a.json, line 2: the question q0 occurs twice"),
        ('{"id": "q0", "answer": "x"}\n{"id": "q0"}', r"a.json, line 2: expected an object with `id` and `answer`"),
        ("1999\nbox\n", r"a.json, line 1: "),
        ("{}", r"a.json has no answers"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DataError, match=message):
        report(write_questions(tmp_path / "gold.json", [["1999"], []]), tmp_path / "a.json")


def test_answers_to_other_questions_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = write_questions(tmp_path / "gold.json", [["1999"]])
    (tmp_path / "a.json").write_text('{"q0": "1999", "x": "box"}')
    assert evaluate_labels(test=questions, hypothesis=tmp_path / "a.json").reports[0]["exact_match"].value == 100
    assert "1 answers to other questions than those of" in " ".join(capsys.readouterr().err.split())
