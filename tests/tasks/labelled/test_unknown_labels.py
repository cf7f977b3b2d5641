"""Labels that no training example has, and labels that are no numbers, are reported before training."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import compare_data, train
from dragoman.base.errors import DataError


def settings(folder: Path, task: str, train_labels: str, valid_labels: str) -> dict[str, Any]:
    """Return a recipe. The labels of both files are separated by spaces."""
    for name, labels in (("train", train_labels), ("valid", valid_labels)):
        lines = [f"{name} text {number}\t{label}\n" for number, label in enumerate(labels.split() * 12)]
        (folder / f"{name}.tsv").write_text("".join(lines))
    return {
        "task": {"kind": task},
        "data": {"train": str(folder / "train.tsv"), "valid": str(folder / "valid.tsv")},
        "model": {"preset": None, "width": 4, "encoder": {"kind": "mean"}},
        "train": {"max_steps": 1, "device": "cpu", "precision": "float32", "threads": 1},
        "out": str(folder / "run"),
    }


def found(folder: Path, *arguments: str) -> list[str]:
    return [each.message for each in compare_data(settings(folder, *arguments), quiet=True)]


@pytest.mark.parametrize(
    ("labels", "held_out", "message"),
    [
        ("1.0 0.0", "1 0", r"no label of .*valid.tsv occurs in the training .*'1' and '0'.*'1.0' and '0.0'.*'1' is"),
        ("Sports Politics", "SPORTS politics", r"'SPORTS' is probably the training label 'Sports'"),
        ("yes no", "B-PER", r"has 'B-PER', the training data 'yes' and 'no'. Check that the files belong together"),
    ],
)
def test_no_label_can_be_scored(tmp_path: Path, labels: str, held_out: str, message: str) -> None:
    recipe = settings(tmp_path, "classification", labels, held_out)
    for check in (compare_data, train):
        with pytest.raises(DataError, match=message):
            check(recipe, quiet=True)


def test_some_labels_are_unknown(tmp_path: Path) -> None:
    told = found(tmp_path, "classification", "pos neg", "Pos pos neg mixed")
    name = tmp_path / "valid.tsv"
    assert told[0] == (
        f"24 of 48 labels of {name} do not occur in the training data and count as wrong, for example 'Pos' and "
        "'mixed'. 'Pos' is probably the training label 'pos': use one spelling"
    )
    assert not any("labels of" in each for each in found(tmp_path, "classification", "pos neg", "neg"))


def test_labels_that_the_model_names_are_known(tmp_path: Path) -> None:
    recipe = settings(tmp_path, "classification", "pos neg", "mixed")
    recipe["model"]["head"] = {"labels": ["pos", "neg", "mixed"]}
    assert not any("labels of" in each.message for each in compare_data(recipe, quiet=True))


@pytest.mark.parametrize(
    ("label", "remedy"), [("3,5", r"write 3\.5, or use"), ("high", "correct it, or use"), ("nan", "correct it, or use")]
)
def test_labels_of_a_regression_are_numbers(tmp_path: Path, label: str, remedy: str) -> None:
    with pytest.raises(DataError, match=rf"valid.tsv, line 2: the label '{label}' is not a number: {remedy}"):
        found(tmp_path, "regression", "1 2.5", f"3 {label}")
