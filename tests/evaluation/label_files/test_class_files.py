"""`evaluate labels --hypothesis` of classes and numbers: the scores of scikit-learn, all forms of files, and errors."""

import json
import random
from pathlib import Path

import pytest

from dragoman import evaluate_labels
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main
from dragoman.inference.prediction.formats import format_prediction
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.prediction.heads.regression import ValuePrediction
from dragoman.metrics.labels.report import Report

metrics = pytest.importorskip("sklearn.metrics")
stats = pytest.importorskip("scipy.stats")


def draw(seed: int) -> tuple[list[str], list[str]]:
    chance = random.Random(seed)
    gold = [chance.choice(["pos", "neg", "sehr gut"]) for _ in range(150)]
    return gold, [chance.choice(["pos", "neg", "neutral"]) if chance.random() < 0.4 else label for label in gold]


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def report(test: Path, hypothesis: Path, task: str | None = None) -> Report:
    return evaluate_labels(test=test, hypothesis=hypothesis, task=task, quiet=True).reports[0]


@pytest.mark.parametrize("seed", range(3))
def test_classes_have_the_scores_of_scikit_learn(tmp_path: Path, seed: int) -> None:
    gold, predicted = draw(seed)
    texts = write(tmp_path / "gold.tsv", *(f"A text.\t{label}" for label in gold))
    found = report(texts, write(tmp_path / "predicted.txt", *predicted))
    assert found["accuracy"].value == pytest.approx(100 * metrics.accuracy_score(gold, predicted))
    for average in ("macro", "micro", "weighted"):
        expected = 100 * metrics.f1_score(gold, predicted, average=average, zero_division=0)
        assert found[f"{average}_f1"].value == pytest.approx(expected)
    assert found["matthews"].value == pytest.approx(metrics.matthews_corrcoef(gold, predicted))


def test_numbers_have_the_scores_of_scipy_and_scikit_learn(tmp_path: Path) -> None:
    chance = random.Random(1)
    gold = [round(chance.uniform(0, 5), 1) for _ in range(80)]
    predicted = [value + chance.gauss(0, 1) for value in gold]
    texts = write(tmp_path / "gold.csv", "text,score", *(f'"A, b",{value}' for value in gold))
    rows = [json.dumps({"id": str(number), "value": value}) for number, value in enumerate(predicted, 1)]
    found = report(texts, write(tmp_path / "predicted.jsonl", *rows))
    assert found["pearson"].value == pytest.approx(stats.pearsonr(gold, predicted).statistic)
    assert found["spearman"].value == pytest.approx(stats.spearmanr(gold, predicted).statistic)
    assert found["mae"].value == pytest.approx(metrics.mean_absolute_error(gold, predicted))
    assert found["mse"].value == pytest.approx(metrics.mean_squared_error(gold, predicted))


GOLD, PREDICTED = draw(4)
NUMBERED = list(enumerate(PREDICTED))


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.txt", PREDICTED),
        ("a.txt", ["index\tprediction", *(f"{number}\t{label}" for number, label in NUMBERED)]),
        ("a.tsv", ["prediction", *PREDICTED]),
        ("a.tsv", [f"A text.\t{label}" for label in PREDICTED]),
        ("a.csv", [",prediction", *(f'{number},"{label}"' for number, label in reversed(NUMBERED))]),
        ("a.csv", ["label,pred", *(f"{gold},{label}" for gold, label in zip(GOLD, PREDICTED, strict=True))]),
        ("a.json", [json.dumps({"id": number, "Label": label}) for number, label in reversed(NUMBERED)]),
        ("a.txt", [json.dumps({"text": "A text.", "label": "?", "prediction": label}) for label in PREDICTED]),
    ],
)
def test_all_forms_of_predictions_have_the_same_scores(tmp_path: Path, name: str, lines: list[str]) -> None:
    expected = report(write(tmp_path / "gold.tsv", *GOLD), write(tmp_path / "expected.txt", *PREDICTED))
    with_texts = write(tmp_path / "texts.tsv", "sentence\tlabel", *(f"A text.\t{label}" for label in GOLD))
    assert report(with_texts, write(tmp_path / name, *lines)).scores == expected.scores


