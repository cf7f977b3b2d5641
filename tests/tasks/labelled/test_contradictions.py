"""Texts with different labels, and labels in two spellings, are reported before training, with files and lines."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import compare_data, train
from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import LabelledCorpusConfig
from dragoman.data.labelled.examples import LabelledText, fingerprint
from dragoman.data.labelled.read import read_labelled

LONG = "long " * 20


def write(path: Path, *rows: str) -> str:
    """Write rows, followed by examples without problems."""
    filler = [f"{path.stem} example {number}\t{'pos' if number % 2 else 'neg'}" for number in range(30)]
    path.write_text("".join(f"{row}\n" for row in [*rows, *filler]))
    return str(path)


def recipe(folder: Path, *corpora: str, valid: str | None = None, kind: str = "classification") -> dict[str, Any]:
    data: dict[str, Any] = {"train": list(corpora) if len(corpora) > 1 else corpora[0]}
    return {
        "task": {"kind": kind},
        "data": data | ({} if valid is None else {"valid": valid}),
        "model": {"preset": None, "width": 4, "encoder": {"kind": "mean"}},
        "train": {"max_steps": 1, "device": "cpu", "precision": "float32", "threads": 1},
        "out": str(folder / "run"),
    }


def found(folder: Path, *corpora: str, **options: Any) -> list[str]:
    return [each.message for each in compare_data(recipe(folder, *corpora, **options), quiet=True)]


def test_contradictions_within_and_between_training_files(tmp_path: Path) -> None:
    first = write(tmp_path / "a.tsv", "Good.\tpos", "So so.\tpos", "Good.\tpos", f"{LONG}\tpos", "Fine.\tpos")
    second = write(tmp_path / "b.tsv", "Bad.\tneg", "So  so. \tneg", "Good.\tneg", f"{LONG}\tneg")
    (message,) = found(tmp_path, first, second)
    assert message == (
        f"3 texts have different labels in {first}, {second}, of which a model can learn only one, for example 'Good.' "
        f"('pos' in {first}, line 1 and 'neg' in {second}, line 3) and 'So so.' ('pos' in {first}, line 2 and 'neg' in "
        f"{second}, line 2). Correct the labels, or remove these examples"
    )
    assert found(tmp_path, first) == []


def test_contradictions_between_training_and_validation(tmp_path: Path) -> None:
    first = write(tmp_path / "a.tsv", "Good.\tpos", "Both.\tpos", "Both.\tneg", "Same.\tneg")
    valid = write(tmp_path / "v.tsv", "Good.\tneg", "Both.\tneg", "Same.\tneg")
    within, between, *_ = found(tmp_path, first, valid=valid)
    assert within.startswith("1 text has different labels")
    assert between == (
        f"1 text has other labels in {valid} than in {first}, for example 'Good.' ('pos' in {first}, line 1 and 'neg' "
        f"in {valid}, line 1). Correct the labels, or remove these examples from the training data"
    )


def test_pairs_of_texts_are_compared_as_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [("An animal.", "yes"), ("A cat.", "no"), ("An animal.", "no")] * 10
    path.write_text(
        "".join(f'{{"premise": "A dog.", "hypothesis": "{text}", "label": "{label}"}}\n' for text, label in rows)
    )
    (message,) = found(tmp_path, str(path))
    assert message.startswith("1 text has") and "'A dog. / An animal.'" in message


def test_sentences_with_different_tags(tmp_path: Path) -> None:
    path = tmp_path / "train.conll"
    path.write_text("\n\n".join(["Anna B-PER\nsleeps O", "Anna B-PER\nsings O", "Anna O\nsings O"] * 10) + "\n")
    (message,) = found(tmp_path, str(path), kind="tagging")
    assert f"'Anna sings' ('B-PER' in {path}, line 4 and 'O' in {path}, line 7)" in message


def test_numbers_may_differ(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text("Good.\t4\nGood.\t4.5\n" * 15)
    assert found(tmp_path, str(path), kind="regression") == []


def test_spellings_of_labels(tmp_path: Path) -> None:
    first = write(tmp_path / "a.tsv", "Great.\tPos", "Nice.\tPos", "Sad.\tneg")
    assert found(tmp_path, first) == [
        f"the labels 'Pos' (2) and 'pos' (15) of {first} are different classes. If they are the same, use one spelling"
    ]


def test_a_run_warns_before_its_first_update(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = recipe(tmp_path, write(tmp_path / "a.tsv", "Good.\tpos", "Good.\tneg"))
    settings["data"]["max_unknown"] = 1e-9
    settings["text"] = {"subword": {"kind": "word", "min_frequency": 30}}
    with pytest.raises(DataError):
        train(settings)
    assert "warning: 1 text has different labels" in capsys.readouterr().err


def test_the_location_is_no_part_of_an_example(tmp_path: Path) -> None:
    path = tmp_path / "one.tsv"
    path.write_text("Good.\tpos\n")
    (example,) = read_labelled(LabelledCorpusConfig(path=path))
    assert (example.file, example.line) == (str(path), 1)
    plain = LabelledText(("Good.",), "pos")
    assert example == plain and fingerprint([example]) == fingerprint([plain])
