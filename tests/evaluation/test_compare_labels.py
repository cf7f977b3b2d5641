"""`dragoman compare` of models that predict labels: the same table and tests as for translations."""

import csv
import io
import json
import random
from pathlib import Path

import numpy as np
import pytest
from training_runs import QUICK_RUN

import dragoman
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main
from dragoman.evaluation.compare import tabulate
from dragoman.evaluation.compare_labels import tabulate_reports
from dragoman.evaluation.system_table import SystemTable
from dragoman.evaluation.systems import System
from dragoman.evaluation.test_set import TestSet
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.scoring import answer_report, classification_report, regression_report
from dragoman.metrics.registry import metric_of

GOLD = ["x", "y", "x", "x", "y"] * 20
SYSTEMS = [System(name, ()) for name in ("base", "better", "single")]


def predictions(every: int, first: int = 0) -> list[str]:
    """Labels of which every n-th is wrong."""
    return ["yx"[label == "y"] if (row + first) % every == 0 else label for row, label in enumerate(GOLD)]


PREDICTED = [[predictions(2), predictions(2, 1)], [predictions(7), predictions(9, 1)], [GOLD]]


@pytest.fixture(scope="module")
def table() -> SystemTable:
    return tabulate_reports(
        SYSTEMS, [[classification_report(GOLD, one) for one in each] for each in PREDICTED], "t.tsv"
    )


def test_accuracy_is_compared_like_a_metric_of_texts(table: SystemTable) -> None:
    test_set = TestSet(["t.tsv"], [GOLD], GOLD)
    texts = tabulate(SYSTEMS, PREDICTED, test_set, {"accuracy": metric_of("accuracy")})
    for labels, same in zip(table.rows, texts.rows, strict=True):
        assert labels.mean("accuracy") == pytest.approx(same.mean("accuracy"))
        assert labels.cell("accuracy") == same.cell("accuracy")
    for labels, same in zip(table.rows[1:], texts.rows[1:], strict=True):
        one, other = labels.comparisons["accuracy"], same.comparisons["accuracy"]
        assert one.difference == pytest.approx(other.difference)
        assert one.p_value == pytest.approx(other.p_value)
        assert one.interval.low == pytest.approx(other.interval.low)


def test_a_single_seed_is_never_significant(table: SystemTable) -> None:
    better, single = (row.comparisons["accuracy"] for row in table.rows[1:])
    assert better.is_significant
    assert single.p_value < 0.05 and not single.is_significant
    text = str(table)
    assert text.splitlines()[0].split() == ["system", "seeds", "accuracy", "macro", "F1"]
    assert "t.tsv, 100 texts; mean ± standard deviation over the seeds." in text
    assert "tested over seeds and texts" in text and "One seed of single" in text
    latex = table.format("latex")
    assert r"better & 2 & " in latex and r"$^\dagger$" in latex
    assert table.format("markdown").splitlines()[0] == "| system | seeds | accuracy | macro F1 |"
    read = list(csv.DictReader(io.StringIO(table.format("csv"))))
    assert float(read[0]["value"]) == 50
    values = json.loads(table.format("json"))
    assert values["texts"] == 100
    assert values["systems"][1]["against_first"]["macro_f1"]["significant"]


def test_a_lower_error_is_better_and_an_undefined_correlation_is_left_out() -> None:
    gold = [float(number) for number in range(30)]
    draw = np.random.default_rng(1)
    noisy = [[regression_report(gold, (gold + draw.normal(0, size, 30)).tolist()) for _ in range(2)] for size in (9, 1)]
    table = tabulate_reports(SYSTEMS[:2], noisy, "t", ["mse", "pearson"])
    assert table.best("mse").name == table.best("pearson").name == "better"
    constant = [noisy[0], [regression_report(gold, [1.0] * 30)] * 2]
    table = tabulate_reports(SYSTEMS[:2], constant, "t", ["mse", "pearson"])
    assert [score.key for score in table.metrics] == ["mse"]
    assert "Pearson correlation is left out, because it is undefined for better" in str(table)
    with pytest.raises(DataError, match="undefined for better: all predictions are equal"):
        tabulate_reports(SYSTEMS[:2], constant, "t", ["pearson"])


