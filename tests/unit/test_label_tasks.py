"""Small models learn to find answers and to predict numbers, from files to reports."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman import Predictor, evaluate_labels, predict, train

MACHINE = {"device": "cpu", "precision": "float32", "threads": 1, "schedule": {"kind": "cosine", "peak": 0.01}}
ENCODER = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 64}
COLOURS, THINGS = ("red", "blue", "green"), ("dog", "hat", "car", "tree")


def write_questions(path: Path, count: int, seed: int) -> Path:
    """Write questions for a colour of `A red dog and a blue hat.`, a third of which have no answer."""
    draw = np.random.default_rng(seed)
    entries = []
    for number in range(count):
        things, colours = draw.permutation(THINGS)[:3], draw.choice(COLOURS, 2)
        context = f"A {colours[0]} {things[0]} and a {colours[1]} {things[1]}."
        asked = int(draw.integers(3))
        answers = (
            [] if asked == 2 else [{"text": str(colours[asked]), "answer_start": (2, context.index(" a ") + 3)[asked]}]
        )
        question = {
            "id": f"q{number}",
            "question": ("first", "second", "third")[asked],
            "answers": answers,
            "is_impossible": asked == 2,
        }
        entries.append({"context": context, "qas": [question]})
    path.write_text(json.dumps({"version": "v2.0", "data": [{"title": "toys", "paragraphs": entries}]}))
    return path


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answering")
    recipe: dict[str, Any] = {
        "task": {"kind": "question_answering"},
        "data": {
            "train": str(write_questions(folder / "train.json", 600, 1)),
            "valid": str(write_questions(folder / "valid.json", 60, 2)),
            "batch": {"tokens": 1024},
        },
        "text": {"subword": {"kind": "word"}},
        "model": {"preset": None, "width": 32, "encoder": ENCODER, "dropout": 0.0},
        "train": {"max_steps": 60, "validate_every": 60, **MACHINE},
        "out": str(folder / "run"),
    }
    train(recipe, quiet=True)
    return folder / "run"


def test_answers_are_found(answering: Path, tmp_path: Path) -> None:
    source = write_questions(tmp_path / "test.json", 60, 3)
    report = evaluate_labels(answering, source, quiet=True).reports[0]
    assert report["f1"].value > 80  # 33.3 if no question is answered
    predict(answering, source, tmp_path / "answers.json", format="squad", quiet=True)
    answers = json.loads((tmp_path / "answers.json").read_text())
    assert answers.keys() == {f"q{number}" for number in range(60)}
    predict(answering, source, tmp_path / "answers.jsonl", quiet=True)
    for line in (tmp_path / "answers.jsonl").read_text().splitlines():
        entry = json.loads(line)
        assert entry["answer"] == answers[entry["id"]] and {"start", "end", "score", "no_answer"} <= entry.keys()


def test_numbers_are_predicted(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    for name, count in (("train", 300), ("valid", 40)):
        rows = [draw.choice(["good", "bad", "film"], 6) for _ in range(count)]
        scores = [2.5 + 0.4 * ((row == "good").sum() - (row == "bad").sum()) for row in rows]
        lines = [f"{' '.join(row)}\t{score:g}" for row, score in zip(rows, scores, strict=True)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    recipe = {
        "task": {"kind": "regression"},
        "data": {"train": str(tmp_path / "train.tsv"), "valid": str(tmp_path / "valid.tsv")},
        "model": {"preset": "mean", "width": 16, "dropout": 0.0},
        "text": {"subword": {"kind": "word"}},
        "train": {"max_steps": 60, "validate_every": 60, **MACHINE, "schedule": {"kind": "cosine", "peak": 0.05}},
        "out": str(tmp_path / "run"),
    }
    train(recipe, quiet=True)
    report = evaluate_labels(tmp_path / "run", tmp_path / "valid.tsv", quiet=True).reports[0]
    assert report["pearson"].value > 0.95
    (prediction,) = Predictor.load(tmp_path / "run").predict("good good good film film film")
    assert prediction.as_json()["value"] == pytest.approx(3.7, abs=0.3)
