"""Small models learn to find answers and to predict numbers, from files to reports."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dragoman import Predictor, evaluate_labels, inspect, predict, train
from dragoman.base.errors import ConfigError, DataError
from dragoman.data.labelled.corpus import QuestionCorpusConfig
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.data.labelled.read import read_questions
from dragoman.inference.prediction.heads.report import compare_with_labels
from dragoman.tasks.labelled.job import validation_interval

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


def test_the_threshold_is_the_best_on_the_validation_set(answering: Path) -> None:
    meta = json.loads((answering / "meta.json").read_text())
    assert all(score["metric"] != "threshold" for score in meta["scores"])
    valid = read_questions(QuestionCorpusConfig(path=answering.parent / "valid.json"))
    predictor = Predictor.load(answering)
    predictor.predict(valid)

    def f1(threshold: float) -> float:
        (answering / "meta.json").write_text(json.dumps({**meta, "threshold": threshold}))
        predictions = Predictor.load(answering).predict(valid)
        return float(compare_with_labels(predictor.head, valid, predictions, samples=0)["f1"].value or 0)

    try:
        best = f1(meta["threshold"])
        tried = [f1(meta["threshold"] + shift) for shift in (-20, -5, -2, -1, -0.5, 0.5, 1, 2, 5, 20)]
    finally:
        (answering / "meta.json").write_text(json.dumps(meta))
    assert best >= max(tried) and best > min(tried)


def test_the_best_answers_are_written_in_bert_s_format(answering: Path, tmp_path: Path) -> None:
    source = write_questions(tmp_path / "test.json", 10, 4)
    for name in ("squad", "squad_nbest"):
        predict(answering, source, tmp_path / name, format=name, quiet=True)  # type: ignore[arg-type]
    answers, lists = (json.loads((tmp_path / name).read_text()) for name in ("squad", "squad_nbest"))
    for identifier, answer in answers.items():
        entries = lists[identifier]
        assert 1 < len(entries) <= 21 and len({each["text"] for each in entries}) == len(entries)
        assert sum(each["probability"] for each in entries) == pytest.approx(1)
        scores = [each["start_logit"] + each["end_logit"] for each in entries]
        assert scores == sorted(scores, reverse=True)
        assert answer in (next(each["text"] for each in entries if each["text"]), "")


def test_answers_out_of_reach_are_counted_before_training(
    answering: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = {
        "task": {"kind": "question_answering"},
        "data": {"train": str(answering.parent / "valid.json"), "valid": str(answering.parent / "valid.json")},
        "model": {
            "preset": "mean",
            "width": 8,
            "head": {"longest": 1},  # of a span head, which the task determines
        },
        "text": {"subword": {"kind": "character"}},
        "train": {"max_steps": 1, **MACHINE},
        "out": str(tmp_path / "run"),
    }
    train(recipe, quiet=True)
    entries = [each.answers for each in read_questions(QuestionCorpusConfig(path=answering.parent / "valid.json"))]
    expected = sum(bool(answers) for answers in entries)  # every colour has more than one letter
    warning = " ".join(capsys.readouterr().err.split())
    assert f"the answers of {expected} of 60 training questions cannot be predicted" in warning
    assert "longer than model.head.longest, which is 1 tokens. The first is q" in warning


def test_numbers_are_predicted(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    for name, count in (("train", 300), ("valid", 40)):
        rows = [draw.choice(["good", "bad", "film"], 6) for _ in range(count)]
        scores = [2.5 + 0.4 * ((row == "good").sum() - (row == "bad").sum()) for row in rows]
        lines = [f"{' '.join(row)}\t{score:g}" for row, score in zip(rows, scores, strict=True)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    recipe: dict[str, Any] = {
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
    predictor = Predictor.load(tmp_path / "run")
    (prediction,) = predictor.predict("good good good film film film")
    assert prediction.as_json()["value"] == pytest.approx(3.7, abs=0.3)
    limited = {**recipe, "model": {**recipe["model"], "head": {"range": [2, 3]}}, "out": str(tmp_path / "limited")}
    with pytest.raises(DataError, match=r"the label [\d.]+ is not in model.head.range, which is 2 to 3"):
        train(limited, quiet=True)
    with pytest.raises(ConfigError, match="the first number must be smaller"):
        train({**limited, "model": {"preset": "mean", "head": {"range": [3, 2]}}}, quiet=True)
    clipped = Predictor(predictor.model, predictor.tokenizer, predictor.head.model_copy(update={"range": (0.0, 3.0)}))
    assert clipped.predict("good good good film film film")[0].as_json()["value"] == 3


def write_tagged(path: Path, count: int, seed: int) -> Path:
    """Write sentences of one repeated word, whose tags depend only on the second column."""
    draw = np.random.default_rng(seed)
    tags = {"NN": "B-NP", ",": "O", "``": "O", "<DT>": "B-VP"}
    rows = [[f"word {pos} {tags[pos]}" for pos in draw.choice(list(tags), 5)] for _ in range(count)]
    path.write_text("\n\n".join("\n".join(row) for row in rows) + "\n")
    return path


@pytest.mark.parametrize(
    "encoder", [ENCODER, pytest.param({"kind": "causal", "decoder": ENCODER}, marks=pytest.mark.slow)]
)
def test_a_tagger_reads_parts_of_speech(encoder: dict[str, Any], tmp_path: Path) -> None:
    corpora = {
        name: {"path": str(write_tagged(tmp_path / f"{name}.conll", count, seed)), "features": [2]}
        for name, count, seed in (("train", 150, 1), ("valid", 20, 2))
    }
    recipe = {
        "task": {"kind": "tagging"},
        "data": {**corpora, "batch": {"tokens": 512}},
        "text": {"subword": {"kind": "word"}},
        "model": {"preset": None, "width": 16, "encoder": encoder, "dropout": 0.0},
        "train": {"max_steps": 80, "validate_every": 80, **MACHINE, "schedule": {"kind": "cosine", "peak": 0.03}},
        "out": str(tmp_path / "run"),
    }
    train(recipe, quiet=True)
    report = evaluate_labels(tmp_path / "run", tmp_path / "valid.conll", ["features=[2]"], quiet=True).reports[0]
    assert report["accuracy"].value > 85  # about 50 from the words alone
    stored = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert stored["train"]["metric"] == "conlleval_f1"
    assert stored["model"]["head"]["features"] == 1 and stored["model"]["head"]["scheme"] == "IOB2"
    with pytest.raises(
        DataError, match=r"reads 1 further columns of each word, but the sentence has 0.*features=\[2\]"
    ):
        evaluate_labels(tmp_path / "run", tmp_path / "valid.conll", quiet=True)
    tagger = Predictor.load(tmp_path / "run")
    new = TaggedSentence(("word", "word"), features=(("new", ","),))
    assert tagger.predict([new])[0].as_json()["tags"][1] == "O"
    relevance = inspect(tagger, new, word=2).relevance
    assert relevance is not None and relevance.texts[0].words == ("word", "word")


def test_a_scheme_that_cannot_be_recognised_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "mixed.conll"
    path.write_text("a I-X\nb O\nc B-X\n\na I-X\nb O\nc B-X\n")
    recipe: dict[str, Any] = {
        "task": {"kind": "tagging"},
        "data": {"train": str(path), "valid": str(path)},
        "text": {"subword": {"kind": "character"}},
        "model": {"preset": "mean", "width": 8},
        "train": {"max_steps": 1, **MACHINE},
        "out": str(tmp_path / "run"),
    }
    with pytest.raises(DataError, match=r"neither IOB2 .* nor IOB1 .*model\.head\.scheme"):
        train(recipe, quiet=True)
    train({**recipe, "model": {**recipe["model"], "head": {"scheme": "IOB2"}}}, quiet=True)
    signatures = {each.signature for each in evaluate_labels(tmp_path / "run", path, quiet=True).reports[0].scores}
    assert "F1|strict|IOB2" in signatures


@pytest.mark.parametrize(
    ("limits", "steps"),
    [({"max_steps": 5}, [2, 4, 5]), ({"max_epochs": 2, "validate_every": 3}, [3, 4])],
)
def test_a_small_set_is_validated_after_every_epoch(tmp_path: Path, limits: dict[str, Any], steps: list[int]) -> None:
    lines = [f"word{number % 7} is {'good' if number % 2 else 'bad'}\t{number % 2}\n" for number in range(40)]
    (tmp_path / "data.tsv").write_text("".join(lines))
    recipe = {
        "task": {"kind": "classification"},
        "data": {
            "train": str(tmp_path / "data.tsv"),
            "valid": str(tmp_path / "data.tsv"),
            "batch": {"sentences": 20},
        },
        "model": {"preset": "mean", "width": 8},
        "train": {**limits, "device": "cpu", "precision": "float32", "threads": 1},
        "out": str(tmp_path / "run"),
    }
    result = train(recipe, quiet=True)
    assert [record.step for record in result.history] == steps


def test_long_epochs_are_validated_at_intervals_and_short_ones_wait_for_patience() -> None:
    assert [validation_interval(updates, True) for updates in (1, 30, 500, 9000)] == [1, 30, 500, 500]
    assert [validation_interval(updates, False) for updates in (1, 30, 80, 9000)] == [50, 50, 80, 500]