def test_reports_must_be_of_the_same_labels_and_have_the_metric() -> None:
    reports: list[list[Report]] = [[classification_report(GOLD, GOLD)], [classification_report(GOLD[1:], GOLD[1:])]]
    with pytest.raises(DataError, match="scored on different labels"):
        tabulate_reports(SYSTEMS[:2], reports, "t")
    with pytest.raises(ConfigError, match="classification has no metric 'bleu': expected some of accuracy, macro_f1"):
        tabulate_reports(SYSTEMS[:1], reports[:1], "t", ["bleu"])
    answers = [["one", "a one"], ["two"]] * 10
    found = [[answer_report(answers, ["one", "three"] * 10)], [answer_report(answers, ["one", "two"] * 10)]]
    table = tabulate_reports(SYSTEMS[:2], found, "t")
    assert [score.key for score in table.metrics] == ["exact_match", "f1"]
    assert table.unit == "questions"
    assert table.rows[1].comparisons["f1"].difference == pytest.approx(50)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two taggers of two seeds each, which held out the same sentences, and a classifier."""
    folder = tmp_path_factory.mktemp("taggers")
    draw = random.Random(3)
    words = "dog cat man park runs sees two old red house tree bird".split()
    sentences = [[draw.choice(words) for _ in range(4)] for _ in range(60)]
    (folder / "tags.conll").write_text(
        "".join("".join(f"{word}\tT{len(word)}\n" for word in sentence) + "\n" for sentence in sentences)
    )
    (folder / "labels.tsv").write_text(
        "".join(f"{' '.join(each)}\t{'xy'[number % 2]}\n" for number, each in enumerate(sentences))
    )
    run = [*QUICK_RUN[:-1], "train.max_steps=4", "data.batch.tokens=200"]
    for name, width, seeds in (("narrow", 16, 2), ("wide", 32, 2), ("single", 8, 1)):
        settings = [*run, "task.kind=tagging", f"data.train={folder / 'tags.conll'}", f"model.width={width}"]
        dragoman.train(None, [*settings, f"out={folder / name}", f"seeds={seeds}"], quiet=True)
    settings = [*run, "task.kind=classification", f"data.train={folder / 'labels.tsv'}", f"out={folder / 'labels'}"]
    dragoman.train(None, settings, quiet=True)
    return folder


def test_the_command_compares_models_on_what_they_held_out(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [str(runs / name) for name in ("narrow", "wide", "single")]
    assert main(["compare", *models, "--format", "json", "--draw", str(tmp_path / "curves.csv")]) == 0
    captured = capsys.readouterr()
    own = json.loads(captured.out)
    assert [(each["system"], len(each["scores"]["accuracy"]["values"])) for each in own["systems"]] == [
        (models[0], 2),
        (models[1], 2),
        (models[2], 1),
    ]
    assert captured.err.count("Test set:") == 1
    assert "accuracy" in (tmp_path / "curves.csv").read_text()
    test = runs / "narrow" / "seed-1" / "held_out" / "test.conll"
    assert main(["compare", *models, "--test", str(test), "tag=last", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"] == own["systems"]
    table = dragoman.compare(models, test=test, metric=["macro_f1"], quiet=True)
    assert [score.key for score in table.metrics] == ["macro_f1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["narrow", "labels"], "have different test sets: give the examples to compare the models with: --test FILE"),
        (["narrow", "labels", "--test", "tags.conll"], "heads of different kinds"),
        (["narrow", "--source", "tags.conll"], "--source can only be used with models that translate"),
        (["narrow", "--beam", "4"], "--beam can only be used with models that translate"),
        (["narrow", "tag=last"], "KEY=VALUE can only be used with --test FILE"),
        (["narrow", "--task", "names"], "no test set of its own for the task names"),
        (["narrow", "--metric", "bleu"], "tagging has no metric 'bleu'"),
    ],
)
def test_unsuitable_arguments_are_refused(
    arguments: list[str], message: str, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    assert main(["compare", *arguments]) == 2
    assert message in capsys.readouterr().err
