"""`Predictor`, `predict` and `evaluate_labels`: one prediction per example, by name, whatever stands beside it."""

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from closeness import close_to
from sampled_texts import write_classes
from training_runs import MACHINE

from dragoman import Predictor, evaluate_labels, predict, train
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.cli.main import main

MODEL = {"preset": "mean", "width": 16}


def train_classifier(folder: Path, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    recipe = {
        "task": {"kind": "classification"},
        "data": {
            "train": str(write_classes(folder / "train.tsv", 200, 1)),
            "valid": str(write_classes(folder / "v.tsv", 30, 2)),
        },
        "model": MODEL,
        "train": {"max_steps": 40, "validate_every": 40, **MACHINE},
        "out": str(folder / "run"),
    }
    train({**recipe, **changes}, quiet=True)
    return folder / "run"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_classifier(tmp_path_factory.mktemp("classifier"))


@pytest.fixture(scope="module")
def predictor(folder: Path) -> Predictor:
    return Predictor.load(folder)


def test_labels_are_predicted_by_name(predictor: Predictor) -> None:
    assert predictor.labels == ("Speise", "Tier, groß")
    animal, dish = predictor.predict(["my old horse", "the cake"])
    assert animal.as_json()["label"] == "Tier, groß" and dish.as_json()["label"] == "Speise"
    assert animal.as_json()["probabilities"].keys() == {"Speise", "Tier, groß"}
    assert sum(animal.as_json()["probabilities"].values()) == pytest.approx(1)


def test_the_card_has_the_numbers_of_labels_and_the_baseline(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    lines = (folder.parent / "train.tsv").read_text().splitlines()
    count = sum(line.endswith("Tier, groß") for line in lines)
    assert re.search(rf"\| Tier, groß \| {count} \| \d+ \|", card)
    assert re.search(r"\| accuracy \| [\d.]+ \| [\d.]+ to [\d.]+ \| \d+\.\d+ \|", card)
    assert "always" in card and "| Seed | 1 |" in card and "| Checkpoint selected by | accuracy on " in card
    assert re.search(r"\| Fingerprint of the validation set \| `[0-9a-f]{64}` \|", card)
    assert "classifies similar text best. Expect errors on other text. It has not" in card
    assert card.index("## Labels") < card.index("## Use")


def test_one_predicted_class_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rare = [
        write_classes(tmp_path / name, 40, seed, ("the same",) * 2) for name, seed in (("train.tsv", 1), ("v.tsv", 2))
    ]
    for path in rare:
        path.write_text(f"{path.read_text()}a cake\tother\n")
    data = {"train": str(rare[0]), "valid": str(rare[1])}
    train_classifier(tmp_path / "other", data=data, train={"max_steps": 4, "validate_every": 40, **MACHINE})
    warning = " ".join(capsys.readouterr().err.split())
    assert "on the validation set: all predictions are 'the same', so the model does not distinguish" in warning


def test_a_string_is_one_text(predictor: Predictor) -> None:
    assert predictor.predict("my old horse") == predictor.predict(["my old horse"])


def test_predictions_do_not_depend_on_the_other_texts(predictor: Predictor) -> None:
    texts = ["dog", "", "a cake " * 40, " ", "my\u2028horse", "the soup", "…"] * 5
    together = [each.as_json() for each in predictor.predict(texts)]
    assert len(together) == len(texts)
    for batch_tokens in (1, 50):
        for one, other in zip(predictor.predict(texts, batch_tokens=batch_tokens), together, strict=True):
            assert one.as_json()["label"] == other["label"]
            assert one.as_json()["probabilities"] == close_to(other["probabilities"])
    assert [predictor.predict([text])[0].as_json()["label"] for text in texts] == [each["label"] for each in together]


def test_the_order_of_the_labels_changes_nothing(folder: Path, tmp_path: Path) -> None:
    other = train_classifier(tmp_path, model={**MODEL, "head": {"labels": ["Tier, groß", "Speise"]}})
    texts = ["my old horse", "the cake", "a dog", "bread"]
    ours, theirs = (
        [each.as_json()["label"] for each in Predictor.load(model).predict(texts)] for model in (folder, other)
    )
    assert ours == theirs


def test_unknown_labels_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the label 'Speise' is not one of 'Tier, groß', 'Essen'"):
        train_classifier(tmp_path, model={**MODEL, "head": {"labels": ["Tier, groß", "Essen"]}})


def test_a_translator_does_not_predict(tmp_path: Path) -> None:
    from tiny_model import write_tiny_model

    write_tiny_model(tmp_path / "translator")
    with pytest.raises(ModelError, match="is a translation model; it cannot predict labels"):
        Predictor.load(tmp_path / "translator")


@pytest.mark.parametrize("text", [["a", "b", "c"], {"question": "a", "context": "b"}, ()])
def test_texts_of_the_wrong_form(predictor: Predictor, text: Any) -> None:
    with pytest.raises(ConfigError, match="text 2: expected a text or a pair of texts"):
        predictor.predict(["fine", text])


def test_files(folder: Path, predictor: Predictor, tmp_path: Path) -> None:
    source = write_classes(tmp_path / "test.tsv", 25, 3)
    written = io.StringIO()
    assert predict(predictor, source, written) == 25
    rows = [json.loads(line) for line in written.getvalue().splitlines()]
    texts = [line.split("\t")[0] for line in source.read_text().splitlines()]
    assert [row["label"] for row in rows] == [each.as_json()["label"] for each in predictor.predict(texts)]
    assert [row["id"] for row in rows] == [str(number) for number in range(1, 26)]
    predict(folder, source, tmp_path / "out.tsv", format="tsv", quiet=True)
    lines = (tmp_path / "out.tsv").read_text().splitlines()
    assert lines == ["index\tprediction", *(f"{number}\t{row['label']}" for number, row in enumerate(rows))]
    with pytest.raises(
        ConfigError,
        match="the format conll does not fit the model, whose task is classification: use jsonl or",
    ):
        predict(predictor, source, written, format="conll")


def test_evaluation_and_comparison(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = write_classes(tmp_path / "test.tsv", 40, 4)
    untrained = train_classifier(tmp_path, train={"max_steps": 1, "validate_every": 40, **MACHINE})
    capfd.readouterr()
    result = evaluate_labels([folder, untrained], source, quiet=True)
    assert "the test set has only 40 texts: p-values from fewer than 100 texts are unreliable" in capfd.readouterr().err
    gold = [line.split("\t")[1] for line in source.read_text().splitlines()]
    texts = [line.split("\t")[0] for line in source.read_text().splitlines()]
    right = [each.as_json()["label"] for each in Predictor.load(folder).predict(texts)]
    accuracy = 100 * np.mean([one == other for one, other in zip(right, gold, strict=True)])
    assert result.reports[0]["accuracy"].value == pytest.approx(accuracy)
    assert accuracy > 90
    assert {each.first.name for each in result.comparisons[0]} >= {"accuracy", "macro F1"}
    assert "against" in str(result)
    assert len(result.as_json()["models"]) == 2


def test_several_test_sets(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = [str(write_classes(tmp_path / name, 20, seed)) for name, seed in (("a.tsv", 5), ("b.tsv", 6))]
    command = ["evaluate", "labels", str(folder), "--test", tests[0], "--test", tests[1]]
    assert main([*command, "--json"]) == 0
    both = json.loads(capsys.readouterr().out)["tests"]
    assert [each["test"] for each in both] == tests
    for test, found in zip(tests, both, strict=True):
        assert found == {"test": test, **evaluate_labels(folder, test, quiet=True).as_json()}
    assert main(command) == 0
    assert all(test in capsys.readouterr().out for test in tests[:1])
    assert main([*command, "--confusion", str(tmp_path / "c.png")]) != 0
    assert "give --test once" in " ".join(capsys.readouterr().err.split())


def test_a_model_of_single_texts_does_not_read_pairs(predictor: Predictor, tmp_path: Path) -> None:
    assert predictor.head.texts == 1  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match="text 2: this is a pair, but the model was trained on single texts"):
        predictor.predict(["a dog", ("a dog", "a cat")])
    (tmp_path / "pairs.tsv").write_text("a dog\ta cat\tTier, groß\n")
    with pytest.raises(ConfigError, match="trained on single texts"):
        evaluate_labels(predictor, tmp_path / "pairs.tsv", quiet=True)
