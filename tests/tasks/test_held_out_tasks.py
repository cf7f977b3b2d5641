"""Runs of one file: examples and documents are held out, stored, left out of training, and scored."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from training_runs import QUICK_RUN, RUN

from dragoman import train
from dragoman.checkpoint.folder import CARD, read_config
from dragoman.cli.main import main
from dragoman.data.cleaning.sentence_keys import sentence_key
from dragoman.data.labelled.corpus import LabelledCorpusConfig, QuestionCorpusConfig, TreebankCorpusConfig
from dragoman.data.labelled.read import read_labelled, read_parsed, read_questions
from dragoman.evaluation.denoising import evaluate_denoising

SHORT = [*QUICK_RUN, "train.max_steps=2", "data.batch.tokens=200"]
TEXT_TASKS = ("language_model", "denoising", "masked_language_model")


def some_texts(count: int) -> list[list[str]]:
    draw = random.Random(3)
    words = "dog cat man park runs sees two old red house tree bird".split()
    return [[draw.choice(words) for _ in range(4)] for _ in range(count)]


def question(number: int, context: str) -> dict[str, Any]:
    answer = {"text": context.split()[0], "answer_start": 0}
    return {"id": str(number), "question": f"which word is {number}?", "answers": [answer]}


def write_file(name: str, count: int) -> None:
    texts = some_texts(count)
    sentences = map(" ".join, texts)
    match name.partition(".")[2]:
        case "tsv":
            written = "".join(f"{text}\t{'xy'[number % 2]}\n" for number, text in enumerate(sentences))
        case "conll":
            written = "".join("".join(f"{word}\tT{len(word)}\n" for word in text) + "\n" for text in texts)
        case "mrg":
            written = "".join(f"(S (NP (DT {a}) (NN {b})) (VP (VB {c}) (NN {d})))\n" for a, b, c, d in texts)
        case "json":
            found = [[question(2 * number + each, text) for each in range(2)] for number, text in enumerate(sentences)]
            paragraphs = [{"context": " ".join(text), "qas": qas} for text, qas in zip(texts, found, strict=True)]
            written = json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]})
        case _:
            written = "".join(f"{text}\n" for text in sentences)
    Path(name).write_text(written, encoding="utf-8")


@pytest.mark.parametrize(
    ("task", "name", "stored"),
    [
        ("classification", "reviews.tsv", "test.jsonl"),
        ("tagging", "tags.conll", "test.conll"),
        ("question_answering", "questions.json", "test.json"),
        ("parsing", "trees.mrg", "test.trees"),
        ("language_model", "text.txt", "test.documents.jsonl"),
        ("denoising", "text.txt", "test.documents.jsonl"),
        ("masked_language_model", "text.txt", "test.documents.jsonl"),
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
    write_file(name, 50 if task == "question_answering" else 100)
    is_text = task in TEXT_TASKS
    names = f"data.train.text={name}" if is_text else f"data.train={name}"
    run = [*SHORT, f"task.kind={task}"]
    if task == "language_model":
        run = [each.replace("model.encoder", "model.decoder") for each in run]
    assert main(["train", names, *run]) == 0
    unit = "documents" if is_text else "examples"
    assert f"Held out: 10 {unit} for validation, 10 {unit} for testing, in {RUN}/held_out" in capsys.readouterr().err
    assert read_config(Path(RUN))["data"]["held_out"] == {"valid": 10, "test": 10, "seed": 1}
    assert "held out for validation and testing" in Path(RUN, CARD).read_text(encoding="utf-8")
    assert main(["evaluate", RUN]) == 0
    printed = capsys.readouterr()
    assert "10" in printed.out
    assert f"held out, {RUN}/held_out/{stored}" in printed.err
    command = ["perplexity"] if is_text else ["labels"]
    assert main(["evaluate", *command, RUN, "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    option = ["--text"] if is_text else ["--test"]
    path = f"{RUN}/held_out/{stored}"
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


def test_masks_of_the_validation_set_are_restored_as_in_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_file("text.txt", 100)
    result = train(None, [*SHORT, "task.kind=masked_language_model", "data.train.text=text.txt"], quiet=True)
    lines = Path(RUN, "held_out", "valid.documents.jsonl").read_text(encoding="utf-8").splitlines()
    score = evaluate_denoising(RUN, [json.loads(line)["text"] for line in lines], device="cpu", quiet=True)
    assert score.loss == pytest.approx(result.validation["loss"].value, rel=1e-4)
    assert score.accuracy == pytest.approx(result.validation["accuracy"].value)
    assert score.as_json()["documents"] == 10


MEMBERS = [
    "task.kind=multi_task",
    "tasks.mood={kind: classification, data: {train: reviews.tsv}}",
    "tasks.trees={kind: parsing, data: {train: trees.mrg}}",
    "tasks.answers={kind: question_answering, data: {train: questions.json, valid: valid.json}}",
]


def test_each_of_several_tasks_holds_out_texts_that_no_other_task_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("reviews.tsv", "trees.mrg"):  # with the same texts
        write_file(name, 100)
    for name in ("questions.json", "valid.json"):
        write_file(name, 5)
    run = [each for each in SHORT if not each.startswith("data.")]
    assert main(["train", *MEMBERS, *run]) == 0
    captured = capsys.readouterr()
    sets = Path(RUN, "held_out")
    for task in ("mood", "trees"):
        assert f"Held out: 10 examples for validation, 10 examples for testing, in {sets / task}" in captured.err
    assert "mood: " in captured.err
    assert sorted(path.name for path in sets.iterdir()) == ["mood", "trees"]

    def keys(part: str) -> list[set[int]]:
        mood = read_labelled(LabelledCorpusConfig(path=sets / "mood" / f"{part}.jsonl"))
        trees = read_parsed(TreebankCorpusConfig(path=sets / "trees" / f"{part}.trees"))
        return [{sentence_key(each.texts[0]) for each in mood}, {sentence_key(" ".join(each.words)) for each in trees}]

    valid, test = (set.union(*keys(part)) for part in ("valid", "test"))
    assert valid.isdisjoint(test)
    kept = sum(sentence_key(" ".join(text)) not in valid | test for text in some_texts(100))
    assert f"mood: {kept} examples" in captured.err
    assert f"trees: {kept} examples" in captured.err
    assert f"answers: {kept_questions(valid | test)} examples" in captured.err
    stored = read_config(Path(RUN))["tasks"]
    assert stored["trees"]["data"]["held_out"] == {"valid": 10, "test": 10, "seed": 1}
    assert stored["answers"]["data"]["held_out"] is None
    assert "held out for validation and testing" in Path(RUN, CARD).read_text(encoding="utf-8")

    assert main(["evaluate", RUN, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["tests"]
    assert [each["models"][0]["task"] for each in results] == ["classification", "parsing"]
    assert main(["evaluate", "labels", RUN, "--task", "trees"]) == 0
    assert "parsing, 10 sentences" in capsys.readouterr().out
    assert main(["evaluate", "labels", RUN, "--task", "answers"]) == 2
    assert "has no test set of its own for the task answers" in capsys.readouterr().err
    files = {path: path.read_bytes() for path in sets.rglob("*.*")}
    assert main(["train", "--resume", "--out", RUN, "train.max_steps=3"]) == 0
    assert {path: path.read_bytes() for path in sets.rglob("*.*")} == files


def kept_questions(held_out: set[int]) -> int:
    questions = read_questions(QuestionCorpusConfig(path="questions.json"))
    return sum(sentence_key(each.context) not in held_out for each in questions)


def test_a_task_without_texts_of_its_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_file("reviews.tsv", 100)
    run = [each for each in SHORT if not each.startswith("data.")]
    assert main(["train", *MEMBERS[:2], *run, "out=first"]) == 0
    lines = Path("first/held_out/mood/test.jsonl").read_text(encoding="utf-8")
    Path("few.jsonl").write_text(lines)
    Path("few_valid.jsonl").write_text(lines)
    few = "tasks.few={kind: classification, data: {train: few.jsonl, valid: few_valid.jsonl}}"
    assert main(["train", *MEMBERS[:2], few, *run, "out=second"]) == 1
    assert "all examples of few.jsonl are held out for other tasks" in capsys.readouterr().err
