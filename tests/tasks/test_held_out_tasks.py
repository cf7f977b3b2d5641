"""Runs of one file: labelled examples and documents are held out, stored, left out of training, and scored."""

import json
import random
from pathlib import Path

import pytest
from training_runs import QUICK_RUN, RUN

from dragoman.checkpoint.folder import read_config
from dragoman.cli.main import main

SHORT = [*QUICK_RUN, "train.max_steps=2", "data.batch.tokens=200"]


def write_file(name: str, count: int) -> None:
    draw = random.Random(3)
    words = "dog cat man park runs sees two old red house tree bird".split()
    texts = [[draw.choice(words) for _ in range(4)] for _ in range(count)]
    if name.endswith(".tsv"):
        lines = [f"{' '.join(text)}\t{'xy'[number % 2]}\n" for number, text in enumerate(texts)]
    elif name.endswith(".conll"):
        lines = ["".join(f"{word}\tT{len(word)}\n" for word in text) + "\n" for text in texts]
    else:
        lines = [f"{' '.join(text)}\n" for text in texts]
    Path(name).write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("task", "name", "stored"),
    [
        ("classification", "reviews.tsv", "test.jsonl"),
        ("tagging", "tags.conll", "test.conll"),
        ("language_model", "text.txt", "test.documents.jsonl"),
    ],
)
def test_one_file_is_enough(
    task: str,
    name: str,
    stored: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_file(name, 100)
    train = f"data.train={name}"
    run = [*SHORT, f"task.kind={task}"]
    if task == "language_model":
        train = f"data.train.text={name}"
        run = [each.replace("model.encoder", "model.decoder") for each in run]
    assert main(["train", train, *run]) == 0
    unit = "documents" if task == "language_model" else "examples"
    assert f"Held out: 10 {unit} for validation, 10 {unit} for testing, in {RUN}/held_out" in capsys.readouterr().err
    assert read_config(Path(RUN))["data"]["held_out"] == {"valid": 10, "test": 10, "seed": 1}
    assert main(["evaluate", RUN]) == 0
    printed = capsys.readouterr()
    assert "10" in printed.out
    assert f"held out, {RUN}/held_out/{stored}" in printed.err
    command = ["perplexity"] if task == "language_model" else ["labels"]
    assert main(["evaluate", *command, RUN, "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    option = ["--text"] if task == "language_model" else ["--test"]
    path = f"{RUN}/held_out/{stored}"
    if task == "language_model":
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        path = "documents.txt"
        Path(path).write_text("".join(json.loads(line)["text"] + "\n" for line in lines), encoding="utf-8")
    assert main(["evaluate", *command, RUN, *option, path, "--json"]) == 0
    named = json.loads(capsys.readouterr().out)
    for result in (own, named):
        result.get("texts", [{}])[0].pop("text", None)
    assert own == named
    assert main(["train", "--resume", "--out", RUN, "train.max_steps=3"]) == 0
    Path(name).write_text(Path(name).read_text(encoding="utf-8").replace("dog", "cow"), encoding="utf-8")
    capsys.readouterr()
    assert main(["train", "--resume", "--out", RUN, "train.max_steps=4"]) == 2
    assert f"{name} has changed since the run started" in capsys.readouterr().err


def test_the_sets_of_several_tasks_must_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = "tasks.mood={kind: classification, data: {train: train.tsv}}"
    assert main(["train", "task.kind=multi_task", tasks, f"out={tmp_path / 'run'}", "train.max_steps=1"]) == 2
    assert "only a run of one task holds out data: set tasks.mood.data.valid" in capsys.readouterr().err