@pytest.mark.parametrize("form", ["jsonl", "tsv"])
def test_the_files_of_predict_are_read(tmp_path: Path, form: str) -> None:
    head = ["index\tprediction\n"] if form == "tsv" else []
    classes = [ClassPrediction(label, {label: 0.9, "other": 0.1}) for label in PREDICTED]
    lines = head + [format_prediction(*each, form) for each in zip(range(150), [None] * 150, classes, strict=True)]  # type: ignore[arg-type]
    (tmp_path / "predicted").write_text("".join(lines))
    found = report(write(tmp_path / "gold.txt", *GOLD), tmp_path / "predicted")
    assert found["accuracy"].value == pytest.approx(100 * metrics.accuracy_score(GOLD, PREDICTED))
    values = head + [format_prediction(number, None, ValuePrediction(number / 4), form) for number in range(5)]  # type: ignore[arg-type]
    (tmp_path / "predicted").write_text("".join(values))
    found = report(write(tmp_path / "gold.txt", *"01234"), tmp_path / "predicted")
    assert (found.task, found["mae"].value) == ("regression", pytest.approx(1.5))


def test_predictions_are_matched_by_their_identifiers(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.tsv", "id\tsentence\tlabel", "q1\tA.\tx", "q2\tB.\ty")
    assert report(gold, write(tmp_path / "a.tsv", "id\tlabel", "q2\ty", "q1\tx"))["accuracy"].value == 100
    assert report(gold, write(tmp_path / "a.tsv", "index\tlabel", "0\tx", "1\ty"))["accuracy"].value == 100
    with pytest.raises(DataError, match=r"a.tsv, line 3: the identifier q3 is not one of .*gold.tsv"):
        report(gold, write(tmp_path / "a.tsv", "id\tlabel", "q1\ty", "q3\tx"))


@pytest.mark.parametrize(
    ("gold", "predicted", "task", "message"),
    [
        ("xyx", ["x", "y"], None, r"gold.txt, line 3: .*a.txt ends here, with 2 instead of 3 labels"),
        ("xyx", ["x", "y", "x", "y"], None, r"a.txt, line 4: .*gold.txt ends here"),
        ("xyx", ["x", "", "x"], None, r"a.txt, line 2: the label is missing"),
        ("xyx", ["X", "Y", "X"], None, r"a.txt, line 1: 'X', like all other predictions, is not a label of .*'x', 'y'"),
        ("123", ["1", "x", "2"], "regression", r"a.txt, line 2: 'x' is not a number"),
        ("xyx", ['{"text": "x"}'] * 3, None, r"a.txt, line 1: none of the keys text is known to be a label"),
        ("xyx", ['{"label": ["x"]}'] * 3, None, r"a.txt, line 1: the value of 'label' is not a single label"),
        ("xyx", ["idx\tquestion", "1\tx", "2\tx"], None, r"a.txt, line 1: none of the columns idx, question"),
        ("xyx", ["1\tx", "2\tx", "x"], None, r"a.txt, line 3: the number of columns is 1, but should be 2"),
        ("xyx", [], None, r"a.txt has no labels"),
    ],
)
def test_errors_name_file_and_line(
    tmp_path: Path, gold: str, predicted: list[str], task: str | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        report(write(tmp_path / "gold.txt", *gold), write(tmp_path / "a.txt", *predicted), task)


def test_whole_numbers_need_a_task(tmp_path: Path) -> None:
    gold, predicted = write(tmp_path / "gold.txt", *"0101"), write(tmp_path / "a.txt", *"0111")
    with pytest.raises(ConfigError, match="gold.txt, line 1: all labels are whole numbers"):
        report(gold, predicted)
    assert report(gold, predicted, "classification")["accuracy"].value == 75
    assert report(gold, predicted, "regression")["mae"].value == 0.25


def test_unknown_labels_count_as_wrong_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, predicted = write(tmp_path / "gold.txt", *"xyxy"), write(tmp_path / "a.txt", *"xyzz")
    drawn = tmp_path / "confusion.csv"
    command = ["evaluate", "labels", "--test", str(gold), "--hypothesis", str(predicted), "--confusion", str(drawn)]
    assert main(command) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "2 of 4 predictions are not labels of" in told and "(the first is 'z';" in told and "line 3)" in told
    assert drawn.exists()
    assert main([*command[:3], str(gold)]) == 2
    assert main(["evaluate", "labels", "--hypothesis", str(predicted)]) == 2
    assert "there are no correct labels: give --test FILE" in capsys.readouterr().err
